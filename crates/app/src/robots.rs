//! Which robots run.

use crate::failure::Failure;
use kittiwake_model::Name;
use kittiwake_network::{Network, Robot};

/// The word that stands for every robot, also those that have to be asked for.
const ALL: &str = "all";

/// The robots that are `named`, or the usual ones, without those that are switched off.
pub(crate) fn choose(
    network: &Network,
    named: &[String],
    without: &[String],
) -> Result<Vec<Name>, Failure> {
    for name in named.iter().chain(without) {
        let name = name.trim();
        if name != ALL && network.robot(name).is_none() {
            return Err(Failure::usage(format!(
                "no robot {name:?}; {} has {}",
                network.name(),
                names(network)
            )));
        }
    }
    let is_in =
        |list: &[String], robot: &Robot| list.iter().any(|name| name.trim() == &*robot.name);
    let wants_all = named.iter().any(|name| name.trim() == ALL);
    let is_chosen = |robot: &Robot| {
        let is_wanted =
            wants_all || is_in(named, robot) || (named.is_empty() && !robot.is_optional);
        is_wanted && !is_in(without, robot)
    };
    let mut chosen: Vec<&Robot> = network
        .robots()
        .iter()
        .filter(|robot| is_chosen(robot))
        .collect();
    // Switching a robot off takes those along that live on it, unless they were named.
    while let Some((robot, need)) = lacking(&chosen) {
        if is_in(named, robot) {
            return Err(Failure::usage(format!(
                "the robot {} needs {need}; add {need} to --robots, or leave {} out",
                robot.name, robot.name
            )));
        }
        let name = robot.name.clone();
        chosen.retain(|robot| robot.name != name);
    }
    if chosen.is_empty() {
        return Err(Failure::usage(format!(
            "no robot is left to run; {} has {}",
            network.name(),
            names(network)
        )));
    }
    Ok(chosen.iter().map(|robot| robot.name.clone()).collect())
}

/// The first robot that lives on one which is not there.
fn lacking<'n>(chosen: &[&'n Robot]) -> Option<(&'n Robot, &'n Name)> {
    chosen.iter().find_map(|robot| {
        let has = |need: &&Name| chosen.iter().any(|other| other.name == **need);
        robot
            .needs
            .iter()
            .find(|need| !has(need))
            .map(|need| (*robot, need))
    })
}

pub(crate) fn names(network: &Network) -> String {
    let names: Vec<String> = network
        .robots()
        .iter()
        .map(|robot| {
            if robot.is_optional {
                format!("{} (only when named)", robot.name)
            } else {
                robot.name.to_string()
            }
        })
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions;

    fn chosen(named: &str, without: &str) -> Result<String, String> {
        let network = definitions::find("mastodon").unwrap();
        let list =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        choose(&network, &list(named), &list(without))
            .map(|names| names.join(" "))
            .map_err(|failure| failure.message)
    }

    #[test]
    fn dear_robots_run_only_when_named() {
        assert!(!chosen("", "").unwrap().contains("likes"));
        assert!(chosen("all", "").unwrap().contains("likes"));
        assert_eq!(chosen("likes statuses", "").unwrap(), "statuses likes");
    }

    #[test]
    fn switching_off_what_others_live_on_switches_them_off_too() {
        let left = chosen("", "statuses").unwrap();
        assert!(
            left.contains("profiles") && !left.contains("comments"),
            "{left}"
        );
    }

    #[test]
    fn a_named_robot_without_what_it_needs_is_refused() {
        let message = chosen("comments", "").unwrap_err();
        assert!(message.contains("comments needs statuses"), "{message}");
        assert!(chosen("flying", "").unwrap_err().contains("relations"));
        assert!(chosen("tags", "tags").is_err());
    }
}
