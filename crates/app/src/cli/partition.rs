//! `kittiwake simulate --partition`.

use super::simulate::parse_budget;
use clap::Args;

/// What a replay is told; nothing is replayed here.
const REPLAYING: [&str; 19] = [
    "policies",
    "visits_per_day",
    "calls_per_hour",
    "page",
    "warm_up",
    "objective",
    "patience",
    "pages",
    "longest_span",
    "facets",
    "weights",
    "hash_weight",
    "holidays",
    "one_visit",
    "window",
    "hash_unbudgeted",
    "mispredictions",
    "observed",
    "plot",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Dividing work among machines")]
pub(crate) struct PartitionArguments {
    /// Divide the users among so many machines, and print how unlike their work is and how many
    /// users move when a machine joins or leaves; several numbers, separated by commas, are tried in
    /// turn. Without a trace, for a synthetic population.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PARTS",
        value_parser = clap::value_parser!(u32).range(2..=1_024),
        conflicts_with_all = REPLAYING
    )]
    pub partition: Vec<u32>,

    /// How many users are divided, drawn from the trace; several numbers, separated by commas, make
    /// a row each [default: all of the trace; 10000,20000,40000,80000 without one].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N",
        requires = "partition",
        conflicts_with_all = REPLAYING,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub users: Vec<u32>,

    /// Let set division be quick: the largest part is at most 1 + E times the smallest, where even
    /// splits exist [default: as even as can be].
    #[arg(
        long,
        value_name = "E",
        requires = "partition",
        conflicts_with_all = REPLAYING,
        value_parser = parse_budget
    )]
    pub epsilon: Option<f64>,

    /// How many points a machine of weight 1 has on the hash ring.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 256,
        requires = "partition",
        conflicts_with_all = REPLAYING,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub virtual_nodes: u32,

    /// What each machine of the hash ring can do beside the others, separated by commas, as many as
    /// PARTS [default: all the same].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "W",
        requires = "partition",
        conflicts_with_all = REPLAYING,
        value_parser = parse_budget
    )]
    pub node_weights: Vec<f64>,
}
