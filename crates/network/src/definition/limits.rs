//! `[budgets.…]`, `[limit_headers]` and the `costs` of queries: what a network allows, what a call
//! takes of it, and how a server says what is left.

use super::source::{Placed, Section};
use super::types::Types;
use super::visits::read_status;
use super::web::read_css;
use super::{keys, named_sections};
use crate::blocks::BlockRule;
use crate::budget::{LimitHeaders, PercentHeader, ResetFormat};
use crate::network::{BudgetCondition, Query, QueryCost, Select};
use crate::politeness::Politeness;
use crate::tariff::Tariff;
use crate::web::robots::RobotsRule;
use kittiwake_model::{BudgetRule, Counter, MONEY_SCALE, Name, Scope, Unit, WindowKind};

/// No limit is greater: sums of some of them still fit.
const LIMIT_MAX: u64 = 1 << 53;

const SCOPES: &[(&str, Scope)] = &[
    ("ip", Scope::Ip),
    ("host", Scope::Host),
    ("app", Scope::App),
    ("user", Scope::User),
    ("token", Scope::Token),
];

/// A budget, when it applies, and in which headers a server speaks of it alone.
pub(super) struct Declared {
    pub(super) rule: BudgetRule,
    pub(super) condition: BudgetCondition,
    pub(super) headers: Option<LimitHeaders>,
    pub(super) tariff: Tariff,
}

/// The same for all budgets, each in a list of its own.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) rules: Vec<BudgetRule>,
    pub(super) conditions: Vec<BudgetCondition>,
    pub(super) headers: Vec<Option<LimitHeaders>>,
    pub(super) tariffs: Vec<Tariff>,
}

pub(super) fn taken_apart(budgets: Vec<Declared>) -> Parts {
    let mut parts = Parts::default();
    for declared in budgets {
        parts.rules.push(declared.rule);
        parts.conditions.push(declared.condition);
        parts.headers.push(declared.headers);
        parts.tariffs.push(declared.tariff);
    }
    parts
}

pub(super) fn read_budgets(top: &Section<'_, '_>) -> Vec<Declared> {
    let sections = named_sections(top, "budgets");
    sections
        .into_iter()
        .filter_map(|(name, _, section)| read_budget(name, &section))
        .collect()
}

fn read_budget(name: Name, section: &Section<'_, '_>) -> Option<Declared> {
    section.expect_keys(keys::BUDGET);
    section.text("source");
    if !section.has("scope") {
        section.missing("scope", "scope = \"ip\"");
    }
    let scope = section.word("scope", SCOPES);
    let each = section.word("each", &[("query", Counter::EachQuery)]);
    let unit = read_unit(section);
    let kind = read_kind(section);
    let tariff = read_tariff(section, &unit);
    let limit = read_limit(section, &unit, kind.as_ref());
    let parameters = section.texts("any_parameter").unwrap_or_default();
    let condition = BudgetCondition {
        authenticated: section.boolean("authenticated"),
        any_parameter: parameters.into_iter().map(|text| text.value).collect(),
    };
    let headers = section
        .table("headers")
        .and_then(|headers| read_header_names(&headers));
    let (scope, limit, kind) = (scope?, limit?, kind?);
    let needs_credential = matches!(scope, Scope::App | Scope::User | Scope::Token);
    if needs_credential && condition.authenticated != Some(true) {
        let message = "a limit per application, user or token needs a credential";
        section.report(&section.span, message, "write `authenticated = true`");
    }
    if matches!(kind, WindowKind::Percent { .. })
        && headers.as_ref().is_none_or(|it| it.percent.is_none())
    {
        let message = "a limit in percent is known by what the server says of it";
        let help = "write for example `headers = { percent = \"x-app-usage\" }`";
        section.report(&section.span, message, help);
    }
    Some(Declared {
        rule: BudgetRule {
            name,
            scope,
            counter: each.unwrap_or(Counter::Together),
            unit,
            limit,
            kind,
        },
        condition,
        headers,
        tariff,
    })
}

