//! How the objects of one type are read from a document.
//!
//! A [`Shape`] holds all plain paths of a type in one tree of keys, so that one pass over the
//! bytes finds every slice that any field, alias or link asks for (`tree.rs`); the rules then say
//! what becomes of the slices (`assemble.rs`).

mod assemble;
mod inputs;
mod items;
mod made;
mod tree;

pub(crate) use assemble::{Element, Reader};
use inputs::{Input, add_input};
use items::Bounds;
pub(crate) use items::{Items, Notation, items_of};
pub(crate) use tree::{Collect, Collected, Node, Slots, fill};

use crate::expression::Expression;
use crate::path::{Chain, Path};
use crate::time::TimeFormat;
use kittiwake_model::{LinkTable, Name, OutcomeCode, Table};
use std::sync::Arc;

/// The place of a shape in the network's list.
pub(crate) type ShapeId = usize;

/// How deeply objects may be nested in one another (a repost in a quote in a post …).
pub(crate) const NESTED_MAX: u32 = 4;

/// One way in which a type is written.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) kind: Name,
    pub(crate) table: Table,
    pub(crate) tree: Node,
    pub(crate) slots: usize,
    /// The slot of the key under which an object of a map stands, if a rule reads it.
    pub(crate) key_slot: Option<u32>,
    pub(crate) canonical: Option<Pick>,
    /// Whether the canonical id is one within what was asked about.
    pub(crate) is_within_subject: bool,
    pub(crate) aliases: Vec<AliasRule>,
    /// Whether being described so shows that it is there.
    pub(crate) shows_presence: bool,
    pub(crate) states: Vec<StateRule>,
    pub(crate) groups: Vec<GroupRule>,
    pub(crate) links: Vec<LinkRule>,
    pub(crate) ignored: Vec<Vec<Path>>,
    /// The paths that rules read, for finding out what is read by none.
    pub(crate) read: Vec<ReadPath>,
}

impl Shape {
    /// Whether nothing in it says which object is meant.
    pub(crate) fn is_nameless(&self) -> bool {
        self.canonical.is_none() && self.aliases.is_empty()
    }
}

/// One path that a rule reads.
#[derive(Debug, Clone)]
pub(crate) struct ReadPath {
    pub(crate) path: Path,
    pub(crate) depth: ReadDepth,
}

/// How much of what stands at a path is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadDepth {
    /// One value.
    Value,
    /// Everything below it too.
    Whole,
    /// An object of this shape.
    Shape(ShapeId),
    /// What the select at this place of its query says of its items.
    Around(usize),
}

/// Where a rule takes its value from.
#[derive(Debug)]
pub(crate) enum Pick {
    /// The first of these slots that holds something.
    Slots(Vec<u32>),
    /// The same, in lower case: `.name | downcase` is too common to be left to jaq.
    LowerCase(Vec<u32>, Letters),
    /// Whether any of these slots holds this very truth value: `.a == true or .b == false`, which
    /// stands in every account and must not cost a run of jaq each.
    Signs(Vec<(u32, bool)>),
    Expression {
        expression: Arc<Expression>,
        /// The keys of the object that it looks at.
        inputs: Vec<Input>,
        /// The slot of the whole object, when it looks at that.
        whole: Option<u32>,
    },
}

/// Which letters have a lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letters {
    Ascii,
    All,
}

/// A sign that an object is gone.
#[derive(Debug)]
pub(crate) struct StateRule {
    pub(crate) outcome: OutcomeCode,
    pub(crate) pick: Pick,
    /// The fields that are not blanked.
    pub(crate) keeps: Vec<String>,
}

impl StateRule {
    fn keeps(&self, field: &str) -> bool {
        self.keeps.iter().any(|kept| kept == field)
    }
}

#[derive(Debug)]
pub(crate) struct AliasRule {
    pub(crate) name: Name,
    pub(crate) pick: Pick,
    pub(crate) scope: AliasScope,
    pub(crate) is_movable: bool,
    /// Whether `@host` is appended when there is no `@` in it.
    pub(crate) is_qualified: bool,
}

/// Where an alias is valid.
#[derive(Debug)]
pub(crate) enum AliasScope {
    Everywhere,
    /// On the host that was asked.
    Asked,
    /// On the host of an address that the answer gives.
    At(Pick),
}

#[derive(Debug)]
pub(crate) struct GroupRule {
    pub(crate) name: Name,
    pub(crate) fields: Vec<FieldRule>,
}

#[derive(Debug)]
pub(crate) struct FieldRule {
    pub(crate) name: Name,
    pub(crate) source: FieldSource,
}

/// What becomes a field.
#[derive(Debug)]
pub(crate) enum FieldSource {
    /// A value: the first of these ways that holds something.
    Value(Vec<(Pick, FieldKind)>),
    /// Another object: the first of these ways that holds something.
    Reference(Vec<(Way, ReferenceRule)>),
}

/// Where a reference leads.
#[derive(Debug)]
pub(crate) enum Way {
    /// To what stands in the answer.
    Told(Pick),
    /// To what was asked about.
    Subject,
}

