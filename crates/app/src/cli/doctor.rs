//! `kittiwake doctor`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake doctor
  kittiwake doctor alice.db --json
  kittiwake doctor seeds.txt

Every check prints ok, warning or problem, what was found and what to do. Nothing is changed, and
no call is made. Exit codes: 0 without problems, 1 with.")]
pub(crate) struct DoctorArguments {
    /// Crawl files, or lists of ids or seeds (.txt, .csv, .tsv), to look over as well.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}
