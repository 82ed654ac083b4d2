//! The one thread that writes.
//!
//! It has the writing connection to itself. Whatever waits when it is free goes into one transaction, so
//! that many callers share one commit; what one caller sent together is never divided.

use super::checkpoint::Checkpoints;
use super::familiar::{Familiar, Mark};
use super::statements::Statements;
use super::work::{Memory, Work};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Commit, CommitReport};
use rusqlite::Connection;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Callers that may wait at once; more wait outside, holding their data.
pub(super) const WAITING_MAX: usize = 64;
/// Rows after which a transaction takes in no more callers.
const GROUP_ROWS_MAX: usize = 8_000;
/// Steps that one transaction takes along what follows from what is stored.
const STEPS_MAX: usize = 2_000;
/// The time without a request after which the writer catches up on what it has put off.
const PAUSE: Duration = Duration::from_millis(20);
/// Times that may be put off, and for how long, while callers wait.
const TIMES_MAX: usize = 65_536;
const TIMES_WAIT_US: i64 = 60_000_000;

/// What the writer can be asked for.
#[derive(Debug)]
pub(super) enum Request {
    Write(Batch),
    /// The most pages that the file may have.
    LimitPages(u32, oneshot::Sender<Result<(), StoreError>>),
    /// The most steps that one transaction may take.
    LimitSteps(usize, oneshot::Sender<Result<(), StoreError>>),
    /// That nothing is put off any longer.
    CatchUp(oneshot::Sender<Result<(), StoreError>>),
}

/// What one caller wants to have written.
#[derive(Debug)]
pub(super) struct Batch {
    pub commits: Vec<Marked>,
    pub answer: oneshot::Sender<Answered>,
}

/// A commit with the marks of its objects.
#[derive(Debug)]
pub(super) struct Marked {
    pub commit: Commit,
    pub marks: Vec<Mark>,
}

/// What became of a caller's commits; and the commits, so that the caller's thread has the work of
/// taking them apart.
#[derive(Debug)]
pub(super) struct Answered {
    pub reports: Result<Vec<CommitReport>, StoreError>,
    pub _commits: Vec<Marked>,
}

#[derive(Debug)]
pub(super) struct Writer<'c> {
    connection: &'c Connection,
    memory: Memory,
    checkpoints: Checkpoints,
    statements: Statements<'c>,
    /// Set when it is no longer certain what the file holds.
    poisoned: Option<StoreError>,
    steps_max: usize,
    /// When times that were put off were last written.
    times_us: i64,
}

impl<'c> Writer<'c> {
    /// `memory` is what was loaded from the connection.
    pub(super) fn new(
        connection: &'c Connection,
        memory: Memory,
        checkpoints: Checkpoints,
    ) -> Self {
        Self {
            connection,
            memory,
            checkpoints,
            statements: Statements::new(connection),
            poisoned: None,
            steps_max: STEPS_MAX,
            times_us: now_us(),
        }
    }

