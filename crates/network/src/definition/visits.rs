//! `[[robots]]`, `[[seeds]]` and `[[errors]]`.

use super::limits::{Declared, read_span};
use super::queries::LISTS;
use super::source::{Placed, Section};
use super::types::{Types, outcome_of, report_expression};
use super::web::read_css;
use super::{checked_name, keys};
use crate::expression::Expression;
use crate::network::{Backfill, ErrorRule, Query, Robot, Step};
use crate::seed::{HOST, PatternPiece, Piece, SeedRule, ValuePiece, parse_template};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{ColumnKind, Name, OutcomeCode, Role, Table};
use std::ops::Range;

/// Steps along reposts of reposts, at the most.
const REPOST_STEPS_MAX: u32 = 9;
/// Steps down a tree of replies, at the most.
const REPLY_STEPS_MAX: u32 = 200;

pub(super) fn read_robots(top: &Section<'_, '_>, types: &Types, queries: &[Query]) -> Vec<Robot> {
    let mut robots: Vec<Robot> = Vec::new();
    for section in top.tables("robots") {
        section.expect_keys(keys::ROBOT);
        let name = section.need_text("name", "name = \"profiles\"");
        let kind = types.kind_at(&section, "subject");
        let steps = read_steps(&section, queries, kind.as_deref());
        check_fed(&section, &steps, queries);
        let Some(placed) = name else { continue };
        let span = placed.span.clone();
        let (Some(name), Some(kind)) = (checked_name(&section, placed), kind) else {
            continue;
        };
        if robots.iter().any(|robot| robot.name == name) {
            let message = format!("there are two robots `{name}`");
            section.report(&span, message, "give each its own name");
        }
        let text = |key| section.text(key).map(|text| text.value);
        let table = types.outline(&kind).and_then(|outline| outline.table);
        robots.push(Robot {
            title: text("title").unwrap_or_else(|| name.to_string()),
            description: text("description").unwrap_or_default(),
            unless_zero: read_count(&section, "unless_zero", table, &[]),
            names_parents: section.boolean("names_parents").unwrap_or(false),
            is_optional: section.boolean("optional").unwrap_or(false),
            begins_visited: section.boolean("begins_visited").unwrap_or(false),
            visited_when_zero: {
                let own = types.own_numbers(&kind);
                read_count(&section, "visited_when_zero", table, &own)
            },
            revisit_after_us: section
                .text("revisit_after")
                .and_then(|text| read_span(&section, &text)),
            repost_steps: read_steps_on(&section, ("repost_steps", REPOST_STEPS_MAX), table),
            reply_steps: read_steps_on(&section, ("reply_steps", REPLY_STEPS_MAX), table),
            brings: read_brings(&section, table),
            needs: Vec::new(),
            name,
            kind,
            steps,
        });
    }
    read_needs(top, &mut robots);
    check_needs(top, &robots);
    robots
}

/// What is asked for ids out of other answers needs a step whose answers name them.
fn check_fed(robot: &Section<'_, '_>, steps: &[Step], queries: &[Query]) {
    let find = |name: &Name| queries.iter().find(|query| query.name == *name);
    let asked: Vec<&Query> = steps.iter().filter_map(|step| find(&step.query)).collect();
    let mut fed: Vec<&Name> = Vec::new();
    let mut open: Vec<&Query> = asked.iter().copied().filter(|it| !it.expands()).collect();
    while let Some(query) = open.pop() {
        for name in query.stub_queries() {
            if !fed.contains(&name) {
                fed.push(name);
                open.extend(find(name));
            }
        }
    }
    for step in robot.tables("steps") {
        let Some(text) = step.text("query") else {
            continue;
        };
        let mut expanding = asked.iter().filter(|query| query.expands());
        if expanding.any(|it| *it.name == *text.value && !fed.contains(&&it.name)) {
            let message = format!("no step of this robot has stubs for `{}`", text.value);
            let help = "add a step whose answers name what it is asked for";
            step.report(&text.span, message, help);
        }
    }
}

