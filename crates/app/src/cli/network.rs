//! The arguments of `kittiwake network`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Check a definition and say what is wrong with it, with line and column.
    Check(Box<CheckArguments>),
    /// List the shipped networks: how far each is proved, and what access needs.
    #[command(after_help = "Example:\n  kittiwake network list --json")]
    List {
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a definition to begin with: it is correct, and its comments explain every part.
    #[command(after_help = "\
Examples:
  kittiwake network new gulls
  kittiwake network new gulls -o networks/gulls.toml

docs/definition-format.md explains every key, docs/tutorial-network.md writes a definition step by step.")]
    New {
        /// The network's name: lower-case letters, digits, _ and -.
        #[arg(value_name = "NAME")]
        name: String,
        /// The file to make [default: NAME.toml]; one that is there is left alone.
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// List a network's robots: what each visits, and whether it runs unless it is named.
    #[command(after_help = "Example:\n  kittiwake network robots mastodon")]
    Robots {
        /// A shipped network or the path of a definition.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a network's definition, to read it or to start one of your own.
    #[command(after_help = "Example:\n  kittiwake network show mastodon > my-network.toml")]
    Show {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake network check my-network.toml
  kittiwake network check my-network.toml --against https://api.example.org --seed @alice \\
                          --contact me@example.org

With --against, every query is asked once, and what does not fit is reported: outcomes, values that
cannot be read, parts of answers that no rule reads, further pages and limits that are not where the
definition looks. Calls count like those of a crawl; nothing is stored. Exit codes: 0 everything that
was asked fits, 1 something does not, 2 usage.")]
pub(crate) struct CheckArguments {
    /// The definition; with --against also the name of a shipped one.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A server to ask, once per query; no other is asked.
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,

    /// Whom or what to ask about first, as in a crawl; again for each further one. What is found is
    /// asked about as well.
    #[arg(long = "seed", value_name = "SEED", requires = "against")]
    pub seeds: Vec<String>,

    /// The credential to use, by its name in the vault or in KITTIWAKE_<NETWORK>_TOKENS.
    #[arg(
        long = "as",
        value_name = "NAME",
        requires = "against",
        conflicts_with = "anonymous"
    )]
    pub credential: Option<String>,

    /// Send no credential, even if there is one.
    #[arg(long, requires = "against")]
    pub anonymous: bool,

    /// An address or a page by which the server's owner can reach you; required unless it is on
    /// loopback.
    #[arg(long, value_name = "CONTACT", requires = "against")]
    pub contact: Option<String>,

    /// Print the report as JSON (keys: docs/definition-format.md).
    #[arg(long, requires = "against")]
    pub json: bool,
}
