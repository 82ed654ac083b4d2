//! Finding what has certain words, the newest first, within a bound.
//!
//! An index gives the keys that have one word, below a key, as many as are wanted. Several words are walked
//! along together: whoever is behind goes on to where the others are, so that the rarest decides how many
//! steps there are. What was walked is counted, and when it is enough the walk says how far it has come:
//! two words that everybody uses and nobody uses together would be looked for in all that there is.

use super::indexing::that_meet;
use crate::StoreError;
use crate::cell::cells;
use crate::database::Database;
use crate::index::{Asks, Words, WordsDialect};
use crate::words::{Plan, Query, Word};
use std::cell::Cell as Shared;
use std::collections::BTreeSet;

/// What one walk may cost, in keys that the index gives.
const WORK_MAX: usize = 30_000;
/// What it costs to ask the index, as if it were so many keys.
const ASKING_WORK: usize = 300;
/// Texts that one walk reads.
const TEXTS_MAX: usize = 400;
/// Texts that are read at once, at the least and the most.
const TEXTS_AT_ONCE: (usize, usize) = (16, 64);
/// Keys that the index is asked for at once, at the least and the most.
const KEYS_AT_ONCE: (usize, usize) = (32, 1_024);

/// Where words are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub crawl: &'p dyn Database,
    pub index: &'p dyn Database,
    pub dialect: &'p WordsDialect,
    pub list: Words,
}

/// What a walk has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walked {
    /// In falling order.
    pub keys: Vec<i64>,
    /// All keys from here on were looked at; `None` if simply all were.
    pub down_to: Option<i64>,
}

/// What is asked for, below a key, so many at the most.
pub(crate) fn walk(
    place: Place<'_>,
    query: &Query,
    before: i64,
    limit: usize,
) -> Result<Walked, StoreError> {
    if query.all.is_empty() || limit == 0 {
        return Ok(Walked {
            keys: Vec::new(),
            down_to: None,
        });
    }
    match place.dialect.asks {
        Asks::Question(form) => {
            let keys = place.ask(&form(query), before, limit)?;
            let down_to = keys.last().copied().filter(|_| keys.len() == limit);
            Ok(Walked { keys, down_to })
        }
        Asks::Word(form) => Walk::new(place, query, form).run(before, limit),
    }
}

impl Place<'_> {
    fn ask(&self, question: &str, before: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = (self.dialect.find)(self.list);
        self.index
            .all(sql, cells![question, before, limit], |row| row.get(0))
    }
}

struct Walk<'w> {
    place: Place<'w>,
    query: &'w Query,
    needs_text: bool,
    all: Vec<Path>,
    none: Vec<Path>,
    /// What was spent.
    work: Shared<usize>,
    texts: usize,
}

impl<'w> Walk<'w> {
    fn new(place: Place<'w>, query: &'w Query, form: fn(&Word) -> String) -> Self {
        let plan = Plan::of(query);
        let paths = |words: &[Word]| words.iter().map(|word| Path::new(form(word))).collect();
        Self {
            place,
            query,
            needs_text: plan.needs_text,
            all: paths(&plan.all),
            none: paths(&plan.none),
            work: Shared::new(0),
            texts: 0,
        }
    }

    fn run(mut self, before: i64, limit: usize) -> Result<Walked, StoreError> {
        let mut keys = Vec::new();
        // Those whose texts have to be read.
        let mut doubtful = BTreeSet::new();
        // Keys below this one have yet to be looked at.
        let mut end = before;
        loop {
            let candidate = self.next_candidate(end)?;
            match candidate {
                Next::Found(key) if self.needs_text => doubtful.insert(key),
                Next::Found(key) => {
                    keys.push(key);
                    false
                }
                _ => false,
            };
            let wanted = (limit - keys.len()).clamp(TEXTS_AT_ONCE.0, TEXTS_AT_ONCE.1);
            let is_enough = doubtful.len() >= wanted || !matches!(candidate, Next::Found(_));
            if is_enough && !doubtful.is_empty() {
                self.texts += doubtful.len();
                let met = that_meet(self.place.crawl, self.place.list, &doubtful, self.query)?;
                keys.extend(met.iter().rev());
                doubtful.clear();
            }
            if keys.len() >= limit {
                keys.truncate(limit);
                let down_to = keys.last().copied();
                return Ok(Walked { keys, down_to });
            }
            end = match candidate {
                Next::Found(key) | Next::Not(key) => key,
                Next::Over => {
                    return Ok(Walked {
                        keys,
                        down_to: None,
                    });
                }
            };
            if doubtful.is_empty() && (self.work.get() > WORK_MAX || self.texts >= TEXTS_MAX) {
                return Ok(Walked {
                    keys,
                    down_to: Some(end),
                });
            }
        }
    }

