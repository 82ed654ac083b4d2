//! `kittiwake status`: what a file holds.

use crate::cli::StatusArguments;
use crate::failure::Failure;
use crate::{console, environment, summary};
use kittiwake_model::LimitTime;
use kittiwake_store::Store;
use kittiwake_store::ledger::Ledger;
use kittiwake_store::sqlite::{OpenMode, SqliteStore};
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

pub(crate) async fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let store = SqliteStore::open(&arguments.file, OpenMode::Read)?;
    let run = store.last_run().await?;
    let held = store.summary().await?;
    let budgets = budgets().await;
    if arguments.json {
        let mut shown = summary::held(&arguments.file, &held);
        if let (Some((number, record)), Some(entries)) = (&run, shown.as_object_mut()) {
            entries.insert(
                "run".into(),
                json!({
                    "number": number,
                    "network": record.network,
                    "host": record.host,
                    "definition": record.definition,
                    "clock": record.clock,
                    "started_us": record.started,
                }),
            );
            entries.insert("budgets".into(), json!(budgets));
        }
        console::output(&shown.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    if let Some((number, record)) = &run {
        let _ = writeln!(text, "{} at {}, run {number}", record.network, record.host);
    }
    text.push_str(&summary::table(&held));
    for budget in budgets {
        let _ = writeln!(text, "budget {budget}");
    }
    console::output(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// What the ledger says of the current windows; a ledger that is not there yet says nothing.
async fn budgets() -> Vec<String> {
    let Ok(path) = environment::ledger_path() else {
        return Vec::new();
    };
    if !path.exists() {
        return Vec::new();
    }
    let Ok(ledger) = Ledger::open(&path) else {
        return Vec::new();
    };
    let now = LimitTime(environment::real_now().micros());
    let usage = ledger.usage(now).await.unwrap_or_default();
    usage.iter().map(summary::budget_line).collect()
}
