//! Which parts of an answer no rule reads.

use crate::decode::decode;
use crate::expression::Expression;
use crate::network::{Decode, Network, Query, Select};
use crate::path::{Path, render};
use crate::shape::{Items, Notation, ReadDepth, ReadPath, Shape, ShapeId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// What a shape reads at one place and below it.
#[derive(Default)]
struct Cover {
    is_whole: bool,
    is_value: bool,
    shapes: Vec<ShapeId>,
    /// Selects whose items stand here, too, in items of theirs.
    items_of: Vec<usize>,
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
            selects: &[],
            top: None,
            notation: Notation::Json,
        };
        comparison.compare(&cover_of(&self.shapes[shape]), object, "", &mut paths);
        Some(paths.into_iter().collect())
    }

    /// The same for a whole answer to a query, wherever its objects stand. An answer in XML is told
    /// as the tree that it stands for.
    pub fn unmapped_answer(&self, query: &Query, answer: &Value) -> Vec<String> {
        let mut paths = BTreeSet::new();
        let mut cover = cover(&query.read, &query.ignored, &query.selects);
        // What tells an answer from an error is read, too.
        for rule in self.errors.iter().filter(|rule| rule.concerns(query)) {
            let matcher = rule.matcher.iter().filter(|_| rule.may_fit_success());
            for keys in matcher.flat_map(Expression::uses) {
                cover.descend(&Path::to_value(keys.clone())).is_value = true;
            }
        }
        let comparison = Comparison {
            network: self,
            selects: &query.selects,
            top: Some(&cover),
            notation: query.notation(),
        };
        comparison.compare(&cover, answer, "", &mut paths);
        paths.into_iter().collect()
    }
}

impl Query {
    /// An answer as the tree that its rules see, whether it came as JSON, as XML or as a web page; `None` when it
    /// is none.
    pub fn tree_of(&self, url: &Url, content_type: Option<&str>, body: &[u8]) -> Option<Value> {
        let (text, _) = decode(self.written(url, content_type), &[], body, &mut 0).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// How the tree of an answer is to be taken.
    pub(crate) fn notation(&self) -> Notation {
        match self.decode {
            Decode::Json => Notation::Json,
            Decode::Car => Notation::Car,
            Decode::Xml | Decode::Any => Notation::Xml,
            Decode::Html => Notation::Html,
        }
    }
}

/// One answer, held against what its network reads.
struct Comparison<'n> {
    network: &'n Network,
    selects: &'n [Select],
    /// What is read of the whole answer.
    top: Option<&'n Cover>,
    notation: Notation,
}

impl Comparison<'_> {
    /// What none of the shapes reads that are made of the same object.
    fn unread_by_all(&self, shapes: &[ShapeId], value: &Value, path: &str) -> BTreeSet<String> {
        let unread = shapes.iter().map(|shape| {
            let mut paths = BTreeSet::new();
            let cover = cover_of(&self.network.shapes[*shape]);
            self.compare(&cover, value, path, &mut paths);
            paths
        });
        unread
            .reduce(|all, these| &all & &these)
            .unwrap_or_default()
    }

    fn compare(&self, cover: &Cover, value: &Value, path: &str, paths: &mut BTreeSet<String>) {
        if cover.is_whole || paths.len() >= PATHS_MAX {
            return;
        }
        if !cover.items_of.is_empty() {
            let mut inner = Cover::default();
            for place in &cover.items_of {
                inner.expand(*place, self.selects);
                // What is left out of an item is left out of the items in it.
                let around = self.selects.get(*place).and_then(|it| it.around.as_ref());
                let outer = around.and_then(|around| self.top?.at(&around.at));
                let keys = outer.into_iter().flat_map(|outer| &outer.keys);
                for (key, _) in keys.filter(|(_, cover)| cover.is_whole) {
                    inner.keys.entry(key.clone()).or_default().is_whole = true;
                }
            }
            self.compare(&inner, value, path, paths);
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
                if !cover.shapes.is_empty() {
                    // Other selects may stand in what one has taken, or look at parts of it.
                    let (own, others): (Vec<_>, Vec<_>) = entries
                        .clone()
                        .into_iter()
                        .partition(|(key, _)| !cover.keys.contains_key(key));
                    let own = Value::Object(own.into_iter().collect());
                    paths.extend(self.unread_by_all(&cover.shapes, &own, path));
                    for (key, inner) in others {
                        let mut by_selects = BTreeSet::new();
                        let place = below(path, &key);
                        self.compare(&cover.keys[&key], &inner, &place, &mut by_selects);
                        let alone = Value::Object([(key, inner)].into_iter().collect());
                        let by_shapes = self.unread_by_all(&cover.shapes, &alone, path);
                        paths.extend(unread_by_both(&by_selects, &by_shapes));
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
                // An element whose value is read is read by its text.
                let is_text =
                    |key: &str| key == "#text" && cover.is_value && self.notation == Notation::Xml;
                for (key, inner) in entries.iter().filter(|(key, _)| !is_text(key)) {
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

/// What is in both, or in one and within what is in the other: where all of a list is unread, its items are not told.
fn unread_by_both(some: &BTreeSet<String>, others: &BTreeSet<String>) -> BTreeSet<String> {
    let is_within = |path: &str, whole: &str| {
        let rest = path.strip_prefix(whole);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
    };
    let within = |path: &&String, set: &BTreeSet<String>| {
        let mut wholes = set.iter();
        wholes.any(|whole| is_within(path, whole))
    };
    let of_some = some.iter().filter(|path| within(path, others));
    let of_others = others.iter().filter(|path| within(path, some));
    of_some.chain(of_others).cloned().collect()
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
    cover(&shape.read, &shape.ignored, &[])
}

fn cover(read: &[ReadPath], ignored: &[Vec<Path>], selects: &[Select]) -> Cover {
    let mut cover = Cover::default();
    for read in read {
        cover.add(read, selects);
    }
    for path in ignored {
        let place = path.iter().fold(&mut cover, Cover::descend);
        place.is_whole = true;
    }
    cover
}

impl Cover {
    fn add(&mut self, read: &ReadPath, selects: &[Select]) {
        let target = self.descend(&read.path);
        match read.depth {
            ReadDepth::Value => target.is_value = true,
            ReadDepth::Whole => target.is_whole = true,
            ReadDepth::Shape(shape) => target.shapes.push(shape),
            ReadDepth::Around(place) => target.expand(place, selects),
        }
    }

    /// What a select reads of one of its items.
    fn expand(&mut self, place: usize, selects: &[Select]) {
        let Some(around) = selects.get(place).and_then(|select| select.around.as_ref()) else {
            return;
        };
        for read in &around.read {
            self.add(read, &[]);
        }
        for path in &around.descend_paths {
            self.descend(path).items_of.push(place);
        }
    }

    /// What is read at a path.
    fn at(&self, path: &Path) -> Option<&Self> {
        let mut keys = path.keys.iter();
        let target = keys.try_fold(self, |cover, key| cover.keys.get(key))?;
        match Items::at(path) {
            Items::One => Some(target),
            Items::List => target.each.as_deref(),
            Items::Map => target.values.as_deref(),
        }
    }

    fn descend(&mut self, path: &Path) -> &mut Self {
        let target = path.keys.iter().fold(self, |cover, key| {
            cover.keys.entry(key.clone()).or_default()
        });
        match Items::at(path) {
            Items::One => target,
            Items::List => target.each.get_or_insert_default(),
            Items::Map => target.values.get_or_insert_default(),
        }
    }
}
