//! The ledger as processes use it: one place, several at once. The same for a file and for a server.

use crate::postgres::server;
use kittiwake_model::{BudgetId, Grant, LimitTime, Window};
use kittiwake_store::{Acquired, Carry, Closing, Ledger, Location, StoreErrorKind, Want};

const WINDOW_US: i64 = 300_000_000;

fn window(number: i64) -> Window {
    Window {
        start: LimitTime(number * WINDOW_US),
        end: LimitTime((number + 1) * WINDOW_US),
    }
}

fn in_window(number: i64) -> LimitTime {
    window(number).start.plus_us(1_000)
}

fn want(budget: &str, number: i64, limit: u32, calls: u32) -> Want {
    Want {
        budget: BudgetId(budget.to_owned()),
        window: window(number),
        limit,
        calls,
        holder: "here".to_owned(),
    }
}

async fn granted(ledger: &Ledger, number: i64, wants: Vec<Want>) -> Vec<Grant> {
    match ledger.acquire(in_window(number), wants).await.unwrap() {
        Acquired::Granted(grants) => grants,
        Acquired::Exhausted { budget, until } => panic!("{budget:?} until {until:?}"),
    }
}

async fn exhausted(ledger: &Ledger, number: i64, wants: Vec<Want>) -> (String, LimitTime) {
    match ledger.acquire(in_window(number), wants).await.unwrap() {
        Acquired::Granted(grants) => panic!("{grants:?}"),
        Acquired::Exhausted { budget, until } => (budget.0, until),
    }
}

fn open(place: &Location) -> Ledger {
    Ledger::open_unsynced(place).unwrap()
}

fn file_in(folder: &tempfile::TempDir) -> Location {
    Location::File(folder.path().join("state/kittiwake/budgets.db"))
}

/// Every one of these is a test of a file and one of a server.
macro_rules! at_both {
    ($($name:ident,)*) => {
        mod at_a_file {
            $(
                #[tokio::test]
                async fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    super::$name(super::file_in(&folder)).await;
                }
            )*
        }

        mod at_a_server {
            $(
                #[tokio::test]
                async fn $name() {
                    let schema = super::server::shared().schema();
                    super::$name(super::Location::Server(schema.url.clone())).await;
                }
            )*
        }
    };
}

at_both! {
    a_limit_is_given_out_once,
    several_budgets_are_granted_together_or_not_at_all,
    what_is_handed_back_is_given_out_again,
    a_crashed_process_counts_in_the_next_window_too,
    calls_under_way_count_in_both_windows,
    the_servers_word_lowers_a_budget_and_raises_it_when_it_is_certain,
    a_block_is_durable_and_never_shortened,
    the_ledger_stays_small,
    many_processes_share_one_limit,
    a_wrong_window_is_refused,
    many_processes_may_make_the_ledger_at_once,
}

async fn a_limit_is_given_out_once(place: Location) {
    let ledger = open(&place);
    let first = granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!((first[0].calls, first[0].window), (20, window(1)));
    let second = granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!(second[0].calls, 10, "what is left");
    let (budget, until) = exhausted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!((budget.as_str(), until), ("ip", window(1).end));
    // Another budget is another matter.
    granted(&ledger, 1, vec![want("token", 1, 30, 20)]).await;
}

async fn several_budgets_are_granted_together_or_not_at_all(place: Location) {
    let ledger = open(&place);
    let both = |calls| vec![want("ip", 1, 30, calls), want("token", 1, 5, calls)];
    let grants = granted(&ledger, 1, both(4)).await;
    assert_eq!(grants.len(), 2);
    // The scarcer one decides, so that nothing lies about unused.
    let grants = granted(&ledger, 1, both(4)).await;
    assert_eq!([grants[0].calls, grants[1].calls], [1, 1]);
    let (budget, _) = exhausted(&ledger, 1, both(1)).await;
    assert_eq!(budget, "token");
    let rest = granted(&ledger, 1, vec![want("ip", 1, 30, 100)]).await;
    assert_eq!(rest[0].calls, 25, "the failed attempt has cost nothing");
}

async fn what_is_handed_back_is_given_out_again(place: Location) {
    let ledger = open(&place);
    let grant = granted(&ledger, 1, vec![want("ip", 1, 30, 30)])
        .await
        .remove(0);
    let closing = Closing {
        grant: grant.id,
        unused: 12,
    };
    // Twice by mistake is once.
    ledger.close(vec![closing, closing]).await.unwrap();
    let more = Closing {
        unused: 30,
        ..closing
    };
    ledger.close(vec![more]).await.unwrap();
    let again = granted(&ledger, 1, vec![want("ip", 1, 30, 30)]).await;
    assert_eq!(again[0].calls, 12);
}

async fn a_crashed_process_counts_in_the_next_window_too(place: Location) {
    let ledger = open(&place);
    granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    drop(ledger);
    let ledger = open(&place);
    let next = granted(&ledger, 2, vec![want("ip", 2, 30, 30)]).await;
    assert_eq!(next[0].calls, 10);
    let (_, until) = exhausted(&ledger, 2, vec![want("ip", 2, 30, 30)]).await;
    assert!(until < window(2).end, "whoever holds it may still close it");
    ledger
        .close(vec![Closing {
            grant: next[0].id,
            unused: 0,
        }])
        .await
        .unwrap();
    // One window later nothing of it can be under way any more.
    let later = granted(&ledger, 3, vec![want("ip", 3, 30, 30)]).await;
    assert_eq!(later[0].calls, 30);
}

