//! One file per command.

mod auth;
mod completions;
mod config;
mod control;
mod crawl;
mod demo;
mod doctor;
mod export;
mod import;
mod login;
mod man;
mod network;
mod report;
mod sim;
mod simulate;
mod status;

use crate::cli::{Arguments, Command, SimCommand, VaultArguments};
use crate::failure::Failure;
use crate::location;
use kittiwake_model::ControlCommand;
use std::process::ExitCode;

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { mut command, vault } = arguments;
    find_place(&mut command, &vault)?;
    match command {
        Command::Crawl(arguments) => crawl::run(*arguments, &vault).await,
        Command::Status(arguments) => status::run(&arguments).await,
        Command::Pause(arguments) => control::run(&arguments, ControlCommand::Pause).await,
        Command::Resume(arguments) => control::run(&arguments, ControlCommand::Resume).await,
        Command::Stop(arguments) => control::run(&arguments, ControlCommand::Stop).await,
        Command::Report(arguments) => report::run(&arguments).await,
        Command::Export(arguments) => export::run(&arguments).await,
        Command::Import(arguments) => import::run(&arguments).await,
        Command::Login(arguments) => login::run(&arguments, &vault).await,
        Command::Auth(command) => auth::run(command, &vault).await,
        Command::Network(command) => network::run(command),
        Command::Sim(SimCommand::Serve(arguments)) => sim::run(&arguments).await,
        Command::Simulate(arguments) => simulate::run(&arguments).await,
        Command::Demo(arguments) => demo::run(&arguments).await,
        Command::Config(command) => config::run(&command),
        Command::Doctor(arguments) => Ok(doctor::run(&arguments)),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Looks up the place of a crawl, where a command has one.
fn find_place(command: &mut Command, vault: &VaultArguments) -> Result<(), Failure> {
    let place = match command {
        Command::Crawl(arguments) => &mut arguments.into,
        Command::Status(arguments) => &mut arguments.file,
        Command::Pause(arguments) | Command::Resume(arguments) | Command::Stop(arguments) => {
            &mut arguments.file
        }
        Command::Report(arguments) => &mut arguments.file,
        Command::Export(arguments) => &mut arguments.file,
        Command::Import(arguments) => &mut arguments.into,
        _ => return Ok(()),
    };
    location::resolve(place, vault)
}
