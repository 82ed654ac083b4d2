//! `kittiwake export`: a crawl as files for other programs.

use crate::cli::{ExportArguments, TableChoice};
use crate::commands::crawl::stop_asked;
use crate::console::CountLine;
use crate::failure::{Failure, code};
use crate::{console, environment};
use kittiwake_store::OpenMode;
use kittiwake_store::export::{
    Compression, CsvStyle, Destination, ExportError, ExportFormat, ExportTable, ExportWriter,
    Exported, Field, RowSink, Selection,
};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) async fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let format = ExportFormat::from(arguments.format);
    if format != ExportFormat::Csv && (arguments.excel || arguments.guard_formulas) {
        return Err(Failure::usage(
            "--excel and --guard-formulas are for --format csv",
        ));
    }
    refuse_own_file(arguments)?;
    let store = environment::with_password(&arguments.file).open(OpenMode::Read)?;
    let selection = Selection {
        tables: tables(arguments),
        since: arguments
            .since
            .map(|since| since.before(environment::real_now())),
    };
    let is_stream = arguments.output == Path::new("-");
    let writer = match ExportWriter::new(
        destination(&arguments.output, format, selection.tables.len()),
        format,
        compression(arguments),
        CsvStyle {
            excel: arguments.excel,
            guard_formulas: arguments.guard_formulas,
        },
        arguments.force,
        &selection.tables,
    ) {
        Ok(writer) => writer,
        Err(error) => return ended(error),
    };
    // A terminal that shows the rows has no room for progress.
    let has_room = !is_stream || !console::is_terminal();
    let stopped = Arc::new(AtomicBool::new(false));
    let sink = Counted {
        inner: writer,
        line: CountLine::new(has_room && !arguments.quiet),
        table: "",
        rows: 0,
        stopped: Arc::clone(&stopped),
    };
    let export = store.export(selection, Box::new(sink));
    let result = if is_stream {
        // There is nothing to clear away: Ctrl-C ends it as it ends any program.
        export.await
    } else {
        let watcher = tokio::spawn(watch_for_stop(Arc::clone(&stopped)));
        let result = export.await;
        watcher.abort();
        result
    };
    match result {
        Ok(exported) => {
            if !is_stream && !arguments.quiet {
                console::note(&summary(&exported, &arguments.output));
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(_) if stopped.load(Ordering::Relaxed) => Ok(ExitCode::from(code::INTERRUPTED)),
        Err(error) => ended(error),
    }
}

/// The first request to stop lets the export clear its half files away, the second ends it at once.
#[expect(clippy::exit, reason = "the user asked twice")]
async fn watch_for_stop(stopped: Arc<AtomicBool>) {
    stop_asked().await;
    stopped.store(true, Ordering::Relaxed);
    console::note("stopping: what is half written goes away; once more to stop at once");
    stop_asked().await;
    std::process::exit(i32::from(code::INTERRUPTED));
}

/// Whoever reads a pipe may stop whenever they have seen enough.
fn ended(error: ExportError) -> Result<ExitCode, Failure> {
    match error {
        error if error.is_broken_pipe() => Ok(ExitCode::SUCCESS),
        ExportError::Refused(message) => Err(Failure::usage(message)),
        error => Err(Failure::other(error.to_string())),
    }
}

fn tables(arguments: &ExportArguments) -> Vec<ExportTable> {
    let mut tables: Vec<ExportTable> = if arguments.tables.is_empty() {
        ExportTable::data().collect()
    } else if arguments.tables.contains(&TableChoice::All) {
        ExportTable::ALL.to_vec()
    } else {
        let named = arguments.tables.iter().filter_map(|table| match table {
            TableChoice::One(table) => Some(*table),
            TableChoice::All => None,
        });
        named.collect()
    };
    // Names before what they name, whatever order they were asked for in.
    tables.sort_unstable();
    tables.dedup();
    tables
}

fn destination(output: &Path, format: ExportFormat, tables: usize) -> Destination {
    if output == Path::new("-") {
        return Destination::Stream(console::output_stream());
    }
    // Several tables of CSV fit into nothing else.
    let must_be_folder = format == ExportFormat::Csv && tables > 1;
    let can_be_folder = output.extension().is_none() && !output.exists();
    let names_folder = output
        .to_string_lossy()
        .ends_with(std::path::MAIN_SEPARATOR);
    if names_folder || output.is_dir() || (must_be_folder && can_be_folder) {
        return Destination::Folder(output.to_owned());
    }
    Destination::File(output.to_owned())
}

fn compression(arguments: &ExportArguments) -> Compression {
    match arguments.compress {
        Some(choice) => choice.into(),
        None => Compression::of(&arguments.output),
    }
}

/// With `--force`, a slip of the finger would cost the crawl.
fn refuse_own_file(arguments: &ExportArguments) -> Result<(), Failure> {
    let file = arguments.file.file().map(std::fs::canonicalize);
    let same = match (file, std::fs::canonicalize(&arguments.output)) {
        (Some(Ok(file)), Ok(output)) => file == output,
        _ => false,
    };
    if same {
        return Err(Failure::usage("the crawl's file cannot be its own export"));
    }
    Ok(())
}

fn summary(exported: &Exported, output: &Path) -> String {
    let rows: Vec<String> = exported
        .iter()
        .filter(|(_, rows)| **rows > 0)
        .map(|(table, rows)| format!("{} {rows}", table.name()))
        .collect();
    let rows = if rows.is_empty() {
        "nothing".to_owned()
    } else {
        rows.join(", ")
    };
    format!("{}: {rows}", output.display())
}

/// A sink that says how far it is.
#[derive(Debug)]
struct Counted {
    inner: ExportWriter,
    line: CountLine,
    table: &'static str,
    rows: u64,
    /// The user does not want it any more.
    stopped: Arc<AtomicBool>,
}

impl RowSink for Counted {
    fn begin(&mut self, table: ExportTable) -> Result<(), ExportError> {
        (self.table, self.rows) = (table.name(), 0);
        self.inner.begin(table)
    }

    fn row(&mut self, row: &[Field<'_>]) -> Result<(), ExportError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(ExportError::Refused("stopped as asked".to_owned()));
        }
        self.rows += 1;
        self.line.show(self.table, self.rows);
        self.inner.row(row)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        self.inner.finish()
    }

    fn hides_empty_text(&self) -> bool {
        self.inner.hides_empty_text()
    }
}