async fn calls_under_way_count_in_both_windows(place: Location) {
    let ledger = open(&place);
    let grant = granted(&ledger, 1, vec![want("ip", 1, 30, 20)])
        .await
        .remove(0);
    let carry = |calls| Carry {
        budget: BudgetId("ip".to_owned()),
        window: window(2),
        holder: "here".to_owned(),
        calls,
    };
    ledger.carry(vec![carry(3)]).await.unwrap();
    ledger.carry(vec![carry(2)]).await.unwrap();
    ledger
        .close(vec![Closing {
            grant: grant.id,
            unused: 0,
        }])
        .await
        .unwrap();
    let next = granted(&ledger, 2, vec![want("ip", 2, 30, 30)]).await;
    assert_eq!(next[0].calls, 27);
}

async fn the_servers_word_lowers_a_budget_and_raises_it_when_it_is_certain(place: Location) {
    let ledger = open(&place);
    let ip = BudgetId("ip".to_owned());
    let grant = granted(&ledger, 1, vec![want("ip", 1, 100, 10)])
        .await
        .remove(0);
    // 40 counted, of ours at most 10 - 4: somebody else has made 34.
    ledger.observe(&ip, window(1), 40, 4).await.unwrap();
    let rest = granted(&ledger, 1, vec![want("ip", 1, 100, 100)])
        .await
        .remove(0);
    assert_eq!(rest.calls, 100 - 10 - 34);
    let (_, until) = exhausted(&ledger, 1, vec![want("ip", 1, 100, 1)]).await;
    assert!(until < window(1).end);
    // An older count that comes in late changes nothing; a later and exact one does.
    ledger.observe(&ip, window(1), 20, 0).await.unwrap();
    exhausted(&ledger, 1, vec![want("ip", 1, 100, 1)]).await;
    ledger
        .observe(&ip, window(1), 40 + rest.calls, 0)
        .await
        .unwrap();
    let usage = ledger.usage(in_window(1)).await.unwrap();
    assert_eq!(usage[0].granted, 10 + rest.calls);
    assert_eq!(usage[0].foreign, 30);
    assert_eq!(usage[0].limit, Some(100));
    drop(grant);
}

async fn a_block_is_durable_and_never_shortened(place: Location) {
    let ip = BudgetId("ip".to_owned());
    let ledger = open(&place);
    let until = window(1).start.plus_us(5_000_000);
    ledger.block(&ip, until).await.unwrap();
    ledger.block(&ip, until.plus_us(-1_000_000)).await.unwrap();
    drop(ledger);
    let ledger = open(&place);
    let (_, told) = exhausted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!(told, until);
    let acquired = ledger.acquire(until, vec![want("ip", 1, 30, 1)]).await;
    assert!(matches!(acquired.unwrap(), Acquired::Granted(_)));
}

async fn the_ledger_stays_small(place: Location) {
    let ledger = open(&place);
    for number in 1..200 {
        for _ in 0..3 {
            granted(&ledger, number, vec![want("ip", number, 300, 10)]).await;
        }
        let ip = BudgetId("ip".to_owned());
        ledger.observe(&ip, window(number), 200, 0).await.unwrap();
    }
    let counted = ledger.rows().await.unwrap();
    assert!(counted < 20, "{counted} rows");
}

async fn many_processes_share_one_limit(place: Location) {
    let mut holders = Vec::new();
    for _ in 0..6 {
        let place = place.clone();
        holders.push(tokio::spawn(async move {
            // Each has a connection of its own, as a process would.
            let ledger = open(&place);
            let mut calls = 0;
            for _ in 0..20 {
                match ledger
                    .acquire(in_window(1), vec![want("ip", 1, 100, 3)])
                    .await
                    .unwrap()
                {
                    Acquired::Granted(grants) => calls += grants[0].calls,
                    Acquired::Exhausted { .. } => break,
                }
            }
            calls
        }));
    }
    let mut calls = 0;
    for holder in holders {
        calls += holder.await.unwrap();
    }
    assert_eq!(calls, 100);
}

async fn a_wrong_window_is_refused(place: Location) {
    let ledger = open(&place);
    let error = ledger
        .acquire(in_window(2), vec![want("ip", 1, 30, 1)])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    granted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
}

async fn many_processes_may_make_the_ledger_at_once(place: Location) {
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let place = place.clone();
            std::thread::spawn(move || Ledger::open_unsynced(&place).map(drop))
        })
        .collect();
    for opener in openers {
        opener.join().unwrap().unwrap();
    }
}

#[test]
fn a_foreign_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a ledger at all").unwrap();
    let error = Ledger::open(&Location::File(path)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotOurs);
}

#[cfg(unix)]
#[test]
fn the_folder_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let _ledger = open(&file_in(&folder));
    let mode = folder
        .path()
        .join("state/kittiwake")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn many_processes_may_make_the_file_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(many_processes_may_make_the_ledger_at_once(file_in(&folder)));
    }
}
