//! `kittiwake import`: what `export` wrote, back into a file.

use crate::cli::ImportArguments;
use crate::console::CountLine;
use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_store::export::{ExportTable, ImportError, ImportReport, Importer, Input};
use kittiwake_store::{Location, OpenMode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) async fn run(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let paths = paths(&arguments.paths)?;
    let store = environment::with_password(&arguments.into).open(OpenMode::Crawl)?;
    let mut importer = Importer::new(&*store);
    let mut line = CountLine::new(!arguments.quiet);
    for path in &paths {
        let name = shown(path);
        let input = open(path, arguments.table)?;
        importer
            .read(input, &mut |report: &ImportReport| {
                line.show(&name, report.rows.values().sum());
            })
            .await
            .map_err(failure)?;
    }
    drop(line);
    let report = importer.report();
    if arguments.json {
        console::output(&report_json(&arguments.into, report).to_string());
    } else {
        console::output(report_text(&arguments.into, report).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn failure(error: ImportError) -> Failure {
    match error {
        ImportError::Store(error) => error.into(),
        error => Failure::other(error.to_string()),
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    path.display().to_string()
}

fn open(path: &Path, table: Option<ExportTable>) -> Result<Input, Failure> {
    let source: Box<dyn std::io::Read + Send> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let file = File::open(path);
        Box::new(file.map_err(|error| cannot_read(path, &error))?)
    };
    Input::new(shown(path), table.or_else(|| table_of(path)), source).map_err(failure)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}

/// The files that are meant, in the order in which they are read best.
fn paths(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for path in given {
        if path.is_dir() {
            paths.extend(exports_in(path)?);
        } else {
            paths.push(path.clone());
        }
    }
    // Names before what they name; whatever holds several tables has them in order.
    paths.sort_by_key(|path| table_of(path));
    Ok(paths)
}

/// The files of a folder that `export` has written there.
fn exports_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| cannot_read(folder, &error))? {
        let path = entry.map_err(|error| cannot_read(folder, &error))?.path();
        if table_of(&path).is_some() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "{}: no file in it is called as exports are (users.csv, users.jsonl.gz, …)",
            folder.display()
        )));
    }
    found.sort();
    Ok(found)
}

/// The table that a file is named after: `users.csv`, `users.jsonl.zst`.
fn table_of(path: &Path) -> Option<ExportTable> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let stem = name
        .strip_suffix(".csv")
        .or_else(|| name.strip_suffix(".jsonl"))?;
    ExportTable::from_name(stem)
}

fn report_json(into: &Location, report: &ImportReport) -> Value {
    let counted = |rows: &BTreeMap<ExportTable, u64>| -> Map<String, Value> {
        let rows = rows.iter();
        rows.map(|(table, rows)| (table.name().to_owned(), json!(rows)))
            .collect()
    };
    json!({
        "file": into.to_string(),
        "rows": counted(&report.rows),
        "skipped": counted(&report.skipped),
        "rows_new": report.rows_new,
        "rows_changed": report.rows_changed,
    })
}

fn report_text(into: &Location, report: &ImportReport) -> String {
    let mut text = String::new();
    for (table, rows) in &report.rows {
        let _ = writeln!(text, "{:<18} {rows:>10} rows", table.name());
    }
    for (table, rows) in &report.skipped {
        let _ = writeln!(text, "{:<18} {rows:>10} rows left out", table.name());
    }
    let _ = writeln!(
        text,
        "{}: {} rows new, {} changed",
        into, report.rows_new, report.rows_changed
    );
    text
}
