//! `kittiwake completions`.

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake completions bash > ~/.local/share/bash-completion/completions/kittiwake
  kittiwake completions zsh > ~/.zfunc/_kittiwake
  kittiwake completions fish > ~/.config/fish/completions/kittiwake.fish

zsh needs the folder in fpath before compinit: fpath+=~/.zfunc")]
pub(crate) struct CompletionsArguments {
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}
