//! The work of one transaction: what it has learnt so far, and what outlives it.

use super::extent::{Extent, guessed_table};
use super::familiar::Familiar;
use super::found::Found;
use super::relax::{HandOn, HandOnList};
use super::times::Times;
use crate::cell::{Cell, cells};
use crate::database::{Database, Sql};
use crate::numbers::{NumberMap, NumberSet};
use crate::observed::FieldLists;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{CommitReport, Expansion, Key, Name, Stamp, Table};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What the writer remembers between transactions. All of it can be read from the store again,
/// which is what happens after a transaction that failed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The next key to give away; keys are never given twice.
    pub next_key: i64,
    pub next_log: i64,
    pub next_run: i64,
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
    pub familiar: Familiar,
    /// Times that earlier transactions have put off.
    pub times: Times,
    /// Names that occur again and again, so that each is held once.
    names: HashSet<Name>,
}

impl Memory {
    pub(super) fn load(database: &dyn Database) -> Result<Self, StoreError> {
        let number = |sql: &str| database.only(sql, &[], |row| row.get(0));
        let mut memory = Self {
            // The loser of a merge may have held the greatest key of all.
            next_key: number(
                "SELECT 1 + max(coalesce((SELECT max(key) FROM ids), 0),
                                coalesce((SELECT max(loser) FROM key_merges), 0))",
            )?,
            next_log: number("SELECT 1 + coalesce((SELECT max(id) FROM query_log), 0)")?,
            next_run: number("SELECT 1 + coalesce((SELECT max(id) FROM runs), 0)")?,
            ..Self::default()
        };
        database.each("SELECT loser, winner FROM key_merges", &[], |row| {
            memory.merged.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        database.each("SELECT network, type, table_name FROM types", &[], |row| {
            let (network, kind) = (memory.name(&row.text(0)?), memory.name(&row.text(1)?));
            if let Some(table) = Table::from_name(&row.text(2)?) {
                memory.types.insert((network, kind), table);
            }
            Ok(())
        })?;
        memory.field_lists = field_lists(database)?;
        let rules: Option<String> = database.first(
            "SELECT value FROM rules WHERE name = 'expansion'",
            &[],
            |row| row.get(0),
        )?;
        // Rules that cannot be read are taken as changed: filing again does no harm.
        memory.expansion = rules.and_then(|rules| serde_json::from_str(&rules).ok());
        memory.extent = Extent::of(memory.expansion.as_deref(), &memory.types);
        memory.queued = HandOnList::stored(database)?;
        memory.times = Times::load(database)?;
        memory.has_sweeps = database.exists("SELECT 1 FROM sweeps LIMIT 1", &[])?;
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

    pub(super) fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        // Words of definitions are few; a file that is full of others must not fill the memory.
        if self.names.len() < 10_000 {
            self.names.insert(name.clone());
        }
        name
    }
}

/// The lists of fields that rows name by number.
pub(super) fn field_lists(database: &dyn Database) -> Result<FieldLists, StoreError> {
    let mut lists = FieldLists::default();
    database.each("SELECT id, fields FROM field_lists", &[], |row| {
        let number = row.get(0)?;
        let fields = serde_json::from_str(&row.text(1)?).map_err(|error| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                format!("the list of fields {number} cannot be read: {error}"),
            )
        })?;
        lists.learn(number, fields);
        Ok(())
    })?;
    Ok(lists)
}

/// What was written of a key that was given away in the same transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fresh {
    pub is_described: bool,
    pub is_pending: bool,
}

/// One transaction in progress.
pub(super) struct Work<'a> {
    pub database: &'a dyn Database,
    pub memory: &'a mut Memory,
    /// The stamp of everything the present commit observed.
    pub stamp: Stamp,
    pub report: CommitReport,
    /// What the present commit brought.
    pub found: Found,
    /// Time that filing what the present commit brings took.
    pub filing: Duration,
    /// Times that this transaction has not written.
    pub times: Times,
    /// Depths that were read or set in this transaction.
    pub depths: NumberMap<i64, Option<u32>>,
    /// Network and type of keys, as far as they were needed.
    pub kinds: NumberMap<i64, (Name, Name)>,
    /// Keys that were given away in this transaction, and what it has written of them: nothing
    /// about them has to be looked up that is known from here.
    pub fresh: NumberMap<i64, Fresh>,
    /// Authors of what was written in this transaction.
    pub authors: NumberMap<i64, Option<i64>>,
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
}

impl<'a> Work<'a> {
    pub(super) fn new(
        database: &'a dyn Database,
        memory: &'a mut Memory,
        steps_max: usize,
    ) -> Self {
        Self {
            database,
            memory,
            stamp: Stamp::default(),
            report: CommitReport::default(),
            found: Found::default(),
            filing: Duration::ZERO,
            times: Times::default(),
            depths: NumberMap::default(),
            kinds: NumberMap::default(),
            fresh: NumberMap::default(),
            authors: NumberMap::default(),
            answered: NumberSet::default(),
            rules: None,
            hand_on: VecDeque::new(),
            conversations: VecDeque::new(),
            steps_left: steps_max,
        }
    }

    /// The time of the present commit, whoever told what it brings.
    pub(super) fn at_us(&self) -> i64 {
        self.stamp.real_us()
    }

    /// Runs a statement; gives the number of rows that it changed.
    pub(super) fn execute<'s>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
    ) -> Result<usize, StoreError> {
        self.database.execute(sql.into(), cells)
    }

    /// [`Self::execute`] where that number is of no interest.
    pub(super) fn send<'s>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
    ) -> Result<(), StoreError> {
        self.database.send(sql.into(), cells)
    }

    /// Network and type of a key; an error if the store never gave it.
    pub(super) fn kind_of(&mut self, key: i64) -> Result<(Name, Name), StoreError> {
        if let Some(kind) = self.kinds.get(&key) {
            return Ok(kind.clone());
        }
        let memory = &mut *self.memory;
        let kind = self.database.first(
            "SELECT network, type FROM ids WHERE key = ?1 LIMIT 1",
            cells![key],
            |row| Ok((memory.name(&row.text(0)?), memory.name(&row.text(1)?))),
        )?;
        let kind =
            kind.ok_or_else(|| StoreError::invalid(format!("key {key} is not in this store")))?;
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
        self.send(
            "INSERT INTO types(network, type, table_name) VALUES (?1, ?2, ?3)
             ON CONFLICT (network, type) DO UPDATE SET table_name = excluded.table_name",
            cells![&**network, &**kind, table.name()],
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
