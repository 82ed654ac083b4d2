//! `page` and `incremental` of a query: how its list is walked.

use super::fields::time_format;
use super::keys;
use super::limits::read_span;
use super::source::{Placed, Section};
use super::types::Types;
use crate::body::Sending;
use crate::page::{PageEnds, PageRule, PageStyle, Places, SinceRule, TimeRule};
use crate::path::{Path, parse_alternatives, parse_path};
use crate::shape::{ReadDepth, ReadPath};

/// Keys that every style has.
const COMMON: &[&str] = &[
    "style",
    "size_parameter",
    "size",
    "size_min",
    "order",
    "durable",
    "ends",
    "items_max",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Link,
    Next,
    Cursor,
    Number,
    Offset,
    Ids,
}

const STYLES: &[(&str, Style)] = &[
    ("link", Style::Link),
    ("cursor", Style::Cursor),
    ("next", Style::Next),
    ("number", Style::Number),
    ("offset", Style::Offset),
    ("ids", Style::Ids),
];

impl Style {
    fn word(self) -> &'static str {
        let known = STYLES.iter().find(|(_, style)| *style == self);
        known.map_or("", |(word, _)| word)
    }

    /// The keys of this style alone.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Link => &["other_paths"],
            Self::Next => &["at", "more", "other_paths"],
            Self::Cursor => &["at", "more", "parameter", "last"],
            Self::Number => &["parameter", "first", "more", "together"],
            Self::Offset => &["parameter", "more", "together"],
            Self::Ids => &["parameter", "alias", "bound", "more"],
        }
    }

    /// Whether the answer itself says where the next page is.
    const fn has_token(self) -> bool {
        matches!(self, Self::Link | Self::Next | Self::Cursor)
    }
}

/// A list of a query: which select takes it, its path, and the type of its items.
struct Listed {
    place: usize,
    path: Path,
    kind: Option<String>,
}

/// The select that ends in `[]`, in their order.
fn all_listed(section: &Section<'_, '_>) -> Vec<Listed> {
    let selects = section.tables("selects").into_iter().enumerate();
    let lists = selects.filter_map(|(place, select)| {
        let path = parse_path(&select.text("at")?.value)?;
        let kind = select.text("as").map(|kind| kind.value);
        path.each.then_some(Listed { place, path, kind })
    });
    lists.collect()
}

/// The first select that ends in `[]`.
fn listed(section: &Section<'_, '_>) -> Option<Listed> {
    all_listed(section).into_iter().next()
}

/// The lists that page: those that `together` names, or the first.
fn paging_lists(query: &Section<'_, '_>, section: &Section<'_, '_>) -> Vec<Listed> {
    let mut lists = all_listed(query);
    let Some(named) = section.texts("together") else {
        lists.truncate(1);
        return lists;
    };
    for text in &named {
        let path = parse_path(&text.value);
        if !lists.iter().any(|list| Some(&list.path) == path.as_ref()) {
            let message = format!("no select takes the list `{}`", text.value);
            let help = "write the `at` of selects that end in `[]`";
            section.report(&text.span, message, help);
        }
    }
    let is_named = |list: &Listed| {
        named
            .iter()
            .any(|it| parse_path(&it.value).as_ref() == Some(&list.path))
    };
    lists.retain(is_named);
    lists
}

