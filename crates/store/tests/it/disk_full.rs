//! A full disk: a clear error, nothing half-written, and a crawl that goes on when there is room.

use kittiwake_model::{Commit, Group, Identity, Object, Standing, Table, Value, WorldTime};
use kittiwake_store::{OpenMode, SqliteStore, Store, StoreErrorKind};

fn bulky(number: usize) -> Commit {
    let user = |part: &str| Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: Some(format!("user {number} {part}")),
            aliases: Vec::new(),
        },
        known_as: None,
        table: Table::Users,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![("description".into(), Value::Text("x".repeat(20_000)))],
        }],
        standing: Standing::Present,
    };
    Commit {
        at: WorldTime(number as i64),
        objects: vec![user("a"), user("b"), user("c")],
        ..Commit::default()
    }
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("crawl.db"), OpenMode::Crawl).unwrap();
    store.commit(vec![bulky(0)]).await.unwrap();
    let pages = store
        .select_text("SELECT page_count FROM pragma_page_count".to_owned())
        .await
        .unwrap();
    let pages: u32 = pages[0][0].as_ref().unwrap().parse().unwrap();
    store.limit_pages(pages + 60).await.unwrap();
    let mut written = 1;
    let error = loop {
        match store.commit(vec![bulky(written)]).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the disk never fills");
    };
    assert_eq!(error.kind(), StoreErrorKind::DiskFull);
    assert!(error.to_string().contains("disk is full"), "{error}");
    // Whole commits, and no key of the one that failed.
    let summary = store.summary().await.unwrap();
    assert_eq!(summary.rows["users"], 3 * written as u64);
    assert_eq!(summary.rows["ids"], 3 * written as u64);
    // A small commit still fits, a big one still does not; with room everything goes on.
    store.commit(vec![Commit::default()]).await.unwrap();
    assert!(store.commit(vec![bulky(written)]).await.is_err());
    store.limit_pages(1_000_000).await.unwrap();
    store.commit(vec![bulky(written)]).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&folder.path().join("crawl.db"), OpenMode::Crawl).unwrap();
    let summary = store.summary().await.unwrap();
    assert_eq!(summary.rows["users"], 3 * (written as u64 + 1));
}
