//! Tests of the definitions that are shipped, of how definitions are checked, and of what servers
//! may send.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says what it checked"
)]

mod addresses;
mod around;
mod auth;
mod believe;
mod car;
mod decode;
mod documentation;
mod example;
mod fit;
mod forums;
mod hostile;
mod limit_status;
mod lists;
mod mastodon;
mod outlook;
mod paging;
mod problems;
mod recorded;
mod recorded_others;
mod recordings;
mod repository;
mod samples;
mod seeds;
mod shipped;
mod signs;
mod stubs;
mod support;
mod ways;
mod webpages;
