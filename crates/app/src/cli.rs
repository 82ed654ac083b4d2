//! The command line.

mod completions;
mod config;
mod copy;
mod doctor;
mod export;
mod login;
mod man;
mod network;
mod parse;
mod partition;
mod plan;
mod serve;
mod simulate;

pub(crate) use completions::CompletionsArguments;
pub(crate) use config::ConfigCommand;
pub(crate) use copy::{CopyArguments, MergeArguments};
pub(crate) use doctor::DoctorArguments;
pub(crate) use export::{ExportArguments, ImportArguments, TableChoice};
pub(crate) use login::{AuthCommand, AuthTestArguments, LoginArguments, VaultArguments};
pub(crate) use man::ManArguments;
pub(crate) use network::{CheckArguments, NetworkCommand};
pub(crate) use parse::{Refused, command, parse};
pub(crate) use plan::PlanArguments;
pub(crate) use serve::{How, ServeArguments, ServingArguments};
pub(crate) use simulate::{ObjectiveChoice, SimulateArguments};

use crate::{duration, history, money};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use kittiwake_engine::{History, SpendCap};
use kittiwake_store::Location;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Collects users, relations and posts of social networks through their APIs.
///
/// Every network is a file, every declared limit is kept, and every crawl can be killed at any
/// moment and resumed by running the same command again.
#[derive(Debug, Parser)]
#[command(name = "kittiwake", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub vault: VaultArguments,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done or stopped as asked, 1 failed, 2 usage, 3 stopped before the end with state saved
(a cap, an exhausted quota, a host out of reach), 4 authentication, 130 interrupted with state saved.

Try it without keys or services: kittiwake demo";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Crawl a network into a file, or go on with a crawl.
    Crawl(Box<CrawlCommand>),
    /// Tell how many calls a crawl will make, how long it takes and what it costs.
    Plan(Box<PlanArguments>),
    /// Show what a crawl file holds and how far the crawl is.
    Status(StatusArguments),
    /// Show a crawl in the browser, and to programs by an HTTP API.
    Serve(ServeArguments),
    /// Let a running crawl, or one of its robots, send nothing more until it is resumed.
    Pause(ControlArguments),
    /// Let a paused crawl, or one of its robots, go on.
    Resume(ControlArguments),
    /// End a running crawl, or switch one of its robots off; everything is saved.
    Stop(ControlArguments),
    /// Print how the data of a crawl came about, as Markdown for a methods section.
    Report(ReportArguments),
    /// Write a crawl's tables as JSON lines or CSV.
    Export(Box<ExportArguments>),
    /// Read what export wrote into a crawl file.
    Import(ImportArguments),
    /// Copy a crawl to another file or database.
    Copy(CopyArguments),
    /// Join crawls of machines that worked apart.
    Merge(MergeArguments),
    /// Log in to a network and keep the credential in the vault.
    Login(LoginArguments),
    /// Look at the credentials in the vault, test and remove them.
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Look at network definitions, begin and check your own.
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Run the synthetic network.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Try visiting policies on a trace of posts, in virtual time.
    Simulate(Box<SimulateArguments>),
    /// Crawl the synthetic network for a few seconds and show what came of it.
    Demo(DemoArguments),
    /// Look at the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check the machine, the settings, the definitions and crawl files.
    Doctor(DoctorArguments),
    /// Print a script that completes commands and options in a shell.
    Completions(CompletionsArguments),
    /// Print the manual.
    Man(ManArguments),
}

/// A crawl, and whether it is shown.
#[derive(Debug, Args)]
pub(crate) struct CrawlCommand {
    #[command(flatten)]
    pub crawl: CrawlArguments,

