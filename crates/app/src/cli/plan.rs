//! The arguments of `kittiwake plan`.

use super::CrawlArguments;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub crawl: CrawlArguments,

    /// Make up to 10 calls first, to know more. They are kept if there is a crawl in FILE already,
    /// and count like any others.
    #[arg(long)]
    pub probe: bool,
}

/// What `--help` shows at its end, in the place of what it shows for a crawl.
pub(crate) const EXAMPLES: &str = "\
Examples:
  kittiwake plan mastodon@mastodon.example alice --into alice.db --depth 1 --until-idle
  kittiwake plan mastodon@mastodon.example alice --into alice.db --depth 2 --until-idle --probe \\
                 --contact me@example.org

Takes the arguments of kittiwake crawl and, but for --probe, sends nothing. What is known (ids, counts,
marks, rounds) is reckoned exactly; who is not known yet is told as an interval: see docs/plan.md.";
