//! One pass over the bytes: from a tree of keys to slices.

use crate::json;
use crate::scan::Members;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The slices found for one object, by slot. `None`: the key was not there.
pub(crate) type Slots<'de> = Vec<Option<&'de str>>;

/// Some keys of an object: what is wanted of each.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Where the slice of this value goes.
    pub(crate) slot: Option<u32>,
    children: Vec<(Box<str>, Self)>,
    /// Places in `children`, by [`bucket_of`]. Keys are found with one comparison as a rule.
    buckets: Vec<Vec<u16>>,
}

const BUCKETS: usize = 128;

fn bucket_of(key: &[u8]) -> usize {
    let first = key.first().copied().unwrap_or_default();
    let last = key.last().copied().unwrap_or_default();
    let middle = key.get(key.len() / 2).copied().unwrap_or_default();
    let mixed =
        key.len() * 31 + usize::from(first) * 7 + usize::from(last) * 13 + usize::from(middle) * 3;
    mixed % BUCKETS
}

impl Node {
    /// The child of this key, made when there is none.
    pub(crate) fn child(&mut self, key: &str) -> &mut Self {
        let known = self.children.iter().position(|(known, _)| &**known == key);
        let place = known.unwrap_or_else(|| {
            self.children.push((key.into(), Self::default()));
            self.children.len() - 1
        });
        &mut self.children[place].1
    }

    /// Prepares the look-up of keys, once all are known.
    pub(crate) fn index(&mut self) {
        if self.children.is_empty() {
            return;
        }
        self.buckets = vec![Vec::new(); BUCKETS];
        for (place, (key, child)) in self.children.iter_mut().enumerate() {
            self.buckets[bucket_of(key.as_bytes())].push(place as u16);
            child.index();
        }
    }

    fn find(&self, key: &str) -> Option<&Self> {
        let bucket = self.buckets.get(bucket_of(key.as_bytes()))?;
        bucket.iter().find_map(|place| {
            let (known, child) = self.children.get(usize::from(*place))?;
            (&**known == key).then_some(child)
        })
    }

    /// A null stands for every value below it too.
    fn fill_null(&self, slots: &mut Slots<'_>) {
        for (_, child) in &self.children {
            if let Some(slot) = child.slot {
                slots[slot as usize] = Some("null");
            }
            child.fill_null(slots);
        }
    }
}

/// Takes what is wanted out of one value, which is known to be well formed.
pub(crate) fn fill<'de>(node: &Node, raw: &'de str, slots: &mut Slots<'de>, mended: &mut u32) {
    if let Some(slot) = node.slot {
        slots[slot as usize] = Some(raw);
    }
    if node.children.is_empty() {
        return;
    }
    match raw.as_bytes().first() {
        Some(b'{') => {
            for (key, value) in Members::of(raw) {
                let child = if key.contains('\\') {
                    let literal = format!("\"{key}\"");
                    json::text(&literal, mended).and_then(|key| node.find(&key))
                } else {
                    node.find(key)
                };
                if let Some(child) = child {
                    fill(child, value, slots, mended);
                }
            }
        }
        Some(b'n') => node.fill_null(slots),
        // The value may be wanted as it is (an id in place of an object).
        _ if node.slot.is_some() => {}
        _ => *mended += 1,
    }
}

/// What stood where an object was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collected {
    Object,
    Null,
    Other,
}

/// Reads one object into slots; says whether it was one.
pub(crate) struct Collect<'a, 'de> {
    pub(crate) node: &'a Node,
    pub(crate) slots: &'a mut Slots<'de>,
    pub(crate) mended: &'a mut u32,
}

impl<'de> DeserializeSeed<'de> for Collect<'_, 'de> {
    type Value = Collected;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Collected, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Collect<'_, 'de> {
    type Value = Collected;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Collected, A::Error> {
        while let Some(child) = map.next_key_seed(KeySeed(self.node))? {
            match child {
                Some(child) => {
                    let raw: &'de RawValue = map.next_value()?;
                    fill(child, raw.get(), self.slots, self.mended);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Collected::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Collected, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Collected::Other)
    }

    fn visit_unit<E>(self) -> Result<Collected, E> {
        Ok(Collected::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Collected, E> {
        Ok(Collected::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Collected, E> {
        Ok(Collected::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Collected, E> {
        Ok(Collected::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Collected, E> {
        Ok(Collected::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Collected, E> {
        Ok(Collected::Other)
    }
}

/// Finds the child of a key without keeping the key.
struct KeySeed<'a>(&'a Node);

impl<'a, 'de> DeserializeSeed<'de> for KeySeed<'a> {
    type Value = Option<&'a Node>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for KeySeed<'a> {
    type Value = Option<&'a Node>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_found_in_one_pass_and_the_last_of_repeated_keys_wins() {
        let mut tree = Node::default();
        tree.child("a").slot = Some(0);
        tree.child("b").child("c").slot = Some(1);
        tree.child("b").slot = Some(2);
        tree.child("gone").child("d").slot = Some(3);
        tree.index();
        let text = r#"{"x":[{"a":1}],"a":1,"b":{"c":"é","z":0},"a":2,"gone":null}"#;
        let mut slots = vec![None; 4];
        let mut mended = 0;
        fill(&tree, text, &mut slots, &mut mended);
        assert_eq!(
            slots,
            [
                Some("2"),
                Some("\"é\""),
                Some(r#"{"c":"é","z":0}"#),
                Some("null")
            ]
        );
        assert_eq!(mended, 0);
    }

    #[test]
    fn a_value_in_place_of_an_object_is_counted() {
        let mut tree = Node::default();
        tree.child("b").child("c").slot = Some(0);
        tree.index();
        let mut slots = vec![None; 1];
        let mut mended = 0;
        fill(&tree, r#"{"b":3}"#, &mut slots, &mut mended);
        assert_eq!((slots[0], mended), (None, 1));
    }
}
