//! D: the two heavy parts of the path, each alone: reading a page into objects, and storing them.
//!
//! Counted in processor time, which other programs on the machine disturb less than they disturb
//! the clock.

use crate::Bench;
use crate::measure::own_cpu_seconds;
use crate::pages::{PAGES_PER_TIMELINE, Pages, Place, owner};
use kittiwake_model::{
    Alias, Commit, Identity, Key, LogRow, Object, Outcome, OutcomeCode, RealTime, Standing, Table,
    WorldTime,
};
use kittiwake_network::{Answer, Network, Page, Reading};
use kittiwake_store::{OpenMode, SqliteStore, Store};
use std::sync::Arc;

const HOST: &str = "sea.example";

pub(crate) fn run(bench: &Bench) {
    let pages = if bench.quick { 200 } else { 2_000 };
    println!("\nD. Parts of the path alone, {pages} pages, CPU time\n");
    let network = network();
    let rendered = Pages::new();
    let bodies: Vec<Vec<u8>> = places(pages).map(|place| rendered.render(place)).collect();
    let before = own_cpu_seconds();
    for body in &bodies {
        read(&network, body);
    }
    let reading = own_cpu_seconds() - before;
    println!(
        "reading                   {:.3} ms/page",
        per_page(reading, pages)
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for committers in [1, 16] {
        let folder = bench.folder();
        let file = folder.path().join("crawl.db");
        let store = Arc::new(SqliteStore::open(&file, OpenMode::Crawl).unwrap());
        let storing = runtime.block_on(store_all(&network, &bodies, &store, committers));
        println!(
            "storing, {committers:>2} at once       {:.3} ms/page",
            per_page(storing, pages)
        );
    }
}

fn per_page(seconds: f64, pages: u64) -> f64 {
    seconds * 1_000.0 / pages as f64
}

fn network() -> Network {
    let text = include_str!("../../../../networks/mastodon.toml");
    Network::parse("mastodon.toml", text).unwrap()
}

fn places(pages: u64) -> impl Iterator<Item = Place> {
    (0..pages).map(|number| Place::nth(number / PAGES_PER_TIMELINE, number % PAGES_PER_TIMELINE))
}

fn read(network: &Network, body: &[u8]) -> Reading {
    let base = network.base(HOST).unwrap();
    let subject = subject().identity;
    let reading = network.read(&Answer {
        query: network.query("timeline").unwrap(),
        base: &base,
        host: HOST,
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body,
        walk: None,
    });
    assert!(reading.items == 40 && reading.mended == 0);
    reading
}

/// Whom the commits are about, as far as outcomes go.
fn subject() -> Object {
    let alias = Alias {
        name: "id".into(),
        id: owner(0).to_string(),
        host: HOST.to_owned(),
        movable: false,
    };
    Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: None,
            aliases: vec![alias],
        },
        known_as: None,
        table: Table::Users,
        groups: Vec::new(),
        standing: Standing::Present,
    }
}

/// Commits all pages; the processor time that this took, beside reading them.
async fn store_all(
    network: &Network,
    bodies: &[Vec<u8>],
    store: &Arc<SqliteStore>,
    committers: usize,
) -> f64 {
    let first = Commit {
        objects: vec![subject()],
        ..Commit::default()
    };
    store.commit(vec![first]).await.unwrap();
    let mut shares: Vec<Vec<Commit>> = vec![Vec::new(); committers];
    for (number, body) in bodies.iter().enumerate() {
        shares[number % committers].push(commit(read(network, body), number));
    }
    let before = own_cpu_seconds();
    let tasks = shares.into_iter().map(|share| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for one in share {
                store.commit(vec![one]).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    own_cpu_seconds() - before
}

fn commit(reading: Reading, number: usize) -> Commit {
    Commit {
        at: WorldTime(1_800_000_000_000_000 + number as i64 * 1_000),
        log: Some(log_row()),
        objects: reading.objects,
        links: reading.links,
        outcomes: vec![Outcome {
            subject: Key(1),
            query: "timeline".into(),
            code: OutcomeCode::Ok,
            reason: String::new(),
        }],
        ..Commit::default()
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
        bytes: 98_000,
        mended: 0,
        definition: "digest".into(),
    }
}
