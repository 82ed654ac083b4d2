//! A whole crawl from one place to another: file to server, server to file, file to file.
//!
//! Everything is read from one view of the crawl, so that it may be crawled meanwhile, and written in
//! stretches of rows, each with its commit. Until the last row was read back and compared, the copy is
//! marked as unfinished and nobody can open it. A copy that was interrupted is gone through again:
//! stretches that are the same are left as they are, whatever the crawl has done in between.

mod digest;
mod tables;

use crate::cell::{Cell, Row};
use crate::database::{Database, Keeper, Reader};
use crate::{Location, StoreError, StoreErrorKind};
use digest::Rows;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tables::CopiedTable;

/// Rows that are written, or compared, together.
const STRETCH_ROWS_MAX: usize = 2_000;
/// About how much of them may be in memory.
const STRETCH_BYTES_MAX: usize = 8 << 20;
/// Rows after which what was written is committed.
const COMMIT_ROWS: u64 = 20_000;
/// The rule that says what a place is in the middle of.
pub(crate) const UNFINISHED: &str = "unfinished";

/// What became of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyReport {
    pub tables: BTreeMap<&'static str, CopiedRows>,
    /// Whether an earlier copy had begun.
    pub is_continued: bool,
}

/// One table of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopiedRows {
    pub rows: u64,
    /// Of these, rows that an earlier copy had brought already.
    pub found: u64,
    /// The same for both places.
    pub checksum: String,
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// Rows of a table that are copied.
    Copied { table: &'static str, rows: u64 },
    /// Rows of a table that were read back.
    Compared { table: &'static str, rows: u64 },
}

/// Asked again and again whether to go on.
pub type CopyProgress<'p> = dyn FnMut(CopyStep) -> ControlFlow<()> + Send + 'p;

/// Copies a crawl to a place where there is none yet, or the beginning of a copy.
pub fn copy(
    from: &Location,
    to: &Location,
    progress: &mut CopyProgress<'_>,
) -> Result<CopyReport, StoreError> {
    apart(|| {
        let report = bring(from, to, "copy", progress)?;
        finish(to)?;
        Ok(report)
    })
}

/// Does something that waits for servers in a thread of its own, so that it may be called from any.
pub(crate) fn apart<T: Send>(
    work: impl FnOnce() -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    std::thread::scope(|scope| {
        let done = scope.spawn(work).join();
        done.unwrap_or_else(|_| Err(StoreError::closed()))
    })
}

/// Copies a crawl and leaves the mark that more has to follow: what `task` is about.
pub(crate) fn bring(
    from: &Location,
    to: &Location,
    task: &'static str,
    progress: &mut CopyProgress<'_>,
) -> Result<CopyReport, StoreError> {
    let mut report = CopyReport::default();
    // What goes wrong at the other place is told as that place's.
    let mut brought = Ok(());
    from.with_reader(&mut |source| {
        Unfinished::Refused.check(source)?;
        source.begin_view()?;
        brought = to.with_keeper(&mut |target| {
            report = write(source, target, task, progress)?;
            // Read back through another connection: what counts is what others will see.
            to.with_reader(&mut |copied| compare(copied, &report, progress))
        });
        source.end_view();
        Ok(())
    })?;
    brought.map(|()| report)
}

/// Takes the mark away: from now on it is a crawl like any other.
pub(crate) fn finish(place: &Location) -> Result<(), StoreError> {
    place.with_keeper(&mut |target| {
        target.begin()?;
        let mark = [Cell::from(UNFINISHED)];
        target.send("DELETE FROM rules WHERE name = ?1".into(), &mark)?;
        target.commit()
    })
}

/// What is to be done with a place that is in the middle of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    Refused,
    /// For whoever finishes it.
    Accepted,
}

impl Unfinished {
    pub(crate) fn check(self, database: &dyn Database) -> Result<(), StoreError> {
        let task = match self {
            Self::Refused => unfinished(database)?,
            Self::Accepted => None,
        };
        match task {
            None => Ok(()),
            Some(task) => Err(StoreError::new(
                StoreErrorKind::Unfinished,
                format!(
                    "it is an unfinished {task}; run the same kittiwake {task} again to finish \
                     it, or take it away"
                ),
            )),
        }
    }
}

fn unfinished(database: &dyn Database) -> Result<Option<String>, StoreError> {
    database.first(
        "SELECT value FROM rules WHERE name = ?1",
        &[Cell::from(UNFINISHED)],
        |row| row.get(0),
    )
}

