//! Crawls of the synthetic network in the dialects of other networks, with the shipped definitions.
//!
//! The dialects are written by hand and not from the definitions, so that a crawl that equals the ground
//! truth says something about both; how far that holds, each dialect's `mod.rs` tells.

mod weibo;
