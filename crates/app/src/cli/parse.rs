//! Reading the command line, over what settings say.

use super::Arguments;
use super::plan::EXAMPLES;
use crate::failure::Failure;
use crate::settings::{self, COMMANDS, Settings};
use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Why no command could be read.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Help or version was asked for, or an argument is wrong.
    Usage(clap::Error),
    /// A settings file or a variable is wrong.
    Settings(Failure),
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// The whole command line as it is defined: for reading, for help, for manuals and completions.
pub(crate) fn command() -> Command {
    // One alone would be moved to the end.
    let command = Arguments::command().mut_subcommands(|command| match command.get_name() {
        "plan" => command.after_help(EXAMPLES),
        _ => command,
    });
    settings::with_switches(command)
}

/// Reads the command line. Settings are looked at only for commands that have some, so that a
/// broken file is in nobody else's way.
pub(crate) fn parse(words: &[OsString]) -> Result<Arguments, Refused> {
    let mut matches = command().try_get_matches_from(words)?;
    let takes_settings = matches
        .subcommand_name()
        .is_some_and(|name| COMMANDS.contains(&name));
    if takes_settings {
        let settings = Settings::load().map_err(Refused::Settings)?;
        matches = settings
            .as_defaults(command())
            .try_get_matches_from(words)?;
    }
    Ok(Arguments::from_arg_matches(&matches)?)
}
