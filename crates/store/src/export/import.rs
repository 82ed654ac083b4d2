//! From rows of an export to commits.

use super::ExportTable;
use super::input::{ImportError, Input, InputRow};
use super::log::CallNumbers;
use super::object::{self, Iso, Observed};
use super::reference::{self, checked, host_of, shown};
use crate::Store;
use kittiwake_model::{
    Alias, Commit, Identity, ImportedCalls, ImportedHistory, ImportedId, ImportedLink,
    ImportedObject, ImportedRow, ImportedSpell, Link, LinkTable, Name, Reference, Table,
    VanishedRelation, WorldTime,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Rows that are committed together, all or none of them.
const BATCH_ROWS_MAX: usize = 1_000;
/// What may wait in memory for its commit, as read.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Rows that were taken in, by table.
    pub rows: BTreeMap<ExportTable, u64>,
    /// Rows that tell of another file's calls, or that the store derives from others.
    pub skipped: BTreeMap<ExportTable, u64>,
    /// Rows that the store did not have.
    pub rows_new: u64,
    /// Rows that are not what they were.
    pub rows_changed: u64,
}

/// Reads exports into a store.
#[derive(Debug)]
pub struct Importer<'s> {
    store: &'s dyn Store,
    calls: CallNumbers,
    report: ImportReport,
    batch: Vec<ImportedRow>,
    batch_bytes: usize,
    /// Commits of the export that is being read.
    commits: u64,
    /// The store has not drawn all consequences yet.
    has_backlog: bool,
}

impl<'s> Importer<'s> {
    pub fn new(store: &'s dyn Store) -> Self {
        Self {
            store,
            calls: CallNumbers::Exported,
            report: ImportReport::default(),
            batch: Vec::new(),
            batch_bytes: 0,
            commits: 0,
            has_backlog: false,
        }
    }

    /// For rows of a store whose log is joined to ours.
    pub(crate) fn joining(store: &'s dyn Store, after: i64) -> Self {
        Self {
            calls: CallNumbers::Joined { after },
            ..Self::new(store)
        }
    }

    pub fn report(&self) -> &ImportReport {
        &self.report
    }

    /// Reads one export to its end. `progress` is told after every commit.
    pub async fn read(
        &mut self,
        input: Input,
        progress: &mut (dyn FnMut(&ImportReport) + Send),
    ) -> Result<(), ImportError> {
        let mut go_on = |report: &ImportReport| {
            progress(report);
            ControlFlow::Continue(())
        };
        self.read_while(input, &mut go_on).await
    }

    /// Reads one export to its end, or until it is told to stop, which leaves what was committed.
    pub(crate) async fn read_while(
        &mut self,
        mut input: Input,
        progress: &mut (dyn FnMut(&ImportReport) -> ControlFlow<()> + Send),
    ) -> Result<(), ImportError> {
        let mut committed = 0;
        loop {
            let (place, row) = match input.next() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err((line, message)) => return Err(self.fail(&input, line, message, committed)),
            };
            let (line, table) = (place.line, row.table);
            match imported(&row, self.calls) {
                Ok(Some(row)) => {
                    *self.report.rows.entry(table).or_default() += 1;
                    self.batch_bytes += place.bytes;
                    self.batch.push(row);
                }
                Ok(None) => *self.report.skipped.entry(table).or_default() += 1,
                Err(message) => return Err(self.fail(&input, line, message, committed)),
            }
            if self.batch.len() >= BATCH_ROWS_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
                self.commit().await?;
                committed = line;
                if progress(&self.report).is_break() {
                    return Ok(());
                }
            }
        }
        self.commit().await?;
        self.settle().await?;
        let _ = progress(&self.report);
        Ok(())
    }

    /// Lets the store finish what follows from the rows, which it does in bounded steps. What waits
    /// for the rules of a crawl goes on waiting, so the commits for it are bounded as well.
    async fn settle(&mut self) -> Result<(), ImportError> {
        let commits_max = 16 + 4 * std::mem::take(&mut self.commits);
        for _ in 0..commits_max {
            if !self.has_backlog {
                break;
            }
            let reports = self.store.commit(vec![Commit::default()]).await?;
            self.has_backlog = reports.iter().any(|report| report.backlog);
        }
        Ok(())
    }

    /// Rows that wait for a commit are given up: whoever mends the line imports the whole again.
    fn fail(&mut self, input: &Input, line: u64, message: String, committed: u64) -> ImportError {
        self.batch.clear();
        self.batch_bytes = 0;
        ImportError::Line {
            name: input.name.clone(),
            line,
            message,
            committed,
        }
    }

    async fn commit(&mut self) -> Result<(), ImportError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.batch_bytes = 0;
        let commit = Commit {
            imported: std::mem::take(&mut self.batch),
            imported_calls: match self.calls {
                CallNumbers::Exported => ImportedCalls::Foreign,
                CallNumbers::Joined { .. } => ImportedCalls::Own,
            },
            ..Commit::default()
        };
        self.commits += 1;
        for report in self.store.commit(vec![commit]).await? {
            self.has_backlog = report.backlog;
            self.report.rows_new += u64::from(report.rows_new);
            self.report.rows_changed += u64::from(report.rows_changed);
        }
        Ok(())
    }
}

