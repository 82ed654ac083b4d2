//! What stands around every page: who asks, how the crawl stands, the way to the other pages.

use super::words;
use crate::standing::Standing;
use crate::{Caller, Problem, Role, Shared};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{DOCTYPE, Markup, html};
use std::convert::Infallible;
use std::sync::Arc;

/// Pages that the others lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Overview,
    Robots,
    Budgets,
    Freshness,
    Graph,
    Search,
    Log,
    Settings,
    /// Under none of them.
    Elsewhere,
}

const PAGES: [(Here, &str, &str); 8] = [
    (Here::Overview, "/", "Overview"),
    (Here::Robots, "/robots", "Robots"),
    (Here::Budgets, "/budgets", "Budgets"),
    (Here::Freshness, "/freshness", "Freshness"),
    (Here::Graph, "/graph", "Graph"),
    (Here::Search, "/search", "Search"),
    (Here::Log, "/log", "Query log"),
    (Here::Settings, "/settings", "Settings"),
];

/// What is asked for again whenever the crawl has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refresh {
    /// Only how the crawl stands, in the bar above.
    Standing,
    /// This very page.
    Page,
    /// A page that holds the parts that move.
    From(String),
}

/// One page, without what stands around it.
pub(super) struct Sheet {
    pub(super) here: Here,
    pub(super) title: String,
    pub(super) refresh: Refresh,
    pub(super) body: Markup,
}

/// Who asks, and for what.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(super) caller: Caller,
    pub(super) standing: Arc<Standing>,
    theme: Option<&'static str>,
    /// Path and query of this page.
    address: String,
    wants_json: bool,
}

impl FromRequestParts<Arc<Shared>> for Frame {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Infallible> {
        let nobody = Caller {
            role: Role::Viewer,
            has_session: false,
        };
        Ok(Self {
            caller: parts.extensions.get().copied().unwrap_or(nobody),
            standing: shared.standing(),
            theme: theme(&parts.headers),
            address: parts
                .uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
            wants_json: wants_json(&parts.headers),
        })
    }
}

/// The theme that was chosen, if one was.
fn theme(headers: &HeaderMap) -> Option<&'static str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let chosen = cookies
        .split(';')
        .find_map(|cookie| cookie.trim().strip_prefix("theme="))?;
    ["light", "dark"].into_iter().find(|theme| *theme == chosen)
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    accept.is_some_and(|accept| accept.starts_with("application/json"))
}

impl Frame {
    /// A frame around a crawl that stands so, for an operator without a session.
    #[cfg(test)]
    pub(super) fn of(standing: Standing) -> Self {
        Self {
            caller: Caller {
                role: Role::Operator,
                has_session: false,
            },
            standing: Arc::new(standing),
            theme: None,
            address: "/".into(),
            wants_json: false,
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        self.caller.role == Role::Operator
    }

    /// The guard lets no viewer come so far; this is in case that it ever does.
    pub(super) fn want_operator(&self) -> Result<(), Problem> {
        if self.is_operator() {
            return Ok(());
        }
        let detail = "A viewer changes nothing. Log in as operator.";
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }

    /// A page, or why there is none.
    pub(super) fn answer(&self, sheet: Result<Sheet, Problem>) -> Response {
        match sheet {
            Ok(sheet) => self.show(&sheet).into_response(),
            Err(problem) => self.refuse(problem),
        }
    }

    /// What follows from something that was done: a word for the script, the page before for all others.
    pub(super) fn done(&self, said: Result<String, Problem>, back: &str) -> Response {
        match said {
            Ok(said) if self.wants_json => {
                axum::Json(serde_json::json!({ "said": said })).into_response()
            }
            Ok(_) => Redirect::to(own_path(back)).into_response(),
            Err(problem) => self.refuse(problem),
        }
    }

    pub(super) fn refuse(&self, problem: Problem) -> Response {
        if self.wants_json {
            return problem.into_response();
        }
        let page = self.show(&Sheet {
            here: Here::Elsewhere,
            title: problem.title.to_owned(),
            refresh: Refresh::Standing,
            body: html! {
                div.head { h1 { (problem_title(problem.status())) } }
                section.part {
                    p.text { (problem.detail) }
                    p.note { "Error " (problem.status) ". " a href="/" { "Go to the overview" } "." }
                }
            },
        });
        (problem.status(), page).into_response()
    }

    pub(super) fn show(&self, sheet: &Sheet) -> Html<String> {
        let refresh = match &sheet.refresh {
            Refresh::Standing => "/standing",
            Refresh::Page => &self.address,
            Refresh::From(address) => address,
        };
        self.document(&sheet.title, &html! {
            body data-refresh=(refresh) {
                a.skip href="#main" { "Skip to the page" }
                header.top {
                    a.brand href="/" { (mark()) "Kittiwake" }
                    (standing(&self.standing))
                    span.push {}
                    form.find action="/search" role="search" {
                        label.aside for="find" { "Search what was collected" }
                        input id="find" type="search" name="words" placeholder="People, posts, ids" autocomplete="off" maxlength="500";
                        button { "Search" }
                    }
                    button #theme type="button" hidden { "Dark" }
                    @if self.caller.has_session {
                        form action="/logout" method="post" { button { "Log out" } }
                    }
                }
                nav.pages aria-label="Pages" {
                    ul {
                        @for (here, address, name) in PAGES {
                            li { a href=(address) aria-current=[(here == sheet.here).then_some("page")] { (name) } }
                        }
                    }
                }
                main #main tabindex="-1" {
                    p #said .said role="status" aria-live="polite" {}
                    (sheet.body)
                }
                footer.foot {
                    (self.standing.place)
                    @if !self.is_operator() { " · you may look, and change nothing" }
                }
            }
        })
    }

