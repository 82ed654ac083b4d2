//! How robots decide whom to visit again.

use crate::failure::Failure;
use kittiwake_frontier::Policy;
use kittiwake_frontier::policy::{NAMES, PolicySettings, by_name};
use kittiwake_model::Name;
use kittiwake_network::Network;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A walk goes on until it meets what is known: no answer is so full that posts are lost.
const PAGE: usize = 100_000;

/// The policy of every robot that ranks whom it visits: what was said for it or, of those that visit
/// people for what they write, what was said for all. The others take turns: they are told no times to
/// learn from.
pub(crate) fn choose(
    network: &Network,
    robots: &[Name],
    said: &[String],
) -> Result<BTreeMap<Name, Arc<dyn Policy>>, Failure> {
    let mut policies: BTreeMap<Name, Arc<dyn Policy>> = BTreeMap::new();
    for words in said.iter().filter(|words| !words.contains('=')) {
        let policy = policy(words)?;
        for name in robots {
            let robot = network.robot(name);
            if robot.is_some_and(|robot| network.follows_writers(robot)) {
                policies.insert(name.clone(), Arc::clone(&policy));
            }
        }
    }
    for words in said {
        let Some((robot, name)) = words.split_once('=') else {
            continue;
        };
        let robot = robot.trim();
        if !robots.iter().any(|known| &**known == robot) {
            let known: Vec<&str> = robots.iter().map(|name| &**name).collect();
            return Err(Failure::usage(format!(
                "--policy {words}: the robot {robot:?} is not among those that run; these are {}",
                known.join(", ")
            )));
        }
        policies.insert(robot.into(), policy(name)?);
    }
    Ok(policies)
}

/// What the policies of a crawl are made from.
pub(crate) fn settings() -> PolicySettings {
    PolicySettings {
        page: PAGE,
        ..PolicySettings::default()
    }
}

fn policy(name: &str) -> Result<Arc<dyn Policy>, Failure> {
    let policy = by_name(name.trim(), &settings()).map(Arc::from);
    policy.ok_or_else(|| {
        Failure::usage(format!(
            "no policy {name:?}; there are {}",
            NAMES.join(", ")
        ))
    })
}