    /// The next key below `end` that has all words, or how far there is none for what may be spent.
    fn next_candidate(&mut self, end: i64) -> Result<Next, StoreError> {
        let mut end = end;
        while self.work.get() <= WORK_MAX {
            let Some(key) = self.next_with_all(end)? else {
                return Ok(Next::Over);
            };
            match key {
                Met::Apart(above) => end = above,
                Met::Together(key) if self.is_excluded(key)? => end = key,
                Met::Together(key) => return Ok(Next::Found(key)),
            }
        }
        Ok(Next::Not(end))
    }

    /// One round along all words: either all have a key, or nobody has one between where they are and
    /// the key that is given.
    fn next_with_all(&mut self, end: i64) -> Result<Option<Met>, StoreError> {
        let (mut at, mut is_together) = (None, true);
        for path in &mut self.all {
            let below = at.map_or(end, |at: i64| at.saturating_add(1));
            let Some(key) = path.next(self.place, below, &self.work)? else {
                return Ok(None);
            };
            is_together &= at.is_none_or(|at| at == key);
            at = Some(key);
        }
        Ok(at.map(|at| {
            if is_together {
                Met::Together(at)
            } else {
                Met::Apart(at.saturating_add(1))
            }
        }))
    }

    fn is_excluded(&mut self, key: i64) -> Result<bool, StoreError> {
        for path in &mut self.none {
            let next = path.next(self.place, key.saturating_add(1), &self.work)?;
            if next == Some(key) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where several words have led.
enum Met {
    Together(i64),
    /// Nothing that has all of them comes before this key.
    Apart(i64),
}

/// Where a walk is next.
#[derive(Clone, Copy)]
enum Next {
    Found(i64),
    /// Nothing comes before this key, and no more may be spent.
    Not(i64),
    Over,
}

/// The keys that have one word, in falling order, as far as they were asked for.
struct Path {
    question: String,
    keys: Vec<i64>,
    /// How many of the keys lie behind.
    passed: usize,
    /// How often a key was taken from these.
    taken: usize,
    at_once: usize,
    /// Whether there are none below these.
    is_end: bool,
}

impl Path {
    const fn new(question: String) -> Self {
        Self {
            question,
            keys: Vec::new(),
            passed: 0,
            taken: 0,
            at_once: 2 * KEYS_AT_ONCE.0,
            is_end: false,
        }
    }

    /// The greatest key below another. Those are asked for in falling order.
    fn next(
        &mut self,
        place: Place<'_>,
        below: i64,
        work: &Shared<usize>,
    ) -> Result<Option<i64>, StoreError> {
        let ahead = self.keys.get(self.passed..).unwrap_or_default();
        self.passed += ahead.partition_point(|key| *key >= below);
        if self.passed >= self.keys.len() {
            if self.is_end {
                return Ok(None);
            }
            self.go_on(place, below, work)?;
        }
        self.taken += 1;
        Ok(self.keys.get(self.passed).copied())
    }

    fn go_on(
        &mut self,
        place: Place<'_>,
        below: i64,
        work: &Shared<usize>,
    ) -> Result<(), StoreError> {
        // Fewer at once where passing over them would cost more than asking again.
        if !self.keys.is_empty() {
            let is_followed = self.taken > (self.keys.len() / ASKING_WORK).max(1);
            let at_once = if is_followed {
                self.at_once * 2
            } else {
                self.at_once / 2
            };
            self.at_once = at_once.clamp(KEYS_AT_ONCE.0, KEYS_AT_ONCE.1);
        }
        self.keys = place.ask(&self.question, below, self.at_once)?;
        self.is_end = self.keys.len() < self.at_once;
        (self.passed, self.taken) = (0, 0);
        work.set(work.get() + self.keys.len() + ASKING_WORK);
        Ok(())
    }
}
