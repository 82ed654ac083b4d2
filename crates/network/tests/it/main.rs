//! Tests of the definitions that are shipped, of how definitions are checked, and of what servers
//! may send.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says what it checked"
)]

mod auth;
mod decode;
mod documentation;
mod example;
mod hostile;
mod limit_status;
mod mastodon;
mod outlook;
mod paging;
mod problems;
mod recordings;
mod samples;
mod seeds;
mod signs;
mod support;
