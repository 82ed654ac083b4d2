//! How the crawl stands, and what it is to do.

use super::objects::{LimitParameters, PageQuestion, rows};
use super::views::{Label, key_text};
use super::{Answer, Known, Page, Path, Query};
use crate::Problem;
use crate::api::refusal::{Conflict, Forbidden, Invalid, Missing};
use crate::control::{Action, Controlled};
use crate::standing::look::run_standing;
use crate::standing::{BudgetStanding, Message, RobotStanding, RunStanding, Standing};
use axum::Json;
use axum::extract::State;
use kittiwake_model::{Name, WorldTime};
use kittiwake_store::browse::RunsQuestion;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How the crawl stands.
#[utoipa::path(get, path = "/api/status", tag = "crawl", responses((status = 200, body = Standing)))]
pub(crate) async fn status(State(shared): Known) -> Json<Standing> {
    Json((*shared.standing()).clone())
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesParameters {
    /// Only of one robot.
    #[param(max_length = 200)]
    robot: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What robots did last, the newest first.
#[utoipa::path(get, path = "/api/messages", tag = "crawl", params(MessagesParameters), responses(
    (status = 200, body = Vec<Message>),
    Invalid))]
pub(crate) async fn messages(
    State(shared): Known,
    Query(asked): Query<MessagesParameters>,
) -> Json<Vec<Message>> {
    shared.standing();
    Json(shared.messages(asked.robot.as_deref(), rows(asked.limit).min(200)))
}

/// The robots of the last run.
#[utoipa::path(get, path = "/api/robots", tag = "crawl",
    responses((status = 200, body = Vec<RobotStanding>)))]
pub(crate) async fn robots(State(shared): Known) -> Json<Vec<RobotStanding>> {
    Json(shared.standing().robots.clone())
}

/// Starts, pauses, resumes or stops one robot.
#[utoipa::path(post, path = "/api/robots/{robot}/{action}", tag = "crawl",
    params(("robot" = String, Path, max_length = 200), ("action" = Action, Path)), responses(
    (status = 200, body = Controlled),
    Invalid, Forbidden, Missing, Conflict))]
pub(crate) async fn steer_robot(
    State(shared): Known,
    Path((robot, action)): Path<(String, Action)>,
) -> Answer<Controlled> {
    Ok(Json(shared.control(action, Some(&robot)).await?))
}

/// Starts, pauses, resumes or stops the crawl.
#[utoipa::path(post, path = "/api/crawl/{action}", tag = "crawl",
    params(("action" = Action, Path)), responses(
    (status = 200, body = Controlled),
    Invalid, Forbidden, Conflict))]
pub(crate) async fn steer_crawl(
    State(shared): Known,
    Path(action): Path<Action>,
) -> Answer<Controlled> {
    Ok(Json(shared.control(action, None).await?))
}

/// How the limits stand that something counts against.
#[utoipa::path(get, path = "/api/budgets", tag = "crawl",
    responses((status = 200, body = Vec<BudgetStanding>)))]
pub(crate) async fn budgets(State(shared): Known) -> Json<Vec<BudgetStanding>> {
    Json(shared.standing().budgets.clone())
}

/// The runs of the crawl, the newest first.
#[utoipa::path(get, path = "/api/runs", tag = "crawl", params(PageQuestion), responses(
    (status = 200, body = Page<RunStanding>),
    Invalid))]
pub(crate) async fn runs(
    State(shared): Known,
    Query(asked): Query<PageQuestion>,
) -> Answer<Page<RunStanding>> {
    let question = RunsQuestion {
        after: asked.after,
        limit: rows(asked.limit),
    };
    let page = shared.browser.runs(question).await?;
    Ok(Json(Page {
        rows: page.rows.iter().map(run_standing).collect(),
        next: page.next,
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhyParameters {
    /// A handle or an id.
    #[param(max_length = 2000)]
    user: String,
}

/// Why somebody is due when they are, by robot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DueReason {
    key: String,
    lane: String,
    policy: Option<String>,
    visits: u32,
    visited_us: Option<i64>,
    due_us: i64,
    posts_per_day: Option<f64>,
    posts_waiting: Option<f64>,
    /// What a visit is worth now and what it has to be worth, in posts that wait for a day.
    worth: Option<f64>,
    price: Option<f64>,
    /// When it will be worth that.
    worth_at_us: Option<i64>,
}

/// Why somebody is due when they are.
#[utoipa::path(get, path = "/api/why", tag = "crawl", params(WhyParameters), responses(
    (status = 200, body = Vec<DueReason>),
    Invalid))]
pub(crate) async fn why(
    State(shared): Known,
    Query(asked): Query<WhyParameters>,
) -> Answer<Vec<DueReason>> {
    let standing = shared.standing();
    let robots: Vec<Name> = standing
        .robots
        .iter()
        .map(|it| Name::from(it.name.as_str()))
        .collect();
    let now = WorldTime(standing.world_us);
    let called = asked.user.trim().trim_start_matches('@');
    let whys = kittiwake_engine::why(&*shared.store, &shared.policies, called, &robots, now).await;
    let whys = whys.map_err(|error| {
        Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            error.to_string(),
        )
    })?;
    let due = whys.into_iter().map(|why| DueReason {
        key: key_text(why.subject),
        lane: why.lane.to_string(),
        policy: why.policy.map(str::to_owned),
        visits: why.visits,
        visited_us: why.visited.map(WorldTime::micros),
        due_us: why.due.micros(),
        posts_per_day: why.posts_per_day,
        posts_waiting: why.waiting,
        worth: why.worth,
        price: why.price,
        worth_at_us: why.worth_at.map(WorldTime::micros),
    });
    Ok(Json(due.collect()))
}

/// How often somebody's objects are asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Interested {
    user: Label,
    /// Since the server began.
    requests: u64,
    /// Lately: each counts half after a week.
    weight: f64,
    last_us: i64,
}

/// Whose objects are asked for most, here.
#[utoipa::path(get, path = "/api/interest", tag = "objects", params(LimitParameters), responses(
    (status = 200, body = Vec<Interested>),
    Invalid))]
pub(crate) async fn interest(
    State(shared): Known,
    Query(asked): Query<LimitParameters>,
) -> Answer<Vec<Interested>> {
    let most = shared
        .interest
        .most(rows(asked.limit).min(200), (shared.now)());
    let labels = shared
        .browser
        .labels(most.iter().map(|it| it.user).collect())
        .await?;
    let interested = labels.into_iter().filter_map(|label| {
        let it = most.iter().find(|it| it.user == label.key)?;
        Some(Interested {
            user: label.into(),
            requests: it.requests,
            weight: it.weight,
            last_us: it.last.micros(),
        })
    });
    Ok(Json(interested.collect()))
}
