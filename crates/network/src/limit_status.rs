//! What a server says of its limits when it is asked for that alone.

use crate::auth::Place;
use crate::budget::{LimitReport, ResetFormat, Word, parse_reset};
use crate::expression::Expression;
use crate::network::Network;
use kittiwake_model::{Cost, LimitTime, MONEY_SCALE, Unit};
use serde_json::Value;
use url::Url;

/// Longer answers are not looked at.
const BODY_BYTES_MAX: usize = 256 << 10;
/// No count is taken for greater.
const COUNT_MAX: f64 = 1e15;

/// Where limits are asked for, and how the answer is read.
#[derive(Debug)]
pub(crate) struct LimitStatus {
    pub(crate) place: Place,
    /// Asked only with a credential, or only without; otherwise in both cases.
    pub(crate) authenticated: Option<bool>,
    /// The budgets that asking is charged to, by their places in the network's list.
    pub(crate) charged_to: Vec<usize>,
    pub(crate) budgets: Vec<BudgetStatus>,
}

/// What the answer says of one budget.
#[derive(Debug)]
pub(crate) struct BudgetStatus {
    /// The budget's place in the network's list.
    pub(crate) budget: usize,
    pub(crate) limit: Option<Expression>,
    pub(crate) remaining: Expression,
    pub(crate) reset: Option<(Expression, ResetFormat)>,
}

/// A question for what is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitStatusRequest {
    pub url: Url,
    /// What the question itself takes of which budgets.
    pub costs: Vec<Cost>,
    /// One unit of each budget that the answer will speak of.
    pub speaks_of: Vec<Cost>,
}

impl Network {
    /// How to ask what is left, with a credential or without one; `None` where that cannot be asked.
    pub fn limit_status_request(
        &self,
        base: &Url,
        authenticated: bool,
    ) -> Option<LimitStatusRequest> {
        let status = self.limit_status.as_ref()?;
        if status
            .authenticated
            .is_some_and(|wanted| wanted != authenticated)
        {
            return None;
        }
        let cost = |place: usize| Cost {
            budget: self.budgets[place].name.clone(),
            call: 1,
            item: 0,
            beside: 0,
            items_max: 0,
        };
        let is_charged = |place: &usize| {
            let is_money = matches!(self.budgets[*place].unit, Unit::Money(_));
            self.applies(*place, authenticated)
                && self.conditions[*place].any_parameter.is_empty()
                && !is_money
        };
        let charged = status.charged_to.iter().copied().filter(is_charged);
        let told = status.budgets.iter().map(|told| told.budget);
        let told = told.filter(|place| self.applies(*place, authenticated));
        Some(LimitStatusRequest {
            url: status.place.at(base),
            costs: charged.map(cost).collect(),
            speaks_of: told.map(cost).collect(),
        })
    }

    /// What an answer says of the budgets of those who asked. What cannot be read says nothing.
    pub fn read_limit_status(
        &self,
        authenticated: bool,
        host: &str,
        body: &[u8],
        now: LimitTime,
    ) -> Vec<LimitReport> {
        let text = std::str::from_utf8(body)
            .ok()
            .filter(|text| text.len() <= BODY_BYTES_MAX);
        let (Some(status), Some(text)) = (&self.limit_status, text) else {
            return Vec::new();
        };
        let told = status.budgets.iter();
        told.filter(|told| self.applies(told.budget, authenticated))
            .filter_map(|told| self.read_budget_status(told, text, host, now))
            .collect()
    }

    fn read_budget_status(
        &self,
        told: &BudgetStatus,
        text: &str,
        host: &str,
        now: LimitTime,
    ) -> Option<LimitReport> {
        let rule = &self.budgets[told.budget];
        let scale = match rule.unit {
            Unit::Money(_) => MONEY_SCALE,
            Unit::Calls | Unit::Points => 1,
        };
        let number = |expression: &Expression| number_of(&run(expression, text, host)?);
        let limit = told.limit.as_ref().and_then(number);
        let limit = limit.filter(|limit| *limit >= 0.0);
        let limit = limit.map_or(rule.limit, |limit| count_of(limit, scale));
        // Who has used more than there was has nothing left.
        let remaining = count_of(number(&told.remaining)?.max(0.0), scale).min(limit);
        let reset = told.reset.as_ref().and_then(|(expression, format)| {
            let reset = text_of(&run(expression, text, host)?)?;
            parse_reset(*format, &reset, now)
        });
        Some(LimitReport {
            budget: rule.name.clone(),
            word: Word::Left { limit, remaining },
            reset,
            is_named: true,
        })
    }

    fn applies(&self, budget: usize, authenticated: bool) -> bool {
        self.conditions[budget]
            .authenticated
            .is_none_or(|wanted| wanted == authenticated)
    }
}

fn run(expression: &Expression, text: &str, host: &str) -> Option<Value> {
    let result = expression.run(text, host).ok()??;
    serde_json::from_str(&result).ok()
}

fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (-COUNT_MAX..=COUNT_MAX).contains(&number).then_some(number)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Whole units; a fraction of one is none.
fn count_of(number: f64, scale: u64) -> u64 {
    (number * scale as f64).floor().min(COUNT_MAX) as u64
}
