//! Crawls of machines that worked apart, joined into one.
//!
//! The first is copied; each of the others is taken in by what its objects are called: their rows are
//! merged as an import merges them, and what it has done counts as done. Until all of it is in, the
//! place is marked as unfinished; a merge that was interrupted begins again, with what was copied
//! already in its place.

use crate::copy::{self, CopyProgress, CopyStep, Unfinished, apart};
use crate::export::{
    Compression, CsvStyle, Destination, ExportError, ExportFormat, ExportTable, ExportWriter,
    Field, ImportError, ImportReport, Importer, Input, RowSink, Selection,
};
use crate::rules::join::{Offsets, Walks, join};
use crate::{Location, OpenMode, Store, StoreError, StoreErrorKind};
use kittiwake_model::RunRecord;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

/// How far a merge is: which of the crawls, and rows of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeStep {
    pub crawl: usize,
    pub table: &'static str,
    pub rows: u64,
}

/// Asked again and again whether to go on.
pub type MergeProgress<'p> = dyn FnMut(MergeStep) -> ControlFlow<()> + Send + 'p;

/// What a merge has brought together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergeReport {
    /// Rows by table, as they are in the end.
    pub rows: BTreeMap<String, u64>,
}

/// Joins crawls at a place where there is none yet, or the beginning of a merge.
pub async fn merge(
    crawls: &[Location],
    into: &Location,
    progress: &mut MergeProgress<'_>,
) -> Result<MergeReport, ImportError> {
    let runs = last_runs(crawls).await?;
    let Some((first, others)) = crawls.split_first() else {
        return Err(StoreError::invalid("there is nothing to merge").into());
    };
    let mut copied = |step| {
        let (CopyStep::Copied { table, rows } | CopyStep::Compared { table, rows }) = step;
        progress(MergeStep {
            crawl: 0,
            table,
            rows,
        })
    };
    let copied: &mut CopyProgress<'_> = &mut copied;
    apart(|| copy::bring(first, into, "merge", copied))?;
    for (place, (crawl, run)) in others.iter().zip(&runs[1..]).enumerate() {
        let is_elsewhere = matches!(
            (run, &runs[0]),
            (Some(run), Some(first)) if run.host != first.host
        );
        let walks = if is_elsewhere {
            Walks::Dropped
        } else {
            Walks::Kept
        };
        // Who was visited is taken in before what was found: a crawl that goes on meanwhile is
        // asked again for a little rather than never.
        let offsets = apart(|| join_state(crawl, into, walks))?;
        join_rows(crawl, into, offsets, &mut |table, rows| {
            progress(MergeStep {
                crawl: place + 1,
                table,
                rows,
            })
        })
        .await?;
    }
    apart(|| copy::finish(into))?;
    let rows = into.open(OpenMode::Read)?.summary().await?.rows;
    Ok(MergeReport { rows })
}

/// The last run of each; they have to go together.
async fn last_runs(crawls: &[Location]) -> Result<Vec<Option<RunRecord>>, StoreError> {
    let mut runs: Vec<Option<RunRecord>> = Vec::with_capacity(crawls.len());
    for crawl in crawls {
        let run = crawl.open(OpenMode::Read)?.last_run().await?;
        let run = run.map(|(_, run)| run);
        if let (Some(run), Some(before)) = (&run, runs.iter().flatten().next()) {
            fits(crawl, run, before)?;
        }
        runs.push(run);
    }
    Ok(runs)
}

fn fits(crawl: &Location, run: &RunRecord, before: &RunRecord) -> Result<(), StoreError> {
    let differs = |what: &str, own: &str, other: &str| {
        Err(StoreError::new(
            StoreErrorKind::Invalid,
            format!(
                "{crawl}: its {what} is {own}, that of the others {other}; their data can be put \
                 together with export and import, but no crawl could go on from it"
            ),
        ))
    };
    if run.network != before.network {
        return differs("network", &run.network, &before.network);
    }
    if run.clock != before.clock {
        return differs("clock", &run.clock, &before.clock);
    }
    Ok(())
}

