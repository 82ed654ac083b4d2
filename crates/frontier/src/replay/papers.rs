//! The experiments of the papers: one visit each (CUVIM), Algorithm 2 without a budget (CUVIM), and
//! mispredictions (SocWeb).

use super::{ReplayError, Trace};
use crate::policy::{DAY_US, days_between, organ_pipe};
use crate::random::Random;
use kittiwake_model::WorldTime;

/// Messages that one visit each brought, for each order, over all windows of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OneVisit {
    pub windows: u64,
    pub visits: u64,
    /// In a random order.
    pub round_robin: u64,
    /// Algorithm 1, with the rates of the window before.
    pub organ_pipe: u64,
    /// The slowest first and the fastest last.
    pub slow_first: u64,
}

/// Visits everybody once per window, at even spaces, and counts what the newest page of posts made
/// since the window began brings. Rates are those of the window before; the first window only
/// gives rates.
pub fn one_visit(
    trace: &Trace,
    window_days: f64,
    page: usize,
    seed: u64,
) -> Result<OneVisit, ReplayError> {
    let window_us = (window_days * DAY_US as f64) as i64;
    let windows = trace.end.since_us(trace.start) / window_us.max(1);
    if window_us <= 0 || windows < 2 {
        return Err(ReplayError::Window {
            days: trace.days(),
            window_days,
        });
    }
    let mut random = Random::new(seed);
    let mut result = OneVisit::default();
    for window in 1..windows {
        let from = trace.start.plus_us(window * window_us);
        let before = from.plus_us(-window_us);
        let mut random_order: Vec<usize> = (0..trace.subjects.len()).collect();
        random.shuffle(&mut random_order);
        let mut ascending = random_order.clone();
        let rate = |subject: &usize| {
            let posts = &trace.subjects[*subject].posts;
            posts_between(posts, before, from).len()
        };
        ascending.sort_by_key(rate);
        let round = Round {
            trace,
            from,
            window_us,
            page,
        };
        result.windows += 1;
        result.visits += random_order.len() as u64;
        result.round_robin += round.messages(&random_order);
        result.organ_pipe += round.messages(&organ_pipe::order(&ascending));
        result.slow_first += round.messages(&ascending);
    }
    Ok(result)
}

/// Posts later than `from`, up to `to`.
fn posts_between(posts: &[WorldTime], from: WorldTime, to: WorldTime) -> &[WorldTime] {
    let first = posts.partition_point(|at| *at < from);
    let last = posts.partition_point(|at| *at < to);
    &posts[first..last.max(first)]
}

struct Round<'a> {
    trace: &'a Trace,
    from: WorldTime,
    window_us: i64,
    page: usize,
}

impl Round<'_> {
    fn messages(&self, order: &[usize]) -> u64 {
        let gap_us = self.window_us as f64 / order.len().max(1) as f64;
        let visits = order.iter().enumerate();
        visits
            .map(|(place, subject)| {
                let at = self.from.plus_us((place as f64 * gap_us) as i64);
                let posts = &self.trace.subjects[*subject].posts;
                posts_between(posts, self.from, at).len().min(self.page) as u64
            })
            .sum()
    }
}

/// SocWeb's Figure 4: how often the next post came after the time that the change rate predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mispredictions {
    /// The first instant of the month.
    pub month: WorldTime,
    pub posts: u64,
    /// Posts for which there was a rate to predict from.
    pub predicted: u64,
    /// Predictions that lay before the post.
    pub mispredicted: u64,
}

/// Goes through all posts in order and asks, before each, when the user's change rate predicted it.
/// `months` are the beginnings of months, ascending; the first is not after the trace's start.
pub fn mispredictions(trace: &Trace, months: &[WorldTime]) -> Vec<Mispredictions> {
    use crate::policy::change_rate::{Changes, WINDOW_DAYS};
    let mut counted: Vec<Mispredictions> = months
        .iter()
        .map(|month| Mispredictions {
            month: *month,
            posts: 0,
            predicted: 0,
            mispredicted: 0,
        })
        .collect();
    for subject in &trace.subjects {
        let mut changes: Option<Changes> = None;
        for post in &subject.posts {
            let place = months.partition_point(|month| month <= post);
            if let Some(month) = place.checked_sub(1).and_then(|at| counted.get_mut(at)) {
                month.posts += 1;
                if let Some(before) = changes
                    && let Some(predicted) = before.predicted()
                {
                    // Nobody waits longer than the longest window.
                    let window_us = (WINDOW_DAYS * DAY_US as f64) as i64;
                    let predicted = predicted.min(before.last.plus_us(window_us));
                    month.predicted += 1;
                    month.mispredicted += u64::from(predicted < *post);
                }
            }
            changes = Some(Changes::with(changes, *post));
        }
    }
    counted.retain(|month| month.posts > 0);
    counted
}

/// CUVIM's Hash experiment: everybody is visited when Algorithm 2 says so, whatever it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnbudgetedHash {
    pub weight: f64,
    pub calls: u64,
    pub messages: u64,
    pub visits_per_day: f64,
}

/// Plans every day of every user by Algorithm 2, and makes the visits at the ends of the slots.
pub fn unbudgeted_hash(
    trace: &Trace,
    page: usize,
    weight: f64,
    longest_span_days: f64,
    warm_up_days: f64,
) -> UnbudgetedHash {
    let measured_from = trace.start.plus_us((warm_up_days * DAY_US as f64) as i64);
    let (mut calls, mut messages) = (0, 0);
    for subject in &trace.subjects {
        let mut user = HashUser::new(&subject.posts, page, weight, longest_span_days);
        let first_day = trace.start.micros().div_euclid(DAY_US);
        let last_day = trace.end.micros().div_euclid(DAY_US);
        for day in first_day..=last_day {
            for (at, brought) in user.day(day) {
                if at >= measured_from && at <= trace.end {
                    calls += 1;
                    messages += brought as u64;
                }
            }
        }
    }
    let days = days_between(measured_from, trace.end).max(f64::MIN_POSITIVE);
    UnbudgetedHash {
        weight,
        calls,
        messages,
        visits_per_day: calls as f64 / days / trace.subjects.len() as f64,
    }
}

