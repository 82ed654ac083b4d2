//! Permits in virtual time: several processes, one ledger, crashes, and a server that counts.

#[path = "../../../store/tests/it/postgres/server.rs"]
mod server;

use super::{Permit, Purse, Taken};
use crate::Clock;
use crate::settings::Limits;
use kittiwake_model::{BudgetId, BudgetRule, ClockSpec, LimitTime, RealTime, Scope, WindowKind};
use kittiwake_network::LimitReport;
use kittiwake_store::Location;
use kittiwake_store::ledger::Ledger;
use server::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const SECOND_US: i64 = 1_000_000;
const OVERLAPPING: [(u32, i64); 2] = [(60, 2 * SECOND_US), (150, 5 * SECOND_US)];

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

struct Flight {
    arrives_us: i64,
    answered_us: i64,
    counted: bool,
    permit: Option<Permit>,
    process: usize,
}

/// Where the ledger is kept.
enum Kept {
    File(tempfile::TempDir),
    Server(Schema),
}

impl Kept {
    fn in_a_file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    fn place(&self) -> Location {
        match self {
            Self::File(folder) => Location::File(folder.path().join("budgets.db")),
            Self::Server(schema) => Location::Server(schema.url.clone()),
        }
    }
}

struct World {
    now_us: Arc<AtomicI64>,
    kept: Kept,
    rules: Vec<(BudgetId, BudgetRule)>,
    /// Calls that the server counted, by budget and window.
    counted: BTreeMap<(usize, i64), u32>,
    flights: Vec<Flight>,
}

impl World {
    fn new(kept: Kept, rules: &[(u32, i64)]) -> Self {
        let rule = |(place, (limit, window_us)): (usize, &(u32, i64))| {
            let name = format!("budget-{place}");
            let rule = BudgetRule {
                name: name.as_str().into(),
                scope: Scope::Token,
                limit: *limit,
                window_us: *window_us,
                kind: WindowKind::Aligned,
            };
            (BudgetId(name), rule)
        };
        Self {
            now_us: Arc::new(AtomicI64::new(1_000 * SECOND_US)),
            kept,
            rules: rules.iter().enumerate().map(rule).collect(),
            counted: BTreeMap::new(),
            flights: Vec::new(),
        }
    }

    fn now_us(&self) -> i64 {
        self.now_us.load(Ordering::Relaxed)
    }

    fn process(&self, name: &str) -> Purse {
        let ledger = Ledger::open_unsynced(&self.kept.place()).unwrap();
        let now_us = Arc::clone(&self.now_us);
        let clock = Clock::new(ClockSpec::real(), move || {
            RealTime(now_us.load(Ordering::Relaxed))
        });
        let limits = Limits::Keep {
            reserve: 0.0,
            guard: Duration::ZERO,
        };
        let mut purse = Purse::new(Some(ledger), clock, name.to_owned(), limits);
        for (id, rule) in &self.rules {
            purse.add(id.clone(), rule);
        }
        purse
    }

    fn budgets(&self) -> Vec<BudgetId> {
        self.rules.iter().map(|(id, _)| id.clone()).collect()
    }

    /// The server counts what has arrived, in every budget's window of that moment.
    fn arrive(&mut self) {
        let now_us = self.now_us();
        for flight in self
            .flights
            .iter_mut()
            .filter(|flight| !flight.counted && flight.arrives_us <= now_us)
        {
            flight.counted = true;
            for (place, (_, rule)) in self.rules.iter().enumerate() {
                let start_us = flight.arrives_us - flight.arrives_us.rem_euclid(rule.window_us);
                *self.counted.entry((place, start_us)).or_default() += 1;
            }
        }
    }

    async fn answer(&mut self, processes: &mut [Purse]) {
        let now_us = self.now_us();
        for flight in self
            .flights
            .iter_mut()
            .filter(|flight| flight.answered_us <= now_us)
        {
            if let Some(permit) = flight.permit.take() {
                let purse = &mut processes[flight.process];
                purse.settle(permit, &[]).await.unwrap();
            }
        }
        self.flights
            .retain(|flight| !(flight.counted && flight.permit.is_none()));
    }

    fn check(&self, seed: u64) {
        for ((place, start_us), calls) in &self.counted {
            let limit = self.rules[*place].1.limit;
            assert!(
                *calls <= limit,
                "seed {seed}: {calls} of {limit} calls in the window at {start_us}"
            );
        }
    }
}

