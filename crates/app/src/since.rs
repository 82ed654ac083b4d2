//! Instants as people type them: a day, a time, or a span before now.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp, Unit};
use kittiwake_model::{RealTime, WorldTime};

/// An instant, or how long it is ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    At(WorldTime),
    Ago { span_us: i64 },
}

impl Since {
    pub(crate) fn before(self, now: RealTime) -> WorldTime {
        match self {
            Self::At(at) => at,
            Self::Ago { span_us } => WorldTime(now.micros()).plus_us(-span_us),
        }
    }
}

/// Reads `2026-11-01`, `2026-11-01T12:00:00Z`, `7d`, `2w`, `12h` and the like. Days are those of UTC
/// and have 24 hours.
pub(crate) fn parse(text: &str) -> Result<Since, String> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Since::At(WorldTime(at.as_microsecond())));
    }
    if let Ok(day) = text.parse::<Date>()
        && text.len() == "2026-11-01".len()
        && let Ok(midnight) = day.to_zoned(TimeZone::UTC)
    {
        let at_us = midnight.timestamp().as_microsecond();
        return Ok(Since::At(WorldTime(at_us)));
    }
    span_us(text)
        .map(|span_us| Since::Ago { span_us })
        .ok_or_else(|| {
            format!("{text:?} is no time; write for example 2026-11-01, 2026-11-01T12:00:00Z or 7d")
        })
}

/// Reads `7d` and the like as microseconds.
pub(crate) fn span_us(text: &str) -> Option<i64> {
    let span: jiff::Span = text.parse().ok()?;
    let days = SpanRelativeTo::days_are_24_hours();
    let span_us = span.total((Unit::Microsecond, days)).ok()?;
    (span_us > 0.0).then_some(span_us as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let at = |at_us| Ok(Since::At(WorldTime(at_us)));
        assert_eq!(parse("1970-01-02"), at(86_400_000_000));
        assert_eq!(parse("1970-01-01T00:00:01Z"), at(1_000_000));
        assert_eq!(parse("1970-01-01T01:00:01.5+01:00"), at(1_500_000));
        for (text, hours) in [("7d", 168), ("2w", 336), ("12h", 12), ("1d 12h", 36)] {
            let span_us = hours * 3_600_000_000;
            assert_eq!(parse(text), Ok(Since::Ago { span_us }), "{text}");
        }
        for wrong in [
            "",
            "yesterday",
            "7",
            "-7d",
            "0d",
            "2026-13-01",
            "2026-11",
            "1mo",
            "12:00",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_span_ends_now() {
        let since = parse("1h").unwrap();
        assert_eq!(since.before(RealTime(3_600_000_005)), WorldTime(5));
    }
}
