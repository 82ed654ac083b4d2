//! The arithmetic of limits: windows, reserves, and what servers say of them.

use crate::network::Network;
use crate::time::TimeFormat;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit as TimeUnit, Zoned};
use kittiwake_model::{BudgetRule, Cost, LimitTime, Name, Window, WindowKind};

/// What a server said of one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitReport {
    pub budget: Name,
    pub word: Word,
    /// When what is used comes back, by the server's clock.
    pub reset: Option<LimitTime>,
    /// Whether the server said of which budget it speaks, or that was found by its numbers.
    pub is_named: bool,
}

/// A server's word on what is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Left {
        limit: u64,
        remaining: u64,
    },
    /// Whole percent of a limit that is not told, rounded down.
    Percent(u32),
}

impl LimitReport {
    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        match self.word {
            Word::Left { remaining, .. } => remaining == 0,
            Word::Percent(percent) => percent >= 100,
        }
    }
}

/// In which headers a server reports its limits.
#[derive(Debug)]
pub(crate) struct LimitHeaders {
    pub(crate) limit: Option<String>,
    pub(crate) remaining: Option<String>,
    pub(crate) used: Option<String>,
    pub(crate) percent: Option<PercentHeader>,
    pub(crate) reset: Option<(String, ResetFormat)>,
}

/// A header that tells shares: one number, or numbers in JSON.
#[derive(Debug)]
pub(crate) struct PercentHeader {
    pub(crate) header: String,
    /// The keys whose numbers are shares, wherever they stand; the greatest counts.
    pub(crate) keys: Vec<String>,
    /// The key that tells in how many minutes calls are let in again.
    pub(crate) minutes_key: Option<String>,
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

/// The window in which an instant lies, where windows follow the calendar.
pub fn window_at(kind: &WindowKind, at: LimitTime) -> Option<Window> {
    match kind {
        WindowKind::Aligned { length_us } => {
            let length_us = (*length_us).max(1);
            let start = LimitTime(at.0.saturating_sub(at.0.rem_euclid(length_us)));
            Some(Window {
                start,
                end: start.plus_us(length_us),
            })
        }
        WindowKind::Day { zone } => calendar_window(zone, at, TimeUnit::Day),
        WindowKind::Month { zone } => calendar_window(zone, at, TimeUnit::Month),
        WindowKind::FromFirst { .. }
        | WindowKind::Sliding { .. }
        | WindowKind::Percent { .. }
        | WindowKind::Concurrency => None,
    }
}

/// The day or month of an instant. Days are not all of one length where clocks are changed.
fn calendar_window(zone: &str, at: LimitTime, unit: TimeUnit) -> Option<Window> {
    let zone = TimeZone::get(zone).ok()?;
    let there = Timestamp::from_microsecond(at.0).ok()?.to_zoned(zone);
    let start = match unit {
        TimeUnit::Month => there.first_of_month().ok()?.start_of_day().ok()?,
        _ => there.start_of_day().ok()?,
    };
    let next = match unit {
        TimeUnit::Month => start.checked_add(1.month()).ok()?,
        _ => start.checked_add(1.day()).ok()?,
    };
    let instant = |zoned: &Zoned| LimitTime(zoned.timestamp().as_microsecond());
    Some(Window {
        start: instant(&start),
        end: instant(&next.start_of_day().ok()?),
    })
}

/// How much of a limit is used when a fraction is left to others: at least one, and never more than
/// the limit.
pub fn after_reserve(limit: u64, reserve_fraction: f64) -> u64 {
    if limit == 0 {
        return 0;
    }
    let fraction = if reserve_fraction.is_nan() {
        0.0
    } else {
        reserve_fraction.clamp(0.0, 1.0)
    };
    // A product such as 30.000000000000004 is meant to be 30.
    let reserved = (limit as f64 * fraction - 1e-6).ceil().max(0.0) as u64;
    limit.saturating_sub(reserved).max(1)
}

/// The least that a limit can be of which so many calls are so many whole percent, rounded down.
pub fn least_limit(counted: u64, percent: u32) -> u64 {
    counted.saturating_mul(100) / (u64::from(percent) + 1) + 1
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

/// A count: digits, perhaps with a fraction that is not counted.
fn parse_count(text: &str) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (0.0..=1e15)
        .contains(&number)
        .then_some(number.floor() as u64)
}

type Header<'h> = &'h dyn Fn(&str) -> Option<String>;

impl LimitHeaders {
    /// The headers that are looked at. One that says what is used is needed only where none says
    /// what is left.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let used = self.used.as_ref().filter(|_| self.remaining.is_none());
        let percent = self.percent.as_ref().map(|percent| &percent.header);
        let reset = self.reset.as_ref().map(|(name, _)| name);
        [
            self.limit.as_ref(),
            self.remaining.as_ref(),
            used,
            percent,
            reset,
        ]
        .into_iter()
        .flatten()
        .map(String::as_str)
    }

