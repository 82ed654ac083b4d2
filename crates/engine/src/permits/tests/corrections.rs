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

/// One process, in one window of which strangers have used a part already. Calls overtake one
/// another on their way to the server and back; one answer in `silent_in` tells nothing. How many
/// calls the server has counted in the end.
async fn fill_a_window(seed: u64, kind: WindowKind, foreign: u64, silent_in: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let kept = Kept::in_a_file();
    let now_us = Arc::new(AtomicI64::new(1_000 * SECOND_US));
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
    let mut purse = Purse::new(Some(ledger), clock, "a".to_owned(), limits);
    let rule = rule("budget", Scope::Token, LIMIT, kind);
    let budget = BudgetId("budget".into());
    purse.add(budget.clone(), &rule).await.unwrap();
    let cost = Cost {
        budget: rule.name.clone(),
        call: 1,
        item: 0,
        items_max: 0,
    };
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