/// How a query pages; the paths that it reads are added to `read`.
pub(super) fn read_page(
    query: &Section<'_, '_>,
    types: &Types,
    sending: &Sending,
    read: &mut Vec<ReadPath>,
) -> Option<PageRule> {
    let section = query.table("page")?;
    section.expect_keys(keys::PAGE);
    if !section.has("style") {
        section.missing("style", "style = \"link\"");
    }
    section.word("order", &[("newest_first", ()), ("unsorted", ())]);
    if !section.has("size") {
        section.missing("size", "size = 40");
    }
    let size = section.number("size", 1..=100_000);
    let size_parameter = section.text("size_parameter").map(|text| text.value);
    let items_max = section.number("items_max", 1..=1_000_000_000);
    let style = section.word("style", STYLES)?;
    check_keys(&section, style);
    check_sending(&section, style, sending);
    let ends = read_ends(&section, style);
    let lists = paging_lists(query, &section);
    let listed = lists.first();
    if listed.is_none() && !style.has_token() {
        let message = format!("`style = \"{}\"` counts the items of a list", style.word());
        let help = "let the `at` of a select end in `[]`";
        section.report(&section.span_of("style"), message, help);
    }
    let at = read_path(&section, "at", listed);
    let more = read_path(&section, "more", listed);
    let needs_list = ends != PageEnds::Token || query.has("incremental");
    let paths = lists.iter().map(|list| &list.path);
    let paths: Vec<&Path> = paths.filter(|_| needs_list).collect();
    let places = Places::new(at.as_ref(), more.as_ref(), &paths);
    for path in [at, more].into_iter().flatten() {
        read.push(ReadPath {
            path,
            depth: ReadDepth::Value,
        });
    }
    Some(PageRule {
        style: read_style(&section, style, types, listed, size)?,
        size_parameter,
        size: size?,
        size_min: read_size_min(&section, style, sending),
        is_durable: section.boolean("durable").unwrap_or(true),
        ends,
        items_max,
        takes_other_paths: section.boolean("other_paths").unwrap_or(false),
        lists: lists.iter().map(|list| list.place).collect(),
        places,
    })
}

/// The least that a page is asked for with, where it may be too much for the server.
fn read_size_min(section: &Section<'_, '_>, style: Style, sending: &Sending) -> Option<u32> {
    let size_min = section.number("size_min", 1..=100_000)?;
    let span = section.span_of("size_min");
    if !section.has("size_parameter") || *sending != Sending::Address {
        let message = "a page can be made smaller only by a parameter of the address";
        section.report(&span, message, "name it: `size_parameter = \"limit\"`");
    }
    if style == Style::Number {
        let message = "pages that are counted cannot become smaller on the way";
        section.report(
            &span,
            message,
            "leave `size_min` out, and take a `size` that is answered",
        );
    }
    Some(size_min)
}

/// Keys of other styles have no meaning.
fn check_keys(section: &Section<'_, '_>, style: Style) {
    for key in keys::PAGE {
        if section.has(key) && !COMMON.contains(key) && !style.keys().contains(key) {
            let message = format!("`{key}` has no meaning with `style = \"{}\"`", style.word());
            let users = STYLES.iter().filter(|(_, it)| it.keys().contains(key));
            let users: Vec<&str> = users.map(|(word, _)| *word).collect();
            let help = format!("leave it out; it belongs to {}", users.join(", "));
            section.report(&section.span_of(key), message, help);
        }
    }
}

/// The parameters of an address cannot be told from those of a body.
fn check_sending(section: &Section<'_, '_>, style: Style, sending: &Sending) {
    let is_address = matches!(style, Style::Link | Style::Next);
    if is_address && *sending != Sending::Address {
        let message = format!(
            "`style = \"{}\"` leads to an address, but the parameters are in the body",
            style.word()
        );
        let help = "write `style = \"cursor\"` and what to take out of the answer";
        section.report(&section.span_of("style"), message, help);
    }
}

fn read_ends(section: &Section<'_, '_>, style: Style) -> PageEnds {
    let words = [
        ("token", PageEnds::Token),
        ("empty", PageEnds::Empty),
        ("short", PageEnds::Short),
    ];
    let usual = if style.has_token() {
        PageEnds::Token
    } else {
        PageEnds::Empty
    };
    let ends = section.word("ends", &words).unwrap_or(usual);
    if ends == PageEnds::Token && !style.has_token() {
        let message = format!("there is no token in `style = \"{}\"`", style.word());
        let help = "write `ends = \"empty\"` or `ends = \"short\"`";
        section.report(&section.span_of("ends"), message, help);
    }
    ends
}