/// Two processes take whatever they get; now and then one crashes and comes back.
async fn play(kept: Kept, seed: u64, rules: &[(u32, i64)], seconds: i64, troubles: bool) -> World {
    let mut dice = Dice(seed | 1);
    let mut world = World::new(kept, rules);
    let mut processes = vec![world.process("a"), world.process("b")];
    let budgets = world.budgets();
    let end_us = world.now_us() + seconds * SECOND_US;
    while world.now_us() < end_us {
        world.arrive();
        world.answer(&mut processes).await;
        let chosen = dice.below(2) as usize;
        if let Taken::Permit(permit) = processes[chosen].take(&budgets).await.unwrap() {
            let now_us = world.now_us();
            let answered_us = now_us + 1 + dice.below(400_000) as i64;
            let arrives_us = now_us + dice.below((answered_us - now_us) as u64) as i64;
            let permit = Some(permit);
            world.flights.push(Flight {
                arrives_us,
                answered_us,
                counted: false,
                permit,
                process: chosen,
            });
        }
        if troubles && dice.below(200) == 0 {
            // Half of them stop as they should; the others crash. Calls that are on their way
            // are settled by nobody.
            if dice.below(2) == 0 {
                processes[chosen].close().await.unwrap();
            }
            for flight in world
                .flights
                .iter_mut()
                .filter(|flight| flight.process == chosen)
            {
                flight.permit = None;
            }
            processes[chosen] = world.process(if chosen == 0 { "a" } else { "b" });
        }
        // Now and then nobody asks for a while: windows begin and calls are answered unobserved.
        let pause_us = if troubles && dice.below(60) == 0 {
            900_000
        } else {
            12_000
        };
        world
            .now_us
            .fetch_add(dice.below(pause_us) as i64, Ordering::Relaxed);
    }
    world.now_us.fetch_add(SECOND_US, Ordering::Relaxed);
    world.arrive();
    world.check(seed);
    world
}

#[tokio::test]
async fn crashing_processes_on_one_ledger_never_break_overlapping_limits() {
    for seed in 1..=30 {
        println!("seed {seed}");
        play(Kept::in_a_file(), seed, &OVERLAPPING, 20, true).await;
    }
}

#[tokio::test]
async fn crashing_processes_on_one_server_never_break_overlapping_limits() {
    for seed in 1..=4 {
        println!("seed {seed}");
        let kept = Kept::Server(server::shared().schema());
        play(kept, seed, &OVERLAPPING, 12, true).await;
    }
}

#[tokio::test]
async fn two_processes_use_nearly_all_that_is_allowed() {
    let rules = [(100, 2 * SECOND_US), (240, 5 * SECOND_US)];
    let world = play(Kept::in_a_file(), 77, &rules, 40, false).await;
    // The 5-second budget binds (48 a second against 50): eight full windows of it.
    let used: u32 = world
        .counted
        .iter()
        .filter(|((place, _), _)| *place == 1)
        .map(|(_, calls)| calls)
        .sum();
    println!("seed 77: {used} of {}", 8 * 240);
    assert!(f64::from(used) >= 0.95 * f64::from(8 * 240), "{used}");
}

/// A call to a server that says in every answer what is left.
struct Told {
    permit: Option<Permit>,
    /// What was left when the server counted it.
    left: Option<u32>,
}

/// One process, in one window of which strangers have used a part already. Calls overtake one
/// another on their way to the server and back; one answer in `silent_in` tells nothing. How many
/// calls the server has counted in the end.
async fn fill_a_window(seed: u64, foreign: u32, silent_in: u64) -> u32 {
    const LIMIT: u32 = 60;
    let mut dice = Dice(seed | 1);
    let world = World::new(Kept::in_a_file(), &[(LIMIT, 1_000 * SECOND_US)]);
    let mut purse = world.process("a");
    let (budgets, rule) = (world.budgets(), &world.rules[0].1);
    let (mut counted, mut flights) = (foreign, Vec::<Told>::new());
    for _ in 0..3_000 {
        world.now_us.fetch_add(1_000, Ordering::Relaxed);
        let place = dice.below(8) as usize;
        match flights.get_mut(place) {
            None => {
                if let Taken::Permit(permit) = purse.take(&budgets).await.unwrap() {
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
                    limit: LIMIT,
                    remaining: flight.left.unwrap(),
                    reset: LimitTime(2_000 * SECOND_US),
                };
                let is_silent = dice.below(silent_in) == 0;
                let reports = if is_silent { vec![] } else { vec![report] };
                let permit = flight.permit.take().unwrap();
                purse.settle(permit, &reports).await.unwrap();
                flights.remove(place);
            }
        }
    }
    assert!(flights.is_empty(), "seed {seed}: everything is answered");
    counted
}

#[tokio::test]
async fn what_is_in_flight_costs_nothing_of_what_the_server_says_is_left() {
    for seed in 1..=20 {
        let counted = fill_a_window(seed, 0, u64::MAX).await;
        assert_eq!(counted, 60, "seed {seed}: used to the last call");
        // As many as may be in flight before the first answer tells of strangers are left to us.
        for foreign in [1, 17, 52] {
            let counted = fill_a_window(seed, foreign, u64::MAX).await;
            println!("seed {seed}: {counted} of 60, {foreign} of them by strangers");
            assert!(counted > 52);
        }
    }
}

#[tokio::test]
async fn answers_that_tell_nothing_break_no_limit_and_cost_little() {
    for seed in 1..=20 {
        let counted = fill_a_window(seed, 0, 3).await;
        assert!(counted > 50, "seed {seed}: {counted} of 60");
        fill_a_window(seed, 20, 3).await;
    }
}
