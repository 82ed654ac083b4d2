//! The ledger as processes use it: one place, several at once. The same for a file and for a server.

use crate::postgres::server;
use kittiwake_model::{BudgetId, LimitTime};
use kittiwake_store::{
    Acquired, Grant, Ledger, Lesson, Location, Observed, Opened, Part, Settling, StoreErrorKind,
    Term, Want,
};

const WINDOW_US: i64 = 300_000_000;

fn start(number: i64) -> LimitTime {
    LimitTime(number * WINDOW_US)
}

fn end(number: i64) -> LimitTime {
    start(number + 1)
}

fn in_window(number: i64) -> LimitTime {
    start(number).plus_us(1_000)
}

/// Wants calls of a window; should nobody be heard of, they count in the next one too.
fn want(budget: &str, number: i64, limit: u64, calls: u32) -> Want {
    Want {
        budget: BudgetId(budget.to_owned()),
        at: in_window(number),
        limit,
        call_units: 1,
        calls,
        term: Term::Until {
            until: end(number + 1),
            window: start(number),
        },
        ask_again: in_window(number).plus_us(WINDOW_US / 50),
        use_us: 0,
        holder: "here".to_owned(),
    }
}

fn first_call(at_us: i64, limit: u64, calls: u32) -> Want {
    Want {
        at: LimitTime(at_us),
        term: Term::FromFirst {
            length_us: 1_000,
            drain_us: 10,
            transit_us: 100,
        },
        ask_again: LimitTime(at_us + 20),
        ..want("first", 0, limit, calls)
    }
}

async fn granted(ledger: &Ledger, wants: Vec<Want>) -> Vec<Grant> {
    match ledger.acquire(wants).await.unwrap() {
        Acquired::Granted(grants) => grants,
        Acquired::Exhausted { budget, until } => panic!("{budget:?} until {until:?}"),
    }
}

async fn exhausted(ledger: &Ledger, wants: Vec<Want>) -> (String, LimitTime) {
    match ledger.acquire(wants).await.unwrap() {
        Acquired::Granted(grants) => panic!("{grants:?}"),
        Acquired::Exhausted { budget, until } => (budget.0, until),
    }
}

async fn close(ledger: &Ledger, grant: i64, units: u64, until: LimitTime) {
    let settling = Settling {
        grant,
        parts: vec![Part { units, until }],
        open: None,
    };
    ledger.settle(vec![settling]).await.unwrap();
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
    a_call_may_take_several_units,
    what_is_handed_back_is_given_out_again,
    a_crashed_process_counts_in_the_next_window_too,
    calls_under_way_count_in_both_windows,
    each_part_counts_until_its_own_time,
    a_window_that_begins_with_a_call_ends_when_it_surely_has,
    a_late_call_leaves_the_next_window_in_doubt,
    what_an_earlier_process_used_is_not_taken_for_that_of_others,
    the_servers_word_lowers_a_budget_and_raises_it_when_it_is_certain,
    a_block_is_durable_and_never_shortened,
    what_was_learnt_is_remembered,
    the_ledger_stays_small,
    many_processes_share_one_limit,
    many_processes_may_make_the_ledger_at_once,
}

