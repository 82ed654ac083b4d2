//! `[types.…]`: what objects there are and how they are written.

use super::source::{Placed, Section};
use super::{fields, hosts, keys, named_sections};
use crate::expression::Expression;
use crate::network::{Query, Type};
use crate::path::{Chain, Path, parse_chain, parse_path};
use crate::shape::{
    AliasReference, AliasRule, AliasScope, FieldKind, FieldRule, FieldSource, GroupRule, Items,
    Letters, LinkRule, LinkSource, Pick, ReadDepth, ReferenceRule, Shape, ShapeId, StateRule,
    TreeBuilder,
};
use kittiwake_model::{LinkTable, Name, OutcomeCode, Table};
use std::ops::Range;

/// All types and shapes of a definition.
#[derive(Default)]
pub(super) struct Types {
    pub(super) kinds: Vec<Type>,
    pub(super) shapes: Vec<Shape>,
    /// What every type declares before its shapes are read, since types refer to one another.
    outlines: Vec<Outline>,
}

pub(super) struct Outline {
    name: Name,
    /// `None` when the definition names one that is not there.
    pub(super) table: Option<Table>,
    has_canonical: bool,
    /// Whether its canonical ids are ids within what was asked about.
    is_within_subject: bool,
    aliases: Vec<AliasReference>,
    shapes: Vec<(Name, ShapeId)>,
    shape: ShapeId,
}

impl Outline {
    /// Whether answers say which object is meant. Where they do not, a seed or the host does.
    fn is_named(&self) -> bool {
        self.has_canonical || !self.aliases.is_empty()
    }
}

impl Types {
    pub(super) fn names(&self) -> Vec<&str> {
        self.outlines.iter().map(|outline| &*outline.name).collect()
    }

    pub(super) fn outline(&self, name: &str) -> Option<&Outline> {
        self.outlines.iter().find(|outline| &*outline.name == name)
    }

    fn is_within_subject(&self, kind: &str) -> bool {
        self.outline(kind)
            .is_some_and(|outline| outline.is_within_subject)
    }

    pub(super) fn aliases(&self, kind: &str) -> &[AliasReference] {
        self.outline(kind).map_or(&[], |outline| &outline.aliases)
    }

    /// Whether objects of this type have a canonical id: from answers, or from the seed or the host
    /// that names them.
    pub(super) fn has_canonical(&self, kind: &str) -> bool {
        self.outline(kind)
            .is_some_and(|outline| outline.has_canonical || !outline.is_named())
    }

    /// Whether answers name the objects of this type.
    pub(super) fn is_named(&self, kind: &str) -> bool {
        self.outline(kind).is_some_and(Outline::is_named)
    }

    /// The group of a field of this type, however it is written; the first group where no shape
    /// has the field.
    pub(super) fn group_of(&self, kind: &str, field: &str) -> Name {
        let shapes = || self.shapes.iter().filter(|shape| &*shape.kind == kind);
        let mut groups = shapes().flat_map(|shape| &shape.groups);
        let own = groups.find(|group| group.fields.iter().any(|it| &*it.name == field));
        let first = || shapes().find_map(|shape| shape.groups.first());
        let group = own.or_else(first);
        group.map_or_else(|| "content".into(), |group| group.name.clone())
    }

    /// Fields of this type that are whole numbers, beside the columns of its table.
    pub(super) fn own_numbers(&self, kind: &str) -> Vec<&str> {
        let shapes = self.shapes.iter().filter(|shape| &*shape.kind == kind);
        let fields = shapes.flat_map(|shape| shape.groups.iter().flat_map(|it| &it.fields));
        let is_number = |field: &&FieldRule| match &field.source {
            FieldSource::Value(ways) => ways.iter().all(|(_, kind)| matches!(kind, FieldKind::Int)),
            FieldSource::Reference(_) => false,
        };
        fields.filter(is_number).map(|field| &*field.name).collect()
    }

    /// The type that a key names; reported when there is none.
    pub(super) fn kind_at(&self, section: &Section<'_, '_>, key: &str) -> Option<Name> {
        let text = section.need_text(key, &format!("{key} = \"user\""))?;
        let found = self.outline(&text.value);
        if found.is_none() {
            section.unknown_word(&text, &format!("the type at `{key}`"), &self.names());
        }
        found.map(|outline| outline.name.clone())
    }