    /// What is said, and until when it holds. `declared` is the limit where none is told.
    fn read(
        &self,
        header: Header<'_>,
        declared: Option<u64>,
        now: LimitTime,
    ) -> Option<(Word, Option<LimitTime>)> {
        let number = |name: &Option<String>| parse_count(&header(name.as_deref()?)?);
        let reset = self
            .reset
            .as_ref()
            .and_then(|(name, format)| parse_reset(*format, &header(name)?, now));
        if let Some(percent) = &self.percent {
            let (share, minutes) = percent.read(&header(&percent.header)?)?;
            let let_in = minutes.map(|minutes| now.plus_us(i64::from(minutes) * 60_000_000));
            return Some((Word::Percent(share), let_in.or(reset)));
        }
        let limit = number(&self.limit).or(declared)?;
        let remaining = match number(&self.remaining) {
            Some(remaining) => remaining,
            None => limit.saturating_sub(number(&self.used)?),
        };
        Some((Word::Left { limit, remaining }, reset))
    }
}

impl PercentHeader {
    /// The greatest share, and in how many minutes calls are let in again.
    fn read(&self, text: &str) -> Option<(u32, Option<u32>)> {
        if let Some(number) = parse_count(text) {
            return Some((u32::try_from(number).ok()?, None));
        }
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let (mut share, mut minutes) = (None, None);
        self.collect(&value, 0, &mut share, &mut minutes);
        Some((share?, minutes.filter(|minutes| *minutes > 0)))
    }

    fn collect(
        &self,
        value: &serde_json::Value,
        depth: usize,
        share: &mut Option<u32>,
        minutes: &mut Option<u32>,
    ) {
        const DEPTH_MAX: usize = 8;
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            serde_json::Value::Array(items) => {
                for item in items {
                    self.collect(item, depth + 1, share, minutes);
                }
            }
            serde_json::Value::Object(entries) => {
                for (key, value) in entries {
                    let number = value
                        .as_f64()
                        .filter(|number| (0.0..=1e6).contains(number))
                        .map(|number| number.floor() as u32);
                    match number {
                        Some(number) if self.keys.contains(key) => {
                            *share = (*share).max(Some(number));
                        }
                        Some(number) if self.minutes_key.as_ref() == Some(key) => {
                            *minutes = (*minutes).max(Some(number));
                        }
                        Some(_) => {}
                        None => self.collect(value, depth + 1, share, minutes),
                    }
                }
            }
            _ => {}
        }
    }
}

impl Network {
    /// What an answer's headers say of the budgets it was charged to.
    ///
    /// Some headers speak of one budget by name. Others report one limit; the budgets they speak of
    /// are those whose declared limit and window end fit. When none fits, all whose window ends
    /// nearest are reported: to lower a budget too much is safe.
    pub fn limit_reports(
        &self,
        costs: &[Cost],
        header: Header<'_>,
        now: LimitTime,
    ) -> Vec<LimitReport> {
        let mut reports = Vec::new();
        let mut unnamed: Vec<&BudgetRule> = Vec::new();
        for cost in costs {
            let place = self.budgets.iter().position(|it| it.name == cost.budget);
            let Some(place) = place else { continue };
            let rule = &self.budgets[place];
            let Some(headers) = &self.budget_headers[place] else {
                unnamed.push(rule);
                continue;
            };
            if let Some((word, reset)) = headers.read(header, Some(rule.limit), now) {
                reports.push(LimitReport {
                    budget: rule.name.clone(),
                    word,
                    reset,
                    is_named: true,
                });
            }
        }
        reports.extend(self.unnamed_reports(&unnamed, header, now));
        reports
    }

    fn unnamed_reports(
        &self,
        charged: &[&BudgetRule],
        header: Header<'_>,
        now: LimitTime,
    ) -> Vec<LimitReport> {
        let read = self.limit_headers.as_ref();
        let Some((word, reset)) = read.and_then(|headers| headers.read(header, None, now)) else {
            return Vec::new();
        };
        let Word::Left { limit, .. } = word else {
            return Vec::new();
        };
        let ends = charged.iter().map(|rule| {
            let window = window_at(&rule.kind, now);
            (*rule, window.map_or(now, |window| window.end))
        });
        let fitting = fitting_budgets(&ends.collect::<Vec<_>>(), limit, reset);
        let report = |(rule, end): (&BudgetRule, LimitTime)| LimitReport {
            budget: rule.name.clone(),
            word,
            reset: reset.or(Some(end)),
            is_named: false,
        };
        fitting.into_iter().map(report).collect()
    }
}

