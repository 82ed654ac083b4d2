//! `kittiwake copy`: a whole crawl, from one place to another.

use crate::cli::CopyArguments;
use crate::commands::crawl::stop_asked;
use crate::console::CountLine;
use crate::failure::{Failure, code};
use crate::{console, environment};
use kittiwake_store::copy::{CopyReport, CopyStep, copy};
use kittiwake_store::{StoreError, StoreErrorKind};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) async fn run(arguments: &CopyArguments) -> Result<ExitCode, Failure> {
    let from = environment::with_password(&arguments.from);
    let to = environment::with_password(&arguments.to);
    let stop = Stop::watch();
    let mut line = CountLine::new(!arguments.quiet);
    let is_stopped = stop.flag();
    let copied = tokio::task::spawn_blocking(move || {
        copy(&from, &to, &mut |step| {
            match step {
                CopyStep::Copied { table, rows } => line.show(table, rows),
                CopyStep::Compared { table, rows } => {
                    line.show(&format!("comparing {table}"), rows);
                }
            }
            go_on(&is_stopped)
        })
    });
    let copied = copied
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    match copied {
        Ok(report) => {
            tell(arguments, &report);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => stopped_or_failed(error, "copy"),
    }
}

fn tell(arguments: &CopyArguments, report: &CopyReport) {
    if arguments.json {
        console::output(&report_json(arguments, report).to_string());
        return;
    }
    if arguments.quiet {
        return;
    }
    let count = |of: fn(&kittiwake_store::copy::CopiedRows) -> u64| -> u64 {
        report.tables.values().map(of).sum()
    };
    let (rows, found) = (count(|table| table.rows), count(|table| table.found));
    let before = if report.is_continued {
        format!(", {found} of them by an earlier copy")
    } else {
        String::new()
    };
    console::note(&format!(
        "{} rows of {} tables are in {}{before}; every table was read back and is the same",
        rows,
        report.tables.len(),
        arguments.to
    ));
}

fn report_json(arguments: &CopyArguments, report: &CopyReport) -> Value {
    let tables = report.tables.iter().map(|(table, copied)| {
        let of_table = json!({
            "rows": copied.rows,
            "found": copied.found,
            "checksum": copied.checksum,
        });
        ((*table).to_owned(), of_table)
    });
    json!({
        "from": arguments.from.to_string(),
        "to": arguments.to.to_string(),
        "continued": report.is_continued,
        "tables": tables.collect::<serde_json::Map<_, _>>(),
    })
}

/// A request to stop, which a long piece of work looks for now and then.
pub(super) struct Stop {
    flag: Arc<AtomicBool>,
    watcher: tokio::task::JoinHandle<()>,
}

impl Stop {
    pub(super) fn watch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let watcher = tokio::spawn(watch_for_stop(Arc::clone(&flag)));
        Self { flag, watcher }
    }

    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

#[expect(clippy::exit, reason = "the user asked twice")]
async fn watch_for_stop(stopped: Arc<AtomicBool>) {
    stop_asked().await;
    stopped.store(true, Ordering::Relaxed);
    console::note("stopping after what is being written; once more to stop at once");
    stop_asked().await;
    std::process::exit(i32::from(code::INTERRUPTED));
}

pub(super) fn go_on(stopped: &AtomicBool) -> ControlFlow<()> {
    if stopped.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

pub(super) fn stopped_or_failed(error: StoreError, task: &str) -> Result<ExitCode, Failure> {
    if error.kind() != StoreErrorKind::Stopped {
        return Err(error.into());
    }
    console::note(&format!(
        "the {task} is unfinished; run the same command again to finish it"
    ));
    Ok(ExitCode::from(code::INTERRUPTED))
}
