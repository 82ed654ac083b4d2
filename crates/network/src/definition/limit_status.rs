//! `[limit_status]`: where a server says what is left of its limits, for the asking.

use super::auth::need_place;
use super::limits::{Declared, read_reset_format};
use super::queries::read_budget_names;
use super::source::Section;
use super::types::report_expression;
use super::{keys, named_sections};
use crate::expression::Expression;
use crate::limit_status::{BudgetStatus, LimitStatus};
use kittiwake_model::{Counter, Name, WindowKind};

pub(super) fn read_limit_status(
    top: &Section<'_, '_>,
    budgets: &[Declared],
) -> Option<LimitStatus> {
    let section = top.table("limit_status")?;
    section.expect_keys(keys::LIMIT_STATUS);
    let place = need_place(&section, "path", "/rate_limit");
    let charged_to = read_budget_names(&section, "charged_to", budgets);
    if !section.has("budgets") {
        let example = "[limit_status.budgets.NAME]\\nremaining = \".remaining\"";
        section.missing("budgets", example);
    }
    let told = named_sections(&section, "budgets")
        .into_iter()
        .filter_map(|(name, placed, told)| {
            let known: Vec<&str> = budgets.iter().map(|it| &*it.rule.name).collect();
            let Some(place) = known.iter().position(|it| **it == *name) else {
                section.unknown_word(&placed, "a budget of `limit_status`", &known);
                return None;
            };
            read_budget(place, &budgets[place], &told)
        })
        .collect();
    Some(LimitStatus {
        place: place?,
        authenticated: section.boolean("authenticated"),
        charged_to,
        budgets: told,
    })
}

fn read_budget(
    place: usize,
    declared: &Declared,
    section: &Section<'_, '_>,
) -> Option<BudgetStatus> {
    section.expect_keys(keys::LIMIT_STATUS_BUDGET);
    check_kind(&declared.rule.name, declared, section);
    if !section.has("remaining") {
        section.missing("remaining", "remaining = \".resources.core.remaining\"");
    }
    let reset = read_expression(section, "reset");
    let reset_format = read_reset_format(section);
    let limit = read_expression(section, "limit");
    Some(BudgetStatus {
        budget: place,
        limit,
        remaining: read_expression(section, "remaining")?,
        reset: reset.zip(reset_format),
    })
}

/// One number cannot tell of many counters, of calls under way, or of what is known in percent only.
fn check_kind(name: &Name, declared: &Declared, section: &Section<'_, '_>) {
    let is_one_number = declared.rule.counter == Counter::Together
        && !matches!(
            declared.rule.kind,
            WindowKind::Concurrency | WindowKind::Percent { .. }
        );
    if !is_one_number {
        let message = format!("what is left of `{name}` is not one number");
        let help = "leave it out: `each = \"query\"`, `concurrency` and `percent` have no status";
        section.report(&section.span, message, help);
    }
}

fn read_expression(section: &Section<'_, '_>, key: &str) -> Option<Expression> {
    let text = section.text(key)?;
    match Expression::compile(&text.value) {
        Ok(expression) => Some(expression),
        Err(fault) => {
            report_expression(section, &text.span, &text.value, &fault);
            None
        }
    }
}
