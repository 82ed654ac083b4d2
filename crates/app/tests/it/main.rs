//! The oracle: the real binary against the synthetic network, its ground truth and its ledger.

mod commands;
mod hostile;
mod kill;
mod limits;
mod support;
mod truth;
