//! Two keys turn out to be one object: everything of the loser becomes the winner's.
//!
//! All of it happens in the transaction that found out, so that no moment exists at which a
//! part of the rows speaks of one object and a part of two.

use super::brings::is_writing;
use super::relax::{HandOnList, Place};
use super::work::Work;
use crate::StoreError;
use kittiwake_model::{ColumnKind, Filed, Key, Table, WorldTime};
use rusqlite::params;

/// Rows that move as they are, or give way to the winner's; ?1 loser, ?2 winner.
const MOVES: &[&str] = &[
    // Ids: where both have the same one, the winner's row takes in the loser's.
    "UPDATE ids SET first_seen_us = min(ids.first_seen_us, lost.first_seen_us),
                    last_seen_us = max(ids.last_seen_us, lost.last_seen_us)
     FROM ids AS lost
     WHERE ids.key = ?2 AND lost.key = ?1 AND lost.hash = ids.hash AND lost.id = ids.id
       AND lost.host = ids.host AND lost.alias = ids.alias AND lost.type = ids.type
       AND lost.network = ids.network",
    "DELETE FROM ids WHERE key = ?1 AND EXISTS (
       SELECT 1 FROM ids AS kept
       WHERE kept.key = ?2 AND kept.hash = ids.hash AND kept.id = ids.id
         AND kept.host = ids.host AND kept.alias = ids.alias AND kept.type = ids.type
         AND kept.network = ids.network)",
    "UPDATE ids SET key = ?2 WHERE key = ?1",
    "INSERT OR IGNORE INTO versions SELECT ?2, grp, observed_us, log, fields
     FROM versions WHERE key = ?1",
    "DELETE FROM versions WHERE key = ?1",
    "INSERT OR IGNORE INTO counts SELECT ?2, observed_us, log, counts
     FROM counts WHERE key = ?1",
    "DELETE FROM counts WHERE key = ?1",
    // Relations: both ends, without what would be a relation to oneself.
    "INSERT INTO user_relations
     SELECT ?2, target, first_seen_us, last_seen_us, following_walk, followers_walk
     FROM user_relations WHERE source = ?1 AND target NOT IN (?1, ?2)
     ON CONFLICT DO UPDATE SET
       first_seen_us = min(first_seen_us, excluded.first_seen_us),
       last_seen_us = max(last_seen_us, excluded.last_seen_us),
       following_walk = max(coalesce(following_walk, excluded.following_walk),
                            coalesce(excluded.following_walk, following_walk)),
       followers_walk = max(coalesce(followers_walk, excluded.followers_walk),
                            coalesce(excluded.followers_walk, followers_walk))",
    "DELETE FROM user_relations WHERE source = ?1",
    "INSERT INTO user_relations
     SELECT source, ?2, first_seen_us, last_seen_us, following_walk, followers_walk
     FROM user_relations WHERE target = ?1 AND source <> ?2
     ON CONFLICT DO UPDATE SET
       first_seen_us = min(first_seen_us, excluded.first_seen_us),
       last_seen_us = max(last_seen_us, excluded.last_seen_us),
       following_walk = max(coalesce(following_walk, excluded.following_walk),
                            coalesce(excluded.following_walk, following_walk)),
       followers_walk = max(coalesce(followers_walk, excluded.followers_walk),
                            coalesce(excluded.followers_walk, followers_walk))",
    "DELETE FROM user_relations WHERE target = ?1",
    "INSERT OR IGNORE INTO invalid_relations
     SELECT ?2, target, first_seen_us, last_seen_us, vanished_us
     FROM invalid_relations WHERE source = ?1 AND target NOT IN (?1, ?2)",
    "DELETE FROM invalid_relations WHERE source = ?1",
    "INSERT OR IGNORE INTO invalid_relations
     SELECT source, ?2, first_seen_us, last_seen_us, vanished_us
     FROM invalid_relations WHERE target = ?1 AND source <> ?2",
    "DELETE FROM invalid_relations WHERE target = ?1",
    // A relation that one of the two still has did not vanish.
    "DELETE FROM invalid_relations WHERE source = ?2 AND EXISTS (
       SELECT 1 FROM user_relations AS r
       WHERE r.source = ?2 AND r.target = invalid_relations.target)",
    "DELETE FROM invalid_relations WHERE target = ?2 AND EXISTS (
       SELECT 1 FROM user_relations AS r
       WHERE r.target = ?2 AND r.source = invalid_relations.source)",
    "INSERT INTO user_tags SELECT ?2, tag, first_seen_us, last_seen_us
     FROM user_tags WHERE user = ?1
     ON CONFLICT DO UPDATE SET first_seen_us = min(first_seen_us, excluded.first_seen_us),
                               last_seen_us = max(last_seen_us, excluded.last_seen_us)",
    "DELETE FROM user_tags WHERE user = ?1",
    "INSERT INTO user_tags SELECT user, ?2, first_seen_us, last_seen_us
     FROM user_tags WHERE tag = ?1
     ON CONFLICT DO UPDATE SET first_seen_us = min(first_seen_us, excluded.first_seen_us),
                               last_seen_us = max(last_seen_us, excluded.last_seen_us)",
    "DELETE FROM user_tags WHERE tag = ?1",
    "INSERT INTO links SELECT kind, ?2, to_key, at_us, first_seen_us, last_seen_us
     FROM links WHERE from_key = ?1
     ON CONFLICT DO UPDATE SET
       at_us = min(coalesce(at_us, excluded.at_us), coalesce(excluded.at_us, at_us)),
       first_seen_us = min(first_seen_us, excluded.first_seen_us),
       last_seen_us = max(last_seen_us, excluded.last_seen_us)",
    "DELETE FROM links WHERE from_key = ?1",
    "INSERT INTO links SELECT kind, from_key, ?2, at_us, first_seen_us, last_seen_us
     FROM links WHERE to_key = ?1
     ON CONFLICT DO UPDATE SET
       at_us = min(coalesce(at_us, excluded.at_us), coalesce(excluded.at_us, at_us)),
       first_seen_us = min(first_seen_us, excluded.first_seen_us),
       last_seen_us = max(last_seen_us, excluded.last_seen_us)",
    "DELETE FROM links WHERE to_key = ?1",
    "INSERT OR IGNORE INTO invalid_users SELECT ?2, reason, from_us, until_us
     FROM invalid_users WHERE key = ?1",
    "DELETE FROM invalid_users WHERE key = ?1",
    // Of two open spells the earlier one says it all.
    "DELETE FROM invalid_users WHERE key = ?2 AND until_us IS NULL AND from_us > (
       SELECT min(from_us) FROM invalid_users WHERE key = ?2 AND until_us IS NULL)",
    "INSERT INTO outcomes SELECT ?2, query, outcome, reason, at_us, log, times
     FROM outcomes WHERE key = ?1
     ON CONFLICT DO UPDATE SET
       times = times + excluded.times,
       outcome = CASE WHEN (excluded.at_us, excluded.log) > (at_us, log)
                      THEN excluded.outcome ELSE outcome END,
       reason = CASE WHEN (excluded.at_us, excluded.log) > (at_us, log)
                     THEN excluded.reason ELSE reason END,
       log = CASE WHEN (excluded.at_us, excluded.log) > (at_us, log)
                  THEN excluded.log ELSE log END,
       at_us = max(at_us, excluded.at_us)",
    "DELETE FROM outcomes WHERE key = ?1",
    "INSERT INTO subjects SELECT ?2, depth FROM subjects WHERE key = ?1
     ON CONFLICT DO UPDATE SET depth = min(depth, excluded.depth)",
    "DELETE FROM subjects WHERE key = ?1",
    // The robot that has been there more often knows more; nobody waits longer than before.
    "INSERT INTO frontier(subject, robot, lane, visits, visited_us, due_us, state)
     SELECT ?2, robot, lane, visits, visited_us, due_us, state
     FROM frontier WHERE subject = ?1
     ON CONFLICT DO UPDATE SET
       visited_us = max(coalesce(visited_us, excluded.visited_us),
                        coalesce(excluded.visited_us, visited_us)),
       state = CASE WHEN excluded.visits > visits THEN excluded.state ELSE state END,
       lane = CASE WHEN excluded.visits > visits THEN excluded.lane ELSE lane END,
       due_us = CASE WHEN excluded.visits > visits THEN excluded.due_us
                     WHEN excluded.visits < visits THEN due_us
                     ELSE min(due_us, excluded.due_us) END,
       visits = max(visits, excluded.visits)",
    "DELETE FROM frontier WHERE subject = ?1",
    "INSERT INTO cursors(subject, query, walk, digest, pages, next, checkpoint, mark_next, mark,
                         started_us, items)
     SELECT ?2, query, walk, digest, pages, next, checkpoint, mark_next, mark, started_us, items
     FROM cursors WHERE subject = ?1
     ON CONFLICT DO UPDATE SET
       walk = excluded.walk, digest = excluded.digest, pages = excluded.pages,
       next = excluded.next, checkpoint = excluded.checkpoint, mark_next = excluded.mark_next,
       mark = excluded.mark, started_us = excluded.started_us, items = excluded.items
     WHERE (excluded.walk, excluded.pages, excluded.started_us) > (walk, pages, started_us)",
    "DELETE FROM cursors WHERE subject = ?1",
    "INSERT INTO sweeps SELECT ?2, list, walk, started_us, proved, after
     FROM sweeps WHERE subject = ?1
     ON CONFLICT DO UPDATE SET walk = excluded.walk, started_us = excluded.started_us,
       proved = excluded.proved
     WHERE excluded.started_us > started_us",
    "DELETE FROM sweeps WHERE subject = ?1",
    // The list has members that were not compared yet.
    "UPDATE sweeps SET after = 0 WHERE subject = ?2",
    "INSERT INTO visibility SELECT ?2, key, level, observed_us FROM visibility WHERE viewer = ?1
     ON CONFLICT DO UPDATE SET level = excluded.level, observed_us = excluded.observed_us
     WHERE excluded.observed_us > observed_us",
    "DELETE FROM visibility WHERE viewer = ?1",
    "INSERT INTO visibility SELECT viewer, ?2, level, observed_us FROM visibility WHERE key = ?1
     ON CONFLICT DO UPDATE SET level = excluded.level, observed_us = excluded.observed_us
     WHERE excluded.observed_us > observed_us",
    "DELETE FROM visibility WHERE key = ?1",
    "UPDATE key_merges SET winner = ?2 WHERE winner = ?1",
];

