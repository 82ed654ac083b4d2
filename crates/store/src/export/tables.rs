//! Which tables can be exported, and their columns.

use kittiwake_model::{ColumnKind, Table};

/// A table of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportTable {
    Ids,
    Users,
    Tags,
    Statuses,
    Comments,
    Objects,
    UserRelations,
    UserTags,
    Links,
    InvalidUsers,
    InvalidRelations,
    Counts,
    Versions,
    Outcomes,
    QueryLog,
    Runs,
}

/// What the cells of a column look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The text by which an object is named.
    Id,
    Text,
    Integer,
    Real,
    Boolean,
    /// ISO 8601, UTC, with microseconds.
    Time,
    Json,
}

/// One column of an exported table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportColumn {
    pub name: &'static str,
    pub form: Form,
}

/// One part of a row as a store has it; some make several columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub form: PartForm,
    pub columns: &'static [ExportColumn],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartForm {
    /// An object: its network, its type and its id.
    Object,
    Plain,
    Time,
    Json,
    /// The number of a call.
    Log,
    /// Fields and values, and the kinds of those that JSON cannot show.
    History,
    /// A list of objects, as a JSON list of their ids.
    Objects,
}

macro_rules! columns {
    ($($name:literal: $form:ident),+ $(,)?) => {
        &[$(ExportColumn { name: $name, form: Form::$form }),+]
    };
}

macro_rules! parts {
    ($($form:ident($($name:literal: $column:ident),+)),+ $(,)?) => {
        &[$(Part {
            form: PartForm::$form,
            columns: columns!($($name: $column),+),
        }),+]
    };
}

const IDS: &[ExportColumn] = columns!(
    "network": Text, "type": Text, "id": Id, "alias": Text, "host": Text, "value": Id,
    "is_movable": Boolean, "first_seen": Time, "last_seen": Time,
);

const USER_RELATIONS: &[Part] = parts!(
    Object("source_network": Text, "source_type": Text, "source": Id),
    Object("target_network": Text, "target_type": Text, "target": Id),
    Time("first_seen": Time),
    Time("last_seen": Time),
);

const USER_TAGS: &[Part] = parts!(
    Object("user_network": Text, "user_type": Text, "user": Id),
    Object("tag_network": Text, "tag_type": Text, "tag": Id),
    Time("first_seen": Time),
    Time("last_seen": Time),
);

const LINKS: &[Part] = parts!(
    Object("from_network": Text, "from_type": Text, "from_id": Id),
    Plain("kind": Text),
    Object("to_network": Text, "to_type": Text, "to_id": Id),
    Time("at": Time),
    Time("first_seen": Time),
    Time("last_seen": Time),
);

const INVALID_USERS: &[Part] = parts!(
    Object("network": Text, "type": Text, "id": Id),
    Plain("reason": Text),
    Time("from": Time),
    Time("until": Time),
);

const INVALID_RELATIONS: &[Part] = parts!(
    Object("source_network": Text, "source_type": Text, "source": Id),
    Object("target_network": Text, "target_type": Text, "target": Id),
    Time("first_seen": Time),
    Time("last_seen": Time),
    Time("vanished": Time),
);

const COUNTS: &[Part] = parts!(
    Object("network": Text, "type": Text, "id": Id),
    Time("observed": Time),
    Log("log": Integer),
    History("counts": Json, "kinds": Json),
);

const VERSIONS: &[Part] = parts!(
    Object("network": Text, "type": Text, "id": Id),
    Plain("group": Text),
    Time("observed": Time),
    Log("log": Integer),
    History("fields": Json, "kinds": Json),
);

const OUTCOMES: &[Part] = parts!(
    Object("network": Text, "type": Text, "id": Id),
    Plain("query": Text),
    Plain("outcome": Text),
    Plain("reason": Text),
    Time("at": Time),
    Log("log": Integer),
    Plain("times": Integer),
);

const QUERY_LOG: &[Part] = parts!(
    Plain("id": Integer),
    Plain("query": Text),
    Objects("subjects": Json),
    Plain("target": Text),
    Plain("cursor": Text),
    Plain("credential": Text),
    Plain("node": Text),
    Plain("status": Integer),
    Plain("outcome": Text),
    Plain("reason": Text),
    Time("at": Time),
    Time("scheduled": Time),
    Time("sent": Time),
    Time("answered": Time),
    Time("committed": Time),
    Json("budgets": Json),
    Plain("rank_us": Integer),
    Plain("seed_us": Integer),
    Plain("bytes": Integer),
    Plain("mended": Integer),
    Plain("rows_new": Integer),
    Plain("rows_changed": Integer),
    Plain("definition": Text),
    Plain("read_us": Integer),
);

const RUNS: &[Part] = parts!(
    Plain("id": Integer),
    Plain("network": Text),
    Plain("host": Text),
    Plain("definition": Text),
    Plain("clock": Text),
    Json("settings": Json),
    Time("started": Time),
    Time("ended": Time),
    Plain("end_reason": Text),
);

