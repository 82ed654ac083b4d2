//! How an answer fits what its definition says of it: what no rule reads, what rules look for in
//! vain, and whether further pages and limits stand where they are looked for. Pure.

use crate::budget::LimitHeaders;
use crate::json;
use crate::network::{Network, Query};
use crate::page::{PageEnds, PageStyle, next_in_link};
use crate::path::{Path, render};
use crate::read::{Answer, Reading};
use crate::shape::{
    FieldSource, Items, NESTED_MAX, Pick, ReadDepth, ReadPath, Reader, ShapeId, Slots, Way, fill,
};
use kittiwake_model::{Cost, Standing};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How one answer fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Parts of the answer that no rule reads, and none names as left out.
    pub unread: Vec<String>,
    /// Where the query looks for objects, and nothing stands.
    pub absent: Vec<String>,
    /// Fields, as `user.created_us`, whose value is there and cannot be read as the definition says.
    pub unreadable: Vec<String>,
    pub further: Further,
}

/// What an answer says of the page after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Further {
    /// The query has no pages.
    Unpaged,
    /// There is one, where the definition looks.
    Found,
    /// There seems to be none.
    Last,
    /// There seems to be one, but not where the definition looks.
    Lost(String),
}

/// Which of the paths of every shape were found, over any number of answers.
#[derive(Debug, Default)]
pub struct Sightings {
    shapes: BTreeMap<ShapeId, Sighting>,
}

#[derive(Debug, Default)]
struct Sighting {
    objects: u64,
    /// The places of found paths in the shape's list.
    found: BTreeSet<usize>,
}

/// The paths of a type that were in none of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeverSeen {
    pub kind: String,
    /// How many objects were looked at.
    pub objects: u64,
    pub paths: Vec<String>,
}

impl Network {
    /// Holds an answer that was read against the rules of its query. Nothing can be said of one
    /// that is no tree.
    pub fn fit(
        &self,
        answer: &Answer<'_>,
        reading: &Reading,
        sightings: &mut Sightings,
    ) -> Option<Fit> {
        let query = answer.query;
        let content_type = (answer.header)("content-type");
        let tree = query.tree_of(answer.url, content_type.as_deref(), answer.body)?;
        let (mut absent, mut unreadable) = (Vec::new(), BTreeSet::new());
        for read in &query.read {
            let ReadDepth::Shape(shape) = read.depth else {
                continue;
            };
            let Some(found) = at(&tree, &read.path) else {
                absent.push(written(read));
                continue;
            };
            for object in items(found, &read.path) {
                self.see(shape, object, 0, sightings);
                if reading.mended > 0 {
                    self.look_for_unreadable(shape, object, answer, &mut unreadable);
                }
            }
        }
        Some(Fit {
            unread: self.unmapped_answer(query, &tree),
            absent,
            unreadable: unreadable.into_iter().collect(),
            further: further(query, reading, answer.header),
        })
    }

    /// Notes which paths of a shape an object has.
    fn see(&self, shape: ShapeId, object: &Value, depth: u32, sightings: &mut Sightings) {
        // A bare id has none.
        if !object.is_object() || depth > NESTED_MAX {
            return;
        }
        let sighting = sightings.shapes.entry(shape).or_default();
        sighting.objects += 1;
        let mut inner: Vec<(ShapeId, &Value)> = Vec::new();
        for (place, read) in self.shapes[shape].read.iter().enumerate() {
            let Some(found) = at(object, &read.path) else {
                continue;
            };
            sighting.found.insert(place);
            if let ReadDepth::Shape(shape) = read.depth {
                inner.extend(items(found, &read.path).map(|object| (shape, object)));
            }
        }
        for (shape, object) in inner {
            self.see(shape, object, depth + 1, sightings);
        }
    }

    /// Reads one object alone, and notes which of its fields got nothing out of a value.
    fn look_for_unreadable(
        &self,
        shape: ShapeId,
        object: &Value,
        answer: &Answer<'_>,
        unreadable: &mut BTreeSet<String>,
    ) {
        let text = object.to_string();
        let rules = &self.shapes[shape];
        let notation = answer.query.notation();
        let subject = answer.subjects.first().copied();
        let place = (answer.host, answer.url);
        let mut reader = Reader::new(&self.name, &self.shapes, place, subject, notation);
        let mut slots: Slots<'_> = vec![None; rules.slots];
        fill(&rules.tree, &text, &mut slots, &mut 0);
        let Some(place) = reader.read_item(shape, None, None, &text) else {
            // The key of a map, by which it may be known, is not at hand here.
            if object.is_object() && rules.key_slot.is_none() {
                unreadable.insert(format!("{}, which has no id", rules.kind));
            }
            return;
        };
        let read = &reader.objects[place as usize];
        if read.standing != Standing::Present {
            return;
        }
        let has_value = |slot: &u32| slots[*slot as usize].is_some_and(|raw| !json::is_null(raw));
        let fields = read.groups.iter().flat_map(|group| &group.fields);
        let known: BTreeSet<&str> = fields.map(|(name, _)| &**name).collect();
        for field in rules.groups.iter().flat_map(|group| &group.fields) {
            let holds = |pick: &Pick| match pick {
                Pick::Slots(slots) | Pick::LowerCase(slots, _) => slots.iter().any(has_value),
                Pick::Signs(_) | Pick::Expression { .. } => false,
            };
            let is_there = match &field.source {
                FieldSource::Value(ways) => ways.iter().any(|(pick, _)| holds(pick)),
                FieldSource::Reference(ways) => ways.iter().any(|(way, _)| match way {
                    Way::Told(pick) => holds(pick),
                    Way::Subject => false,
                }),
            };
            if is_there && !known.contains(&*field.name) {
                unreadable.insert(format!("{}.{}", rules.kind, field.name));
            }
        }
    }