/// Robots that a robot lives on; they may stand before or behind it.
fn read_needs(top: &Section<'_, '_>, robots: &mut [Robot]) {
    let names: Vec<Name> = robots.iter().map(|robot| robot.name.clone()).collect();
    for section in top.tables("robots") {
        let Some(own) = section.text("name") else {
            continue;
        };
        let mut needs = Vec::new();
        for word in section.texts("needs").unwrap_or_default() {
            match names.iter().find(|name| ***name == *word.value) {
                Some(name) if **name != *own.value => needs.push(name.clone()),
                _ => {
                    let others = names.iter().filter(|name| ***name != *own.value);
                    let known: Vec<&str> = others.map(|name| &**name).collect();
                    section.unknown_word(&word, "another robot", &known);
                }
            }
        }
        if let Some(robot) = robots.iter_mut().find(|robot| *robot.name == *own.value) {
            robot.needs = needs;
        }
    }
}

/// Robots that live on one another would have nobody to begin with.
fn check_needs(top: &Section<'_, '_>, robots: &[Robot]) {
    let find = |name: &Name| robots.iter().find(|robot| robot.name == *name);
    for robot in robots {
        let mut reached: Vec<&Name> = robot.needs.iter().collect();
        let mut next = 0;
        while next < reached.len() {
            let further = find(reached[next]).map_or(&[][..], |robot| &robot.needs);
            let new: Vec<&Name> = further
                .iter()
                .filter(|name| !reached.contains(name))
                .collect();
            reached.extend(new);
            next += 1;
        }
        if reached.contains(&&robot.name) {
            let message = format!("the robot `{}` needs itself by way of others", robot.name);
            let help = "leave out `needs` of the robot that can begin alone";
            let section = top.tables("robots").into_iter().find(|section| {
                section
                    .text("name")
                    .is_some_and(|name| *name.value == *robot.name)
            });
            let span = section.map_or(0..0, |section| section.span_of("needs"));
            top.report(&span, message, help);
        }
    }
}

/// How many steps a robot goes on from a post to those that repeat or answer it.
fn read_steps_on(section: &Section<'_, '_>, (key, most): (&str, u32), table: Option<Table>) -> u32 {
    let steps = section.number(key, 0..=most);
    if section.has(key) && table.is_some_and(|table| table != Table::Statuses) {
        let message = "only posts are reposted and answered";
        let help = format!("leave out `{key}`, or visit a type whose `table` is `statuses`");
        section.report(&section.span_of(key), message, help);
    }
    steps.unwrap_or(0)
}

/// A column of the subjects' table, or a field of their own, that counts what the robot would ask for.
fn read_count(
    section: &Section<'_, '_>,
    key: &str,
    table: Option<Table>,
    own: &[&str],
) -> Option<Name> {
    let text = section.text(key)?;
    let columns = table.map_or(&[][..], Table::columns).iter();
    let counts = columns.filter(|column| column.kind == ColumnKind::Integer);
    let mut known: Vec<&str> = counts.map(|column| column.name).collect();
    known.extend(own);
    known.sort_unstable();
    known.dedup();
    if !known.contains(&text.value.as_str()) {
        section.unknown_word(&text, "a count of the subject", &known);
        return None;
    }
    Some(text.value.into())
}

fn read_brings(section: &Section<'_, '_>, table: Option<Table>) -> Vec<Role> {
    const ROLES: &[(&str, Role)] = &[
        ("commenters", Role::Commenters),
        ("reposters", Role::Reposters),
        ("likers", Role::Likers),
        ("authors", Role::Authors),
        ("posts", Role::Posts),
    ];
    let mut brings = Vec::new();
    for word in section.texts("brings").unwrap_or_default() {
        match ROLES.iter().find(|(name, _)| *name == word.value) {
            Some((name, Role::Authors | Role::Posts))
                if matches!(table, Some(Table::Users | Table::Statuses)) =>
            {
                let message = format!("`{name}` are brought by tags, searches and the like");
                let help = "leave it out: users bring whom they follow, posts their commenters, reposters and likers";
                section.report(&word.span, message, help);
            }
            Some((_, role)) => brings.push(*role),
            None => {
                let known: Vec<&str> = ROLES.iter().map(|(name, _)| *name).collect();
                section.unknown_word(&word, "`brings`", &known);
            }
        }
    }
    brings.sort_unstable();
    brings.dedup();
    brings
}

