//! Commits and rows per second of both stores, one committer against many.
//!
//! Each commit is what one page of a timeline brings: 40 new statuses by authors drawn from a
//! Zipf distribution, their authors' cards, a log row, an outcome and a cursor.
//!
//! Stores are compared that keep as much after a power cut: either everything that was committed
//! (`FULL` of a file, `synchronous_commit = on` of a server), or all but the last commits (`NORMAL`,
//! as crawls have it, and `off`). The server is a throw-away one with its own settings otherwise.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

use kittiwake_model::{
    Alias, Commit, Cursor, CursorState, Group, Identity, Key, LogRow, Name, Object, Outcome,
    OutcomeCode, RealTime, Reference, Standing, Table, Value, WorldTime,
};
use kittiwake_store::suite::Inspect;
use kittiwake_store::{OpenMode, PostgresStore, SqliteStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[path = "../tests/it/postgres/server.rs"]
mod server;

const PAGES: usize = 1_500;
const STATUSES: usize = 40;
const AUTHORS: usize = 20_000;

/// Authors by Zipf's law, drawn by walking the sums.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize) -> Self {
        let mut sum = 0.0;
        Self(
            (1..=count)
                .map(|rank| {
                    sum += 1.0 / rank as f64;
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, random: u64) -> usize {
        let total = self.0.last().copied().unwrap_or(1.0);
        let at = (random >> 11) as f64 / (1_u64 << 53) as f64 * total;
        self.0.partition_point(|sum| *sum < at)
    }
}

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

fn identity(kind: &Name, uri: String, local: String, handle: Option<String>) -> Identity {
    let mut aliases = vec![Alias {
        name: "id".into(),
        id: local,
        host: "example.social".to_owned(),
        movable: false,
    }];
    aliases.extend(handle.map(|id| Alias {
        name: "handle".into(),
        id,
        host: String::new(),
        movable: true,
    }));
    Identity {
        network: "mastodon".into(),
        kind: kind.clone(),
        canonical: Some(uri),
        aliases,
    }
}

struct Words {
    user: Name,
    status: Name,
    card: Name,
    content: Name,
    counts: Name,
    fields: Vec<Name>,
}

impl Words {
    fn new() -> Self {
        Self {
            user: "user".into(),
            status: "status".into(),
            card: "card".into(),
            content: "content".into(),
            counts: "counts".into(),
            fields: [
                "handle",
                "display_name",
                "url",
                "author",
                "created_us",
                "text",
                "html",
                "language",
                "visibility",
                "is_sensitive",
                "replies_count",
                "reposts_count",
                "likes_count",
            ]
            .map(Name::from)
            .to_vec(),
        }
    }

    fn field(&self, place: usize, value: Value) -> (Name, Value) {
        (self.fields[place].clone(), value)
    }

    fn author(&self, number: usize) -> Object {
        let handle = format!("user{number}@example.social");
        let uri = format!("https://example.social/users/user{number}");
        Object {
            identity: identity(
                &self.user,
                uri.clone(),
                format!("{}", 109_000_000 + number),
                Some(handle.clone()),
            ),
            known_as: None,
            table: Table::Users,
            groups: vec![Group {
                name: self.card.clone(),
                fields: vec![
                    self.field(0, Value::Text(handle)),
                    self.field(1, Value::Text(format!("User {number}"))),
                    self.field(2, Value::Text(uri)),
                ],
            }],
            standing: Standing::Present,
        }
    }

    fn status(&self, number: u64, author: u32) -> Object {
        let text = format!("{number} says what a post of ordinary length says. ").repeat(3);
        Object {
            identity: identity(
                &self.status,
                format!("https://example.social/users/x/statuses/{number}"),
                format!("{number}"),
                None,
            ),
            known_as: None,
            table: Table::Statuses,
            groups: vec![
                Group {
                    name: self.content.clone(),
                    fields: vec![
                        self.field(3, Value::Object(Reference::Object(author))),
                        self.field(
                            4,
                            Value::Time {
                                at_us: 1_700_000_000_000_000 + (mix(number) % 1_000_000_000) as i64,
                                clamped: false,
                            },
                        ),
                        self.field(6, Value::Text(format!("<p>{text}</p>"))),
                        self.field(5, Value::Text(text)),
                        self.field(7, Value::Text("en".to_owned())),
                        self.field(8, Value::Text("public".to_owned())),
                        self.field(9, Value::Bool(false)),
                    ],
                },
                Group {
                    name: self.counts.clone(),
                    fields: vec![
                        self.field(10, Value::Int((number % 7) as i64)),
                        self.field(11, Value::Int((number % 5) as i64)),
                        self.field(12, Value::Int((number % 11) as i64)),
                    ],
                },
            ],
            standing: Standing::Present,
        }
    }
}

fn log_row() -> LogRow {
    LogRow {
        query: "timeline".into(),
        subjects: vec![Key(1)],
        target: "/api/v1/accounts/1/statuses?limit=40".to_owned(),
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
        rank_us: 1,
        read_us: 1,
        seed_us: 1,
        bytes: 60_000,
        mended: 0,
        definition: "digest".into(),
    }
}

fn page(words: &Words, zipf: &Zipf, number: usize) -> Commit {
    let mut objects = Vec::with_capacity(2 * STATUSES);
    for place in 0..STATUSES {
        let id = (number * STATUSES + place) as u64;
        objects.push(words.author(zipf.draw(mix(id))));
        objects.push(words.status(110_000_000_000 + id, (2 * place) as u32));
    }
    Commit {
        at: WorldTime(1_800_000_000_000_000 + number as i64),
        log: Some(log_row()),
        objects,
        outcomes: vec![Outcome {
            subject: Key(1),
            query: "timeline".into(),
            code: OutcomeCode::Ok,
            reason: String::new(),
        }],
        cursors: vec![Cursor {
            subject: Key(1),
            query: "timeline".into(),
            walk: 1,
            digest: "paging".into(),
            pages: number as u32,
            items: 40,
            state: CursorState::Next(format!("max_id={number}")),
            checkpoint: None,
            mark_next: None,
            mark: None,
            started: WorldTime(1),
        }],
        ..Commit::default()
    }
}

const FILE_SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
const SCHEMA_SIZE: &str = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                           WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'";

/// What is there after a power cut.
#[derive(Clone, Copy)]
enum Keeps {
    /// All but the last commits.
    Most,
    All,
}

/// Gives the statuses per second.
async fn measure(name: &str, store: Arc<dyn Inspect>, size: &str, committers: usize) -> f64 {
    let (words, zipf) = (Words::new(), Zipf::new(AUTHORS));
    // A subject for the outcome and the cursor.
    let first = Commit {
        objects: vec![words.author(0)],
        ..Commit::default()
    };
    store.commit(vec![first]).await.unwrap();
    let mut shares: Vec<Vec<Commit>> = vec![Vec::new(); committers];
    for number in 0..PAGES {
        shares[number % committers].push(page(&words, &zipf, number));
    }
    let started = Instant::now();
    let tasks: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let store = store.clone();
            tokio::spawn(async move {
                for one in share {
                    store.commit(vec![one]).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    let summary = store.summary().await.unwrap();
    let rows: u64 = summary.rows.values().sum();
    let size = store.select(size.to_owned()).await.unwrap();
    let bytes: f64 = size[0][0].as_ref().unwrap().parse().unwrap();
    let per_second = summary.rows["statuses"] as f64 / seconds;
    println!(
        "{name:<32} {committers:>2} at once: {:>6.0} commits/s, {per_second:>7.0} statuses/s, {:>7.0} rows/s \
         ({PAGES} pages of {STATUSES}, {rows} rows in all tables, {seconds:.2} s, {:.0} bytes per \
         status)",
        PAGES as f64 / seconds,
        rows as f64 / seconds,
        bytes / summary.rows["statuses"] as f64,
    );
    per_second
}

async fn file(folder: &Path, keeps: Keeps) -> Arc<dyn Inspect> {
    let store = SqliteStore::open(&folder.join("crawl.db"), OpenMode::Crawl).unwrap();
    if matches!(keeps, Keeps::All) {
        store.sync_fully().await.unwrap();
    }
    Arc::new(store)
}

fn served(schema: &server::Schema, keeps: Keeps) -> Arc<dyn Inspect> {
    let setting = match keeps {
        Keeps::Most => "off",
        Keeps::All => "on",
    };
    let setting = format!("%20-csynchronous_commit%3D{setting}&application_name=");
    let url = schema.url.replace("&application_name=", &setting);
    Arc::new(PostgresStore::open(&url, OpenMode::Crawl).unwrap())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = server::durable();
    runtime.block_on(async {
        for (keeps, of_file, of_server) in [
            (
                Keeps::Most,
                "sqlite, NORMAL",
                "postgres, synchronous_commit off",
            ),
            (
                Keeps::All,
                "sqlite, FULL",
                "postgres, synchronous_commit on",
            ),
        ] {
            for committers in [1, 16] {
                let folder = tempfile::tempdir().unwrap();
                let store = file(folder.path(), keeps).await;
                let by_file = measure(of_file, store, FILE_SIZE, committers).await;
                let schema = server.schema();
                let store = served(&schema, keeps);
                let by_server = measure(of_server, store, SCHEMA_SIZE, committers).await;
                println!("postgres : sqlite = {:.2}", by_server / by_file);
            }
        }
    });
}