impl ExportTable {
    /// Every table, in the order in which an import has them best: names first, then what is named.
    pub const ALL: &[Self] = &[
        Self::Ids,
        Self::Users,
        Self::Tags,
        Self::Statuses,
        Self::Comments,
        Self::Objects,
        Self::UserRelations,
        Self::UserTags,
        Self::Links,
        Self::InvalidUsers,
        Self::InvalidRelations,
        Self::Counts,
        Self::Versions,
        Self::Outcomes,
        Self::QueryLog,
        Self::Runs,
    ];

    /// The tables that tell of the network; the others tell of the crawl.
    pub fn data() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|table| table.is_data())
    }

    pub const fn is_data(self) -> bool {
        !matches!(self, Self::Outcomes | Self::QueryLog | Self::Runs)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Users => "users",
            Self::Tags => "tags",
            Self::Statuses => "statuses",
            Self::Comments => "comments",
            Self::Objects => "objects",
            Self::UserRelations => "user_relations",
            Self::UserTags => "user_tags",
            Self::Links => "links",
            Self::InvalidUsers => "invalid_users",
            Self::InvalidRelations => "invalid_relations",
            Self::Counts => "counts",
            Self::Versions => "versions",
            Self::Outcomes => "outcomes",
            Self::QueryLog => "query_log",
            Self::Runs => "runs",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|table| table.name() == name)
    }

    /// The columns, always the same and always in this order.
    pub fn columns(self) -> Vec<ExportColumn> {
        if self == Self::Ids {
            return IDS.to_vec();
        }
        match self.objects() {
            Some(table) => object_columns(table),
            None => self
                .parts()
                .iter()
                .flat_map(|part| part.columns)
                .copied()
                .collect(),
        }
    }

    /// The table of objects that it shows, if it does.
    pub(crate) const fn objects(self) -> Option<Table> {
        match self {
            Self::Users => Some(Table::Users),
            Self::Tags => Some(Table::Tags),
            Self::Statuses => Some(Table::Statuses),
            Self::Comments => Some(Table::Comments),
            Self::Objects => Some(Table::Objects),
            _ => None,
        }
    }

    /// What its rows are made of, in terms of the store; for tables that are neither objects nor
    /// ids.
    pub(crate) const fn parts(self) -> &'static [Part] {
        match self {
            Self::UserRelations => USER_RELATIONS,
            Self::UserTags => USER_TAGS,
            Self::Links => LINKS,
            Self::InvalidUsers => INVALID_USERS,
            Self::InvalidRelations => INVALID_RELATIONS,
            Self::Counts => COUNTS,
            Self::Versions => VERSIONS,
            Self::Outcomes => OUTCOMES,
            Self::QueryLog => QUERY_LOG,
            Self::Runs => RUNS,
            Self::Ids
            | Self::Users
            | Self::Tags
            | Self::Statuses
            | Self::Comments
            | Self::Objects => &[],
        }
    }
}

fn object_columns(table: Table) -> Vec<ExportColumn> {
    let column = |name, form| ExportColumn { name, form };
    let mut columns = vec![
        column("network", Form::Text),
        column("type", Form::Text),
        column("id", Form::Id),
    ];
    for stored in table.columns() {
        columns.push(column(shown_name(stored.name), form_of(stored.kind)));
    }
    if table == Table::Statuses {
        columns.push(column("deleted", Form::Time));
    }
    columns.push(column("extra", Form::Json));
    columns.push(column("observed", Form::Json));
    columns
}

/// The unit is in the value, not in the name.
fn shown_name(stored: &'static str) -> &'static str {
    stored.strip_suffix("_us").unwrap_or(stored)
}

const fn form_of(kind: ColumnKind) -> Form {
    match kind {
        ColumnKind::Text => Form::Text,
        ColumnKind::Integer => Form::Integer,
        ColumnKind::Real => Form::Real,
        ColumnKind::Boolean => Form::Boolean,
        ColumnKind::Time => Form::Time,
        ColumnKind::Reference(_) => Form::Id,
        ColumnKind::Json => Form::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_table_has_a_name_and_a_header_of_its_own() {
        let names: BTreeSet<&str> = ExportTable::ALL.iter().map(|table| table.name()).collect();
        assert_eq!(names.len(), ExportTable::ALL.len());
        let headers: BTreeSet<Vec<&str>> = ExportTable::ALL
            .iter()
            .map(|table| table.columns().iter().map(|column| column.name).collect())
            .collect();
        assert_eq!(headers.len(), ExportTable::ALL.len());
        for table in ExportTable::ALL {
            assert_eq!(ExportTable::from_name(table.name()), Some(*table));
            let columns = table.columns();
            let distinct: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(distinct.len(), columns.len(), "{}", table.name());
            // A line of JSON says under this name which table it belongs to.
            assert!(!distinct.contains("table"));
        }
    }
}
