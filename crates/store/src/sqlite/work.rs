//! The work of one transaction: what it has learnt so far, and what outlives it.

use super::error::refused;
use super::extent::{Extent, guessed_table};
use super::familiar::Familiar;
use super::numbers::{NumberMap, NumberSet};
use super::places::Places;
use super::relax::{HandOn, HandOnList};
use super::statements::{Held, Statements};
use super::times::Times;
use crate::observed::FieldLists;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{CommitReport, Expansion, Key, Name, Stamp, Table};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// What the writer remembers between transactions. All of it can be read from the file again,
/// which is what happens after a transaction that failed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The next key to give away; keys are never given twice.
    pub next_key: i64,
    pub next_log: i64,
    /// Keys that were merged away, and into what.
    pub merged: NumberMap<i64, i64>,
    /// Which table a type is kept in.
    pub types: HashMap<(Name, Name), Table>,
    /// The lists of fields that rows name by number.
    pub field_lists: FieldLists,
    /// The rules by which subjects were last filed, and what they ask of every row.
    pub expansion: Option<Arc<Expansion>>,
    pub extent: Extent,
    /// The lists that have, or had a moment ago, rows in `relax`.
    pub queued: BTreeSet<HandOnList>,
    /// Whether lists may be left whose vanished relations are looked for.
    pub has_sweeps: bool,
    /// Where the newest ids are.
    pub places: Places,
    pub familiar: Familiar,
    /// Times that earlier transactions have put off.
    pub times: Times,
    /// Names that occur again and again, so that each is held once.
    names: HashSet<Name>,
}

impl Memory {
    pub(super) fn load(connection: &Connection) -> Result<Self, StoreError> {
        let mut memory = Self {
            // The loser of a merge may have held the greatest key of all.
            next_key: connection.query_row(
                "SELECT 1 + max(coalesce((SELECT max(key) FROM ids), 0),
                                coalesce((SELECT max(loser) FROM key_merges), 0))",
                [],
                |row| row.get(0),
            )?,
            next_log: connection.query_row(
                "SELECT 1 + coalesce((SELECT max(id) FROM query_log), 0)",
                [],
                |row| row.get(0),
            )?,
            ..Self::default()
        };
        let mut statement = connection.prepare("SELECT loser, winner FROM key_merges")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            memory.merged.insert(row.get(0)?, row.get(1)?);
        }
        let mut statement = connection.prepare("SELECT network, type, table_name FROM types")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (network, kind) = (memory.name(row.get_ref(0)?)?, memory.name(row.get_ref(1)?)?);
            let table: String = row.get(2)?;
            if let Some(table) = Table::from_name(&table) {
                memory.types.insert((network, kind), table);
            }
        }
        let mut statement = connection.prepare("SELECT id, fields FROM field_lists")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, fields): (i64, String) = (row.get(0)?, row.get(1)?);
            let fields = serde_json::from_str(&fields).map_err(|error| {
                StoreError::new(
                    StoreErrorKind::Corrupt,
                    format!("the list of fields {number} cannot be read: {error}"),
                )
            })?;
            memory.field_lists.learn(number, fields);
        }
        let rules: Option<String> = connection
            .query_row(
                "SELECT value FROM rules WHERE name = 'expansion'",
                [],
                |row| row.get(0),
            )
            .optional()?;
        // Rules that cannot be read are taken as changed: filing again does no harm.
        memory.expansion = rules.and_then(|rules| serde_json::from_str(&rules).ok());
        memory.extent = Extent::of(memory.expansion.as_deref(), &memory.types);
        memory.queued = HandOnList::stored(connection)?;
        memory.times = Times::load(connection)?;
        memory.places = Places::load(connection)?;
        memory.has_sweeps = connection
            .prepare("SELECT 1 FROM sweeps LIMIT 1")?
            .exists([])?;
        Ok(memory)
    }

    pub(super) fn adopt(&mut self, expansion: Arc<Expansion>) {
        self.extent = Extent::of(Some(&expansion), &self.types);
        self.expansion = Some(expansion);
    }

    /// Follows a key to the object that it belongs to now.
    pub(super) fn follow(&self, key: i64) -> i64 {
        let mut key = key;
        while let Some(winner) = self.merged.get(&key) {
            key = *winner;
        }
        key
    }

    pub(super) fn name(&mut self, text: rusqlite::types::ValueRef<'_>) -> rusqlite::Result<Name> {
        let text = text.as_str().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
        })?;
        if let Some(name) = self.names.get(text) {
            return Ok(name.clone());
        }
        let name = Name::from(text);
        // Words of definitions are few; a file that is full of others must not fill the memory.
        if self.names.len() < 10_000 {
            self.names.insert(name.clone());
        }
        Ok(name)
    }
}