/// What things are charged at, by what they are, and whether what was charged is free for the rest of
/// the day.
fn read_tariff(section: &Section<'_, '_>, unit: &Unit) -> Tariff {
    let is_by_item = *unit != Unit::Calls;
    for key in ["prices", "free_again"] {
        if section.has(key) && !is_by_item {
            let message = format!("`{key}` is of budgets that things are charged to, not calls");
            let help = "write `unit = \"points\"`, or a currency, or leave it out";
            section.report(&section.span_of(key), message, help);
        }
    }
    let is_free_again = section.word("free_again", &[("day", true)]).is_some();
    Tariff {
        prices: section.table("prices").map(|prices| {
            let amount = |key: &str| match unit {
                Unit::Money(_) => read_money(&prices, key),
                _ => prices.number(key, 0..=1_000_000).map(u64::from),
            };
            let names = prices.keys().into_iter().map(|name| name.value);
            names
                .filter_map(|name| Some((name.as_str().into(), amount(&name)?)))
                .collect()
        }),
        free_again: is_free_again.then(|| read_zone(section)).flatten(),
    }
}

/// Prices have to be of something, and as much has to be set aside as a full page costs.
pub(super) fn check_prices(
    top: &Section<'_, '_>,
    types: &Types,
    queries: &[Query],
    budgets: &[Declared],
) {
    let is_thing = |name: &str| {
        let mut selects = queries.iter().flat_map(|query| &query.selects);
        types.kinds.iter().any(|kind| *kind.name == *name)
            || selects.any(|select| *select.price == *name)
    };
    for (_, _, budget) in named_sections(top, "budgets") {
        let prices = budget.table("prices");
        let names = prices.iter().flat_map(Section::keys);
        for name in names.filter(|name| !is_thing(&name.value)) {
            let message = format!("nothing is a `{}`", name.value);
            let help = "write the name of a type, or what a select has as its `price`";
            budget.report(&name.span, message, help);
        }
    }
    let is_priced = |name: &str| {
        let mut tariffs = budgets.iter().map(|budget| &budget.tariff);
        tariffs.any(|tariff| tariff.price_of(name).is_some())
    };
    for (name, _, section) in named_sections(top, "queries") {
        for select in section.tables("selects") {
            let price = select.text("price");
            if let Some(price) = price.filter(|price| !is_priced(&price.value)) {
                let message = format!("nothing has the price `{}`", price.value);
                let help = "name it under `prices` of a budget";
                select.report(&price.span, message, help);
            }
        }
        let query = queries.iter().find(|query| query.name == name);
        let costs = query.map_or(&[][..], |query| &query.costs);
        for cost in costs.iter().filter(|cost| cost.item > 0) {
            let selects = query.map_or(&[][..], |query| &query.selects);
            check_set_aside(&section, selects, cost, &budgets[cost.budget]);
        }
    }
}

/// Of what a query lists, and of what stands beside it, as much is set aside as it costs.
fn check_set_aside(
    section: &Section<'_, '_>,
    selects: &[Select],
    cost: &QueryCost,
    budget: &Declared,
) {
    let named = section.table("costs");
    let Some(named) = named.and_then(|costs| costs.table(&budget.rule.name)) else {
        return;
    };
    let price_of = |select: &Select| budget.tariff.price_of(&select.price).unwrap_or(0);
    let Some((listed, beside)) = selects.split_first() else {
        return;
    };
    if price_of(listed) > cost.item {
        let message = format!("a `{}` costs more than `item` sets aside", listed.price);
        let help = format!("write the price of a `{}`", listed.price);
        named.report(&named.span_of("item"), message, help);
    }
    let dear = beside.iter().find(|select| price_of(select) > 0);
    if let (Some(select), false) = (dear, named.has("beside")) {
        let message = format!(
            "nothing is set aside for a `{}` beside the list",
            select.price
        );
        let help = "write `beside`: what may come on top of each item at most, or `0`";
        named.report(&named.span, message, help);
    }
}

