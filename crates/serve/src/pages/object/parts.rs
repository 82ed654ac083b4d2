//! The parts of an object's page that are read one at a time: posts, relations, links, changes.

use super::super::chart::{self, Columns, Series};
use super::super::lists::{self, address, empty};
use super::super::{ROWS, words};
use super::provenance;
use crate::{Problem, Shared};
use kittiwake_model::{Key, Table, Value};
use kittiwake_store::browse::{
    CommentsQuestion, CountsRow, LinkDirection, LinkRow, LinksQuestion, ObjectView, Page,
    PostsQuestion, RelationRow, RelationsList, RelationsQuestion, VersionRow, VersionsQuestion,
};
use maud::{Markup, html};

/// Points of a chart over time.
const POINTS: usize = 80;
/// Counts that have a chart of their own.
const CHARTS: usize = 4;

/// What can be looked at of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Posts,
    Comments,
    Following,
    Followers,
    GoneFollowing,
    GoneFollowers,
    LinksFrom,
    LinksTo,
    Changes,
    Provenance,
}

impl Part {
    pub(super) fn of(table: Option<Table>) -> &'static [Self] {
        match table {
            Some(Table::Users) => &[
                Self::Posts,
                Self::Following,
                Self::Followers,
                Self::GoneFollowing,
                Self::GoneFollowers,
                Self::LinksFrom,
                Self::LinksTo,
                Self::Changes,
                Self::Provenance,
            ],
            Some(Table::Statuses | Table::Comments) => &[
                Self::Comments,
                Self::LinksFrom,
                Self::LinksTo,
                Self::Changes,
                Self::Provenance,
            ],
            Some(Table::Tags | Table::Objects) | None => &[
                Self::LinksTo,
                Self::LinksFrom,
                Self::Changes,
                Self::Provenance,
            ],
        }
    }

    /// One of those that are offered; the first if there is none of that name.
    pub(super) fn named(name: &str, offered: &[Self]) -> Self {
        let mut parts = offered.iter().copied();
        let found = parts.find(|part| part.name() == name);
        found
            .or(offered.first().copied())
            .unwrap_or(Self::Provenance)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Posts => "posts",
            Self::Comments => "comments",
            Self::Following => "following",
            Self::Followers => "followers",
            Self::GoneFollowing => "gone-following",
            Self::GoneFollowers => "gone-followers",
            Self::LinksFrom => "links-from",
            Self::LinksTo => "links-to",
            Self::Changes => "changes",
            Self::Provenance => "provenance",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Posts => "Posts",
            Self::Comments => "Comments",
            Self::Following => "Follows",
            Self::Followers => "Followers",
            Self::GoneFollowing => "Followed once",
            Self::GoneFollowers => "Lost followers",
            Self::LinksFrom => "Links from it",
            Self::LinksTo => "Links to it",
            Self::Changes => "Changes",
            Self::Provenance => "All fields",
        }
    }
}

/// A page of one part.
pub(super) async fn show(
    shared: &Shared,
    object: &ObjectView,
    part: Part,
    after: Option<String>,
) -> Result<Markup, Problem> {
    let key = object.label.key;
    let is_first = after.is_none();
    let (list, next) = match part {
        Part::Posts => posts(shared, key, after).await?,
        Part::Comments => comments(shared, key, after).await?,
        Part::Following => relations(shared, key, RelationsList::Following, after).await?,
        Part::Followers => relations(shared, key, RelationsList::Followers, after).await?,
        Part::GoneFollowing => relations(shared, key, RelationsList::GoneFollowing, after).await?,
        Part::GoneFollowers => relations(shared, key, RelationsList::GoneFollowers, after).await?,
        Part::LinksFrom => links(shared, object, LinkDirection::From, after).await?,
        Part::LinksTo => links(shared, object, LinkDirection::To, after).await?,
        Part::Changes => changes(shared, key, after).await?,
        Part::Provenance => return Ok(provenance(object)),
    };
    let first = format!("{}?show={}", address(key), part.name());
    Ok(html! {
        section.part aria-labelledby="part-title" {
            h2 #part-title { (part.title()) }
            (list)
            (lists::more(&format!("{first}&after="), next.as_deref(), is_first, &first))
        }
    })
}

type Listed = Result<(Markup, Option<String>), Problem>;

async fn posts(shared: &Shared, author: Key, after: Option<String>) -> Listed {
    let question = PostsQuestion {
        author: Some(author),
        after,
        limit: ROWS,
    };
    let page = shared.browser.posts(question).await?;
    let list = html! {
        @if page.rows.is_empty() { (empty("No posts of theirs were collected.", "They appear here when a robot for posts has visited.")) }
        (lists::posts(page.rows.iter()))
    };
    Ok((list, page.next))
}

async fn comments(shared: &Shared, post: Key, after: Option<String>) -> Listed {
    let question = CommentsQuestion {
        post,
        after,
        limit: ROWS,
    };
    let page = shared.browser.comments_of(question).await?;
    let list = html! {
        @if page.rows.is_empty() { (empty("No answers were collected.", "They appear here when a robot for comments has visited.")) }
        (lists::posts(page.rows.iter()))
    };
    Ok((list, page.next))
}

async fn relations(
    shared: &Shared,
    user: Key,
    list: RelationsList,
    after: Option<String>,
) -> Listed {
    let question = RelationsQuestion {
        user,
        list,
        after,
        limit: ROWS,
    };
    let page = shared.browser.relations(question).await?;
    Ok((relation_list(&page), page.next))
}

