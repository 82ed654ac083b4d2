//! Views for people: text ids instead of keys, ISO times instead of microseconds.
//!
//! Views hold no data, so they are compared with what the program wants on every start and made
//! anew when they differ; no migration is needed for them.

use kittiwake_model::{ColumnKind, Table};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::fmt::Write as _;

/// Microseconds as ISO text. SQLite's own function takes whole seconds, so the fraction is put
/// behind it; the remainder is made positive for instants before 1970.
fn iso(expression: &str) -> String {
    format!(
        "strftime('%Y-%m-%dT%H:%M:%S', ({expression} - (({expression} % 1000000) + 1000000) \
         % 1000000) / 1000000, 'unixepoch') || \
         printf('.%06dZ', (({expression} % 1000000) + 1000000) % 1000000)"
    )
}

/// The best text for a key: the canonical id, else the alias that was seen last.
fn id(expression: &str) -> String {
    format!(
        "(SELECT id FROM ids WHERE ids.key = {expression} \
         ORDER BY canonical DESC, last_seen_us DESC, alias, id LIMIT 1)"
    )
}

fn object_view(table: Table) -> String {
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

fn query_log_view() -> String {
    format!(
        "SELECT id, query, (SELECT group_concat({}, ' ') FROM json_each(subjects)) \
                 AS subjects, target, cursor, credential, node, status, outcome, reason, \
                 {} AS at, {} AS scheduled, {} AS sent, {} AS answered, {} AS committed, budgets, \
                 rank_us, seed_us, bytes, mended, rows_new, rows_changed, definition \
                 FROM query_log",
        id("json_each.value"),
        iso("at_us"),
        iso("scheduled_us"),
        iso("sent_us"),
        iso("answered_us"),
        iso("committed_us")
    )
}

/// All views: name and query.
pub(super) fn views() -> Vec<(&'static str, String)> {
    let seen = |table: &str| {
        format!(
            "{} AS first_seen, {} AS last_seen",
            iso(&format!("{table}.first_seen_us")),
            iso(&format!("{table}.last_seen_us"))
        )
    };
    vec![
        ("users_view", object_view(Table::Users)),
        ("statuses_view", object_view(Table::Statuses)),
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
        ("query_log_view", query_log_view()),
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

/// Makes the views that are missing or differ.
pub(super) fn refresh(connection: &Connection) -> rusqlite::Result<()> {
    for (name, query) in views() {
        let wanted = format!("CREATE VIEW {name} AS {query}");
        let stored: Option<String> = connection
            .query_row(
                "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?1",
                params![name],
                |row| row.get(0),
            )
            .optional()?;
        if stored.as_deref() != Some(&wanted) {
            connection.execute_batch(&format!("DROP VIEW IF EXISTS {name}; {wanted};"))?;
        }
    }
    Ok(())
}
