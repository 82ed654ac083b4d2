//! The synthetic network as its callers see it: over HTTP.
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

mod advance;
mod changes;
mod client;
mod declared;
mod dialects;
mod documentation;
mod facebook;
mod faults;
mod fediverse;
mod habits;
mod huge;
mod lies;
mod limits;
mod reading;
mod reddit;
mod search;
mod shapes;
mod tags;
mod truth;
mod weibo;
mod wire;
mod x;
mod youtube;