    #[command(flatten)]
    pub serving: ServingArguments,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kittiwake crawl mastodon@mastodon.example alice --into alice.db --contact me@example.org
  kittiwake crawl mastodon@mastodon.example - --into all.db --depth 1 --until-idle < seeds.txt
  kittiwake crawl mastodon@mastodon.example '#birds' search:gulls --into birds.db --max-calls 200
  kittiwake crawl mastodon --host http://127.0.0.1:3000 id:42 --into test.db --limits off

The same command resumes. Seeds may be added and --depth may grow.
A credential comes from KITTIWAKE_<NETWORK>_TOKEN (KITTIWAKE_MASTODON_TOKEN) or, after kittiwake login,
from the vault. Several are used together: docs/credentials.md.
What you say every time can be set once: see kittiwake config show --help.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct CrawlArguments {
    /// A shipped network or the path of a definition, with the host to ask: mastodon@HOST.
    #[arg(value_name = "NETWORK[@HOST]")]
    pub network: String,

    /// Where to begin: handles, profile addresses or id:…; - reads them from standard input, one
    /// a line.
    #[arg(value_name = "SEEDS")]
    pub seeds: Vec<String>,

    /// The crawl's file, the URL of a PostgreSQL database (postgres://user@host/database) or
    /// vault:NAME for a URL in the vault; what is missing in it is made.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub into: Location,

    /// Visit subjects at most this many follow links away from a seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub depth: u32,

    /// The follow links that lead to new subjects.
    #[arg(long, value_enum, default_value_t = FollowChoice::Both)]
    pub follow: FollowChoice,

    /// The robots to run, separated by commas; by default all of the network's but those that are
    /// dear (kittiwake network robots NAME lists them); all stands for every one.
    #[arg(long, value_delimiter = ',', value_name = "ROBOTS")]
    pub robots: Vec<String>,

    /// Robots to switch off, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ROBOTS")]
    pub without: Vec<String>,

    /// How far back the first visit to a timeline goes: all, a number of posts, or since:DATE.
    #[arg(long, value_name = "HISTORY", default_value = "all", value_parser = history::parse)]
    pub history: History,

    /// Visit those, too, who ask not to be indexed; the reason is kept in the run's record.
    #[arg(long, value_name = "REASON")]
    pub include_opted_out: Option<String>,

    /// The address to ask, instead of https://HOST.
    #[arg(long, value_name = "URL")]
    pub host: Option<String>,

    /// Other hosts that may be asked about those who live there, separated by commas: names,
    /// *.example.org, any or none [default: none, unless the network needs others].
    #[arg(long, value_delimiter = ',', value_name = "HOSTS")]
    pub hosts: Vec<String>,

    /// Where a host that the definition names is asked, instead of its own address.
    #[arg(long, value_name = "NAME=URL")]
    pub at: Vec<String>,

    /// Whether declared limits are kept; off is taken only for a host on loopback.
    #[arg(long, value_enum, default_value_t = LimitsChoice::Keep)]
    pub limits: LimitsChoice,

    /// How what a window of a limit allows is spent.
    #[arg(long, value_enum, default_value_t = PaceChoice::Even)]
    pub pace: PaceChoice,

    /// The share of every allowance to leave unused [default: 10%, and 0% on loopback].
    #[arg(long, value_name = "SHARE", value_parser = duration::parse_share)]
    pub reserve: Option<f64>,

    /// Where grants are kept, so that machines that share it keep limits together: the URL of a
    /// PostgreSQL database [default: this user's budgets.db].
    // What is set elsewhere becomes the default, and may hold a password.
    #[arg(long, value_name = "URL", value_hint = ValueHint::AnyPath, hide_default_value = true)]
    pub budgets: Option<Location>,

    /// Send nothing after this time, for example 10m.
    #[arg(long = "max-time", alias = "for", value_name = "TIME", value_parser = duration::parse)]
    pub time: Option<Duration>,

    /// Send no more than this many calls.
    #[arg(long = "max-calls", alias = "calls", value_name = "N")]
    pub calls: Option<u64>,

    /// Spend no more than this, for example 20USD, on a network that has prices.
    #[arg(long = "max-spend", value_name = "AMOUNT", value_parser = money::parse)]
    pub spend: Option<SpendCap>,

    /// Stop when every subject has been visited, instead of visiting them again.
    #[arg(long)]
    pub until_idle: bool,

    /// Visit everybody once more, then stop; a round that was not completed is completed first.
    #[arg(long, conflicts_with = "until_idle")]
    pub again: bool,

    /// How calls are divided among those who are visited again: adaptive, round-robin, or another of
    /// those that simulate compares. ROBOT=NAME chooses for one robot; again for each. Robots that are
    /// told no times go by changes, unless another than adaptive is chosen for all.
    #[arg(
        long = "policy",
        value_name = "[ROBOT=]NAME",
        value_delimiter = ',',
        default_value = "adaptive"
    )]
    pub policies: Vec<String>,

    /// What one of the things that a robot finds is worth, against a post, where robots share a limit:
    /// relations=0.5. Posts, comments and descriptions are worth 1, entries of lists of people 0.1.
    #[arg(long = "worth", value_name = "ROBOT=NUMBER", value_delimiter = ',')]
    pub worths: Vec<String>,

    /// How many of those who are visited again are held in memory, by all robots together; of more it
    /// holds those who are next, and the others in FILE.index, which may be deleted at any time.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub in_memory: u32,

    /// How many calls may be in flight at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// An address or a page by which a host's owner can reach you; sent with every call and
    /// required for any host that is not loopback.
    #[arg(long, value_name = "CONTACT")]
    pub contact: Option<String>,

    /// The credential to use, by its name in the vault or in KITTIWAKE_<NETWORK>_TOKENS; again for
    /// each further one. NAME:ROBOT+ROBOT keeps it for these robots.
    #[arg(
        long = "as",
        value_name = "NAME[:ROBOTS]",
        conflicts_with = "anonymous"
    )]
    pub credentials: Vec<String>,

    /// Use several accounts or applications where the network's terms forbid it; the reason is kept
    /// in the run's record.
    #[arg(long, value_name = "REASON")]
    pub i_have_permission: Option<String>,

    /// Send no credential, even if there is one.
    #[arg(long)]
    pub anonymous: bool,

    /// Take world and limit time from a synthetic network, for example http://127.0.0.1:3000.
    #[arg(long, value_name = "URL")]
    pub clock_from: Option<String>,

    /// Keep every answer as it came, in the table raw.
    #[arg(long)]
    pub raw: bool,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,

    /// Print the summary as JSON (keys: docs/summary.md).
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FollowChoice {
    /// Those whom a subject follows.
    Following,
    /// Those who follow a subject.
    Followers,
    Both,
    None,
}

