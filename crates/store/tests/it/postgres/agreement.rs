//! A server and a file that were given the same hold the same.

use super::{open, schema};
use crate::export::{import, lines, store};
use crate::round_trip::{any_step, take};
use kittiwake_store::Store as _;
use kittiwake_store::suite::Inspect;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Table or view and column, of all there are.
async fn columns(store: &dyn Inspect, sql: &str) -> BTreeSet<(String, String)> {
    let rows = store.select(sql.to_owned()).await.unwrap();
    rows.into_iter()
        .map(|mut row| {
            let column = row.pop().unwrap().unwrap();
            (row.pop().unwrap().unwrap(), column)
        })
        .collect()
}

#[tokio::test]
async fn a_server_has_the_tables_and_views_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut filed = columns(
        &store(folder.path(), "a.db"),
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
         WHERE m.type IN ('table', 'view') AND m.name <> 'id_places'",
    )
    .await;
    // What SQLite has without being told.
    filed.insert(("ids".to_owned(), "rowid".to_owned()));
    let schema = schema();
    let served = columns(
        &open(&schema),
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = current_schema()",
    )
    .await;
    assert_eq!(served, filed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_server_keeps_what_a_file_keeps(steps in prop::collection::vec(any_step(), 1..7)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let file = store(folder.path(), "a.db");
            let schema = schema();
            let server = open(&schema);
            for step in steps {
                take(&file, step.clone()).await;
                take(&server, step).await;
            }
            let text = lines(&file).await;
            prop_assert_eq!(&lines(&server).await, &text);
            // What both count is the same, but for tables that only one of them has.
            let (mut filed, mut served) =
                (file.summary().await.unwrap(), server.summary().await.unwrap());
            for table in ["id_places", "rules", "put_off"] {
                filed.rows.remove(table);
                served.rows.remove(table);
            }
            prop_assert_eq!(filed, served);
            prop_assert_eq!(
                file.methods().await.unwrap().outcomes,
                server.methods().await.unwrap().outcomes
            );
            // And in again, on another server and in another file.
            let (other, copy) = (super::schema(), store(folder.path(), "copy.db"));
            let other = (open(&other), other);
            import(&copy, &text).await.unwrap();
            import(&other.0, &text).await.unwrap();
            prop_assert_eq!(lines(&other.0).await, lines(&copy).await);
            Ok(())
        })?;
    }
}
