//! Real exchanges with raw TCP servers on loopback: what they send is written out byte by byte, so
//! that servers that are wrong are as easy to make as servers that are right.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod addresses;
mod bodies;
mod exchange;
mod hostile;
mod limits;
mod server;
