//! `kittiwake serve`, and `--serve` of others.

use clap::{Args, ValueEnum, ValueHint};
use kittiwake_store::Location;
use std::net::SocketAddr;
use url::Url;

/// Where the dashboard is if nobody says otherwise.
const LISTEN: &str = "127.0.0.1:7171";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake serve alice.db
  kittiwake serve postgres://crawler@db.example/crawls --listen 127.0.0.1:8080
  kittiwake serve alice.db --listen 0.0.0.0:7171 --public-url https://crawl.example

On this machine alone no password is needed. On any other address there must be one (kittiwake auth
password), and a proxy that speaks TLS belongs in front, at the address that --public-url names:
docs/api.md shows one. It serves until Ctrl-C.")]
pub(crate) struct ServeArguments {
    /// The crawl's file, the URL of its database, or vault:NAME.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: Location,

    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    pub listen: SocketAddr,

    /// Where the crawl keeps its grants, as it was told [default: this user's budgets.db].
    // What is set elsewhere becomes the default, and may hold a password.
    #[arg(long, value_name = "URL", value_hint = ValueHint::AnyPath, hide_default_value = true)]
    pub budgets: Option<Location>,

    #[command(flatten)]
    pub how: HowArguments,
}

/// `--serve` beside other work.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServingArguments {
    /// Show the crawl in the browser while it runs and afterwards, until Ctrl-C [address:
    /// 127.0.0.1:7171].
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = LISTEN,
        help_heading = "Dashboard"
    )]
    pub serve: Option<SocketAddr>,

    #[command(flatten)]
    pub how: HowArguments,
}

impl ServingArguments {
    pub(crate) fn at(&self, listen: SocketAddr) -> How {
        self.how.at(listen)
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HowArguments {
    /// Where a proxy that speaks TLS shows the dashboard to others: https://crawl.example.
    #[arg(long, value_name = "URL", help_heading = "Dashboard")]
    pub public_url: Option<Url>,

    /// Write a line to standard error for every request of the dashboard or the API.
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Dashboard")]
    pub log: Option<LogForm>,
}

impl HowArguments {
    pub(crate) fn at(&self, listen: SocketAddr) -> How {
        How {
            listen,
            public_url: self.public_url.clone(),
            log: self.log,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    Json,
}

/// How a crawl is to be shown.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub listen: SocketAddr,
    pub public_url: Option<Url>,
    pub log: Option<LogForm>,
}
