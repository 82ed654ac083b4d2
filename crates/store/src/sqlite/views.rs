//! How SQLite says what views need.

use crate::rules::views::{Told, Words, views};
use rusqlite::{Connection, OptionalExtension as _, params};

const WORDS: Words = Words { iso, of_each_key };

/// SQLite's own function takes whole seconds, so the fraction is put behind it; the remainder is
/// made positive for instants before 1970.
fn iso(expression: &str) -> String {
    format!(
        "strftime('%Y-%m-%dT%H:%M:%S', ({expression} - (({expression} % 1000000) + 1000000) \
         % 1000000) / 1000000, 'unixepoch') || \
         printf('.%06dZ', (({expression} % 1000000) + 1000000) % 1000000)"
    )
}

fn of_each_key(column: &str, told: Told) -> String {
    format!(
        "(SELECT group_concat({}, ' ') FROM json_each({column}))",
        told("json_each.value")
    )
}

/// Makes the views that are missing or differ.
pub(super) fn refresh(connection: &Connection) -> rusqlite::Result<()> {
    for (name, query) in views(WORDS) {
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
