//! The program `kittiwake`.
//!
//! Knows: the command line, the environment, settings, the terminal and exit codes. The only crate
//! that reads the environment or prints.
//! Does not know: how any of the work is done; it hands plain settings to the engine.

mod cli;
mod commands;
mod console;
mod crash;
mod credentials;
mod definitions;
mod duration;
mod environment;
mod exchange;
mod failure;
mod freshness;
mod history;
mod keeper;
mod location;
mod login;
mod machine;
mod methods;
mod money;
mod outlook;
mod place;
mod policies;
mod progress;
mod reach;
mod robots;
mod serving;
mod settings;
mod showcase;
mod since;
mod spreadsheet;
mod standing;
mod summary;
mod vault;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match cli::parse(&environment::arguments()) {
        Ok(arguments) => arguments,
        Err(cli::Refused::Usage(error)) => return console::usage(&error),
        Err(cli::Refused::Settings(failure)) => return failed(&failure),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(commands::run(arguments));
            // Whatever still runs after the last commit has nothing left to save.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(failure::Failure::other(format!("cannot start: {error}"))),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &failure::Failure) -> ExitCode {
    console::error(&failure.message);
    ExitCode::from(failure.code)
}