    /// What was looked for in vain in all objects of a type.
    pub fn never_seen(&self, sightings: &Sightings) -> Vec<NeverSeen> {
        let never = sightings.shapes.iter().map(|(id, sighting)| {
            let shape = &self.shapes[*id];
            let is_usual = self
                .find_type(&shape.kind)
                .is_some_and(|kind| kind.shape == *id);
            let reads = shape.read.iter().enumerate();
            let unseen = reads.filter(|(place, _)| !sighting.found.contains(place));
            let found: BTreeSet<String> = sighting
                .found
                .iter()
                .map(|place| written(&shape.read[*place]))
                .collect();
            // Several rules may read one path in different ways.
            let paths: BTreeSet<String> = unseen.map(|(_, read)| written(read)).collect();
            NeverSeen {
                kind: if is_usual {
                    shape.kind.to_string()
                } else {
                    format!("{} in another shape", shape.kind)
                },
                objects: sighting.objects,
                paths: paths.difference(&found).cloned().collect(),
            }
        });
        never.filter(|never| !never.paths.is_empty()).collect()
    }

    /// The headers in which answers to calls with these costs should say what is left.
    pub fn limit_headers_of(&self, costs: &[Cost]) -> Vec<&str> {
        let charged = |place: &usize| {
            let name = &self.budgets[*place].name;
            costs.iter().any(|cost| cost.budget == *name)
        };
        let own = (0..self.budgets.len()).filter(charged);
        let own = own.filter_map(|place| self.budget_headers[place].as_ref());
        let mut names: Vec<&str> = own
            .chain(&self.limit_headers)
            .flat_map(LimitHeaders::names)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// What stands at a path; what is null is there, too.
fn at<'v>(value: &'v Value, path: &Path) -> Option<&'v Value> {
    path.keys
        .iter()
        .try_fold(value, |value, key| value.get(key.as_str()))
}

/// The things at a path; in XML, one child alone is a list of one.
fn items<'v>(found: &'v Value, path: &Path) -> Box<dyn Iterator<Item = &'v Value> + 'v> {
    match (Items::at(path), found) {
        (Items::List, Value::Array(items)) => Box::new(items.iter()),
        (Items::Map, Value::Object(entries)) => Box::new(entries.values()),
        _ => Box::new(std::iter::once(found)),
    }
}

/// A path as a definition writes it.
fn written(read: &ReadPath) -> String {
    let keys = render(&read.path.keys);
    match Items::at(&read.path) {
        Items::One => keys,
        Items::List => format!("{keys}[]"),
        Items::Map => format!("{keys}{{}}"),
    }
}

fn further(query: &Query, reading: &Reading, header: &dyn Fn(&str) -> Option<String>) -> Further {
    let link = header("link");
    let is_in_link = link.as_deref().and_then(next_in_link).is_some();
    let Some(page) = &query.page else {
        return if is_in_link {
            Further::Lost(
                "the Link header leads to a next page, and the query has no `page`".into(),
            )
        } else {
            Further::Unpaged
        };
    };
    if reading.next.is_some() {
        return Further::Found;
    }
    let is_token = page.ends == PageEnds::Token;
    match page.style {
        // A link that is there and leads nowhere has an outcome of its own.
        PageStyle::Link if !is_in_link && is_token && reading.listed >= page.size => {
            Further::Lost(format!(
                "the page is full ({} items), and no Link header leads to a next one",
                reading.listed
            ))
        }
        PageStyle::Link => Further::Last,
        _ if is_in_link => Further::Lost(
            "the next page is in the Link header, where the definition does not look".into(),
        ),
        PageStyle::Next | PageStyle::Cursor { .. }
            if is_token && !page.places.looks_for_more() && reading.listed >= page.size =>
        {
            Further::Lost(format!(
                "the page is full ({} items), and nothing stands where the way to the next one is looked for",
                reading.listed
            ))
        }
        _ => Further::Last,
    }
}