/// How what a window allows is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceChoice {
    /// Spread over the window; windows longer than an hour only in a crawl that goes on for ever.
    Even,
    /// As quickly as possible, then wait for the next window.
    Burst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitsChoice {
    Keep,
    Off,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kittiwake status alice.db\n  kittiwake status alice.db --watch"
)]
pub(crate) struct StatusArguments {
    /// The crawl's file, or the URL of its database.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: Location,

    /// Where the crawl keeps its grants, as it was told [default: this user's budgets.db].
    // What is set elsewhere becomes the default, and may hold a password.
    #[arg(long, value_name = "URL", value_hint = ValueHint::AnyPath, hide_default_value = true)]
    pub budgets: Option<Location>,

    /// Say why somebody is visited when they are: a handle, an address or an id.
    #[arg(long, value_name = "USER", conflicts_with = "watch")]
    pub why: Option<String>,

    /// Look again and again until Ctrl-C.
    #[arg(long)]
    pub watch: bool,

    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kittiwake report alice.db > methods.md")]
pub(crate) struct ReportArguments {
    /// The crawl's file, or the URL of its database.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: Location,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake pause alice.db --robot comments
  kittiwake resume alice.db
  kittiwake stop alice.db")]
pub(crate) struct ControlArguments {
    /// The crawl's file, or the URL of its database.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: Location,

