//! `kittiwake merge`: crawls of machines that worked apart, joined into one.

use crate::cli::MergeArguments;
use crate::commands::copy::{Stop, go_on, stopped_or_failed};
use crate::console::CountLine;
use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_store::Location;
use kittiwake_store::export::ImportError;
use kittiwake_store::merge::{MergeReport, merge};
use serde_json::json;
use std::process::ExitCode;

pub(crate) async fn run(arguments: &MergeArguments) -> Result<ExitCode, Failure> {
    let crawls: Vec<Location> = arguments
        .crawls
        .iter()
        .map(environment::with_password)
        .collect();
    let into = environment::with_password(&arguments.into);
    let stop = Stop::watch();
    let is_stopped = stop.flag();
    let mut line = CountLine::new(!arguments.quiet);
    let merged = merge(&crawls, &into, &mut |step| {
        line.show(&format!("{} {}", crawls[step.crawl], step.table), step.rows);
        go_on(&is_stopped)
    })
    .await;
    drop(line);
    match merged {
        Ok(report) => {
            tell(arguments, &report);
            Ok(ExitCode::SUCCESS)
        }
        Err(ImportError::Store(error)) => stopped_or_failed(error, "merge"),
        Err(error) => Err(Failure::other(error.to_string())),
    }
}

fn tell(arguments: &MergeArguments, report: &MergeReport) {
    if arguments.json {
        let into = arguments.into.to_string();
        console::output(&json!({ "into": into, "rows": report.rows }).to_string());
        return;
    }
    if arguments.quiet {
        return;
    }
    let rows = |table: &str| report.rows.get(table).copied().unwrap_or_default();
    console::note(&format!(
        "{} crawls are one in {}: {} users, {} relations, {} posts",
        arguments.crawls.len(),
        arguments.into,
        rows("users"),
        rows("user_relations"),
        rows("statuses")
    ));
}