impl Work<'_, '_> {
    /// Makes everything of `loser` part of `winner`.
    pub(super) fn merge_keys(&mut self, loser: i64, winner: i64) -> Result<(), StoreError> {
        let (loser, winner) = (self.memory.follow(loser), self.memory.follow(winner));
        if loser == winner {
            return Ok(());
        }
        // Rows of ids are about to move and to vanish: nothing about them stays in memory.
        self.write_times()?;
        self.memory.familiar.forget_identities();
        self.memory.familiar.forget(loser);
        self.memory.familiar.forget(winner);
        self.merge_rows(loser, winner)?;
        for sql in MOVES {
            let mut statement = self.connection.prepare_cached(sql)?;
            // The deletes name the loser only.
            if statement.parameter_count() == 1 {
                statement.execute([loser])?;
            } else {
                statement.execute([loser, winner])?;
            }
        }
        self.merge_references(loser, winner)?;
        self.merge_pending(loser, winner)?;
        self.execute("DELETE FROM relax WHERE key = ?1", [loser])?;
        self.execute(
            "INSERT INTO key_merges(loser, winner, at_us, log) VALUES (?1, ?2, ?3, ?4)",
            params![loser, winner, self.stamp.at_us, self.stamp.log],
        )?;
        self.memory.merged.insert(loser, winner);
        self.report.merged.push((Key(loser), Key(winner)));
        self.report_frontier(winner)?;
        self.depths.remove(&loser);
        self.depths.remove(&winner);
        // The winner now has rows of the loser, so nothing may be taken for granted about it.
        self.fresh.remove(&winner);
        self.fresh.remove(&loser);
        self.mend_half_done(loser, winner)?;
        self.look_at_merged(winner)
    }

