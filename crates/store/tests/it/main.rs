//! The tests of the store, one binary.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod control;
mod disk_full;
mod documentation;
mod files;
mod kill;
mod ledger;
mod older;
mod sqlite;
