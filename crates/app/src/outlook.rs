//! What a crawl will take, as text for people and as JSON for machines. Pure.

use crate::progress::{amount, clock_text};
use kittiwake_engine::forecast::{BudgetForecast, Span};
use kittiwake_engine::{CrawlSettings, Estimate, Forecast};
use kittiwake_store::Location;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// The forecast for machines (keys: docs/plan.md).
pub(crate) fn as_json(file: &Location, forecast: &Forecast, probed: Option<u64>) -> Value {
    json!({
        "file": file.to_string(),
        "probe_calls": probed,
        "calls": forecast.calls,
        "queries": forecast.queries,
        "people": forecast.people,
        "money": forecast.money,
        "seconds": forecast.duration.seconds,
        "bottleneck": forecast.duration.bottleneck,
        "budgets": forecast.duration.budgets,
        "assumptions": forecast.assumptions,
        "unknown_seeds": forecast.unknown_seeds,
        "vague": forecast.is_vague,
    })
}

/// The forecast for people.
pub(crate) fn as_text(
    settings: &CrawlSettings,
    forecast: &Forecast,
    probed: Option<u64>,
) -> String {
    let mut text = format!("calls       {}\n", estimate(&forecast.calls));
    let _ = writeln!(text, "time        {}", span(&forecast.duration.seconds));
    for (currency, money) in &forecast.money {
        let money = interval(money, |number| format!("{number:.2}"));
        let _ = writeln!(text, "money       {money} {currency}");
    }
    let _ = writeln!(text, "bottleneck  {}", bottleneck(forecast));
    text.push_str(&caps(settings, forecast));
    text.push('\n');
    for query in &forecast.queries {
        let calls = estimate(&query.calls);
        let _ = writeln!(
            text,
            "{:<11} {:<14} {calls} calls",
            query.robot, query.query
        );
    }
    for (depth, people) in forecast.people.iter().enumerate() {
        let people = estimate(people);
        let _ = writeln!(text, "{:<11} {people} people", format!("depth {depth}"));
    }
    for budget in &forecast.duration.budgets {
        text.push_str(&budget_line(budget));
    }
    text.push('\n');
    text.push_str(&assumed(forecast));
    match probed {
        Some(calls) => {
            let _ = writeln!(
                text,
                "the probe made {calls} calls, which counted like any others"
            );
        }
        None if forecast.is_vague => text.push_str(&advice(forecast)),
        None => {}
    }
    text
}

fn advice(forecast: &Forecast) -> String {
    match forecast.unknown_seeds {
        0 => "--probe would narrow this: it makes up to 10 calls first\n".to_owned(),
        1 => "nothing is known of one seed; --probe would narrow this: it makes up to 10 calls first\n"
            .to_owned(),
        seeds => format!(
            "nothing is known of {seeds} seeds; --probe would narrow this: it makes up to 10 calls \
             first\n"
        ),
    }
}

fn bottleneck(forecast: &Forecast) -> String {
    let Some(name) = &forecast.duration.bottleneck else {
        return "the time that answers take".to_owned();
    };
    let mut budgets = forecast.duration.budgets.iter();
    let budget = budgets.find(|budget| budget.budget == *name);
    budget.map_or_else(|| name.to_string(), |it| format!("{name}{}", allowance(it)))
}

/// `, 300 per 15 min 0 s`
fn allowance(budget: &BudgetForecast) -> String {
    match (budget.limit, budget.window_seconds) {
        (Some(limit), Some(seconds)) => format!(
            ", {} per {}",
            amount(limit, &budget.unit),
            duration(seconds)
        ),
        _ => String::new(),
    }
}

fn budget_line(budget: &BudgetForecast) -> String {
    let needs = interval(&budget.units, |units| {
        amount(units.round() as u64, &budget.unit)
    });
    let used = match budget.used {
        0 => String::new(),
        used => format!(", {} used now", amount(used, &budget.unit)),
    };
    format!(
        "budget      {} needs {needs}{}{used}: {}\n",
        budget.budget,
        allowance(budget),
        span(&budget.seconds)
    )
}

/// What would end the crawl sooner.
fn caps(settings: &CrawlSettings, forecast: &Forecast) -> String {
    let mut text = String::new();
    let mut cap = |name: &str, limit: f64, likely: Option<f64>, high: Option<f64>| {
        let verb = if likely.is_none_or(|likely| likely > limit) {
            "ends it before that"
        } else if high.is_none_or(|high| high > limit) {
            "may end it before that"
        } else {
            return;
        };
        let _ = writeln!(text, "cap         {name} {verb}");
    };
    if let Some(calls) = settings.calls_max {
        let (likely, high) = (forecast.calls.likely, forecast.calls.high);
        cap("--max-calls", calls as f64, Some(likely), Some(high));
    }
    if let Some(time) = settings.time_max {
        let seconds = &forecast.duration.seconds;
        cap(
            "--max-time",
            time.as_secs_f64(),
            seconds.likely,
            seconds.high,
        );
    }
    if let Some(spend) = &settings.spend_max
        && let Some(money) = forecast.money.get(&spend.currency)
    {
        let limit = spend.units as f64 / kittiwake_model::MONEY_SCALE as f64;
        cap("--max-spend", limit, Some(money.likely), Some(money.high));
    }
    text
}

fn assumed(forecast: &Forecast) -> String {
    let assumed = &forecast.assumptions;
    let measured = if assumed.is_latency_measured {
        "as they did lately"
    } else {
        "which is a guess"
    };
    let credentials = match assumed.credentials {
        0 => "no credential".to_owned(),
        1 => "one credential".to_owned(),
        several => format!("{several} credentials"),
    };
    let mut text = format!(
        "assumed: answers take {:.0} ms, {measured}; up to {} calls at once; {credentials}\n",
        assumed.latency_ms, assumed.concurrency
    );
    if assumed.is_endless {
        text.push_str("without --until-idle the crawl goes on for ever: this is one round of it\n");
    }
    text
}

fn estimate(number: &Estimate) -> String {
    // Adding nothing makes nothing of what is less than nothing by a hair.
    interval(number, |number| format!("{:.0}", number + 0.0))
}

/// `120`, or `120 (90 to 400)`.
fn interval(number: &Estimate, show: impl Fn(f64) -> String) -> String {
    let [low, likely, high] = [number.low, number.likely, number.high].map(show);
    if low == high {
        likely
    } else {
        format!("{likely} ({low} to {high})")
    }
}

fn span(seconds: &Span) -> String {
    let show = |seconds: Option<f64>| seconds.map_or_else(|| "for ever".to_owned(), duration);
    let [low, likely, high] = [seconds.low, seconds.likely, seconds.high].map(show);
    if low == high {
        likely
    } else {
        format!("{likely} ({low} to {high})")
    }
}

fn duration(seconds: f64) -> String {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    if seconds > 2.0 * YEAR_S {
        return format!("{:.0} years", seconds / YEAR_S);
    }
    clock_text(Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX))
}
