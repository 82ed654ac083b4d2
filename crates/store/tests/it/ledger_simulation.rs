//! The ledger in virtual time: processes that start, crash and stop at any moment, calls that
//! cross the edges of windows, and a server that counts each call where it arrives.

use crate::postgres::server;
use kittiwake_model::{BudgetId, Grant, LimitTime, Window};
use kittiwake_store::{Acquired, Carry, Closing, Ledger, Location, Want};
use std::collections::BTreeMap;
use std::future::Future;
use tokio::runtime::Runtime;

/// Random numbers that a seed repeats.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % end.max(1)
    }

    fn chance(&mut self, one_in: i64) -> bool {
        self.below(one_in) == 0
    }
}

/// A limit as the server has it.
#[derive(Debug, Clone)]
struct Limit {
    budget: BudgetId,
    calls: u32,
    window_us: i64,
}

impl Limit {
    fn window(&self, at_us: i64) -> Window {
        let start = at_us.div_euclid(self.window_us) * self.window_us;
        Window {
            start: LimitTime(start),
            end: LimitTime(start + self.window_us),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Call {
    sent_us: i64,
    arrives_us: i64,
    answered_us: i64,
    /// What the server had counted when it arrived; filled in then.
    arrived: bool,
}

/// The server: counts arrivals by limit and window.
struct Server {
    limits: Vec<Limit>,
    counts: BTreeMap<(usize, i64), u32>,
}

impl Server {
    fn arrive(&mut self, at_us: i64) {
        for (place, limit) in self.limits.iter().enumerate() {
            let start = limit.window(at_us).start.0;
            let count = self.counts.entry((place, start)).or_default();
            *count += 1;
            assert!(
                *count <= limit.calls,
                "{} calls of {} in the window of {} at {start}",
                count,
                limit.calls,
                limit.budget.0
            );
        }
    }

    fn used(&self, place: usize, at_us: i64) -> u32 {
        let start = self.limits[place].window(at_us).start.0;
        self.counts.get(&(place, start)).copied().unwrap_or(0)
    }
}

/// One process that crawls as hard as it may.
struct Process {
    ledger: Ledger,
    runtime: Runtime,
    holder: String,
    /// Per limit: open grants with what is left of them.
    grants: Vec<Vec<(Grant, u32)>>,
    in_flight: Vec<Call>,
    asks_again_us: i64,
    chunk: u32,
    concurrency: usize,
    /// The window for which it was decided when to begin, and that moment. A process that begins
    /// late has calls under way when the window ends.
    begins: (i64, i64),
}

impl Process {
    fn new(place: &Location, number: usize, limits: usize, random: &mut Seeded) -> Self {
        Self {
            ledger: Ledger::open_unsynced(place).unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            holder: format!("process {number}"),
            grants: vec![Vec::new(); limits],
            in_flight: Vec::new(),
            asks_again_us: i64::MIN,
            chunk: 1 + random.below(12) as u32,
            concurrency: 1 + random.below(16) as usize,
            begins: (i64::MIN, 0),
        }
    }

    fn wait<T, E: std::fmt::Debug>(&self, answer: impl Future<Output = Result<T, E>>) -> T {
        self.runtime.block_on(answer).unwrap()
    }

    fn is_active(&mut self, window: Window, at_us: i64, random: &mut Seeded) -> bool {
        if self.begins.0 != window.start.0 {
            let length_us = window.end.since_us(window.start);
            let late_us = if random.chance(2) {
                length_us * (80 + random.below(20)) / 100
            } else {
                0
            };
            self.begins = (window.start.0, window.start.0 + late_us);
        }
        at_us >= self.begins.1
    }

    /// The window is over: says what is still under way, then closes what is left.
    fn turn_windows(&mut self, server: &Server, at_us: i64) {
        for (place, limit) in server.limits.iter().enumerate() {
            let window = limit.window(at_us);
            let over: Vec<(Grant, u32)> = {
                let (now, over) = self.grants[place]
                    .drain(..)
                    .partition(|(grant, _)| grant.window == window);
                self.grants[place] = now;
                over
            };
            if over.is_empty() {
                continue;
            }
            let carried = self
                .in_flight
                .iter()
                .filter(|call| call.sent_us < window.start.0 && call.answered_us >= window.start.0)
                .count();
            let carry = Carry {
                budget: limit.budget.clone(),
                window,
                holder: self.holder.clone(),
                calls: carried as u32,
            };
            self.wait(self.ledger.carry(vec![carry]));
            let closings: Vec<Closing> = over
                .iter()
                .map(|(grant, left)| Closing {
                    grant: grant.id,
                    unused: *left,
                })
                .collect();
            self.wait(self.ledger.close(closings));
        }
    }

    fn take_grants(&mut self, server: &Server, at_us: i64) {
        let short: Vec<usize> = (0..server.limits.len())
            .filter(|place| self.grants[*place].iter().all(|(_, left)| *left == 0))
            .collect();
        if short.is_empty() || at_us < self.asks_again_us {
            return;
        }
        let wants: Vec<Want> = short
            .iter()
            .map(|place| Want {
                budget: server.limits[*place].budget.clone(),
                window: server.limits[*place].window(at_us),
                limit: server.limits[*place].calls,
                calls: self.chunk,
                holder: self.holder.clone(),
            })
            .collect();
        match self.wait(self.ledger.acquire(LimitTime(at_us), wants)) {
            Acquired::Granted(grants) => {
                for (place, grant) in short.iter().zip(grants) {
                    let calls = grant.calls;
                    self.grants[*place].push((grant, calls));
                }
            }
            Acquired::Exhausted { until, .. } => {
                assert!(until.0 > at_us);
                self.asks_again_us = until.0;
            }
        }
    }

    fn send(&mut self, server: &Server, at_us: i64, random: &mut Seeded, latency_us: i64) {
        while self.in_flight.len() < self.concurrency {
            for (place, limit) in server.limits.iter().enumerate() {
                let window = limit.window(at_us);
                let usable = |(grant, left): &(Grant, u32)| *left > 0 && grant.window == window;
                if !self.grants[place].iter().any(usable) {
                    return;
                }
            }
            for grants in &mut self.grants {
                if let Some((_, left)) = grants.iter_mut().find(|(_, left)| *left > 0) {
                    *left -= 1;
                }
            }
            // Most calls are quick, some take their time.
            let latency_us = if random.chance(3) {
                latency_us
            } else {
                (latency_us / 50).max(1)
            };
            let arrives_us = at_us + random.below(latency_us);
            self.in_flight.push(Call {
                sent_us: at_us,
                arrives_us,
                answered_us: arrives_us + 1 + random.below(latency_us),
                arrived: false,
            });
        }
    }

    /// Takes in answers; the server's count comes with them.
    fn receive(&mut self, server: &Server, at_us: i64, observes: bool) {
        let before = self.in_flight.len();
        self.in_flight.retain(|call| call.answered_us > at_us);
        if !observes || self.in_flight.len() == before {
            return;
        }
        for (place, limit) in server.limits.iter().enumerate() {
            let unsent: u32 = self.grants[place].iter().map(|(_, left)| *left).sum();
            self.wait(self.ledger.observe(
                &limit.budget,
                limit.window(at_us),
                server.used(place, at_us),
                unsent + self.in_flight.len() as u32,
            ));
        }
        self.asks_again_us = self.asks_again_us.min(at_us);
    }

    /// A clean stop waits for its answers and hands back the rest.
    fn stop(&mut self) {
        let closings: Vec<Closing> = self
            .grants
            .iter()
            .flatten()
            .map(|(grant, left)| Closing {
                grant: grant.id,
                unused: *left,
            })
            .collect();
        self.wait(self.ledger.close(closings));
        self.grants.iter_mut().for_each(Vec::clear);
    }
}

struct Simulation {
    processes: usize,
    /// One crash in so many steps, of which a window has some 200; `None`: nobody crashes.
    crash_one_in: Option<i64>,
    observes: bool,
    latency_us: i64,
    limits: Vec<Limit>,
    windows: i64,
}

impl Simulation {
    /// Runs it; gives the share of the first limit that was used in full windows.
    fn run(&self, seed: u64, place: &Location) -> f64 {
        let mut random = Seeded(seed);
        let mut server = Server {
            limits: self.limits.clone(),
            counts: BTreeMap::new(),
        };
        let mut started = 0;
        let mut processes: Vec<Process> = Vec::new();
        // Calls of processes that are no more: they arrive all the same.
        let mut orphans: Vec<Call> = Vec::new();
        let window_us = self.limits[0].window_us;
        let mut at_us = window_us;
        let end_us = window_us * (self.windows + 1);
        while at_us < end_us {
            if processes.len() < self.processes && (started < self.processes || random.chance(20)) {
                processes.push(Process::new(place, started, self.limits.len(), &mut random));
                started += 1;
            }
            let mut arrivals: Vec<i64> = Vec::new();
            for call in orphans.iter_mut().chain(
                processes
                    .iter_mut()
                    .flat_map(|process| &mut process.in_flight),
            ) {
                if !call.arrived && call.arrives_us <= at_us {
                    call.arrived = true;
                    arrivals.push(call.arrives_us);
                }
            }
            arrivals.sort_unstable();
            for arrival_us in arrivals {
                server.arrive(arrival_us);
            }
            orphans.retain(|call| !call.arrived);
            for process in &mut processes {
                process.receive(&server, at_us, self.observes);
                process.turn_windows(&server, at_us);
                let window = self.limits[0].window(at_us);
                if self.crash_one_in.is_some() && !process.is_active(window, at_us, &mut random) {
                    continue;
                }
                process.take_grants(&server, at_us);
                process.send(&server, at_us, &mut random, self.latency_us);
            }
            let crash = self
                .crash_one_in
                .is_some_and(|one_in| random.chance(one_in));
            if crash && !processes.is_empty() {
                let place = random.below(processes.len() as i64) as usize;
                let mut ended = processes.swap_remove(place);
                if ended.in_flight.is_empty() && random.chance(2) {
                    ended.stop();
                }
                orphans.extend(ended.in_flight.iter().filter(|call| !call.arrived));
            }
            at_us += 1 + random.below(window_us / 200);
        }
        let full = server
            .counts
            .iter()
            .filter(|((place, start), _)| {
                *place == 0 && *start > window_us && start + window_us <= end_us
            })
            .map(|(_, count)| *count)
            .collect::<Vec<u32>>();
        f64::from(full.iter().sum::<u32>()) / (full.len() as f64 * f64::from(self.limits[0].calls))
    }
}

fn limit(name: &str, calls: u32, window_us: i64) -> Limit {
    Limit {
        budget: BudgetId(name.to_owned()),
        calls,
        window_us,
    }
}

fn with_crashes(seed: u64, place: &Location, windows: i64) {
    println!("seed {seed}");
    let simulation = Simulation {
        processes: 1 + (seed as usize % 4),
        crash_one_in: Some([40, 300, 3_000][(seed as usize / 3) % 3]),
        observes: seed.is_multiple_of(3),
        // Up to a whole window from sent to answered.
        latency_us: [50, 400, 4_900][seed as usize % 3],
        limits: if seed.is_multiple_of(2) {
            vec![limit("ip", 60, 10_000)]
        } else {
            vec![limit("token", 40, 10_000), limit("ip", 90, 30_000)]
        },
        windows,
    };
    simulation.run(seed, place);
}

fn without_crashes(seed: u64, observes: bool, place: &Location, windows: i64) {
    println!("seed {seed}, observes {observes}");
    let simulation = Simulation {
        processes: 1 + (seed as usize % 3),
        crash_one_in: None,
        observes,
        latency_us: 60,
        limits: vec![limit("ip", 300, 100_000)],
        windows,
    };
    let used = simulation.run(seed, place);
    assert!(used >= 0.99, "only {used:.4} used");
}

/// Does something with a fresh file.
fn at_a_file(work: impl FnOnce(&Location)) {
    let folder = tempfile::tempdir().unwrap();
    work(&Location::File(folder.path().join("budgets.db")));
}

/// Does something with a fresh schema.
fn at_a_server(work: impl FnOnce(&Location)) {
    let schema = server::shared().schema();
    work(&Location::Server(schema.url.clone()));
}

#[test]
fn no_window_is_ever_overdrawn_whoever_crashes() {
    for seed in 0..24 {
        at_a_file(|place| with_crashes(seed, place, 12));
    }
}

#[test]
fn without_crashes_hardly_a_call_is_lost() {
    for seed in 0..6 {
        for observes in [false, true] {
            at_a_file(|place| without_crashes(seed, observes, place, 8));
        }
    }
}

#[test]
fn no_window_of_a_server_is_ever_overdrawn_whoever_crashes() {
    for seed in [1, 3, 4, 6, 11] {
        at_a_server(|place| with_crashes(seed, place, 5));
    }
}

#[test]
fn with_a_server_hardly_a_call_is_lost_without_crashes() {
    for (seed, observes) in [(1, true), (2, false)] {
        at_a_server(|place| without_crashes(seed, observes, place, 3));
    }
}
