//! Two keys turn out to be one object: everything of the loser becomes the winner's.
//!
//! All of it happens in the transaction that found out, so that no moment exists at which a
//! part of the rows speaks of one object and a part of two.

use super::brings::is_writing;
use super::meet::{cursors_meet, outcomes_meet, sights_meet, tasks_meet};
use super::relax::{HandOnList, Place};
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use Move::{Both, Loser, Winner};
use kittiwake_model::{ColumnKind, Filed, Key, Table, WorldTime};

/// A statement that moves rows, and whose keys it names.
enum Move {
    /// ?1 is the loser, ?2 the winner.
    Both(&'static str),
    /// ?1 is the loser.
    Loser(&'static str),
    /// ?1 is the winner.
    Winner(&'static str),
}

/// Rows that move as they are, or give way to the winner's.
const MOVES: &[Move] = &[
    // Ids: where both have the same one, the winner's row takes in the loser's.
    Both(
        "UPDATE ids SET first_seen_us = min(ids.first_seen_us, lost.first_seen_us),
                        last_seen_us = max(ids.last_seen_us, lost.last_seen_us)
         FROM ids AS lost
         WHERE ids.key = ?2 AND lost.key = ?1 AND lost.hash = ids.hash AND lost.id = ids.id
           AND lost.host = ids.host AND lost.alias = ids.alias AND lost.type = ids.type
           AND lost.network = ids.network",
    ),
    Both(
        "DELETE FROM ids WHERE key = ?1 AND EXISTS (
           SELECT 1 FROM ids AS kept
           WHERE kept.key = ?2 AND kept.hash = ids.hash AND kept.id = ids.id
             AND kept.host = ids.host AND kept.alias = ids.alias AND kept.type = ids.type
             AND kept.network = ids.network)",
    ),
    Both("UPDATE ids SET key = ?2 WHERE key = ?1"),
    Both(
        "INSERT INTO versions(key, grp, observed_us, log, fields)
         SELECT CAST(?2 AS BIGINT), grp, observed_us, log, fields FROM versions WHERE key = ?1
         ON CONFLICT DO NOTHING",
    ),
    Loser("DELETE FROM versions WHERE key = ?1"),
    Both(
        "INSERT INTO counts(key, observed_us, log, counts)
         SELECT CAST(?2 AS BIGINT), observed_us, log, counts FROM counts WHERE key = ?1
         ON CONFLICT DO NOTHING",
    ),
    Loser("DELETE FROM counts WHERE key = ?1"),
    // Relations: both ends, without what would be a relation to oneself.
    Both(
        "INSERT INTO user_relations AS known(
           source, target, first_seen_us, last_seen_us, following_walk, followers_walk)
         SELECT CAST(?2 AS BIGINT), target, first_seen_us, last_seen_us, following_walk, followers_walk
         FROM user_relations WHERE source = ?1 AND target NOT IN (?1, ?2)
         ON CONFLICT (source, target) DO UPDATE SET
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us),
           following_walk = max(coalesce(known.following_walk, excluded.following_walk),
                                coalesce(excluded.following_walk, known.following_walk)),
           followers_walk = max(coalesce(known.followers_walk, excluded.followers_walk),
                                coalesce(excluded.followers_walk, known.followers_walk))",
    ),
    Loser("DELETE FROM user_relations WHERE source = ?1"),
    Both(
        "INSERT INTO user_relations AS known(
           source, target, first_seen_us, last_seen_us, following_walk, followers_walk)
         SELECT source, CAST(?2 AS BIGINT), first_seen_us, last_seen_us, following_walk, followers_walk
         FROM user_relations WHERE target = ?1 AND source <> ?2
         ON CONFLICT (source, target) DO UPDATE SET
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us),
           following_walk = max(coalesce(known.following_walk, excluded.following_walk),
                                coalesce(excluded.following_walk, known.following_walk)),
           followers_walk = max(coalesce(known.followers_walk, excluded.followers_walk),
                                coalesce(excluded.followers_walk, known.followers_walk))",
    ),
    Loser("DELETE FROM user_relations WHERE target = ?1"),
    Both(
        "INSERT INTO invalid_relations(source, target, first_seen_us, last_seen_us, vanished_us)
         SELECT CAST(?2 AS BIGINT), target, first_seen_us, last_seen_us, vanished_us
         FROM invalid_relations WHERE source = ?1 AND target NOT IN (?1, ?2)
         ON CONFLICT DO NOTHING",
    ),
    Loser("DELETE FROM invalid_relations WHERE source = ?1"),
    Both(
        "INSERT INTO invalid_relations(source, target, first_seen_us, last_seen_us, vanished_us)
         SELECT source, CAST(?2 AS BIGINT), first_seen_us, last_seen_us, vanished_us
         FROM invalid_relations WHERE target = ?1 AND source <> ?2
         ON CONFLICT DO NOTHING",
    ),
    Loser("DELETE FROM invalid_relations WHERE target = ?1"),
    // A relation that one of the two still has did not vanish.
    Winner(
        "DELETE FROM invalid_relations WHERE source = ?1 AND EXISTS (
           SELECT 1 FROM user_relations AS r
           WHERE r.source = ?1 AND r.target = invalid_relations.target)",
    ),
    Winner(
        "DELETE FROM invalid_relations WHERE target = ?1 AND EXISTS (
           SELECT 1 FROM user_relations AS r
           WHERE r.target = ?1 AND r.source = invalid_relations.source)",
    ),
    Both(
        "INSERT INTO user_tags AS known(\"user\", tag, first_seen_us, last_seen_us)
         SELECT CAST(?2 AS BIGINT), tag, first_seen_us, last_seen_us
         FROM user_tags WHERE \"user\" = ?1
         ON CONFLICT (\"user\", tag) DO UPDATE SET
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us)",
    ),
    Loser("DELETE FROM user_tags WHERE \"user\" = ?1"),
    Both(
        "INSERT INTO user_tags AS known(\"user\", tag, first_seen_us, last_seen_us)
         SELECT \"user\", CAST(?2 AS BIGINT), first_seen_us, last_seen_us
         FROM user_tags WHERE tag = ?1
         ON CONFLICT (\"user\", tag) DO UPDATE SET
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us)",
    ),
    Loser("DELETE FROM user_tags WHERE tag = ?1"),
    Both(
        "INSERT INTO links AS known(kind, from_key, to_key, at_us, first_seen_us, last_seen_us)
         SELECT kind, CAST(?2 AS BIGINT), to_key, at_us, first_seen_us, last_seen_us
         FROM links WHERE from_key = ?1
         ON CONFLICT (from_key, kind, to_key) DO UPDATE SET
           at_us = min(coalesce(known.at_us, excluded.at_us), coalesce(excluded.at_us, known.at_us)),
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us)",
    ),
    Loser("DELETE FROM links WHERE from_key = ?1"),
    Both(
        "INSERT INTO links AS known(kind, from_key, to_key, at_us, first_seen_us, last_seen_us)
         SELECT kind, from_key, CAST(?2 AS BIGINT), at_us, first_seen_us, last_seen_us
         FROM links WHERE to_key = ?1
         ON CONFLICT (from_key, kind, to_key) DO UPDATE SET
           at_us = min(coalesce(known.at_us, excluded.at_us), coalesce(excluded.at_us, known.at_us)),
           first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
           last_seen_us = max(known.last_seen_us, excluded.last_seen_us)",
    ),
    Loser("DELETE FROM links WHERE to_key = ?1"),
    Both(
        "INSERT INTO invalid_users(key, reason, from_us, until_us)
         SELECT CAST(?2 AS BIGINT), reason, from_us, until_us FROM invalid_users WHERE key = ?1
         ON CONFLICT DO NOTHING",
    ),
    Loser("DELETE FROM invalid_users WHERE key = ?1"),
    // Of two open spells the earlier one says it all.
    Winner(
        "DELETE FROM invalid_users WHERE key = ?1 AND until_us IS NULL AND from_us > (
           SELECT min(from_us) FROM invalid_users WHERE key = ?1 AND until_us IS NULL)",
    ),
    Both(
        concat!("INSERT INTO outcomes AS known(key, query, outcome, reason, at_us, log, times)
         SELECT CAST(?2 AS BIGINT), query, outcome, reason, at_us, log, times
         FROM outcomes WHERE key = ?1 ", outcomes_meet!()),
    ),
    Loser("DELETE FROM outcomes WHERE key = ?1"),
    Both(
        "INSERT INTO subjects AS known(key, depth)
         SELECT CAST(?2 AS BIGINT), depth FROM subjects WHERE key = ?1
         ON CONFLICT (key) DO UPDATE SET depth = min(known.depth, excluded.depth)",
    ),
    Loser("DELETE FROM subjects WHERE key = ?1"),
    Both(
        concat!("INSERT INTO frontier AS known(subject, robot, lane, visits, visited_us, due_us, state)
         SELECT CAST(?2 AS BIGINT), robot, lane, visits, visited_us, due_us, state
         FROM frontier WHERE subject = ?1 ", tasks_meet!()),
    ),
    Loser("DELETE FROM frontier WHERE subject = ?1"),
    Both(
        concat!("INSERT INTO cursors AS known(subject, query, walk, digest, pages, next, checkpoint, mark_next,
                                      mark, started_us, items)
         SELECT CAST(?2 AS BIGINT), query, walk, digest, pages, next, checkpoint, mark_next, mark,
                started_us, items
         FROM cursors WHERE subject = ?1 ", cursors_meet!()),
    ),
    Loser("DELETE FROM cursors WHERE subject = ?1"),
    Both(
        "INSERT INTO sweeps AS known(subject, list, walk, started_us, proved, after)
         SELECT CAST(?2 AS BIGINT), list, walk, started_us, proved, after
         FROM sweeps WHERE subject = ?1
         ON CONFLICT (subject, list) DO UPDATE SET walk = excluded.walk,
           started_us = excluded.started_us, proved = excluded.proved
         WHERE excluded.started_us > known.started_us",
    ),
    Loser("DELETE FROM sweeps WHERE subject = ?1"),
    // The list has members that were not compared yet.
    Winner("UPDATE sweeps SET after = 0 WHERE subject = ?1"),
    Both(
        concat!("INSERT INTO visibility AS known(viewer, key, level, observed_us)
         SELECT CAST(?2 AS BIGINT), key, level, observed_us FROM visibility WHERE viewer = ?1 ", sights_meet!()),
    ),
    Loser("DELETE FROM visibility WHERE viewer = ?1"),
    Both(
        concat!("INSERT INTO visibility AS known(viewer, key, level, observed_us)
         SELECT viewer, CAST(?2 AS BIGINT), level, observed_us FROM visibility WHERE key = ?1 ", sights_meet!()),
    ),
    Loser("DELETE FROM visibility WHERE key = ?1"),
    Both("UPDATE key_merges SET winner = ?2 WHERE winner = ?1"),
];

impl Work<'_> {
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
        self.database.ids_changed();
        for step in MOVES {
            match step {
                Both(sql) => self.send(*sql, cells![loser, winner])?,
                Loser(sql) => self.send(*sql, cells![loser])?,
                Winner(sql) => self.send(*sql, cells![winner])?,
            }
        }
        self.merge_references(loser, winner)?;
        self.merge_pending(loser, winner)?;
        self.send("DELETE FROM relax WHERE key = ?1", cells![loser])?;
        self.send(
            "INSERT INTO key_merges(loser, winner, at_us, log) VALUES (?1, ?2, ?3, ?4)",
            cells![loser, winner, self.stamp.at_us, self.stamp.log],
        )?;
        self.memory.merged.insert(loser, winner);
        self.report.merged.push((Key(loser), Key(winner)));
        self.report_frontier(winner)?;
        self.authors.clear();
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
        let mut half_done: Vec<i64> = self.database.all(
            "SELECT key FROM relax WHERE after > 0 AND after >= ?1 AND after < ?2
                   AND list IN ('following', 'followers')",
            cells![between.start, between.end],
            |row| row.get(0),
        )?;
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
        self.database.exists(
            "SELECT 1 FROM user_relations WHERE source = ?1 AND target = ?2
             UNION ALL SELECT 1 FROM invalid_relations WHERE source = ?1 AND target = ?2",
            cells![source, target],
        )
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
            self.send(
                &*format!("DELETE FROM {name} WHERE key = ?1"),
                cells![loser],
            )?;
            if *table == Table::Statuses {
                let deleted_us = [deleted_us, self.deleted_us(*table, winner)?]
                    .into_iter()
                    .flatten()
                    .min();
                let last_present_us = self.last_present_us(*table, winner)?;
                self.send(
                    "UPDATE statuses SET deleted_us = ?2 WHERE key = ?1",
                    cells![winner, deleted_us.filter(|at_us| *at_us >= last_present_us)],
                )?;
            }
        }
        Ok(())
    }

    fn deleted_us(&self, table: Table, key: i64) -> Result<Option<i64>, StoreError> {
        if table != Table::Statuses {
            return Ok(None);
        }
        let deleted_us = self.database.first(
            "SELECT deleted_us FROM statuses WHERE key = ?1",
            cells![key],
            |row| row.get(0),
        )?;
        Ok(deleted_us.flatten())
    }

    /// Columns that point at the loser point at the winner from now on.
    fn merge_references(&self, loser: i64, winner: i64) -> Result<(), StoreError> {
        for table in Table::ALL {
            for column in table.columns() {
                if matches!(column.kind, ColumnKind::Reference(_)) {
                    let (table, column) = (table.name(), column.name);
                    self.send(
                        &*format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1"),
                        cells![loser, winner],
                    )?;
                }
            }
        }
        Ok(())
    }

    /// The winner is pending only if neither was described.
    fn merge_pending(&mut self, loser: i64, winner: i64) -> Result<(), StoreError> {
        self.send(
            "INSERT INTO pending AS known(key, first_seen_us)
             SELECT CAST(?2 AS BIGINT), first_seen_us FROM pending WHERE key = ?1
             ON CONFLICT (key) DO UPDATE SET
               first_seen_us = min(known.first_seen_us, excluded.first_seen_us)",
            cells![loser, winner],
        )?;
        self.send("DELETE FROM pending WHERE key = ?1", cells![loser])?;
        let table = self.table_of(winner)?;
        if self.is_described(table, winner)? {
            self.send("DELETE FROM pending WHERE key = ?1", cells![winner])?;
        }
        Ok(())
    }

    /// The order index has to learn where the winner stands now.
    fn report_frontier(&mut self, winner: i64) -> Result<(), StoreError> {
        let (memory, report) = (&mut *self.memory, &mut self.report);
        self.database.each(
            "SELECT robot, lane, visited_us, due_us, state FROM frontier WHERE subject = ?1",
            cells![winner],
            |row| {
                report.filed.push(Filed {
                    subject: Key(winner),
                    robot: memory.name(&row.text(0)?),
                    lane: memory.name(&row.text(1)?),
                    visited: row.get::<Option<i64>>(2)?.map(WorldTime),
                    due: WorldTime(row.get(3)?),
                    state: row.get(4)?,
                });
                Ok(())
            },
        )
    }
}
