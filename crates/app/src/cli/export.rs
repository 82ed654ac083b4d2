//! The arguments of `export` and `import`.

use crate::since;
use clap::{Args, ValueEnum, ValueHint};
use kittiwake_store::Location;
use kittiwake_store::export::{Compression, ExportFormat, ExportTable};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake export alice.db > alice.jsonl
  kittiwake export alice.db --format csv --table users | head
  kittiwake export alice.db --format csv -o tables/
  kittiwake export alice.db --since 7d -o week.jsonl.zst

Every column is described in docs/export.md. Also while a crawl is writing, an export shows one moment.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct ExportArguments {
    /// The crawl's file, or the URL of its database.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: Location,

    /// One JSON object a line, or CSV.
    #[arg(long, value_enum, default_value_t = FormatChoice::Jsonl)]
    pub format: FormatChoice,

    /// The tables, separated by commas; `all` for those of the crawl, too [default: those that tell
    /// of the network].
    #[arg(long = "table", value_delimiter = ',', value_name = "TABLES", value_parser = parse_tables)]
    pub tables: Vec<TableChoice>,

    /// Only what was seen or observed since: a day, a time, or a span before now (7d).
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    pub since: Option<since::Since>,

    /// Where to write: a file, a folder (a file for each table), or - for standard output. Names
    /// that end in .gz or .zst are packed.
    #[arg(long, short, value_name = "PATH", default_value = "-")]
    pub output: PathBuf,

    /// Pack what is written to a folder or to standard output.
    #[arg(long, value_enum, value_name = "HOW")]
    pub compress: Option<CompressChoice>,

    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,

    /// CSV for Excel: with a byte order mark, and with ids that it does not take for numbers.
    #[arg(long)]
    pub excel: bool,

    /// In CSV, put an apostrophe before texts that a spreadsheet would run as formulas. This
    /// changes the data.
    #[arg(long)]
    pub guard_formulas: bool,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatChoice {
    Jsonl,
    Csv,
}

impl From<FormatChoice> for ExportFormat {
    fn from(choice: FormatChoice) -> Self {
        match choice {
            FormatChoice::Jsonl => Self::Jsonl,
            FormatChoice::Csv => Self::Csv,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressChoice {
    None,
    Gz,
    Zst,
}

impl From<CompressChoice> for Compression {
    fn from(choice: CompressChoice) -> Self {
        match choice {
            CompressChoice::None => Self::None,
            CompressChoice::Gz => Self::Gzip,
            CompressChoice::Zst => Self::Zstd,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableChoice {
    All,
    One(ExportTable),
}

fn parse_tables(text: &str) -> Result<TableChoice, String> {
    match text.trim() {
        "all" => Ok(TableChoice::All),
        name => parse_table(name).map(TableChoice::One),
    }
}

fn parse_table(name: &str) -> Result<ExportTable, String> {
    ExportTable::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = ExportTable::ALL.iter().map(|table| table.name()).collect();
        format!("there is no such table; there are {}", known.join(", "))
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake import alice.jsonl.zst --into copy.db
  kittiwake import tables/ --into copy.db
  kittiwake export alice.db | kittiwake import - --into copy.db

Rows are merged by what was seen when: importing a file twice changes nothing. docs/export.md tells
the rules.")]
pub(crate) struct ImportArguments {
    /// What `export` wrote: files, folders of them, or - for standard input.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// The crawl's file or the URL of a PostgreSQL database; what is missing in it is made.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub into: Location,

    /// What a CSV file holds whose header does not tell, because an older version wrote it.
    #[arg(long, value_name = "TABLE", value_parser = parse_table)]
    pub table: Option<ExportTable>,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,

    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}
