//! `[queries.…]`: what can be asked, how it pages, and what is in the answer.

use super::hosts::{read_needs, read_whom};
use super::limits::{Declared as DeclaredBudget, read_costs};
use super::paging::{Marks, read_marks, read_page};
use super::sending::{read_parameters, read_sending};
use super::source::{Placed, Section};
use super::types::{Types, link_table, read_at, read_ignored, read_pick, report_nameless};
use super::web::read_web;
use super::{digest_of, keys, named_sections};
use crate::body::Sending;
use crate::home::address_id;
use crate::network::{
    ANSWER_BYTES_MAX, AuthNeed, Batch, BatchStyle, Decode, Filled, HostRule, Query, Select,
    SelectLink,
};
use crate::path::{Path, parse_path};
use crate::request::{LOCAL, PATH};
use crate::seed::{Piece, parse_template};
use crate::select::Around;
use crate::shape::{Items, Node, Pick, ReadDepth, ReadPath, ShapeId, TreeBuilder};
use crate::stubs::{Expand, STUB};
use kittiwake_model::{ColumnKind, List, Name};
use url::Url;

/// Pages of one walk when the definition names no bound.
const PAGES_MAX_DEFAULT: u32 = 10_000;

pub(super) const LISTS: &[(&str, List)] = &[
    ("following", List::Following),
    ("followers", List::Followers),
];

const DECODES: &[(&str, Decode)] = &[
    ("json", Decode::Json),
    ("xml", Decode::Xml),
    ("any", Decode::Any),
    ("car", Decode::Car),
    ("html", Decode::Html),
];

/// What a definition declares that queries may name.
pub(super) struct Declared<'d> {
    pub(super) types: &'d Types,
    pub(super) budgets: &'d [DeclaredBudget],
    pub(super) host: &'d HostRule,
    pub(super) hosts: &'d [(Name, Url)],
    pub(super) capabilities: &'d [String],
}

pub(super) fn read_queries(top: &Section<'_, '_>, declared: &Declared<'_>) -> Vec<Query> {
    let sections = named_sections(top, "queries");
    if sections.is_empty() {
        top.missing("queries", "[queries.profile]");
    }
    sections
        .into_iter()
        .filter_map(|(name, _, section)| read_query(name, &section, declared))
        .collect()
}

fn read_query(name: Name, section: &Section<'_, '_>, declared: &Declared<'_>) -> Option<Query> {
    let (types, budgets) = (declared.types, declared.budgets);
    section.expect_keys(keys::QUERY);
    section.text("source");
    let sending = read_sending(section);
    let kind = types.kind_at(section, "subject");
    let path = section.need_text("path", "path = \"/api/v1/accounts/{id}\"");
    let kind_name = kind.as_deref().unwrap_or_default();
    if let Some(path) = &path {
        check_path(section, path);
        let own = without_stub(section, path);
        check_template(section, &own, types, kind_name, &[LOCAL, PATH, ":address"]);
    }
    let proof = types.alias_at(section, "proof", kind_name);
    let hosts = (declared.host, declared.hosts);
    let whom = read_whom(section, types, kind_name, hosts);
    let parameters = read_parameters(section, types, kind_name, &sending);
    let batch = section
        .table("batch")
        .and_then(|batch| read_batch(&batch, types, kind_name, &sending));
    if batch.is_some()
        && let Some(path) = &path
    {
        check_batch_path(section, path);
    }
    let expand = read_expand(section, path.as_ref(), &sending);
    let decode = section.word("decode", DECODES).unwrap_or(Decode::Json);
    let Found {
        tree,
        slots,
        mut read,
        selects,
    } = read_selects(section, types, kind_name, decode);
    check_selects(section, &selects, batch.is_some());
    let page = read_page(section, types, &sending, &mut read);
    let Marks { since, times } = read_marks(section, types);
    let is_conditional = read_conditional(section);
    let auths = [
        ("none", AuthNeed::None),
        ("optional", AuthNeed::Optional),
        ("required", AuthNeed::Required),
    ];
    let list = section.word("list", LISTS);
    if list.is_some() && !section.has("page") {
        let message = "a `list` is walked page by page";
        section.report(
            &section.span_of("list"),
            message,
            "write `page = { style = \"link\", … }`",
        );
    }
    let (batch, batch_max) = batch.unzip();
    let path = path?.value;
    Some(Query {
        paging_digest: paging_digest(section, &path),
        name,
        description: section
            .text("description")
            .map_or_else(String::new, |text| text.value),
        kind: kind?,
        batch_max: batch_max.unwrap_or(1),
        pages_max: if page.is_some() || expand.is_some() {
            section
                .number("pages_max", 1..=1_000_000)
                .unwrap_or(PAGES_MAX_DEFAULT)
        } else {
            1
        },
        list,
        incremental: since.is_some() || times.is_some() || is_conditional,
        is_conditional,
        auth: section.word("auth", &auths).unwrap_or(AuthNeed::Optional),
        scope: section.text("scope").map(|text| text.value),
        whom,
        needs: read_needs(section, declared.capabilities),
        proof: proof.map(|alias| alias.name),
        decode,
        web: read_web(section, decode),
        bytes_max: section.number("bytes_max", 1..=ANSWER_BYTES_MAX),
        path,
        sending,
        parameters,
        batch,
        expand,
        page,
        since,
        times,
        secret_parameters: Vec::new(),
        costs: read_costs(
            section,
            budgets,
            &read_budget_names(section, "budgets", budgets),
        ),
        selects,
        tree,
        slots,
        read,
        ignored: read_ignored(section),
    })
}

