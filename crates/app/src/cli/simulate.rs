//! `kittiwake simulate`.

use super::partition::PartitionArguments;
use crate::{duration, since};
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("source").args(["trace", "from"]),
    group = ArgGroup::new("budget").args(["visits_per_day", "calls_per_hour"]),
    group = ArgGroup::new("paper").args(["one_visit", "hash_unbudgeted", "mispredictions"]),
    after_help = "\
Examples:
  kittiwake simulate trace.csv.zst --policy adaptive,round-robin --visits-per-day 1
  kittiwake simulate trace.csv --policy adaptive,hash --visits-per-day 0.26,1,4 --plot out.svg
  kittiwake simulate --from alice.db --calls-per-hour 300 --page 40 --json
  kittiwake simulate trace.csv --one-visit --window 61d
  kittiwake simulate trace.csv --partition 2,16

A trace is CSV, plain or packed with zstd, with a header user,unix_seconds; columns spread (reposts
and replies of a post) and facet are used if they are there. docs/freshness.md tells what is
measured, and what each policy does.

Policies: adaptive, round-robin, uniform, organ-pipe, hash, hash-calendar, change-rate, importance,
breadth-first, proportional, cho, lambda-crawl, square-root; for comparison clairvoyant and
most-waiting, which know the future."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct SimulateArguments {
    /// Who posted when; - reads it from standard input.
    #[arg(value_name = "TRACE", required_unless_present_any = ["from", "partition"])]
    pub trace: Option<PathBuf>,

    /// Use the posts that a crawl has collected, instead of a trace.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,

    /// The policies to try, separated by commas.
    #[arg(
        long = "policy",
        value_delimiter = ',',
        value_name = "POLICIES",
        default_value = "adaptive,round-robin"
    )]
    pub policies: Vec<String>,

    /// The budget: visits per user and day; several, separated by commas, are tried in turn.
    #[arg(long, value_delimiter = ',', value_name = "V", value_parser = parse_budget)]
    pub visits_per_day: Vec<f64>,

    /// The budget as calls per hour, for all users together.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse_budget)]
    pub calls_per_hour: Vec<f64>,

    /// How many posts a call returns at most.
    #[arg(long, value_name = "C", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub page: u32,

    /// What is not measured, at the beginning [default: 60d, or 120d below 0.26 visits a day, and
    /// never more than a third of the trace].
    #[arg(long, value_name = "TIME", value_parser = parse_warm_up)]
    pub warm_up: Option<f64>,

    /// What adaptive strives for: the least delay, or the least delay of what will spread.
    #[arg(long, value_enum, default_value_t = ObjectiveChoice::Delay)]
    pub objective: ObjectiveChoice,

    /// From 1, the least mean delay, down to 0, the most posts within an hour.
    #[arg(long, value_name = "Q", default_value_t = 1.0, value_parser = parse_unit)]
    pub patience: f64,

    /// How many calls a visit may take when more posts wait than one returns.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub pages: u16,

    /// Nobody waits longer for a visit, as far as calls suffice.
    #[arg(long, value_name = "TIME", value_parser = parse_days)]
    pub longest_span: Option<f64>,

    /// What a change of each facet weighs, as facet=weight separated by commas; others are left out.
    #[arg(long, value_delimiter = ',', value_name = "FACETS", value_parser = parse_facet)]
    pub facets: Vec<(String, f64)>,

    /// What each user's posts weigh: CSV with user,weight; whoever is not in it weighs 1.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// The weight of the newest day in the Hash model.
    #[arg(long, value_name = "W", default_value_t = 0.5, value_parser = duration::parse_share)]
    pub hash_weight: f64,

    /// Holidays for hash-calendar: a file with dates, one a line, or a calendar (.ics).
    #[arg(long, value_name = "FILE")]
    pub holidays: Option<PathBuf>,

    /// The seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// CUVIM's Poisson experiment: one visit per user and window, in three orders.
    #[arg(long)]
    pub one_visit: bool,

    /// The window of --one-visit.
    #[arg(long, value_name = "TIME", default_value = "61d", value_parser = parse_days)]
    pub window: f64,

    /// CUVIM's Hash experiment: visits whenever Algorithm 2 says so, for weights from 0.4 to 0.9.
    #[arg(long)]
    pub hash_unbudgeted: bool,

    /// SocWeb's Figure 4: how often the change rate predicts the next post too early.
    #[arg(long, value_enum, value_name = "SPAN")]
    pub mispredictions: Option<MispredictionsChoice>,

    /// Write what was observed of whom as CSV: visits, full pages, messages, losses.
    #[arg(long, value_name = "FILE")]
    pub observed: Option<PathBuf>,

    /// Draw the results into an SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Print one JSON object for each policy and budget, or for each row.
    #[arg(long)]
    pub json: bool,

    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub partition: PartitionArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveChoice {
    Delay,
    Hot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MispredictionsChoice {
    Monthly,
}

pub(super) fn parse_budget(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(budget) if budget.is_finite() && budget > 0.0 => Ok(budget),
        _ => Err(format!("{text:?} is no number above 0")),
    }
}

fn parse_unit(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{text:?} is no number from 0 to 1")),
    }
}

/// Reads `60d`, `2w`, `12h` and the like as days.
fn parse_days(text: &str) -> Result<f64, String> {
    const DAY_US: f64 = 86_400e6;
    since::span_us(text.trim())
        .map(|span_us| span_us as f64 / DAY_US)
        .ok_or_else(|| format!("{text:?} is no time; write for example 60d, 2w or 12h"))
}

/// A warm-up may also be none at all.
fn parse_warm_up(text: &str) -> Result<f64, String> {
    match text.trim() {
        "0" | "0d" => Ok(0.0),
        text => parse_days(text),
    }
}

fn parse_facet(text: &str) -> Result<(String, f64), String> {
    let advice = || format!("{text:?} is no facet with a weight; write for example posts=1");
    let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
    match weight.trim().parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight > 0.0 && !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), weight))
        }
        _ => Err(advice()),
    }
}