#[derive(Debug)]
pub(crate) enum FieldKind {
    Text {
        is_qualified: bool,
    },
    Html,
    /// An address, which may leave out what it shares with the one that was asked.
    Address,
    Time(TimeFormat),
    Int,
    Float,
    Bool,
    Json,
}

/// One other object: described in place, or only named.
#[derive(Debug)]
pub(crate) struct ReferenceRule {
    pub(crate) shape: ShapeId,
    pub(crate) kind: Name,
    /// The alias that a bare id is.
    pub(crate) alias: Option<AliasReference>,
    /// The kind of link that the reference makes as well.
    pub(crate) link: Option<Name>,
    pub(crate) link_at: Option<Pick>,
}

/// An alias of another type, as that type declares it.
#[derive(Debug, Clone)]
pub(crate) struct AliasReference {
    pub(crate) name: Name,
    pub(crate) is_host_scoped: bool,
    pub(crate) is_movable: bool,
    pub(crate) is_qualified: bool,
}

/// What the canonical id is called where an alias can be named.
pub(crate) const CANONICAL: &str = "canonical";

impl AliasReference {
    pub(crate) fn canonical() -> Self {
        Self {
            name: CANONICAL.into(),
            is_host_scoped: false,
            is_movable: false,
            is_qualified: false,
        }
    }

    pub(crate) fn is_canonical(&self) -> bool {
        &*self.name == CANONICAL
    }
}

/// Relations to the items of a list (or to one object).
#[derive(Debug)]
pub(crate) struct LinkRule {
    pub(crate) kind: Name,
    pub(crate) table: LinkTable,
    pub(crate) source: LinkSource,
    pub(crate) target: ReferenceRule,
    pub(crate) at: Option<Pick>,
}

/// Where the items of a link stand.
#[derive(Debug)]
pub(crate) enum LinkSource {
    Slot(u32, Items),
    /// An expression makes a list of them.
    Made(Pick),
}

/// Collects the paths of a shape into a tree, each path in a slot of its own.
#[derive(Debug, Default)]
pub(crate) struct TreeBuilder {
    tree: Node,
    slots: u32,
    key_slot: Option<u32>,
    read: Vec<ReadPath>,
}

impl TreeBuilder {
    /// The slot of a path; the same path always has the same slot.
    pub(crate) fn slot(&mut self, keys: &[String]) -> u32 {
        let node = keys
            .iter()
            .fold(&mut self.tree, |node, key| node.child(key));
        *node.slot.get_or_insert_with(|| {
            self.slots += 1;
            self.slots - 1
        })
    }

    /// The slot of the object's own key. It stands nowhere in the tree: who reads a map fills it.
    fn own_key(&mut self) -> u32 {
        *self.key_slot.get_or_insert_with(|| {
            self.slots += 1;
            self.slots - 1
        })
    }

    /// The slot of the object's own key, if a rule reads it.
    pub(crate) fn key_slot(&self) -> Option<u32> {
        self.key_slot
    }

    pub(crate) fn note(&mut self, path: Path, depth: ReadDepth) {
        self.read.push(ReadPath { path, depth });
    }

    pub(crate) fn pick_paths(&mut self, chain: &Chain, depth: ReadDepth) -> Pick {
        Pick::Slots(self.slots_of(chain, depth))
    }

    /// A path that is folded to lower case: `.name | downcase`.
    pub(crate) fn pick_lower_case(&mut self, chain: &Chain, letters: Letters) -> Pick {
        Pick::LowerCase(self.slots_of(chain, ReadDepth::Value), letters)
    }

    fn slots_of(&mut self, chain: &Chain, depth: ReadDepth) -> Vec<u32> {
        let mut slots = Vec::new();
        for path in &chain.paths {
            self.note(path.clone(), depth);
            slots.push(self.slot(&path.keys));
        }
        if chain.ends_in_key {
            slots.push(self.own_key());
        }
        slots
    }

    /// `.noindex == true or .indexable == false`.
    pub(crate) fn pick_signs(&mut self, signs: Vec<(Path, bool)>) -> Pick {
        let slots = signs.into_iter().map(|(path, sign)| {
            let slot = self.slot(&path.keys);
            self.note(path, ReadDepth::Value);
            (slot, sign)
        });
        Pick::Signs(slots.collect())
    }

    pub(crate) fn pick_expression(&mut self, expression: Expression) -> Pick {
        let mut inputs = Vec::new();
        let mut whole = None;
        let mut uses = expression.uses().to_vec();
        // What is looked at as a whole comes before what is looked at in part.
        uses.sort_by_key(Vec::len);
        for keys in uses {
            if keys.is_empty() {
                whole = Some(self.slot(&[]));
            } else {
                let slot = self.slot(&keys);
                add_input(&mut inputs, &keys, slot);
            }
            self.note(Path::to_value(keys), ReadDepth::Whole);
        }
        Pick::Expression {
            expression: Arc::new(expression),
            inputs,
            whole,
        }
    }

    /// The finished tree, how many slots it has, and what is read.
    pub(crate) fn finish(mut self) -> (Node, usize, Vec<ReadPath>) {
        self.tree.index();
        (self.tree, self.slots as usize, self.read)
    }
}
