//! The oracle: the real binary against the synthetic network, its ground truth and its ledger.
#![expect(clippy::print_stdout, reason = "tests print their seeds and figures")]

mod against;
mod atproto;
mod authority;
mod backfill;
mod batches;
mod bluesky;
mod browser;
mod changes;
mod commands;
mod control;
mod copies;
mod counterpart;
mod doctor;
mod export;
mod faults;
mod fediverse;
mod feeds;
mod github;
mod gulls;
mod hackernews;
mod help;
mod hostile;
mod hostile_bluesky;
mod hosts;
mod kill;
mod lemmy;
mod limit_status;
mod limits;
mod login;
mod networks;
mod newcomer;
mod oracle;
mod partition;
mod pds;
mod plan;
mod pools;
mod postgres;
mod revisits;
mod serve;
mod servers;
mod settings;
mod simulate;
mod skeleton;
mod spill;
mod steps;
mod strict;
mod support;
mod table1;
mod truth;
mod tutorial;
mod vault;
mod walks;

#[path = "../../../network/tests/it/repository.rs"]
mod repository;
