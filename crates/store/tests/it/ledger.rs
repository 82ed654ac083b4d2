//! The ledger as processes use it: one file, several at once.

use kittiwake_model::{BudgetId, Grant, LimitTime, Window};
use kittiwake_store::{Acquired, Carry, Closing, Ledger, StoreErrorKind, Want};
use std::sync::Arc;

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

fn open() -> (tempfile::TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&folder.path().join("state/kittiwake/budgets.db")).unwrap();
    (folder, ledger)
}

#[tokio::test]
async fn a_limit_is_given_out_once() {
    let (_folder, ledger) = open();
    let first = granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!((first[0].calls, first[0].window), (20, window(1)));
    let second = granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!(second[0].calls, 10, "what is left");
    let (budget, until) = exhausted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!((budget.as_str(), until), ("ip", window(1).end));
    // Another budget is another matter.
    granted(&ledger, 1, vec![want("token", 1, 30, 20)]).await;
}

#[tokio::test]
async fn several_budgets_are_granted_together_or_not_at_all() {
    let (_folder, ledger) = open();
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

#[tokio::test]
async fn what_is_handed_back_is_given_out_again() {
    let (_folder, ledger) = open();
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

#[tokio::test]
async fn a_crashed_process_counts_in_the_next_window_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("budgets.db");
    let ledger = Ledger::open(&path).unwrap();
    granted(&ledger, 1, vec![want("ip", 1, 30, 20)]).await;
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
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

#[tokio::test]
async fn calls_under_way_count_in_both_windows() {
    let (_folder, ledger) = open();
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

#[tokio::test]
async fn the_servers_word_lowers_a_budget_and_raises_it_when_it_is_certain() {
    let (_folder, ledger) = open();
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

#[tokio::test]
async fn a_block_is_durable_and_never_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("budgets.db");
    let ip = BudgetId("ip".to_owned());
    let ledger = Ledger::open(&path).unwrap();
    let until = window(1).start.plus_us(5_000_000);
    ledger.block(&ip, until).await.unwrap();
    ledger.block(&ip, until.plus_us(-1_000_000)).await.unwrap();
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    let (_, told) = exhausted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!(told, until);
    let acquired = ledger.acquire(until, vec![want("ip", 1, 30, 1)]).await;
    assert!(matches!(acquired.unwrap(), Acquired::Granted(_)));
}

#[tokio::test]
async fn the_file_stays_small() {
    let (_folder, ledger) = open();
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

#[tokio::test]
async fn many_processes_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = Arc::new(folder.path().join("budgets.db"));
    let mut holders = Vec::new();
    for _ in 0..6 {
        let path = path.clone();
        holders.push(tokio::spawn(async move {
            // Each has a connection of its own, as a process would.
            let ledger = Ledger::open(&path).unwrap();
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

#[tokio::test]
async fn a_foreign_file_is_refused_and_a_wrong_window_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a ledger at all").unwrap();
    let error = Ledger::open(&path).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotOurs);
    let (_folder, ledger) = open();
    let error = ledger
        .acquire(in_window(2), vec![want("ip", 1, 30, 1)])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    granted(&ledger, 1, vec![want("ip", 1, 30, 1)]).await;
}

#[cfg(unix)]
#[test]
fn the_folder_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, _ledger) = open();
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
fn many_processes_may_make_the_ledger_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let path = folder.path().join(format!("{round}/budgets.db"));
        let openers: Vec<_> = (0..6)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || Ledger::open(&path).map(drop))
            })
            .collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
    }
}