fn write(
    source: &dyn Reader,
    target: &dyn Keeper,
    task: &'static str,
    progress: &mut CopyProgress<'_>,
) -> Result<CopyReport, StoreError> {
    let is_continued = begin(target, task)?;
    let mut report = CopyReport {
        is_continued,
        ..CopyReport::default()
    };
    target.begin()?;
    for table in &tables::all() {
        let mut writer = TableWriter::new(table, target, is_continued);
        let mut stopped = None;
        source.stream(&table.select(), &[], &mut |row| {
            stopped = writer.take(row, progress)?;
            Ok(if stopped.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        if let Some(error) = stopped {
            target.roll_back()?;
            return Err(error);
        }
        report.tables.insert(table.name, writer.finish()?);
    }
    target.copied()?;
    target.commit()?;
    Ok(report)
}

/// Marks the place; says whether it was marked before.
fn begin(target: &dyn Keeper, task: &'static str) -> Result<bool, StoreError> {
    let is_continued = unfinished(target)?.is_some();
    let database: &dyn Database = target;
    let is_empty = !database.exists("SELECT 1 FROM runs LIMIT 1", &[])?
        && !database.exists("SELECT 1 FROM ids LIMIT 1", &[])?;
    if !is_continued && !is_empty {
        return Err(StoreError::new(
            StoreErrorKind::NotOurs,
            "there is a crawl already; name a place where there is none yet",
        ));
    }
    target.begin()?;
    let mark = [Cell::from(UNFINISHED), Cell::from(task)];
    target.send(
        "INSERT INTO rules(name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            .into(),
        &mark,
    )?;
    target.commit()?;
    Ok(is_continued)
}

/// Reads everything back.
fn compare(
    copied: &dyn Reader,
    report: &CopyReport,
    progress: &mut CopyProgress<'_>,
) -> Result<(), StoreError> {
    copied.begin_view()?;
    let compared = tables::all().iter().try_for_each(|table| {
        let mut rows = Rows::default();
        let mut is_stopped = false;
        copied.stream(&table.select(), &[], &mut |row| {
            rows.add(&row.cells(table.columns.len())?);
            if rows.count.is_multiple_of(STRETCH_ROWS_MAX as u64) {
                let step = CopyStep::Compared {
                    table: table.name,
                    rows: rows.count,
                };
                is_stopped = progress(step).is_break();
            }
            Ok(if is_stopped {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        if is_stopped {
            return Err(stopped());
        }
        let wanted = report.tables.get(table.name).cloned().unwrap_or_default();
        if (rows.count, rows.checksum()) != (wanted.rows, wanted.checksum) {
            return Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "the table {} has {} rows in the copy, which are not the {} of the crawl; \
                     check the disk and the log, and copy again",
                    table.name, rows.count, wanted.rows
                ),
            ));
        }
        Ok(())
    });
    copied.end_view();
    compared
}

fn stopped() -> StoreError {
    StoreError::new(StoreErrorKind::Stopped, "the copy was stopped")
}

/// Brings the rows of one table.
struct TableWriter<'w> {
    table: &'w CopiedTable,
    target: &'w dyn Keeper,
    /// Whether there may be rows already.
    is_continued: bool,
    stretch: Vec<Vec<Cell<'static>>>,
    stretch_bytes: usize,
    /// The keys of the last row of the stretch before.
    last: Vec<Cell<'static>>,
    rows: Rows,
    found: u64,
    uncommitted: u64,
}

impl<'w> TableWriter<'w> {
    fn new(table: &'w CopiedTable, target: &'w dyn Keeper, is_continued: bool) -> Self {
        Self {
            table,
            target,
            is_continued,
            stretch: Vec::new(),
            stretch_bytes: 0,
            last: Vec::new(),
            rows: Rows::default(),
            found: 0,
            uncommitted: 0,
        }
    }

    /// Takes a row; gives the reason to stop, if there is one.
    fn take(
        &mut self,
        row: &dyn Row,
        progress: &mut CopyProgress<'_>,
    ) -> Result<Option<StoreError>, StoreError> {
        let cells = row.cells(self.table.columns.len())?;
        self.rows.add(&cells);
        self.stretch_bytes += cells.iter().map(Cell::size).sum::<usize>();
        self.stretch.push(cells);
        if self.stretch.len() < STRETCH_ROWS_MAX && self.stretch_bytes < STRETCH_BYTES_MAX {
            return Ok(None);
        }
        self.flush()?;
        if self.uncommitted >= COMMIT_ROWS {
            self.uncommitted = 0;
            self.target.commit()?;
            self.target.begin()?;
        }
        let step = CopyStep::Copied {
            table: self.table.name,
            rows: self.rows.count,
        };
        Ok(progress(step).is_break().then(stopped))
    }

    /// Writes the rows that wait, unless they are there already.
    fn flush(&mut self) -> Result<(), StoreError> {
        let Some(end) = self.stretch.last() else {
            return Ok(());
        };
        let end = end[..self.table.keys].to_vec();
        let is_beyond = !self.last.is_empty();
        let ends = [&self.last[..], &end[..]].concat();
        let present = if self.is_continued {
            self.present(is_beyond, &ends)?
        } else {
            Vec::new()
        };
        if present == self.stretch {
            self.found += self.stretch.len() as u64;
        } else {
            if !present.is_empty() {
                let delete = self.table.delete_stretch(is_beyond, true);
                self.target.send((&*delete).into(), &ends)?;
            }
            self.target
                .insert_rows(self.table.name, &self.table.columns, &self.stretch)?;
            self.uncommitted += self.stretch.len() as u64;
        }
        self.last = end;
        self.stretch.clear();
        self.stretch_bytes = 0;
        Ok(())
    }

    /// The rows that an earlier copy left in a stretch; of too many, so many that it shows.
    fn present(
        &self,
        is_beyond: bool,
        ends: &[Cell<'_>],
    ) -> Result<Vec<Vec<Cell<'static>>>, StoreError> {
        let select = self.table.select_stretch(is_beyond);
        let limit = STRETCH_ROWS_MAX + 1;
        let database: &dyn Database = self.target;
        database.all(&*format!("{select} LIMIT {limit}"), ends, |row| {
            row.cells(self.table.columns.len())
        })
    }

    fn finish(mut self) -> Result<CopiedRows, StoreError> {
        self.flush()?;
        if self.is_continued {
            let delete = self.table.delete_stretch(!self.last.is_empty(), false);
            self.target.send((&*delete).into(), &self.last)?;
        }
        Ok(CopiedRows {
            rows: self.rows.count,
            found: self.found,
            checksum: self.rows.checksum(),
        })
    }
}
