//! From slices to objects and links.

use super::inputs::gather;
use super::{
    AliasReference, AliasRule, AliasScope, Bounds, Collect, Collected, FieldKind, FieldRule,
    FieldSource, Items, Letters, LinkRule, LinkSource, NESTED_MAX, Notation, Pick, ReferenceRule,
    Shape, ShapeId, Slots, StateRule, Way, fill, items_of,
};
use crate::home::Address;
use crate::html::html_to_text;
use crate::json;
use crate::network::Select;
use crate::stubs::can_be_listed;
use crate::time::TimeFormat;
use kittiwake_model::value::is_id;
use kittiwake_model::{
    Alias, Group, Identity, Key, Link, LinkTable, Name, Object, Reference, Standing, Value,
    WorldTime,
};
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;
use std::borrow::Cow;
use url::Url;

/// Everything read from one answer so far.
pub(crate) struct Reader<'n, 'de> {
    pub(crate) network: &'n Name,
    pub(crate) shapes: &'n [Shape],
    /// The host that was asked: ids of this host are valid there.
    pub(crate) host: &'n str,
    /// The address that was asked.
    url: &'n Url,
    /// What was asked about, if that is one object: who an object is that does not say so itself.
    subject: Option<(Key, &'n Identity)>,
    pub(crate) notation: Notation,
    pub(crate) objects: Vec<Object>,
    pub(crate) links: Vec<Link>,
    /// Ids that stubs name, each with the query that is to be asked for it.
    pub(crate) stubs: Vec<(Name, String)>,
    pub(crate) mended: u32,
    bounds: Bounds,
    /// Whether there was more than one answer may hold.
    pub(crate) is_full: bool,
    /// Nested objects that were read, lately if there are many. A page repeats its author in every
    /// post, byte for byte.
    recent: Vec<(ShapeId, &'de str, u32)>,
}

/// Enough for a page of posts with all who wrote them and all that they mention.
const RECENT_MAX: usize = 128;

impl<'n, 'de> Reader<'n, 'de> {
    pub(crate) fn new(
        network: &'n Name,
        shapes: &'n [Shape],
        (host, url): (&'n str, &'n Url),
        subject: Option<(Key, &'n Identity)>,
        notation: Notation,
    ) -> Self {
        Self {
            network,
            shapes,
            host,
            url,
            subject,
            notation,
            objects: Vec::new(),
            links: Vec::new(),
            stubs: Vec::new(),
            mended: 0,
            bounds: notation.bounds(),
            is_full: false,
            recent: Vec::new(),
        }
    }

    /// Reads one item of an answer: an object or, where an alias says what it means, a bare id. Its
    /// place in `objects`. A null is nobody.
    pub(crate) fn read_item(
        &mut self,
        shape_id: ShapeId,
        alias: Option<&AliasReference>,
        key: Option<&'de str>,
        raw: &'de str,
    ) -> Option<u32> {
        if json::is_null(raw) {
            return None;
        }
        match alias {
            Some(alias) if !json::is_object(raw) => self.name_item(shape_id, alias, raw),
            _ => self.read_slice(shape_id, key, raw, 0),
        }
    }

    /// Reads the object that stands in an item. Several selects may look at the same one.
    pub(crate) fn read_wrapped(
        &mut self,
        select: &'n Select,
        key: Option<&'de str>,
        raw: &'de str,
    ) -> Option<u32> {
        if select.alias.is_some() || !json::is_object(raw) {
            return self.read_item(select.shape, select.alias.as_ref(), key, raw);
        }
        self.read_nested(select.shape, key, raw, 0)
    }

    /// Whether a condition holds something other than null and false; none always does.
    pub(crate) fn holds(&mut self, condition: Option<&Pick>, slots: &Slots<'de>) -> bool {
        let Some(condition) = condition else {
            return true;
        };
        let found = self.pick(condition, slots);
        found.is_some_and(|raw| !json::is_falsy(&raw))
    }

    /// Takes the ids that a stub names: one, a list of them, or none.
    pub(crate) fn take_stub(&mut self, query: &Name, pick: &Pick, slots: &Slots<'de>) {
        let Some(raw) = self.pick(pick, slots) else {
            return;
        };
        if json::is_null(&raw) {
            return;
        }
        let items = if raw.starts_with('[') {
            Items::List
        } else {
            Items::One
        };
        let ids = items_of(items, self.notation, &raw);
        for (_, id) in ids.into_iter().flatten() {
            if self.stubs.len() >= self.bounds.links {
                self.is_full = true;
                return;
            }
            if let Some(id) = self.id_of(id) {
                if can_be_listed(&id) {
                    self.stubs.push((query.clone(), id));
                } else {
                    self.mended += 1;
                }
            }
        }
    }

    /// An object of which an answer tells its id and nothing else.
    fn name_item(&mut self, shape_id: ShapeId, alias: &AliasReference, raw: &str) -> Option<u32> {
        // Objects that are only named are as small as links.
        if self.objects.len() >= self.bounds.links {
            self.is_full = true;
            return None;
        }
        let id = self.id_of(raw)?;
        let shape = &self.shapes[shape_id];
        let place = self.objects.len() as u32;
        self.objects.push(Object {
            identity: self.named(&shape.kind, alias, id),
            known_as: None,
            table: shape.table,
            groups: Vec::new(),
            standing: Standing::Present,
        });
        Some(place)
    }

    /// Reads one object from its slice, and from its key in a map; its place in `objects`.
    pub(super) fn read_slice(
        &mut self,
        shape_id: ShapeId,
        key: Option<&'de str>,
        raw: &'de str,
        depth: u32,
    ) -> Option<u32> {
        let shape = &self.shapes[shape_id];
        if !json::is_object(raw) || depth > NESTED_MAX {
            self.mended += 1;
            return None;
        }
        let mut slots: Slots<'de> = vec![None; shape.slots];
        fill(&shape.tree, raw, &mut slots, &mut self.mended);
        if let Some(slot) = shape.key_slot {
            slots[slot as usize] = key;
        }
        self.assemble(shape, &slots, depth)
    }

    fn read_nested(
        &mut self,
        shape_id: ShapeId,
        key: Option<&'de str>,
        raw: &'de str,
        depth: u32,
    ) -> Option<u32> {
        // The same words under another key are somebody else.
        if key.is_some() && self.shapes[shape_id].key_slot.is_some() {
            return self.read_slice(shape_id, key, raw, depth);
        }
        let known = self
            .recent
            .iter()
            .find(|(id, slice, _)| *id == shape_id && slice.len() == raw.len() && *slice == raw);
        if let Some((_, _, place)) = known {
            return Some(*place);
        }
        let place = self.read_slice(shape_id, key, raw, depth)?;
        let read = (shape_id, raw, place);
        if self.recent.len() < RECENT_MAX {
            self.recent.push(read);
        } else {
            self.recent[place as usize % RECENT_MAX] = read;
        }
        Some(place)
    }

    fn assemble(&mut self, shape: &'n Shape, slots: &Slots<'de>, depth: u32) -> Option<u32> {
        if self.objects.len() >= self.bounds.objects || self.links.len() >= self.bounds.links {
            self.is_full = true;
            return None;
        }
        let identity = self.identity(shape, slots)?;
        let state = self.state(shape, slots);
        let mut own_links = Vec::new();
        let mut groups = Vec::with_capacity(shape.groups.len());
        for rule in &shape.groups {
            let mut fields = Vec::with_capacity(rule.fields.len());
            // A network blanks what it still says of an object that is gone; that is no observation.
            let told = |field: &&FieldRule| state.is_none_or(|state| state.keeps(&field.name));
            for field in rule.fields.iter().filter(told) {
                if let Some(value) = self.field(field, slots, depth, &mut own_links) {
                    fields.push((field.name.clone(), value));
                }
            }
            if !fields.is_empty() {
                groups.push(Group {
                    name: rule.name.clone(),
                    fields,
                });
            }
        }
        for rule in shape.links.iter().filter(|_| state.is_none()) {
            self.links_of(rule, slots, depth, &mut own_links);
        }
        let standing = match state {
            Some(state) => Standing::Invalid(state.outcome),
            None if shape.shows_presence => Standing::Present,
            None => Standing::Hearsay,
        };
        let place = self.objects.len() as u32;
        self.objects.push(Object {
            identity,
            known_as: None,
            table: shape.table,
            groups,
            standing,
        });
        self.links.extend(own_links.into_iter().map(|link| Link {
            table: link.table,
            kind: link.kind,
            from: Reference::Object(place),
            to: link.to,
            at: link.at,
            walk: None,
        }));
        Some(place)
    }

    /// Who it is; `None` (and counted) when nothing usable says so.
    fn identity(&mut self, shape: &'n Shape, slots: &Slots<'de>) -> Option<Identity> {
        let mut canonical = None;
        if let Some(pick) = &shape.canonical
            && let Some(raw) = self.pick_one(pick, slots)
            && !json::is_null(&raw)
        {
            let id = self.id_of(&raw)?;
            canonical = Some(if shape.is_within_subject {
                self.within_subject(&id)?
            } else {
                id
            });
        }
        let mut aliases = Vec::with_capacity(shape.aliases.len());
        for rule in &shape.aliases {
            let Some(raw) = self
                .pick_one(&rule.pick, slots)
                .filter(|raw| !json::is_null(raw))
            else {
                continue;
            };
            match self.id_of(&raw) {
                Some(id) => aliases.extend(self.alias(rule, id, slots)),
                // A handle or an address that cannot be used leaves the object as it is; a broken id
                // does not.
                None if rule.is_movable || matches!(rule.scope, AliasScope::Everywhere) => {}
                None => return None,
            }
        }
        let identity = Identity {
            network: self.network.clone(),
            kind: shape.kind.clone(),
            canonical,
            aliases,
        };
        if identity.is_anonymous() {
            return self.unnamed(shape);
        }
        Some(identity)
    }

    /// What says nothing of who it is: the subject, if its type never does.
    #[cold]
    fn unnamed(&mut self, shape: &'n Shape) -> Option<Identity> {
        if shape.is_nameless() {
            return self.subject.map(|(_, identity)| identity.clone());
        }
        self.mended += 1;
        None
    }

    /// An alias where it is valid; `None` when the answer names no host that could be.
    fn alias(&mut self, rule: &'n AliasRule, id: String, slots: &Slots<'de>) -> Option<Alias> {
        let host = match &rule.scope {
            AliasScope::Everywhere => String::new(),
            AliasScope::Asked => self.host.to_owned(),
            AliasScope::At(pick) => self.host_at(pick, slots)?,
        };
        Some(Alias {
            name: rule.name.clone(),
            id: if rule.is_qualified {
                self.qualify(id)
            } else {
                id
            },
            host,
            movable: rule.is_movable,
        })
    }

    /// The host of an address that the answer gives.
    fn host_at(&mut self, pick: &Pick, slots: &Slots<'de>) -> Option<String> {
        let raw = self.pick(pick, slots).filter(|raw| !json::is_null(raw))?;
        let address = json::text(&raw, &mut 0).and_then(|text| Address::of(&text));
        if address.is_none() {
            self.mended += 1;
        }
        address.map(|address| address.host)
    }

    fn scope(&self, is_host_scoped: bool) -> String {
        if is_host_scoped {
            self.host.to_owned()
        } else {
            String::new()
        }
    }

    fn qualify(&self, mut text: String) -> String {
        if !text.is_empty() && !text.contains('@') {
            text.push('@');
            text.push_str(self.host);
        }
        text
    }

    fn id_of(&mut self, raw: &str) -> Option<String> {
        let id = json::id_text(raw, &mut 0).filter(|id| is_id(id));
        if id.is_none() {
            self.mended += 1;
        }
        id
    }

    /// An id that means nothing without what was asked about.
    fn within_subject(&mut self, id: &str) -> Option<String> {
        let subject = self.subject.and_then(|(_, it)| it.canonical.as_deref());
        let whole = subject.map(|subject| format!("{subject}#{id}"));
        let whole = whole.filter(|whole| is_id(whole));
        if whole.is_none() {
            self.mended += 1;
        }
        whole
    }

    /// The first sign that the object is gone.
    fn state(&mut self, shape: &'n Shape, slots: &Slots<'de>) -> Option<&'n StateRule> {
        let mut states = shape.states.iter();
        states.find(|state| {
            let told = self.pick(&state.pick, slots);
            told.is_some_and(|raw| !json::is_falsy(&raw))
        })
    }

    /// The JSON text that a rule asks for; `None` when it was not observed.
    pub(super) fn pick(&mut self, pick: &Pick, slots: &Slots<'de>) -> Option<Cow<'de, str>> {
        match pick {
            Pick::Slots(places) => pick_slot(places, slots).map(Cow::Borrowed),
            Pick::LowerCase(places, letters) => {
                pick_text(places, slots, self.notation).map(|raw| lower_case(raw, *letters))
            }
            Pick::Signs(signs) => read_signs(signs, slots, self.notation),
            Pick::Expression {
                expression,
                inputs,
                whole,
            } => {
                let input = match whole {
                    Some(slot) => Cow::Borrowed(slots[*slot as usize]?),
                    None => Cow::Owned(gather(inputs, slots)?),
                };
                let Ok(result) = expression.run(&input, self.host) else {
                    self.mended += 1;
                    return None;
                };
                result.map(Cow::Owned)
            }
        }
    }

    /// The same where one value is wanted: of an element in XML that is its text.
    fn pick_one(&mut self, pick: &Pick, slots: &Slots<'de>) -> Option<Cow<'de, str>> {
        match pick {
            Pick::Slots(places) => pick_text(places, slots, self.notation).map(Cow::Borrowed),
            _ => match self.pick(pick, slots)? {
                Cow::Owned(raw) if !raw.starts_with('"') => {
                    Some(Cow::Owned(self.notation.text_in(&raw).to_owned()))
                }
                raw => Some(raw),
            },
        }
    }

    fn field(
        &mut self,
        rule: &'n FieldRule,
        slots: &Slots<'de>,
        depth: u32,
        links: &mut Vec<OwnLink>,
    ) -> Option<Value> {
        match &rule.source {
            FieldSource::Value(ways) => self.value_field(ways, slots),
            FieldSource::Reference(ways) => self.reference_field(ways, slots, depth, links),
        }
    }

    /// A value, in the first of the ways that holds something.
    fn value_field(&mut self, ways: &[(Pick, FieldKind)], slots: &Slots<'de>) -> Option<Value> {
        let mut is_observed = false;
        for (pick, kind) in ways {
            let raw = match kind {
                FieldKind::Json => self.pick(pick, slots),
                _ => self.pick_one(pick, slots),
            };
            let Some(raw) = raw else {
                continue;
            };
            is_observed = true;
            if json::is_null(&raw) {
                continue;
            }
            let value = self.value(kind, &raw);
            if value.is_none() {
                self.mended += 1;
            }
            return value;
        }
        is_observed.then_some(Value::Null)
    }

    fn value(&mut self, kind: &FieldKind, raw: &str) -> Option<Value> {
        let notation = self.notation;
        let mended = &mut self.mended;
        match kind {
            FieldKind::Text { is_qualified } => {
                let text = text_of(raw, mended)?;
                Some(Value::Text(if *is_qualified {
                    self.qualify(text)
                } else {
                    text
                }))
            }
            FieldKind::Address => Some(Value::Text(self.complete(raw)?)),
            FieldKind::Html => Some(Value::Text(html_to_text(&json::text(raw, mended)?))),
            FieldKind::Time(format) => {
                let (at_us, clamped) = time_of(format, raw, mended)?;
                *mended += u32::from(clamped);
                Some(Value::Time { at_us, clamped })
            }
            FieldKind::Int => json::integer(unquoted(raw, notation)).map(Value::Int),
            FieldKind::Float => json::float(unquoted(raw, notation)).map(Value::Float),
            FieldKind::Bool => json::boolean(unquoted(raw, notation)).map(Value::Bool),
            FieldKind::Json => json::compact(raw, mended).map(Value::Json),
        }
    }

    /// An address, whole.
    fn complete(&mut self, raw: &str) -> Option<String> {
        let text = json::text(raw, &mut self.mended)?;
        match self.url.join(text.trim()) {
            Ok(whole) if whole.has_host() => Some(whole.into()),
            // What is no address on the web (`mailto:…`) stays as it is.
            Ok(_) => Some(text),
            Err(_) => None,
        }
    }

    /// Another object, in the first of the ways that holds something.
    fn reference_field(
        &mut self,
        ways: &'n [(Way, ReferenceRule)],
        slots: &Slots<'de>,
        depth: u32,
        links: &mut Vec<OwnLink>,
    ) -> Option<Value> {
        let mut is_observed = false;
        for (way, reference) in ways {
            let to = match way {
                Way::Subject => match self.subject {
                    Some((key, asked)) if asked.kind == reference.kind => Reference::Key(key),
                    _ => continue,
                },
                Way::Told(pick) => match self.pick(pick, slots) {
                    None => continue,
                    Some(raw) if json::is_null(&raw) => {
                        is_observed = true;
                        continue;
                    }
                    Some(Cow::Borrowed(raw)) => self.reference(reference, None, raw, depth)?,
                    // What an expression made is an id; no answer describes it in place.
                    Some(Cow::Owned(id)) => self.reference_by_id(reference, &id)?,
                },
            };
            return Some(self.refer(reference, to, slots, links));
        }
        is_observed.then_some(Value::Null)
    }

    fn refer(
        &mut self,
        reference: &'n ReferenceRule,
        to: Reference,
        slots: &Slots<'de>,
        links: &mut Vec<OwnLink>,
    ) -> Value {
        if let Some(kind) = &reference.link {
            links.push(OwnLink {
                table: LinkTable::Links,
                kind: kind.clone(),
                to: to.clone(),
                at: self.link_time(reference.link_at.as_ref(), slots),
            });
        }
        Value::Object(to)
    }

    /// An object in place becomes an object of its own; a bare id becomes a name.
    fn reference(
        &mut self,
        rule: &'n ReferenceRule,
        key: Option<&'de str>,
        raw: &'de str,
        depth: u32,
    ) -> Option<Reference> {
        if json::is_object(raw) {
            return self
                .read_nested(rule.shape, key, raw, depth + 1)
                .map(Reference::Object);
        }
        self.reference_by_id(rule, raw)
    }

    pub(super) fn reference_by_id(
        &mut self,
        rule: &'n ReferenceRule,
        raw: &str,
    ) -> Option<Reference> {
        let Some(alias) = &rule.alias else {
            self.mended += 1;
            return None;
        };
        let id = self.id_of(raw)?;
        let identity = self.named(&rule.kind, alias, id);
        Some(Reference::Identity(Box::new(identity)))
    }

    fn named(&self, kind: &Name, alias: &AliasReference, id: String) -> Identity {
        let mut identity = Identity {
            network: self.network.clone(),
            kind: kind.clone(),
            canonical: None,
            aliases: Vec::new(),
        };
        if alias.is_canonical() {
            identity.canonical = Some(id);
            return identity;
        }
        identity.aliases.push(Alias {
            name: alias.name.clone(),
            id: if alias.is_qualified {
                self.qualify(id)
            } else {
                id
            },
            host: self.scope(alias.is_host_scoped),
            movable: alias.is_movable,
        });
        identity
    }

    fn links_of(
        &mut self,
        rule: &'n LinkRule,
        slots: &Slots<'de>,
        depth: u32,
        links: &mut Vec<OwnLink>,
    ) {
        let (slot, items) = match &rule.source {
            LinkSource::Slot(slot, items) => (*slot, *items),
            LinkSource::Made(pick) => return self.made_links(rule, pick, slots, depth, links),
        };
        let Some(raw) = slots[slot as usize].filter(|raw| !json::is_null(raw)) else {
            return;
        };
        if raw == "[]" {
            return;
        }
        let Some(items) = items_of(items, self.notation, raw) else {
            self.mended += 1;
            return;
        };
        let at = self.link_time(rule.at.as_ref(), slots);
        for (key, item) in items.filter(|(_, item)| !json::is_null(item)) {
            if self.is_full_of_links(links) {
                return;
            }
            if let Some(to) = self.reference(&rule.target, key, item, depth) {
                links.push(OwnLink {
                    table: rule.table,
                    kind: rule.kind.clone(),
                    to,
                    at,
                });
            }
        }
    }

    /// Whether one answer may hold no further link.
    pub(super) fn is_full_of_links(&mut self, links: &[OwnLink]) -> bool {
        self.is_full |= links.len() >= self.bounds.links;
        self.is_full
    }

    /// A reader of what is not part of the answer but was made out of it.
    pub(super) fn beside<'x>(&self) -> Reader<'n, 'x> {
        Reader::new(
            self.network,
            self.shapes,
            (self.host, self.url),
            self.subject,
            self.notation,
        )
    }

    pub(crate) fn link_time(
        &mut self,
        pick: Option<&Pick>,
        slots: &Slots<'de>,
    ) -> Option<WorldTime> {
        let raw = self.pick(pick?, slots)?;
        let (at_us, _) = time_of(&TimeFormat::Rfc3339, &raw, &mut 0)?;
        Some(WorldTime(at_us))
    }
}

/// A link whose source is the object that is being read.
pub(super) struct OwnLink {
    pub(super) table: LinkTable,
    pub(super) kind: Name,
    pub(super) to: Reference,
    pub(super) at: Option<WorldTime>,
}

fn pick_slot<'de>(places: &[u32], slots: &Slots<'de>) -> Option<&'de str> {
    first_of(places.iter().filter_map(|place| slots[*place as usize]))
}

fn pick_text<'de>(places: &[u32], slots: &Slots<'de>, notation: Notation) -> Option<&'de str> {
    let there = places.iter().filter_map(|place| slots[*place as usize]);
    first_of(there.map(|raw| notation.text_in(raw)))
}

