//! When windows begin and end.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span as Calendar, Timestamp, ToSpan as _};
use kittiwake_model::clock::{EARLIEST_US, LATEST_US};

/// From its start up to, but not including, its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start_us: i64,
    pub(super) end_us: i64,
}

#[derive(Debug, Clone)]
pub(super) enum Period {
    /// Windows begin at multiples of their length since 1970.
    Aligned { window_us: i64 },
    /// A window begins with the first call that is counted.
    FromFirst { window_us: i64 },
    /// From midnight to midnight, which may be 23 or 25 hours.
    Day(TimeZone),
    /// From midnight before the first to midnight before the next first.
    Month(TimeZone),
}

impl Period {
    pub(super) const fn begins_with_first_call(&self) -> bool {
        matches!(self, Self::FromFirst { .. })
    }

    /// The window that an instant lies in; the one that would begin with a call now.
    pub(super) fn span(&self, now_us: i64) -> Span {
        match self {
            Self::Aligned { window_us } => {
                let start_us = now_us.div_euclid(*window_us) * window_us;
                Span {
                    start_us,
                    end_us: start_us.saturating_add(*window_us),
                }
            }
            Self::FromFirst { window_us } => Span {
                start_us: now_us,
                end_us: now_us.saturating_add(*window_us),
            },
            Self::Day(zone) => calendar_span(zone, local_date(zone, now_us), 1.day()),
            Self::Month(zone) => {
                calendar_span(zone, local_date(zone, now_us).first_of_month(), 1.month())
            }
        }
    }
}

fn local_date(zone: &TimeZone, now_us: i64) -> Date {
    // Clocks do not leave the range of what can be stored.
    let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::UNIX_EPOCH);
    zone.to_datetime(now).date()
}

fn calendar_span(zone: &TimeZone, first: Date, length: Calendar) -> Span {
    Span {
        start_us: midnight_us(zone, first).unwrap_or(EARLIEST_US),
        end_us: first
            .checked_add(length)
            .ok()
            .and_then(|next| midnight_us(zone, next))
            .unwrap_or(LATEST_US),
    }
}

/// The first instant of a day, which where clocks are set at midnight is not 0:00.
fn midnight_us(zone: &TimeZone, date: Date) -> Option<i64> {
    let start = date.to_zoned(zone.clone()).ok()?.start_of_day().ok()?;
    Some(start.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn span(period: &Period, now: &str) -> (String, String) {
        let now: Timestamp = now.parse().unwrap();
        let span = period.span(now.as_microsecond());
        let text = |at_us| Timestamp::from_microsecond(at_us).unwrap().to_string();
        (text(span.start_us), text(span.end_us))
    }

    fn texts(start: &str, end: &str) -> (String, String) {
        (start.to_owned(), end.to_owned())
    }

    #[test]
    fn days_begin_at_midnight_of_their_zone_and_may_have_23_or_25_hours() {
        let pacific = Period::Day(zone("America/Los_Angeles"));
        for (now, start, end) in [
            (
                "2026-03-08T20:00:00Z",
                "2026-03-08T08:00:00Z",
                "2026-03-09T07:00:00Z",
            ),
            (
                "2026-11-01T07:00:00Z",
                "2026-11-01T07:00:00Z",
                "2026-11-02T08:00:00Z",
            ),
            (
                "2026-11-01T06:59:59.999999Z",
                "2026-10-31T07:00:00Z",
                "2026-11-01T07:00:00Z",
            ),
        ] {
            assert_eq!(span(&pacific, now), texts(start, end), "{now}");
        }
    }

    #[test]
    fn a_day_without_midnight_begins_when_its_clocks_were_set() {
        // Clocks in Santiago go from 24:00 to 1:00 on the night to this day.
        let day = Period::Day(zone("America/Santiago"));
        assert_eq!(
            span(&day, "2026-09-06T12:00:00Z"),
            texts("2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z")
        );
    }

    #[test]
    fn months_have_the_length_they_have() {
        let month = Period::Month(zone("Asia/Kolkata"));
        assert_eq!(
            span(&month, "2028-02-29T18:29:59Z"),
            texts("2028-01-31T18:30:00Z", "2028-02-29T18:30:00Z")
        );
        assert_eq!(
            span(&month, "2028-12-31T18:30:00Z"),
            texts("2028-12-31T18:30:00Z", "2029-01-31T18:30:00Z")
        );
    }

    #[test]
    fn the_ends_of_time_have_windows_too() {
        for period in [
            Period::Day(TimeZone::UTC),
            Period::Month(zone("Pacific/Kiritimati")),
            Period::Month(zone("America/Los_Angeles")),
            Period::Aligned {
                window_us: i64::MAX / 2,
            },
        ] {
            for now_us in [EARLIEST_US, LATEST_US] {
                let span = period.span(now_us);
                assert!(span.start_us <= now_us && now_us <= span.end_us, "{span:?}");
            }
        }
    }
}