    /// A page that stands alone, as for whoever is not logged in yet.
    pub(super) fn bare(&self, title: &str, body: &Markup) -> Html<String> {
        self.document(
            title,
            &html! {
                body.bare {
                    main #main {
                        a.brand href="/" { (mark()) "Kittiwake" }
                        (body)
                    }
                }
            },
        )
    }

    /// How the crawl stands, and nothing else.
    pub(super) fn standing_alone(&self) -> Html<String> {
        Html(standing(&self.standing).into_string())
    }

    fn document(&self, title: &str, body: &Markup) -> Html<String> {
        let document = html! {
            (DOCTYPE)
            html lang="en" data-theme=[self.theme] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (words::short(title)) " · Kittiwake" }
                    link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/assets/kittiwake.css";
                    script src="/assets/kittiwake.js" defer {}
                }
                (body)
            }
        };
        Html(document.into_string())
    }
}

/// A path of this program, whatever a form says.
pub(super) fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains(['\\', '\r', '\n'])
        && path.is_ascii();
    if is_own { path } else { "/" }
}

fn problem_title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is no such page",
        StatusCode::BAD_REQUEST => "That makes no sense here",
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "That is not allowed",
        StatusCode::CONFLICT => "That cannot be done now",
        StatusCode::TOO_MANY_REQUESTS => "That was too often",
        _ => "Something went wrong",
    }
}

fn mark() -> Markup {
    html! {
        svg viewBox="0 0 32 32" aria-hidden="true" { path d="M4 13c5-3 9 0 12 6 3-6 7-9 12-6" {} }
    }
}

/// Which crawl it is, and how it stands.
fn standing(standing: &Standing) -> Markup {
    let (class, state) = state(standing);
    html! {
        div #standing .standing data-live {
            @if let Some(run) = &standing.run {
                span.name { (run.network) @if !run.host.is_empty() { " at " (run.host) } }
            }
            span.pill.(class) { (state) }
            span.pill.bad.links-off { "not connected" }
        }
    }
}

/// The state of the crawl in a word, and its colour.
pub(super) fn state(standing: &Standing) -> (&'static str, &'static str) {
    let Some(run) = &standing.run else {
        return ("plain", "not begun");
    };
    if standing.crawling && standing.paused {
        ("warn", "paused")
    } else if standing.crawling {
        ("good", "crawling")
    } else if run.ended_us.is_some() {
        ("plain", "ended")
    } else {
        ("bad", "broke off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for path in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb",
        ] {
            assert_eq!(own_path(path), "/", "{path}");
        }
        assert_eq!(own_path("/robots?a=1"), "/robots?a=1");
    }

    #[test]
    fn only_known_themes_are_taken() {
        let chosen = |cookie: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            theme(&headers)
        };
        assert_eq!(chosen("a=b; theme=dark"), Some("dark"));
        assert_eq!(chosen("theme=\"><script>"), None);
        assert_eq!(chosen("x=theme=dark"), None);
    }
}
