//! The dashboard's pages: HTML that is made here and reads well without a script, drawn from the picture
//! that the server keeps of the crawl, and from what was collected.
//!
//! Whatever was collected is text: maud escapes it, and addresses become links only if they lead to the web.

mod assets;
mod budgets;
mod chart;
mod classes;
mod force;
mod frame;
mod freshness;
mod graph;
mod lists;
mod log;
mod object;
mod overview;
mod robots;
mod search;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod words;

use crate::{Problem, Shared};
use axum::Router;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use frame::Frame;
use std::sync::Arc;

/// Rows of a page of a list.
const ROWS: usize = 50;

/// Every page, and what pages load.
pub fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(overview::get))
        .route("/standing", get(standing))
        .route("/robots", get(robots::get).post(robots::steer))
        .route("/budgets", get(budgets::get))
        .route("/freshness", get(freshness::get))
        .route("/graph", get(graph::get))
        .route("/search", get(search::get))
        .route("/search/online", post(search::online))
        .route("/object/{key}", get(object::get))
        .route("/log", get(log::get))
        .route("/log/{id}", get(log::call))
        .route("/settings", get(settings::get))
        .route(
            "/settings/definitions/{name}",
            get(settings::definition).post(settings::change),
        )
        .route("/settings/forget", post(settings::forget))
        .route(
            "/settings/login",
            get(settings::choose).post(settings::begin),
        )
        .route(
            "/settings/login/{id}",
            get(settings::login).post(settings::finish),
        )
        .route("/login", get(session::form).post(session::enter))
        .route("/logout", post(session::leave))
        .route("/assets/{name}", get(assets::get))
}

async fn standing(frame: Frame) -> Response {
    frame.standing_alone().into_response()
}

/// What stands where nothing else does.
pub(crate) async fn missing(frame: Frame, uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return crate::api::nothing().into_response();
    }
    frame.refuse(Problem::missing(
        "There is nothing at this address. It may have been mistyped, or belong to another version of the program.",
    ))
}
