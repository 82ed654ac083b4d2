//! What every definition that is shipped has beside its rules: where its facts come from, samples,
//! and a page that people read.

use crate::samples::Samples;
use crate::support::{root, shipped};
use kittiwake_network::{Network, Step};
use std::collections::BTreeSet;

/// Queries of robots without a sample, of one network.
const UNSAMPLED_MAX: usize = 3;

fn text_of(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every query that a robot asks, or that finds the robot's subjects.
fn asked_by_robots(network: &Network) -> BTreeSet<&str> {
    let mut asked = BTreeSet::new();
    for robot in network.robots() {
        let steps = robot.steps.iter().flat_map(Step::queries);
        asked.extend(steps.map(|name| &**name));
        asked.extend(
            network
                .resolve_queries(&robot.kind)
                .map(|query| &*query.name),
        );
    }
    asked
}

#[test]
fn a_definition_is_called_as_its_file() {
    let names: BTreeSet<String> = shipped().iter().map(|it| it.name().to_string()).collect();
    let files = std::fs::read_dir(root().join("networks")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let stems: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, stems);
}

#[test]
fn every_definition_says_how_far_it_is_proved_and_what_access_needs() {
    for network in shipped() {
        let name = network.name();
        assert!(network.proved().is_some(), "{name} has no `proved`");
        let told = [("proof", network.proof()), ("access", network.access())];
        for (key, sentence) in told {
            let is_told = sentence.is_some_and(|it| !it.trim().is_empty() && !it.contains('\n'));
            assert!(is_told, "{name} has no `{key}` of one line");
        }
    }
}

#[test]
fn every_fact_of_a_definition_has_a_source() {
    for network in shipped() {
        let name = network.name();
        assert!(!network.sources().is_empty(), "{name} has no `sources`");
        assert!(
            !network.description().is_empty(),
            "{name} has no `description`"
        );
        let definition: toml::Table = network.text().parse().unwrap();
        for section in ["queries", "budgets"] {
            let entries = definition.get(section).and_then(toml::Value::as_table);
            for (entry, rules) in entries.into_iter().flatten() {
                let source = rules.get("source").and_then(toml::Value::as_str);
                let is_told = source.is_some_and(|source| !source.trim().is_empty());
                assert!(is_told, "{name}: {section}.{entry} has no `source`");
            }
        }
    }
}

#[test]
fn every_query_that_a_robot_asks_has_a_sample() {
    for network in shipped() {
        let name = network.name();
        let samples = Samples::of(name);
        let readme = text_of(&format!("networks/samples/{name}/README.md"));
        assert!(
            readme.contains("come from"),
            "{name}: the README.md of its samples does not say where they come from"
        );
        let shown = samples.queries();
        let unsampled = &samples.common.unsampled;
        assert!(
            unsampled.len() <= UNSAMPLED_MAX,
            "{name}: too many excuses: {unsampled:?}"
        );
        for query in asked_by_robots(&network) {
            let is_excused = unsampled.get(query).is_some_and(|it| !it.trim().is_empty());
            assert_ne!(
                shown.contains(query),
                is_excused,
                "{name}: the query {query} has a sample, or a reason in `unsampled`, and not both"
            );
        }
        for query in unsampled.keys() {
            assert!(
                network.query(query).is_some(),
                "{name}: there is no query {query}"
            );
        }
    }
}

#[test]
fn every_network_has_a_page_that_names_its_robots() {
    let index = text_of("docs/networks/README.md");
    assert!(text_of("README.md").contains("(docs/networks/README.md)"));
    for network in shipped() {
        let name = network.name();
        let page = text_of(&format!("docs/networks/{name}.md"));
        let proved = network.proved().unwrap().word();
        let row = index
            .lines()
            .find(|line| line.contains(&format!("]({name}.md)")));
        let row = row.unwrap_or_else(|| panic!("docs/networks/README.md does not link {name}.md"));
        assert!(
            row.contains(proved),
            "docs/networks/README.md does not say that {name} is proved by: {proved}"
        );
        for robot in network.robots() {
            assert!(
                page.contains(&format!("`{}`", robot.name)),
                "docs/networks/{name}.md does not name the robot {}",
                robot.name
            );
        }
    }
}