/// A plain path to one value beside the list.
fn read_path(section: &Section<'_, '_>, key: &str, listed: Option<&Listed>) -> Option<Path> {
    let text = section.text(key)?;
    let path = parse_path(&text.value).filter(|path| !path.each && !path.keys.is_empty());
    if path.is_none() {
        let message = format!("`{}` is no plain path to one value", text.value);
        section.report(
            &text.span,
            message,
            "write for example `.cursor` or `.meta.next`",
        );
    }
    if path.is_some() && listed.is_some_and(|listed| listed.path.keys.is_empty()) {
        let message = format!(
            "the answer is a list: nothing stands at `{}` in it",
            text.value
        );
        let help = "let the `at` of the select name the list, as in `.items[]`, or page otherwise";
        section.report(&text.span, message, help);
    }
    path
}

fn read_style(
    section: &Section<'_, '_>,
    style: Style,
    types: &Types,
    listed: Option<&Listed>,
    size: Option<u32>,
) -> Option<PageStyle> {
    if matches!(style, Style::Next | Style::Cursor) && !section.has("at") {
        section.missing("at", "at = \".cursor\"");
    }
    let parameter = || read_parameter(section, "parameter = \"cursor\"");
    Some(match style {
        Style::Link => PageStyle::Link,
        Style::Next => PageStyle::Next,
        Style::Cursor => {
            let last = section.numbers_or_texts("last").unwrap_or_default();
            PageStyle::Cursor {
                parameter: parameter()?,
                last: last.into_iter().map(|text| text.value).collect(),
            }
        }
        Style::Number => PageStyle::Number {
            parameter: parameter()?,
            first: section.number("first", 0..=1).unwrap_or(1),
        },
        Style::Offset => PageStyle::Offset {
            parameter: parameter()?,
        },
        Style::Ids => {
            let bounds = [("exclusive", false), ("inclusive", true)];
            if !section.has("bound") {
                section.missing("bound", "bound = \"exclusive\"");
            }
            let is_inclusive = section.word("bound", &bounds);
            if is_inclusive == Some(true) && size == Some(1) {
                let message = "a page of one item would bring its bound again, and nothing else";
                section.report(&section.span_of("size"), message, "write a larger `size`");
            }
            let parameter = parameter();
            PageStyle::Ids {
                alias: item_alias(section, types, listed)?,
                parameter: parameter?,
                is_inclusive: is_inclusive?,
            }
        }
    })
}

/// The parameter that takes a cursor or a mark. Tokens need some signs for themselves.
fn read_parameter(section: &Section<'_, '_>, example: &str) -> Option<String> {
    let name = section.need_text("parameter", example)?;
    if name.value.is_empty() || name.value.starts_with('.') || name.value.ends_with(':') {
        let message = format!("`{}` is no name for a parameter", name.value);
        let help = format!("write for example `{example}`");
        section.report(&name.span, message, help);
    }
    Some(name.value)
}

/// The alias of the items that a key `alias` names.
fn item_alias(
    section: &Section<'_, '_>,
    types: &Types,
    listed: Option<&Listed>,
) -> Option<kittiwake_model::Name> {
    if !section.has("alias") {
        section.missing("alias", "alias = \"id\"");
    }
    let kind = listed?.kind.as_ref()?;
    Some(types.alias_at(section, "alias", kind)?.name)
}

/// What the marks of a query are made of.
#[derive(Default)]
pub(super) struct Marks {
    pub(super) since: Option<SinceRule>,
    pub(super) times: Option<TimeRule>,
}

