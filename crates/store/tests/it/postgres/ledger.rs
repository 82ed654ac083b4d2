//! The ledger on a server: many machines, lost connections, and what a server has to promise.

use super::schema;
use super::server::{self, OWNER, Schema};
use kittiwake_model::{BudgetId, LimitTime};
use kittiwake_store::{
    Acquired, Ledger, Location, OpenMode, Part, PostgresStore, Settling, StoreError,
    StoreErrorKind, Term, Want,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const LIMIT: u64 = 3_000;
/// How often all connections are cut: less often than a transaction is tried again.
const CUTS: u32 = 12;
const NOW: LimitTime = LimitTime(5_000_000);
const END: LimitTime = LimitTime(1_000_000_000);

fn place(schema: &Schema) -> Location {
    Location::Server(schema.url.clone())
}

fn want(holder: &str, calls: u32) -> Want {
    Want {
        budget: BudgetId("ip".to_owned()),
        at: NOW,
        limit: LIMIT,
        call_units: 1,
        calls,
        term: Term::Until {
            until: END,
            window: LimitTime(0),
        },
        ask_again: NOW.plus_us(1),
        use_us: 0,
        holder: holder.to_owned(),
    }
}

#[track_caller]
fn assert_says(error: &StoreError, kind: StoreErrorKind, words: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// Takes calls and hands one of five back, until there is nothing left for a while; gives what it
/// has used. Before it `may_use` any, it hands back all of them.
async fn take_all(ledger: &Ledger, holder: &str, may_use: impl Fn() -> bool) -> u64 {
    let mut used = 0;
    let mut refusals = 0;
    while refusals < 3 {
        match ledger.acquire(vec![want(holder, 5)]).await.unwrap() {
            Acquired::Granted(grants) => {
                let unused = match grants[0].units {
                    units if !may_use() => units,
                    units => u64::from(units == 5),
                };
                let units = grants[0].units - unused;
                used += units;
                let settling = Settling {
                    grant: grants[0].id,
                    parts: vec![Part { units, until: END }],
                    open: None,
                };
                ledger.settle(vec![settling]).await.unwrap();
                refusals = 0;
            }
            Acquired::Exhausted { .. } => refusals += 1,
        }
    }
    used
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_machines_share_a_limit_whatever_becomes_of_their_connections() {
    let schema = schema();
    let ledgers = [(); 2].map(|()| Arc::new(Ledger::open_unsynced(&place(&schema)).unwrap()));
    let (used, cuts) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..12)
        .map(|number| {
            let (ledger, used) = (ledgers[number % 2].clone(), used.clone());
            let cuts = cuts.clone();
            tokio::spawn(async move {
                // Until the last cut everything is handed back, so that there is enough for all cuts.
                let is_time = || cuts.load(Ordering::SeqCst) == CUTS;
                let calls = take_all(&ledger, &format!("machine {}", number % 2), is_time).await;
                used.fetch_add(calls, Ordering::SeqCst);
            })
        })
        .collect();
    let (name, url) = (schema.name.clone(), schema.url.clone());
    let cutter = std::thread::spawn(move || {
        let beside = Schema { name, url };
        for _ in 0..CUTS {
            beside.end_sessions();
            cuts.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
        }
        // The test itself drops the schema.
        std::mem::forget(beside);
    });
    for task in tasks {
        task.await.unwrap();
    }
    cutter.join().unwrap();
    let used = used.load(Ordering::SeqCst);
    println!("{used} of {LIMIT} calls used");
    assert!((1..=LIMIT).contains(&used), "{used} calls of {LIMIT}");
    let usage = ledgers[0].usage(NOW).await.unwrap();
    // All of it was given out; what the cuts have cost counts as spent.
    assert_eq!(usage[0].used, LIMIT);
}

#[tokio::test]
async fn what_one_machine_hands_back_another_uses() {
    let schema = schema();
    let ledgers = [(); 2].map(|()| Ledger::open_unsynced(&place(&schema)).unwrap());
    let mut used = 0;
    for (number, ledger) in ledgers.iter().enumerate() {
        used += take_all(ledger, &format!("machine {number}"), || true).await;
    }
    assert_eq!(used, LIMIT);
}

#[tokio::test]
async fn a_grant_whose_word_was_lost_counts_as_spent() {
    let schema = schema();
    let between = super::lost::Between::new();
    let through = Location::Server(between.url(&schema.url));
    let ledger = Ledger::open_unsynced(&through).unwrap();
    let (mut given, mut counted) = (0, 0);
    // Cut after every number of pieces, until one has cut off the word on a commit.
    for pieces in (0..12).cycle().take(240) {
        between.cut_after(pieces);
        let acquired = ledger.acquire(vec![want("here", 5)]).await.unwrap();
        between.cut_after(super::lost::NEVER);
        let Acquired::Granted(grants) = acquired else {
            panic!("{acquired:?}");
        };
        given += grants[0].units;
        counted = ledger.usage(NOW).await.unwrap()[0].used;
        assert!(counted >= given, "{given} calls given, {counted} counted");
        if counted > given {
            break;
        }
    }
    assert_eq!(counted, given + 5, "no cut has hit a commit");
}

#[test]
fn a_server_that_may_forget_is_refused() {
    let schema = schema();
    let error = Ledger::open(&place(&schema)).unwrap_err();
    assert_says(&error, StoreErrorKind::Denied, "fsync off");
    // One that waits for its disk is taken, whatever the user's own setting is.
    let server = server::durable();
    let careless = server.schema();
    let options = "%20-csynchronous_commit%3Doff&application_name=";
    let url = careless.url.replace("&application_name=", options);
    drop(Ledger::open(&Location::Server(url)).unwrap());
}

#[test]
fn a_clock_that_is_off_is_refused() {
    let schema = schema();
    let name = &schema.name;
    schema.run(&format!(
        "CREATE SCHEMA {name};
         CREATE FUNCTION {name}.clock_timestamp() RETURNS timestamptz LANGUAGE sql
           AS 'SELECT pg_catalog.clock_timestamp() - interval ''90 seconds'''"
    ));
    // Named last, the server's own functions give way to ours.
    let url = server::shared().url(OWNER, "postgres", &format!("{name},pg_catalog"));
    let error = Ledger::open_unsynced(&Location::Server(url)).unwrap_err();
    assert_says(&error, StoreErrorKind::Denied, "differ by up to 90.");
}

#[test]
fn tables_that_are_no_ledger_are_left_alone() {
    let schema = schema();
    drop(super::open(&schema));
    let error = Ledger::open_unsynced(&place(&schema)).unwrap_err();
    assert_says(&error, StoreErrorKind::NotOurs, "not a ledger's");
    // Nor is a ledger taken for a crawl.
    let schema = super::schema();
    drop(Ledger::open_unsynced(&place(&schema)).unwrap());
    let error = PostgresStore::open(&schema.url, OpenMode::Crawl).unwrap_err();
    assert_says(&error, StoreErrorKind::NotOurs, "another program");
    schema.run("UPDATE ledger SET value = 7 WHERE name = 'schema'");
    let error = Ledger::open_unsynced(&place(&schema)).unwrap_err();
    assert_says(&error, StoreErrorKind::Newer, "newer version");
}

#[tokio::test]
async fn a_ledger_without_its_turns_gives_nothing() {
    let schema = schema();
    let ledger = Ledger::open_unsynced(&place(&schema)).unwrap();
    schema.run("DELETE FROM ledger WHERE name = 'turn'");
    let error = ledger.acquire(vec![want("here", 1)]).await.unwrap_err();
    assert_says(&error, StoreErrorKind::Corrupt, "take turns");
}
