//! What comes out of a file, and that it can go in again.

use kittiwake_model::clock::LATEST_US;
use kittiwake_model::{
    Alias, Commit, Discovery, Group, Identity, Key, Link, LinkTable, LogRow, Name, Object, Outcome,
    OutcomeCode, RealTime, Reference, Standing, Table, Value, WorldTime,
};
use kittiwake_store::export::{
    Compression, CsvStyle, Destination, ExportError, ExportFormat, ExportTable, ExportWriter,
    Field, ImportError, ImportReport, Importer, Input, RowSink, Selection,
};
use kittiwake_store::{OpenMode, SqliteStore, Store};
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Bytes that are written in one place and read in another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn store(folder: &Path, name: &str) -> SqliteStore {
    SqliteStore::open(&folder.join(name), OpenMode::Crawl).unwrap()
}

fn everything() -> Selection {
    Selection {
        tables: ExportTable::data().collect(),
        since: None,
    }
}

/// An export as text.
pub(crate) async fn exported(
    store: &dyn Store,
    selection: Selection,
    format: ExportFormat,
    style: CsvStyle,
) -> String {
    let bytes = Shared::default();
    let stream = Destination::Stream(Box::new(bytes.clone()));
    let writer = ExportWriter::new(
        stream,
        format,
        Compression::None,
        style,
        false,
        &selection.tables,
    )
    .unwrap();
    store.export(selection, Box::new(writer)).await.unwrap();
    let bytes = bytes.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

pub(crate) async fn lines(store: &dyn Store) -> String {
    exported(
        store,
        everything(),
        ExportFormat::Jsonl,
        CsvStyle::default(),
    )
    .await
}

async fn table(store: &dyn Store, table: ExportTable) -> Vec<serde_json::Value> {
    since(store, table, None).await
}

async fn since(
    store: &dyn Store,
    table: ExportTable,
    since_us: Option<i64>,
) -> Vec<serde_json::Value> {
    let selection = Selection {
        tables: vec![table],
        since: since_us.map(WorldTime),
    };
    let text = exported(store, selection, ExportFormat::Jsonl, CsvStyle::default()).await;
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) async fn import(store: &dyn Store, text: &str) -> Result<ImportReport, ImportError> {
    import_bytes(store, text.as_bytes().to_vec()).await
}

pub(crate) async fn import_bytes(
    store: &dyn Store,
    bytes: Vec<u8>,
) -> Result<ImportReport, ImportError> {
    let input = Input::new("test", None, Box::new(Cursor::new(bytes)))?;
    let mut importer = Importer::new(store);
    importer.read(input, &mut |_| {}).await?;
    Ok(importer.report().clone())
}

/// Everything that a file holds of the network, as SQL shows it.
pub(crate) async fn dump(store: &SqliteStore) -> Vec<Vec<Option<String>>> {
    let mut all = Vec::new();
    for sql in [
        "SELECT * FROM ids ORDER BY rowid",
        "SELECT * FROM types",
        "SELECT * FROM users ORDER BY key",
        "SELECT * FROM statuses ORDER BY key",
        "SELECT * FROM comments ORDER BY key",
        "SELECT * FROM tags ORDER BY key",
        "SELECT * FROM objects ORDER BY key",
        "SELECT * FROM user_relations",
        "SELECT * FROM user_tags",
        "SELECT * FROM links",
        "SELECT * FROM invalid_users",
        "SELECT * FROM invalid_relations",
        "SELECT * FROM versions",
        "SELECT * FROM counts",
        "SELECT * FROM pending",
        "SELECT * FROM key_merges",
    ] {
        all.push(vec![Some(sql.to_owned())]);
        all.extend(store.select_text(sql.to_owned()).await.unwrap());
    }
    all
}

pub(crate) fn identity(kind: &str, canonical: Option<&str>) -> Identity {
    Identity {
        network: "net".into(),
        kind: kind.into(),
        canonical: canonical.map(str::to_owned),
        aliases: Vec::new(),
    }
}

pub(crate) fn with_alias(
    mut identity: Identity,
    name: &str,
    host: &str,
    id: &str,
    movable: bool,
) -> Identity {
    identity.aliases.push(Alias {
        name: name.into(),
        id: id.into(),
        host: host.into(),
        movable,
    });
    identity
}

pub(crate) fn named(identity: &Identity) -> Reference {
    Reference::Identity(Box::new(identity.clone()))
}

fn object(table: Table, identity: Identity, group: &str, fields: &[(&str, Value)]) -> Object {
    let fields = fields.iter();
    Object {
        identity,
        known_as: None,
        table,
        groups: vec![Group {
            name: group.into(),
            fields: fields
                .map(|(field, value)| (Name::from(*field), value.clone()))
                .collect(),
        }],
        standing: Standing::Present,
    }
}

pub(crate) fn user(id: &str, name: &str) -> Object {
    let fields = [("display_name", Value::Text(name.to_owned()))];
    object(Table::Users, identity("user", Some(id)), "card", &fields)
}

pub(crate) fn follow(source: &str, target: &str) -> Link {
    Link {
        table: LinkTable::UserRelations,
        kind: "follow".into(),
        from: named(&identity("user", Some(source))),
        to: named(&identity("user", Some(target))),
        at: None,
        walk: None,
    }
}

pub(crate) fn at(at_us: i64) -> Commit {
    Commit {
        at: WorldTime(at_us),
        ..Commit::default()
    }
}

pub(crate) fn log_row() -> LogRow {
    LogRow {
        query: "profile".into(),
        subjects: vec![],
        target: "/a?b=c".to_owned(),
        cursor: String::new(),
        credential: "anonymous".to_owned(),
        node: "here".to_owned(),
        status: Some(200),
        outcome: OutcomeCode::Ok,
        reason: String::new(),
        scheduled: RealTime(1),
        sent: RealTime(2),
        answered: RealTime(3),
        budgets: vec!["ip".into()],
        rank_us: 4,
        read_us: 6,
        seed_us: 5,
        bytes: 6,
        mended: 0,
        definition: "digest".into(),
    }
}

pub(crate) async fn commit(store: &dyn Store, commit: Commit) -> Vec<Key> {
    let mut reports = store.commit(vec![commit]).await.unwrap();
    reports.pop().unwrap().discovered
}

/// Export, import, export: the same bytes, in both formats, and again.
pub(crate) async fn assert_goes_round(folder: &Path, original: &SqliteStore) {
    let before = lines(original).await;
    let copy = store(folder, "copy.db");
    import(&copy, &before).await.unwrap();
    assert_eq!(lines(&copy).await, before, "through JSON lines");
    let once = dump(&copy).await;
    let again = import(&copy, &before).await.unwrap();
    assert_eq!(dump(&copy).await, once, "a second import changes nothing");
    assert_eq!((again.rows_new, again.rows_changed), (0, 0));
    for (name, style) in [
        ("csv.db", CsvStyle::default()),
        (
            "excel.db",
            CsvStyle {
                excel: true,
                guard_formulas: false,
            },
        ),
    ] {
        let copy = store(folder, name);
        for table in ExportTable::data() {
            let selection = Selection {
                tables: vec![table],
                since: None,
            };
            let text = exported(original, selection, ExportFormat::Csv, style).await;
            import(&copy, &text).await.unwrap();
        }
        assert_eq!(lines(&copy).await, before, "through {name}");
    }
    // What comes home finds itself there.
    let home = dump(original).await;
    import(original, &before).await.unwrap();
    assert_eq!(dump(original).await, home, "an own export changes nothing");
}

#[tokio::test]
async fn objects_are_named_by_the_best_id_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let only_local = with_alias(identity("user", None), "id", "h:80", "9", false);
    let only_handle = with_alias(identity("user", None), "handle", "", "bob@h", true);
    let both = with_alias(
        identity("user", Some("alias:odd")),
        "id",
        "h:80",
        "7",
        false,
    );
    let foreign = Identity {
        network: "other".into(),
        ..identity("page", Some("p"))
    };
    let post = |id: &str, author: &Identity| {
        let fields = [("author", Value::Object(named(author)))];
        object(
            Table::Statuses,
            identity("status", Some(id)),
            "content",
            &fields,
        )
    };
    let tell = Commit {
        objects: vec![
            post("1", &only_local),
            post("2", &only_handle),
            post("3", &both),
            post("4", &foreign),
        ],
        ..at(1)
    };
    commit(&store, tell).await;
    let rows = table(&store, ExportTable::Statuses).await;
    let authors: Vec<&str> = rows
        .iter()
        .map(|row| row["author"].as_str().unwrap())
        .collect();
    assert_eq!(
        authors,
        [
            "alias:id:h%3A80:9",
            "movable:handle::bob@h",
            "canonical:alias:odd",
            "p"
        ]
    );
    assert!(rows[0]["observed"]["content"].get("kinds").is_none());
    assert_eq!(
        rows[3]["observed"]["content"]["kinds"]["author"],
        serde_json::json!({"network": "other", "type": "page"})
    );
    assert_goes_round(folder.path(), &store).await;
}

