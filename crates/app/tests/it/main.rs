//! The oracle: the real binary against the synthetic network, its ground truth and its ledger.

mod commands;
mod counterpart;
mod hostile;
mod kill;
mod limits;
mod servers;
mod support;
mod truth;