fn fitting_budgets<'r>(
    charged: &[(&'r BudgetRule, LimitTime)],
    limit: u64,
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
    use proptest::prelude::*;

    fn aligned(length_us: i64) -> WindowKind {
        WindowKind::Aligned { length_us }
    }

    fn window(kind: &WindowKind, text: &str) -> (String, String) {
        let at = LimitTime(text.parse::<Timestamp>().unwrap().as_microsecond());
        let window = window_at(kind, at).unwrap();
        assert!(window.contains(at));
        let shown = |at: LimitTime| Timestamp::from_microsecond(at.0).unwrap().to_string();
        (shown(window.start), shown(window.end))
    }

    proptest! {
        #[test]
        fn an_instant_lies_in_its_window_and_windows_do_not_overlap(
            at_us in -10_i64.pow(17)..10_i64.pow(17),
            window_us in 1_i64..10_i64.pow(12),
        ) {
            let kind = aligned(window_us);
            let window = window_at(&kind, LimitTime(at_us)).unwrap();
            prop_assert!(window.contains(LimitTime(at_us)));
            prop_assert_eq!(window.end.since_us(window.start), window_us);
            prop_assert_eq!(window.start.0.rem_euclid(window_us), 0);
            prop_assert_eq!(window_at(&kind, window.end).unwrap().start, window.end);
            prop_assert_eq!(window_at(&kind, window.start).unwrap(), window);
        }

        #[test]
        fn days_and_months_follow_one_another_without_a_gap(
            at_s in 0_i64..4_000_000_000,
            zone in prop::sample::select(vec!["UTC", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Apia"]),
        ) {
            let zone: Name = zone.into();
            for kind in [WindowKind::Day { zone: zone.clone() }, WindowKind::Month { zone: zone.clone() }] {
                let at = LimitTime(at_s * 1_000_000);
                let window = window_at(&kind, at).unwrap();
                prop_assert!(window.contains(at));
                prop_assert_eq!(window_at(&kind, window.end).unwrap().start, window.end);
                prop_assert_eq!(window_at(&kind, window.end.plus_us(-1)).unwrap(), window);
            }
        }

        #[test]
        fn a_reserve_leaves_at_least_one_call_and_never_adds_any(
            limit in 0_u64..1 << 53,
            fraction in any::<f64>(),
        ) {
            let left = after_reserve(limit, fraction);
            prop_assert!(left <= limit);
            prop_assert!(left >= limit.min(1));
        }

        #[test]
        fn the_least_limit_is_never_above_the_true_one(limit in 1_u64..1_000_000, used in 0_u64..1_000_000) {
            let used = used % limit;
            let percent = (used * 100 / limit) as u32;
            prop_assert!(least_limit(used, percent) <= limit);
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
            usage_header().read(&text);
        }
    }

    fn usage_header() -> PercentHeader {
        PercentHeader {
            header: "usage".into(),
            keys: vec!["call_count".into(), "total_time".into()],
            minutes_key: Some("regain".into()),
        }
    }

    #[test]
    fn the_greatest_share_counts_wherever_it_stands() {
        let header = usage_header();
        let flat = r#"{"call_count":28,"total_time":31.9,"other":99}"#;
        assert_eq!(header.read(flat), Some((31, None)));
        let deep = r#"{"17841":[{"type":"pages","call_count":100,"regain":12}]}"#;
        assert_eq!(header.read(deep), Some((100, Some(12))));
        assert_eq!(header.read("42"), Some((42, None)));
        let hostile = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for wrong in [
            "",
            "{}",
            r#"{"call_count":-1}"#,
            r#"{"call_count":1e99}"#,
            &hostile,
        ] {
            assert_eq!(header.read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_begin_at_midnight_where_the_network_lives() {
        let pacific = WindowKind::Day {
            zone: "America/Los_Angeles".into(),
        };
        let day = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(
            window(&pacific, "2026-07-01T06:59:59Z"),
            day("2026-06-30T07:00:00Z", "2026-07-01T07:00:00Z")
        );
        // 25 hours, in which clocks are put back.
        assert_eq!(
            window(&pacific, "2026-11-01T12:00:00Z"),
            day("2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z")
        );
        let month = WindowKind::Month { zone: "UTC".into() };
        assert_eq!(
            window(&month, "2028-02-29T23:59:59Z"),
            day("2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z")
        );
    }

    #[test]
    fn a_tenth_in_reserve_leaves_nine_tenths() {
        assert_eq!(after_reserve(300, 0.1), 270);
        assert_eq!(after_reserve(1, 0.5), 1);
        assert_eq!(after_reserve(0, 0.1), 0);
        assert_eq!(after_reserve(7, 0.0), 7);
    }
}
