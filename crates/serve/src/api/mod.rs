//! The API: everything that programs can ask, described by the code itself.

mod access;
mod crawl;
mod extract;
mod figures;
mod log;
mod objects;
mod program;
pub(crate) mod refusal;
pub(crate) mod value;
mod views;

pub(crate) use extract::{Body, Path, Query};
pub(crate) use views::Page;

use crate::{Problem, Shared, live, metrics, subscribe};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use kittiwake_model::Key;
use std::sync::Arc;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Rows of a page where nobody says how many.
pub(crate) const ROWS: usize = 50;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Kittiwake",
        description = "A crawl of online social networks: what it found, how it stands, and what it is to do. \
                       Keys and ids are text, times are microseconds since 1970, UTC. Lists come in pages: \
                       ask with `after=` and the `next` of the page before.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(
        Problem,
        crate::control::Action,
        objects::Direction,
        objects::List,
        objects::Order,
        objects::Within
    )),
    security(("basic" = [])),
    modifiers(&Basic),
    tags(
        (name = "crawl", description = "how the crawl stands, and what it is to do"),
        (name = "objects", description = "what was found"),
        (name = "log", description = "what was asked, and what came of it"),
        (name = "feed", description = "what is being found"),
        (name = "program", description = "definitions, credentials, the network itself"),
        (name = "access", description = "who is asking"),
    )
)]
struct Description;

struct Basic;

impl Modify for Basic {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let components = description.components.get_or_insert_default();
        let basic = SecurityScheme::Http(Http::new(HttpAuthScheme::Basic));
        components.add_security_scheme("basic", basic);
    }
}

/// Everything under `/api`, and what watches over servers.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    let (router, description) = described();
    let text: Arc<str> = description.to_json().unwrap_or_default().into();
    let show = move || {
        let text = Arc::clone(&text);
        async move { ([("content-type", "application/json")], text.to_string()) }
    };
    router.route("/api/openapi.json", get(show))
}

fn described() -> (Router<Arc<Shared>>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(crawl::status))
        .routes(routes!(live::live))
        .routes(routes!(crawl::messages))
        .routes(routes!(crawl::robots))
        .routes(routes!(crawl::steer_robot))
        .routes(routes!(crawl::steer_crawl))
        .routes(routes!(crawl::budgets))
        .routes(routes!(crawl::runs))
        .routes(routes!(crawl::why))
        .routes(routes!(crawl::interest))
        .routes(routes!(objects::users))
        .routes(routes!(objects::posts))
        .routes(routes!(objects::find))
        .routes(routes!(objects::search))
        .routes(routes!(objects::object))
        .routes(routes!(objects::comments))
        .routes(routes!(objects::relations))
        .routes(routes!(objects::links))
        .routes(routes!(objects::counts))
        .routes(routes!(objects::versions))
        .routes(routes!(figures::calls))
        .routes(routes!(figures::call))
        .routes(routes!(figures::outcomes))
        .routes(routes!(figures::errors))
        .routes(routes!(figures::activity))
        .routes(routes!(figures::graph))
        .routes(routes!(figures::lanes))
        .routes(routes!(figures::ages))
        .routes(routes!(figures::hours))
        .routes(routes!(figures::extent))
        .routes(routes!(subscribe::subscribe))
        .routes(routes!(subscribe::events))
        .routes(routes!(program::definitions))
        .routes(routes!(program::check_definition))
        .routes(routes!(program::definition, program::apply_definition))
        .routes(routes!(program::credentials))
        .routes(routes!(program::remove_credential))
        .routes(routes!(program::login_methods))
        .routes(routes!(program::begin_login))
        .routes(routes!(program::login, program::finish_login))
        .routes(routes!(program::search_online))
        .routes(routes!(access::log_in))
        .routes(routes!(access::log_out))
        .routes(routes!(access::me))
        .routes(routes!(access::report))
        .routes(routes!(access::reports))
        .routes(routes!(metrics::healthz))
        .routes(routes!(metrics::metrics))
        .split_for_parts()
}

/// What no route is there for.
pub(crate) fn nothing() -> Problem {
    Problem::missing("there is nothing at this address; /api/openapi.json says what there is")
}

/// A key as it is written in addresses.
pub(crate) fn key(text: &str) -> Result<Key, Problem> {
    let key = text.parse().ok().map(Key);
    key.ok_or_else(|| Problem::invalid("a key is a number; /api/find finds one by an id"))
}

/// Whoever is called so: by a key, an id, a handle or an address.
pub(crate) async fn keys(shared: &Shared, called: &str) -> Result<Vec<Key>, Problem> {
    let called = called.trim().trim_start_matches('@');
    let mut keys: Vec<Key> = called.parse().ok().map(Key).into_iter().collect();
    let found = shared.browser.find(called.to_owned()).await?;
    keys.extend(found.into_iter().map(|label| label.key));
    Ok(keys)
}

pub(crate) type Answer<T> = Result<Json<T>, Problem>;
pub(crate) type Known = State<Arc<Shared>>;
