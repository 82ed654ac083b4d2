//! `kittiwake config`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting with its value and where it comes from, and the files and folders in use.
    Show(ShowArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake config show
  kittiwake config show --json

A flag wins over the environment (KITTIWAKE_<SETTING>), that over kittiwake.toml in the current
folder (project), that over config.toml in $XDG_CONFIG_HOME/kittiwake or ~/.config/kittiwake
(user). A settings file has one line for each setting:

  contact = \"you@example.org\"
  reserve = \"20%\"
  raw = true

Tokens do not belong there; of a token only the name of its variable is shown.")]
pub(crate) struct ShowArguments {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}
