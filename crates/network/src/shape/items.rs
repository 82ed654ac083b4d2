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
