//! People, posts and other objects as rows of a page.

use super::words::{self, short_to};
use kittiwake_model::Key;
use kittiwake_store::browse::{Label, PostRow, UserRow};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Letters of a post that a list shows.
const POST_CHARS: usize = 400;
/// Letters of a name.
const NAME_CHARS: usize = 60;

/// Where an object has its page.
pub(super) fn address(key: Key) -> String {
    format!("/object/{}", key.0)
}

/// A part of an address, whatever is in it.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The name that people know an object by.
pub(super) fn called(label: &Label) -> String {
    let name = label.display_name.as_ref().map(|it| it.text.as_str());
    let name = name.filter(|it| !it.trim().is_empty());
    let id = label.id.trim_start_matches("https://");
    let name = name.or(label.name.as_deref()).unwrap_or(id);
    short_to(name, NAME_CHARS)
}

/// The name by which others address it, where that is another one.
pub(super) fn handle(label: &Label) -> Option<String> {
    let is_shown = label
        .display_name
        .as_ref()
        .is_some_and(|it| !it.text.trim().is_empty());
    let handle = label.name.as_deref().filter(|_| is_shown)?;
    Some(format!("@{}", short_to(handle, NAME_CHARS)))
}

/// A link to an object's page.
pub(super) fn link(label: &Label) -> Markup {
    html! { a href=(address(label.key)) { (called(label)) } }
}

pub(super) fn face(label: &Label, class: &str) -> Markup {
    html! { span.face.(class) aria-hidden="true" { (words::initials(&called(label))) } }
}

pub(super) fn users<'a>(rows: impl Iterator<Item = &'a UserRow>) -> Markup {
    html! {
        ul.list {
            @for row in rows { li { (user(row)) } }
        }
    }
}

pub(super) fn user(row: &UserRow) -> Markup {
    html! {
        (face(&row.label, ""))
        div {
            div.by {
                (link(&row.label))
                @if let Some(handle) = handle(&row.label) { span.soft { (handle) } }
                (marks(row))
            }
            @if let Some(description) = &row.description {
                p.text.small { (short_to(&description.text, 160)) }
            }
            p.small.soft { (sizes(row)) }
        }
    }
}

/// What sets somebody apart.
fn marks(row: &UserRow) -> Markup {
    html! {
        @if let Some((_, reason)) = &row.gone { span.pill.bad.plain { (reason) } }
        @if row.is_bot { span.pill.plain { "automated" } }
        @if row.is_protected { span.pill.plain { "protected" } }
        @if row.opted_out { span.pill.warn.plain { "opted out" } }
        @if let Some(class) = &row.class { span.pill.accent.plain { (class) } }
    }
}

fn sizes(row: &UserRow) -> Markup {
    let figures = [
        (row.followers, "follower", "followers"),
        (row.posts, "post", "posts"),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(count, one, more)| Some((u64::try_from(count?).ok()?, one, more)));
    html! {
        @if !row.is_described { "only named so far" }
        @for (place, (count, one, more)) in figures.enumerate() {
            @if place > 0 { " · " }
            (words::many(count, one, more))
        }
        @if let Some(at) = row.last_posted { " · last posted " (words::moment(at.micros())) }
    }
}

pub(super) fn posts<'a>(rows: impl Iterator<Item = &'a PostRow>) -> Markup {
    html! {
        ul.list {
            @for row in rows { li { (post(row)) } }
        }
    }
}

pub(super) fn post(row: &PostRow) -> Markup {
    html! {
        @if let Some(author) = &row.author { (face(author, "")) }
        div {
            div.by {
                @if let Some(author) = &row.author { (link(author)) }
                a.small href=(address(row.label.key)) {
                    @match row.created {
                        Some(at) => { (words::moment(at.micros())) },
                        None => { "no time known" },
                    }
                }
                @if row.repost_of.is_some() { span.pill.plain { "repost" } }
                @if row.reply_to.is_some() { span.pill.plain { "reply" } }
                @if row.is_sensitive { span.pill.warn.plain { "sensitive" } }
                @if row.deleted.is_some() { span.pill.bad.plain { "deleted" } }
            }
            @if let Some(warning) = &row.content_warning { p.text.soft { (short_to(&warning.text, POST_CHARS)) } }
            @match &row.text {
                Some(text) if !text.text.trim().is_empty() => { p.text { (short_to(&text.text, POST_CHARS)) } },
                _ => { p.soft { "no text" } },
            }
            p.small.soft { (answers(row)) }
        }
    }
}

fn answers(row: &PostRow) -> Markup {
    let figures = [
        (row.replies, "reply", "replies"),
        (row.reposts, "repost", "reposts"),
        (row.likes, "like", "likes"),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(count, one, more)| Some((u64::try_from(count?).ok()?, one, more)));
    html! {
        @for (place, (count, one, more)) in figures.enumerate() {
            @if place > 0 { " · " }
            (words::many(count, one, more))
        }
    }
}

/// The way to the next page of a list; `address` ends where the place in the list is to stand.
pub(super) fn more(address: &str, next: Option<&str>, is_first: bool, first: &str) -> Markup {
    html! {
        @if next.is_some() || !is_first {
            nav.more aria-label="Pages of the list" {
                @if !is_first { a.button href=(first) rel="first" { "First page" } }
                @if let Some(next) = next { a.button href={ (address) (encoded(next)) } rel="next" { "Next page" } }
            }
        }
    }
}

/// What stands where there is nothing yet.
pub(super) fn empty(what: &str, do_this: &str) -> Markup {
    html! { p.empty { strong { (what) } (do_this) } }
}