    /// Only this robot.
    #[arg(long, value_name = "ROBOT")]
    pub robot: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Serve the synthetic network: a Mastodon API over a world computed from a seed.
    #[command(after_help = "\
Examples:
  kittiwake sim serve --listen 127.0.0.1:3000 --users 2000 --speed 0 --limits off
  kittiwake sim serve --listen 127.0.0.1:3000 --faults hostile --stall-ms 500
  kittiwake sim serve --listen 127.0.0.1:3000 --limits-file limits.toml --clock-skew -2.5
  kittiwake sim serve --listen 127.0.0.1:3000 --instances 12 --bad-instances 5
  kittiwake sim serve --listen 127.0.0.1:3000 --users 500 --speed 0 --habits 14

Limits in a file look like this, one [[bucket]] for each:
  [[bucket]]
  name = \"lookup\"
  scope = \"token\"        # ip, app, user, token, host
  queries = [\"lookup\"]   # all if left out
  kind = \"aligned\"       # from_first, sliding, daily, monthly, concurrency, points, percent
  limit = 180
  window_seconds = 900

Prints its address as one JSON line when it is ready. GET /_sim/ledger, /_sim/clock and
/_sim/truth/{users,user_relations,statuses,comments,tags,likes,reposters,user_tags} tell what happened
and what is true, /_sim/truth/trace who wrote when, as kittiwake simulate reads it;
/_sim/advance?seconds=86400 moves the world's time on by a day; /_sim/faults lists what went wrong on
purpose. docs/sim.md tells how to test a crawler with it.")]
    Serve(SimArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,

    /// Whose API the network has, with that network's limits, pages and words for errors.
    #[arg(long, value_enum, default_value_t = SimDialect::Mastodon)]
    pub dialect: SimDialect,

    /// How many users the world has.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    pub users: u64,

    /// The seed of the world: the same seed gives the same world.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// How quickly world time runs; 0 freezes it.
    #[arg(long, default_value_t = 1.0)]
    pub speed: f64,

    /// How quickly the limits' time runs [default: as the world, or 1 when it is frozen].
    #[arg(long)]
    pub limit_speed: Option<f64>,

    /// World time at the start.
    #[arg(long, default_value = "2026-06-01T12:00:00Z", value_name = "TIME")]
    pub at: String,

    #[arg(long, value_enum, default_value_t = SimLimits::Strict)]
    pub limits: SimLimits,

    /// Limits of your own in place of the real server's: TOML with a [[bucket]] for each. docs/sim.md
    /// lists the keys.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub limits_file: Option<PathBuf>,

    /// Seconds by which the clock that limits, their headers and `Date` follow is ahead of the one
    /// under /_sim/clock; may be negative.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub clock_skew: f64,

    /// Milliseconds that every answer takes at least.
    #[arg(long, default_value_t = 0)]
    pub latency_ms: u64,

    /// What goes wrong on purpose. Which call it meets depends on the seed and the call alone.
    #[arg(long, value_enum, default_value_t = SimFaults::None)]
    pub faults: SimFaults,

    /// Milliseconds for which a fault keeps a caller waiting; most callers give up sooner.
    #[arg(long, default_value_t = 30_000)]
    pub stall_ms: u64,

    /// How many instances people are spread over: a fediverse of servers of several kinds, called by
    /// their names i01.localhost, i02.localhost and so on, all at the one address.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=999))]
    pub instances: u16,

    /// How many of them are out of order or lie. Which ones depends on the seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bad_instances: u16,

    /// Let some users change their habits so many days after the day of --at, or before it if the
    /// number is negative: quiet ones wake, others fall silent, move to another time zone, or write all
    /// day on that one day.
    #[arg(
        long,
        value_name = "DAY",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-59..=3_650)
    )]
    pub habits: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimFaults {
    None,
    /// Now and then an error, a reset, a stall or half an answer.
    Mild,
    /// Faults of every kind, often: broken answers, shuffled and shifted pages, redirects to where
    /// nobody should go, and users, posts and relations that vanish while they are walked.
    Hostile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SimDialect {
    Mastodon,
    Bluesky,
    X,
    Weibo,
    Youtube,
    Reddit,
    Facebook,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimLimits {
    /// The real server's limits.
    Strict,
    Off,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kittiwake demo\n  kittiwake demo --serve")]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    pub serving: ServingArguments,

    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}
