//! `kittiwake man`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake man crawl | man -l -
  kittiwake man --output ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// The command to print the page of; kittiwake itself by default.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,

    /// Write the pages of all commands into this folder instead, made if it is missing.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}
