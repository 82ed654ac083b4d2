//! Limits that a file declares. A call is charged to every bucket that covers it, or, if one of them
//! is full, to none.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use kittiwake_model::clock::LimitTime;

use super::announce::{Allowance, Note, StatusAnswer};
use super::counter::{Counter, Tally};
use super::finished::{Finished, FinishedWindow};
use super::rule::{DeclaredLimits, Kind, Rule};
use super::{Announced, Call, Caller, OPEN_WINDOWS_MAX, Refusal, Verdict};

/// Calls that sliding windows keep one by one, of all callers together.
const LOGGED_MAX: usize = 4_000_000;

/// Where a bucket counts a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CounterKey {
    /// The place of the rule in the file.
    pub(super) rule: usize,
    pub(super) scope: String,
    pub(super) query: Option<&'static str>,
}

/// What counts until an answer has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held(Vec<CounterKey>);

#[derive(Debug)]
pub(crate) struct DeclaredLimiter {
    rules: Arc<[Rule]>,
    /// All queries there are.
    queries: &'static [&'static str],
    counters_max: usize,
    logged_max: usize,
    counters: HashMap<CounterKey, Counter>,
    /// Calls that the counters keep one by one.
    logged: usize,
    finished: Finished<FinishedWindow>,
    latest_us: i64,
}

impl DeclaredLimiter {
    pub(super) fn new(limits: &DeclaredLimits) -> Self {
        Self::with_caps(limits, OPEN_WINDOWS_MAX, LOGGED_MAX)
    }

    pub(super) fn with_caps(
        limits: &DeclaredLimits,
        counters_max: usize,
        logged_max: usize,
    ) -> Self {
        Self {
            rules: Arc::clone(limits.rules()),
            queries: limits.queries(),
            counters_max,
            logged_max,
            counters: HashMap::new(),
            logged: 0,
            finished: Finished::default(),
            latest_us: i64::MIN,
        }
    }

    pub(super) fn admit(&mut self, call: Call<'_>, now: LimitTime) -> Verdict {
        let now_us = self.forward(now);
        let keys = self.keys(call);
        if let Some(key) = self.open(&keys, now_us) {
            return Verdict {
                refusal: Some(self.refusal(key)),
                ..Verdict::free()
            };
        }
        let full = keys.iter().find(|key| !self.has_room(key, call.query));
        match full {
            Some(key) => self.update(key, Counter::refuse),
            None => self.charge_all(&keys, call.query, now_us),
        }
        let mut notes: Vec<Note> = keys.iter().map(|key| self.note(key, now_us)).collect();
        if let Some(key) = full {
            for note in notes.iter_mut().filter(|note| note.key == *key) {
                note.has_refused = true;
                note.refused_until_us = self.free_us(key, call.query, now_us);
            }
        }
        let is_passed = full.is_none();
        let rule_of = |key: &CounterKey| &self.rules[key.rule];
        let held = keys
            .iter()
            .filter(|key| is_passed && matches!(rule_of(key).kind, Kind::Concurrency));
        let held: Vec<CounterKey> = held.cloned().collect();
        Verdict {
            refusal: full.map(|key| self.refusal(key)),
            charges_items: is_passed && keys.iter().any(|key| rule_of(key).item_cost > 0),
            announced: Announced::Declared(notes),
            held: (!held.is_empty()).then_some(Held(held)),
        }
    }

    /// Charges what the items of an answer cost, even where that is more than there is.
    pub(super) fn charge_items(&mut self, notes: &mut [Note], items: u64, now: LimitTime) {
        let now_us = self.forward(now);
        for note in notes {
            let amount = note.rule().item_cost.saturating_mul(items);
            // If too many callers are about, this one has been forgotten, with all it had used.
            let key = std::slice::from_ref(&note.key);
            if amount == 0 || self.open(key, now_us).is_some() {
                continue;
            }
            let kind = &note.rules[note.key.rule].kind;
            self.update(&note.key, |counter| counter.charge(kind, now_us, amount));
            note.used = note.used.saturating_add(amount);
        }
    }

