//! Every table, view and column is described in docs/tables.md.

use kittiwake_store::{OpenMode, SqliteStore};
use std::collections::BTreeMap;

/// The names in backticks at the beginning of table rows, by the heading that they stand under.
pub(crate) fn described(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            current = heading
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            for name in &current {
                sections.entry(name.clone()).or_default();
            }
        } else if line.starts_with("| `") {
            let cell = line
                .trim_start_matches('|')
                .split('|')
                .next()
                .unwrap_or_default();
            let columns: Vec<String> = cell
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            for name in &current {
                sections
                    .entry(name.clone())
                    .or_default()
                    .extend(columns.clone());
            }
        }
    }
    sections
}

#[tokio::test]
async fn every_table_and_column_is_described_and_nothing_else() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");
    let sections = described(&std::fs::read_to_string(path).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("crawl.db"), OpenMode::Crawl).unwrap();
    let rows = store
        .select_text(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
             WHERE m.type IN ('table', 'view')"
                .to_owned(),
        )
        .await
        .unwrap();
    let mut stored: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        stored
            .entry(row[0].clone().unwrap())
            .or_default()
            .push(row[1].clone().unwrap());
    }
    for (table, columns) in &stored {
        let known = sections
            .get(table)
            .unwrap_or_else(|| panic!("docs/tables.md does not describe {table}"));
        // Views are described as a whole.
        if table.ends_with("_view") {
            continue;
        }
        for column in columns {
            assert!(
                known.contains(column),
                "docs/tables.md: {table}.{column} is missing"
            );
        }
        for column in known {
            assert!(
                columns.contains(column),
                "docs/tables.md: {table} has no {column}"
            );
        }
    }
    for table in sections.keys() {
        assert!(
            stored.contains_key(table),
            "docs/tables.md: there is no {table}"
        );
    }
}
