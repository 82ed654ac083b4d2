//! Which parts of an answer no rule reads.

use crate::network::{Network, Query};
use crate::path::{Path, render};
use crate::shape::{ReadDepth, ReadPath, Shape, ShapeId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a shape reads at one place and below it.
#[derive(Default)]
struct Cover {
    is_whole: bool,
    is_value: bool,
    shapes: Vec<ShapeId>,
    keys: BTreeMap<String, Self>,
    each: Option<Box<Self>>,
}

/// Paths beyond this many are not listed.
const PATHS_MAX: usize = 1_000;

impl Network {
    /// The paths in an object of this type that the definition neither reads nor names in
    /// `ignored`. `None` when there is no such type.
    pub fn unmapped(&self, kind: &str, object: &Value) -> Option<Vec<String>> {
        let shape = self.find_type(kind)?.shape;
        let mut paths = BTreeSet::new();
        self.compare(&cover_of(&self.shapes[shape]), object, "", &mut paths);
        Some(paths.into_iter().collect())
    }

    /// The same for a whole answer to a query, wherever its objects stand.
    pub fn unmapped_answer(&self, query: &Query, answer: &Value) -> Vec<String> {
        let mut paths = BTreeSet::new();
        let cover = cover(&query.read, &query.ignored);
        self.compare(&cover, answer, "", &mut paths);
        paths.into_iter().collect()
    }

    fn compare(&self, cover: &Cover, value: &Value, path: &str, paths: &mut BTreeSet<String>) {
        if cover.is_whole || paths.len() >= PATHS_MAX {
            return;
        }
        let is_known = cover.is_value
            || !cover.shapes.is_empty()
            || !cover.keys.is_empty()
            || cover.each.is_some();
        match value {
            Value::Object(entries) => {
                if let Some(shape) = cover.shapes.first() {
                    self.compare(&cover_of(&self.shapes[*shape]), value, path, paths);
                    return;
                }
                if entries.is_empty() && !is_known {
                    paths.insert(place(path));
                }
                let unknown = Cover::default();
                for (key, inner) in entries {
                    let inner_path = format!("{path}{}", render(std::slice::from_ref(key)));
                    let inner_cover = cover.keys.get(key).unwrap_or(&unknown);
                    self.compare(inner_cover, inner, &inner_path, paths);
                }
            }
            Value::Array(items) => {
                let Some(each) = &cover.each else {
                    if !is_known || !items.is_empty() {
                        paths.insert(place(path));
                    }
                    return;
                };
                for item in items {
                    self.compare(each, item, &format!("{path}[]"), paths);
                }
            }
            _ if is_known => {}
            _ => {
                paths.insert(place(path));
            }
        }
    }
}

fn place(path: &str) -> String {
    if path.is_empty() {
        ".".to_owned()
    } else {
        path.to_owned()
    }
}

fn cover_of(shape: &Shape) -> Cover {
    cover(&shape.read, &shape.ignored)
}

fn cover(read: &[ReadPath], ignored: &[Path]) -> Cover {
    let mut cover = Cover::default();
    for read in read {
        let target = descend(&mut cover, &read.path.keys, read.path.each);
        match read.depth {
            ReadDepth::Value => target.is_value = true,
            ReadDepth::Whole => target.is_whole = true,
            ReadDepth::Shape(shape) => target.shapes.push(shape),
        }
    }
    for path in ignored {
        descend(&mut cover, &path.keys, path.each).is_whole = true;
    }
    cover
}

fn descend<'c>(cover: &'c mut Cover, keys: &[String], is_each: bool) -> &'c mut Cover {
    let target = keys.iter().fold(cover, |cover, key| {
        cover.keys.entry(key.clone()).or_default()
    });
    if is_each {
        target.each.get_or_insert_default()
    } else {
        target
    }
}
