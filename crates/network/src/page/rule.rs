//! How a list pages and what its marks are, as a definition says it.

use crate::json;
use crate::path::Path;
use crate::scan::Members;
use crate::shape::{Node, Slots, TreeBuilder, fill};
use crate::time::{TimeFormat, read_rfc3339};
use kittiwake_model::{Name, WorldTime};
use serde_json::value::RawValue;
use url::Url;

/// How a list pages.
#[derive(Debug)]
pub(crate) struct PageRule {
    pub(crate) style: PageStyle,
    pub(crate) size_parameter: Option<String>,
    pub(crate) size: u32,
    /// The least that is asked for where a page is too much for the server.
    pub(crate) size_min: Option<u32>,
    /// Whether a cursor is good for as long as one likes.
    pub(crate) is_durable: bool,
    pub(crate) ends: PageEnds,
    /// Items that the network shows of a list at the most.
    pub(crate) items_max: Option<u32>,
    /// Whether an address on another path of the host leads on.
    pub(crate) takes_other_paths: bool,
    /// The selects whose lists page, by their places; the longest of them counts.
    pub(crate) lists: Vec<usize>,
    pub(crate) places: Places,
}

impl PageRule {
    /// How many items a page was asked for with: fewer than usual where that was too much.
    pub(crate) fn asked_size(&self, url: &Url) -> u32 {
        let parameter = self
            .size_parameter
            .as_ref()
            .filter(|_| self.size_min.is_some());
        let asked = parameter.and_then(|name| {
            let mut pairs = url.query_pairs();
            pairs.find(|(other, _)| other == name)?.1.parse().ok()
        });
        asked.unwrap_or(self.size)
    }
}

/// What leads from one page to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageStyle {
    /// The `Link` header.
    Link,
    /// An address in the answer.
    Next,
    /// A value in the answer, which goes into a parameter.
    Cursor {
        parameter: String,
        /// Values that mean the end.
        last: Vec<String>,
    },
    Number {
        parameter: String,
        first: u32,
    },
    Offset {
        parameter: String,
    },
    /// The oldest id of a page is where the next begins.
    Ids {
        parameter: String,
        alias: Name,
        /// Whether the item with that id comes again.
        is_inclusive: bool,
    },
}

/// Which page is the last, beside one that leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageEnds {
    /// No other.
    Token,
    /// One that is empty.
    Empty,
    /// One that is not full.
    Short,
}

/// Where in an answer the paging looks.
#[derive(Debug, Default)]
pub(crate) struct Places {
    tree: Node,
    slots: usize,
    /// The cursor, or the address of the next page.
    at: Option<u32>,
    /// What the cursor stands in, if that is not the answer itself.
    around: Option<u32>,
    /// Whether there is more.
    more: Option<u32>,
    /// The lists themselves.
    lists: Vec<u32>,
}

impl Places {
    pub(crate) fn new(at: Option<&Path>, more: Option<&Path>, lists: &[&Path]) -> Self {
        let mut builder = TreeBuilder::default();
        let mut slot = |path: Option<&Path>| path.map(|path| builder.slot(&path.keys));
        let (at_slot, more) = (slot(at), slot(more));
        let lists = lists.iter().map(|path| builder.slot(&path.keys)).collect();
        let around = at.and_then(|path| path.keys.split_last());
        let around = around
            .filter(|(_, around)| !around.is_empty())
            .map(|(_, around)| builder.slot(around));
        let (tree, slots, _) = builder.finish();
        Self {
            tree,
            slots,
            at: at_slot,
            around,
            more,
            lists,
        }
    }

    /// Takes what is there out of an answer that is known to be well formed.
    pub(crate) fn look<'t>(&self, text: &'t str) -> Seen<'t> {
        let mut slots: Slots<'t> = vec![None; self.slots];
        if self.slots > 0 {
            // What stands in place of an object is counted where the objects are read.
            fill(&self.tree, text.trim(), &mut slots, &mut 0);
        }
        let found = |slot: Option<u32>| slot.and_then(|slot| slots[slot as usize]);
        Seen {
            at: found(self.at),
            around: found(self.around),
            more: found(self.more),
            lists: self.lists.iter().map(|slot| found(Some(*slot))).collect(),
        }
    }

    /// Whether an answer says by itself that it is not the last.
    pub(crate) fn looks_for_more(&self) -> bool {
        self.more.is_some()
    }

    pub(crate) fn looks_at_lists(&self) -> bool {
        !self.lists.is_empty()
    }
}

/// What stands where the paging looks.
#[derive(Debug)]
pub(crate) struct Seen<'t> {
    pub(crate) at: Option<&'t str>,
    pub(crate) around: Option<&'t str>,
    pub(crate) more: Option<&'t str>,
    lists: Vec<Option<&'t str>>,
}

impl<'t> Seen<'t> {
    /// The items of each list, whether or not they can be read as objects.
    pub(crate) fn items(&self) -> Vec<Vec<&'t str>> {
        self.lists.iter().map(|list| items_in(*list)).collect()
    }
}

fn items_in(list: Option<&str>) -> Vec<&str> {
    let Some(list) = list else {
        return Vec::new();
    };
    if json::is_object(list) {
        return Members::of(list).map(|(_, item)| item).collect();
    }
    let items: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// How a walk begins at an id.
#[derive(Debug)]
pub(crate) struct SinceRule {
    pub(crate) parameter: String,
    /// The items' alias that marks are made of.
    pub(crate) alias: Name,
    pub(crate) is_ended_by_short_page: bool,
}

/// Marks that are times.
#[derive(Debug)]
pub(crate) struct TimeRule {
    /// The parameter that takes the mark; without it, a walk goes back until it comes to the mark.
    pub(crate) parameter: Option<String>,
    pub(crate) format: TimeFormat,
    /// How far behind the mark a walk looks again.
    pub(crate) overlap_us: i64,
    tree: Node,
    slots: usize,
    /// The slots of the paths, the first that holds something first.
    picks: Vec<u32>,
}

impl TimeRule {
    pub(crate) fn new(
        paths: &[Path],
        parameter: Option<String>,
        format: TimeFormat,
        overlap_us: i64,
    ) -> Self {
        let mut builder = TreeBuilder::default();
        let picks = paths.iter().map(|path| builder.slot(&path.keys)).collect();
        let (tree, slots, _) = builder.finish();
        Self {
            parameter,
            format,
            overlap_us,
            tree,
            slots,
            picks,
        }
    }

    /// The time of the newest item. Items whose time cannot be read have no say.
    pub(crate) fn latest(&self, items: &[&str]) -> Option<WorldTime> {
        items.iter().filter_map(|item| self.time_of(item)).max()
    }

    fn time_of(&self, item: &str) -> Option<WorldTime> {
        let mut slots: Slots<'_> = vec![None; self.slots];
        fill(&self.tree, item, &mut slots, &mut 0);
        let raws = self.picks.iter().filter_map(|slot| slots[*slot as usize]);
        let raw = raws.into_iter().find(|raw| !json::is_falsy(raw))?;
        let (at_us, _) = if json::is_number(raw) {
            self.format.read_number(raw)
        } else {
            self.format.read_text(&json::text(raw, &mut 0)?)
        }?;
        Some(WorldTime(at_us))
    }

    /// The time of a mark, less the overlap.
    pub(crate) fn begin_of(&self, mark: &str) -> Option<WorldTime> {
        let (at_us, _) = read_rfc3339(mark)?;
        Some(WorldTime(at_us.saturating_sub(self.overlap_us)))
    }
}
