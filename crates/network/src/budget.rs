//! The arithmetic of limits: windows, reserves, and what servers say of them.

use crate::network::{Network, Query};
use crate::time::TimeFormat;
use kittiwake_model::{BudgetRule, LimitTime, Name, Window, WindowKind};

/// What a server said of one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitReport {
    pub budget: Name,
    pub limit: u32,
    pub remaining: u32,
    /// When the window ends.
    pub reset: LimitTime,
}

/// In which headers a server reports its limits.
#[derive(Debug)]
pub(crate) struct LimitHeaders {
    pub(crate) limit: String,
    pub(crate) remaining: String,
    pub(crate) reset: String,
    pub(crate) reset_format: ResetFormat,
}

/// How a server writes the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetFormat {
    Iso8601,
    EpochSeconds,
    SecondsLeft,
}

/// How far the server's idea of a window's end may lie from ours: clocks differ, and a reset is
/// often rounded.
const RESET_SLACK_US: i64 = 5_000_000;

/// The window of a budget in which an instant lies.
pub fn window_at(rule: &BudgetRule, at: LimitTime) -> Window {
    match rule.kind {
        WindowKind::Aligned => {
            let length_us = rule.window_us.max(1);
            let start = LimitTime(at.0.saturating_sub(at.0.rem_euclid(length_us)));
            Window {
                start,
                end: start.plus_us(length_us),
            }
        }
    }
}

/// How many calls of a limit are used when a fraction is left to others: at least one, and never
/// more than the limit.
pub fn after_reserve(limit: u32, reserve_fraction: f64) -> u32 {
    if limit == 0 {
        return 0;
    }
    let fraction = if reserve_fraction.is_nan() {
        0.0
    } else {
        reserve_fraction.clamp(0.0, 1.0)
    };
    // A product such as 30.000000000000004 is meant to be 30.
    let reserved = (f64::from(limit) * fraction - 1e-6).ceil() as u32;
    limit.saturating_sub(reserved).max(1)
}

/// Reads the end of a window as a server wrote it.
pub fn parse_reset(format: ResetFormat, text: &str, now: LimitTime) -> Option<LimitTime> {
    let text = text.trim();
    let at_us = match format {
        ResetFormat::Iso8601 => TimeFormat::Rfc3339.read_text(text)?.0,
        ResetFormat::EpochSeconds => TimeFormat::EpochSeconds.read_text(text)?.0,
        ResetFormat::SecondsLeft => {
            let seconds: f64 = text.parse().ok()?;
            if !(0.0..=1e9).contains(&seconds) {
                return None;
            }
            now.plus_us((seconds * 1e6).ceil() as i64).0
        }
    };
    Some(LimitTime(at_us))
}

/// A count of calls: digits, perhaps with a fraction that is not counted.
fn parse_count(text: &str) -> Option<u32> {
    let number: f64 = text.trim().parse().ok()?;
    (0.0..=f64::from(u32::MAX))
        .contains(&number)
        .then_some(number.floor() as u32)
}

impl Network {
    /// What an answer's headers say of the budgets it was charged to.
    ///
    /// A server reports one limit; the budgets it speaks of are those whose declared limit and
    /// window end fit. When none fits, all whose window ends nearest are reported: to lower a
    /// budget too much is safe.
    pub fn limit_reports(
        &self,
        _query: &Query,
        budgets: &[Name],
        header: &dyn Fn(&str) -> Option<String>,
        now: LimitTime,
    ) -> Vec<LimitReport> {
        let Some(headers) = &self.limit_headers else {
            return Vec::new();
        };
        let read = |name: &str| header(name).and_then(|text| parse_count(&text));
        let (Some(limit), Some(remaining)) = (read(&headers.limit), read(&headers.remaining))
        else {
            return Vec::new();
        };
        let reset =
            header(&headers.reset).and_then(|text| parse_reset(headers.reset_format, &text, now));
        let charged: Vec<(&BudgetRule, LimitTime)> = budgets
            .iter()
            .filter_map(|name| self.budget(name))
            .map(|rule| (rule, window_at(rule, now).end))
            .collect();
        let fitting = fitting_budgets(&charged, limit, reset);
        fitting
            .into_iter()
            .map(|(rule, end)| LimitReport {
                budget: rule.name.clone(),
                limit,
                remaining,
                reset: reset.unwrap_or(end),
            })
            .collect()
    }
}

