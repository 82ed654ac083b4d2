//! Tests of the definitions that are shipped, of how definitions are checked, and of what servers
//! may send.

mod documentation;
mod hostile;
mod mastodon;
mod problems;
mod recordings;
mod samples;
mod support;