    pub(super) fn release(&mut self, held: &Held, now: LimitTime) {
        let now_us = self.forward(now);
        for key in &held.0 {
            self.update(key, |counter| counter.leave(now_us));
        }
    }

    /// How a caller stands in every bucket that can cover it. Charges nothing.
    pub(super) fn status(&mut self, caller: &Caller, now: LimitTime) -> StatusAnswer {
        StatusAnswer::new(self.notes(caller, now).into_iter())
    }

    pub(super) fn allowances(&mut self, caller: &Caller, now: LimitTime) -> Vec<Allowance> {
        let notes = self.notes(caller, now).into_iter();
        notes.map(Allowance::from).collect()
    }

    fn notes(&mut self, caller: &Caller, now: LimitTime) -> Vec<Note> {
        let now_us = self.forward(now);
        let mut keys = Vec::new();
        for (place, rule) in self.rules.iter().enumerate() {
            let Some(scope) = rule.scope_of(caller) else {
                continue;
            };
            let queries: &[&'static str] = if rule.queries.is_empty() {
                self.queries
            } else {
                &rule.queries
            };
            let queries: Vec<Option<&'static str>> = if rule.is_each_query {
                queries.iter().copied().map(Some).collect()
            } else {
                vec![None]
            };
            keys.extend(queries.into_iter().map(|query| CounterKey {
                rule: place,
                scope: scope.to_owned(),
                query,
            }));
        }
        for key in &keys {
            self.roll(key, now_us);
        }
        keys.iter().map(|key| self.note(key, now_us)).collect()
    }

    pub(super) fn windows(&self) -> (Vec<Cow<'_, FinishedWindow>>, u64) {
        let open = self
            .counters
            .iter()
            .filter_map(|(key, counter)| Some(self.window(key, counter.tally()?)));
        let mut windows: Vec<Cow<'_, FinishedWindow>> = self
            .finished
            .kept()
            .map(Cow::Borrowed)
            .chain(open.map(Cow::Owned))
            .collect();
        windows.sort_unstable_by(|left, right| {
            let start = |window: &FinishedWindow| window.tally.start_us;
            start(left).cmp(&start(right)).then_with(|| left.cmp(right))
        });
        (windows, self.finished.dropped())
    }

    /// A clock that was set back neither opens older windows nor lets anybody in again.
    fn forward(&mut self, now: LimitTime) -> i64 {
        self.latest_us = self.latest_us.max(now.micros());
        self.latest_us
    }

    /// The counters of all buckets that cover a call, in the order of the file.
    fn keys(&self, call: Call<'_>) -> Vec<CounterKey> {
        let covering = self.rules.iter().enumerate().filter_map(|(place, rule)| {
            let scope = rule.covers(call)?;
            Some(CounterKey {
                rule: place,
                scope: scope.to_owned(),
                query: rule.is_each_query.then_some(call.query),
            })
        });
        covering.collect()
    }

    /// Makes sure that counters are there and up to date. If too many callers are about, nothing is
    /// made, and it gives the counter for which there is no place.
    fn open<'k>(&mut self, keys: &'k [CounterKey], now_us: i64) -> Option<&'k CounterKey> {
        if self.crowded(keys).is_some() {
            self.sweep(now_us);
        }
        if let Some(key) = self.crowded(keys) {
            return Some(key);
        }
        for key in keys {
            if !self.counters.contains_key(key) {
                let counter = Counter::new(&self.rules[key.rule].kind, now_us);
                self.counters.insert(key.clone(), counter);
            }
            self.roll(key, now_us);
        }
        None
    }

    /// Brings a counter up to date if it is there.
    fn roll(&mut self, key: &CounterKey, now_us: i64) {
        let rules = Arc::clone(&self.rules);
        let kind = &rules[key.rule].kind;
        let mut over = None;
        self.update(key, |counter| over = counter.roll(kind, now_us));
        self.keep(key, over);
    }

    /// The first of some counters for which there is no place.
    fn crowded<'k>(&self, keys: &'k [CounterKey]) -> Option<&'k CounterKey> {
        let mut places = self.counters_max.saturating_sub(self.counters.len());
        keys.iter().find(|key| {
            let is_logging = matches!(self.rules[key.rule].kind, Kind::Sliding { .. });
            if is_logging && self.logged >= self.logged_max {
                return true;
            }
            if self.counters.contains_key(key) {
                return false;
            }
            let is_full = places == 0;
            places = places.saturating_sub(1);
            is_full
        })
    }

    /// Forgets all counters of which nothing matters any more.
    fn sweep(&mut self, now_us: i64) {
        let keys: Vec<CounterKey> = self.counters.keys().cloned().collect();
        let rules = Arc::clone(&self.rules);
        for key in keys {
            let kind = &rules[key.rule].kind;
            let (mut over, mut is_over) = (None, false);
            self.update(&key, |counter| {
                // Looked at before the next window is begun.
                is_over = matches!(counter, Counter::Windowed(_)) && counter.is_over(now_us);
                over = counter.roll(kind, now_us);
                is_over |= !matches!(counter, Counter::Windowed(_)) && counter.is_over(now_us);
            });
            self.keep(&key, over);
            if is_over && let Some(counter) = self.counters.remove(&key) {
                self.keep(&key, counter.tally());
            }
        }
    }

    fn keep(&mut self, key: &CounterKey, over: Option<Tally>) {
        if let Some(tally) = over {
            let window = self.window(key, tally);
            self.finished.keep(window);
        }
    }

    fn window(&self, key: &CounterKey, tally: Tally) -> FinishedWindow {
        let rule = &self.rules[key.rule];
        FinishedWindow {
            bucket: rule.name.clone().into(),
            scope: key.scope.clone(),
            query: key.query,
            limit: rule.limit,
            tally,
        }
    }

    /// Changes a counter that is there.
    fn update(&mut self, key: &CounterKey, change: impl FnOnce(&mut Counter)) {
        if let Some(counter) = self.counters.get_mut(key) {
            let logged_before = counter.logged();
            change(counter);
            self.logged = self.logged + counter.logged() - logged_before;
        }
    }

    fn has_room(&self, key: &CounterKey, query: &str) -> bool {
        let rule = &self.rules[key.rule];
        let used = self.counters.get(key).map_or(0, Counter::used);
        rule.has_room(used, rule.cost_of(query))
    }

    fn charge_all(&mut self, keys: &[CounterKey], query: &str, now_us: i64) {
        let rules = Arc::clone(&self.rules);
        for key in keys {
            let rule = &rules[key.rule];
            self.update(key, |counter| {
                counter.charge(&rule.kind, now_us, rule.cost_of(query));
            });
        }
    }

    /// When a call that was refused could pass.
    fn free_us(&self, key: &CounterKey, query: &str, now_us: i64) -> Option<i64> {
        let rule = &self.rules[key.rule];
        let counter = self.counters.get(key)?;
        // Where items cost, a call needs something left even if it is free itself.
        let cost = rule.cost_of(query).max(u64::from(rule.item_cost > 0));
        let needed = (counter.used().saturating_add(cost)).saturating_sub(rule.limit);
        counter.free_us(now_us, needed)
    }

    /// How a counter that is up to date stands.
    fn note(&self, key: &CounterKey, now_us: i64) -> Note {
        let fresh;
        let counter = if let Some(counter) = self.counters.get(key) {
            counter
        } else {
            fresh = Counter::new(&self.rules[key.rule].kind, now_us);
            &fresh
        };
        Note {
            key: key.clone(),
            rules: Arc::clone(&self.rules),
            used: counter.used(),
            now_us,
            reset_us: counter.free_us(now_us, 1),
            refused_until_us: None,
            has_refused: false,
        }
    }

    fn refusal(&self, key: &CounterKey) -> Refusal {
        let rule = &self.rules[key.rule];
        Refusal {
            bucket: rule.name.clone().into(),
            status: rule.refusal.status,
            body: rule.refusal.body.clone(),
        }
    }
}
