//! The tests of the store, one binary.

mod disk_full;
mod documentation;
mod files;
mod ledger;
mod sqlite;
