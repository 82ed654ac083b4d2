//! The Mastodon API over the world: what is asked, and what is answered.
//!
//! Written by hand from the network's documentation and recorded answers of real servers. Pure:
//! the time of the answer is an argument.

mod answer;
mod entities;
mod instance;
mod lists;
mod paging;
mod render;
mod route;
mod search;
mod site;
mod tags;

pub(crate) use answer::Problem;
pub(crate) use instance::VERSION;
pub(crate) use lists::{Asking, other_side};
pub(crate) use paging::{cursor, is_paging};
pub(crate) use render::{AccountCache, Renderer};
pub(crate) use route::{QUERIES, Route};
