//! `[budgets.…]` and `[limit_headers]`: what a network allows, and how it says what is left.

use super::source::{Placed, Section};
use super::{keys, named_sections};
use crate::budget::{LimitHeaders, ResetFormat};
use crate::network::BudgetCondition;
use kittiwake_model::{BudgetRule, Scope, WindowKind};

pub(super) fn read_budgets(top: &Section<'_, '_>) -> Vec<(BudgetRule, BudgetCondition)> {
    let mut budgets = Vec::new();
    for (name, _, section) in named_sections(top, "budgets") {
        section.expect_keys(keys::BUDGET);
        section.text("source");
        for key in ["scope", "limit", "window"] {
            if !section.has(key) {
                let example = match key {
                    "scope" => "scope = \"ip\"",
                    "limit" => "limit = 300",
                    _ => "window = \"5m\"",
                };
                section.missing(key, example);
            }
        }
        let scopes = [
            ("ip", Scope::Ip),
            ("user", Scope::User),
            ("token", Scope::Token),
        ];
        let scope = section.word("scope", &scopes);
        let limit = section.number("limit", 1..=1_000_000_000);
        let window_us = section
            .text("window")
            .and_then(|text| read_span(&section, &text));
        let kind = section.word("kind", &[("aligned", WindowKind::Aligned)]);
        let parameters = section.texts("any_parameter").unwrap_or_default();
        let condition = BudgetCondition {
            authenticated: section.boolean("authenticated"),
            any_parameter: parameters.into_iter().map(|text| text.value).collect(),
        };
        let (Some(scope), Some(limit), Some(window_us)) = (scope, limit, window_us) else {
            continue;
        };
        if scope != Scope::Ip && condition.authenticated != Some(true) {
            let message = "a limit per user or token needs a credential";
            section.report(&section.span, message, "write `authenticated = true`");
        }
        let rule = BudgetRule {
            name,
            scope,
            limit,
            window_us,
            kind: kind.unwrap_or(WindowKind::Aligned),
        };
        budgets.push((rule, condition));
    }
    budgets
}

/// `30s`, `5m`, `1h` or `1d`, in microseconds.
pub(super) fn read_span(section: &Section<'_, '_>, text: &Placed<String>) -> Option<i64> {
    const SPAN_MAX_US: i64 = 400 * 86_400 * 1_000_000;
    let unit_us = |unit: &str| match unit {
        "s" => Some(1_000_000),
        "m" => Some(60_000_000),
        "h" => Some(3_600_000_000),
        "d" => Some(86_400_000_000),
        _ => None,
    };
    let place = text
        .value
        .find(|character: char| !character.is_ascii_digit());
    let span_us = place
        .map(|place| text.value.split_at(place))
        .and_then(|(digits, unit)| {
            digits
                .parse::<i64>()
                .ok()?
                .checked_mul(unit_us(unit.trim())?)
        })
        .filter(|span_us| (1..=SPAN_MAX_US).contains(span_us));
    if span_us.is_none() {
        let message = format!("`{}` is no span of time", text.value);
        section.report(
            &text.span,
            message,
            "write for example `30s`, `5m`, `1h` or `1d`",
        );
    }
    span_us
}

pub(super) fn read_headers(top: &Section<'_, '_>) -> Option<LimitHeaders> {
    let section = top.table("limit_headers")?;
    section.expect_keys(keys::LIMIT_HEADERS);
    let formats = [
        ("iso8601", ResetFormat::Iso8601),
        ("epoch_s", ResetFormat::EpochSeconds),
        ("seconds_left", ResetFormat::SecondsLeft),
    ];
    let name = |key: &str| {
        let text = section.need_text(key, &format!("{key} = \"x-ratelimit-{key}\""));
        text.map(|text| text.value.to_ascii_lowercase())
    };
    let (limit, remaining, reset) = (name("limit"), name("remaining"), name("reset"));
    if !section.has("reset_format") {
        section.missing("reset_format", "reset_format = \"iso8601\"");
    }
    let reset_format = section.word("reset_format", &formats);
    Some(LimitHeaders {
        limit: limit?,
        remaining: remaining?,
        reset: reset?,
        reset_format: reset_format?,
    })
}