    /// The shape of a type that `shape` names, or the type's own.
    pub(super) fn shape_at(&self, section: &Section<'_, '_>, kind: &str) -> Option<ShapeId> {
        let outline = self.outline(kind)?;
        let Some(text) = section.text("shape") else {
            return Some(outline.shape);
        };
        let found = outline
            .shapes
            .iter()
            .find(|(name, _)| **name == *text.value);
        if found.is_none() {
            let known: Vec<&str> = outline.shapes.iter().map(|(name, _)| &**name).collect();
            section.unknown_word(&text, &format!("the shape of `{kind}`"), &known);
        }
        found.map(|(_, shape)| *shape)
    }

    /// The alias of a type that a key names; `canonical` is the canonical id.
    pub(super) fn alias_at(
        &self,
        section: &Section<'_, '_>,
        key: &str,
        kind: &str,
    ) -> Option<AliasReference> {
        let text = section.text(key)?;
        let aliases = self.aliases(kind);
        // Nobody but the answer to the same question can name what is known only within it.
        let can_be_named = self.has_canonical(kind) && !self.is_within_subject(kind);
        let canonical = can_be_named.then(AliasReference::canonical);
        let mut all = aliases.iter().chain(&canonical);
        let found = all.find(|alias| *alias.name == *text.value);
        if found.is_none() {
            let all = aliases.iter().chain(&canonical);
            let known: Vec<&str> = all.map(|alias| &*alias.name).collect();
            section.unknown_word(&text, &format!("the alias of `{kind}`"), &known);
        }
        found.cloned()
    }
}

pub(super) fn read_types(top: &Section<'_, '_>, queries: &[String]) -> Types {
    let sections = named_sections(top, "types");
    if sections.is_empty() {
        top.missing("types", "[types.user]");
    }
    let mut types = Types::default();
    let mut shape_count = 0;
    for (name, _, section) in &sections {
        section.expect_keys(keys::TYPE);
        let shape = shape_count;
        shape_count += 1;
        let mut shapes = Vec::new();
        for (shape_name, _, _) in named_sections(section, "shapes") {
            shapes.push((shape_name, shape_count));
            shape_count += 1;
        }
        types.outlines.push(Outline {
            name: name.clone(),
            table: read_table(section),
            has_canonical: section.has("canonical"),
            is_within_subject: section.word("within", &[("subject", true)]).is_some(),
            aliases: outline_aliases(section),
            shapes,
            shape,
        });
    }
    for (name, _, section) in &sections {
        let own = read_shape(section, &types, name);
        let mut read = vec![own];
        for (_, _, inner) in named_sections(section, "shapes") {
            inner.expect_keys(keys::SHAPE);
            read.push(read_shape(&inner, &types, name));
        }
        types.shapes.extend(read);
        let resolve = section.texts("resolve").unwrap_or_default();
        for query in resolve.iter().filter(|it| !queries.contains(&it.value)) {
            let known: Vec<&str> = queries.iter().map(String::as_str).collect();
            section.unknown_word(query, "the query at `resolve`", &known);
        }
        if let Some(outline) = types.outline(name) {
            let one = Type {
                name: name.clone(),
                shape: outline.shape,
                resolve: resolve.into_iter().map(|it| it.value.into()).collect(),
                home: hosts::read_home(section, &types, name),
            };
            types.kinds.push(one);
        }
    }
    types
}

/// A query that resolves has to answer with its subject.
pub(super) fn check_resolve(top: &Section<'_, '_>, types: &Types, queries: &[Query]) {
    for one in &types.kinds {
        let is_named = |query: &&Query| one.resolve.contains(&query.name);
        for query in queries.iter().filter(is_named) {
            let is_fit = query.kind == one.name
                && query.batch_max == 1
                && query.selects.iter().any(|select| select.is_subject);
            if is_fit {
                continue;
            }
            let section = top.table("types").and_then(|types| types.table(&one.name));
            let span = section.map_or(0..0, |section| section.span_of("resolve"));
            let message = format!("the query `{}` cannot resolve a `{}`", query.name, one.name);
            let help = "its `subject` has to be this type, without `batch`, and one select `is_subject = true`";
            top.report(&span, message, help);
        }
    }
}

fn read_table(section: &Section<'_, '_>) -> Option<Table> {
    if !section.has("table") {
        return Some(Table::Objects);
    }
    let tables: Vec<(&str, Table)> = Table::ALL
        .iter()
        .map(|table| (table.name(), *table))
        .collect();
    section.word("table", &tables)
}

