//! Time and memory to read a whole account of the AT Protocol out of a CAR.
//!
//! `cargo bench -p kittiwake-network --bench car`. Accounts are made up: of ten records six are likes,
//! two follows and two posts, as large as those of real accounts are. After `--`, numbers of records
//! choose other sizes. Times are the processor's, so that whatever else the machine does counts for
//! little; memory is that of a process of its own at its highest (`VmHWM`), with the file and what was
//! read of it, and without what it had before. Linux only.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use kittiwake_model::{Identity, Key, OutcomeCode};
use kittiwake_network::{Answer, Network, Page, car_to_json};
use repository::{DID, Repository};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

#[path = "../tests/it/repository.rs"]
mod repository;

const DEFINITION: &str = include_str!("../tests/it/repository.toml");
const ROUNDS: usize = 7;
/// With the account itself, the second has as many objects as are read of one answer.
const RECORDS: [usize; 2] = [50_000, 199_999];

/// Tells the program to read one account from its standard input, and to print what that took.
const MEMORY: &str = "--memory";

fn main() {
    let network = match Network::parse("repository.toml", DEFINITION) {
        Ok(network) => network,
        Err(errors) => {
            println!("{errors}");
            return;
        }
    };
    if std::env::args().any(|it| it == MEMORY) {
        print_memory(&network);
        return;
    }
    let chosen: Vec<usize> = std::env::args().flat_map(|it| it.parse()).collect();
    let sizes = if chosen.is_empty() {
        RECORDS.to_vec()
    } else {
        chosen
    };
    for records in sizes {
        measure(&network, records);
    }
}

fn measure(network: &Network, records: usize) {
    let body = account(records).car();
    let objects = read(network, &body);
    let (mut converting, mut reading) = (Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        let start = processor_time();
        let json_bytes = black_box(car_to_json(&body)).map_or(0, |json| json.len());
        let middle = processor_time();
        assert!(json_bytes > 0 && read(network, &body) == objects);
        converting.push(middle.saturating_sub(start));
        reading.push(processor_time().saturating_sub(middle));
    }
    let rate = |took: Duration| {
        let seconds = took.as_secs_f64();
        format!(
            "{:.0} ms, {:.0} records/s, {:.0} MB/s",
            seconds * 1e3,
            records as f64 / seconds,
            body.len() as f64 / 1e6 / seconds
        )
    };
    println!(
        "car, {records} records, {:.1} MB: to json {}; to {objects} objects {}; {}",
        body.len() as f64 / 1e6,
        rate(median(converting)),
        rate(median(reading)),
        memory_of(&body).unwrap_or_else(|| "memory unknown".to_owned())
    );
}

/// What a process of its own needs to read the account once.
fn memory_of(body: &[u8]) -> Option<String> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg(MEMORY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(body).ok()?;
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (!text.is_empty()).then(|| text.trim().to_owned())
}

fn print_memory(network: &Network) {
    let before = high_water();
    let mut body = Vec::new();
    if std::io::stdin().read_to_end(&mut body).is_err() {
        return;
    }
    body.shrink_to_fit();
    read(network, &body);
    if let (Some(before), Some(after)) = (before, high_water()) {
        let bytes = (after - before) * 1_024;
        let times = bytes as f64 / body.len() as f64;
        println!("memory {} MB, {times:.1} times the file", bytes / 1_000_000);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The most memory that the process ever had, in KiB.
fn high_water() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How long this thread has been running, without waits.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split_ascii_whitespace().next();
    let nanoseconds = nanoseconds.and_then(|it| it.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn read(network: &Network, body: &[u8]) -> usize {
    let (Ok(base), Some(query)) = (network.base(""), network.query("repository")) else {
        return 0;
    };
    let subject = Identity {
        network: network.name().clone(),
        kind: query.kind.clone(),
        canonical: Some(DID.to_owned()),
        aliases: Vec::new(),
    };
    let reading = network.read(&Answer {
        query,
        base: &base,
        host: "ledges.example",
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body,
        walk: None,
    });
    assert!(
        reading.outcome == OutcomeCode::Ok && reading.mended == 0,
        "{}",
        reading.reason
    );
    let objects = reading.objects.len();
    black_box(reading);
    objects
}

fn account(records: usize) -> Repository {
    Repository::new((0..records).map(|number| {
        let collection = match number % 10 {
            0..6 => "app.birds.like",
            6..8 => "app.birds.follow",
            _ => "app.birds.note",
        };
        let path = format!("{collection}/{}", key(number as u64));
        (path, record(collection, number))
    }))
}

/// A key that tells the time of its making: a record every eight minutes.
fn key(number: u64) -> String {
    const LETTERS: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    let value = (1_700_000_000_000_000 + number * 479_001_600) << 10;
    let letters = (0..13)
        .rev()
        .map(|place| LETTERS[(value >> (5 * place) & 31) as usize]);
    letters.map(char::from).collect()
}

fn record(collection: &str, number: usize) -> Value {
    let uri = format!("at://did:plc:{number:024}/app.birds.note/3l{number:011}");
    let cid = "bafyreifizeas532p3dhbcj7t4rcnwhnmq23rip4c3uqusnsuul2aliozou";
    let created = format!(
        "2026-{:02}-{:02}T17:06:00.{:03}Z",
        number % 12 + 1,
        number % 28 + 1,
        number % 1_000
    );
    match collection {
        "app.birds.like" => json!({
            "$type": collection, "createdAt": created, "subject": {"cid": cid, "uri": uri},
        }),
        "app.birds.follow" => json!({
            "$type": collection, "createdAt": created, "subject": format!("did:plc:{number:024}"),
        }),
        _ => json!({
            "$type": collection,
            "createdAt": created,
            "langs": ["en"],
            "text": format!("Kittiwakes nest on narrow ledges and call their own name; note {number} of the year."),
            "reply": {"parent": {"cid": cid, "uri": uri}, "root": {"cid": cid, "uri": uri}},
            "tags": ["birds"],
            "picture": {"$link": cid},
        }),
    }
}