#[tokio::test]
async fn null_empty_and_not_observed_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let fields = [
        ("display_name", Value::Text(String::new())),
        ("description", Value::Null),
        ("note", Value::Text(String::new())),
        ("seen", Value::Null),
    ];
    let users = vec![object(
        Table::Users,
        identity("user", Some("a")),
        "card",
        &fields,
    )];
    commit(
        &store,
        Commit {
            objects: users,
            ..at(1)
        },
    )
    .await;
    let rows = table(&store, ExportTable::Users).await;
    assert_eq!(rows[0]["display_name"], "");
    assert!(rows[0]["description"].is_null() && rows[0]["url"].is_null());
    assert_eq!(
        rows[0]["extra"],
        serde_json::json!({"note": "", "seen": null})
    );
    let observed = &rows[0]["observed"]["card"]["fields"];
    assert_eq!(
        *observed,
        serde_json::json!(["description", "display_name", "note", "seen"])
    );
    let selection = Selection {
        tables: vec![ExportTable::Users],
        since: None,
    };
    let csv = exported(&store, selection, ExportFormat::Csv, CsvStyle::default()).await;
    assert!(
        csv.contains(r#""kinds"":{""display_name"":""empty""}"#),
        "{csv}"
    );
    assert_goes_round(folder.path(), &store).await;
}

