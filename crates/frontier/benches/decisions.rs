//! What one decision costs: choosing a subject, taking in its visit, filing it again.
//!
//! A million subjects (or as many as the first argument says) post by day, at rates drawn from a
//! wide distribution, and are visited once a day in the mean. The last of six days is measured.

#![allow(
    clippy::print_stdout,
    missing_debug_implementations,
    reason = "a benchmark prints"
)]

use kittiwake_frontier::market::{Market, Worth};
use kittiwake_frontier::policy::{Facts, Policy, PolicySettings, Shared, State, Visit, by_name};
use kittiwake_frontier::random::Random;
use kittiwake_model::WorldTime;
use std::time::Instant;

const DAY_US: i64 = 86_400_000_000;
const EPOCH_US: i64 = DAY_US / 4;
const ROUNDS: u64 = 6;

struct World<'a> {
    policy: &'a dyn Policy,
    shared: Shared,
    states: Vec<State>,
    rates: Vec<f32>,
    random: Random,
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

impl World<'_> {
    /// Posts since the last visit, spread over the hours from 8 to 20.
    fn visit(&mut self, subject: u32, at: WorldTime) {
        let place = subject as usize;
        let since = self.states[place].since().unwrap_or(at);
        let days = at.since_us(since) as f64 / DAY_US as f64;
        let expected = f64::from(self.rates[place]) * days;
        let count = (expected + self.random.share()) as usize;
        let posts: Vec<WorldTime> = (0..count.min(100))
            .map(|_| since.plus_us((self.random.share() * days * DAY_US as f64) as i64))
            .filter(|post| (8..20).contains(&(post.micros() / (DAY_US / 24) % 24)))
            .collect();
        let visit = Visit::complete(at, &posts);
        self.policy
            .observe(&mut self.shared, &mut self.states[place], &visit);
    }
}

fn measure(name: &str, count: u32) {
    let Some(policy) = by_name(name, &PolicySettings::default()) else {
        return;
    };
    let mut random = Random::new(1);
    // From one post a month to fifty a day.
    let rates = (0..count).map(|_| (0.03 * 1_600_f64.powf(random.share())) as f32);
    let shared = Shared::default();
    let met = policy.meet(&shared, &Facts::default(), WorldTime(0));
    let mut world = World {
        policy: policy.as_ref(),
        states: vec![met; count as usize],
        rates: rates.collect(),
        shared,
        random: Random::new(2),
    };
    let mut market = Market::default();
    for subject in 0..count {
        market.file(subject, WorldTime(0));
    }
    let batch = (count as usize / 256).clamp(1, 64);
    let calls = u64::from(count) * ROUNDS;
    let gap_us = DAY_US as f64 / f64::from(count);
    let (mut call, mut epoch, mut started, mut looked_at) = (0_u64, 0_i64, Instant::now(), 0);
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
            started = Instant::now();
            looked_at = market.looked_at();
        }
        call += chosen.len() as u64;
    }
    let decisions = (calls - measured_from) as f64;
    println!(
        "{name:<12} {count:>9} subjects: {:.2} µs a decision, {:.1} looks",
        started.elapsed().as_secs_f64() * 1e6 / decisions,
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