/// Whether an answer is asked for only if it has changed. One answer is then all there is.
fn read_conditional(section: &Section<'_, '_>) -> bool {
    let is_conditional = section.boolean("conditional").unwrap_or(false);
    let others = ["page", "incremental", "batch", "method"];
    if is_conditional && let Some(other) = others.into_iter().find(|key| section.has(key)) {
        let message = format!("`conditional` and `{other}` exclude each other");
        let help = "it is for queries with one subject and one page, by GET";
        section.report(&section.span_of("conditional"), message, help);
    }
    is_conditional
}

/// What is found in the answers to a query, and where.
struct Found {
    tree: Node,
    slots: usize,
    read: Vec<ReadPath>,
    selects: Vec<Select>,
}

/// What cursors and marks depend on, as the definition writes it.
fn paging_digest(section: &Section<'_, '_>, path: &str) -> Name {
    const PARTS: &[&str] = &[
        "method",
        "body",
        "graphql",
        "parameters",
        "page",
        "incremental",
    ];
    let parts: Vec<String> = PARTS.iter().map(|key| section.written(key)).collect();
    let mut all: Vec<&str> = parts.iter().map(String::as_str).collect();
    all.push(path);
    // Where it is missing, digests stay what they were before there was such a key.
    let expands = section.written("expands");
    all.extend(section.has("expands").then_some(expands.as_str()));
    digest_of(&all)
}

fn check_path(section: &Section<'_, '_>, path: &Placed<String>) {
    let is_sound = path.value.starts_with('/')
        && !path.value.contains("//")
        && !path.value.contains(['?', '#', ' ', '\\'])
        && !path.value.contains(":address}");
    if !is_sound && address_id(&path.value).is_none() {
        let message = format!("`{}` is no path", path.value);
        let help = "begin it with `/`, and put what follows `?` into `parameters`";
        section.report(&path.span, message, help);
    }
}

/// Subjects that share a call share its path.
fn check_batch_path(section: &Section<'_, '_>, path: &Placed<String>) {
    let pieces = parse_template(&path.value).unwrap_or_default();
    let mut placeholders = pieces.iter().filter_map(|piece| match piece {
        Piece::Placeholder(name) if name != "host" => Some(name),
        _ => None,
    });
    if let Some(name) = placeholders.next() {
        let message = format!("`{{{name}}}` differs among the subjects of a batch");
        let help = "ask for one at a time, or by a path that is the same for all";
        section.report(&path.span, message, help);
    }
}