fn outline_aliases(section: &Section<'_, '_>) -> Vec<AliasReference> {
    let Some(aliases) = section.table("aliases") else {
        return Vec::new();
    };
    let mut outlines = Vec::new();
    for entry in aliases.entries() {
        // Mistakes in it are reported when the shape is read.
        let option = |key| {
            let section = entry.section.as_ref()?;
            section.has(key).then(|| section.boolean(key)).flatten()
        };
        outlines.push(AliasReference {
            name: entry.name.as_str().into(),
            is_host_scoped: is_host_scoped(entry.section.as_ref()),
            is_movable: option("movable").unwrap_or(false),
            is_qualified: option("qualify").unwrap_or(false),
        });
    }
    outlines
}

/// Whether an alias is valid on one host only: that which was asked, or one that an answer names.
fn is_host_scoped(alias: Option<&Section<'_, '_>>) -> bool {
    let Some(alias) = alias.filter(|alias| alias.has("scope")) else {
        return false;
    };
    alias.is_table("scope") || alias.text("scope").is_some_and(|it| it.value == "host")
}

fn read_shape(section: &Section<'_, '_>, types: &Types, kind: &Name) -> Shape {
    let mut builder = TreeBuilder::default();
    let table = types.outline(kind).and_then(|outline| outline.table);
    let canonical = section
        .text("canonical")
        .and_then(|text| read_pick(section, &mut builder, &text, ReadDepth::Value));
    let aliases = read_aliases(section, &mut builder);
    // A type that nothing names is named by a seed or is the host; its shapes are no other.
    if !section.has("canonical") && aliases.is_empty() && types.is_named(kind) {
        let message = format!("nothing names a `{kind}`");
        section.report(
            &section.span,
            message,
            "write `canonical = \".id\"`, or an alias",
        );
    }
    let groups = fields::read_groups(section, types, table, &mut builder);
    let states = read_states(section, &mut builder, &groups);
    let links = read_links(section, types, &mut builder);
    let ignored = read_ignored(section);
    let present = section.has("present").then(|| section.boolean("present"));
    let key_slot = builder.key_slot();
    let (tree, slots, read) = builder.finish();
    Shape {
        kind: kind.clone(),
        table: table.unwrap_or(Table::Objects),
        tree,
        slots,
        key_slot,
        canonical,
        is_within_subject: types.is_within_subject(kind),
        aliases,
        shows_presence: present.flatten().unwrap_or(true),
        states,
        groups,
        links,
        ignored,
        read,
    }
}

/// A plain path, or an expression.
pub(super) fn read_pick(
    section: &Section<'_, '_>,
    builder: &mut TreeBuilder,
    text: &Placed<String>,
    depth: ReadDepth,
) -> Option<Pick> {
    if let Some(chain) = parse_chain(&text.value) {
        if chain.paths.iter().any(|path| path.each) {
            let message = format!("`{}` stands for many values", text.value);
            let help = "leave out `[]` or `{}`, or write an expression such as `[.list[] | .name]`";
            section.report(&text.span, message, help);
            return None;
        }
        return Some(builder.pick_paths(&chain, depth));
    }
    if let Some((chain, letters)) = parse_lower_case(&text.value) {
        return Some(builder.pick_lower_case(&chain, letters));
    }
    if let Some(signs) = parse_signs(&text.value) {
        return Some(builder.pick_signs(signs));
    }
    match Expression::compile(&text.value) {
        Ok(expression) => Some(builder.pick_expression(expression)),
        Err(fault) => {
            report_expression(section, &text.span, &text.value, &fault);
            None
        }
    }
}

/// `.name | downcase` and `.name | ascii_downcase`.
fn parse_lower_case(text: &str) -> Option<(Chain, Letters)> {
    let (paths, function) = text.rsplit_once('|')?;
    let letters = match function.trim() {
        "downcase" => Letters::All,
        "ascii_downcase" => Letters::Ascii,
        _ => return None,
    };
    let chain = parse_chain(paths)?;
    let is_single = chain.paths.iter().all(|path| !path.each);
    is_single.then_some((chain, letters))
}

/// `.a == true or .b == false`: comparisons of plain paths with truth values, joined by `or`.
fn parse_signs(text: &str) -> Option<Vec<(Path, bool)>> {
    text.split(" or ")
        .map(|part| {
            let (path, value) = part.split_once("==")?;
            let sign = match value.trim() {
                "true" => true,
                "false" => false,
                _ => return None,
            };
            let path = parse_path(path.trim())?;
            (!path.each && !path.keys.is_empty()).then_some((path, sign))
        })
        .collect()
}

/// Reports a type that is to be read where nothing says which object is meant.
pub(super) fn report_nameless(section: &Section<'_, '_>, span: &Range<usize>, kind: &str) {
    let message = format!("nothing in an answer names a `{kind}`");
    let help = format!("write `canonical = \".id\"`, or an alias, in [types.{kind}]");
    section.report(span, message, help);
}