fn relation_list(page: &Page<RelationRow>) -> Markup {
    html! {
        @if page.rows.is_empty() { (empty("Nobody is known.", "People appear here when the lists of whom they follow were collected.")) }
        ul.list {
            @for row in &page.rows {
                li {
                    (lists::user(&row.user))
                    span.small.soft {
                        "seen " (words::moment(row.last_seen.micros()))
                        @if let Some(at) = row.vanished { ", gone " (words::moment(at.micros())) }
                    }
                }
            }
        }
    }
}

async fn links(
    shared: &Shared,
    object: &ObjectView,
    direction: LinkDirection,
    after: Option<String>,
) -> Listed {
    let question = LinksQuestion {
        key: object.label.key,
        direction,
        kind: None,
        after,
        limit: ROWS,
    };
    let page = shared.browser.links(question).await?;
    let list = html! {
        @if page.rows.is_empty() { (empty("No links are known.", "Likes, reposts, mentions, tags and accounts on other networks are shown here.")) }
        @else { (link_table(&page.rows, &object.label.network)) }
    };
    Ok((list, page.next))
}

fn link_table(rows: &[LinkRow], network: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="part-title" {
            table {
                thead { tr { th scope="col" { "Kind" } th scope="col" { "Other end" } th scope="col" { "Says" } th scope="col" { "Since" } th scope="col" { "Last seen" } } }
                tbody {
                    @for row in rows {
                        tr {
                            td { (row.kind) }
                            td {
                                (lists::link(&row.other)) " " span.soft.small { (row.other.kind) }
                                @if row.other.network != network { " " span.pill.accent.plain { "on " (row.other.network) } }
                            }
                            td.wide.text { @if let Some(text) = &row.text { (words::short_to(&text.text, 140)) } }
                            td { (words::moment(row.at.unwrap_or(row.first_seen).micros())) }
                            td { (words::moment(row.last_seen.micros())) }
                        }
                    }
                }
            }
        }
    }
}

async fn changes(shared: &Shared, key: Key, after: Option<String>) -> Listed {
    let question = VersionsQuestion {
        key,
        after,
        limit: ROWS,
    };
    let page = shared.browser.versions(question).await?;
    let list = html! {
        @if page.rows.is_empty() { (empty("Nothing has changed since it was first collected.", "What other observations overrule is kept here.")) }
        ul.list { @for row in &page.rows { li { (change(row)) } } }
    };
    Ok((list, page.next))
}

fn change(row: &VersionRow) -> Markup {
    html! {
        div {
            p.small.soft { "until after " (super::observed(&row.observed)) ", " (row.group) " was" }
            dl.facts {
                @for (name, value) in &row.fields {
                    dt { (name) } dd { (plain(value)) }
                }
            }
        }
    }
}

/// A value of which no more than its text is known.
fn plain(value: &Value) -> Markup {
    match value {
        Value::Null => html! { span.none { "empty" } },
        Value::Bool(is) => html! { @if *is { "yes" } @else { "no" } },
        Value::Int(number) => html! { data value=(number) { (number) } },
        Value::Float(number) => html! { (number) },
        Value::Text(text) | Value::Json(text) => html! { span.text { (text) } },
        Value::Time { at_us, .. } => words::moment(*at_us),
        Value::Object(kittiwake_model::Reference::Key(key)) => {
            html! { a href=(address(*key)) { "object " (key.0) } }
        }
        Value::Object(_) => words::dash(),
    }
}

/// The counts over time: how they stand now, and a chart of each that was seen more than once.
pub(super) fn counts(rows: &[CountsRow]) -> Markup {
    let Some(newest) = rows.first() else {
        return html! {};
    };
    html! {
        section.part aria-labelledby="counts-title" {
            div.title { h2 #counts-title { "Counts" } span.small.soft { "observed " (super::observed(&newest.observed)) } }
            dl.strip {
                @for (name, count) in &newest.counts {
                    div { dt { (spaced(name)) } dd { data value=(count) { (count) } } }
                }
            }
            @if rows.len() > 1 {
                div.columns {
                    @for (name, _) in newest.counts.iter().take(CHARTS) { div { (count_chart(name, rows)) } }
                }
            }
        }
    }
}

/// `followers_count` as people write it.
fn spaced(name: &str) -> String {
    name.strip_suffix("_count")
        .unwrap_or(name)
        .replace('_', " ")
}

fn count_chart(name: &str, rows: &[CountsRow]) -> Markup {
    let mut seen: Vec<(i64, f64)> = rows
        .iter()
        .filter_map(|row| {
            let (_, count) = row.counts.iter().find(|(field, _)| &**field == name)?;
            Some((row.observed.at.micros(), *count as f64))
        })
        .collect();
    seen.sort_by_key(|(at_us, _)| *at_us);
    let (Some((first_us, _)), Some((last_us, _))) = (seen.first(), seen.last()) else {
        return html! {};
    };
    let step_us = (last_us.saturating_sub(*first_us) / (POINTS as i64 - 1)).max(1);
    let times: Vec<i64> = (0..POINTS as i64)
        .map(|point| first_us + point * step_us)
        .collect();
    let at = |us: i64| {
        let before = seen.partition_point(|(at_us, _)| *at_us <= us);
        seen.get(before.saturating_sub(1))
            .map_or(f64::NAN, |(_, count)| *count)
    };
    chart::lines(&Columns {
        id: format!("count-{}", name.replace('_', "-")),
        title: spaced(name),
        unit: "",
        places: times.iter().map(|us| day_and_time(*us)).collect(),
        axis: "when",
        series: vec![Series {
            name: spaced(name),
            colour: 0,
            values: times.iter().map(|us| at(*us)).collect(),
        }],
    })
}

fn day_and_time(us: i64) -> String {
    let iso = words::iso(us).unwrap_or_default();
    iso.get(..16)
        .map_or_else(|| us.to_string(), |text| text.replace('T', " "))
}
