//! `kittiwake network`: look at definitions, begin and check one's own.

mod against;
mod skeleton;

use crate::cli::{NetworkCommand, VaultArguments};
use crate::console;
use crate::definitions::{self, SHIPPED};
use crate::failure::Failure;
use kittiwake_network::{Network, Proved};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(crate) async fn run(
    command: NetworkCommand,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    match command {
        NetworkCommand::Check(arguments) => match &arguments.against {
            Some(address) => return against::run(&arguments, address, vault).await,
            None => check(&arguments.file)?,
        },
        NetworkCommand::New { name, output } => skeleton::run(&name, output)?,
        NetworkCommand::List { json } => list(json)?,
        NetworkCommand::Robots { name, json } => robots(&definitions::find(&name)?, json),
        NetworkCommand::Show { name } => {
            let text = definitions::shipped(&name).ok_or_else(|| {
                let known = definitions::shipped_names();
                Failure::usage(format!("no shipped network {name:?}; shipped are {known}"))
            })?;
            console::output(text.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(file: &Path) -> Result<(), Failure> {
    let network = definitions::read(file)?;
    console::output(&format!(
        "{}: correct: {}",
        file.display(),
        describe(&network)
    ));
    Ok(())
}

fn list(json: bool) -> Result<(), Failure> {
    for (place, (name, _)) in SHIPPED.iter().enumerate() {
        let network = definitions::find(name)?;
        if json {
            let robots: Vec<_> = network.robots().iter().map(|robot| &robot.name).collect();
            let queries: Vec<_> = network.queries().map(|query| &query.name).collect();
            let line = json!({
                "name": network.name(),
                "title": network.title(),
                "description": network.description(),
                "verified_on": network.verified_on(),
                "proved": network.proved().map(Proved::word),
                "proof": network.proof(),
                "access": network.access(),
                "digest": network.digest(),
                "robots": robots,
                "queries": queries,
            });
            console::output(&line.to_string());
        } else {
            let gap = if place == 0 { "" } else { "\n" };
            console::output(&format!("{gap}{}", introduce(&network)));
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

/// A network for people who choose one.
fn introduce(network: &Network) -> String {
    let mut text = format!("{}: {}", network.name(), network.title());
    if !network.description().is_empty() {
        text = format!("{text}. {}", network.description());
    }
    let proved = match (network.proved(), network.proof()) {
        (None, _) => "nothing is claimed".to_owned(),
        (Some(proved), None) => proved.word().to_owned(),
        (Some(proved), Some(proof)) => format!("{} ({proof})", proved.word()),
    };
    let robots: Vec<_> = network.robots().iter().map(|robot| &*robot.name).collect();
    format!(
        "{text}\n  proved    {proved}\n  access    {}\n  verified  on {}\n  robots    {}",
        network.access().unwrap_or("not said"),
        network.verified_on(),
        robots.join(", "),
    )
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