/// Placeholders have to be aliases of the subject; `endings` are those that they may have.
pub(super) fn check_template(
    section: &Section<'_, '_>,
    text: &Placed<String>,
    types: &Types,
    kind: &str,
    endings: &[&str],
) {
    let Some(pieces) = parse_template(&text.value) else {
        let message = format!("a bracket in `{}` is not closed", text.value);
        section.report(&text.span, message, "write placeholders as `{id}`");
        return;
    };
    if kind.is_empty() {
        return;
    }
    let mut known: Vec<&str> = types
        .aliases(kind)
        .iter()
        .map(|alias| &*alias.name)
        .collect();
    known.push("host");
    if types.has_canonical(kind) {
        known.push("canonical");
    }
    for piece in pieces {
        let Piece::Placeholder(placeholder) = piece else {
            continue;
        };
        let mut shorter = endings.iter().filter_map(|it| placeholder.strip_suffix(it));
        let name = shorter.next().unwrap_or(&placeholder);
        if !known.contains(&name) {
            let word = Placed {
                value: name.to_owned(),
                span: text.span.clone(),
            };
            section.unknown_word(&word, "a placeholder", &known);
        }
    }
}

/// How a query is asked for what stubs of other answers name.
fn read_expand(
    query: &Section<'_, '_>,
    path: Option<&Placed<String>>,
    sending: &Sending,
) -> Option<Expand> {
    let section = query.table("expands")?;
    section.expect_keys(keys::EXPANDS);
    let others = ["page", "incremental", "batch", "conditional"];
    if let Some(other) = others.into_iter().find(|key| query.has(key)) {
        let message = format!("`expands` and `{other}` exclude each other");
        let help =
            "it is for queries about one subject that are asked for ids out of another answer";
        query.report(&query.span_of("expands"), message, help);
    }
    let parameter = section.text("parameter");
    let placeholder = format!("{{{STUB}}}");
    let is_placed = path.is_some_and(|path| path.value.contains(&placeholder));
    if parameter.is_some() == is_placed {
        let message = "the ids of stubs go into one parameter, or one of them into the path";
        let help = "write `parameter = \"children\"`, or `{stub}` in `path`";
        query.report(&query.span_of("expands"), message, help);
    }
    let max = section.number("max", 1..=10_000);
    let Some(parameter) = parameter else {
        for key in ["style", "max"] {
            if section.has(key) {
                let message = format!("`{key}` has no meaning for one id in the path");
                section.report(&section.span_of(key), message, "leave it out");
            }
        }
        return Some(Expand { list: None, max: 1 });
    };
    if !section.has("max") {
        section.missing("max", "max = 100");
    }
    let style = read_list_style(&section, sending);
    Some(Expand {
        list: Some((parameter.value, style)),
        max: max?,
    })
}

/// A path in which no placeholder stands for an id of a stub.
fn without_stub(query: &Section<'_, '_>, path: &Placed<String>) -> Placed<String> {
    let mut own = path.clone();
    if query.has("expands") {
        own.value = path.value.replace(&format!("{{{STUB}}}"), STUB);
    }
    own
}

/// What stubs name has to be asked for by a query about the same subject that takes it.
pub(super) fn check_stubs(top: &Section<'_, '_>, queries: &[Query]) {
    for query in queries {
        let own = top.table("queries").and_then(|all| all.table(&query.name));
        let selects = own.map_or_else(Vec::new, |own| own.tables("selects"));
        for select in selects {
            for stub in select.tables("stubs") {
                let Some(name) = stub.text("query") else {
                    continue;
                };
                let other = queries.iter().find(|other| *other.name == *name.value);
                if other.is_some_and(|other| other.kind == query.kind && other.expands()) {
                    continue;
                }
                let message = format!(
                    "the query `{}` cannot be asked for what is left out of `{}`",
                    name.value, query.name
                );
                let help = "name one about the same `subject`, with `expands`";
                top.report(&name.span, message, help);
            }
        }
    }
}