pub(super) fn read_marks(query: &Section<'_, '_>, types: &Types) -> Marks {
    let mut marks = Marks::default();
    let Some(section) = query.table("incremental") else {
        return marks;
    };
    section.expect_keys(keys::INCREMENTAL);
    if !query.has("page") {
        let message = "an incremental walk needs pages";
        section.report(
            &section.span,
            message,
            "write `page = { style = \"link\", … }`",
        );
    }
    let is_timed = section.has("until") || section.has("time");
    check_marks(&section, query, is_timed);
    let listed = listed(query);
    if is_timed {
        marks.times = read_times(&section, listed.as_ref());
        return marks;
    }
    let parameter = read_parameter(&section, "parameter = \"min_id\"");
    let alias = item_alias(&section, types, listed.as_ref());
    if let (Some(parameter), Some(alias)) = (parameter, alias) {
        marks.since = Some(SinceRule {
            parameter,
            alias,
            is_ended_by_short_page: section.boolean("short_page_ends").unwrap_or(false),
        });
    }
    marks
}

/// Keys that contradict one another.
fn check_marks(section: &Section<'_, '_>, query: &Section<'_, '_>, is_timed: bool) {
    let stray = |key: &str, why: &str, help: &str| {
        if section.has(key) {
            let message = format!("`{key}` has no meaning {why}");
            section.report(&section.span_of(key), message, help);
        }
    };
    let page = query.table("page");
    let style = page.as_ref().and_then(|page| page.text("style"));
    if is_timed || style.is_some_and(|style| style.value != "link") {
        let help = "write `ends = \"short\"` in `page`";
        stray(
            "short_page_ends",
            "in walks from the newest item back",
            help,
        );
    }
    if let Some(page) = page
        .as_ref()
        .filter(|page| !is_timed && page.has("together"))
    {
        let message = "items of several lists have no ids in common that marks could be made of";
        let help = "write `until = \"…\"` in `incremental`, the path to the items' time";
        page.report(&page.span_of("together"), message, help);
    }
    if !is_timed {
        let help = "write `until = \"…\"` or `time = \"…\"`, the path to the items' time";
        stray("format", "where marks are ids", help);
        stray("overlap", "where marks are ids", help);
        return;
    }
    stray(
        "alias",
        "where marks are times",
        "leave out `alias`, or the path to the time",
    );
    if section.has("until") {
        let help = "write `time` in place of `until` for a parameter that takes times";
        stray(
            "parameter",
            "where the walk goes back `until` the mark",
            help,
        );
        stray("time", "beside `until`", help);
    }
    let order = page.as_ref().and_then(|page| page.text("order"));
    if section.has("until")
        && let (Some(page), Some(order)) = (page, order.filter(|it| it.value == "unsorted"))
    {
        let message = "a walk can only end at a mark in a list that has its newest items first";
        page.report(&order.span, message, "write `order = \"newest_first\"`");
    }
}

fn read_times(section: &Section<'_, '_>, listed: Option<&Listed>) -> Option<TimeRule> {
    let is_parameter = !section.has("until");
    let parameter = if is_parameter {
        Some(read_parameter(section, "parameter = \"since\"")?)
    } else {
        None
    };
    let paths = section.text(if is_parameter { "time" } else { "until" })?;
    let paths = read_time_paths(section, &paths)?;
    let overlap_us = match section.text("overlap") {
        Some(text) => read_span(section, &text)?,
        None => 0,
    };
    if listed.is_none() {
        let message = "the times of marks are those of the items of a list";
        let help = "let the `at` of a select end in `[]`";
        section.report(&section.span, message, help);
    }
    let format = time_format(section);
    Some(TimeRule::new(&paths, parameter, format, overlap_us))
}

fn read_time_paths(section: &Section<'_, '_>, text: &Placed<String>) -> Option<Vec<Path>> {
    let paths = parse_alternatives(&text.value)
        .filter(|paths| paths.iter().all(|path| !path.each && !path.keys.is_empty()));
    if paths.is_none() {
        let message = format!("`{}` is no plain path to a time", text.value);
        let help = "write for example `.created_at` or `.reason.at // .post.at`";
        section.report(&text.span, message, help);
    }
    paths
}