fn read_unit(section: &Section<'_, '_>) -> Unit {
    let Some(text) = section.text("unit") else {
        return Unit::Calls;
    };
    let is_currency = text.value.len() == 3 && text.value.bytes().all(|it| it.is_ascii_uppercase());
    match text.value.as_str() {
        "calls" => Unit::Calls,
        "points" => Unit::Points,
        code if is_currency => Unit::Money(code.into()),
        _ => {
            let message = format!("`unit` cannot be `{}`", text.value);
            let help = "write `calls`, `points` or the code of a currency, as in `USD`";
            section.report(&text.span, message, help);
            Unit::Calls
        }
    }
}

/// How a kind of window is made of its length and its time zone.
#[derive(Clone, Copy)]
enum Made {
    OfLength(fn(i64) -> WindowKind),
    InZone(fn(Name) -> WindowKind),
    AtOnce,
}

fn read_kind(section: &Section<'_, '_>) -> Option<WindowKind> {
    let kinds = [
        (
            "aligned",
            Made::OfLength(|length_us| WindowKind::Aligned { length_us }),
        ),
        (
            "from_first",
            Made::OfLength(|length_us| WindowKind::FromFirst { length_us }),
        ),
        (
            "sliding",
            Made::OfLength(|length_us| WindowKind::Sliding { length_us }),
        ),
        (
            "percent",
            Made::OfLength(|length_us| WindowKind::Percent { length_us }),
        ),
        ("day", Made::InZone(|zone| WindowKind::Day { zone })),
        ("month", Made::InZone(|zone| WindowKind::Month { zone })),
        ("concurrency", Made::AtOnce),
    ];
    let made = if section.has("kind") {
        section.word("kind", &kinds)?
    } else {
        kinds[0].1
    };
    let is_needed = |key: &str| key == "time_zone" && section.has("free_again");
    let stray = |key: &str| {
        if section.has(key) && !is_needed(key) {
            let message = format!("`{key}` means nothing to this kind of budget");
            section.report(&section.span_of(key), message, "leave it out");
        }
    };
    match made {
        Made::OfLength(kind) => {
            stray("time_zone");
            if !section.has("window") {
                section.missing("window", "window = \"5m\"");
            }
            let text = section.text("window")?;
            read_span(section, &text).map(kind)
        }
        Made::InZone(kind) => {
            stray("window");
            read_zone(section).map(kind)
        }
        Made::AtOnce => {
            stray("window");
            stray("time_zone");
            Some(WindowKind::Concurrency)
        }
    }
}

fn read_zone(section: &Section<'_, '_>) -> Option<Name> {
    let Some(text) = section.text("time_zone") else {
        return Some("UTC".into());
    };
    if jiff::tz::TimeZone::get(&text.value).is_err() {
        let message = format!("there is no time zone `{}`", text.value);
        section.report(
            &text.span,
            message,
            "write for example `America/Los_Angeles` or `UTC`",
        );
        return None;
    }
    Some(text.value.as_str().into())
}

fn read_limit(section: &Section<'_, '_>, unit: &Unit, kind: Option<&WindowKind>) -> Option<u64> {
    if matches!(kind, Some(WindowKind::Percent { .. })) {
        if section.has("limit") {
            let message = "only the server knows the limit of a budget in percent";
            section.report(&section.span_of("limit"), message, "leave it out");
        }
        return Some(1);
    }
    // Money may be counted without a limit of the network's own.
    if let (Unit::Money(_), false) = (unit, section.has("limit")) {
        return Some(LIMIT_MAX);
    }
    if !section.has("limit") {
        section.missing("limit", "limit = 300");
    }
    match unit {
        Unit::Money(_) => read_money(section, "limit"),
        _ => section.number("limit", 1..=1_000_000_000).map(u64::from),
    }
}

/// An amount of money, in millionths.
fn read_money(section: &Section<'_, '_>, key: &str) -> Option<u64> {
    let text = section.amount(key)?;
    let amount = parse_money(&text.value);
    if amount.is_none() {
        let message = format!("`{}` is no amount of money", text.value);
        section.report(
            &text.span,
            message,
            format!("write for example `{key} = \"0.005\"`"),
        );
    }
    amount
}

/// Digits, perhaps with up to six places after a point.
pub(crate) fn parse_money(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) || part.len() > 6 {
        return None;
    }
    let millionths: u64 = format!("{part:0<6}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole
        .checked_mul(MONEY_SCALE)?
        .checked_add(millionths)
        .filter(|amount| *amount <= LIMIT_MAX)
}