fn read_batch(
    section: &Section<'_, '_>,
    types: &Types,
    kind: &str,
    sending: &Sending,
) -> Option<(Batch, u32)> {
    section.expect_keys(keys::BATCH);
    let parameter = section.need_text("parameter", "parameter = \"id[]\"");
    let style = read_list_style(section, sending);
    if !section.has("alias") {
        section.missing("alias", "alias = \"id\"");
    }
    let alias = types.alias_at(section, "alias", kind);
    if !section.has("max") {
        section.missing("max", "max = 40");
    }
    let max = section.number("max", 2..=10_000);
    let batch = Batch {
        parameter: parameter?.value,
        style,
        alias: alias?.name,
        missing: section.text("missing").map(|text| text.value.into()),
    };
    Some((batch, max?))
}

/// How several ids are put into one call.
fn read_list_style(section: &Section<'_, '_>, sending: &Sending) -> BatchStyle {
    let styles = [
        ("repeated", BatchStyle::Repeated),
        ("brackets", BatchStyle::Brackets),
        ("comma", BatchStyle::Comma),
        ("list", BatchStyle::List),
    ];
    let usual = if sending.is_json() {
        BatchStyle::List
    } else {
        BatchStyle::Repeated
    };
    let style = section.word("style", &styles).unwrap_or(usual);
    check_batch_style(section, style, sending);
    style
}

/// Those who are missing from a batch are asked for alone, by a query about the same type that
/// answers with its subject.
pub(super) fn check_missing(top: &Section<'_, '_>, queries: &[Query]) {
    for query in queries {
        let Some(name) = query.missing_query() else {
            continue;
        };
        let other = queries.iter().find(|other| other.name == *name);
        let is_fit = other.is_some_and(|other| {
            other.kind == query.kind
                && other.batch.is_none()
                && other.page.is_none()
                && other.selects.iter().any(|select| select.is_subject)
        });
        if is_fit {
            continue;
        }
        let batch = top.table("queries").and_then(|all| all.table(&query.name));
        let batch = batch.and_then(|query| query.table("batch"));
        let span = batch.map_or(0..0, |batch| batch.span_of("missing"));
        let message = format!(
            "the query `{name}` cannot tell who is missing from `{}`",
            query.name
        );
        let help = "name one about the same `subject`, without `batch` and `page`, and with one select `is_subject = true`";
        top.report(&span, message, help);
    }
}

/// A list is a value of JSON; nothing in JSON comes twice under one name.
fn check_batch_style(section: &Section<'_, '_>, style: BatchStyle, sending: &Sending) {
    let help = match (style, sending.is_json()) {
        (BatchStyle::List, false) => "write `style = \"repeated\"`, or `body = \"json\"`",
        (BatchStyle::Repeated | BatchStyle::Brackets, true) => "write `style = \"list\"`",
        _ => return,
    };
    let message = "ids cannot be put so into what is sent";
    section.report(&section.span_of("style"), message, help);
}