pub(super) fn report_expression(
    section: &Section<'_, '_>,
    span: &Range<usize>,
    text: &str,
    fault: &str,
) {
    let shown: String = text.chars().take(60).collect();
    let message = format!("`{shown}` cannot be used: {fault}");
    let help = "write a path such as `.a.b`, or an expression as docs/definition-format.md allows";
    section.report(span, message, help);
}

fn read_aliases(section: &Section<'_, '_>, builder: &mut TreeBuilder) -> Vec<AliasRule> {
    let Some(aliases) = section.table("aliases") else {
        return Vec::new();
    };
    let mut rules = Vec::new();
    for entry in aliases.entries() {
        if entry.name == "canonical" || entry.name == "host" {
            let message = format!("`{}` is no name for an alias", entry.name);
            aliases.report(
                &entry.span,
                message,
                "choose another: it has a meaning in templates",
            );
        }
        let path = match (&entry.text, &entry.section) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(inner)) => {
                inner.expect_keys(keys::ALIAS);
                inner.need_text("path", "path = \".id\"")
            }
            (None, None) => {
                let message = format!("the alias `{}` must be a path or a table", entry.name);
                let help = format!(
                    "write `{} = {{ path = \".id\", scope = \"host\" }}`",
                    entry.name
                );
                aliases.report(&entry.span, message, help);
                None
            }
        };
        let Some(pick) =
            path.and_then(|path| read_pick(&aliases, builder, &path, ReadDepth::Value))
        else {
            continue;
        };
        let inner = entry.section.as_ref();
        rules.push(AliasRule {
            name: entry.name.as_str().into(),
            pick,
            scope: inner.map_or(AliasScope::Everywhere, |inner| read_scope(inner, builder)),
            is_movable: inner
                .and_then(|inner| inner.boolean("movable"))
                .unwrap_or(false),
            is_qualified: inner
                .and_then(|inner| inner.boolean("qualify"))
                .unwrap_or(false),
        });
    }
    rules
}

/// Where an alias is valid.
fn read_scope(section: &Section<'_, '_>, builder: &mut TreeBuilder) -> AliasScope {
    if !section.has("scope") {
        return AliasScope::Everywhere;
    }
    if section.is_table("scope") {
        let pick = section.table("scope").and_then(|scope| {
            scope.expect_keys(keys::ALIAS_SCOPE);
            let host = scope.need_text("host", "host = \".service.endpoint\"")?;
            read_pick(&scope, builder, &host, ReadDepth::Value)
        });
        return pick.map_or(AliasScope::Everywhere, AliasScope::At);
    }
    let is_asked = section.word("scope", &[("host", true), ("everywhere", false)]);
    match is_asked {
        Some(true) => AliasScope::Asked,
        _ => AliasScope::Everywhere,
    }
}

fn read_states(
    section: &Section<'_, '_>,
    builder: &mut TreeBuilder,
    groups: &[GroupRule],
) -> Vec<StateRule> {
    let Some(states) = section.table("states") else {
        return Vec::new();
    };
    let mut rules = Vec::new();
    for entry in states.entries() {
        let name = Placed {
            value: entry.name,
            span: entry.span,
        };
        let outcome = outcome_of(&states, &name);
        let (path, keeps) = match (entry.text, &entry.section) {
            (Some(text), _) => (Some(text), Vec::new()),
            (None, Some(inner)) => {
                inner.expect_keys(keys::STATE);
                (
                    inner.need_text("path", "path = \".suspended\""),
                    read_keeps(inner, groups),
                )
            }
            (None, None) => {
                let message = format!("the state `{}` must be a path or a table", name.value);
                let help = format!("write `{} = \".suspended\"`", name.value);
                states.report(&name.span, message, help);
                (None, Vec::new())
            }
        };
        let pick = path.and_then(|path| read_pick(&states, builder, &path, ReadDepth::Value));
        if let (Some(outcome), Some(pick)) = (outcome, pick) {
            rules.push(StateRule {
                outcome,
                pick,
                keeps,
            });
        }
    }
    rules
}

/// The fields that are true of an object that is gone as well.
fn read_keeps(section: &Section<'_, '_>, groups: &[GroupRule]) -> Vec<String> {
    let fields = groups.iter().flat_map(|group| &group.fields);
    let known: Vec<&str> = fields.map(|field| &*field.name).collect();
    let mut keeps = Vec::new();
    for word in section.texts("keeps").unwrap_or_default() {
        if !known.contains(&word.value.as_str()) {
            section.unknown_word(&word, "a field", &known);
        }
        keeps.push(word.value);
    }
    keeps
}

