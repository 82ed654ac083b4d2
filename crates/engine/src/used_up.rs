//! What a refusal for a limit means: which budgets are used up, and until when. Pure.

use crate::permits::Charge;
use kittiwake_model::{BudgetId, BudgetRule, LimitTime, OutcomeCode, WindowKind};
use kittiwake_network::Reading;
use kittiwake_network::budget::{LimitReport, window_at};

/// How long to wait for a limit of which nothing is known.
pub(crate) const UNTOLD_WAIT_US: i64 = 60_000_000;
/// No server is believed that wants to be left alone for longer.
const BELIEVED_WAIT_US_MAX: i64 = 7 * 24 * 3_600 * 1_000_000;

/// What is known of a refusal.
pub(crate) struct UsedUp<'a> {
    pub now: LimitTime,
    pub reading: &'a Reading,
    /// How long the server asked to be left alone.
    pub asked_us: Option<i64>,
    pub reports: &'a [LimitReport],
    /// What the call was charged to.
    pub charges: &'a [Charge],
    pub rules: &'a [BudgetRule],
}

/// What is not to be used, and until when.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub budgets: Vec<BudgetId>,
    pub until: LimitTime,
}

impl UsedUp<'_> {
    pub(crate) fn blocks(&self) -> Blocked {
        let (meant, until) = self.meant();
        let meant = if meant.is_empty() {
            self.charges.iter().collect()
        } else {
            meant
        };
        let until = self.told().or(self.declared()).or(until);
        Blocked {
            budgets: meant.iter().map(|charge| charge.budget.clone()).collect(),
            until: until.unwrap_or_else(|| self.now.plus_us(UNTOLD_WAIT_US)),
        }
    }

    /// The charges that the refusal is about, as far as that is known, and when these come back by themselves.
    fn meant(&self) -> (Vec<&Charge>, Option<LimitTime>) {
        if let Some(name) = &self.reading.exhausted {
            let named = self.charges_of(|charge| charge.cost.budget == *name);
            let until = self.window_end(&named);
            return (named, until);
        }
        let spent = self.charges_of(|charge| {
            let mut spent = self.reports.iter().filter(|report| report.is_spent());
            spent.any(|report| report.budget == charge.cost.budget)
        });
        if !spent.is_empty() || self.reading.outcome != OutcomeCode::QuotaExhausted {
            return (spent, None);
        }
        let daily = self.charges_of(|charge| {
            let rule = self.rule_of(charge);
            rule.is_some_and(|rule| {
                matches!(rule.kind, WindowKind::Day { .. } | WindowKind::Month { .. })
            })
        });
        let until = self.window_end(&daily);
        (daily, until)
    }

    /// What the server said, within reason.
    fn told(&self) -> Option<LimitTime> {
        let spent = self.reports.iter().filter(|report| report.is_spent());
        self.asked_us
            .map(|us| self.now.plus_us(us))
            .or_else(|| spent.filter_map(|report| report.reset).max())
            .filter(|until| *until > self.now)
            .map(|until| until.min(self.now.plus_us(BELIEVED_WAIT_US_MAX)))
    }

    /// What the definition says.
    fn declared(&self) -> Option<LimitTime> {
        self.reading.wait_us.map(|us| self.now.plus_us(us))
    }

    fn charges_of(&self, is_meant: impl Fn(&Charge) -> bool) -> Vec<&Charge> {
        let charges = self.charges.iter();
        charges.filter(|charge| is_meant(charge)).collect()
    }

    fn rule_of(&self, charge: &Charge) -> Option<&BudgetRule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.name == charge.cost.budget)
    }

    /// When the last of them begins anew at the latest.
    fn window_end(&self, charges: &[&Charge]) -> Option<LimitTime> {
        let ends = charges.iter().filter_map(|charge| {
            let kind = &self.rule_of(charge)?.kind;
            match kind {
                WindowKind::FromFirst { length_us }
                | WindowKind::Sliding { length_us }
                | WindowKind::Percent { length_us } => Some(self.now.plus_us(*length_us)),
                _ => window_at(kind, self.now).map(|window| window.end),
            }
        });
        ends.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::{Cost, Counter, Scope, Unit};
    use kittiwake_network::budget::Word;

    const HOUR_US: i64 = 3_600_000_000;
    /// 2026-11-18T07:00:00Z, 23:00 of the day before in California.
    const NOW: LimitTime = LimitTime(1_794_985_200_000_000);

    fn rule(name: &str, kind: WindowKind) -> BudgetRule {
        BudgetRule {
            name: name.into(),
            scope: Scope::App,
            counter: Counter::Together,
            unit: Unit::Calls,
            limit: 100,
            kind,
        }
    }

    fn rules() -> Vec<BudgetRule> {
        let zone = "America/Los_Angeles".into();
        let length_us = HOUR_US / 4;
        vec![
            rule("quarter", WindowKind::FromFirst { length_us }),
            rule("units", WindowKind::Day { zone }),
        ]
    }

    fn charges() -> Vec<Charge> {
        let charge = |name: &str| Charge {
            budget: BudgetId(format!("app/{name}")),
            cost: Cost {
                budget: name.into(),
                call: 1,
                item: 0,
                beside: 0,
                items_max: 0,
            },
        };
        vec![charge("quarter"), charge("units")]
    }

    fn blocked(reading: &Reading, asked_us: Option<i64>, reports: &[LimitReport]) -> (String, i64) {
        let blocked = UsedUp {
            now: NOW,
            reading,
            asked_us,
            reports,
            charges: &charges(),
            rules: &rules(),
        }
        .blocks();
        let names: Vec<String> = blocked.budgets.into_iter().map(|id| id.0).collect();
        (names.join(" "), blocked.until.0 - NOW.0)
    }

    #[test]
    fn the_server_the_definition_and_the_calendar_are_asked_in_this_order() {
        let limited = Reading::of(OutcomeCode::RateLimited, "");
        let both = "app/quarter app/units".to_owned();
        assert_eq!(blocked(&limited, None, &[]), (both.clone(), UNTOLD_WAIT_US));
        assert_eq!(blocked(&limited, Some(5), &[]), (both.clone(), 5));
        let patient = Reading {
            wait_us: Some(2 * HOUR_US),
            ..Reading::of(OutcomeCode::RateLimited, "")
        };
        assert_eq!(blocked(&patient, None, &[]), (both.clone(), 2 * HOUR_US));
        assert_eq!(blocked(&patient, Some(5), &[]), (both, 5));
        // The day ends at midnight in California.
        let exhausted = Reading::of(OutcomeCode::QuotaExhausted, "");
        let daily = ("app/units".to_owned(), HOUR_US);
        assert_eq!(blocked(&exhausted, None, &[]), daily);
    }

    #[test]
    fn what_a_refusal_names_is_used_up_and_nothing_else() {
        let named = |name: &str| Reading {
            exhausted: Some(name.into()),
            ..Reading::of(OutcomeCode::RateLimited, "")
        };
        let quarter = ("app/quarter".to_owned(), HOUR_US / 4);
        assert_eq!(blocked(&named("quarter"), None, &[]), quarter);
        // A call that was not charged to it is refused all the same.
        let all = ("app/quarter app/units".to_owned(), UNTOLD_WAIT_US);
        assert_eq!(blocked(&named("other"), None, &[]), all);
    }

    #[test]
    fn nobody_is_believed_to_be_busy_for_ever() {
        let report = LimitReport {
            budget: "quarter".into(),
            word: Word::Left {
                limit: 100,
                remaining: 0,
            },
            reset: Some(NOW.plus_us(1_000 * 24 * HOUR_US)),
            is_named: true,
        };
        let limited = Reading::of(OutcomeCode::RateLimited, "");
        let believed = ("app/quarter".to_owned(), BELIEVED_WAIT_US_MAX);
        assert_eq!(blocked(&limited, None, &[report]), believed);
    }
}
