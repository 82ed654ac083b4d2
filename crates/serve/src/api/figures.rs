//! What was asked, what came of it, and figures over both.

use super::log::{Activity, Ages, Call, Errors, Graph, Hours, NewestOutcome, WholeCall};
use super::objects::rows;
use super::{Answer, Known, Page, Path, Query, key};
use crate::Problem;
use crate::api::refusal::{Invalid, Missing};
use axum::Json;
use axum::extract::State;
use kittiwake_model::{OutcomeCode, WorldTime};
use kittiwake_store::browse::{
    ActivityQuestion, AgesQuestion, CallsQuestion, GraphQuestion, OutcomesOf, OutcomesQuestion,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallsParameters {
    #[param(max_length = 200)]
    query: Option<String>,
    /// `ok`, `not found`, … as the log has it.
    #[param(max_length = 50)]
    outcome: Option<String>,
    /// The key of somebody who was asked about.
    #[param(pattern = "^[0-9]{1,18}$")]
    subject: Option<String>,
    /// Only calls that were no success.
    #[serde(default)]
    failed: bool,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

fn outcome(text: Option<&str>) -> Result<Option<OutcomeCode>, Problem> {
    let read = text.map(str::parse::<OutcomeCode>).transpose();
    read.map_err(|error| Problem::invalid(error.to_string()))
}

/// The query log, the newest call first.
#[utoipa::path(get, path = "/api/calls", tag = "log", params(CallsParameters), responses(
    (status = 200, body = Page<Call>),
    Invalid))]
pub(crate) async fn calls(
    State(shared): Known,
    Query(asked): Query<CallsParameters>,
) -> Answer<Page<Call>> {
    let question = CallsQuestion {
        query: asked.query,
        outcome: outcome(asked.outcome.as_deref())?,
        subject: asked.subject.as_deref().map(key).transpose()?,
        failed_only: asked.failed,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.calls(question).await?)))
}

/// Everything that the log has of one call.
#[utoipa::path(get, path = "/api/calls/{id}", tag = "log",
    params(("id" = String, Path, pattern = "^[0-9]{1,18}$")), responses(
    (status = 200, body = WholeCall),
    Invalid, Missing))]
pub(crate) async fn call(State(shared): Known, Path(id): Path<String>) -> Answer<WholeCall> {
    let found = shared.browser.call(key(&id)?.0).await?;
    let found = found.ok_or_else(|| Problem::missing("the log has no call of this number"))?;
    Ok(Json(found.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutcomesParameters {
    #[param(pattern = "^[0-9]{1,18}$")]
    subject: Option<String>,
    #[param(max_length = 50)]
    outcome: Option<String>,
    /// Only those that are no success.
    #[serde(default)]
    failed: bool,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What came of asking for each id: the newest outcome of every query. One filter at a time.
#[utoipa::path(get, path = "/api/outcomes", tag = "log", params(OutcomesParameters), responses(
    (status = 200, body = Page<NewestOutcome>),
    Invalid))]
pub(crate) async fn outcomes(
    State(shared): Known,
    Query(asked): Query<OutcomesParameters>,
) -> Answer<Page<NewestOutcome>> {
    let subject = asked.subject.as_deref().map(key).transpose()?;
    let of = match (subject, outcome(asked.outcome.as_deref())?, asked.failed) {
        (None, None, false) => OutcomesOf::Everybody,
        (Some(subject), None, false) => OutcomesOf::Subject(subject),
        (None, Some(outcome), false) => OutcomesOf::Outcome(outcome),
        (None, None, true) => OutcomesOf::Failed,
        _ => {
            return Err(Problem::invalid(
                "outcomes are told of one subject, or of one outcome, or of all that failed: give one of \
                 subject, outcome and failed",
            ));
        }
    };
    let question = OutcomesQuestion {
        of,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.outcomes(question).await?)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ErrorsParameters {
    /// Calls that are looked at, at most 20 000; 5 000 if it is missing.
    #[param(minimum = 1, maximum = 20000)]
    calls: Option<u32>,
}

/// Outcomes among the newest calls.
#[utoipa::path(get, path = "/api/errors", tag = "log", params(ErrorsParameters), responses(
    (status = 200, body = Errors),
    Invalid))]