/// What a query takes of the budgets that cover it, by their places in the list.
pub(super) fn read_costs(
    section: &Section<'_, '_>,
    budgets: &[Declared],
    covering: &[usize],
) -> Vec<QueryCost> {
    let named = section.table("costs");
    if let Some(named) = &named {
        let known: Vec<&str> = covering
            .iter()
            .map(|place| &*budgets[*place].rule.name)
            .collect();
        named.expect_keys(&known);
    }
    let cost_of = |place: &usize| {
        let rule = &budgets[*place].rule;
        let is_money = matches!(rule.unit, Unit::Money(_));
        let given = named.as_ref().filter(|named| named.has(&rule.name));
        let (call, item, beside) = match given {
            // Money is paid only for what has a price.
            None => (u64::from(!is_money), 0, 0),
            Some(named) => read_cost(named, &rule.name, is_money)?,
        };
        Some(QueryCost {
            budget: *place,
            call,
            item,
            beside,
        })
    };
    let costs = covering.iter().filter_map(cost_of);
    costs
        .filter(|cost| cost.call > 0 || cost.item > 0)
        .collect()
}

/// `5`, or `{ call = 1, item = 2, beside = 3 }`.
fn read_cost(named: &Section<'_, '_>, budget: &str, is_money: bool) -> Option<(u64, u64, u64)> {
    let amount = |section: &Section<'_, '_>, key: &str| {
        if is_money {
            return read_money(section, key);
        }
        section.number(key, 0..=1_000_000).map(u64::from)
    };
    if !named.is_table(budget) {
        return Some((amount(named, budget)?, 0, 0));
    }
    let cost = named.table(budget)?;
    cost.expect_keys(keys::COST);
    let part = |key: &str| {
        if cost.has(key) {
            amount(&cost, key)
        } else {
            Some(0)
        }
    };
    Some((part("call")?, part("item")?, part("beside")?))
}

/// `[robots_txt]`: whether hosts are asked what they do not want fetched. Where web pages are read they
/// are, unless the definition says otherwise; who offers an API has terms for it.
pub(super) fn read_robots_txt(top: &Section<'_, '_>, queries: &[Query]) -> Option<RobotsRule> {
    const AGAIN_AFTER_US_MAX: i64 = 86_400_000_000;
    let has_pages = queries.iter().any(|query| query.web.is_some());
    let mut rule = RobotsRule {
        again_after_us: AGAIN_AFTER_US_MAX,
    };
    let Some(section) = top.table("robots_txt") else {
        return has_pages.then_some(rule);
    };
    section.expect_keys(keys::ROBOTS_TXT);
    if let Some(text) = section.text("again_after")
        && let Some(span_us) = read_span(&section, &text)
    {
        if span_us > AGAIN_AFTER_US_MAX {
            let message = "what robots.txt says is believed for a day at most";
            section.report(&text.span, message, "write `1d`, or less");
        }
        rule.again_after_us = span_us.min(AGAIN_AFTER_US_MAX);
    }
    let is_obeyed = section.boolean("obey").unwrap_or(true);
    is_obeyed.then_some(rule)
}

/// `[politeness]`: how quickly a host is asked of whose limits nothing is written.
pub(super) fn read_politeness(top: &Section<'_, '_>) -> Option<Politeness> {
    let section = top.table("politeness")?;
    section.expect_keys(keys::POLITENESS);
    let usual = Politeness::default();
    let start = read_rate(&section, "start").unwrap_or(usual.start_per_second);
    let most = read_rate(&section, "most").unwrap_or(usual.most_per_second);
    Some(Politeness {
        start_per_second: start,
        most_per_second: most.max(start),
    })
}

/// `2/s` or `30/m`, in calls per second.
fn read_rate(section: &Section<'_, '_>, key: &str) -> Option<f64> {
    let text = section.text(key)?;
    let rate = text.value.split_once('/').and_then(|(calls, unit)| {
        let calls = calls
            .trim()
            .parse::<u32>()
            .ok()
            .filter(|calls| *calls > 0)?;
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            _ => return None,
        };
        Some(f64::from(calls) / seconds)
    });
    if rate.is_none() {
        let message = format!("`{}` is no number of calls in a time", text.value);
        section.report(&text.span, message, "write for example `2/s` or `30/m`");
    }
    rate
}