    /// What a merge brings together is looked at as a whole.
    fn look_at_merged(&mut self, winner: i64) -> Result<(), StoreError> {
        match self.table_of(winner)? {
            Table::Statuses => self.settle_merged_reply(winner)?,
            Table::Comments => self.settle_merged_comment(winner)?,
            Table::Users | Table::Tags | Table::Objects => {}
        }
        if self.depth_of(winner)?.is_some() {
            self.queue_subject(winner);
        } else if is_writing(self.table_of(winner)?) && self.memory.extent.looks_at_posts() {
            self.queue(winner, HandOnList::Post, Place::default());
        }
        if self.memory.extent.looks_at_links() {
            self.queue(winner, HandOnList::Origins, Place::default());
        }
        Ok(())
    }

    /// Lists that were gone through up to a place between the two keys have passed the winner and
    /// not yet met the loser: their relation is looked at here, because nobody comes back to it.
    fn mend_half_done(&mut self, loser: i64, winner: i64) -> Result<(), StoreError> {
        let between = winner.min(loser)..winner.max(loser);
        let mut half_done: Vec<i64> = self
            .connection
            .prepare_cached(
                "SELECT key FROM relax WHERE after > 0 AND after >= ?1 AND after < ?2
                   AND list IN ('following', 'followers')",
            )?
            .query_map([between.start, between.end], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        half_done.extend(
            self.hand_on
                .iter()
                .filter(|next| {
                    matches!(next.list, HandOnList::Following | HandOnList::Followers)
                        && between.contains(&next.after.key)
                })
                .map(|next| next.key),
        );
        for key in half_done {
            let key = self.memory.follow(key);
            for (source, target) in [(key, winner), (winner, key)] {
                if self.is_related(source, target)? {
                    self.hand_along(source, target)?;
                }
            }
        }
        self.rewind_sweeps(winner)
    }

    /// Whether one follows the other, or did.
    fn is_related(&self, source: i64, target: i64) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT 1 FROM user_relations WHERE source = ?1 AND target = ?2
             UNION ALL SELECT 1 FROM invalid_relations WHERE source = ?1 AND target = ?2",
        )?;
        Ok(statement.exists([source, target])?)
    }

    /// Two rows of one object become one, by the rule for observations.
    fn merge_rows(&mut self, loser: i64, winner: i64) -> Result<(), StoreError> {
        for table in Table::ALL {
            let Some(observed) = self.read_groups(*table, loser)? else {
                continue;
            };
            let deleted_us = self.deleted_us(*table, loser)?;
            if let Some(mut groups) = self.read_groups(*table, winner)? {
                self.merge_groups(winner, &mut groups, observed)?;
                self.put_groups(*table, winner, &groups)?;
            } else {
                self.put_groups(*table, winner, &observed)?;
            }
            let name = table.name();
            self.execute(&format!("DELETE FROM {name} WHERE key = ?1"), [loser])?;
            if *table == Table::Statuses {
                let deleted_us = [deleted_us, self.deleted_us(*table, winner)?]
                    .into_iter()
                    .flatten()
                    .min();
                let last_present_us = self.last_present_us(*table, winner)?;
                self.execute(
                    "UPDATE statuses SET deleted_us = ?2 WHERE key = ?1",
                    params![winner, deleted_us.filter(|at_us| *at_us >= last_present_us)],
                )?;
            }
        }
        Ok(())
    }

    fn deleted_us(&self, table: Table, key: i64) -> Result<Option<i64>, StoreError> {
        if table != Table::Statuses {
            return Ok(None);
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT deleted_us FROM statuses WHERE key = ?1")?;
        let mut rows = statement.query([key])?;
        match rows.next()? {
            Some(row) => Ok(row.get(0)?),
            None => Ok(None),
        }
    }

    /// Columns that point at the loser point at the winner from now on.
    fn merge_references(&self, loser: i64, winner: i64) -> Result<(), StoreError> {
        for table in Table::ALL {
            for column in table.columns() {
                if matches!(column.kind, ColumnKind::Reference(_)) {
                    let (table, column) = (table.name(), column.name);
                    self.execute(
                        &format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1"),
                        [loser, winner],
                    )?;
                }
            }
        }
        Ok(())
    }

    /// The winner is pending only if neither was described.
    fn merge_pending(&mut self, loser: i64, winner: i64) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO pending SELECT ?2, first_seen_us FROM pending WHERE key = ?1
             ON CONFLICT DO UPDATE SET
               first_seen_us = min(first_seen_us, excluded.first_seen_us)",
            [loser, winner],
        )?;
        self.execute("DELETE FROM pending WHERE key = ?1", [loser])?;
        let table = self.table_of(winner)?;
        if self.is_described(table, winner)? {
            self.execute("DELETE FROM pending WHERE key = ?1", [winner])?;
        }
        Ok(())
    }

    /// The order index has to learn where the winner stands now.
    fn report_frontier(&mut self, winner: i64) -> Result<(), StoreError> {
        let connection = self.connection;
        let mut statement = connection.prepare_cached(
            "SELECT robot, lane, visited_us, due_us FROM frontier WHERE subject = ?1",
        )?;
        let mut rows = statement.query([winner])?;
        while let Some(row) = rows.next()? {
            let filed = Filed {
                subject: Key(winner),
                robot: self.memory.name(row.get_ref(0)?)?,
                lane: self.memory.name(row.get_ref(1)?)?,
                visited: row.get::<_, Option<i64>>(2)?.map(WorldTime),
                due: WorldTime(row.get(3)?),
            };
            self.report.filed.push(filed);
        }
        Ok(())
    }
}