fn fitting_budgets<'r>(
    charged: &[(&'r BudgetRule, LimitTime)],
    limit: u32,
    reset: Option<LimitTime>,
) -> Vec<(&'r BudgetRule, LimitTime)> {
    let Some(reset) = reset else {
        return charged.to_vec();
    };
    let distance_us = |end: LimitTime| end.since_us(reset).saturating_abs();
    let keep = |wanted: &dyn Fn(&BudgetRule, LimitTime) -> bool| -> Vec<_> {
        charged
            .iter()
            .copied()
            .filter(|(rule, end)| wanted(rule, *end))
            .collect()
    };
    let exact = keep(&|rule, end| rule.limit == limit && distance_us(end) <= RESET_SLACK_US);
    if !exact.is_empty() {
        return exact;
    }
    let nearest_us = charged.iter().map(|(_, end)| distance_us(*end)).min();
    keep(&|_, end| Some(distance_us(end)) == nearest_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::Scope;
    use proptest::prelude::*;

    fn rule(window_us: i64) -> BudgetRule {
        BudgetRule {
            name: "b".into(),
            scope: Scope::Ip,
            limit: 300,
            window_us,
            kind: WindowKind::Aligned,
        }
    }

    proptest! {
        #[test]
        fn an_instant_lies_in_its_window_and_windows_do_not_overlap(
            at_us in -10_i64.pow(17)..10_i64.pow(17),
            window_us in 1_i64..10_i64.pow(12),
        ) {
            let rule = rule(window_us);
            let window = window_at(&rule, LimitTime(at_us));
            prop_assert!(window.contains(LimitTime(at_us)));
            prop_assert_eq!(window.end.since_us(window.start), window_us);
            prop_assert_eq!(window.start.0.rem_euclid(window_us), 0);
            prop_assert_eq!(window_at(&rule, window.end).start, window.end);
            prop_assert_eq!(window_at(&rule, window.start), window);
        }

        #[test]
        fn a_reserve_leaves_at_least_one_call_and_never_adds_any(
            limit in any::<u32>(),
            fraction in any::<f64>(),
        ) {
            let left = after_reserve(limit, fraction);
            prop_assert!(left <= limit);
            prop_assert!(left >= limit.min(1));
        }

        #[test]
        fn resets_read_back_in_every_format(now_s in 0_i64..4_000_000_000, left_s in 0_i64..100_000) {
            let now = LimitTime(now_s * 1_000_000);
            let end = LimitTime((now_s + left_s) * 1_000_000);
            let iso = jiff::Timestamp::from_microsecond(end.0).unwrap().to_string();
            let seconds = (now_s + left_s).to_string();
            prop_assert_eq!(parse_reset(ResetFormat::Iso8601, &iso, now), Some(end));
            prop_assert_eq!(parse_reset(ResetFormat::EpochSeconds, &seconds, now), Some(end));
            let left = left_s.to_string();
            prop_assert_eq!(parse_reset(ResetFormat::SecondsLeft, &left, now), Some(end));
        }

        #[test]
        fn any_header_is_survived(text in any::<String>()) {
            let now = LimitTime(0);
            parse_reset(ResetFormat::Iso8601, &text, now);
            parse_reset(ResetFormat::SecondsLeft, &text, now);
            parse_count(&text);
        }
    }

    #[test]
    fn a_tenth_in_reserve_leaves_nine_tenths() {
        assert_eq!(after_reserve(300, 0.1), 270);
        assert_eq!(after_reserve(1, 0.5), 1);
        assert_eq!(after_reserve(0, 0.1), 0);
        assert_eq!(after_reserve(7, 0.0), 7);
    }
}
