//! Merging observations: commutative, associative and idempotent.
//!
//! A group of fields is a set of registers, each of which keeps the value of its newest
//! observation. Observations are ordered by the start of the request that made them, then by the
//! number of its log row; where even those agree (one answer that says a thing twice), the greater
//! value wins, so that no order of arrival can change the result. What loses is handed back, so
//! that a store can keep it readable.

use crate::{Name, Value};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// When something was observed: the start of the request (world time), then the log row's number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Stamp {
    pub at_us: i64,
    pub log: i64,
}

/// All that is known of one group of one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupState {
    /// The newest observation of any field.
    pub newest: Stamp,
    pub fields: BTreeMap<Name, Value>,
    /// Fields that the newest observation did not hold, with the stamp of the one that did.
    pub older: BTreeMap<Name, Stamp>,
}

impl Stamp {
    /// Before all that was ever observed, and in order among themselves. The real time can be read back.
    const HEARSAY_US: i64 = 1 << 52;

    /// The stamp of what somebody else than its own host has told of an object.
    #[must_use]
    pub const fn as_hearsay(self) -> Self {
        Self {
            at_us: self.at_us.saturating_sub(Self::HEARSAY_US),
            log: self.log,
        }
    }

    /// Whether it is a stamp of hearsay, or of what a list told.
    pub const fn is_hearsay(self) -> bool {
        self.at_us < -(Self::HEARSAY_US / 8)
    }

    /// The stamp of what a list has told of objects that it only names: before hearsay, too.
    #[must_use]
    pub const fn as_named(self) -> Self {
        self.as_hearsay().as_hearsay()
    }

    pub const fn is_named(self) -> bool {
        self.at_us < -(Self::HEARSAY_US + Self::HEARSAY_US / 8)
    }

    /// When it was observed, whoever told it.
    pub const fn real_us(self) -> i64 {
        if self.is_named() {
            self.at_us.saturating_add(2 * Self::HEARSAY_US)
        } else if self.is_hearsay() {
            self.at_us.saturating_add(Self::HEARSAY_US)
        } else {
            self.at_us
        }
    }
}

/// A value that another observation of the same field overruled.
#[derive(Debug, Clone, PartialEq)]
pub struct Overruled {
    pub field: Name,
    pub value: Value,
    pub stamp: Stamp,
}

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// Whether a value, a stamp or the set of fields differs from before.
    pub changed: bool,
    /// Whether a value differs from before: what a person would call a change.
    pub values_changed: bool,
    pub overruled: Vec<Overruled>,
}

impl GroupState {
    /// One observation as a state.
    pub fn observed(fields: impl IntoIterator<Item = (Name, Value)>, stamp: Stamp) -> Self {
        Self {
            newest: stamp,
            fields: fields.into_iter().collect(),
            older: BTreeMap::new(),
        }
    }

    fn stamp_of(&self, field: &str) -> Stamp {
        self.older.get(field).copied().unwrap_or(self.newest)
    }

    /// Takes in everything that `other` knows.
    pub fn merge(&mut self, other: Self) -> Merged {
        // The common case by far: the same fields again, seen later, with the same values.
        if self.older.is_empty() && other.older.is_empty() && self.fields == other.fields {
            let changed = other.newest > self.newest;
            self.newest = self.newest.max(other.newest);
            return Merged {
                changed,
                ..Merged::default()
            };
        }
        let before_newest = self.newest;
        let before_older = std::mem::take(&mut self.older);
        let mut stamps: BTreeMap<Name, Stamp> = self
            .fields
            .keys()
            .map(|field| {
                let stamp = before_older.get(field).copied().unwrap_or(before_newest);
                (field.clone(), stamp)
            })
            .collect();
        let mut merged = Merged::default();
        let other_stamps: Vec<Stamp> = other
            .fields
            .keys()
            .map(|field| other.stamp_of(field))
            .collect();
        for ((field, value), stamp) in other.fields.into_iter().zip(other_stamps) {
            self.merge_field(&mut stamps, &mut merged, field, value, stamp);
        }
        self.newest = before_newest.max(other.newest);
        let newest = self.newest;
        self.older = stamps
            .into_iter()
            .filter(|(_, stamp)| *stamp != newest)
            .collect();
        merged.changed =
            merged.values_changed || self.newest != before_newest || self.older != before_older;
        merged
    }

    fn merge_field(
        &mut self,
        stamps: &mut BTreeMap<Name, Stamp>,
        merged: &mut Merged,
        field: Name,
        value: Value,
        stamp: Stamp,
    ) {
        let Some(current) = self.fields.get_mut(&field) else {
            stamps.insert(field.clone(), stamp);
            self.fields.insert(field, value);
            merged.values_changed = true;
            return;
        };
        let known = stamps.get(&field).copied().unwrap_or(self.newest);
        if *current == value {
            stamps.insert(field, known.max(stamp));
            return;
        }
        let wins = match stamp.cmp(&known) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => order_of(&value, current) == Ordering::Greater,
        };
        if wins {
            let value = std::mem::replace(current, value);
            merged.overruled.push(Overruled {
                field: field.clone(),
                value,
                stamp: known,
            });
            merged.values_changed = true;
            stamps.insert(field, stamp);
        } else {
            merged.overruled.push(Overruled {
                field,
                value,
                stamp,
            });
        }
    }
}

