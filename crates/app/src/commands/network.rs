//! `kittiwake network`: look at definitions.

use crate::cli::NetworkCommand;
use crate::console;
use crate::definitions::{self, SHIPPED};
use crate::failure::Failure;
use kittiwake_network::Network;
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(command: NetworkCommand) -> Result<ExitCode, Failure> {
    match command {
        NetworkCommand::Check { file } => {
            let network = definitions::read(&file)?;
            console::output(&format!(
                "{}: correct: {}",
                file.display(),
                describe(&network)
            ));
        }
        NetworkCommand::List { json } => list(json)?,
        NetworkCommand::Robots { name, json } => robots(&definitions::find(&name)?, json),
        NetworkCommand::Show { name } => {
            let (_, text) = SHIPPED
                .iter()
                .find(|(shipped, _)| *shipped == name)
                .ok_or_else(|| {
                    let known: Vec<_> = SHIPPED.iter().map(|(shipped, _)| *shipped).collect();
                    Failure::usage(format!(
                        "no shipped network {name:?}; shipped are {}",
                        known.join(", ")
                    ))
                })?;
            console::output(text.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<(), Failure> {
    for (name, _) in SHIPPED {
        let network = definitions::find(name)?;
        if json {
            let robots: Vec<_> = network.robots().iter().map(|robot| &robot.name).collect();
            let queries: Vec<_> = network.queries().map(|query| &query.name).collect();
            let line = json!({
                "name": network.name(),
                "title": network.title(),
                "verified_on": network.verified_on().to_string(),
                "digest": network.digest(),
                "robots": robots,
                "queries": queries,
            });
            console::output(&line.to_string());
        } else {
            console::output(&format!("{name:<12} {}", describe(&network)));
        }
    }
    Ok(())
}

fn robots(network: &Network, json: bool) {
    for robot in network.robots() {
        if json {
            let steps: Vec<_> = robot.steps.iter().map(|step| &step.query).collect();
            let line = json!({
                "name": robot.name,
                "title": robot.title,
                "description": robot.description,
                "subject": robot.kind,
                "queries": steps,
                "needs": robot.needs,
                "only_when_named": robot.is_optional,
                "revisit_after_seconds": robot.revisit_after_us.map(|rest_us| rest_us / 1_000_000),
            });
            console::output(&line.to_string());
            continue;
        }
        let named = if robot.is_optional {
            " (only when named)"
        } else {
            ""
        };
        console::output(&format!(
            "{:<12} {:<10} {}{named}",
            robot.name, robot.kind, robot.description
        ));
    }
}

fn describe(network: &Network) -> String {
    let robots: Vec<_> = network.robots().iter().map(|robot| &*robot.name).collect();
    format!(
        "{}; {} queries, {} budgets; robots: {}; verified on {}",
        network.title(),
        network.queries().count(),
        network.budgets().len(),
        robots.join(", "),
        network.verified_on(),
    )
}
