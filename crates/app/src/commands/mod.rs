//! One file per command.

mod completions;
mod config;
mod control;
mod copy;
mod crawl;
mod demo;
mod doctor;
mod export;
mod import;
mod man;
mod merge;
mod network;
mod report;
mod sim;
mod simulate;
mod status;

use crate::cli::{Arguments, Command, SimCommand};
use crate::failure::Failure;
use kittiwake_model::ControlCommand;
use std::process::ExitCode;

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Crawl(arguments) => crawl::run(*arguments).await,
        Command::Status(arguments) => status::run(&arguments).await,
        Command::Pause(arguments) => control::run(&arguments, ControlCommand::Pause).await,
        Command::Resume(arguments) => control::run(&arguments, ControlCommand::Resume).await,
        Command::Stop(arguments) => control::run(&arguments, ControlCommand::Stop).await,
        Command::Report(arguments) => report::run(&arguments).await,
        Command::Export(arguments) => export::run(&arguments).await,
        Command::Import(arguments) => import::run(&arguments).await,
        Command::Copy(arguments) => copy::run(&arguments).await,
        Command::Merge(arguments) => merge::run(&arguments).await,
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