/// What a row brings to a store; nothing, if it is none of the store's business.
fn imported(row: &InputRow<'_>, calls: CallNumbers) -> Result<Option<ImportedRow>, String> {
    if let Some(table) = row.table.objects() {
        return object_row(table, row, calls);
    }
    Ok(Some(match row.table {
        ExportTable::Ids => ImportedRow::Id(id_row(row)?),
        ExportTable::UserRelations => {
            let ends = (end(row, "source", "source")?, end(row, "target", "target")?);
            link_row(row, LinkTable::UserRelations, "follow".into(), ends)?
        }
        ExportTable::UserTags => {
            let ends = (end(row, "user", "user")?, end(row, "tag", "tag")?);
            link_row(row, LinkTable::UserTags, "tag".into(), ends)?
        }
        ExportTable::Links => {
            let ends = (end(row, "from", "from_id")?, end(row, "to", "to_id")?);
            let kind = reference::word(&row.some_text("kind")?)
                .map_err(|message| format!("kind: {message}"))?;
            link_row(row, LinkTable::Links, kind, ends)?
        }
        ExportTable::InvalidUsers => ImportedRow::Spell(spell_row(row)?),
        ExportTable::InvalidRelations => vanished_row(row)?,
        ExportTable::Counts => history_row(row, "counts".into(), "counts", calls)?,
        ExportTable::Versions => {
            let group = reference::word(&row.some_text("group")?)
                .map_err(|message| format!("group: {message}"))?;
            history_row(row, group, "fields", calls)?
        }
        _ => return Ok(None),
    }))
}

/// The object at one end of a relation.
fn end(row: &InputRow<'_>, prefix: &str, id: &str) -> Result<Identity, String> {
    row.object(&format!("{prefix}_network"), &format!("{prefix}_type"), id)
}

fn id_row(row: &InputRow<'_>) -> Result<ImportedId, String> {
    let name = row.some_text("alias")?;
    let host = row.some_text("host")?;
    let movable = row.boolean("is_movable")?.unwrap_or(false);
    let (first_seen, last_seen) = seen(row)?;
    if name.is_empty() && (movable || !host.is_empty()) {
        return Err("a canonical id neither moves nor has a host".to_owned());
    }
    Ok(ImportedId {
        object: row.own()?,
        alias: Alias {
            name: match name.as_str() {
                "" => "".into(),
                name => reference::word(name).map_err(|message| format!("alias: {message}"))?,
            },
            id: checked(&row.some_text("value")?).map_err(|message| format!("value: {message}"))?,
            host: host_of(&host).map_err(|message| format!("host: {message}"))?,
            movable,
        },
        first_seen,
        last_seen,
    })
}

/// From the first to the last sight.
fn seen(row: &InputRow<'_>) -> Result<(WorldTime, WorldTime), String> {
    let (first, last) = (row.some_time("first_seen")?, row.some_time("last_seen")?);
    if first > last {
        return Err("last_seen lies before first_seen".to_owned());
    }
    Ok((first, last))
}

fn object_row(
    table: Table,
    row: &InputRow<'_>,
    calls: CallNumbers,
) -> Result<Option<ImportedRow>, String> {
    let identity = row.own()?;
    // A comment of which nothing was observed is a post: the store derives it.
    let observed = row.json("observed")?;
    if table == Table::Comments && observed.is_none_or(|observed| observed == "{}") {
        return Ok(None);
    }
    let groups = object::groups(table, row, &identity, calls)?;
    if groups.is_empty() {
        return Ok(None);
    }
    Ok(Some(ImportedRow::Object(ImportedObject {
        groups,
        deleted: row.time("deleted")?,
        identity,
        table,
    })))
}

fn link_row(
    row: &InputRow<'_>,
    table: LinkTable,
    kind: Name,
    (from, to): (Identity, Identity),
) -> Result<ImportedRow, String> {
    let (first_seen, last_seen) = seen(row)?;
    Ok(ImportedRow::Link(ImportedLink {
        link: Link {
            table,
            kind,
            from: Reference::Identity(Box::new(from)),
            to: Reference::Identity(Box::new(to)),
            at: row.time("at")?,
            walk: None,
        },
        first_seen,
        last_seen,
    }))
}

fn vanished_row(row: &InputRow<'_>) -> Result<ImportedRow, String> {
    let (first_seen, last_seen) = seen(row)?;
    Ok(ImportedRow::VanishedRelation(VanishedRelation {
        source: end(row, "source", "source")?,
        target: end(row, "target", "target")?,
        first_seen,
        last_seen,
        vanished: row.some_time("vanished")?,
    }))
}

fn spell_row(row: &InputRow<'_>) -> Result<ImportedSpell, String> {
    let reason = row.some_text("reason")?;
    Ok(ImportedSpell {
        user: row.own()?,
        reason: reason
            .parse()
            .map_err(|_| format!("reason: {} is no outcome", shown(&reason)))?,
        from: row.some_time("from")?,
        until: row.time("until")?,
    })
}

fn history_row(
    row: &InputRow<'_>,
    group: Name,
    column: &str,
    calls: CallNumbers,
) -> Result<ImportedRow, String> {
    let identity = row.own()?;
    let observed = Observed {
        at: Iso(row.some_time("observed")?.0),
        log: row.integer("log")?.unwrap_or(0),
    };
    Ok(ImportedRow::History(ImportedHistory {
        stamp: object::stamp(observed, calls)?,
        fields: object::history(row, column, &identity)?,
        group,
        object: identity,
    }))
}
