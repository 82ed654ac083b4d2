//! Times as networks write them.

use kittiwake_model::clock::{EARLIEST_US, LATEST_US, clamp_us};
use std::sync::Arc;

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;

/// How a network writes a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    Rfc3339,
    EpochSeconds,
    EpochMilliseconds,
    /// A day without a time: its first instant, UTC.
    Date,
    /// A pattern such as `%a %b %d %H:%M:%S %z %Y`.
    Pattern(Arc<str>),
}

impl TimeFormat {
    pub(crate) const WORDS: &[&str] = &["rfc3339", "epoch_s", "epoch_ms", "date"];

    /// Reads the word or pattern of a definition.
    pub(crate) fn from_definition(text: &str) -> Option<Self> {
        Some(match text {
            "rfc3339" => Self::Rfc3339,
            "epoch_s" => Self::EpochSeconds,
            "epoch_ms" => Self::EpochMilliseconds,
            "date" => Self::Date,
            pattern if pattern.contains('%') => Self::Pattern(pattern.into()),
            _ => return None,
        })
    }

    /// Microseconds UTC and whether they had to be clamped; `None` when it is no such time.
    pub(crate) fn read_text(&self, text: &str) -> Option<(i64, bool)> {
        match self {
            Self::Rfc3339 => read_rfc3339(text),
            Self::Date => {
                let (day, rest) = read_date(text)?;
                rest.is_empty().then(|| clamp_days(day))
            }
            Self::EpochSeconds | Self::EpochMilliseconds => self.read_number(text.parse().ok()?),
            Self::Pattern(pattern) => read_pattern(pattern, text),
        }
    }

    /// Whether times are written as numbers.
    pub(crate) const fn is_number(&self) -> bool {
        matches!(self, Self::EpochSeconds | Self::EpochMilliseconds)
    }

    /// A time as the network writes it, rounded down to its unit; `None` beyond the years that
    /// can be written.
    pub(crate) fn write(&self, at_us: i64) -> Option<String> {
        let second = at_us.div_euclid(SECOND_US);
        let written = match self {
            Self::EpochSeconds => return Some(second.to_string()),
            Self::EpochMilliseconds => return Some(at_us.div_euclid(1_000).to_string()),
            // Not every server bears fractions of a second.
            Self::Rfc3339 => return write_rfc3339(second * SECOND_US),
            Self::Date => "%Y-%m-%d",
            Self::Pattern(pattern) => pattern,
        };
        let at = jiff::Timestamp::from_second(second).ok()?;
        jiff::fmt::strtime::format(written, &at.to_zoned(jiff::tz::TimeZone::UTC)).ok()
    }

    pub(crate) fn read_number(&self, number: f64) -> Option<(i64, bool)> {
        let unit_us = match self {
            Self::EpochSeconds => 1e6,
            Self::EpochMilliseconds => 1e3,
            _ => return None,
        };
        if number.is_nan() {
            return None;
        }
        let at_us = (number * unit_us).round();
        if at_us <= EARLIEST_US as f64 {
            return Some((EARLIEST_US, at_us < EARLIEST_US as f64));
        }
        if at_us >= LATEST_US as f64 {
            return Some((LATEST_US, at_us > LATEST_US as f64));
        }
        Some((at_us as i64, false))
    }
}

/// `2026-10-14T19:06:38.206Z`, with any number of year digits, a sign, and any offset.
pub(crate) fn read_rfc3339(text: &str) -> Option<(i64, bool)> {
    let (day, rest) = read_date(text)?;
    if rest.is_empty() {
        return Some(clamp_days(day));
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (hour, rest) = two_digits(rest)?;
    let (minute, rest) = two_digits(rest.strip_prefix(':')?)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => two_digits(rest)?,
        None => (0, rest),
    };
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction_us, rest) = read_fraction(rest);
    let offset_s = read_offset(rest)?;
    let seconds = hour * 3_600 + minute * 60 + second - offset_s;
    let day_us = day.saturating_mul(DAY_US);
    Some(clamp_us(
        day_us.saturating_add(seconds * SECOND_US + fraction_us),
    ))
}

/// `2026-10-14T19:06:38.206Z`.
pub(crate) fn write_rfc3339(at_us: i64) -> Option<String> {
    let at = jiff::Timestamp::from_microsecond(at_us).ok()?;
    Some(at.to_string())
}

/// Days since 1970 of the date at the start of `text`, and what follows it.
fn read_date(text: &str) -> Option<(i64, &str)> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let year_length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if !(4..=12).contains(&year_length) {
        return None;
    }
    let year: i64 = digits[..year_length].parse().ok()?;
    let year = if negative { -year } else { year };
    let (month, rest) = two_digits(digits[year_length..].strip_prefix('-')?)?;
    let (day, rest) = two_digits(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    Some((days_since_1970(year, month, day), rest))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Counts in years that begin in March, so that the leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_TO_1970: i64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970
}

fn clamp_days(day: i64) -> (i64, bool) {
    clamp_us(day.saturating_mul(DAY_US))
}

