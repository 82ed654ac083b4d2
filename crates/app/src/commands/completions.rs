//! `kittiwake completions`: scripts for shells, from the same definitions as `--help`.

use crate::cli::{self, CompletionsArguments};
use crate::console;
use crate::failure::Failure;
use std::process::ExitCode;

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut cli::command(),
        "kittiwake",
        &mut script,
    );
    let script = String::from_utf8(script)
        .map_err(|_| Failure::other("the completion script is no text; this is a fault of ours"))?;
    console::output(script.trim_end());
    Ok(ExitCode::SUCCESS)
}