/// Budgets by their names: all, where none is named.
pub(super) fn read_budget_names(
    section: &Section<'_, '_>,
    key: &str,
    budgets: &[DeclaredBudget],
) -> Vec<usize> {
    let Some(names) = section.texts(key) else {
        return (0..budgets.len()).collect();
    };
    let known: Vec<&str> = budgets.iter().map(|it| &*it.rule.name).collect();
    let mut places = Vec::new();
    for name in names {
        match known.iter().position(|known| *known == name.value) {
            Some(place) => places.push(place),
            None => section.unknown_word(&name, "a budget", &known),
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

fn read_selects(section: &Section<'_, '_>, types: &Types, subject: &str, decode: Decode) -> Found {
    let mut builder = TreeBuilder::default();
    let mut selects = Vec::new();
    for select in section.tables("selects") {
        select.expect_keys(keys::SELECT);
        let at = select.need_text("at", "at = \".[]\"");
        let kind = types.kind_at(&select, "as");
        let shape = kind.as_ref().and_then(|kind| types.shape_at(&select, kind));
        let link_section = select.table("link");
        let link = link_section.as_ref().and_then(read_select_link);
        let path = at.and_then(|at| {
            let path = parse_path(&at.value);
            if path.is_none() {
                let message = format!("`{}` is no plain path", at.value);
                select.report(
                    &at.span,
                    message,
                    "write for example `.`, `.[]`, `.statuses[]` or `.users{}`",
                );
            }
            path
        });
        let is_subject = select.boolean("is_subject").unwrap_or(false);
        let is_alone = !section.has("batch") && path.as_ref().is_some_and(|path| !path.each);
        if let Some(kind) = &kind {
            check_kind(
                &select,
                types,
                kind,
                is_subject.then_some(subject),
                is_alone,
            );
        }
        let fills = kind
            .as_ref()
            .and_then(|kind| read_fills(&select, types, kind, subject));
        let price = select.text("price").map(|price| price.value);
        let charges_relation = price.is_some() && link_section.is_some();
        let price = price.or_else(|| kind.as_ref().map(ToString::to_string));
        let price: Name = price.unwrap_or_default().into();
        let (Some(path), Some(shape)) = (path, shape) else {
            continue;
        };
        let around = read_around(&select, link_section.as_ref(), (&path, shape));
        builder.note(
            path.clone(),
            match around {
                Some(_) => ReadDepth::Around(selects.len()),
                None => ReadDepth::Shape(shape),
            },
        );
        let parent = path.keys.split_last().map(|(_, parent)| parent);
        let parent = parent.filter(|parent| {
            !matches!(decode, Decode::Json | Decode::Html) && path.each && !parent.is_empty()
        });
        selects.push(Select {
            slot: builder.slot(&path.keys),
            is_top: path.keys.is_empty(),
            items: Items::at(&path),
            parent_slot: parent.map(|keys| builder.slot(keys)),
            shape,
            alias: kind.and_then(|kind| types.alias_at(&select, "alias", &kind)),
            is_subject,
            fills,
            link,
            price,
            charges_relation,
            around,
        });
    }
    if selects.is_empty() && section.tables("selects").is_empty() {
        let example = format!("[[{}.selects]]", section.path);
        section.missing("selects", &example);
    }
    let (tree, slots, read) = builder.finish();
    Found {
        tree,
        slots,
        read,
        selects,
    }
}

/// The field of every item that the subject is: a column for objects of the subject's table.
fn read_fills(
    select: &Section<'_, '_>,
    types: &Types,
    kind: &str,
    subject: &str,
) -> Option<Filled> {
    let word = select.text("fills")?;
    let table = |kind: &str| types.outline(kind).and_then(|outline| outline.table);
    let subject = table(subject)?;
    let known: Vec<&str> = table(kind)?
        .columns()
        .iter()
        .filter(|column| column.kind == ColumnKind::Reference(subject))
        .map(|column| column.name)
        .collect();
    if !known.contains(&word.value.as_str()) {
        let what = format!("a column of a `{kind}` that the subject can be");
        select.unknown_word(&word, &what, &known);
        return None;
    }
    Some(Filled {
        group: types.group_of(kind, &word.value),
        field: word.value.into(),
    })
}

/// Rules on the items as a whole: `only`, `item`, `descend` and the time of the link.
fn read_around(
    select: &Section<'_, '_>,
    link: Option<&Section<'_, '_>>,
    (at, shape): (&Path, ShapeId),
) -> Option<Around> {
    let mut builder = TreeBuilder::default();
    let only = select.text("only");
    let only = only.and_then(|text| read_pick(select, &mut builder, &text, ReadDepth::Whole));
    let link_at = link.and_then(|link| read_at(link, &mut builder));
    let item = plain_path(select, select.text("item"), |path| !path.each);
    let descend: Vec<Path> = select
        .texts("descend")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|text| plain_path(select, Some(text), |path| !path.keys.is_empty()))
        .collect();
    let stubs = read_stubs(select, &mut builder);
    let is_bare = only.is_none() && link_at.is_none() && item.is_none();
    if is_bare && descend.is_empty() && stubs.is_empty() {
        return None;
    }
    let own = item.clone().unwrap_or_else(|| Path::to_value(Vec::new()));
    builder.note(own, ReadDepth::Shape(shape));
    let item = item.map(|path| builder.slot(&path.keys));
    let places = descend
        .iter()
        .map(|path| (builder.slot(&path.keys), Items::at(path)))
        .collect();
    let (tree, slots, read) = builder.finish();
    Some(Around {
        tree,
        slots,
        only,
        item,
        descend: places,
        stubs,
        link_at,
        read,
        descend_paths: descend,
        at: at.clone(),
    })
}

/// What items leave out and name.
fn read_stubs(select: &Section<'_, '_>, builder: &mut TreeBuilder) -> Vec<(Name, Pick)> {
    let mut stubs = Vec::new();
    for stub in select.tables("stubs") {
        stub.expect_keys(keys::STUBS);
        let query = stub.need_text("query", "query = \"more\"");
        let ids = stub.need_text("ids", "ids = \".children\"");
        let ids = ids.and_then(|text| read_pick(&stub, builder, &text, ReadDepth::Whole));
        if let (Some(query), Some(ids)) = (query, ids) {
            stubs.push((query.value.into(), ids));
        }
    }
    stubs
}

/// A plain path of a select that fits where it is wanted.
fn plain_path(
    select: &Section<'_, '_>,
    text: Option<Placed<String>>,
    is_fit: impl Fn(&Path) -> bool,
) -> Option<Path> {
    let text = text?;
    let path = parse_path(&text.value).filter(|path| is_fit(path));
    if path.is_none() {
        let message = format!("`{}` is no plain path to what it is for", text.value);
        select.report(
            &text.span,
            message,
            "write for example `.post`, or `.replies[]`",
        );
    }
    path
}

/// What was asked for is of the query's own type; whatever else an answer holds has to be named
/// by it.
fn check_kind(
    select: &Section<'_, '_>,
    types: &Types,
    kind: &str,
    asked_for: Option<&str>,
    is_alone: bool,
) {
    let span = select.span_of("as");
    let is_known = types.is_named(kind) || (asked_for.is_some() && is_alone) || select.has("alias");
    if !is_known {
        report_nameless(select, &span, kind);
    }
    if let Some(subject) = asked_for
        && subject != kind
        && !subject.is_empty()
    {
        let message = format!("what was asked for is a `{subject}`, not a `{kind}`");
        let help = format!("write `as = \"{subject}\"`, or leave out `is_subject`");
        select.report(&span, message, help);
    }
}

fn read_select_link(section: &Section<'_, '_>) -> Option<SelectLink> {
    section.expect_keys(keys::SELECT_LINK);
    let kind = section.need_text("kind", "kind = \"follow\"");
    let ends = [("subject", true), ("item", false)];
    for (key, example) in [("from", "from = \"subject\""), ("to", "to = \"item\"")] {
        if !section.has(key) {
            section.missing(key, example);
        }
    }
    let (from, to) = (section.word("from", &ends), section.word("to", &ends));
    if from.is_some() && from == to {
        let message = "a link goes from the subject to the item, or back";
        section.report(
            &section.span_of("to"),
            message,
            "make `from` and `to` differ",
        );
    }
    Some(SelectLink {
        kind: kind?.value.into(),
        table: link_table(section),
        is_from_subject: from?,
    })
}

fn check_selects(section: &Section<'_, '_>, selects: &[Select], is_batch: bool) {
    if !is_batch {
        return;
    }
    if selects
        .iter()
        .any(|select| select.link.is_some() || select.fills.is_some())
    {
        let message = "a batch has no one subject that a link could begin at";
        section.report(
            &section.span_of("selects"),
            message,
            "leave out `link` and `fills`, or `batch`",
        );
    }
    let has_stubs = |select: &Select| {
        select
            .around
            .as_ref()
            .is_some_and(|it| !it.stubs.is_empty())
    };
    if selects.iter().any(has_stubs) {
        let message = "a batch has no one subject whose answer could be completed";
        section.report(
            &section.span_of("selects"),
            message,
            "leave out `stubs`, or `batch`",
        );
    }
    if !selects.is_empty() && !selects.iter().any(|select| select.is_subject) {
        let message = "the answer to a batch has to hold its subjects";
        section.report(
            &section.span_of("selects"),
            message,
            "write `is_subject = true`",
        );
    }
}
