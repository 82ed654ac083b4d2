//! What one decision costs: choosing a subject, taking in its visit, filing it again.
//!
//! A million subjects (or as many as the first argument says) post by day, at rates drawn from a
//! wide distribution, and are visited once a day in the mean. The last of six days is measured, in
//! time of the processor, so that other programs on the machine count for little.

#![allow(
    clippy::print_stdout,
    missing_debug_implementations,
    reason = "a benchmark prints"
)]

use kittiwake_frontier::market::{Market, Worth};
use kittiwake_frontier::policy::{Facts, Policy, PolicySettings, Shared, State, Visit, by_name};
use kittiwake_frontier::random::Random;
use kittiwake_model::WorldTime;
use std::time::{Duration, Instant};

const DAY_US: i64 = 86_400_000_000;
const EPOCH_US: i64 = DAY_US / 4;
const ROUNDS: u64 = 6;

/// Posts are drawn from so many times of the day, made beforehand: making them is not measured.
const TIMES: usize = 4_096;
const POSTS_MAX: usize = 100;

struct World<'a> {
    policy: &'a dyn Policy,
    shared: Shared,
    states: Vec<State>,
    rates: Vec<f32>,
    random: Random,
    /// Times of the day between 8 and 20, in microseconds.
    times_us: Vec<i64>,
    posts: Vec<WorldTime>,
}

impl Worth for World<'_> {
    fn index(&self, subject: u32, now: WorldTime) -> f64 {
        let state = &self.states[subject as usize];
        self.policy.index(&self.shared, state, now)
    }

    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime {
        let state = &self.states[subject as usize];
        self.policy.due(&self.shared, state, price, now)
    }

    fn since(&self, subject: u32) -> Option<WorldTime> {
        self.states[subject as usize].since()
    }

    fn has_rhythm(&self) -> bool {
        self.policy.has_rhythm()
    }
}

impl<'a> World<'a> {
    fn new(policy: &'a dyn Policy, count: u32) -> Self {
        let mut random = Random::new(1);
        // From one post a month to fifty a day.
        let rates = (0..count).map(|_| (0.03 * 1_600_f64.powf(random.share())) as f32);
        let rates = rates.collect();
        let times_us =
            (0..TIMES).map(|_| ((8.0 + 12.0 * random.share()) / 24.0 * DAY_US as f64) as i64);
        let times_us = times_us.collect();
        let shared = Shared::default();
        let met = policy.meet(&shared, &Facts::default(), WorldTime(0));
        Self {
            policy,
            states: vec![met; count as usize],
            rates,
            shared,
            random,
            times_us,
            posts: Vec::with_capacity(POSTS_MAX),
        }
    }

    /// Posts since the last visit, on each of the days since.
    fn visit(&mut self, subject: u32, at: WorldTime) {
        let place = subject as usize;
        let since = self.states[place].since().unwrap_or(at);
        let days = at.since_us(since) as f64 / DAY_US as f64;
        let share = self.random.share();
        let count = (f64::from(self.rates[place]) * days + share) as usize;
        let mut day_us = since.micros() / DAY_US * DAY_US;
        let first = (share * TIMES as f64) as usize;
        self.posts.clear();
        for turn in 0..count.min(POSTS_MAX) {
            let post = WorldTime(day_us + self.times_us[(first + turn) % TIMES]);
            day_us = if day_us + DAY_US > at.micros() {
                since.micros() / DAY_US * DAY_US
            } else {
                day_us + DAY_US
            };
            if post > since && post <= at {
                self.posts.push(post);
            }
        }
        let visit = Visit::complete(at, &self.posts);
        self.policy
            .observe(&mut self.shared, &mut self.states[place], &visit);
    }
}

/// Time that this thread has had of the processor; without Linux, time by the clock.
fn processor_time(started: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|word| word.parse().ok());
    nanos.map_or_else(|| started.elapsed(), Duration::from_nanos)
}

fn measure(name: &str, count: u32) {
    let Some(policy) = by_name(name, &PolicySettings::default()) else {
        return;
    };
    let started = Instant::now();
    let mut world = World::new(policy.as_ref(), count);
    let mut market = Market::default();
    for subject in 0..count {
        market.file(subject, WorldTime(0));
    }
    let batch = (count as usize / 256).clamp(1, 64);
    let calls = u64::from(count) * ROUNDS;
    let gap_us = DAY_US as f64 / f64::from(count);
    let (mut call, mut epoch, mut before, mut looked_at) = (0_u64, 0_i64, Duration::ZERO, 0);
    let measured_from = calls / ROUNDS * (ROUNDS - 1);
    while call < calls {
        let now = WorldTime((call as f64 * gap_us) as i64);
        if now.micros() >= epoch {
            world.policy.epoch(&mut world.shared, now);
            epoch += EPOCH_US;
        }
        let chosen = market.take(now, batch, &world);
        for subject in &chosen {
            world.visit(*subject, now);
        }
        for subject in &chosen {
            market.file_again(*subject, now, &world);
        }
        if call < measured_from && call + chosen.len() as u64 >= measured_from {
            before = processor_time(started);
            looked_at = market.looked_at();
        }
        call += chosen.len() as u64;
    }
    let took = processor_time(started).saturating_sub(before);
    let decisions = (calls - measured_from) as f64;
    println!(
        "{name:<12} {count:>9} subjects: {:.2} µs a decision, {:.1} looks",
        took.as_secs_f64() * 1e6 / decisions,
        (market.looked_at() - looked_at) as f64 / decisions,
    );
}

fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse::<u32>().ok());
    let count = numbers.max().unwrap_or(1_000_000).max(1);
    for name in ["adaptive", "square-root"] {
        measure(name, count);
    }
}
