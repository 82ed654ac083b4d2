//! Outcomes, spells of being invalid, and posts that were deleted.

use super::statements::Held;
use super::work::Work;
use crate::StoreError;
use kittiwake_model::{Outcome, OutcomeCode, Standing, Table};
use rusqlite::{OptionalExtension as _, params};

impl Work<'_, '_> {
    /// Records whether an answer showed the object as being there.
    pub(super) fn write_standing(
        &mut self,
        table: Table,
        key: i64,
        standing: Standing,
    ) -> Result<(), StoreError> {
        match (table, standing) {
            (Table::Users, Standing::Present) => self.close_spell(key),
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
        self.execute(
            "INSERT INTO outcomes(key, query, outcome, reason, at_us, log, times)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
             ON CONFLICT DO UPDATE SET
               times = times + 1,
               outcome = CASE WHEN (excluded.at_us, excluded.log) >= (at_us, log)
                              THEN excluded.outcome ELSE outcome END,
               reason = CASE WHEN (excluded.at_us, excluded.log) >= (at_us, log)
                             THEN excluded.reason ELSE reason END,
               log = CASE WHEN (excluded.at_us, excluded.log) >= (at_us, log)
                          THEN excluded.log ELSE log END,
               at_us = max(at_us, excluded.at_us)",
            params![
                key,
                &*outcome.query,
                code.code(),
                outcome.reason,
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
        let open_from_us: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT from_us FROM invalid_users WHERE key = ?1 AND until_us IS NULL",
            )?
            .query_row([key], |row| row.get(0))
            .optional()?;
        if let Some(from_us) = open_from_us {
            let was_there_between = at_us < last_present_us && last_present_us < from_us;
            if at_us < from_us && !was_there_between {
                self.execute(
                    "UPDATE OR IGNORE invalid_users SET from_us = ?2, reason = ?4
                     WHERE key = ?1 AND from_us = ?3",
                    params![key, at_us, from_us, code.code()],
                )?;
            }
            return Ok(());
        }
        // An answer that comes in late tells of a spell that is over.
        let until_us = (last_present_us > at_us).then_some(last_present_us);
        self.execute(
            "INSERT OR IGNORE INTO invalid_users(key, reason, from_us, until_us)
             SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (
               SELECT 1 FROM invalid_users WHERE key = ?1 AND from_us <= ?3 AND until_us > ?3)",
            params![key, code.code(), at_us, until_us],
        )?;
        Ok(())
    }

    /// Whether the user is known to have been gone at a later time than that of the present commit.
    pub(super) fn is_gone_later(&self, key: i64) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT 1 FROM invalid_users WHERE key = ?1 AND (until_us IS NULL OR until_us > ?2)",
        )?;
        Ok(statement.exists([key, self.at_us()])?)
    }

    fn close_spell(&self, key: i64) -> Result<(), StoreError> {
        // Looked up first: nearly nobody has a spell, and an update that may touch several rows
        // of such a table is costly even when it touches none.
        let has_spell = self
            .statements
            .get(Held::HasSpell)?
            .exists(params![key, self.at_us()])?;
        if !has_spell {
            return Ok(());
        }
        self.execute(
            "UPDATE invalid_users SET until_us = ?2
             WHERE key = ?1 AND from_us < ?2 AND (until_us IS NULL OR until_us > ?2)",
            params![key, self.at_us()],
        )?;
        Ok(())
    }

    /// The post is not there any more.
    fn delete(&self, key: i64) -> Result<(), StoreError> {
        let at_us = self.at_us();
        if self.last_present_us(Table::Statuses, key)? > at_us {
            return Ok(());
        }
        self.execute(
            "UPDATE statuses SET deleted_us = ?2
             WHERE key = ?1 AND (deleted_us IS NULL OR deleted_us > ?2)",
            params![key, at_us],
        )?;
        Ok(())
    }

    /// The post is there after all: what said otherwise was a passing fault.
    fn undelete(&self, key: i64) -> Result<(), StoreError> {
        self.execute(
            "UPDATE statuses SET deleted_us = NULL WHERE key = ?1 AND deleted_us < ?2",
            params![key, self.at_us()],
        )?;
        Ok(())
    }
}