    /// Serves requests until nobody can send any more, then leaves a tidy file. `clock` counts the
    /// time in which nobody asks for anything.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Request>, clock: &Runtime) {
        while let Some(first) = self.next_request(&mut requests, clock) {
            let mut next = Some(first);
            let mut group = Vec::new();
            let mut rows = 0;
            while let Some(request) = next.take() {
                match request {
                    Request::Write(batch) => {
                        rows += rows_in(&batch.commits);
                        group.push(batch);
                    }
                    Request::LimitPages(pages, answer) => {
                        let _ = answer.send(self.limit_pages(pages));
                    }
                    Request::LimitSteps(steps, answer) => {
                        self.steps_max = steps;
                        let _ = answer.send(Ok(()));
                    }
                    Request::CatchUp(answer) => {
                        self.catch_up();
                        let _ = answer.send(Ok(()));
                    }
                }
                if rows < GROUP_ROWS_MAX {
                    next = requests.try_recv().ok();
                }
            }
            if !group.is_empty() {
                // In the crate's own tests everything that can be put off is.
                let is_pressed = group.len() > 1 || cfg!(test);
                self.serve(group, is_pressed);
                self.checkpoints.committed(self.connection, rows);
            }
        }
        self.catch_up();
        let tidied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = tidied {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it stays valid");
        }
    }

    /// The next request; before the writer sleeps, nothing is put off any longer.
    fn next_request(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
        clock: &Runtime,
    ) -> Option<Request> {
        if self.memory.times.len() > 0 {
            let waited = clock.block_on(async { timeout(PAUSE, requests.recv()).await });
            if let Ok(next) = waited {
                return next;
            }
            self.catch_up();
        }
        requests.blocking_recv()
    }

    /// Writes what was put off, if anything. Should it fail, it stays put off.
    fn catch_up(&mut self) {
        if self.memory.times.len() == 0 || self.poisoned.is_some() {
            return;
        }
        let caught_up = self.write(&[], false);
        if let Err(error) = caught_up {
            tracing::warn!(%error, "times of last sights could not be written yet");
        }
    }

    fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        Ok(())
    }

    fn serve(&mut self, group: Vec<Batch>, is_pressed: bool) {
        let (answers, commits): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|batch| (batch.answer, batch.commits))
            .unzip();
        let reports: Vec<_> = match self.write(&commits, is_pressed) {
            Ok(reports) => reports.into_iter().map(Ok).collect(),
            // A fault in one caller's commits must not fail the others.
            Err(error) if error.kind() == StoreErrorKind::Invalid && commits.len() > 1 => commits
                .iter()
                .map(|commits| {
                    let mut reports = self.write(std::slice::from_ref(commits), false)?;
                    Ok(reports.pop().unwrap_or_default())
                })
                .collect(),
            Err(error) => answers.iter().map(|_| Err(error.clone())).collect(),
        };
        for ((answer, reports), commits) in answers.into_iter().zip(reports).zip(commits) {
            let _ = answer.send(Answered {
                reports,
                _commits: commits,
            });
        }
    }

    /// Writes all commits of all callers in one transaction.
    fn write(
        &mut self,
        group: &[Vec<Marked>],
        is_pressed: bool,
    ) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        if let Some(error) = &self.poisoned {
            return Err(error.clone());
        }
        match self.attempt(group, is_pressed) {
            Ok(reports) => Ok(reports),
            Err(error) => {
                self.recover(&error);
                Err(error)
            }
        }
    }

    fn attempt(
        &mut self,
        group: &[Vec<Marked>],
        is_pressed: bool,
    ) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let now_us = now_us();
        let mut work = Work::new(
            self.connection,
            &mut self.memory,
            &self.statements,
            self.steps_max,
        );
        let mut reports = Vec::with_capacity(group.len());
        for commits in group {
            let mut own = Vec::with_capacity(commits.len());
            for Marked { commit, marks } in commits {
                own.push(work.apply(commit, marks, now_us)?);
            }
            reports.push(own);
        }
        let is_due =
            !is_pressed || work.unwritten() > TIMES_MAX || now_us - self.times_us > TIMES_WAIT_US;
        if is_due {
            work.write_times()?;
        } else {
            work.put_off_times()?;
        }
        work.move_places()?;
        let backlog = work.store_backlog()?;
        self.connection.execute_batch("COMMIT")?;
        if is_due {
            self.times_us = now_us;
        }
        for report in reports.iter_mut().flatten() {
            report.backlog = backlog;
        }
        Ok(reports)
    }

    /// Brings file and memory back to where they were before; if that cannot be done for
    /// certain, nothing more is accepted.
    fn recover(&mut self, cause: &StoreError) {
        let rolled_back =
            self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok();
        let memory = if rolled_back {
            Memory::load(self.connection).ok()
        } else {
            None
        };
        if let Some(mut memory) = memory {
            memory.familiar = Familiar::new(self.memory.familiar.marker.clone());
            self.memory = memory;
            return;
        }
        self.poisoned = Some(StoreError::new(
            StoreErrorKind::Poisoned,
            format!(
                "an earlier failure left the file in doubt, nothing more is written; start again \
                 to recover ({cause})"
            ),
        ));
    }
}

fn rows_in(commits: &[Marked]) -> usize {
    commits
        .iter()
        .map(|Marked { commit, .. }| {
            1 + commit.objects.len() + commit.links.len() + commit.frontier.len()
        })
        .sum()
}

