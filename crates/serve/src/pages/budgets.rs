//! Budgets: what networks allow, what is used of it, and when it comes back.

use super::chart;
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::empty;
use super::words;
use crate::standing::{BudgetStanding, Standing};
use axum::response::Response;
use maud::{Markup, html};

/// From this share on, a budget is nearly used up.
const NEARLY: f64 = 0.9;

pub(super) async fn get(frame: Frame) -> Response {
    frame.answer(Ok(sheet(&frame)))
}

pub(super) fn sheet(frame: &Frame) -> Sheet {
    let standing = &frame.standing;
    let body = html! {
        div.head {
            h1 { "Budgets" }
            p { "What networks allow in each window. A call is counted here, durably, before it is sent; all crawls on this machine share the count." }
        }
        div #budgets data-live { (all(standing)) }
    };
    Sheet {
        here: Here::Budgets,
        title: "Budgets".into(),
        refresh: Refresh::Page,
        body,
    }
}

fn all(standing: &Standing) -> Markup {
    html! {
        section.part aria-labelledby="budgets-title" {
            h2 #budgets-title { "Windows that are open" }
            @if standing.budgets.is_empty() { (nothing()) }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="budgets-title" {
                    table {
                        thead { tr {
                            th scope="col" { "Budget" } th scope="col" { span.aside { "Share used" } }
                            th.number scope="col" { "Used" } th.number scope="col" { "By others" }
                            th.number scope="col" { "Limit" } th.number scope="col" { "Left" } th.number scope="col" { "Resets in" }
                        } }
                        tbody { @for budget in &standing.budgets { (row(budget, standing)) } }
                    }
                }
                p.note {
                    "“By others” are calls that the server has counted and this machine has not made. "
                    "A tenth of every allowance is left unused on hosts that are not yours, unless the crawl was told otherwise."
                }
            }
        }
    }
}

fn row(budget: &BudgetStanding, standing: &Standing) -> Markup {
    html! {
        tr {
            th scope="row" { (budget.id) (shut(budget, standing)) }
            td.meter-cell { (gauge(budget)) }
            td.number { (words::number(budget.used)) @if let Some(unit) = &budget.unit { " " (unit) } }
            td.number { (words::number(budget.by_others)) }
            td.number { (words::number(budget.limit)) }
            td.number { (words::number(budget.left)) }
            td.number { (resets(budget, standing)) }
        }
    }
}

/// A few budgets, the scarcest first, for the overview.
pub(super) fn short(standing: &Standing, shown: usize) -> Markup {
    let mut budgets: Vec<&BudgetStanding> = standing.budgets.iter().collect();
    budgets.sort_by(|one, other| used_share(other).total_cmp(&used_share(one)));
    html! {
        section.part aria-labelledby="scarce-title" {
            div.title { h2 #scarce-title { "Budgets" } span.push {} a.small href="/budgets" { "All budgets" } }
            @if budgets.is_empty() { (nothing()) }
            ul.list {
                @for budget in budgets.into_iter().take(shown) {
                    li { div.gauge {
                        div.title {
                            span { (budget.id) } span.push {}
                            span.small.soft { (words::number(budget.left)) " left, resets in " (resets(budget, standing)) }
                        }
                        (gauge(budget))
                        (shut(budget, standing))
                    } }
                }
            }
        }
    }
}

fn used_share(budget: &BudgetStanding) -> f64 {
    budget.used as f64 / budget.limit.max(1) as f64
}

fn gauge(budget: &BudgetStanding) -> Markup {
    let own = budget.used.saturating_sub(budget.by_others);
    let class = if used_share(budget) >= NEARLY {
        "full"
    } else {
        "used"
    };
    chart::meter(
        &[(class, own as f64), ("others", budget.by_others as f64)],
        budget.limit as f64,
        &format!("{} of {} used", budget.used, budget.limit),
    )
}

fn resets(budget: &BudgetStanding, standing: &Standing) -> Markup {
    let left = budget
        .resets_us
        .map(|at| at.saturating_sub(standing.limit_us));
    left.map_or_else(words::dash, words::countdown)
}

fn shut(budget: &BudgetStanding, standing: &Standing) -> Markup {
    let left = budget
        .shut_until_us
        .map(|at| at.saturating_sub(standing.limit_us));
    html! {
        @if let Some(left) = left.filter(|left| *left > 0) {
            " " span.pill.bad { "shut by the server for " (words::countdown(left)) }
        }
    }
}

fn nothing() -> Markup {
    empty(
        "No window is open.",
        "Budgets appear with the first call, and go when their windows end.",
    )
}
