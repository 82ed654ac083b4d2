//! Crawls of the synthetic network in the dialects of other networks, with the shipped definitions.
//!
//! The dialects are written without a look at the definitions, so that a crawl that equals the ground
//! truth says something about both.

mod weibo;