async fn a_limit_is_given_out_once(place: Location) {
    let ledger = open(&place);
    let first = granted(&ledger, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!(first[0].units, 20);
    let second = granted(&ledger, vec![want("ip", 1, 30, 20)]).await;
    assert_eq!(
        (second[0].units, second[0].others),
        (10, 20),
        "what is left"
    );
    let (budget, until) = exhausted(&ledger, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!(budget, "ip");
    assert!(until < end(1), "whoever holds it may hand some back");
    for grant in [&first[0], &second[0]] {
        close(&ledger, grant.id, grant.units, end(1)).await;
    }
    let (_, until) = exhausted(&ledger, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!(until, end(1));
    // Another budget is another matter.
    granted(&ledger, vec![want("token", 1, 30, 20)]).await;
}

async fn several_budgets_are_granted_together_or_not_at_all(place: Location) {
    let ledger = open(&place);
    let both = |calls| vec![want("ip", 1, 30, calls), want("token", 1, 5, calls)];
    let grants = granted(&ledger, both(4)).await;
    assert_eq!(grants.len(), 2);
    // The scarcer one decides, so that nothing lies about unused.
    let grants = granted(&ledger, both(4)).await;
    assert_eq!([grants[0].units, grants[1].units], [1, 1]);
    let (budget, _) = exhausted(&ledger, both(1)).await;
    assert_eq!(budget, "token");
    let rest = granted(&ledger, vec![want("ip", 1, 30, 100)]).await;
    assert_eq!(rest[0].units, 25, "the failed attempt has cost nothing");
}

async fn a_call_may_take_several_units(place: Location) {
    let ledger = open(&place);
    let dear = |calls| Want {
        call_units: 7,
        ..want("points", 1, 30, calls)
    };
    let wants = vec![dear(9), want("ip", 1, 3, 9)];
    let grants = granted(&ledger, wants).await;
    assert_eq!([grants[0].units, grants[1].units], [21, 3]);
    assert_eq!(granted(&ledger, vec![dear(9)]).await[0].units, 7);
    exhausted(&ledger, vec![dear(1)]).await;
    // Of the two that are left a cheaper call can be made.
    assert_eq!(
        granted(&ledger, vec![want("points", 1, 30, 9)]).await[0].units,
        2
    );
}

async fn what_is_handed_back_is_given_out_again(place: Location) {
    let ledger = open(&place);
    let grant = granted(&ledger, vec![want("ip", 1, 30, 30)])
        .await
        .remove(0);
    close(&ledger, grant.id, 18, end(1)).await;
    // Twice by mistake is once.
    close(&ledger, grant.id, 0, end(1)).await;
    let again = granted(&ledger, vec![want("ip", 1, 30, 30)]).await;
    assert_eq!(again[0].units, 12);
}

async fn a_crashed_process_counts_in_the_next_window_too(place: Location) {
    let ledger = open(&place);
    granted(&ledger, vec![want("ip", 1, 30, 20)]).await;
    drop(ledger);
    let ledger = open(&place);
    let next = granted(&ledger, vec![want("ip", 2, 30, 30)]).await;
    assert_eq!(next[0].units, 10);
    let (_, until) = exhausted(&ledger, vec![want("ip", 2, 30, 30)]).await;
    assert!(until < end(2), "whoever holds it may still close it");
    close(&ledger, next[0].id, 10, end(2)).await;
    // One window later nothing of it can be under way any more.
    let later = granted(&ledger, vec![want("ip", 3, 30, 30)]).await;
    assert_eq!(later[0].units, 30);
}

async fn calls_under_way_count_in_both_windows(place: Location) {
    let ledger = open(&place);
    let grant = granted(&ledger, vec![want("ip", 1, 30, 20)])
        .await
        .remove(0);
    let open = Some(Part {
        units: 3,
        until: end(2),
    });
    let parts = vec![Part {
        units: 17,
        until: end(1),
    }];
    let grant = grant.id;
    ledger
        .settle(vec![Settling { grant, parts, open }])
        .await
        .unwrap();
    assert_eq!(
        granted(&ledger, vec![want("ip", 1, 30, 30)]).await[0].units,
        10
    );
    // Those ten were never heard of again, the three are answered.
    close(&ledger, grant, 3, end(2)).await;
    let next = granted(&ledger, vec![want("ip", 2, 30, 30)]).await;
    assert_eq!(next[0].units, 30 - 10 - 3);
}

async fn each_part_counts_until_its_own_time(place: Location) {
    let ledger = open(&place);
    let at = |at_us: i64, calls| Want {
        at: LimitTime(at_us),
        term: Term::Until {
            until: LimitTime(at_us + 1_000),
            window: LimitTime(0),
        },
        ask_again: LimitTime(at_us + 500),
        ..want("sliding", 0, 10, calls)
    };
    let grant = granted(&ledger, vec![at(1, 10)]).await.remove(0).id;
    let part = |units, until_us| Part {
        units,
        until: LimitTime(until_us),
    };
    let parts = vec![part(2, 100), part(3, 200), part(5, 300)];
    ledger
        .settle(vec![Settling {
            grant,
            parts,
            open: None,
        }])
        .await
        .unwrap();
    let (_, until) = exhausted(&ledger, vec![at(50, 10)]).await;
    assert_eq!(until, LimitTime(100));
    assert_eq!(granted(&ledger, vec![at(100, 10)]).await[0].units, 2);
    assert_eq!(granted(&ledger, vec![at(250, 10)]).await[0].units, 3);
}

async fn a_window_that_begins_with_a_call_ends_when_it_surely_has(place: Location) {
    let ledger = open(&place);
    let budget = BudgetId("first".to_owned());
    let grant = granted(&ledger, vec![first_call(500, 10, 4)])
        .await
        .remove(0);
    let opened = Opened {
        earliest: LimitTime(500),
        latest: LimitTime(600),
    };
    assert_eq!(grant.opened, Some(opened));
    // Answered at 530: it began before that.
    let heard = Opened {
        latest: LimitTime(530),
        ..opened
    };
    ledger
        .narrow(&budget, opened.earliest, heard, 1_000)
        .await
        .unwrap();
    close(&ledger, grant.id, 4, LimitTime(1_530)).await;
    let again = granted(&ledger, vec![first_call(1_000, 10, 9)])
        .await
        .remove(0);
    assert_eq!((again.units, again.opened), (6, Some(heard)));
    close(&ledger, again.id, 6, LimitTime(1_530)).await;
    // It may be over from 1 500 on, and is from 1 530 on; shortly before nothing is begun.
    let (_, until) = exhausted(&ledger, vec![first_call(1_490, 20, 1)]).await;
    assert_eq!(until, LimitTime(1_530));
    let next = granted(&ledger, vec![first_call(1_530, 10, 10)])
        .await
        .remove(0);
    assert_eq!(next.units, 10);
    assert_eq!(next.opened.unwrap().earliest, LimitTime(1_530));
}

async fn a_late_call_leaves_the_next_window_in_doubt(place: Location) {
    let ledger = open(&place);
    let grant = granted(&ledger, vec![first_call(500, 10, 4)])
        .await
        .remove(0);
    // One of four is still under way when the window may be over: it may have opened another.
    let settling = Settling {
        grant: grant.id,
        parts: Vec::new(),
        open: Some(Part {
            units: 1,
            until: LimitTime(2_600),
        }),
    };
    ledger.settle(vec![settling]).await.unwrap();
    let next = granted(&ledger, vec![first_call(1_700, 10, 10)])
        .await
        .remove(0);
    assert_eq!(next.units, 9);
    assert_eq!(next.opened.unwrap().earliest, LimitTime(1_500));
}

async fn what_an_earlier_process_used_is_not_taken_for_that_of_others(place: Location) {
    let earlier = open(&place);
    let grant = granted(&earlier, vec![first_call(500, 10, 4)])
        .await
        .remove(0);
    close(&earlier, grant.id, 4, LimitTime(1_600)).await;
    drop(earlier);
    let ledger = open(&place);
    // Asked before its first call, the server tells of the four, and of two that are not ours.
    let observed = Observed {
        budget: BudgetId("first".to_owned()),
        at: LimitTime(700),
        window: LimitTime(0),
        used: 6,
        unreflected: 0,
        until: LimitTime(1_600),
    };
    ledger.observe(observed).await.unwrap();
    let rest = granted(&ledger, vec![first_call(800, 10, 10)])
        .await
        .remove(0);
    assert_eq!(rest.units, 10 - 4 - 2);
}

async fn the_servers_word_lowers_a_budget_and_raises_it_when_it_is_certain(place: Location) {
    let ledger = open(&place);
    let observed = |used, unreflected| Observed {
        budget: BudgetId("ip".to_owned()),
        at: in_window(1),
        window: start(1),
        used,
        unreflected,
        until: end(1),
    };
    granted(&ledger, vec![want("ip", 1, 100, 10)]).await;
    // 40 counted, of ours at most 10 - 4: somebody else has made 34.
    ledger.observe(observed(40, 4)).await.unwrap();
    let rest = granted(&ledger, vec![want("ip", 1, 100, 100)])
        .await
        .remove(0);
    assert_eq!(rest.units, 100 - 10 - 34);
    let (_, until) = exhausted(&ledger, vec![want("ip", 1, 100, 1)]).await;
    assert!(until < end(1));
    // An older count that comes in late changes nothing; a later and exact one does.
    ledger.observe(observed(20, 0)).await.unwrap();
    exhausted(&ledger, vec![want("ip", 1, 100, 1)]).await;
    ledger.observe(observed(40 + rest.units, 0)).await.unwrap();
    let usage = ledger.usage(in_window(1)).await.unwrap();
    assert_eq!(usage[0].used, 10 + rest.units + 30);
    assert_eq!((usage[0].foreign, usage[0].limit), (30, 100));
}

async fn a_block_is_durable_and_never_shortened(place: Location) {
    let ip = BudgetId("ip".to_owned());
    let ledger = open(&place);
    let until = start(1).plus_us(5_000_000);
    ledger.block(&ip, until).await.unwrap();
    ledger.block(&ip, until.plus_us(-1_000_000)).await.unwrap();
    drop(ledger);
    let ledger = open(&place);
    let (_, told) = exhausted(&ledger, vec![want("ip", 1, 30, 1)]).await;
    assert_eq!(told, until);
    let later = Want {
        at: until,
        ..want("ip", 1, 30, 1)
    };
    granted(&ledger, vec![later]).await;
}

async fn what_was_learnt_is_remembered(place: Location) {
    let lesson = |topic: &str, number| Lesson {
        topic: topic.to_owned(),
        number,
        at: LimitTime(number),
    };
    let ledger = open(&place);
    for one in [
        lesson("rate a", 1),
        lesson("rate b", 2),
        lesson("clock a", 3),
        lesson("rate a", 4),
    ] {
        ledger.learn(one).await.unwrap();
    }
    drop(ledger);
    let known = open(&place).lessons("rate ").await.unwrap();
    assert_eq!(known, [lesson("rate a", 4), lesson("rate b", 2)]);
}

async fn the_ledger_stays_small(place: Location) {
    let ledger = open(&place);
    for number in 1..200 {
        for _ in 0..3 {
            granted(&ledger, vec![want("ip", number, 300, 10)]).await;
        }
        let observed = Observed {
            budget: BudgetId("ip".to_owned()),
            at: in_window(number),
            window: start(number),
            used: 200,
            unreflected: 0,
            until: end(number),
        };
        ledger.observe(observed).await.unwrap();
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
                match ledger.acquire(vec![want("ip", 1, 100, 3)]).await.unwrap() {
                    Acquired::Granted(grants) => calls += grants[0].units,
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