fn read_steps(section: &Section<'_, '_>, queries: &[Query], kind: Option<&str>) -> Vec<Step> {
    let sections = section.tables("steps");
    if sections.is_empty() {
        section.missing("steps", "steps = [{ query = \"profile\" }]");
    }
    let mut steps = Vec::new();
    for step in sections {
        step.expect_keys(keys::STEP);
        let list = step.word("follow", LISTS);
        let Some(text) = step.need_text("query", "query = \"profile\"") else {
            continue;
        };
        let Some(query) = find_query(&step, &text, queries) else {
            continue;
        };
        if kind.is_some_and(|kind| *query.kind != *kind) {
            let message = format!(
                "the query `{}` is asked about a `{}`",
                query.name, query.kind
            );
            step.report(
                &text.span,
                message,
                "use a query whose `subject` is the robot's",
            );
        }
        let backfill = read_backfill(&step, query, queries);
        let mut ways = vec![query];
        ways.extend(read_others(&step, query, queries));
        // Whatever serves the most subjects with one call comes first.
        ways.sort_by_key(|query| std::cmp::Reverse(query.batch_max));
        let mut names = ways.into_iter().map(|query| query.name.clone());
        steps.extend(names.next().map(|query| Step {
            query,
            or: names.collect(),
            list,
            backfill,
        }));
    }
    steps
}

/// What may be asked in place of a first walk of a list.
fn read_backfill(step: &Section<'_, '_>, list: &Query, queries: &[Query]) -> Option<Backfill> {
    const COUNTS: [&str; 3] = ["statuses_count", "following_count", "followers_count"];
    let section = step.table("backfill")?;
    section.expect_keys(keys::BACKFILL);
    let text = section.need_text("query", "query = \"repository\"");
    let count = section.need_text("count", "count = \"statuses_count\"")?;
    if !COUNTS.contains(&count.value.as_str()) {
        section.unknown_word(&count, "a count of users", &COUNTS);
    }
    if list.times.is_none() {
        let message = "a walk cannot go on from when all was asked for at once";
        let help = "give the list an `incremental` whose marks are times, or leave out `backfill`";
        step.report(&step.span_of("backfill"), message, help);
    }
    let text = text?;
    let query = find_query(&section, &text, queries)?;
    if query.kind != list.kind || query.page.is_some() || query.batch.is_some() {
        let message = format!(
            "the query `{}` cannot tell all of a list at once",
            query.name
        );
        let help = "use one about the same subject, without `page` and `batch`";
        section.report(&text.span, message, help);
    }
    Some(Backfill {
        query: query.name.clone(),
        count: count.value.into(),
    })
}

/// Further queries that tell the same as the step's own.
fn read_others<'q>(step: &Section<'_, '_>, query: &Query, queries: &'q [Query]) -> Vec<&'q Query> {
    let mut others: Vec<&Query> = Vec::new();
    for text in step.texts("or").unwrap_or_default() {
        let Some(other) = find_query(step, &text, queries) else {
            continue;
        };
        if other.kind != query.kind {
            let message = format!(
                "the query `{}` is asked about a `{}`",
                other.name, other.kind
            );
            let help = "use queries about the same subject";
            step.report(&text.span, message, help);
        } else if other.page.is_some() || query.page.is_some() {
            let message = "a list of many pages is walked by one query";
            let help = "leave out `or`, or use queries without `page`";
            step.report(&text.span, message, help);
        } else if other.name == query.name || others.iter().any(|it| it.name == other.name) {
            let message = format!("the query `{}` is named twice", other.name);
            step.report(&text.span, message, "name each query once");
        } else {
            others.push(other);
        }
    }
    others
}

fn find_query<'q>(
    section: &Section<'_, '_>,
    text: &Placed<String>,
    queries: &'q [Query],
) -> Option<&'q Query> {
    let found = queries.iter().find(|query| *query.name == *text.value);
    if found.is_none() {
        let known: Vec<&str> = queries.iter().map(|query| &*query.name).collect();
        section.unknown_word(text, "a query", &known);
    }
    found
}

pub(super) fn read_seeds(top: &Section<'_, '_>, types: &Types) -> Vec<SeedRule> {
    top.tables("seeds")
        .iter()
        .filter_map(|section| read_seed(section, types))
        .collect()
}

