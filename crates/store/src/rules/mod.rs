//! What a store does, whatever database it keeps things in: who is one and the same, how depths are
//! handed on, what a conversation is, when a relation has vanished, how rows go out and come in.
//!
//! Knows: SQL that every back end accepts, and nothing of any database behind it
//! ([`crate::database`]).

mod apply;
mod brings;
pub(crate) mod browse;
mod conversations;
mod depth;
pub(crate) mod detail;
pub(crate) mod expected;
pub(crate) mod export;
mod extent;
pub(crate) mod familiar;
mod filing;
mod found;
mod identity;
mod import;
pub(crate) mod join;
pub(crate) mod ledger;
pub(crate) mod ledger_thread;
pub(crate) mod links;
mod meet;
mod merge_keys;
mod names;
mod objects;
pub(crate) mod outlook;
pub(crate) mod read;
mod relax;
mod reunite;
pub(crate) mod service;
mod standing;
pub(crate) mod statements;
mod steps;
mod sweeps;
mod times;
pub(crate) mod views;
mod work;
pub(crate) mod writer;
mod written;
