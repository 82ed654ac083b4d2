//! One file per command.

pub(crate) mod auth;
mod completions;
mod config;
mod control;
mod copy;
pub(crate) mod crawl;
mod demo;
mod doctor;
mod export;
mod import;
pub(crate) mod login;
mod man;
mod merge;
mod network;
mod plan;
mod report;
mod serve;
mod sim;
mod simulate;
mod status;

use crate::cli::{
    Arguments, Command, CrawlArguments, MergeArguments, ServeArguments, SimCommand,
    StatusArguments, VaultArguments,
};
use crate::failure::Failure;
use crate::location;
use kittiwake_model::ControlCommand;
use kittiwake_store::Location;
use std::process::ExitCode;

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { mut command, vault } = arguments;
    find_places(&mut command, &vault)?;
    match command {
        Command::Crawl(arguments) => Box::pin(crawl::run(*arguments, &vault)).await,
        Command::Plan(arguments) => Box::pin(plan::run(&arguments, &vault)).await,
        Command::Status(arguments) => status::run(&arguments).await,
        Command::Pause(arguments) => control::run(&arguments, ControlCommand::Pause).await,
        Command::Resume(arguments) => control::run(&arguments, ControlCommand::Resume).await,
        Command::Stop(arguments) => control::run(&arguments, ControlCommand::Stop).await,
        Command::Serve(arguments) => serve::run(&arguments, &vault).await,
        Command::Report(arguments) => report::run(&arguments).await,
        Command::Export(arguments) => export::run(&arguments).await,
        Command::Import(arguments) => import::run(&arguments).await,
        Command::Copy(arguments) => copy::run(&arguments).await,
        Command::Merge(arguments) => merge::run(&arguments).await,
        Command::Login(arguments) => login::run(&arguments, &vault).await,
        Command::Auth(command) => auth::run(command, &vault).await,
        Command::Network(command) => Box::pin(network::run(command, &vault)).await,
        Command::Sim(SimCommand::Serve(arguments)) => sim::run(&arguments).await,
        Command::Simulate(arguments) => simulate::run(&arguments).await,
        Command::Demo(arguments) => Box::pin(demo::run(&arguments, &vault)).await,
        Command::Config(command) => config::run(&command),
        Command::Doctor(arguments) => Ok(doctor::run(&arguments)),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Looks up the places that a command names: of crawls, and of the ledger.
fn find_places(command: &mut Command, vault: &VaultArguments) -> Result<(), Failure> {
    let places: Vec<&mut Location> = match command {
        Command::Crawl(arguments) => {
            let CrawlArguments { into, budgets, .. } = &mut arguments.crawl;
            std::iter::once(into).chain(budgets).collect()
        }
        Command::Plan(arguments) => {
            let CrawlArguments { into, budgets, .. } = &mut arguments.crawl;
            std::iter::once(into).chain(budgets).collect()
        }
        Command::Status(arguments) => {
            let StatusArguments { file, budgets, .. } = arguments;
            std::iter::once(file).chain(budgets).collect()
        }
        Command::Serve(arguments) => {
            let ServeArguments { file, budgets, .. } = arguments;
            std::iter::once(file).chain(budgets).collect()
        }
        Command::Pause(arguments) | Command::Resume(arguments) | Command::Stop(arguments) => {
            vec![&mut arguments.file]
        }
        Command::Report(arguments) => vec![&mut arguments.file],
        Command::Export(arguments) => vec![&mut arguments.file],
        Command::Import(arguments) => vec![&mut arguments.into],
        Command::Copy(arguments) => vec![&mut arguments.from, &mut arguments.to],
        Command::Merge(arguments) => {
            let MergeArguments { crawls, into, .. } = arguments;
            crawls.iter_mut().chain([into]).collect()
        }
        _ => Vec::new(),
    };
    places
        .into_iter()
        .try_for_each(|place| location::resolve(place, vault))
}
