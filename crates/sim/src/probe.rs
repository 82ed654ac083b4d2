//! `/_sim`: what the network knows about itself and about its callers. Neither limited nor entered
//! in the ledger.
//!
//! - `/_sim/clock`: origin and rate of the clocks, as `ClockSpec`
//! - `/_sim/advance?seconds=N`: moves the world's time on, frozen or not, and gives the new clocks;
//!   the time of limits stays. `limit_seconds=N` moves the time of limits on, and the world's stays
//! - `/_sim/ledger`: `total` calls; `calls` summed up by query, subject, cursor, target and
//!   credential (left off with `?calls=0`); `windows` of every bucket; `violations`
//! - `/_sim/ledger/calls?after=SEQ&limit=N`: every call in the order of arrival, as JSON lines
//! - `/_sim/faults?after=SEQ&limit=N`: every fault in the order of happening, as JSON lines;
//!   `/_sim/faults/summary`: how many of each kind
//! - `/_sim/truth/TABLE?after=TOKEN&limit=N&at_us=T`: the ground truth, now or at another time, as
//!   JSON lines; `after` is the last line's `_after`, an empty answer is the end. What faults took
//!   away is not there, unless it is asked for with `before_faults=1`
//! - `/_sim/truth/trace?from_us=T&until_us=T`: who wrote when, as CSV; whatever faults took away was
//!   written, and is there
//!
//! Where there are several instances, `host=NAME` says whose ledger and faults are meant; without it
//! `/_sim/ledger` sums up all of them. `hosts=PATTERNS` restricts the truth to what those hosts tell.

use std::sync::Arc;

use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};

use crate::bill::Bill;
use crate::fediverse::Instance;
use crate::http::{Shared, body_response};
use crate::hub::{Hub, is_among};
use crate::ledger::{EntryRow, Violation};
use crate::limits::WindowRow;
use crate::params::Params;
use crate::trace::{self, Trace};
use crate::truth::{self, Table, TruthPage};
use crate::world::Moment;

const JSON: &str = "application/json; charset=utf-8";
const JSON_LINES: &str = "application/jsonl; charset=utf-8";
const CALLS_DEFAULT: u64 = 1_000;

#[derive(Debug, Serialize)]
struct LedgerAnswer<'a> {
    total: u64,
    overflow: u64,
    violations_total: u64,
    violations: &'a [Violation],
    windows: Vec<WindowRow<'a>>,
    windows_dropped: u64,
    bill: &'a Bill,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<EntryRow<'a>>>,
}

pub(crate) async fn handle(hub: Arc<Hub>, uri: &Uri) -> Response {
    let params = Params::read(uri.query().unwrap_or_default());
    let path = uri.path().trim_end_matches('/').to_owned();
    // Some answers are long work: the requests of crawlers must not wait behind them.
    let work = tokio::task::spawn_blocking(move || answer(&hub, &path, &params));
    work.await
        .unwrap_or_else(|_| problem(500, "the answer could not be made"))
}

fn answer(hub: &Hub, path: &str, params: &Params) -> Response {
    // The world and the clocks are the same for all instances, the books are not.
    let first = hub.first();
    let (shared, is_named) = match params.get("host").filter(|_| hub.is_fediverse()) {
        Some(name) => match hub.named(name) {
            Some(shared) => (shared, true),
            None => return problem(404, "there is no such host"),
        },
        None => (first, !hub.is_fediverse()),
    };
    match path {
        "/_sim/clock" => json_response(&first.clock.spec()),
        "/_sim/advance" => advance(first, params),
        "/_sim/ledger" if is_named => ledger(shared, params.get("calls") != Some("0")),
        "/_sim/ledger" => ledger_of_all(hub, params.get("allowed")),
        "/_sim/faults" | "/_sim/faults/summary" | "/_sim/ledger/calls" if !is_named => {
            problem(400, "every host has its own: say which with `host`")
        }
        "/_sim/faults" => faults(shared, params),
        "/_sim/faults/summary" => json_response(&shared.books().faults.summary()),
        "/_sim/ledger/calls" => ledger_calls(shared, params),
        "/_sim/truth/trace" => trace(hub, params),
        _ => match path.strip_prefix("/_sim/truth/").map(str::parse) {
            Some(Ok(Table::Hosts)) if !hub.is_fediverse() => problem(404, "there is no such page"),
            Some(Ok(table)) => truth(hub, table, params),
            _ => problem(404, "there is no such page"),
        },
    }
}

/// What came to each instance, and what went astray.
fn ledger_of_all(hub: &Hub, allowed: Option<&str>) -> Response {
    let mut outside = 0;
    let (mut total, mut violations_total) = (0, 0);
    let mut hosts: Vec<Value> = Vec::new();
    for shared in hub.all() {
        let Some(instance) = &shared.instance else {
            continue;
        };
        let books = shared.books();
        let calls = books.ledger.total();
        if allowed.is_some_and(|patterns| !is_among(patterns, instance.host())) {
            outside += calls;
        }
        total += calls;
        violations_total += books.ledger.violations_total();
        hosts.push(json!({
            "host": instance.host(),
            "software": instance.software,
            "trouble": instance.trouble,
            "total": calls,
            "violations_total": books.ledger.violations_total(),
        }));
    }
    let strangers = hub.strangers().clone();
    let strange = strangers.values().sum::<u64>();
    let canary = hub.canary().map(|canary| {
        let dialled = canary.dialled();
        json!({
            "address": canary.address.to_string(),
            "dialled": dialled.dialled,
            "lines": dialled.lines,
        })
    });
    json_response(&json!({
        "total": total,
        "violations_total": violations_total,
        "hosts": hosts,
        // Calls of hosts that were not allowed, if it was said which are.
        "outside": allowed.map(|_| outside + strange),
        "strangers": strangers,
        "canary": canary,
    }))
}

