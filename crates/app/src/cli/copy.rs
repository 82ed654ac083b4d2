//! The arguments of `copy` and `merge`.

use clap::{Args, ValueHint};
use kittiwake_store::Location;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake copy alice.db backup.db
  kittiwake copy alice.db postgres://me@db.example.org/alice
  kittiwake copy postgres://me@db.example.org/alice alice.db --json

Also while a crawl is writing, a copy shows one moment, and the crawl can go on from it. Every table is
read back and compared. A copy that was interrupted goes on when the same command is run again; until
it is complete, nobody can open it.")]
pub(crate) struct CopyArguments {
    /// The crawl's file, or the URL of its database.
    #[arg(value_name = "FROM", value_hint = ValueHint::AnyPath)]
    pub from: Location,

    /// A file or a database in which there is no crawl yet.
    #[arg(value_name = "TO", value_hint = ValueHint::AnyPath)]
    pub to: Location,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,

    /// Print what was copied as JSON: rows and a checksum for each table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake merge monday.db tuesday.db --into week.db
  kittiwake merge one.db two.db three.db --into postgres://me@db.example.org/all

The crawls stay as they are. What they found is joined by what was seen when, one row for each user and
post; what one of them has visited counts as visited, and a crawl into the result goes on from there.
Where they were crawled at different hosts, half-walked lists of all but the first begin anew.")]
pub(crate) struct MergeArguments {
    /// The files of the crawls, or the URLs of their databases: two or more.
    #[arg(value_name = "CRAWLS", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub crawls: Vec<Location>,

    /// A file or a database in which there is no crawl yet.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub into: Location,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,

    /// Print what there is now as JSON: the rows of each table.
    #[arg(long)]
    pub json: bool,
}
