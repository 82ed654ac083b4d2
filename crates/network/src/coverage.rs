//! Which parts of an answer no rule reads.

use crate::network::{Decode, Network, Query};
use crate::path::{Path, render};
use crate::shape::{Items, Notation, ReadDepth, ReadPath, Shape, ShapeId};
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
    /// What is read of the values of a map.
    values: Option<Box<Self>>,
}

/// Paths beyond this many are not listed.
const PATHS_MAX: usize = 1_000;

impl Network {
    /// The paths in an object of this type that the definition neither reads nor names in
    /// `ignored`. `None` when there is no such type.
    pub fn unmapped(&self, kind: &str, object: &Value) -> Option<Vec<String>> {
        let shape = self.find_type(kind)?.shape;
        let mut paths = BTreeSet::new();
        let comparison = Comparison {
            network: self,
            notation: Notation::Json,
        };
        comparison.compare(&cover_of(&self.shapes[shape]), object, "", &mut paths);
        Some(paths.into_iter().collect())
    }

    /// The same for a whole answer to a query, wherever its objects stand. An answer in XML is told
    /// as the tree that it stands for.
    pub fn unmapped_answer(&self, query: &Query, answer: &Value) -> Vec<String> {
        let mut paths = BTreeSet::new();
        let cover = cover(&query.read, &query.ignored);
        let comparison = Comparison {
            network: self,
            notation: match query.decode {
                Decode::Json => Notation::Json,
                Decode::Xml | Decode::Any => Notation::Xml,
            },
        };
        comparison.compare(&cover, answer, "", &mut paths);
        paths.into_iter().collect()
    }
}

/// One answer, held against what its network reads.
struct Comparison<'n> {
    network: &'n Network,
    notation: Notation,
}

impl Comparison<'_> {
    fn compare(&self, cover: &Cover, value: &Value, path: &str, paths: &mut BTreeSet<String>) {
        if cover.is_whole || paths.len() >= PATHS_MAX {
            return;
        }
        let is_known = cover.is_value
            || !cover.shapes.is_empty()
            || !cover.keys.is_empty()
            || cover.each.is_some()
            || cover.values.is_some();
        if let Some(each) = &cover.each
            && self.notation == Notation::Xml
            && !value.is_array()
        {
            self.compare(each, value, &format!("{path}[]"), paths);
            return;
        }
        match value {
            Value::Object(entries) => {
                if let Some(shape) = cover.shapes.first() {
                    // Other selects may stand in what one has taken.
                    let (own, others): (Vec<_>, Vec<_>) = entries
                        .clone()
                        .into_iter()
                        .partition(|(key, _)| !cover.keys.contains_key(key));
                    let own = Value::Object(own.into_iter().collect());
                    let shape_cover = cover_of(&self.network.shapes[*shape]);
                    self.compare(&shape_cover, &own, path, paths);
                    for (key, inner) in others {
                        self.compare(&cover.keys[&key], &inner, &below(path, &key), paths);
                    }
                    return;
                }
                if let Some(values) = &cover.values {
                    for inner in entries.values() {
                        self.compare(values, inner, &format!("{path}{{}}"), paths);
                    }
                    return;
                }
                if entries.is_empty() && !is_known {
                    paths.insert(place(path));
                }
                let unknown = Cover::default();
                for (key, inner) in entries {
                    let inner_cover = cover.keys.get(key).unwrap_or(&unknown);
                    self.compare(inner_cover, inner, &below(path, key), paths);
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

/// The path of a key below another path, as a definition writes it.
fn below(path: &str, key: &str) -> String {
    let key = render(&[key.to_owned()]);
    match key.strip_prefix(".[") {
        Some(odd) if !path.is_empty() => format!("{path}[{odd}"),
        _ => format!("{path}{key}"),
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
        let target = descend(&mut cover, &read.path);
        match read.depth {
            ReadDepth::Value => target.is_value = true,
            ReadDepth::Whole => target.is_whole = true,
            ReadDepth::Shape(shape) => target.shapes.push(shape),
        }
    }
    for path in ignored {
        descend(&mut cover, path).is_whole = true;
    }
    cover
}

fn descend<'c>(cover: &'c mut Cover, path: &Path) -> &'c mut Cover {
    let target = path.keys.iter().fold(cover, |cover, key| {
        cover.keys.entry(key.clone()).or_default()
    });
    match Items::at(path) {
        Items::One => target,
        Items::List => target.each.get_or_insert_default(),
        Items::Map => target.values.get_or_insert_default(),
    }
}
