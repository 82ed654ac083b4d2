//! Search: by name, by words, and at the network itself.

use super::ROWS;
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{self, empty, encoded};
use super::words;
use crate::desk::{OnlineAnswer, OnlineQuestion};
use crate::{Problem, Shared};
use axum::extract::{Form, Query, State};
use axum::response::Response;
use kittiwake_store::browse::{
    Hit, Indexed, Label, Page, PostsQuestion, SearchIn, SearchQuestion, UsersOrder, UsersQuestion,
};
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// Rows of each list where nothing was asked for.
const BROWSED: usize = 20;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    words: String,
    #[serde(default, rename = "in")]
    within: String,
    after: Option<String>,
}

const PLACES: [(&str, &str, SearchIn); 3] = [
    ("all", "People and posts", SearchIn::All),
    ("users", "People", SearchIn::Users),
    ("posts", "Posts and comments", SearchIn::Posts),
];

fn place(name: &str) -> (&'static str, SearchIn) {
    let found = PLACES.iter().find(|(place, _, _)| *place == name);
    found.map_or(("all", SearchIn::All), |(place, _, within)| {
        (place, *within)
    })
}

pub(super) async fn get(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Response {
    let sheet = if asked.words.trim().is_empty() {
        browse(&frame, &shared, &asked).await
    } else {
        found(&frame, &shared, &asked).await
    };
    frame.answer(sheet)
}

fn form(asked: &Asked) -> Markup {
    let (chosen, _) = place(&asked.within);
    html! {
        form.filters action="/search" role="search" aria-label="Search in all that was collected" {
            div.field {
                label for="words" { "Words, a name, an id or an address" }
                input id="words" type="search" name="words" value=(asked.words) size="40" maxlength="500" autocomplete="off";
            }
            div.field {
                label for="in" { "In" }
                select id="in" name="in" {
                    @for (name, called, _) in PLACES { option value=(name) selected[name == chosen] { (called) } }
                }
            }
            button.main { "Search" }
        }
        p.note { "All words have to be there. “\"several words\"” stand next to one another, “-word” is not there, “word*” is a beginning." }
    }
}

async fn found(frame: &Frame, shared: &Shared, asked: &Asked) -> Result<Sheet, Problem> {
    let (chosen, within) = place(&asked.within);
    let named = if asked.after.is_none() {
        shared.browser.find(asked.words.trim().to_owned()).await?
    } else {
        Vec::new()
    };
    let question = SearchQuestion {
        words: asked.words.clone(),
        within,
        after: asked.after.clone(),
        limit: ROWS,
    };
    let hits = shared.browser.search(question).await?;
    let indexed = shared.browser.indexed().await?;
    let first = format!("/search?words={}&in={chosen}", encoded(&asked.words));
    let body = html! {
        div.head { h1 { "Search" } }
        section.part { (form(asked)) }
        (progress(&indexed))
        @if !named.is_empty() { (called_so(&named)) }
        section.part aria-labelledby="hits-title" {
            h2 #hits-title { "What holds these words" }
            (hit_list(&hits))
            (what_is_missing(&hits, &indexed))
            (lists::more(&format!("{first}&after="), hits.next.as_deref(), asked.after.is_none(), &first))
        }
        (online_form(frame, &asked.words))
    };
    Ok(sheet(format!("Search: {}", asked.words), body))
}

fn sheet(title: String, body: Markup) -> Sheet {
    Sheet {
        here: Here::Search,
        title,
        refresh: Refresh::Standing,
        body,
    }
}

fn called_so(named: &[Label]) -> Markup {
    html! {
        section.part aria-labelledby="named-title" {
            h2 #named-title { "Called so" }
            ul.list {
                @for label in named {
                    li {
                        (lists::face(label, ""))
                        div {
                            div.by { (lists::link(label)) @if let Some(handle) = lists::handle(label) { span.soft { (handle) } } span.pill.plain { (label.kind) } }
                            p.small.soft.text { (words::short(&label.id)) }
                        }
                    }
                }
            }
        }
    }
}

fn hit_list(hits: &Page<Hit>) -> Markup {
    html! {
        ul.list {
            @for hit in &hits.rows {
                li {
                    @match hit {
                        Hit::User(user) => { (lists::user(user)) },
                        Hit::Post(post) => { (lists::post(post)) },
                    }
                }
            }
        }
    }
}

/// Why there is no full page.
fn what_is_missing(hits: &Page<Hit>, indexed: &Indexed) -> Markup {
    let is_looked_through = hits.next.is_none();
    html! {
        @match (is_looked_through, hits.rows.len()) {
            (false, 0) => { (empty("Nothing was found so far.", "Much has some of these words and little has all. The next page looks further back.")) },
            (false, 1..ROWS) => { p.note { "Much has some of these words and little has all. The next page looks further back." } },
            (true, 0) if indexed.is_filled => { (empty("Nothing was found.", "Try fewer words, or a beginning with a star.")) },
            (true, 0) => { (empty("Nothing was found.", "Not everything is in the index yet; try again in a while.")) },
            _ => {},
        }
    }
}

/// How far the index has come, while it is not there yet.
fn progress(indexed: &Indexed) -> Markup {
    html! {
        @if !indexed.is_filled {
            div.said role="status" {
                "The index of words is being made: " (words::percent(f64::from(indexed.permille) / 1000.0)) ". What is not in it yet is not found."
            }
        }
    }
}

/// What was collected last and who is followed most, where nothing was asked for.
async fn browse(frame: &Frame, shared: &Shared, asked: &Asked) -> Result<Sheet, Problem> {
    let people = |order| UsersQuestion {
        order,
        after: None,
        limit: BROWSED,
    };
    let mut users = shared.browser.users(people(UsersOrder::Followers)).await?;
    let is_ranked = !users.rows.is_empty();
    if !is_ranked {
        users = shared.browser.users(people(UsersOrder::Newest)).await?;
    }
    let question = PostsQuestion {
        author: None,
        after: None,
        limit: BROWSED,
    };
    let posts = shared.browser.posts(question).await?;
    let indexed = shared.browser.indexed().await?;
    let body = html! {
        div.head { h1 { "Search" } }
        section.part { (form(asked)) }
        (progress(&indexed))
        div.columns {
            section.part aria-labelledby="people-title" {
                h2 #people-title { @if is_ranked { "Most followed" } @else { "People met last" } }
                @if users.rows.is_empty() { (empty("Nobody was collected yet.", "People appear here as the crawl meets them.")) }
                (lists::users(users.rows.iter()))
            }
            section.part aria-labelledby="posts-title" {
                h2 #posts-title { "Posts met last" }
                @if posts.rows.is_empty() { (empty("No post was collected yet.", "Posts appear here as the crawl meets them.")) }
                (lists::posts(posts.rows.iter()))
            }
        }
        (online_form(frame, ""))
    };
    Ok(sheet("Search".into(), body))
}

/// The way to the network's own search.
fn online_form(frame: &Frame, words: &str) -> Markup {
    html! {
        @if frame.is_operator() && frame.standing.run.is_some() {
            section.part aria-labelledby="online-title" {
                h2 #online-title { "Ask the network itself" }
                form.filters action="/search/online" method="post" {
                    div.field {
                        label for="online" { "Words" }
                        input id="online" type="search" name="words" value=(words) size="40" maxlength="500" required autocomplete="off";
                    }
                    button { "Search online" }
                }
                p.note { "This costs a call of the network's allowance, which is granted like any other. Nothing of the answer is stored." }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Online {
    words: String,
}

pub(super) async fn online(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Form(asked): Form<Online>,
) -> Response {
    let answer = ask(&frame, &shared, &asked.words).await;
    let sheet = answer.map(|answer| {
        let body = html! {
            div.head { h1 { "Search online" } p { "Asked of " (answer.network) " at " (answer.host) " (" (answer.query) "), which cost " (words::many(u64::from(answer.calls), "call", "calls")) "." } }
            (online_hits(&answer))
            (online_form(&frame, &asked.words))
        };
        sheet(format!("Search online: {}", asked.words), body)
    });
    frame.answer(sheet)
}

async fn ask(frame: &Frame, shared: &Shared, words: &str) -> Result<OnlineAnswer, Problem> {
    frame.want_operator()?;
    let question = OnlineQuestion {
        network: None,
        host: None,
        query: None,
        words: words.trim().to_owned(),
    };
    if question.words.is_empty() {
        return Err(Problem::invalid("Say what to search for."));
    }
    Ok(shared.desk.search_online(question).await?)
}

fn online_hits(answer: &OnlineAnswer) -> Markup {
    html! {
        section.part {
            @if answer.found.is_empty() { (empty("The network has found nothing.", "Try other words.")) }
            ul.list {
                @for hit in &answer.found {
                    li { div {
                        div.by {
                            strong { (words::short(hit.name.as_deref().unwrap_or(&hit.id))) }
                            span.pill.plain { (hit.table) }
                            a.small href={ "/search?words=" (encoded(&hit.id)) } { "In the collection?" }
                        }
                        @if let Some(text) = &hit.text { p.text { (words::short_to(text, 400)) } }
                        @if let Some(url) = &hit.url { p.small { (words::outside(url)) } }
                    } }
                }
            }
        }
    }
}