#[tokio::test]
async fn times_are_iso_and_clamped_ones_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let time = |at_us, clamped| Value::Time { at_us, clamped };
    let fields = [
        ("created_us", time(-1, false)),
        ("last_posted_us", time(LATEST_US, true)),
        ("joined", time(1_780_315_200_000_000, false)),
        ("left", time(0, true)),
    ];
    let users = vec![object(
        Table::Users,
        identity("user", Some("a")),
        "card",
        &fields,
    )];
    commit(
        &store,
        Commit {
            objects: users,
            ..at(1)
        },
    )
    .await;
    let rows = table(&store, ExportTable::Users).await;
    assert_eq!(rows[0]["created"], "1969-12-31T23:59:59.999999Z");
    assert_eq!(rows[0]["last_posted"], "9999-12-30T22:00:00.000000Z");
    assert_eq!(rows[0]["extra"]["joined"], "2026-06-01T12:00:00.000000Z");
    assert_eq!(
        rows[0]["observed"]["card"]["kinds"],
        serde_json::json!({"last_posted_us": "clamped", "joined": "time", "left": "clamped"})
    );
    assert_goes_round(folder.path(), &store).await;
}

#[tokio::test]
async fn histories_name_the_objects_that_they_speak_of() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let moved = |to: &str| {
        let fields = [
            (
                "moved_to",
                Value::Object(named(&identity("user", Some(to)))),
            ),
            (
                "created_us",
                Value::Time {
                    at_us: 5,
                    clamped: to == "b",
                },
            ),
        ];
        object(
            Table::Users,
            identity("user", Some("a")),
            "profile",
            &fields,
        )
    };
    for (at_us, to) in [(1, "b"), (2, "c")] {
        let tell = Commit {
            objects: vec![moved(to)],
            log: Some(log_row()),
            ..at(at_us)
        };
        commit(&store, tell).await;
    }
    let rows = table(&store, ExportTable::Versions).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0]["fields"],
        serde_json::json!({"created_us": "1970-01-01T00:00:00.000005Z", "moved_to": "b"})
    );
    assert_eq!(
        rows[0]["kinds"],
        serde_json::json!({"created_us": "clamped", "moved_to": {"type": "user"}})
    );
    assert_eq!(rows[0]["log"], 1);
    assert_goes_round(folder.path(), &store).await;
}

