//! What a server says of its limits, and strangers who draw from them too.

use super::{
    Answered, Charge, Clock, Dice, Kept, Limits, Pace, Permit, Purse, SECOND_US, Taken, rule,
};
use kittiwake_model::{BudgetId, ClockSpec, Cost, LimitTime, RealTime, Scope, WindowKind};
use kittiwake_network::{LimitReport, Word};
use kittiwake_store::ledger::Ledger;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const LIMIT: u64 = 60;

/// A call to a server that says in every answer what is left.
struct Told {
    permit: Option<Permit>,
    /// What was left when the server counted it.
    left: Option<u64>,
}

/// A process that has just begun, and the clock that it looks at, in microseconds.
fn purse_at(kept: &Kept, seconds: i64) -> (Purse, Arc<AtomicI64>) {
    let now_us = Arc::new(AtomicI64::new(seconds * SECOND_US));
    let clock_us = Arc::clone(&now_us);
    let clock = Clock::new(ClockSpec::real(), move || {
        RealTime(clock_us.load(Ordering::Relaxed))
    });
    let limits = Limits::Keep {
        reserve: 0.0,
        guard: Duration::ZERO,
        pace: Pace::Burst,
    };
    let ledger = Ledger::open_unsynced(&kept.place()).unwrap();
    (
        Purse::new(Some(Arc::new(ledger)), clock, "a".to_owned(), limits),
        now_us,
    )
}

fn one_call(budget: &str) -> Cost {
    Cost {
        budget: budget.into(),
        call: 1,
        item: 0,
        beside: 0,
        items_max: 0,
    }
}

/// One process, in one window of which strangers have used a part already. Calls overtake one
/// another on their way to the server and back; one answer in `silent_in` tells nothing. How many
/// calls the server has counted in the end.
async fn fill_a_window(seed: u64, kind: WindowKind, foreign: u64, silent_in: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let kept = Kept::in_a_file();
    let (mut purse, now_us) = purse_at(&kept, 1_000);
    let rule = rule("budget", Scope::Token, LIMIT, kind);
    let budget = BudgetId("budget".into());
    purse.add(budget.clone(), &rule).await.unwrap();
    let cost = one_call(&rule.name);
    let charges = [Charge { budget, cost }];
    let (mut counted, mut flights) = (foreign, Vec::<Told>::new());
    for _ in 0..3_000 {
        now_us.fetch_add(1_000, Ordering::Relaxed);
        let place = dice.below(8) as usize;
        match flights.get_mut(place) {
            None => {
                if let Taken::Permit(permit) = purse.take(&charges).await.unwrap() {
                    let permit = Some(permit);
                    flights.push(Told { permit, left: None });
                }
            }
            Some(flight) if flight.left.is_none() => {
                counted += 1;
                assert!(counted <= LIMIT, "seed {seed}: one call too many");
                flight.left = Some(LIMIT - counted);
            }
            Some(flight) => {
                let report = LimitReport {
                    budget: rule.name.clone(),
                    word: Word::Left {
                        limit: LIMIT,
                        remaining: flight.left.unwrap(),
                    },
                    reset: Some(LimitTime(2_000 * SECOND_US)),
                    is_named: true,
                };
                let is_silent = dice.below(silent_in) == 0;
                let reports = if is_silent { vec![] } else { vec![report] };
                let answered = Answered {
                    reports: &reports,
                    ..Answered::default()
                };
                let permit = flight.permit.take().unwrap();
                purse.settle(permit, answered).await.unwrap();
                flights.remove(place);
            }
        }
    }
    assert!(flights.is_empty(), "seed {seed}: everything is answered");
    counted
}

fn aligned() -> WindowKind {
    WindowKind::Aligned {
        length_us: 1_000 * SECOND_US,
    }
}

