//! Links to what an expression makes out of an answer: ids, or objects of which the answer has no slice.

use super::assemble::OwnLink;
use super::{LinkRule, Pick, Reader, Slots};
use crate::json;
use crate::scan::Elements;
use kittiwake_model::{Object, Reference, Value};

impl<'n, 'de> Reader<'n, 'de> {
    /// Follows the items of a list that an expression makes.
    pub(super) fn made_links(
        &mut self,
        rule: &'n LinkRule,
        pick: &'n Pick,
        slots: &Slots<'de>,
        depth: u32,
        links: &mut Vec<OwnLink>,
    ) {
        let Some(made) = self.pick(pick, slots).filter(|made| !json::is_null(made)) else {
            return;
        };
        if !made.starts_with('[') {
            self.mended += 1;
            return;
        }
        let at = self.link_time(rule.at.as_ref(), slots);
        for item in Elements::of(&made).filter(|item| !json::is_null(item)) {
            if self.is_full_of_links(links) {
                return;
            }
            let to = if json::is_object(item) {
                self.read_made(rule, item, depth)
            } else {
                self.reference_by_id(&rule.target, item)
            };
            links.extend(to.map(|to| OwnLink {
                table: rule.table,
                kind: rule.kind.clone(),
                to,
                at,
            }));
        }
    }

    /// Reads an object from a text that is not part of the answer, and takes in what it holds.
    fn read_made(&mut self, rule: &'n LinkRule, raw: &str, depth: u32) -> Option<Reference> {
        let mut inner = self.beside();
        let place = inner.read_slice(rule.target.shape, None, raw, depth + 1);
        let (objects, links) = (inner.objects, inner.links);
        self.mended = self.mended.saturating_add(inner.mended);
        self.is_full |= inner.is_full;
        let offset = self.objects.len() as u32;
        self.objects.extend(objects.into_iter().map(|mut object| {
            move_references(&mut object, offset);
            object
        }));
        self.links.extend(links.into_iter().map(|mut link| {
            move_reference(&mut link.from, offset);
            move_reference(&mut link.to, offset);
            link
        }));
        place.map(|place| Reference::Object(place + offset))
    }
}

fn move_references(object: &mut Object, offset: u32) {
    let fields = object.groups.iter_mut().flat_map(|group| &mut group.fields);
    for (_, value) in fields {
        if let Value::Object(reference) = value {
            move_reference(reference, offset);
        }
    }
}

const fn move_reference(reference: &mut Reference, offset: u32) {
    if let Reference::Object(place) = reference {
        *place += offset;
    }
}