/// The first that holds something, else the last.
fn first_of<'de>(all: impl Iterator<Item = &'de str>) -> Option<&'de str> {
    let mut found = None;
    for raw in all {
        found = Some(raw);
        if !json::is_falsy(raw) {
            break;
        }
    }
    found
}

/// Whether one of the signs is given; `None` when none of the keys is there.
fn read_signs(
    signs: &[(u32, bool)],
    slots: &Slots<'_>,
    notation: Notation,
) -> Option<Cow<'static, str>> {
    let mut is_observed = false;
    for (slot, sign) in signs {
        let Some(raw) = slots[*slot as usize] else {
            continue;
        };
        is_observed = true;
        if unquoted(raw, notation).trim() == if *sign { "true" } else { "false" } {
            return Some(Cow::Borrowed("true"));
        }
    }
    is_observed.then_some(Cow::Borrowed("false"))
}

/// XML has no numbers and no truth values but in texts.
fn unquoted(raw: &str, notation: Notation) -> &str {
    let inner = || raw.strip_prefix('"')?.strip_suffix('"');
    match notation {
        Notation::Json | Notation::Car => raw,
        Notation::Xml | Notation::Html => inner().unwrap_or(raw),
    }
}

/// A string in lower case; what is no string stays, and is refused where it is used.
fn lower_case(raw: &str, letters: Letters) -> Cow<'_, str> {
    let is_plain = !raw.contains('\\') && (letters == Letters::Ascii || raw.is_ascii());
    if !is_plain {
        let text = json::text(raw, &mut 0).unwrap_or_default();
        let lower = match letters {
            Letters::Ascii => text.to_ascii_lowercase(),
            Letters::All => text.to_lowercase(),
        };
        return Cow::Owned(json::quote(&lower));
    }
    if raw.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(raw.to_ascii_lowercase());
    }
    Cow::Borrowed(raw)
}