fn read_seed(section: &Section<'_, '_>, types: &Types) -> Option<SeedRule> {
    section.expect_keys(keys::SEED);
    let pattern = section.need_text("pattern", "pattern = \"@{name}@{host}\"");
    let value = section.need_text("value", "value = \"{name}@{host}\"");
    let kind = types.kind_at(section, "type");
    let alias = kind
        .as_ref()
        .and_then(|kind| types.alias_at(section, "alias", kind));
    if let Some(kind) = &kind
        && !section.has("alias")
        && !types.has_canonical(kind)
    {
        let aliases = types.aliases(kind);
        let example = aliases.first().map_or("handle", |alias| &*alias.name);
        section.missing("alias", &format!("alias = \"{example}\""));
    }
    let (text, value) = (pattern?, value?);
    let pattern = read_pattern(section, &text);
    let value = read_value(section, &value, pattern.as_deref());
    Some(SeedRule {
        pattern: pattern?,
        text: text.value,
        kind: kind?,
        alias: alias.filter(|alias| !alias.is_canonical()),
        value: value?,
    })
}

fn template_of(section: &Section<'_, '_>, text: &Placed<String>) -> Option<Vec<Piece>> {
    let pieces = parse_template(&text.value);
    let is_sound = pieces.as_ref().is_some_and(|pieces| {
        let two_in_a_row = pieces
            .windows(2)
            .any(|pair| matches!(pair, [Piece::Placeholder(_), Piece::Placeholder(_)]));
        !two_in_a_row && !pieces.is_empty()
    });
    if !is_sound {
        let message = format!("`{}` is no pattern", text.value);
        section.report(&text.span, message, "write for example `@{name}@{host}`");
    }
    pieces.filter(|_| is_sound)
}

fn read_pattern(section: &Section<'_, '_>, text: &Placed<String>) -> Option<Vec<PatternPiece>> {
    let pieces = template_of(section, text)?;
    let last = pieces.len() - 1;
    let mut pattern = Vec::with_capacity(pieces.len());
    for (place, piece) in pieces.into_iter().enumerate() {
        pattern.push(match piece {
            Piece::Text(text) => PatternPiece::Text(text),
            Piece::Placeholder(word) => match word.split_once(':') {
                None => PatternPiece::Word(word),
                Some((name, "any")) if place == last => PatternPiece::Rest(name.to_owned()),
                Some(_) => {
                    let message = format!("`{{{word}}}` cannot stand there in a pattern");
                    let help = "write `{name}`, or, at the end of the pattern, `{name:any}`";
                    section.report(&text.span, message, help);
                    return None;
                }
            },
        });
    }
    Some(pattern)
}

/// The value of a seed; its placeholders are the pattern's, and `{host}`.
fn read_value(
    section: &Section<'_, '_>,
    text: &Placed<String>,
    pattern: Option<&[PatternPiece]>,
) -> Option<Vec<ValuePiece>> {
    let mut value = Vec::new();
    for piece in template_of(section, text)? {
        let word = match piece {
            Piece::Text(text) => {
                value.push(ValuePiece::Text(text));
                continue;
            }
            Piece::Placeholder(word) => word,
        };
        let (name, piece) = match word.split_once(':') {
            None => (word.as_str(), ValuePiece::AsWritten(word.clone())),
            Some((name, "lower")) => (name, ValuePiece::LowerCase(name.to_owned())),
            Some(_) => {
                let message = format!("`{{{word}}}` cannot stand in a value");
                let help = "write `{name}`, or `{name:lower}` for lower case";
                section.report(&text.span, message, help);
                return None;
            }
        };
        // A pattern that is wrong itself was reported.
        if name != HOST && pattern.is_some_and(|pattern| !has_placeholder(pattern, name)) {
            let message = format!("the pattern has no placeholder `{{{name}}}`");
            let help = "use the pattern's placeholders and `{host}`";
            section.report(&text.span, message, help);
        }
        value.push(piece);
    }
    Some(value)
}

fn has_placeholder(pattern: &[PatternPiece], name: &str) -> bool {
    pattern.iter().any(|piece| match piece {
        PatternPiece::Text(_) => false,
        PatternPiece::Word(known) | PatternPiece::Rest(known) => known == name,
    })
}

