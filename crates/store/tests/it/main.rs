//! The tests of the store, one binary.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests too"
)]

mod browse;
mod control;
mod copy;
mod disk_full;
mod documentation;
mod export;
mod files;
mod import;
mod kill;
mod ledger;
mod merge;
mod older;
mod postgres;
mod round_trip;
mod sqlite;