/// The outcome that a word names; `not_found` and `not found` are the same.
pub(super) fn outcome_of(section: &Section<'_, '_>, word: &Placed<String>) -> Option<OutcomeCode> {
    let outcome = word.value.replace('_', " ").parse().ok();
    if outcome.is_none() {
        let known: Vec<&str> = OutcomeCode::ALL.iter().map(|code| code.code()).collect();
        section.unknown_word(word, "an outcome", &known);
    }
    outcome
}

/// `type`, `shape` and `alias` of a field or a link.
pub(super) fn read_target(section: &Section<'_, '_>, types: &Types) -> Option<ReferenceRule> {
    let kind = types.kind_at(section, "type")?;
    let is_asked = |path: Placed<String>| path.value == fields::SUBJECT;
    if !types.is_named(&kind) && !section.text("path").is_some_and(is_asked) {
        report_nameless(section, &section.span_of("type"), &kind);
    }
    let shape = types.shape_at(section, &kind)?;
    Some(ReferenceRule {
        shape,
        alias: types.alias_at(section, "alias", &kind),
        kind,
        link: None,
        link_at: None,
    })
}

pub(super) fn read_at(section: &Section<'_, '_>, builder: &mut TreeBuilder) -> Option<Pick> {
    let text = section.text("at")?;
    read_pick(section, builder, &text, ReadDepth::Value)
}

const LINK_TABLES: &[(&str, LinkTable)] = &[
    ("links", LinkTable::Links),
    ("user_relations", LinkTable::UserRelations),
    ("user_tags", LinkTable::UserTags),
];

pub(super) fn link_table(section: &Section<'_, '_>) -> LinkTable {
    section
        .word("table", LINK_TABLES)
        .unwrap_or(LinkTable::Links)
}

fn read_links(
    section: &Section<'_, '_>,
    types: &Types,
    builder: &mut TreeBuilder,
) -> Vec<LinkRule> {
    let mut rules = Vec::new();
    for (kind, _, link) in named_sections(section, "links") {
        link.expect_keys(keys::LINK);
        let path = link.need_text("path", "path = \".tags[]\"");
        let target = read_target(&link, types);
        let (Some(text), Some(target)) = (path, target) else {
            continue;
        };
        let Some(source) = read_link_source(&link, &text, target.shape, builder) else {
            continue;
        };
        rules.push(LinkRule {
            kind,
            table: link_table(&link),
            source,
            target,
            at: read_at(&link, builder),
        });
    }
    rules
}

/// A plain path to the items of a link, or an expression that makes a list of them.
fn read_link_source(
    link: &Section<'_, '_>,
    text: &Placed<String>,
    shape: ShapeId,
    builder: &mut TreeBuilder,
) -> Option<LinkSource> {
    let Some(path) = parse_path(&text.value) else {
        let pick = read_pick(link, builder, text, ReadDepth::Value)?;
        return Some(LinkSource::Made(pick));
    };
    if path.keys.is_empty() {
        let message = format!("`{}` is no plain path to a list", text.value);
        let help = "write for example `.tags[]` or `.users{}`";
        link.report(&text.span, message, help);
        return None;
    }
    let slot = builder.slot(&path.keys);
    let items = Items::at(&path);
    builder.note(path, ReadDepth::Shape(shape));
    Some(LinkSource::Slot(slot, items))
}

/// Paths that are left out on purpose, each in its parts: `.feed[].reason` is `.feed[]`, then `.reason`.
pub(super) fn read_ignored(section: &Section<'_, '_>) -> Vec<Vec<Path>> {
    let mut paths = Vec::new();
    for ignored in section.tables("ignored") {
        ignored.expect_keys(keys::IGNORED);
        let reason = ignored.need_text("reason", "reason = \"a matter of the viewer\"");
        if reason.is_some_and(|reason| reason.value.trim().is_empty()) {
            ignored.report(&ignored.span_of("reason"), "the reason is empty", "say why");
        }
        let Some(text) = ignored.need_text("path", "path = \".muted\"") else {
            continue;
        };
        let parts = text.value.split_inclusive("[]").map(parse_path);
        if let Some(path) = parts.collect::<Option<Vec<Path>>>() {
            paths.push(path);
        } else {
            let message = format!("`{}` is no plain path", text.value);
            ignored.report(&text.span, message, "write for example `.a.b` or `.list[]`");
        }
    }
    paths
}