#[tokio::test]
async fn what_is_in_flight_costs_nothing_of_what_the_server_says_is_left() {
    for seed in 1..=20 {
        let counted = fill_a_window(seed, aligned(), 0, u64::MAX).await;
        assert_eq!(counted, LIMIT, "seed {seed}: used to the last call");
        // As many as may be in flight before the first answer tells of strangers are left to us.
        for foreign in [1, 17, 52] {
            let counted = fill_a_window(seed, aligned(), foreign, u64::MAX).await;
            println!("seed {seed}: {counted} of 60, {foreign} of them by strangers");
            assert!(counted > 52);
        }
    }
}

#[tokio::test]
async fn answers_that_tell_nothing_break_no_limit_and_cost_little() {
    for seed in 1..=20 {
        let counted = fill_a_window(seed, aligned(), 0, 3).await;
        assert!(counted > 50, "seed {seed}: {counted} of 60");
        fill_a_window(seed, aligned(), 20, 3).await;
    }
}

/// Windows that are not those of the calendar: strangers are told of by the server's count alone.
#[tokio::test]
async fn strangers_are_allowed_for_in_windows_of_every_kind() {
    let length_us = 1_000 * SECOND_US;
    for seed in 1..=10 {
        for kind in [
            WindowKind::Sliding { length_us },
            WindowKind::FromFirst { length_us },
        ] {
            let counted = fill_a_window(seed, kind.clone(), 0, u64::MAX).await;
            assert_eq!(counted, LIMIT, "seed {seed}, {kind:?}");
            for foreign in [1, 17, 30] {
                let counted = fill_a_window(seed, kind.clone(), foreign, u64::MAX).await;
                println!("seed {seed}: {counted} of 60, {foreign} of them by strangers, {kind:?}");
                assert!(counted > 40);
            }
        }
    }
}

/// Two limits that end at the same time and allow the same: a server that names none speaks of the
/// one that has less left.
#[tokio::test]
async fn a_word_on_one_limit_is_not_taken_for_one_on_another() {
    let kept = Kept::in_a_file();
    let (mut purse, now_us) = purse_at(&kept, 500);
    let mut charges = Vec::new();
    for (name, seconds) in [("token", 1_000), ("paging", 3_000)] {
        let length_us = seconds * SECOND_US;
        let rule = rule(name, Scope::Token, LIMIT, WindowKind::Aligned { length_us });
        let budget = BudgetId(name.into());
        purse.add(budget.clone(), &rule).await.unwrap();
        let cost = one_call(&rule.name);
        charges.push(Charge { budget, cost });
    }
    let mut paging_left = LIMIT;
    for (from_seconds, calls) in [(500, 20), (2_000, LIMIT)] {
        now_us.fetch_max(from_seconds * SECOND_US, Ordering::Relaxed);
        let mut token_left = LIMIT;
        for call in 0..calls {
            now_us.fetch_add(1_000, Ordering::Relaxed);
            let is_paging = paging_left > 0;
            let drawn = if is_paging {
                &charges[..]
            } else {
                &charges[..1]
            };
            let taken = purse.take(drawn).await.unwrap();
            let Taken::Permit(permit) = taken else {
                panic!("call {call} from {from_seconds} s on: {taken:?}");
            };
            token_left -= 1;
            paging_left -= u64::from(is_paging);
            let remaining = if is_paging {
                token_left.min(paging_left)
            } else {
                token_left
            };
            let is_one_end = from_seconds == 2_000;
            let spoken_of = if is_paging && is_one_end {
                drawn
            } else {
                &drawn[..1]
            };
            let reports = spoken_of.iter().map(|charge| LimitReport {
                budget: charge.cost.budget.clone(),
                word: Word::Left {
                    limit: LIMIT,
                    remaining: if is_one_end { remaining } else { token_left },
                },
                reset: Some(LimitTime((from_seconds / 1_000 + 1) * 1_000 * SECOND_US)),
                is_named: false,
            });
            let reports: Vec<LimitReport> = reports.collect();
            let answered = Answered {
                reports: &reports,
                ..Answered::default()
            };
            purse.settle(permit, answered).await.unwrap();
        }
    }
    assert_eq!(paging_left, 0, "and nothing of either is left");
}
