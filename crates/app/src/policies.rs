//! How robots decide whom to visit again, and how what they find is weighed.

use crate::failure::Failure;
use kittiwake_engine::Guide;
use kittiwake_frontier::Policy;
use kittiwake_frontier::policy::{NAMES, PolicySettings, by_name};
use kittiwake_model::Name;
use kittiwake_network::{Network, Robot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A walk goes on until it meets what is known: no answer is so full that posts are lost.
const PAGE: usize = 100_000;

/// What is followed where nothing else is said, by robots that are told times and by the others.
const USUAL: &str = "adaptive";
const WITHOUT_TIMES: &str = "changes";

/// What an entry of a list of people is worth, against a post: there may be thousands on a page.
const ENTRY_WORTH: f64 = 0.1;

/// How each robot goes about it. What was said for a robot holds; what was said for all holds for those that
/// collect posts. The others go by changes, unless all are told to do otherwise: then they take turns.
pub(crate) fn choose(
    network: &Network,
    robots: &[Name],
    said: &[String],
    worths: &[String],
) -> Result<BTreeMap<Name, Guide>, Failure> {
    let mut guides: BTreeMap<Name, Guide> = BTreeMap::new();
    let known = |name: &Name| network.robot(name).map(|robot| (name.clone(), robot));
    for (name, robot) in robots.iter().filter_map(known) {
        let policy = usual(network, robot, said)?;
        let worth = usual_worth(network, robot);
        let guide = policy.map(|policy| Guide { policy, worth });
        guides.insert(name, guide.unwrap_or_default());
    }
    for (robot, name) in named("--policy", robots, said)? {
        let guide = guides.entry(robot).or_default();
        guide.policy = policy(name)?;
    }
    for (robot, number) in named("--worth", robots, worths)? {
        let worth: Option<f64> = number.trim().parse().ok();
        let worth = worth.filter(|worth| worth.is_finite() && *worth > 0.0);
        let Some(worth) = worth else {
            return Err(Failure::usage(format!(
                "--worth {robot}={number}: what is found is worth a number above 0, where a post is worth 1"
            )));
        };
        guides.entry(robot).or_default().worth = worth;
    }
    Ok(guides)
}

/// What a robot follows of which nothing is said.
fn usual(
    network: &Network,
    robot: &Robot,
    said: &[String],
) -> Result<Option<Arc<dyn Policy>>, Failure> {
    let for_all = said.iter().rfind(|words| !words.contains('='));
    let name = for_all.map_or(USUAL, |name| name.trim());
    let chosen = policy(name)?;
    if network.is_told_times(robot) {
        return Ok(Some(chosen));
    }
    if name == USUAL {
        return policy(WITHOUT_TIMES).map(Some);
    }
    Ok(None)
}

/// Posts, comments and descriptions are worth 1; entries of lists less.
fn usual_worth(network: &Network, robot: &Robot) -> f64 {
    let is_whole = network.is_told_times(robot) || network.described_by(robot).is_some();
    if is_whole { 1.0 } else { ENTRY_WORTH }
}

/// What was said for single robots, each of which has to run.
fn named<'a>(
    option: &str,
    robots: &[Name],
    said: &'a [String],
) -> Result<Vec<(Name, &'a str)>, Failure> {
    let mut chosen = Vec::new();
    for words in said {
        let Some((robot, value)) = words.split_once('=') else {
            continue;
        };
        let robot = robot.trim();
        let Some(name) = robots.iter().find(|known| &***known == robot) else {
            let known: Vec<&str> = robots.iter().map(|name| &**name).collect();
            return Err(Failure::usage(format!(
                "{option} {words}: the robot {robot:?} is not among those that run; these are {}",
                known.join(", ")
            )));
        };
        chosen.push((name.clone(), value));
    }
    Ok(chosen)
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
