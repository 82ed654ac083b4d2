//! One commit, written.

use super::familiar::Mark;
use super::found::Found;
use super::read::LEARNT;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{
    Commit, CommitReport, Cursor, CursorState, Filed, FrontierRow, Key, Learnt, LogRow, RunUpdate,
    Stamp,
};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The most that a policy may remember of one subject.
const STATE_BYTES_MAX: usize = 64;

impl<'a> Work<'a> {
    /// Writes a commit into the transaction. `marks` are those of its
    /// objects; `now_us` is the machine's time, for the log.
    pub(super) fn apply(
        &mut self,
        commit: &'a Commit,
        marks: &[Mark],
        now_us: i64,
    ) -> Result<CommitReport, StoreError> {
        self.report = CommitReport::default();
        self.found = Found::default();
        self.filing = Duration::ZERO;
        let log = commit.log.as_ref().map(|_| self.memory.next_log);
        self.memory.next_log += i64::from(log.is_some());
        self.stamp = Stamp {
            at_us: commit.at.0,
            log: log.unwrap_or(0),
        };
        self.rules = commit.expansion.as_deref();
        if let Some(rules) = &commit.expansion {
            self.adopt(rules)?;
        }
        if let Some(update) = &commit.run {
            self.write_run(update)?;
        }
        // Whatever the objects are called is settled before anything points at them.
        let mut objects = Vec::with_capacity(commit.objects.len());
        for (object, mark) in commit.objects.iter().zip(marks) {
            objects.push(self.resolve(
                &object.identity,
                mark.place,
                &mark.hashes,
                object.known_as,
            )?);
        }
        self.write_objects(&commit.objects, marks, &objects)?;
        self.write_links(&commit.links, &objects)?;
        self.write_discoveries(&commit.discoveries, &objects)?;
        self.write_imported(&commit.imported, commit.imported_calls)?;
        for outcome in &commit.outcomes {
            self.write_outcome(outcome)?;
        }
        for cursor in &commit.cursors {
            self.write_cursor(cursor)?;
        }
        for sweep in &commit.sweeps {
            self.begin_sweep(sweep)?;
        }
        for row in &commit.frontier {
            self.write_frontier(row)?;
        }
        for learnt in &commit.learnt {
            self.write_learnt(learnt)?;
        }
        for id in &commit.controls_done {
            self.send(
                "UPDATE control SET done_us = ?2 WHERE id = ?1 AND done_us IS NULL",
                cells![*id, now_us],
            )?;
        }
        self.work_off()?;
        if let (Some(row), Some(log)) = (&commit.log, log) {
            self.write_log(log, row, now_us)?;
            if let Some(body) = &commit.raw {
                self.send(
                    "INSERT INTO raw(log, body) VALUES (?1, ?2)",
                    cells![log, &**body],
                )?;
            }
        }
        self.report.log = log;
        Ok(std::mem::take(&mut self.report))
    }