/// What was written of a key that was given away in the same transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fresh {
    pub is_described: bool,
    pub is_pending: bool,
}

/// One transaction in progress.
pub(super) struct Work<'a, 'c> {
    pub connection: &'a Connection,
    pub memory: &'a mut Memory,
    /// The stamp of everything the present commit observed.
    pub stamp: Stamp,
    pub report: CommitReport,
    /// Times that this transaction has not written.
    pub times: Times,
    /// Depths that were read or set in this transaction.
    pub depths: NumberMap<i64, Option<u32>>,
    /// Network and type of keys, as far as they were needed.
    pub kinds: NumberMap<i64, (Name, Name)>,
    /// Keys that were given away in this transaction, and what it has written of them: nothing
    /// about them has to be looked up that is known from here.
    pub fresh: NumberMap<i64, Fresh>,
    /// Posts that something of this transaction answers.
    pub answered: NumberSet<i64>,
    /// The rules of the present commit.
    pub rules: Option<&'a Expansion>,
    /// Depths that have to be handed on.
    pub hand_on: VecDeque<HandOn>,
    /// Beginnings of conversations that have to be handed on; doubts about them come first.
    pub conversations: VecDeque<HandOn>,
    /// Steps that this transaction may still take.
    pub steps_left: usize,
    pub statements: &'a Statements<'c>,
}

impl<'a, 'c> Work<'a, 'c> {
    pub(super) fn new(
        connection: &'a Connection,
        memory: &'a mut Memory,
        statements: &'a Statements<'c>,
        steps_max: usize,
    ) -> Self {
        Self {
            connection,
            memory,
            stamp: Stamp::default(),
            report: CommitReport::default(),
            times: Times::default(),
            depths: NumberMap::default(),
            kinds: NumberMap::default(),
            fresh: NumberMap::default(),
            answered: NumberSet::default(),
            rules: None,
            hand_on: VecDeque::new(),
            conversations: VecDeque::new(),
            steps_left: steps_max,
            statements,
        }
    }

    pub(super) fn at_us(&self) -> i64 {
        self.stamp.at_us
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)?
            .execute(parameters)
            .map_err(refused)
    }

    /// [`Self::execute`] for a statement that is held.
    pub(super) fn execute_held(
        &self,
        held: Held,
        parameters: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.statements
            .get(held)?
            .execute(parameters)
            .map_err(refused)
    }

    /// Network and type of a key; an error if the store never gave it.
    pub(super) fn kind_of(&mut self, key: i64) -> Result<(Name, Name), StoreError> {
        if let Some(kind) = self.kinds.get(&key) {
            return Ok(kind.clone());
        }
        let connection = self.connection;
        let mut statement =
            connection.prepare_cached("SELECT network, type FROM ids WHERE key = ?1 LIMIT 1")?;
        let mut rows = statement.query([key])?;
        let Some(row) = rows.next()? else {
            return Err(StoreError::invalid(format!(
                "key {key} is not in this store"
            )));
        };
        let kind = (
            self.memory.name(row.get_ref(0)?)?,
            self.memory.name(row.get_ref(1)?)?,
        );
        self.kinds.insert(key, kind.clone());
        Ok(kind)
    }

    /// The table in which objects of the key's type are kept.
    pub(super) fn table_of(&mut self, key: i64) -> Result<Table, StoreError> {
        let kind = self.kind_of(key)?;
        if let Some(table) = self.memory.types.get(&kind) {
            return Ok(*table);
        }
        Ok(guessed_table(&kind.1))
    }

    pub(super) fn learn_table(
        &mut self,
        network: &Name,
        kind: &Name,
        table: Table,
    ) -> Result<(), StoreError> {
        let place = (network.clone(), kind.clone());
        if self.memory.types.get(&place) == Some(&table) {
            return Ok(());
        }
        self.execute(
            "INSERT INTO types(network, type, table_name) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET table_name = excluded.table_name",
            (&**network, &**kind, table.name()),
        )?;
        let known = self.memory.types.insert(place, table);
        self.memory.extent = Extent::of(self.memory.expansion.as_deref(), &self.memory.types);
        // Until now its objects were taken for something else.
        if known.unwrap_or_else(|| guessed_table(kind)) != table {
            self.look_at_everybody_again();
        }
        Ok(())
    }

    pub(super) fn followed(&self, key: Key) -> i64 {
        self.memory.follow(key.0)
    }
}
