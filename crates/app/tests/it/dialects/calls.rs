//! How many calls a crawl makes, against the fewest that pages and batches of an API allow.

use super::Scene;
use std::collections::BTreeMap;

/// What has to be asked with one query.
#[derive(Debug)]
pub(crate) struct Least {
    /// The query's name in the ledger.
    pub(crate) query: &'static str,
    /// What is asked for, in the table.
    pub(crate) what: &'static str,
    /// How many of them there are.
    pub(crate) things: u64,
    /// In how many calls they fit.
    pub(crate) calls: u64,
}

/// Prints a table of calls per thousand, ours and the fewest; none may be more than 5 % above it.
pub(crate) fn table(scene: &Scene, least: &[Least]) {
    let mut made: BTreeMap<String, u64> = BTreeMap::new();
    for call in scene.calls() {
        let query = call["query"].as_str().unwrap_or_default().to_owned();
        *made.entry(query).or_default() += 1;
    }
    println!("| query | asked for | calls | fewest | calls per 1 000 | fewest per 1 000 |");
    println!("|---|---|---|---|---|---|");
    let mut above = Vec::new();
    for line in least {
        let calls = made.get(line.query).copied().unwrap_or(0);
        let per_thousand = |calls: u64| calls as f64 * 1_000.0 / line.things as f64;
        println!(
            "| `{}` | {} {} | {calls} | {} | {:.1} | {:.1} |",
            line.query,
            line.things,
            line.what,
            line.calls,
            per_thousand(calls),
            per_thousand(line.calls),
        );
        assert!(calls >= line.calls, "{line:?} in {calls} calls");
        if calls * 100 > line.calls * 105 {
            above.push(format!("{line:?} in {calls} calls"));
        }
    }
    assert!(above.is_empty(), "more than 5 % above: {above:?}");
}