/// Any total order will do for ties; the one of the debug text is total and needs no code.
fn order_of(left: &Value, right: &Value) -> Ordering {
    format!("{left:?}").cmp(&format!("{right:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn observation() -> impl Strategy<Value = GroupState> {
        let field = prop_oneof![Just("a"), Just("b"), Just("c")];
        let value = prop_oneof![
            Just(Value::Null),
            (0_i64..3).prop_map(Value::Int),
            Just(Value::Text("x".into())),
            Just(Value::Float(0.5)),
        ];
        let fields = prop::collection::btree_map(field.prop_map(Name::from), value, 0..4);
        (fields, 0_i64..4, 0_i64..3)
            .prop_map(|(fields, at_us, log)| GroupState::observed(fields, Stamp { at_us, log }))
    }

    fn fold(observations: &[GroupState]) -> (GroupState, BTreeSet<String>) {
        let mut state = GroupState {
            newest: Stamp {
                at_us: i64::MIN,
                log: 0,
            },
            ..Default::default()
        };
        let mut readable = BTreeSet::new();
        for observation in observations {
            for overruled in state.merge(observation.clone()).overruled {
                readable.insert(format!("{}={:?}", overruled.field, overruled.value));
            }
        }
        for (field, value) in &state.fields {
            readable.insert(format!("{field}={value:?}"));
        }
        (state, readable)
    }

    proptest! {
        #[test]
        fn any_order_of_observations_gives_one_state(
            observations in prop::collection::vec(observation(), 0..8),
            order in prop::collection::vec(any::<prop::sample::Index>(), 8),
        ) {
            let mut shuffled = observations.clone();
            for (place, index) in order.iter().enumerate().take(shuffled.len()) {
                let other = index.index(shuffled.len());
                shuffled.swap(place, other);
            }
            let (expected, expected_readable) = fold(&observations);
            let (state, readable) = fold(&shuffled);
            prop_assert_eq!(&state, &expected);
            // No distinct value is lost to the order either.
            prop_assert_eq!(readable, expected_readable);
        }

        #[test]
        fn merging_again_changes_nothing(
            observations in prop::collection::vec(observation(), 1..6),
        ) {
            let (state, _) = fold(&observations);
            let mut again = state.clone();
            for observation in &observations {
                let merged = again.merge(observation.clone());
                prop_assert!(!merged.changed);
            }
            prop_assert_eq!(again, state);
        }

        #[test]
        fn grouping_does_not_matter(
            left in prop::collection::vec(observation(), 1..4),
            right in prop::collection::vec(observation(), 1..4),
        ) {
            let (mut whole, _) = fold(&left);
            let (part, _) = fold(&right);
            whole.merge(part);
            let all: Vec<_> = left.iter().chain(&right).cloned().collect();
            prop_assert_eq!(whole, fold(&all).0);
        }
    }

    #[test]
    fn lists_come_before_hearsay_and_hearsay_before_all_else() {
        for at_us in [0, 1, 1_800_000_000_000_000, 3_000_000_000_000_000] {
            let own = Stamp { at_us, log: 7 };
            let (hearsay, named) = (own.as_hearsay(), own.as_named());
            assert_eq!((own.is_hearsay(), own.is_named()), (false, false));
            assert_eq!((hearsay.is_hearsay(), hearsay.is_named()), (true, false));
            assert_eq!((named.is_hearsay(), named.is_named()), (true, true));
            for stamp in [own, hearsay, named] {
                assert_eq!(stamp.real_us(), at_us);
            }
            let earliest = Stamp::default();
            assert!(named < earliest.as_hearsay() && hearsay < earliest);
        }
    }

    #[test]
    fn a_missing_field_is_not_observed_and_a_null_is_observed_empty() {
        let stamp = |at_us| Stamp { at_us, log: 0 };
        let mut state = GroupState::observed(
            [
                ("bio".into(), Value::Text("hi".into())),
                ("place".into(), Value::Text("sea".into())),
            ],
            stamp(1),
        );
        let merged = state.merge(GroupState::observed(
            [("bio".into(), Value::Null)],
            stamp(2),
        ));
        assert_eq!(state.fields["bio"], Value::Null);
        assert_eq!(state.fields["place"], Value::Text("sea".into()));
        assert_eq!(state.older["place"], stamp(1));
        assert_eq!(merged.overruled.len(), 1);
        // A later arrival of an observation in between still counts for what it alone saw.
        let late = GroupState::observed(
            [("place".into(), Value::Text("cliff".into()))],
            Stamp { at_us: 1, log: 9 },
        );
        assert!(state.merge(late).values_changed);
        assert_eq!(state.fields["place"], Value::Text("cliff".into()));
    }
}