fn join_state(crawl: &Location, into: &Location, walks: Walks) -> Result<Offsets, StoreError> {
    let mut joined = Ok(None);
    crawl.with_reader(&mut |source| {
        Unfinished::Refused.check(source)?;
        source.begin_view()?;
        let mut offsets = None;
        let done = into.with_keeper(&mut |target| {
            offsets = Some(join(source, target, walks)?);
            Ok(())
        });
        joined = done.map(|()| offsets);
        source.end_view();
        Ok(())
    })?;
    joined?.ok_or_else(StoreError::closed)
}

/// Everything that the other crawl has found, merged by what was seen when.
async fn join_rows(
    crawl: &Location,
    into: &Location,
    offsets: Offsets,
    progress: &mut (dyn FnMut(&'static str, u64) -> ControlFlow<()> + Send),
) -> Result<(), ImportError> {
    let source = crawl.open(OpenMode::Read)?;
    let target = into.open_unfinished()?;
    let (read, written) = std::io::pipe().map_err(|error| piped(&error.to_string()))?;
    let selection = Selection {
        tables: ExportTable::data().collect(),
        since: None,
    };
    let sink = Joining::new(Box::new(BufWriter::new(written)), &selection.tables)
        .map_err(|error| piped(&error.to_string()))?;
    let export = source.export(selection, Box::new(sink));
    let import = take_in(&*target, crawl, offsets, Box::new(read), progress);
    // The export is looked at first: once it has begun it goes on in a thread of its own.
    let (exported, imported) = tokio::join!(export, import);
    imported?;
    exported.map_err(|error| match error {
        ExportError::Store(error) => ImportError::Store(error),
        error => piped(&error.to_string()),
    })?;
    Ok(())
}

async fn take_in(
    target: &dyn Store,
    crawl: &Location,
    offsets: Offsets,
    read: Box<dyn std::io::Read + Send>,
    progress: &mut (dyn FnMut(&'static str, u64) -> ControlFlow<()> + Send),
) -> Result<(), ImportError> {
    let mut importer = Importer::joining(target, offsets.calls);
    let input = Input::new(crawl.to_string(), None, read)?;
    let mut is_stopped = false;
    importer
        .read_while(input, &mut |report: &ImportReport| {
            let rows = report.rows.iter().next_back();
            let (table, rows) = rows.map_or(("ids", 0), |(table, rows)| (table.name(), *rows));
            let next = progress(table, rows);
            is_stopped = next.is_break();
            next
        })
        .await?;
    if is_stopped {
        let stopped = StoreError::new(StoreErrorKind::Stopped, "the merge was stopped");
        return Err(stopped.into());
    }
    Ok(())
}

fn piped(message: &str) -> ImportError {
    StoreError::new(
        StoreErrorKind::Other,
        format!("rows cannot be handed over: {message}"),
    )
    .into()
}

/// Rows as one store hands them to another.
#[derive(Debug)]
struct Joining(ExportWriter);

impl Joining {
    fn new(stream: Box<dyn Write + Send>, tables: &[ExportTable]) -> Result<Self, ExportError> {
        let writer = ExportWriter::new(
            Destination::Stream(stream),
            ExportFormat::Jsonl,
            Compression::None,
            CsvStyle::default(),
            false,
            tables,
        )?;
        Ok(Self(writer))
    }
}

impl RowSink for Joining {
    fn begin(&mut self, table: ExportTable) -> Result<(), ExportError> {
        self.0.begin(table)
    }

    fn row(&mut self, row: &[Field<'_>]) -> Result<(), ExportError> {
        self.0.row(row)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        self.0.finish()
    }

    fn hides_empty_text(&self) -> bool {
        self.0.hides_empty_text()
    }

    fn keeps_calls(&self) -> bool {
        true
    }
}