pub(crate) async fn errors(
    State(shared): Known,
    Query(asked): Query<ErrorsParameters>,
) -> Answer<Errors> {
    let calls = asked.calls.unwrap_or(5_000) as usize;
    Ok(Json(shared.browser.errors(calls).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivityParameters {
    /// How far back, at most; as far as is looked at if it is missing.
    #[param(minimum = 1, maximum = 31_536_000)]
    seconds: Option<u32>,
    /// In how many stretches; 60 if it is missing.
    #[param(minimum = 1, maximum = 500)]
    buckets: Option<u32>,
}

/// What the crawl did of late: calls, rows and bytes by query and time.
#[utoipa::path(get, path = "/api/activity", tag = "log", params(ActivityParameters), responses(
    (status = 200, body = Activity),
    Invalid))]
pub(crate) async fn activity(
    State(shared): Known,
    Query(asked): Query<ActivityParameters>,
) -> Answer<Activity> {
    let now = (shared.now)();
    let since = asked
        .seconds
        .map(|seconds| now.plus_us(-i64::from(seconds) * 1_000_000));
    let question = ActivityQuestion {
        since,
        calls_max: 20_000,
        buckets: asked.buckets.unwrap_or(60) as usize,
    };
    Ok(Json(shared.browser.activity(question).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GraphParameters {
    /// The key of the user in the middle; the best connected people if it is missing.
    #[param(pattern = "^[0-9]{1,18}$")]
    around: Option<String>,
    /// At most 1 000; 300 if it is missing.
    #[param(minimum = 1, maximum = 1000)]
    nodes: Option<u32>,
}

/// Who follows whom, in part.
#[utoipa::path(get, path = "/api/graph", tag = "objects", params(GraphParameters), responses(
    (status = 200, body = Graph),
    Invalid))]
pub(crate) async fn graph(
    State(shared): Known,
    Query(asked): Query<GraphParameters>,
) -> Answer<Graph> {
    let question = GraphQuestion {
        around: asked.around.as_deref().map(key).transpose()?,
        nodes_max: asked.nodes.unwrap_or(300) as usize,
    };
    Ok(Json(shared.browser.graph(question).await?.into()))
}

/// The lanes that have subjects: network, host and robot.
#[utoipa::path(get, path = "/api/lanes", tag = "crawl", responses((status = 200, body = Vec<String>)))]
pub(crate) async fn lanes(State(shared): Known) -> Answer<Vec<String>> {
    Ok(Json(shared.browser.lanes().await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AgesParameters {
    /// One of `/api/lanes`.
    #[param(max_length = 1000)]
    lane: String,
}

/// How long ago the subjects of a lane were visited.
#[utoipa::path(get, path = "/api/ages", tag = "crawl", params(AgesParameters), responses(
    (status = 200, body = Ages),
    Invalid))]
pub(crate) async fn ages(
    State(shared): Known,
    Query(asked): Query<AgesParameters>,
) -> Answer<Ages> {
    let question = AgesQuestion {
        lane: asked.lane,
        now: WorldTime(shared.standing().world_us),
        sample_max: 20_000,
    };
    Ok(Json(shared.browser.ages(question).await?.into()))
}

/// At which hours of the day posts are made.
#[utoipa::path(get, path = "/api/hours", tag = "crawl", responses((status = 200, body = Hours)))]
pub(crate) async fn hours(State(shared): Known) -> Answer<Hours> {
    Ok(Json(shared.browser.hours(20_000).await?.into()))
}

/// Rows of a table, as counted some time ago.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counted {
    rows: u64,
    at_us: i64,
}

/// Rows by table. What is large is counted now and then.
#[utoipa::path(get, path = "/api/tables", tag = "objects",
    responses((status = 200, body = BTreeMap<String, Counted>)))]
pub(crate) async fn extent(State(shared): Known) -> Answer<BTreeMap<String, Counted>> {
    let rows = shared.browser.extent().await?.rows.into_iter();
    let counted = rows.map(|(table, it)| {
        let counted = Counted {
            rows: it.rows,
            at_us: it.at.micros(),
        };
        (table, counted)
    });
    Ok(Json(counted.collect()))
}