const SLOTS: usize = 24;

/// One user under Algorithm 2.
struct HashUser<'a> {
    posts: &'a [WorldTime],
    page: usize,
    weight: f64,
    longest_slots: i64,
    slots: [f64; SLOTS],
    plan: crate::policy::hash::DayPlan,
    /// Posts behind the last visit.
    seen: usize,
    /// Collected posts by day, for the days that were not applied to the table yet.
    collected: std::collections::BTreeMap<i64, [f64; SLOTS]>,
    /// The first day that was not applied yet.
    next_day: Option<i64>,
    is_new: bool,
}

impl<'a> HashUser<'a> {
    fn new(posts: &'a [WorldTime], page: usize, weight: f64, longest_span_days: f64) -> Self {
        Self {
            posts,
            page,
            weight,
            longest_slots: (longest_span_days * SLOTS as f64) as i64,
            slots: [0.0; SLOTS],
            plan: crate::policy::hash::DayPlan {
                last: 0,
                remaining: 0.0,
            },
            seen: 0,
            collected: std::collections::BTreeMap::new(),
            next_day: None,
            is_new: true,
        }
    }

    /// Plans and makes the visits of one day: when, and how many posts each brought.
    fn day(&mut self, day: i64) -> Vec<(WorldTime, usize)> {
        let slot_us = DAY_US / SLOTS as i64;
        let mut slots = self
            .plan
            .plan(&self.slots, self.page as f64, self.longest_slots);
        if self.is_new {
            // A new user is due at once.
            slots = vec![1];
            self.plan.last = 1 - SLOTS as i64;
            self.plan.remaining = 0.0;
            self.is_new = false;
        }
        let mut visits = Vec::new();
        for slot in slots {
            let at = WorldTime((day * SLOTS as i64 + slot as i64).saturating_mul(slot_us));
            visits.push((at, self.visit(at)));
        }
        if !visits.is_empty() {
            self.learn(day);
        }
        visits
    }

    fn visit(&mut self, at: WorldTime) -> usize {
        let until = self
            .posts
            .partition_point(|post| *post <= at)
            .max(self.seen);
        let first = until.saturating_sub(self.page).max(self.seen);
        for post in &self.posts[first..until] {
            let day = post.micros().div_euclid(DAY_US);
            let slot = post.micros().rem_euclid(DAY_US) / (DAY_US / SLOTS as i64);
            let counts = self.collected.entry(day).or_insert([0.0; SLOTS]);
            counts[slot as usize] += 1.0;
        }
        self.seen = until;
        until - first
    }

    /// Applies the days that visits have revealed, in order; observed empty days count 0.
    fn learn(&mut self, today: i64) {
        let first = match (self.next_day, self.collected.keys().next()) {
            (Some(next), _) => next,
            (None, Some(first)) => *first,
            (None, None) => today,
        };
        for day in first..=today {
            let counts = self.collected.remove(&day).unwrap_or([0.0; SLOTS]);
            crate::policy::hash::update(&mut self.slots, &counts, self.weight);
        }
        self.next_day = Some(today + 1);
        self.collected.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(posts: &[(&str, i64)]) -> Trace {
        let hour_us = DAY_US / 24;
        let posts = posts.iter();
        Trace::of(posts.map(|(user, hour)| ((*user).to_owned(), WorldTime(hour * hour_us))))
            .unwrap()
    }

    #[test]
    fn slow_users_first_bring_more_than_a_random_order() {
        // The fast one posts every hour; whoever is visited last has the most to give.
        let fast = (0..24 * 40).map(|hour| ("fast", hour));
        let slow = (0..40).map(|day| ("slow", day * 24 + 3));
        let posts: Vec<(&str, i64)> = fast.chain(slow).collect();
        let result = one_visit(&trace(&posts), 10.0, 1_000, 1).unwrap();
        assert_eq!((result.windows, result.visits), (2, 4));
        assert_eq!(result.slow_first, 2 * 120);
        assert!(result.round_robin <= result.slow_first);
        assert!(one_visit(&trace(&posts), 30.0, 100, 1).is_err());
        assert!(one_visit(&trace(&posts), f64::NAN, 100, 1).is_err());
    }

    #[test]
    fn a_post_after_the_predicted_time_is_a_misprediction() {
        // Two posts 10 h apart predict the third 5 h after the second (n = 2): 20 h is late; three
        // within 20 h predict 20/3 h more: 26 h is in time.
        let trace = trace(&[("a", 0), ("a", 10), ("a", 20), ("a", 26)]);
        let counted = mispredictions(&trace, &[WorldTime(0)]);
        assert_eq!(counted.len(), 1);
        let month = counted[0];
        assert_eq!(
            (month.posts, month.predicted, month.mispredicted),
            (4, 2, 1)
        );
    }

    #[test]
    fn the_hash_model_visits_when_a_page_is_expected() {
        // Five posts in hour 3 of every day, pages of ten, w = 1: every third day is more than ten.
        let posts: Vec<(&str, i64)> = (0..60)
            .flat_map(|day| std::iter::repeat_n(("a", day * 24 + 3), 5))
            .collect();
        let result = unbudgeted_hash(&trace(&posts), 10, 1.0, 30.0, 0.0);
        assert!(result.calls > 0 && result.messages <= 300);
        assert!(result.visits_per_day < 0.5, "{result:?}");
    }
}