/// The machine's time: the only thing in a store that is not given by the caller, because a
/// caller cannot know when its commit will be written.
pub(super) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;
    use kittiwake_model::{Alias, Group, Identity, Object, Standing, Table, Value};

    fn connection() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        connection
    }

    fn writer(connection: &Connection) -> Writer<'_> {
        let (checkpoints, _) = super::super::checkpoint::pair();
        Writer::new(connection, Memory::load(connection).unwrap(), checkpoints)
    }

    fn commit(writer: &mut Writer<'_>) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        let commit = Commit {
            raw: None,
            run: Some(kittiwake_model::RunUpdate::End {
                run: 1,
                end: kittiwake_model::RunEnd {
                    ended: kittiwake_model::RealTime(1),
                    reason: String::new(),
                },
            }),
            ..Commit::default()
        };
        let marks = Vec::new();
        writer.write(&[vec![Marked { commit, marks }]], false)
    }

    /// A commit at a time with users who are called so.
    fn tell(writer: &mut Writer<'_>, at_us: i64, names: &[String]) {
        let user = |name: &String| Object {
            table: Table::Users,
            identity: Identity {
                network: "mastodon".into(),
                kind: "user".into(),
                canonical: Some(format!("https://sea.example/{name}")),
                aliases: vec![Alias {
                    name: "handle".into(),
                    id: name.clone(),
                    host: String::new(),
                    movable: true,
                }],
            },
            known_as: None,
            standing: Standing::Present,
            groups: vec![Group {
                name: "card".into(),
                fields: vec![("display_name".into(), Value::Text(name.clone()))],
            }],
        };
        let commit = Commit {
            at: kittiwake_model::WorldTime(at_us),
            objects: names.iter().map(user).collect(),
            ..Commit::default()
        };
        let marks = writer.memory.familiar.marker.marks(&commit);
        let group = [vec![Marked { commit, marks }]];
        writer.write(&group, true).unwrap();
    }

    fn text(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    const TIMES: &str = "SELECT observed || (SELECT max(last_seen_us) FROM ids) FROM users";

    #[test]
    fn a_kill_loses_no_time_that_was_put_off() {
        let connection = connection();
        let names = [String::from("ada")];
        let mut killed = writer(&connection);
        tell(&mut killed, 10, &names);
        tell(&mut killed, 20, &names);
        tell(&mut killed, 30, &names);
        drop(killed);
        assert_eq!(text(&connection, TIMES), r#"{"card":[10,0,1]}10"#);
        // Whoever opens the file knows of them: an older answer changes nothing.
        let mut next = writer(&connection);
        tell(&mut next, 25, &names);
        drop(next);
        let mut last = writer(&connection);
        last.catch_up();
        assert_eq!(text(&connection, TIMES), r#"{"card":[30,0,1]}30"#);
        let left = text(&connection, "SELECT count(*) || '' FROM put_off");
        assert_eq!(left, "0");
    }

    #[test]
    fn a_failure_loses_no_time_that_was_put_off() {
        let connection = connection();
        let names = [String::from("ada")];
        let mut writer = writer(&connection);
        tell(&mut writer, 10, &names);
        tell(&mut writer, 20, &names);
        writer
            .connection
            .execute_batch("ALTER TABLE runs RENAME TO away")
            .unwrap();
        assert!(commit(&mut writer).is_err());
        writer.catch_up();
        assert_eq!(text(&connection, TIMES), r#"{"card":[20,0,1]}20"#);
    }

    #[test]
    fn ids_are_found_again_whenever_the_program_ends() {
        let connection = connection();
        let names: Vec<String> = (0..60).map(|number| format!("user{number}")).collect();
        for (place, chunk) in names.chunks(3).enumerate() {
            // Killed after every transaction, often in the middle of a stretch.
            tell(&mut writer(&connection), 10 + place as i64, chunk);
            tell(&mut writer(&connection), 10 + place as i64, &names[..place]);
        }
        let found = "SELECT count(DISTINCT key) || ' ' || count(*) FROM ids";
        assert_eq!(text(&connection, found), "60 120");
        let moved = text(&connection, "SELECT count(*) || '' FROM id_places");
        assert!(
            (60..=120).contains(&moved.parse::<i32>().unwrap()),
            "{moved}"
        );
    }

    #[test]
    fn after_a_failure_that_leaves_doubt_nothing_more_is_written() {
        let connection = connection();
        let mut writer = writer(&connection);
        commit(&mut writer).unwrap();
        // The commit fails, and what the file holds cannot be read again either.
        writer
            .connection
            .execute_batch("DROP TABLE runs; DROP TABLE key_merges")
            .unwrap();
        assert!(commit(&mut writer).is_err());
        let error = commit(&mut writer).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Poisoned);
        assert!(error.to_string().contains("start again"), "{error}");
    }

    #[test]
    fn after_a_failure_that_was_undone_writing_goes_on() {
        let connection = connection();
        let mut writer = writer(&connection);
        writer
            .connection
            .execute_batch("ALTER TABLE runs RENAME TO away")
            .unwrap();
        assert!(commit(&mut writer).is_err());
        writer
            .connection
            .execute_batch("ALTER TABLE away RENAME TO runs")
            .unwrap();
        commit(&mut writer).unwrap();
    }
}
