//! Policies: from what a visit found to the time of the next one.
//!
//! A policy is pure: clock, randomness and memory are arguments. It keeps at most 64 bytes per
//! subject and facet ([`State`], in the store's frontier row) and shares what it knows of the whole
//! population ([`Shared`]). It says what a visit now would be worth ([`Policy::index`]), and the
//! earliest time at which that can reach the price of a call ([`Policy::due`]). The price follows
//! the budget ([`crate::market`]): it is what the last call that was paid for was worth.
//!
//! The unit of worth is one post that waits for one day, where a policy says so
//! ([`Policy::tells_post_days`]); others have units of their own.

pub mod adaptive;
pub mod breadth_first;
pub mod change_rate;
pub mod changes;
pub mod cho;
pub mod hash;
pub mod hash_calendar;
pub mod importance;
pub mod lambda_crawl;
pub mod organ_pipe;
pub mod proportional;
mod rate;
mod regression;
mod rhythm;
mod round_robin;
mod shared;
pub mod square_root;
mod state;
pub mod uniform;

pub use adaptive::{Adaptive, Objective};
pub use breadth_first::BreadthFirst;
pub use change_rate::ChangeRate;
pub use changes::{Changes, Content};
pub use cho::Cho;
pub use hash::Hash;
pub use hash_calendar::{HashCalendar, Holidays};
pub use importance::Importance;
pub use lambda_crawl::LambdaCrawl;
pub use organ_pipe::OrganPipe;
pub use proportional::Proportional;
pub use round_robin::RoundRobin;
pub use shared::Shared;
pub use square_root::SquareRoot;
pub use state::{STATE_BYTES_MAX, State, StateTooLarge};
pub use uniform::Uniform;

use crate::random::Random;
use kittiwake_model::WorldTime;

pub(crate) const DAY_US: i64 = 86_400_000_000;
pub(crate) const HOUR_US: i64 = 3_600_000_000;

/// The first byte of a state: policy and version of its layout. A number is never used again.
mod tag {
    pub(super) const ROUND_ROBIN: u8 = 1;
    pub(super) const ORGAN_PIPE: u8 = 2;
    pub(super) const HASH: u8 = 3;
    pub(super) const HASH_CALENDAR: u8 = 4;
    pub(super) const CHANGE_RATE: u8 = 5;
    pub(super) const IMPORTANCE: u8 = 6;
    pub(super) const BREADTH_FIRST: u8 = 7;
    pub(super) const PROPORTIONAL: u8 = 8;
    pub(super) const CHO: u8 = 9;
    pub(super) const LAMBDA_CRAWL: u8 = 10;
    pub(super) const SQUARE_ROOT: u8 = 11;
    pub(super) const UNIFORM: u8 = 12;
    pub(super) const ADAPTIVE: u8 = 13;
    pub(super) const CHANGES: u8 = 14;
}

/// What one visit found.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    pub at: WorldTime,
    /// When the posts that it brought and that were not known before were made, in no particular
    /// order. A first visit may bring posts of long ago.
    pub posts: &'a [WorldTime],
    /// How far each of them has spread (reposts and replies), in the same order; empty if nobody
    /// counted.
    pub spreads: &'a [u32],
    /// Whether the answer was full, so that older posts that nobody has seen may be missing.
    pub is_full: bool,
    /// What else it has shown, for those who learn from what has no time; `None` if that cannot be told.
    pub content: Option<Content>,
    /// How many calls it took; a part of one, where a call serves several.
    pub calls: f32,
}

impl<'a> Visit<'a> {
    /// A visit that brought everything there was.
    pub const fn complete(at: WorldTime, posts: &'a [WorldTime]) -> Self {
        Self {
            at,
            posts,
            spreads: &[],
            is_full: false,
            content: None,
            calls: 1.0,
        }
    }

    /// When the oldest of its posts was made.
    pub fn oldest(&self) -> Option<WorldTime> {
        self.posts.iter().copied().min()
    }
}

/// What a card tells of somebody before the first visit. What it does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    pub followers: Option<u64>,
    pub following: Option<u64>,
    pub posts: Option<u64>,
    pub age_days: Option<f64>,
    /// Follow links from the nearest seed.
    pub depth: u32,
}

