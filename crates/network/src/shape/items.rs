//! The things that stand at a path: one, or the items of a list or a map.

use crate::json;
use crate::path::Path;
use crate::scan::{Elements, Members};

/// How many things stand at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    /// One.
    One,
    /// Every item of a list.
    List,
    /// Every value of a map.
    Map,
}

impl Items {
    pub(crate) fn at(path: &Path) -> Self {
        match (path.each, path.is_map) {
            (false, _) => Self::One,
            (true, false) => Self::List,
            (true, true) => Self::Map,
        }
    }
}

/// In what an answer was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    Json,
    /// Every value is text, and one child is written like the only item of a list.
    Xml,
    /// A whole account in one answer.
    Car,
    /// Every value is text.
    Html,
}

/// How much is taken of one answer. An object takes many times the memory of the few bytes that can
/// stand for it, so that the bound on an answer's size is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) objects: usize,
    pub(crate) links: usize,
}

impl Notation {
    pub(crate) const fn bounds(self) -> Bounds {
        match self {
            Self::Json | Self::Xml | Self::Html => Bounds {
                objects: 20_000,
                links: 100_000,
            },
            Self::Car => Bounds {
                objects: 200_000,
                links: 400_000,
            },
        }
    }

    /// What is meant where one value is wanted. In XML that is the text of an element, whatever
    /// attributes it has besides, and of several elements the first that has one.
    pub(super) fn text_in(self, raw: &str) -> &str {
        if self != Self::Xml {
            return raw;
        }
        if raw.starts_with('[') {
            let mut texts = Elements::of(raw).map(text_of);
            return texts.find(|text| !json::is_null(text)).unwrap_or("null");
        }
        text_of(raw)
    }

    /// Whether a list with nothing in it is not written at all.
    pub(crate) fn omits_empty_lists(self) -> bool {
        matches!(self, Self::Xml | Self::Car)
    }
}

/// The text of one element; null if it has none.
fn text_of(raw: &str) -> &str {
    if !json::is_object(raw) {
        return raw;
    }
    let text = Members::of(raw).find(|(key, _)| *key == "#text");
    text.map_or("null", |(_, text)| text)
}

/// A walk over items: the key in a map, with its quotes, and the value.
pub(crate) enum ItemsOf<'t> {
    One(Option<&'t str>),
    List(Elements<'t>),
    Map(Members<'t>),
}

impl<'t> Iterator for ItemsOf<'t> {
    type Item = (Option<&'t str>, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(one) => one.take().map(|raw| (None, raw)),
            Self::List(items) => items.next().map(|raw| (None, raw)),
            Self::Map(members) => members
                .next_literal()
                .map(|(key, value)| (Some(key), value)),
        }
    }
}

/// The items of a value that is known to be well formed; `None` when it is of another kind.
pub(crate) fn items_of(items: Items, notation: Notation, raw: &str) -> Option<ItemsOf<'_>> {
    match items {
        Items::One => Some(ItemsOf::One(Some(raw))),
        Items::List if raw.starts_with('[') => Some(ItemsOf::List(Elements::of(raw))),
        Items::List if notation == Notation::Xml => Some(ItemsOf::One(Some(raw))),
        Items::Map if json::is_object(raw) => Some(ItemsOf::Map(Members::of(raw))),
        Items::List | Items::Map => None,
    }
}