pub(super) fn read_errors(
    top: &Section<'_, '_>,
    types: &Types,
    queries: &[Query],
    budgets: &[Declared],
) -> Vec<ErrorRule> {
    let mut rules = Vec::new();
    for section in top.tables("errors") {
        section.expect_keys(keys::ERROR);
        if !section.has("status") {
            section.missing("status", "status = 404");
        }
        let statuses = section.numbers_or_texts("status").unwrap_or_default();
        let statuses = statuses
            .iter()
            .filter_map(|text| read_status(&section, text))
            .collect();
        let outcome = section
            .need_text("outcome", "outcome = \"not found\"")
            .and_then(|word| outcome_of(&section, &word));
        let Some(outcome) = outcome else { continue };
        let query: Option<Name> = section
            .text("query")
            .and_then(|text| find_query(&section, &text, queries))
            .map(|query| query.name.clone());
        rules.push(ErrorRule {
            statuses,
            matcher: read_match(&section),
            css: section
                .text("css")
                .and_then(|text| read_css(&section, &text)),
            redirect: section.text("redirect").map(|text| text.value),
            headers: read_headers(&section),
            subject: section
                .has("subject")
                .then(|| types.kind_at(&section, "subject"))
                .flatten(),
            query,
            outcome,
            reason: section.text("reason").map(|text| text.value),
            budget: read_exhausted(&section, outcome, budgets),
            wait_us: read_wait(&section, outcome),
        });
    }
    rules
}

/// The budget that a refusal means.
fn read_exhausted(
    section: &Section<'_, '_>,
    outcome: OutcomeCode,
    budgets: &[Declared],
) -> Option<Name> {
    let text = section.text("budget")?;
    check_waits(section, &text.span, outcome);
    let mut names = budgets.iter().map(|declared| &declared.rule.name);
    if let Some(name) = names.find(|name| ***name == *text.value) {
        return Some(name.clone());
    }
    let message = format!("there is no budget `{}`", text.value);
    section.report(&text.span, message, "name one of `[budgets]`");
    None
}

/// How long a refusal holds where the answer does not say.
fn read_wait(section: &Section<'_, '_>, outcome: OutcomeCode) -> Option<i64> {
    let text = section.text("wait")?;
    check_waits(section, &text.span, outcome);
    read_span(section, &text)
}

fn check_waits(section: &Section<'_, '_>, span: &Range<usize>, outcome: OutcomeCode) {
    if outcome.consequence() != Consequence::Wait {
        let message = "nothing waits after this outcome";
        let help = "it is for `rate limited` and `quota exhausted`";
        section.report(span, message, help);
    }
}

fn read_match(section: &Section<'_, '_>) -> Option<Expression> {
    let text = section.text("match")?;
    match Expression::compile(&text.value) {
        Ok(expression) => Some(expression),
        Err(fault) => {
            report_expression(section, &text.span, &text.value, &fault);
            None
        }
    }
}

/// `{ "x-left" = "0" }`: headers and what they have to say; `*` is any word.
fn read_headers(section: &Section<'_, '_>) -> Vec<(String, Option<String>)> {
    let entries = section.table("header").map(|table| table.entries());
    let mut headers = Vec::new();
    for entry in entries.unwrap_or_default() {
        let Some(text) = entry.text else {
            let message = format!("what the header `{}` says must be a text", entry.name);
            let help = format!(
                "write `\"{}\" = \"0\"`, or `\"*\"` for any word",
                entry.name
            );
            section.report(&entry.span, message, help);
            continue;
        };
        let wanted = (text.value != "*").then_some(text.value);
        headers.push((entry.name.to_ascii_lowercase(), wanted));
    }
    headers
}

/// `404`, or `5xx`.
pub(super) fn read_status(section: &Section<'_, '_>, text: &Placed<String>) -> Option<(u16, u16)> {
    let range = match text.value.strip_suffix("xx") {
        Some(class) => class
            .parse()
            .ok()
            .filter(|class: &u16| (1..=5).contains(class))
            .map(|class| (class * 100, class * 100 + 99)),
        None => text.value.parse().ok().map(|status| (status, status)),
    };
    let range = range.filter(|(from, _)| (100..=599).contains(from));
    if range.is_none() {
        let message = format!("`{}` is no status", text.value);
        section.report(&text.span, message, "write for example `404` or `\"5xx\"`");
    }
    range
}