fn text_of(raw: &str, mended: &mut u32) -> Option<String> {
    if raw.starts_with('"') {
        json::text(raw, mended)
    } else {
        json::id_text(raw, mended)
    }
}

fn time_of(format: &TimeFormat, raw: &str, mended: &mut u32) -> Option<(i64, bool)> {
    if raw.starts_with('"') {
        format.read_text(&json::text(raw, mended)?)
    } else if json::is_number(raw) {
        format.read_number(raw)
    } else {
        None
    }
}

/// Reads one object straight from the stream; its place in `objects`.
pub(crate) struct Element<'a, 'n, 'de> {
    pub(crate) reader: &'a mut Reader<'n, 'de>,
    pub(crate) shape: ShapeId,
}

impl<'de> DeserializeSeed<'de> for Element<'_, '_, 'de> {
    type Value = Option<u32>;

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        let shape = &self.reader.shapes[self.shape];
        if shape.tree.slot.is_some() {
            let raw = <&'de RawValue as serde::Deserialize>::deserialize(input)?;
            return Ok(self.reader.read_item(self.shape, None, None, raw.get()));
        }
        let mut slots: Slots<'de> = vec![None; shape.slots];
        let collect = Collect {
            node: &shape.tree,
            slots: &mut slots,
            mended: &mut self.reader.mended,
        };
        match collect.deserialize(input)? {
            Collected::Object => Ok(self.reader.assemble(shape, &slots, 0)),
            Collected::Null => Ok(None),
            Collected::Other => {
                self.reader.mended += 1;
                Ok(None)
            }
        }
    }
}