fn advance(shared: &Shared, params: &Params) -> Response {
    let moved = match (params.get("seconds"), params.get("limit_seconds")) {
        (Some(_), None) => params
            .number("seconds")
            .map(|seconds| shared.clock.advance(seconds)),
        (None, Some(_)) => params
            .number("limit_seconds")
            .map(|seconds| shared.clock.advance_limits(seconds)),
        _ => None,
    };
    match moved {
        None => problem(
            400,
            "`seconds` or `limit_seconds`, one of them, must be a whole number",
        ),
        Some(None) => problem(400, "the world has no such late time"),
        Some(Some(spec)) => json_response(&spec),
    }
}

fn ledger(shared: &Shared, with_calls: bool) -> Response {
    let books = shared.books();
    let (violations, violations_total) = books.ledger.violations();
    let (windows, windows_dropped) = books.limiter.windows();
    json_response(&LedgerAnswer {
        total: books.ledger.total(),
        overflow: books.ledger.overflow(),
        violations_total,
        violations,
        windows,
        windows_dropped,
        bill: &books.bill,
        calls: with_calls.then(|| books.ledger.entries().collect()),
    })
}

fn ledger_calls(shared: &Shared, params: &Params) -> Response {
    let limit = params.number("limit").unwrap_or(CALLS_DEFAULT);
    let books = shared.books();
    lines_response(books.ledger.calls(params.number("after"), limit as usize))
}

fn faults(shared: &Shared, params: &Params) -> Response {
    let limit = params.number("limit").unwrap_or(CALLS_DEFAULT);
    let books = shared.books();
    let rows = books.faults.rows(params.number("after"), limit as usize);
    lines_response(rows)
}

fn trace(hub: &Hub, params: &Params) -> Response {
    let shared = hub.first();
    let time_us = |name: &str, otherwise_us: i64| match params.get(name) {
        Some(text) => text.parse().ok(),
        None => Some(otherwise_us),
    };
    let now_us = shared.clock.world().micros();
    let (Some(from_us), Some(until_us)) = (time_us("from_us", 0), time_us("until_us", now_us))
    else {
        return problem(400, "`from_us` and `until_us` are microseconds since 1970");
    };
    if shared.world.users() > trace::USERS_MAX {
        let told = format!(
            "a world with a trace has at most {} users",
            trace::USERS_MAX
        );
        return problem(400, &told);
    }
    let asked = Trace {
        world: Arc::clone(&shared.world),
        span_us: from_us..until_us,
        asked_homes: asked_hosts(hub, params).map(|asked| {
            let told = hub.instances().into_iter().zip(asked);
            told.map(|(home, is_asked)| is_asked && home.is_sound())
                .collect()
        }),
    };
    asked.respond()
}

/// Which instances the truth is wanted of, if that is said.
fn asked_hosts(hub: &Hub, params: &Params) -> Option<Vec<bool>> {
    let patterns = params.get("hosts")?;
    let is_asked = |instance: &Instance| is_among(patterns, instance.host());
    Some(hub.instances().into_iter().map(is_asked).collect())
}

fn truth(hub: &Hub, table: Table, params: &Params) -> Response {
    let shared = hub.first();
    let instances = hub.instances();
    let asked_hosts = asked_hosts(hub, params);
    // A fixed time keeps a walk over many pages whole while the world moves on.
    let at_us = params
        .number("at_us")
        .and_then(|at_us| i64::try_from(at_us).ok())
        .unwrap_or_else(|| shared.clock.world().micros());
    let withdrawn = shared.faults.withdrawn();
    let asked = TruthPage {
        table,
        after: params.get("after"),
        limit: params.number("limit"),
        instances: &instances,
        asked_hosts: asked_hosts.as_deref(),
        now: if params.is_true("before_faults") {
            Moment::undisturbed(at_us)
        } else {
            Moment::new(at_us, &withdrawn)
        },
    };
    truth::page(&shared.world, asked).map_or_else(
        || problem(400, "`after` is not a token of this table"),
        |body| body_response(200, JSON_LINES, body),
    )
}

fn lines_response<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Response {
    let mut body = Vec::new();
    for row in rows {
        if serde_json::to_writer(&mut body, &row).is_err() {
            return problem(500, "the answer could not be written");
        }
        body.push(b'\n');
    }
    body_response(200, JSON_LINES, body)
}

fn json_response(value: &impl Serialize) -> Response {
    serde_json::to_vec(value).map_or_else(
        |_| problem(500, "the answer could not be written"),
        |body| body_response(200, JSON, body),
    )
}

fn problem(status: u16, text: &str) -> Response {
    body_response(
        status,
        JSON,
        json!({ "error": text }).to_string().into_bytes(),
    )
}
