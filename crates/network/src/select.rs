//! What is taken out of an answer: items where a select points, and what is looked at around each.

use crate::json;
use crate::network::Select;
use crate::path::Path;
use crate::shape::{Items, Node, Pick, ReadPath, Reader, Slots, fill, items_of};
use kittiwake_model::{Name, WorldTime};

/// Rules on items as they stand in the answer, with the object somewhere in them.
#[derive(Debug)]
pub(crate) struct Around {
    pub(crate) tree: Node,
    pub(crate) slots: usize,
    /// Only items in which this holds something are taken.
    pub(crate) only: Option<Pick>,
    /// Where the object itself stands.
    pub(crate) item: Option<u32>,
    /// Where further items of the same kind stand.
    pub(crate) descend: Vec<(u32, Items)>,
    /// What items leave out and name: the query that is asked for it, and the ids.
    pub(crate) stubs: Vec<(Name, Pick)>,
    /// When the link between subject and object began.
    pub(crate) link_at: Option<Pick>,
    /// The paths that these rules read.
    pub(crate) read: Vec<ReadPath>,
    /// Where further items are looked for, for finding out what is read by no rule.
    pub(crate) descend_paths: Vec<Path>,
    /// Where the items stand in the answer.
    pub(crate) at: Path,
}

/// Items in items that are followed; every level is looked through once for each level above it.
const DESCENT_MAX: u32 = 100;

/// Objects that a select found, by place, and when the subject's links to them began.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) objects: Vec<u32>,
    /// One for each object, where a rule tells them.
    pub(crate) times: Vec<Option<WorldTime>>,
}

const NO_LIST: &str = "no list where one is expected";
const NO_MAP: &str = "no map where one is expected";
pub(crate) const NO_OBJECT: &str = "no object that can be named";

/// Reads one select from a value that is known to be well formed, item by item; the error is a
/// value of another kind.
pub(crate) fn read_slices<'n, 'de>(
    reader: &mut Reader<'n, 'de>,
    select: &'n Select,
    raw: &'de str,
) -> Result<Taken, &'static str> {
    if json::is_null(raw) && select.items == Items::One {
        return Ok(Taken::default());
    }
    let Some(items) = items_of(select.items, reader.notation, raw) else {
        return Err(match select.items {
            Items::Map => NO_MAP,
            Items::One | Items::List => NO_LIST,
        });
    };
    if let Some(around) = &select.around {
        return Ok(read_around(reader, select, around, items.collect()));
    }
    let alias = select.alias.as_ref();
    let objects: Vec<u32> = items
        .filter_map(|(key, item)| reader.read_item(select.shape, alias, key, item))
        .collect();
    if objects.is_empty() && select.items == Items::One {
        return Err(NO_OBJECT);
    }
    Ok(Taken {
        objects,
        times: Vec::new(),
    })
}

/// Reads items that have to be looked at before their objects are read.
fn read_around<'n, 'de>(
    reader: &mut Reader<'n, 'de>,
    select: &'n Select,
    around: &'n Around,
    items: Vec<(Option<&'de str>, &'de str)>,
) -> Taken {
    let mut taken = Taken::default();
    let mut waiting: Vec<_> = items.into_iter().map(|item| (item, 0)).collect();
    waiting.reverse();
    while let Some(((key, raw), level)) = waiting.pop() {
        if reader.is_full {
            break;
        }
        let mut slots: Slots<'de> = vec![None; around.slots];
        if json::is_object(raw) {
            fill(&around.tree, raw, &mut slots, &mut reader.mended);
        }
        for (slot, items) in &around.descend {
            let inner = slots[*slot as usize].filter(|raw| !json::is_null(raw));
            let inner = inner.and_then(|raw| items_of(*items, reader.notation, raw));
            if inner.is_some() && level >= DESCENT_MAX {
                reader.mended += 1;
                continue;
            }
            waiting.extend(inner.into_iter().flatten().map(|item| (item, level + 1)));
        }
        if !reader.holds(around.only.as_ref(), &slots) {
            continue;
        }
        for (query, ids) in &around.stubs {
            reader.take_stub(query, ids, &slots);
        }
        let place = around
            .object_in(raw, &slots)
            .and_then(|object| reader.read_wrapped(select, key, object));
        if let Some(place) = place {
            taken.objects.push(place);
            let time = reader.link_time(around.link_at.as_ref(), &slots);
            taken.times.push(time);
        }
    }
    taken
}

impl Around {
    fn object_in<'de>(&self, raw: &'de str, slots: &Slots<'de>) -> Option<&'de str> {
        match self.item {
            Some(slot) => slots[slot as usize],
            None => Some(raw),
        }
    }
}
