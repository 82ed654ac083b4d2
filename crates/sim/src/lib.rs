//! A synthetic social network that speaks real APIs over real HTTP.
//!
//! Knows: a world computed from a seed (users, who follows whom, posts, and how all of it changes
//! with time), the dialects of networks and their limits, and a ledger of every call it received.
//!
//! Does not know: network definitions, crawlers, stores. Its dialects are written by hand from the
//! networks' documentation and recorded answers, so that a wrong definition is found out and not
//! agreed with. It stores nothing per user: a hundred million users cost as much memory as one.
//!
//! - `world/`: pure functions of seed, size and time; see `world/mod.rs`
//! - `mastodon/`: what is asked, and the entities that answer it
//! - `dialect.rs`: what all other dialects have in common; each has a folder of its own, such as `x/`
//! - `fediverse/`, `hub.rs`: many instances over one world, where there are several
//! - `limits/`, `ledger.rs`: what is counted and written down; `stay.rs`: until when
//! - `faults/`, `wire.rs`: what goes wrong on purpose, and the connections that let it
//! - `truth.rs`, `trace.rs`, `probe.rs`: the ground truth and the ledger under `/_sim`
//! - `clock.rs`, `http.rs`, `question.rs`, `server.rs`: the edge, the only part with sockets and a clock

mod answer;
mod bill;
mod bluesky;
mod clock;
mod config;
mod dialect;
mod error;
mod facebook;
mod faults;
mod fediverse;
mod http;
mod hub;
mod ledger;
mod limits;
mod mastodon;
mod params;
mod probe;
mod question;
mod reddit;
mod server;
mod spoil;
mod stay;
mod trace;
mod truth;
mod weibo;
mod wire;
mod world;
mod x;
mod youtube;

pub use config::{Limits, SimConfig};
pub use dialect::Dialect;
pub use error::SimError;
pub use faults::Faults;
pub use limits::{DeclaredLimits, LimitsError};
pub use server::{Server, serve};
pub use world::WorldError;

/// The host in all data of a server that everybody is on, whatever the address: two runs on two ports give the same data.
pub(crate) const HOST: &str = "sim.example";