    fn write_run(&mut self, update: &RunUpdate) -> Result<(), StoreError> {
        match update {
            RunUpdate::Start(run) => {
                self.send(
                    "INSERT INTO definitions(digest, network, text) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO NOTHING",
                    cells![&*run.definition, &*run.network, &*run.definition_text],
                )?;
                let number = self.memory.next_run;
                self.memory.next_run += 1;
                self.send(
                    "INSERT INTO runs(id, network, host, definition, clock, settings, started_us)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    cells![
                        number,
                        &*run.network,
                        &*run.host,
                        &*run.definition,
                        &*run.clock,
                        &*run.settings,
                        run.started.0
                    ],
                )?;
                self.report.run = Some(number);
            }
            RunUpdate::End { run, end } => {
                self.send(
                    "UPDATE runs SET ended_us = ?2, end_reason = ?3 WHERE id = ?1",
                    cells![*run, end.ended.0, &*end.reason],
                )?;
                self.report.run = Some(*run);
            }
        }
        Ok(())
    }

    fn write_cursor(&mut self, cursor: &Cursor) -> Result<(), StoreError> {
        let next = match &cursor.state {
            CursorState::Next(next) => Some(&**next),
            CursorState::NotKept => Some(""),
            CursorState::Complete => None,
        };
        let subject = self.followed(cursor.subject);
        self.kind_of(subject)?;
        self.send(
            "INSERT INTO cursors(subject, query, walk, digest, pages, next, checkpoint, mark_next,
                                 mark, started_us, items)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (subject, query) DO UPDATE SET
               walk = excluded.walk, digest = excluded.digest, pages = excluded.pages,
               next = excluded.next, checkpoint = excluded.checkpoint,
               mark_next = excluded.mark_next, mark = excluded.mark,
               started_us = excluded.started_us, items = excluded.items",
            cells![
                subject,
                &*cursor.query,
                cursor.walk,
                &*cursor.digest,
                cursor.pages,
                next,
                cursor.checkpoint.as_deref(),
                cursor.mark_next.as_deref(),
                cursor.mark.as_deref(),
                cursor.started.0,
                cursor.items
            ],
        )?;
        Ok(())
    }

    fn write_frontier(&mut self, row: &FrontierRow) -> Result<(), StoreError> {
        let begun = Instant::now();
        if row.state.len() > STATE_BYTES_MAX {
            return Err(StoreError::invalid(format!(
                "a policy's memory of {} bytes for {}; at most {STATE_BYTES_MAX} are kept",
                row.state.len(),
                row.robot
            )));
        }
        let subject = self.followed(row.subject);
        self.kind_of(subject)?;
        self.send(
            "INSERT INTO frontier(subject, robot, lane, visits, visited_us, due_us, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (subject, robot) DO UPDATE SET lane = excluded.lane, visits = excluded.visits,
               visited_us = excluded.visited_us, due_us = excluded.due_us,
               state = excluded.state",
            cells![
                subject,
                &*row.robot,
                &*row.lane,
                row.visits,
                row.visited.map(|at| at.0),
                row.due.0,
                &*row.state
            ],
        )?;
        self.report.filed.push(Filed {
            subject: Key(subject),
            robot: row.robot.clone(),
            lane: row.lane.clone(),
            visited: row.visited,
            due: row.due,
            state: row.state.clone(),
        });
        self.filing += begun.elapsed();
        Ok(())
    }

    fn write_learnt(&self, learnt: &Learnt) -> Result<(), StoreError> {
        let name = format!("{LEARNT}{}", learnt.lane);
        let mut value = String::with_capacity(2 * learnt.bytes.len());
        for byte in &learnt.bytes {
            let _ = write!(value, "{byte:02x}");
        }
        self.send(
            "INSERT INTO rules(name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            cells![&*name, &*value],
        )
    }

    fn write_log(&mut self, log: i64, row: &LogRow, now_us: i64) -> Result<(), StoreError> {
        let subjects: Vec<i64> = row
            .subjects
            .iter()
            .map(|subject| self.followed(*subject))
            .collect();
        let found = self.found.take_text();
        let json = |list: serde_json::Result<String>| {
            list.map_err(|error| StoreError::invalid(error.to_string()))
        };
        self.send(
            "INSERT INTO query_log(id, query, subjects, target, cursor, credential, node, status,
               outcome, reason, at_us, scheduled_us, sent_us, answered_us, committed_us, budgets,
               rank_us, read_us, seed_us, bytes, mended, rows_new, rows_changed, definition,
               found)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
            cells![
                log,
                &*row.query,
                json(serde_json::to_string(&subjects))?,
                &*row.target,
                &*row.cursor,
                &*row.credential,
                &*row.node,
                row.status,
                row.outcome.code(),
                &*row.reason,
                self.at_us(),
                row.scheduled.0,
                row.sent.0,
                row.answered.0,
                now_us,
                json(serde_json::to_string(&row.budgets))?,
                row.rank_us,
                row.read_us,
                row.seed_us.saturating_add(self.filing.as_micros() as u32),
                i64::try_from(row.bytes).unwrap_or(i64::MAX),
                row.mended,
                self.report.rows_new,
                self.report.rows_changed,
                &*row.definition,
                found
            ],
        )?;
        Ok(())
    }
}