/// `[[blocks]]`: how pages are known with which a network shuts somebody out.
pub(super) fn read_blocks(top: &Section<'_, '_>) -> Vec<BlockRule> {
    let mut rules = Vec::new();
    for section in top.tables("blocks") {
        section.expect_keys(keys::BLOCK);
        if !["text", "css", "redirect"]
            .iter()
            .any(|key| section.has(key))
        {
            section.missing("text", "text = \"captcha\"");
            continue;
        }
        let statuses = section.numbers_or_texts("status").unwrap_or_default();
        let statuses = statuses
            .iter()
            .filter_map(|text| read_status(&section, text))
            .collect();
        let texts = section.texts("text").unwrap_or_default();
        for text in texts.iter().filter(|text| text.value.trim().len() < 4) {
            let message = "a text of fewer than four letters stands in any page";
            section.report(&text.span, message, "write more of what the page says");
        }
        let Some(reason) = section.need_text("reason", "reason = \"captcha\"") else {
            continue;
        };
        rules.push(BlockRule {
            statuses,
            texts: texts.iter().map(|text| text.value.to_lowercase()).collect(),
            css: section
                .text("css")
                .and_then(|text| read_css(&section, &text)),
            redirect: section.text("redirect").map(|text| text.value),
            reason: reason.value,
        });
    }
    rules
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

/// How the end of a window is written.
pub(super) fn read_reset_format(section: &Section<'_, '_>) -> Option<ResetFormat> {
    const FORMATS: &[(&str, ResetFormat)] = &[
        ("iso8601", ResetFormat::Iso8601),
        ("epoch_s", ResetFormat::EpochSeconds),
        ("seconds_left", ResetFormat::SecondsLeft),
    ];
    if section.has("reset") && !section.has("reset_format") {
        section.missing("reset_format", "reset_format = \"iso8601\"");
    }
    section.word("reset_format", FORMATS)
}

/// The headers of a server that speaks of one budget at a time, and not of which.
pub(super) fn read_headers(top: &Section<'_, '_>) -> Option<LimitHeaders> {
    let section = top.table("limit_headers")?;
    for key in ["limit", "remaining", "reset"] {
        if !section.has(key) {
            section.missing(key, &format!("{key} = \"x-ratelimit-{key}\""));
        }
    }
    read_header_names(&section)
}

fn read_header_names(section: &Section<'_, '_>) -> Option<LimitHeaders> {
    section.expect_keys(keys::LIMIT_HEADERS);
    let name = |key: &str| {
        let text = section.text(key);
        text.map(|text| text.value.to_ascii_lowercase())
    };
    let reset_format = read_reset_format(section);
    let headers = LimitHeaders {
        limit: name("limit"),
        remaining: name("remaining"),
        used: name("used"),
        percent: name("percent").map(|header| PercentHeader {
            header,
            keys: section
                .texts("percent_keys")
                .unwrap_or_default()
                .into_iter()
                .map(|text| text.value)
                .collect(),
            minutes_key: section.text("minutes_key").map(|text| text.value),
        }),
        reset: name("reset").zip(reset_format),
    };
    let says_something =
        headers.remaining.is_some() || headers.used.is_some() || headers.percent.is_some();
    if !says_something {
        section.missing("remaining", "remaining = \"x-ratelimit-remaining\"");
        return None;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_to_the_millionth_and_nothing_else_is_money() {
        assert_eq!(parse_money("20"), Some(20_000_000));
        assert_eq!(parse_money("0.005"), Some(5_000));
        assert_eq!(parse_money("1.000001"), Some(1_000_001));
        for wrong in [
            "",
            ".",
            ".5",
            "-1",
            "1e3",
            "1.0000001",
            "1,5",
            "99999999999999",
            "NaN",
        ] {
            assert_eq!(parse_money(wrong), None, "{wrong}");
        }
    }
}
