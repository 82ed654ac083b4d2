//! What answers cost in money: every thing in them once in a day of UTC for each application, and nothing
//! for what is refused.

use std::collections::{BTreeMap, HashSet};

use kittiwake_model::clock::LimitTime;
use serde::Serialize;

const DAY_US: i64 = 86_400_000_000;
/// Things of one day that are told apart; what comes after them is billed each time.
const THINGS_MAX: usize = 1_000_000;

/// Something in an answer that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) kind: &'static str,
    /// Nothing for what is billed whenever it is asked for.
    pub(crate) id: Option<u64>,
    /// In millionths.
    pub(crate) price: u64,
}

/// What was billed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Bill {
    /// In millionths.
    total: u64,
    /// How many things of each kind were billed.
    things: BTreeMap<&'static str, u64>,
    /// What was free, since it had been billed that day.
    free: u64,
    /// The days of UTC on which something was billed, since 1970.
    days: Vec<i64>,
    #[serde(skip)]
    today: HashSet<(String, &'static str, u64)>,
}

impl Bill {
    pub(crate) fn enter(&mut self, payer: &str, things: &[Thing], now: LimitTime) {
        if things.is_empty() {
            return;
        }
        let day = now.micros().div_euclid(DAY_US);
        if self.days.last().is_none_or(|last| *last < day) {
            self.days.push(day);
            self.today.clear();
        }
        for thing in things {
            if self.is_free(payer, thing) {
                self.free += 1;
                continue;
            }
            self.total += thing.price;
            *self.things.entry(thing.kind).or_default() += 1;
        }
    }

    fn is_free(&mut self, payer: &str, thing: &Thing) -> bool {
        let Some(id) = thing.id else {
            return false;
        };
        let key = (payer.to_owned(), thing.kind, id);
        if self.today.contains(&key) {
            return true;
        }
        if self.today.len() < THINGS_MAX {
            self.today.insert(key);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(kind: &'static str, id: Option<u64>) -> Thing {
        Thing {
            kind,
            id,
            price: 10,
        }
    }

    #[test]
    fn a_thing_is_billed_once_a_day_to_each_application() {
        let mut bill = Bill::default();
        let things = [
            thing("post", Some(1)),
            thing("user", Some(1)),
            thing("post", Some(1)),
        ];
        bill.enter("app", &things, LimitTime(5));
        assert_eq!((bill.total, bill.free), (20, 1));
        bill.enter("app", &things, LimitTime(DAY_US - 1));
        assert_eq!((bill.total, bill.free), (20, 4));
        bill.enter("other", &things, LimitTime(DAY_US - 1));
        assert_eq!(bill.total, 40);
        bill.enter("app", &things, LimitTime(DAY_US));
        assert_eq!((bill.total, bill.days.len()), (60, 2));
    }

    #[test]
    fn what_has_no_id_is_billed_each_time() {
        let mut bill = Bill::default();
        bill.enter("app", &[thing("counts", None)], LimitTime(5));
        bill.enter("app", &[thing("counts", None)], LimitTime(6));
        assert_eq!(bill.total, 20);
    }
}