#[tokio::test]
async fn since_takes_what_was_seen_or_observed_since() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let counts = |count| {
        let fields = [("followers_count", Value::Int(count))];
        object(Table::Users, identity("user", Some("b")), "counts", &fields)
    };
    let post = object(
        Table::Statuses,
        identity("status", Some("p")),
        "content",
        &[("text", Value::Text("t".into()))],
    );
    let tag = identity("tag", Some("t"));
    let link = |table, kind: &str, to: &Identity| Link {
        table,
        kind: kind.into(),
        to: named(to),
        ..follow("a", "b")
    };
    let old = Commit {
        objects: vec![user("a", "old"), counts(1), post],
        links: vec![
            follow("a", "b"),
            follow("b", "c"),
            link(LinkTable::UserTags, "tag", &tag),
            link(LinkTable::Links, "like", &identity("status", Some("p"))),
        ],
        discoveries: vec![
            Discovery {
                subject: Reference::Object(0),
                depth: 0,
            },
            Discovery {
                subject: Reference::Object(2),
                depth: 0,
            },
        ],
        log: Some(log_row()),
        ..at(10)
    };
    let keys = commit(&store, old).await;
    let new = Commit {
        objects: vec![counts(2)],
        links: vec![follow("a", "b")],
        outcomes: keys
            .iter()
            .map(|key| Outcome {
                subject: *key,
                query: "profile".into(),
                code: OutcomeCode::Gone,
                reason: "http 410".into(),
            })
            .collect(),
        log: Some(log_row()),
        ..at(20)
    };
    commit(&store, new).await;
    for (table, all, recent) in [
        (ExportTable::Ids, 5, 0),
        (ExportTable::Users, 2, 1),
        // It was not observed again, but it was seen to be gone.
        (ExportTable::Statuses, 1, 1),
        (ExportTable::UserRelations, 2, 1),
        (ExportTable::UserTags, 1, 0),
        (ExportTable::Links, 1, 0),
        (ExportTable::InvalidUsers, 1, 1),
        (ExportTable::Counts, 1, 0),
        (ExportTable::Outcomes, 2, 2),
        (ExportTable::QueryLog, 2, 1),
    ] {
        let name = table.name();
        assert_eq!(since(&store, table, None).await.len(), all, "{name}");
        assert_eq!(since(&store, table, Some(20)).await.len(), recent, "{name}");
        assert_eq!(since(&store, table, Some(21)).await.len(), 0, "{name}");
    }
    assert_goes_round(folder.path(), &store).await;
}

/// A sink that lets somebody else write after the first row.
#[derive(Debug)]
struct Waiting {
    first: Option<std::sync::mpsc::Sender<()>>,
    go_on: std::sync::mpsc::Receiver<()>,
    rows: Arc<Mutex<u64>>,
}

impl RowSink for Waiting {
    fn begin(&mut self, _: ExportTable) -> Result<(), ExportError> {
        Ok(())
    }

    fn row(&mut self, _: &[Field<'_>]) -> Result<(), ExportError> {
        *self.rows.lock().unwrap() += 1;
        if let Some(first) = self.first.take() {
            first.send(()).unwrap();
            self.go_on.recv().unwrap();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    fn hides_empty_text(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_shows_one_moment_while_a_crawl_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(store(folder.path(), "a.db"));
    let tell = |id: &str| Commit {
        objects: vec![user(id, "x")],
        ..at(1)
    };
    commit(&*store, tell("a")).await;
    let (first, has_begun) = std::sync::mpsc::channel();
    let (write, go_on) = std::sync::mpsc::channel();
    let rows = Arc::new(Mutex::new(0));
    let sink = Waiting {
        first: Some(first),
        go_on,
        rows: rows.clone(),
    };
    let selection = Selection {
        tables: vec![ExportTable::Ids, ExportTable::Users],
        since: None,
    };
    let exporting = {
        let store = store.clone();
        tokio::spawn(async move { store.export(selection, Box::new(sink)).await })
    };
    tokio::task::spawn_blocking(move || has_begun.recv().unwrap())
        .await
        .unwrap();
    commit(&*store, tell("b")).await;
    write.send(()).unwrap();
    let counted = exporting.await.unwrap().unwrap();
    assert_eq!(counted[&ExportTable::Users], 1, "b came later");
    assert_eq!(*rows.lock().unwrap(), 2);
}

#[tokio::test]
async fn every_exported_column_is_described_and_nothing_else() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
    let sections = crate::documentation::described(&std::fs::read_to_string(path).unwrap());
    for table in ExportTable::ALL {
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
        let known = sections.get(table.name());
        assert_eq!(
            known.map(|names| names.iter().map(String::as_str).collect()),
            Some(columns),
            "docs/export.md: {} (left: described, right: exported)",
            table.name()
        );
    }
    for section in sections.keys() {
        assert!(
            ExportTable::from_name(section).is_some(),
            "docs/export.md: there is no {section}"
        );
    }
}