/// Decides whom a call is spent on.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// The first byte of its states.
    fn tag(&self) -> u8;

    /// The state of somebody who was met and not visited yet.
    fn meet(&self, _shared: &Shared, _facts: &Facts, now: WorldTime) -> State {
        let mut state = State::default();
        state.begin(self.tag(), now, false);
        state
    }

    /// Takes in what a visit found.
    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>);

    /// What a visit now is worth. It grows with the time since the last visit, or nearly so.
    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64;

    /// The earliest time, from now on, at which the index can reach `price`.
    fn due(&self, shared: &Shared, state: &State, price: f64, now: WorldTime) -> WorldTime {
        crossing(price, state.since().unwrap_or(now), now, |at| {
            self.index(shared, state, at)
        })
    }

    /// How many posts are expected to wait for a visit; `None` if it makes no forecast.
    fn expected(&self, _shared: &Shared, _state: &State, _now: WorldTime) -> Option<f64> {
        None
    }

    /// How many posts a day are expected of a subject; `None` if it makes no forecast.
    fn posts_per_day(&self, _shared: &Shared, _state: &State) -> Option<f64> {
        None
    }

    /// Re-estimates what is known of the population; called every few hours of world time.
    fn epoch(&self, _shared: &mut Shared, _now: WorldTime) {}

    /// Whether the index rises and falls with the day, and does not only rise.
    fn has_rhythm(&self) -> bool {
        false
    }

    /// Whether its index is in posts that wait for a day, so that it can be held against that of other
    /// policies.
    fn tells_post_days(&self) -> bool {
        false
    }

    /// Whether what a visit is worth is told for each of the calls that it takes.
    fn knows_calls(&self) -> bool {
        false
    }

    /// Whether it plans whole rounds, in which everybody is visited once.
    fn plans_rounds(&self) -> bool {
        false
    }

    /// The order of the next round, for policies that plan them.
    fn round(&self, states: &[State], _random: &mut Random) -> Vec<u32> {
        (0..states.len() as u32).collect()
    }

    /// Whether another page is worth a call at this price, when a visit to somebody in this state
    /// (before the visit) has brought full pages that left `unseen_days` uncovered.
    fn wants_more(
        &self,
        _shared: &Shared,
        _state: &State,
        _visit: &Visit<'_>,
        _unseen_days: f64,
        _price: f64,
    ) -> bool {
        false
    }
}

/// What policies are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySettings {
    /// Posts that one call returns at most.
    pub page: usize,
    /// The weight of the newest day in the Hash model.
    pub hash_weight: f64,
    /// What `adaptive` strives for.
    pub objective: Objective,
    /// For the calendar of the Hash model.
    pub holidays: Holidays,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            page: 100,
            hash_weight: 0.5,
            objective: Objective::default(),
            holidays: Holidays::default(),
        }
    }
}

/// All policies that a crawl can follow, by their names.
pub const NAMES: [&str; 14] = [
    "adaptive",
    "round-robin",
    "uniform",
    "organ-pipe",
    "hash",
    "hash-calendar",
    "change-rate",
    "importance",
    "breadth-first",
    "proportional",
    "cho",
    "lambda-crawl",
    "square-root",
    "changes",
];

/// The policy of a name.
pub fn by_name(name: &str, settings: &PolicySettings) -> Option<Box<dyn Policy>> {
    let page = settings.page as f64;
    Some(match name {
        "adaptive" => Box::new(Adaptive::new(settings.page, settings.objective)),
        "round-robin" => Box::new(RoundRobin),
        "uniform" => Box::new(Uniform),
        "organ-pipe" => Box::new(OrganPipe),
        "hash" => Box::new(Hash::new(page, settings.hash_weight)),
        "hash-calendar" => Box::new(HashCalendar::new(
            page,
            settings.hash_weight,
            settings.holidays.clone(),
        )),
        "change-rate" => Box::new(ChangeRate),
        "importance" => Box::new(Importance),
        "breadth-first" => Box::new(BreadthFirst),
        "proportional" => Box::new(Proportional),
        "cho" => Box::new(Cho),
        "lambda-crawl" => Box::new(LambdaCrawl),
        "square-root" => Box::new(SquareRoot),
        "changes" => Box::new(Changes),
        _ => return None,
    })
}

/// The name of the policy that wrote a state.
pub fn writer_of(state: &State) -> Option<&'static str> {
    let settings = PolicySettings::default();
    let is_writer = |name: &&str| by_name(name, &settings).is_some_and(|it| state.is_of(it.tag()));
    NAMES.into_iter().find(is_writer)
}

pub(crate) fn days_between(earlier: WorldTime, later: WorldTime) -> f64 {
    later.since_us(earlier).max(0) as f64 / DAY_US as f64
}

