//! The limits of the paper's Table 1, as the network keeps them and as a crawler knows them.

use toml::{Table, Value};

/// For the synthetic network.
pub(crate) const LIMITS: &str = include_str!("limits-table1.toml");

/// What differs from Mastodon's definition.
const CHANGES: &str = include_str!("network-table1.toml");
const MASTODON: &str = include_str!("../../../../networks/mastodon.toml");

/// The definition to crawl with.
pub(crate) fn definition() -> String {
    let mut definition: Table = MASTODON.parse().unwrap();
    // Mastodon's own limits do not hold there.
    definition.remove("budgets");
    merge(&mut definition, CHANGES.parse().unwrap());
    toml::to_string(&definition).unwrap()
}

fn merge(into: &mut Table, changes: Table) {
    for (key, change) in changes {
        match (into.get_mut(&key), change) {
            (Some(Value::Table(below)), Value::Table(changes)) => merge(below, changes),
            (_, change) => drop(into.insert(key, change)),
        }
    }
}