fn two_digits(text: &str) -> Option<(i64, &str)> {
    let bytes = text.as_bytes();
    let digit = |place: usize| bytes.get(place).filter(|byte| byte.is_ascii_digit());
    let number = i64::from(*digit(0)? - b'0') * 10 + i64::from(*digit(1)? - b'0');
    Some((number, &text[2..]))
}

fn read_fraction(text: &str) -> (i64, &str) {
    let Some(digits) = text.strip_prefix(['.', ',']) else {
        return (0, text);
    };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let mut fraction_us = 0;
    let mut unit_us = 100_000;
    for digit in digits.bytes().take(length.min(6)) {
        fraction_us += i64::from(digit - b'0') * unit_us;
        unit_us /= 10;
    }
    (fraction_us, &digits[length..])
}

/// Seconds east of Greenwich. A time without an offset counts as UTC.
fn read_offset(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = two_digits(text.strip_prefix(['+', '-'])?)?;
    let minutes = match rest.strip_prefix(':').unwrap_or(rest) {
        "" => 0,
        rest => {
            let (minutes, rest) = two_digits(rest)?;
            rest.is_empty().then_some(minutes)?
        }
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Whether the date library understands a pattern.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    let sample = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::strtime::format(pattern, &sample).is_ok()
}

fn read_pattern(pattern: &str, text: &str) -> Option<(i64, bool)> {
    let parsed = jiff::fmt::strtime::parse(pattern, text).ok()?;
    if let Ok(timestamp) = parsed.to_timestamp() {
        return Some(clamp_us(timestamp.as_microsecond()));
    }
    // Without an offset, or in the last hours of the year 9999, which the library refuses.
    let date = parsed.to_date().ok()?;
    let (year, month, day) = (date.year(), date.month(), date.day());
    let day_us = days_since_1970(i64::from(year), i64::from(month), i64::from(day)) * DAY_US;
    let time = parsed
        .to_time()
        .unwrap_or_else(|_| jiff::civil::Time::midnight());
    let seconds =
        i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    let offset_s = parsed
        .offset()
        .map_or(0, |offset| i64::from(offset.seconds()));
    Some(clamp_us(day_us + (seconds - offset_s) * SECOND_US))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_come_out_as_the_date_library_says() {
        for text in [
            "2026-10-14T19:06:38.206Z",
            "1969-12-31T23:59:59.999999Z",
            "2000-02-29T00:00:00+05:30",
            "0001-01-01T00:00:00Z",
            "2024-12-31T23:59:60Z",
        ] {
            let expected: jiff::Timestamp = text.parse().unwrap();
            let (at_us, moved) = read_rfc3339(text).unwrap();
            // The library folds a leap second into the one before.
            let slack = if text.contains(":60") { SECOND_US } else { 0 };
            assert!((at_us - expected.as_microsecond()).abs() <= slack, "{text}");
            assert!(!moved);
        }
    }

    #[test]
    fn times_out_of_range_are_clamped_and_flagged() {
        assert_eq!(
            read_rfc3339("9999-12-31T23:59:59Z"),
            Some((LATEST_US, true))
        );
        assert_eq!(
            read_rfc3339("12345-01-01T00:00:00Z"),
            Some((LATEST_US, true))
        );
        assert_eq!(
            read_rfc3339("-0044-03-15T12:00:00Z"),
            Some((EARLIEST_US, true))
        );
        assert_eq!(read_rfc3339("999999999999-01-01"), Some((LATEST_US, true)));
        let epoch = TimeFormat::EpochMilliseconds;
        assert_eq!(epoch.read_number(1e300), Some((LATEST_US, true)));
        assert_eq!(
            epoch.read_number(1_700_000_000_123.0),
            Some((1_700_000_000_123_000, false))
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-29",
            "2026-01-01T25:00",
            "2026-01-01Tx",
        ] {
            assert_eq!(read_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn patterns_and_dates_are_read() {
        let weibo = TimeFormat::from_definition("%a %b %d %H:%M:%S %z %Y").unwrap();
        let read = weibo.read_text("Tue May 31 17:46:55 +0800 2011").unwrap();
        let expected: jiff::Timestamp = "2011-05-31T17:46:55+08:00".parse().unwrap();
        assert_eq!(read, (expected.as_microsecond(), false));
        let far = weibo.read_text("Fri Dec 31 23:59:59 +0000 9999");
        assert_eq!(far, Some((LATEST_US, true)));
        let day = TimeFormat::Date.read_text("2026-10-14").unwrap();
        assert_eq!(day, read_rfc3339("2026-10-14T00:00:00Z").unwrap());
        assert!(is_pattern("%Y-%m-%d"));
        assert!(!is_pattern("%Q-%!"));
    }

    proptest! {
        #[test]
        fn every_instant_reads_back(at_us in EARLIEST_US..LATEST_US) {
            let timestamp = jiff::Timestamp::from_microsecond(at_us).unwrap();
            prop_assert_eq!(read_rfc3339(&timestamp.to_string()), Some((at_us, false)));
        }

        #[test]
        fn any_text_is_survived(text in "[-+0-9TZ:., ]{0,40}") {
            read_rfc3339(&text);
            TimeFormat::Date.read_text(&text);
        }
    }
}
