//! F: whole accounts of the AT Protocol, as the shipped definition has them: read out of a CAR, and stored.

use crate::Bench;
use crate::contenders;
use crate::measure::own_cpu_seconds;
use crate::repository::{DID, Repository};
use kittiwake_model::{Commit, Identity, Key, Object, OutcomeCode, Standing, Table, WorldTime};
use kittiwake_network::{Answer, Network, Page, Reading};
use kittiwake_store::{OpenMode, SqliteStore, Store};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(bench: &Bench) {
    let records = if bench.quick { 2_000 } else { 50_000 };
    let text = include_str!("../../../../networks/bluesky.toml");
    let network = Network::parse("bluesky.toml", text).unwrap();
    let body = account(records).car();
    println!(
        "\nF. A whole account, {records} records, {:.1} MB, CPU time\n",
        body.len() as f64 / 1e6
    );
    let before = own_cpu_seconds();
    let reading = read(&network, &body);
    let reading_s = own_cpu_seconds() - before;
    let folder = bench.folder();
    let file = folder.path().join("crawl.db");
    let store = SqliteStore::open(&file, OpenMode::Crawl).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let storing_s = runtime.block_on(store_account(&store, &network, reading));
    assert_stored(&file, records);
    for (what, seconds) in [
        ("reading", reading_s),
        ("storing", storing_s),
        ("both", reading_s + storing_s),
    ] {
        let rate = records as f64 / seconds;
        println!("{what:<8} {:>7.0} ms {rate:>9.0} records/s", seconds * 1e3);
    }
}

/// Every record is a row of its kind.
fn assert_stored(file: &Path, records: usize) {
    let connection = contenders::open(file);
    let expected = [
        ("links WHERE kind = 'like'", 6 * records / 10),
        ("user_relations", 2 * records / 10),
        ("statuses WHERE text IS NOT NULL", 2 * records / 10),
    ];
    for (rows, count) in expected {
        let sql = format!("SELECT count(*) FROM {rows}");
        let found: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, count as i64, "{rows}");
    }
}

/// Commits an account as one answer; the processor time that this took.
async fn store_account(store: &SqliteStore, network: &Network, reading: Reading) -> f64 {
    let subject = Object {
        identity: identity(network),
        known_as: None,
        table: Table::Users,
        groups: Vec::new(),
        standing: Standing::Present,
    };
    let first = Commit {
        objects: vec![subject],
        ..Commit::default()
    };
    store.commit(vec![first]).await.unwrap();
    let commit = Commit {
        at: WorldTime(1_800_000_000_000_000),
        objects: reading.objects,
        links: reading.links,
        ..Commit::default()
    };
    let before = own_cpu_seconds();
    store.commit(vec![commit]).await.unwrap();
    own_cpu_seconds() - before
}

fn identity(network: &Network) -> Identity {
    Identity {
        network: network.name().clone(),
        kind: "user".into(),
        canonical: Some(DID.to_owned()),
        aliases: Vec::new(),
    }
}

fn read(network: &Network, body: &[u8]) -> Reading {
    let base = network.base("").unwrap();
    let subject = identity(network);
    let reading = network.read(&Answer {
        query: network.query("repository").unwrap(),
        base: &base,
        host: "pds.example",
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body,
        walk: None,
    });
    assert_eq!(reading.outcome, OutcomeCode::Ok, "{}", reading.reason);
    reading
}

/// Of ten records six are likes, two follows and two posts, one of which answers another.
fn account(records: usize) -> Repository {
    Repository::new((0..records).map(|number| {
        let collection = match number % 10 {
            0..6 => "app.bsky.feed.like",
            6..8 => "app.bsky.graph.follow",
            _ => "app.bsky.feed.post",
        };
        let key = number.wrapping_mul(7_919) % 10_000_000_000;
        (
            format!("{collection}/3l{key:011}"),
            record(collection, number),
        )
    }))
}

fn record(collection: &str, number: usize) -> Value {
    let did = format!("did:plc:{number:024}");
    let uri = format!("at://{did}/app.bsky.feed.post/3l{number:011}");
    let cid = "bafyreifizeas532p3dhbcj7t4rcnwhnmq23rip4c3uqusnsuul2aliozou";
    let (month, day) = (number % 12 + 1, number % 28 + 1);
    let created = format!("2026-{month:02}-{day:02}T17:06:00.000Z");
    let subject = json!({ "cid": cid, "uri": uri });
    match collection {
        "app.bsky.feed.like" => {
            json!({ "$type": collection, "createdAt": created, "subject": subject })
        }
        "app.bsky.graph.follow" => {
            json!({ "$type": collection, "createdAt": created, "subject": did })
        }
        _ => {
            let text = format!("Kittiwakes nest on narrow ledges; note {number} of the year.");
            let mut post =
                json!({ "$type": collection, "createdAt": created, "langs": ["en"], "text": text });
            if number % 20 < 10 {
                post["reply"] = json!({ "parent": subject, "root": subject });
            }
            post
        }
    }
}
