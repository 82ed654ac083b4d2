//! `[queries.NAME.html]`: what is taken of a web page, and where it stands.

use super::keys;
use super::source::{Entry, Placed, Section};
use crate::network::Decode;
use crate::web::dom::Css;
use crate::web::{AddressRule, Part, Piece, Taking, WebRule};

/// Lists within lists.
const NESTED_MAX: usize = 4;
const PARTS_MAX: usize = 200;

/// The rule of a query that is answered with web pages.
pub(super) fn read_web(section: &Section<'_, '_>, decode: Decode) -> Option<WebRule> {
    if decode != Decode::Html {
        if section.has("html") {
            let message = "`html` says what is taken of a web page";
            section.report(
                &section.span_of("html"),
                message,
                "write `decode = \"html\"`, or leave it out",
            );
        }
        return None;
    }
    let Some(table) = section.table("html") else {
        if !section.has("html") {
            let example = format!("[{}.html]", section.path);
            section.missing("html", &example);
        }
        return None;
    };
    let parts = read_parts(&table, 0);
    let is_needed = |part: &Part| !part.is_optional;
    if !parts.is_empty() && !parts.iter().any(is_needed) {
        let message = "nothing on the page is needed";
        let help =
            "leave out one `optional`: a changed layout would pass for a page with nothing on it";
        section.report(&section.span_of("html"), message, help);
    }
    Some(WebRule { parts })
}

fn read_parts(table: &Section<'_, '_>, depth: usize) -> Vec<Part> {
    let entries = table.entries();
    if entries.is_empty() || entries.len() > PARTS_MAX {
        let message = format!("from 1 to {PARTS_MAX} things can be taken of a page");
        table.report(&table.span, message, "write for example `title = \"h1\"`");
        return Vec::new();
    }
    let read = |entry| read_part(table, entry, depth);
    entries.into_iter().filter_map(read).collect()
}

fn read_part(table: &Section<'_, '_>, entry: Entry<'_, '_>, depth: usize) -> Option<Part> {
    if let Some(text) = entry.text {
        return Some(Part {
            css: Some(read_css(table, &text)?),
            name: entry.name,
            within: None,
            is_optional: false,
            taking: Taking::One(Piece::Text),
        });
    }
    let Some(section) = entry.section else {
        let message = format!("`{}` must be a selector, or a table", entry.name);
        table.report(&entry.span, message, "write for example `title = \"h1\"`");
        return None;
    };
    section.expect_keys(keys::HTML);
    let css_of = |key: &str| section.text(key).and_then(|text| read_css(&section, &text));
    let (css, within) = (css_of("css"), css_of("within"));
    if section.has("css") && css.is_none() || section.has("within") && within.is_none() {
        return None;
    }
    let taking = read_taking(&section, depth)?;
    if within.is_some() && css.is_none() {
        let message = "`within` says where to look for what `css` names";
        section.report(&section.span_of("within"), message, "write `css`, too");
    }
    if css.is_none() && matches!(taking, Taking::All(_) | Taking::Each(_)) {
        section.missing("css", "css = \"li\"");
        return None;
    }
    Some(Part {
        name: entry.name,
        css,
        within,
        is_optional: section.boolean("optional").unwrap_or(false)
            || matches!(taking, Taking::Subject),
        taking,
    })
}

fn read_taking(section: &Section<'_, '_>, depth: usize) -> Option<Taking> {
    if section.boolean("subject") == Some(true) {
        let others = [
            "css",
            "within",
            "take",
            "attribute",
            "address",
            "all",
            "each",
        ];
        if let Some(other) = others.into_iter().find(|key| section.has(key)) {
            let message = format!("`subject` and `{other}` exclude each other");
            let help = "what was asked about stands nowhere on the page";
            section.report(&section.span_of(other), message, help);
        }
        return Some(Taking::Subject);
    }
    let is_all = section.boolean("all").unwrap_or(false);
    let Some(each) = section.table("each") else {
        let piece = read_piece(section)?;
        return Some(if is_all {
            Taking::All(piece)
        } else {
            Taking::One(piece)
        });
    };
    let others = ["take", "attribute", "address", "all"];
    if let Some(other) = others.into_iter().find(|key| section.has(key)) {
        let message = format!("`each` and `{other}` exclude each other");
        section.report(
            &section.span_of(other),
            message,
            "say what is taken of an item in `each`",
        );
    }
    if depth >= NESTED_MAX {
        let message = format!("lists stand in lists {NESTED_MAX} deep at most");
        section.report(
            &section.span_of("each"),
            message,
            "take the inner one by itself",
        );
        return None;
    }
    Some(Taking::Each(read_parts(&each, depth + 1)))
}

fn read_piece(section: &Section<'_, '_>) -> Option<Piece> {
    let places: Vec<&str> = ["take", "attribute", "address"]
        .into_iter()
        .filter(|key| section.has(key))
        .collect();
    if let [first, second, ..] = places.as_slice() {
        let message = format!("`{first}` and `{second}` exclude each other");
        section.report(&section.span_of(second), message, "take one thing");
        return None;
    }
    for key in ["without", "sorted", "here"] {
        if section.has(key) && !section.has("address") {
            let message = format!("`{key}` is for addresses");
            section.report(&section.span_of(key), message, "write `address = \"href\"`");
        }
    }
    if let Some(attribute) = section.text("address") {
        let without = section.texts("without").unwrap_or_default();
        return Some(Piece::Address(AddressRule {
            attribute: attribute_name(section, &attribute)?,
            without: without.into_iter().map(|text| text.value).collect(),
            is_sorted: section.boolean("sorted").unwrap_or(false),
            is_here: section.boolean("here").unwrap_or(false),
        }));
    }
    if let Some(attribute) = section.text("attribute") {
        return attribute_name(section, &attribute).map(Piece::Attribute);
    }
    let words = [("text", true), ("html", false)];
    let is_text = section.word("take", &words);
    if section.has("take") && is_text.is_none() {
        return None;
    }
    Some(match is_text {
        Some(false) => Piece::Markup,
        _ => Piece::Text,
    })
}

/// Pages have the names of attributes in lower case, however they are written.
fn attribute_name(section: &Section<'_, '_>, text: &Placed<String>) -> Option<String> {
    let is_fit = |letter: char| letter.is_ascii_graphic() && !"\"'<>/=".contains(letter);
    if !text.value.is_empty() && text.value.chars().all(is_fit) {
        return Some(text.value.to_ascii_lowercase());
    }
    let message = format!("`{}` is no attribute", text.value.escape_debug());
    section.report(&text.span, message, "write for example `href`");
    None
}

/// A selector, or a report of why it is none.
pub(super) fn read_css(section: &Section<'_, '_>, text: &Placed<String>) -> Option<Css> {
    match Css::parse(&text.value) {
        Ok(css) => Some(css),
        Err(reason) => {
            let message = format!(
                "`{}` is no CSS selector: {reason}",
                text.value.escape_debug()
            );
            let help = "write for example `ul.posts > li a[href]`";
            section.report(&text.span, message, help);
            None
        }
    }
}
