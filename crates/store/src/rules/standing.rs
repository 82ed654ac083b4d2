//! Outcomes, spells of being invalid, and posts that were deleted.

use super::statements::Held;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Outcome, OutcomeCode, Standing, Table};

impl Work<'_> {
    /// Records whether an answer showed the object as being there.
    pub(super) fn write_standing(
        &mut self,
        table: Table,
        key: i64,
        standing: Standing,
    ) -> Result<(), StoreError> {
        match (table, standing) {
            (Table::Users, Standing::Present) => self.close_spell(key),
            // Whoever only hides something is still there.
            (_, Standing::Invalid(code)) if !code.invalidates_user() => Ok(()),
            (Table::Users, Standing::Invalid(code)) => self.open_spell(key, code),
            (Table::Statuses, Standing::Present) => self.undelete(key),
            (Table::Statuses, Standing::Invalid(_)) => self.delete(key),
            _ => Ok(()),
        }
    }

    pub(super) fn write_outcome(&mut self, outcome: &Outcome) -> Result<(), StoreError> {
        let key = self.followed(outcome.subject);
        let table = self.table_of(key)?;
        let code = if outcome.code == OutcomeCode::NotFound && self.is_described(table, key)? {
            OutcomeCode::Gone
        } else {
            outcome.code
        };
        match table {
            Table::Users if code.invalidates_user() => self.open_spell(key, code)?,
            // An empty list is what networks show of those who are gone, too.
            Table::Users if code.is_success() && code != OutcomeCode::Empty => {
                self.close_spell(key)?;
            }
            Table::Statuses if code == OutcomeCode::Gone => self.delete(key)?,
            Table::Statuses if code.is_success() => self.undelete(key)?,
            _ => {}
        }
        // The newest outcome is kept; every one is counted.
        self.send(
            "INSERT INTO outcomes AS known(key, query, outcome, reason, at_us, log, times)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
             ON CONFLICT (key, query) DO UPDATE SET
               times = known.times + 1,
               outcome = CASE WHEN (excluded.at_us, excluded.log) >= (known.at_us, known.log)
                              THEN excluded.outcome ELSE known.outcome END,
               reason = CASE WHEN (excluded.at_us, excluded.log) >= (known.at_us, known.log)
                             THEN excluded.reason ELSE known.reason END,
               log = CASE WHEN (excluded.at_us, excluded.log) >= (known.at_us, known.log)
                          THEN excluded.log ELSE known.log END,
               at_us = max(known.at_us, excluded.at_us)",
            cells![
                key,
                &*outcome.query,
                code.code(),
                &*outcome.reason,
                self.stamp.at_us,
                self.stamp.log
            ],
        )?;
        Ok(())
    }

    /// The user is not there: a spell begins, unless one is under way.
    fn open_spell(&mut self, key: i64, code: OutcomeCode) -> Result<(), StoreError> {
        self.doubt_vanished(key);
        self.memory.familiar.forget(key);
        let at_us = self.at_us();
        let last_present_us = self.last_present_us(Table::Users, key)?;
        let open_from_us: Option<i64> = self.database.first(
            "SELECT from_us FROM invalid_users WHERE key = ?1 AND until_us IS NULL",
            cells![key],
            |row| row.get(0),
        )?;
        if let Some(from_us) = open_from_us {
            let was_there_between = at_us < last_present_us && last_present_us < from_us;
            if at_us < from_us && !was_there_between {
                self.send(
                    "UPDATE invalid_users SET from_us = ?2, reason = ?4
                     WHERE key = ?1 AND from_us = ?3 AND NOT EXISTS (
                       SELECT 1 FROM invalid_users AS other
                       WHERE other.key = ?1 AND other.from_us = ?2)",
                    cells![key, at_us, from_us, code.code()],
                )?;
            }
            return Ok(());
        }
        self.found.changed_object(Table::Users, key);
        // An answer that comes in late tells of a spell that is over.
        let until_us = (last_present_us > at_us).then_some(last_present_us);
        self.send(
            "INSERT INTO invalid_users(key, reason, from_us, until_us)
             SELECT CAST(?1 AS BIGINT), CAST(?2 AS TEXT), CAST(?3 AS BIGINT), CAST(?4 AS BIGINT)
             WHERE NOT EXISTS (
               SELECT 1 FROM invalid_users WHERE key = ?1 AND from_us <= ?3 AND until_us > ?3)
             ON CONFLICT DO NOTHING",
            cells![key, code.code(), at_us, until_us],
        )?;
        Ok(())
    }

    /// Whether the user is known to have been gone at a later time than that of the present commit.
    pub(super) fn is_gone_later(&self, key: i64) -> Result<bool, StoreError> {
        self.database
            .exists(Held::HasLaterSpell, cells![key, self.at_us()])
    }

    fn close_spell(&self, key: i64) -> Result<(), StoreError> {
        // Looked up first: nearly nobody has a spell, and an update that may touch several rows
        // of such a table is costly even when it touches none.
        let has_spell = self
            .database
            .exists(Held::HasSpell, cells![key, self.at_us()])?;
        if !has_spell {
            return Ok(());
        }
        self.send(
            "UPDATE invalid_users SET until_us = ?2
             WHERE key = ?1 AND from_us < ?2 AND (until_us IS NULL OR until_us > ?2)",
            cells![key, self.at_us()],
        )?;
        Ok(())
    }

    /// The post is not there any more.
    fn delete(&mut self, key: i64) -> Result<(), StoreError> {
        let at_us = self.at_us();
        if self.last_present_us(Table::Statuses, key)? > at_us {
            return Ok(());
        }
        let deleted = self.execute(
            "UPDATE statuses SET deleted_us = ?2
             WHERE key = ?1 AND (deleted_us IS NULL OR deleted_us > ?2)",
            cells![key, at_us],
        )?;
        if deleted > 0 {
            self.found.changed_object(Table::Statuses, key);
        }
        Ok(())
    }

    /// The post is there after all: what said otherwise was a passing fault.
    fn undelete(&self, key: i64) -> Result<(), StoreError> {
        self.send(
            "UPDATE statuses SET deleted_us = NULL WHERE key = ?1 AND deleted_us < ?2",
            cells![key, self.at_us()],
        )?;
        Ok(())
    }
}
