//! The oracle: the real binary against the synthetic network, its ground truth and its ledger.
#![expect(clippy::print_stdout, reason = "tests print their seeds and figures")]

mod authority;
mod batches;
mod changes;
mod commands;
mod control;
mod copies;
mod counterpart;
mod doctor;
mod export;
mod faults;
mod help;
mod hostile;
mod kill;
mod limit_status;
mod limits;
mod login;
mod newcomer;
mod oracle;
mod pds;
mod plan;
mod pools;
mod postgres;
mod revisits;
mod servers;
mod settings;
mod simulate;
mod support;
mod table1;
mod truth;
mod tutorial;
mod vault;
mod walks;
