//! Views for people: text ids instead of keys, ISO times instead of microseconds.
//!
//! Views hold no data, so a back end compares them with what is wanted here on every start and makes
//! them anew when they differ; no migration is needed for them.

use kittiwake_model::{ColumnKind, Table};
use std::fmt::Write as _;

/// What databases say in different ways.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    /// Microseconds as ISO text.
    pub iso: Told,
    /// What is told of each key in a column that holds a JSON list of keys, with spaces between.
    pub of_each_key: fn(&str, Told) -> String,
}

/// Makes an expression of another.
pub(crate) type Told = fn(&str) -> String;

/// The best text for a key: the canonical id, else the alias that was seen last.
fn id(expression: &str) -> String {
    format!(
        "(SELECT id FROM ids WHERE ids.key = {expression} \
         ORDER BY canonical DESC, last_seen_us DESC, alias, id LIMIT 1)"
    )
}

fn object_view(table: Table, iso: fn(&str) -> String) -> String {
    let name = table.name();
    let mut sql = format!("SELECT {name}.key, {} AS id", id(&format!("{name}.key")));
    for column in table.columns() {
        let source = format!("{name}.{}", column.name);
        let _ = match column.kind {
            ColumnKind::Time => {
                let label = column.name.strip_suffix("_us").unwrap_or(column.name);
                write!(sql, ", {} AS {label}", iso(&source))
            }
            ColumnKind::Reference(_) => write!(sql, ", {} AS {}", id(&source), column.name),
            _ => write!(sql, ", {source}"),
        };
    }
    if table == Table::Statuses {
        let _ = write!(sql, ", {} AS deleted", iso("statuses.deleted_us"));
    }
    let _ = write!(sql, ", {name}.extra FROM {name}");
    sql
}

fn query_log_view(words: Words) -> String {
    let iso = words.iso;
    format!(
        "SELECT id, query, {} \
                 AS subjects, target, cursor, credential, node, status, outcome, reason, \
                 {} AS at, {} AS scheduled, {} AS sent, {} AS answered, {} AS committed, budgets, \
                 rank_us, seed_us, bytes, mended, rows_new, rows_changed, definition, read_us \
                 FROM query_log",
        (words.of_each_key)("subjects", id),
        iso("at_us"),
        iso("scheduled_us"),
        iso("sent_us"),
        iso("answered_us"),
        iso("committed_us")
    )
}

/// All views: name and query.
pub(crate) fn views(words: Words) -> Vec<(&'static str, String)> {
    let iso = words.iso;
    let seen = |table: &str| {
        format!(
            "{} AS first_seen, {} AS last_seen",
            iso(&format!("{table}.first_seen_us")),
            iso(&format!("{table}.last_seen_us"))
        )
    };
    vec![
        ("users_view", object_view(Table::Users, iso)),
        ("statuses_view", object_view(Table::Statuses, iso)),
        (
            "user_relations_view",
            format!(
                "SELECT {} AS source, {} AS target, {}, following_walk, followers_walk \
                 FROM user_relations",
                id("user_relations.source"),
                id("user_relations.target"),
                seen("user_relations")
            ),
        ),
        (
            "links_view",
            format!(
                "SELECT kind, {} AS from_id, {} AS to_id, {} AS at, {} FROM links",
                id("links.from_key"),
                id("links.to_key"),
                iso("links.at_us"),
                seen("links")
            ),
        ),
        (
            "outcomes_view",
            format!(
                "SELECT {} AS id, query, outcome, reason, {} AS at, log, times FROM outcomes",
                id("outcomes.key"),
                iso("outcomes.at_us")
            ),
        ),
        (
            "frontier_view",
            format!(
                "SELECT {} AS subject, (SELECT min(depth) FROM subjects WHERE subjects.key IN \
                 (frontier.subject, (SELECT author FROM statuses WHERE statuses.key = \
                 frontier.subject))) AS depth, robot, lane, visits, {} AS visited, {} AS due \
                 FROM frontier",
                id("frontier.subject"),
                iso("frontier.visited_us"),
                iso("frontier.due_us")
            ),
        ),
        ("query_log_view", query_log_view(words)),
        (
            "invalid_users_view",
            format!(
                "SELECT {} AS id, reason, {} AS \"from\", {} AS until FROM invalid_users",
                id("invalid_users.key"),
                iso("from_us"),
                iso("until_us")
            ),
        ),
    ]
}
