//! What the things in an answer are charged at, and which of them were charged before.

use crate::budget::window_at;
use crate::network::Network;
use crate::read::Reading;
use kittiwake_model::{Cost, Key, LimitTime, Name, Window, WindowKind};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Things that are remembered of one day; they take some 40 MB. What comes after them is charged each time.
const REMEMBERED_MAX: usize = 2_000_000;

/// How a budget charges things.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tariff {
    /// By what they are; all cost what the query says if there are none.
    pub(crate) prices: Option<BTreeMap<Name, u64>>,
    /// The time zone in whose days a thing is charged once.
    pub(crate) free_again: Option<Name>,
}

impl Tariff {
    pub(crate) fn price_of(&self, name: &str) -> Option<u64> {
        self.prices.as_ref()?.get(name).copied()
    }

    const fn is_plain(&self) -> bool {
        self.prices.is_none() && self.free_again.is_none()
    }
}

/// What one thing in an answer is charged at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Which thing it is; nothing for one whose id the answer does not tell.
    pub digest: Option<u64>,
    pub units: u64,
}

/// What one budget charges for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    pub budget: Name,
    /// Units for the call itself.
    pub call: u64,
    /// In the order in which the definition reads them.
    pub items: Vec<Item>,
    /// The time zone in whose days a thing is charged once.
    pub free_again: Option<Name>,
}

/// What was charged to one budget today.
#[derive(Debug)]
pub struct Charged {
    day: Option<Window>,
    digests: HashSet<u64>,
    remembered_max: usize,
}

impl Default for Charged {
    fn default() -> Self {
        Self {
            day: None,
            digests: HashSet::new(),
            remembered_max: REMEMBERED_MAX,
        }
    }
}

impl Charged {
    /// What a bill comes to. The server has counted the call between these two times by its clock: if they are not
    /// of one day, nobody knows of which it was, and nothing is free.
    pub fn charge(&mut self, bill: &Bill, earliest: LimitTime, latest: LimitTime) -> u64 {
        let items = bill.items.iter();
        let day = bill
            .free_again
            .as_ref()
            .and_then(|zone| one_day(zone, earliest, latest));
        let Some(day) = day else {
            let all = items.map(|item| item.units);
            return all.fold(bill.call, u64::saturating_add);
        };
        if self.day != Some(day) {
            self.day = Some(day);
            self.digests = HashSet::new();
        }
        let charged = items.filter(|item| self.is_new(item));
        let units: Vec<u64> = charged.map(|item| item.units).collect();
        units.into_iter().fold(bill.call, u64::saturating_add)
    }

    /// Notes that something is charged; whether it was not before.
    fn is_new(&mut self, item: &Item) -> bool {
        let Some(digest) = item.digest.filter(|_| item.units > 0) else {
            return true;
        };
        if self.digests.contains(&digest) {
            return false;
        }
        if self.digests.len() < self.remembered_max {
            self.digests.insert(digest);
        }
        true
    }
}

/// The day that both times lie in.
fn one_day(zone: &Name, earliest: LimitTime, latest: LimitTime) -> Option<Window> {
    let kind = WindowKind::Day { zone: zone.clone() };
    window_at(&kind, earliest).filter(|day| day.contains(latest))
}

impl Network {
    /// Whether any budget charges things by what they are, or only once in a day.
    pub(crate) fn has_tariffs(&self) -> bool {
        self.tariffs.iter().any(|tariff| !tariff.is_plain())
    }

    /// What an answer is charged by those of the budgets that look at what came. All others charge for how much
    /// it was.
    pub fn bills(&self, costs: &[Cost], reading: &Reading) -> Vec<Bill> {
        let bill = |cost: &Cost| {
            let place = self.budgets.iter().position(|it| it.name == cost.budget)?;
            let tariff = &self.tariffs[place];
            if tariff.is_plain() {
                return None;
            }
            let items = reading.charged.iter().map(|thing| {
                let units = match tariff.prices {
                    Some(_) => tariff.price_of(&thing.price).unwrap_or(0),
                    None => cost.item,
                };
                let object = reading.objects.get(thing.object as usize);
                let id = object.and_then(|object| object.identity.canonical.as_deref());
                Item {
                    digest: id.map(|id| digest_of(&thing.price, id, thing.list)),
                    units,
                }
            });
            Some(Bill {
                budget: cost.budget.clone(),
                call: cost.call,
                items: items.collect(),
                free_again: tariff.free_again.clone(),
            })
        };
        costs.iter().filter_map(bill).collect()
    }
}

/// What a query found that somebody may charge for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// The place of the object.
    pub object: u32,
    /// The name of its price.
    pub price: Name,
    /// Whose list it stands in, where it is the relation that is charged for.
    pub list: Option<Key>,
}

fn digest_of(price: &str, id: &str, list: Option<Key>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (price, id, list.map(|key| key.0)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 3_600_000_000;

    fn bill(ids: &[&str]) -> Bill {
        let items = ids.iter().map(|id| Item {
            digest: (!id.is_empty()).then(|| digest_of("post", id, None)),
            units: 5,
        });
        Bill {
            budget: "spend".into(),
            call: 1,
            items: items.collect(),
            free_again: Some("UTC".into()),
        }
    }

    fn at(hours: i64) -> LimitTime {
        LimitTime(hours * HOUR_US)
    }

    #[test]
    fn what_was_charged_is_free_until_the_day_ends() {
        let mut charged = Charged::default();
        assert_eq!(charged.charge(&bill(&["a", "b", "a"]), at(1), at(1)), 11);
        assert_eq!(charged.charge(&bill(&["b", "c"]), at(23), at(23)), 6);
        assert_eq!(charged.charge(&bill(&["a", "b", "c"]), at(24), at(24)), 16);
    }

    #[test]
    fn nothing_is_free_where_it_is_not_known_which_day_it_was() {
        let mut charged = Charged::default();
        assert_eq!(charged.charge(&bill(&["a"]), at(23), at(23)), 6);
        assert_eq!(charged.charge(&bill(&["a", "a"]), at(23), at(24)), 11);
        // Nor is what came then known to be paid for the new day.
        assert_eq!(charged.charge(&bill(&["a"]), at(24), at(24)), 6);
    }

    #[test]
    fn what_has_no_id_and_what_is_not_remembered_is_charged_again() {
        let mut charged = Charged {
            remembered_max: 1,
            ..Charged::default()
        };
        assert_eq!(charged.charge(&bill(&["", "a", "b"]), at(1), at(1)), 16);
        assert_eq!(charged.charge(&bill(&["", "a", "b"]), at(1), at(1)), 11);
    }

    #[test]
    fn without_the_rule_everything_is_charged_each_time() {
        let mut charged = Charged::default();
        let always = Bill {
            free_again: None,
            ..bill(&["a", "a"])
        };
        assert_eq!(charged.charge(&always, at(1), at(1)), 11);
        assert_eq!(charged.charge(&always, at(1), at(1)), 11);
    }

    #[test]
    fn days_end_at_midnight_in_the_zone_of_the_network() {
        let mut charged = Charged::default();
        let there = |ids| Bill {
            free_again: Some("America/Los_Angeles".into()),
            ..bill(ids)
        };
        assert_eq!(charged.charge(&there(&["a"]), at(7), at(7)), 6);
        assert_eq!(charged.charge(&there(&["a"]), at(9), at(9)), 6);
        assert_eq!(charged.charge(&there(&["a"]), at(31), at(31)), 1);
    }
}