/// Days since the last visit; forever for somebody who was never visited.
fn waited_days(state: &State, now: WorldTime) -> f64 {
    state
        .visited()
        .map_or(f64::INFINITY, |visited| days_between(visited, now))
}

/// Days since the last visit or, failing that, the first meeting.
fn elapsed_days(state: &State, now: WorldTime) -> f64 {
    state.since().map_or(0.0, |since| days_between(since, now))
}

/// Nothing is looked for beyond this.
const FAR_US: i64 = 4_000 * DAY_US;

/// The first time from `now` at which a growing index reaches the price, to a minute or to a
/// sixtieth of the time since the last visit. It may come out early, hardly ever late.
fn crossing(
    price: f64,
    since: WorldTime,
    now: WorldTime,
    index: impl Fn(WorldTime) -> f64,
) -> WorldTime {
    const MINUTE_US: i64 = 60_000_000;
    if index(now) >= price {
        return now.max(since.plus_us(1));
    }
    let mut step_us = (now.since_us(since) / 4).max(10 * MINUTE_US);
    let mut low = now;
    let mut high = now.plus_us(step_us);
    while index(high) < price {
        if high.since_us(now) > FAR_US {
            return high;
        }
        low = high;
        step_us *= 2;
        high = high.plus_us(step_us);
    }
    while high.since_us(low) > MINUTE_US.max(low.since_us(since) / 60) {
        let middle = low.plus_us(high.since_us(low) / 2);
        if index(middle) < price {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_with_a_tag_of_its_own() {
        let mut tags = Vec::new();
        for name in NAMES {
            let policy = by_name(name, &PolicySettings::default()).expect(name);
            assert_eq!(policy.name(), name);
            tags.push(policy.tag());
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), NAMES.len());
        assert!(by_name("oracle", &PolicySettings::default()).is_none());
    }

    #[test]
    fn every_policy_survives_whatever_a_visit_may_bring() {
        let hostile = [
            vec![],
            vec![WorldTime(i64::MIN), WorldTime(i64::MAX), WorldTime(0)],
            vec![WorldTime(5); 1_000],
            vec![WorldTime(-1), WorldTime(3 * DAY_US)],
        ];
        for name in NAMES {
            let policy = by_name(name, &PolicySettings::default()).expect(name);
            let mut shared = Shared::default();
            let mut state = policy.meet(&shared, &Facts::default(), WorldTime(0));
            for (round, posts) in hostile.iter().cycle().take(40).enumerate() {
                // Time stands still now and then, and even runs backwards.
                let at = WorldTime((round as i64 / 2 - i64::from(round % 7 == 0)) * DAY_US);
                let visit = Visit {
                    is_full: round % 3 == 0,
                    content: (round % 2 == 0).then_some(Content::Whole {
                        digest: round as u64 / 4,
                        counts: u32::MAX,
                        size: if round % 4 == 0 { 0 } else { u32::MAX },
                    }),
                    calls: [1.0, 0.0, f32::NAN, f32::INFINITY, -5.0][round % 5],
                    ..Visit::complete(at, posts)
                };
                policy.observe(&mut shared, &mut state, &visit);
                policy.epoch(&mut shared, at);
                assert!(state.bytes().len() <= STATE_BYTES_MAX);
                assert_eq!(state.visited(), Some(at), "{name}");
                let later = at.plus_us(DAY_US);
                assert!(!policy.index(&shared, &state, later).is_nan(), "{name}");
                assert!(policy.due(&shared, &state, 0.5, at) >= at, "{name}");
                let far = WorldTime(i64::MAX);
                assert!(!policy.index(&shared, &state, far).is_nan(), "{name}");
            }
        }
    }

    #[test]
    fn bytes_of_another_policy_are_somebody_unknown() {
        for name in NAMES {
            let policy = by_name(name, &PolicySettings::default()).expect(name);
            for byte in [0, 1, 13, 0x7f, 0xff] {
                let mut shared = Shared::default();
                let mut state = State::from_bytes(vec![byte; 63]).unwrap();
                let now = WorldTime(9 * DAY_US);
                assert!(!policy.index(&shared, &state, now).is_nan(), "{name}");
                policy.observe(&mut shared, &mut state, &Visit::complete(now, &[now]));
                assert_eq!(state.visited(), Some(now), "{name}");
                assert!(!policy.index(&shared, &state, now).is_nan(), "{name}");
            }
        }
    }
}
