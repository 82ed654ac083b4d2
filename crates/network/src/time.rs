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
    /// `Tue, 03 Jun 2003 09:39:21 GMT`, as in mails and RSS.
    Rfc2822,
    /// What calls itself ISO 8601: RFC 3339 with parts left out.
    Iso8601,
    /// An id that holds the time of its making, in milliseconds since `epoch_ms`, above
    /// `shift_bits` other bits.
    Snowflake {
        epoch_ms: i64,
        shift_bits: u32,
    },
    /// An id of the AT Protocol, which holds microseconds.
    Tid,
    /// A pattern such as `%a %b %d %H:%M:%S %z %Y`.
    Pattern(Arc<str>),
    /// The first of these that fits.
    Several(Vec<Self>),
}

impl TimeFormat {
    pub(crate) const WORDS: &[&str] = &[
        "rfc3339",
        "iso8601",
        "rfc2822",
        "epoch_s",
        "epoch_ms",
        "date",
        "snowflake",
        "tid",
    ];

    /// Reads the word or pattern of a definition; a snowflake's numbers are left to the caller.
    pub(crate) fn from_definition(text: &str) -> Option<Self> {
        Some(match text {
            "rfc3339" => Self::Rfc3339,
            "epoch_s" => Self::EpochSeconds,
            "epoch_ms" => Self::EpochMilliseconds,
            "date" => Self::Date,
            "rfc2822" => Self::Rfc2822,
            "iso8601" => Self::Iso8601,
            "tid" => Self::Tid,
            "snowflake" => Self::Snowflake {
                epoch_ms: 0,
                shift_bits: 0,
            },
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
            Self::EpochSeconds | Self::EpochMilliseconds | Self::Snowflake { .. } => {
                self.read_number(text)
            }
            Self::Rfc2822 => read_rfc2822(text),
            Self::Iso8601 => read_iso8601(text),
            Self::Tid => read_tid(text),
            Self::Pattern(pattern) => read_pattern(pattern, text),
            Self::Several(formats) => formats.iter().find_map(|format| format.read_text(text)),
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
            Self::Rfc3339 | Self::Iso8601 => return write_rfc3339(second * SECOND_US),
            Self::Date => "%Y-%m-%d",
            Self::Pattern(pattern) => pattern,
            Self::Rfc2822 => "%a, %d %b %Y %H:%M:%S +0000",
            Self::Several(formats) => return formats.first()?.write(at_us),
            // An id is made by the network.
            Self::Snowflake { .. } | Self::Tid => return None,
        };
        let at = jiff::Timestamp::from_second(second).ok()?;
        jiff::fmt::strtime::format(written, &at.to_zoned(jiff::tz::TimeZone::UTC)).ok()
    }

    /// The same for a number as it is written: an id must not be rounded.
    pub(crate) fn read_number(&self, digits: &str) -> Option<(i64, bool)> {
        let unit_us = match self {
            Self::EpochSeconds => 1e6,
            Self::EpochMilliseconds => 1e3,
            Self::Snowflake {
                epoch_ms,
                shift_bits,
            } => {
                let id: u64 = digits.parse().ok()?;
                let made_ms = i64::try_from(id >> shift_bits).ok()?;
                let at_ms = made_ms.checked_add(*epoch_ms)?;
                return Some(clamp_us(at_ms.saturating_mul(1_000)));
            }
            Self::Several(formats) => {
                return formats.iter().find_map(|format| format.read_number(digits));
            }
            _ => return None,
        };
        let number: f64 = digits.parse().ok()?;
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

/// RFC 3339 as it is written by hand: spaces around it and before the offset, a time without
/// seconds or without an offset (UTC), a month or a year alone, `20261014T190638Z`.
fn read_iso8601(text: &str) -> Option<(i64, bool)> {
    let text = text.trim();
    if let Some(read) = read_rfc3339(text) {
        return Some(read);
    }
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        4 if is_digits(text) => return read_rfc3339(&format!("{text}-01-01")),
        7 if text.is_ascii() => return read_rfc3339(&format!("{text}-01")),
        _ => {}
    }
    if text.len() >= 8 && text.get(..8).is_some_and(is_digits) {
        return read_rfc3339(&spread(text));
    }
    // `2026-10-14 19:06:38 +0200` and `… UTC`.
    let (time, offset) = text.rsplit_once(' ')?;
    let offset = match offset {
        "UTC" | "GMT" | "utc" | "gmt" => "Z",
        other => other,
    };
    read_rfc3339(&format!("{}{offset}", time.trim_end()))
}

/// `20261014T190638Z` with marks between its parts.
fn spread(text: &str) -> String {
    let (day, rest) = text.split_at(8);
    let mut out = format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]);
    let is_mark = |it: char| matches!(it, 'T' | 't' | ' ');
    let Some(time) = rest.strip_prefix(is_mark) else {
        return out + rest;
    };
    out.push('T');
    let length = time.bytes().take_while(u8::is_ascii_digit).count();
    let digits = &time[..length.min(6)];
    for (number, part) in digits.as_bytes().chunks(2).enumerate() {
        if number > 0 {
            out.push(':');
        }
        out.extend(part.iter().map(|digit| char::from(*digit)));
    }
    out + &time[digits.len()..]
}

/// `Tue, 03 Jun 2003 09:39:21 +0200`. The day of the week is not believed and may be missing, as
/// may the seconds; a zone that nobody knows, or none, is UTC.
fn read_rfc2822(text: &str) -> Option<(i64, bool)> {
    let text = match text.split_once(',') {
        Some((_, after)) => after,
        None => text,
    };
    let mut words = text.split_ascii_whitespace().peekable();
    // A weekday without its comma.
    words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let day: i64 = words.next()?.parse().ok()?;
    let month = month_of(words.next()?)?;
    let year = year_of(words.next()?)?;
    if day < 1 || day > days_in(year, month) {
        return None;
    }
    let day_us = days_since_1970(year, month, day).saturating_mul(DAY_US);
    let Some(time) = words.next() else {
        return Some(clamp_us(day_us));
    };
    let mut parts = time.split(':');
    let mut part = |max: i64| -> Option<i64> {
        let number = parts.next()?.parse().ok()?;
        (0..=max).contains(&number).then_some(number)
    };
    let (hour, minute) = (part(24)?, part(59)?);
    let second = if time.matches(':').count() > 1 {
        part(60)?
    } else {
        0
    };
    let offset_s = words.next().map_or(0, zone_offset_s);
    let seconds = hour * 3_600 + minute * 60 + second - offset_s;
    Some(clamp_us(day_us.saturating_add(seconds * SECOND_US)))
}

/// The month that a word of three letters or more begins to name.
fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    let place = MONTHS
        .iter()
        .position(|month| word.len() >= 3 && month.starts_with(&word))?;
    Some(place as i64 + 1)
}

/// A year; of two or three digits as RFC 2822 says.
fn year_of(word: &str) -> Option<i64> {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: i64 = word.parse().ok()?;
    match (word.len(), year) {
        (2, 0..=49) => Some(year + 2_000),
        (2 | 3, _) => Some(year + 1_900),
        (4..=6, _) => Some(year),
        _ => None,
    }
}

fn zone_offset_s(zone: &str) -> i64 {
    let hours = match zone.to_ascii_uppercase().as_str() {
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        other => return read_offset(other).unwrap_or(0),
    };
    hours * 3_600
}

/// Thirteen digits of base 32, in the order of their bytes: 53 bits of microseconds and ten that
/// tell apart who made it. There are 64 bits, so that the first digit is one of the lower half.
fn read_tid(text: &str) -> Option<(i64, bool)> {
    const DIGITS: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    const LENGTH: usize = 13;
    if text.len() != LENGTH {
        return None;
    }
    let mut number = 0_u64;
    for (place, byte) in text.bytes().enumerate() {
        let digit = DIGITS.iter().position(|digit| *digit == byte)?;
        if place == 0 && digit >= DIGITS.len() / 2 {
            return None;
        }
        number = (number << 5) | digit as u64;
    }
    i64::try_from(number >> 10).ok().map(clamp_us)
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
        assert_eq!(epoch.read_number("1e300"), Some((LATEST_US, true)));
        assert_eq!(
            epoch.read_number("1700000000123"),
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

    fn instant(text: &str) -> (i64, bool) {
        let timestamp: jiff::Timestamp = text.parse().unwrap();
        (timestamp.as_microsecond(), false)
    }

    #[test]
    fn mail_times_are_read_as_feeds_write_them() {
        for (text, expected) in [
            ("Tue, 03 Jun 2003 09:39:21 GMT", "2003-06-03T09:39:21Z"),
            ("Mon, 3 Jun 2003 09:39:21 +0200", "2003-06-03T07:39:21Z"),
            ("03 Jun 2003 09:39:21 EST", "2003-06-03T14:39:21Z"),
            ("Tue 03 June 03 09:39 Z", "2003-06-03T09:39:00Z"),
            ("3 sep. 1999", "1999-09-03T00:00:00Z"),
            ("  Sat, 31 Dec 99 23:59:60 UT  ", "2000-01-01T00:00:00Z"),
            (
                "Tue, 03 Jun 2003 09:39:21 XYZ (a word)",
                "2003-06-03T09:39:21Z",
            ),
            ("Tue, 03 Jun 2003 09:39:21 -08:00", "2003-06-03T17:39:21Z"),
        ] {
            assert_eq!(read_rfc2822(text), Some(instant(expected)), "{text}");
        }
        for text in [
            "",
            "Tue",
            "Tue,",
            "31 Feb 2003 00:00 GMT",
            "3 Jux 2003",
            "3 Ju 2003",
            "3 Jun 2003 25:00",
            "3 Jun 2003 9",
            "3 Jun -003",
            "2003-06-03T09:39:21Z",
        ] {
            assert_eq!(read_rfc2822(text), None, "{text}");
        }
        assert_eq!(read_rfc2822("3 Jun 99999"), Some((LATEST_US, true)));
    }

    #[test]
    fn parts_may_be_missing_from_an_iso_time() {
        for (text, expected) in [
            (" 2026-10-14T19:06:38Z\n", "2026-10-14T19:06:38Z"),
            ("2026-10-14 19:06", "2026-10-14T19:06:00Z"),
            ("2026-10-14 19:06:38.5 +0200", "2026-10-14T17:06:38.5Z"),
            ("2026-10-14 19:06:38 UTC", "2026-10-14T19:06:38Z"),
            ("2026-10-14", "2026-10-14T00:00:00Z"),
            ("2026-10", "2026-10-01T00:00:00Z"),
            ("2026", "2026-01-01T00:00:00Z"),
            ("20261014", "2026-10-14T00:00:00Z"),
            ("20261014T190638Z", "2026-10-14T19:06:38Z"),
            ("20261014T1906+01", "2026-10-14T18:06:00Z"),
            ("20261014T190638.25-0100", "2026-10-14T20:06:38.25Z"),
        ] {
            assert_eq!(read_iso8601(text), Some(instant(expected)), "{text}");
        }
        for text in [
            "",
            " ",
            "yesterday",
            "2026-13",
            "20261",
            "202610145",
            "20261014T",
            "é026-10",
        ] {
            assert_eq!(read_iso8601(text), None, "{text}");
        }
    }

    #[test]
    fn ids_tell_when_they_were_made() {
        let bird = TimeFormat::Snowflake {
            epoch_ms: 1_288_834_974_657,
            shift_bits: 22,
        };
        for read in [TimeFormat::read_text, TimeFormat::read_number] {
            let expected = Some(instant("2022-06-28T16:07:40.105Z"));
            assert_eq!(read(&bird, "1541815603606036480"), expected);
        }
        let chat = TimeFormat::Snowflake {
            epoch_ms: 1_420_070_400_000,
            shift_bits: 22,
        };
        assert_eq!(
            chat.read_text("175928847299117063"),
            Some(instant("2016-04-30T11:18:25.796Z"))
        );
        let toots = TimeFormat::Snowflake {
            epoch_ms: 0,
            shift_bits: 16,
        };
        let id = (1_700_000_000_123_u64 << 16) | 0xFFFF;
        assert_eq!(
            toots.read_number(&id.to_string()),
            Some((1_700_000_000_123_000, false))
        );
        for text in ["", "-1", "1.5", "1e5", "18446744073709551616", "x"] {
            assert_eq!(bird.read_text(text), None, "{text}");
        }
        assert_eq!(
            toots.read_text("18446744073709551615"),
            Some((LATEST_US, true))
        );
    }

    #[test]
    fn record_keys_tell_when_they_were_made() {
        assert_eq!(read_tid("2222222222222"), Some((0, false)));
        assert_eq!(
            read_tid("3jzfcijpj2z2a"),
            Some(instant("2023-06-30T15:03:01.887007Z"))
        );
        for text in [
            "",
            "3jzfcijpj2z2",
            "3jzfcijpj2z2aa",
            "3jzfcijpj2z21",
            "zzzzzzzzzzzzz",
            "3JZFCIJPJ2Z2A",
        ] {
            assert_eq!(read_tid(text), None, "{text}");
        }
    }

    #[test]
    fn of_several_formats_the_first_that_fits_is_taken() {
        let format = TimeFormat::Several(vec![TimeFormat::Rfc2822, TimeFormat::EpochSeconds]);
        assert_eq!(format.read_text("1 Jan 1970"), Some((0, false)));
        assert_eq!(format.read_number("1"), Some((SECOND_US, false)));
        assert_eq!(format.read_text("soon"), None);
    }

    proptest! {
        #[test]
        fn every_id_gives_back_its_time(at_ms in 1_288_834_974_657_i64..3_000_000_000_000, low in 0_u64..4_194_304) {
            let id = ((at_ms - 1_288_834_974_657) as u64) << 22 | low;
            let bird = TimeFormat::Snowflake { epoch_ms: 1_288_834_974_657, shift_bits: 22 };
            prop_assert_eq!(bird.read_number(&id.to_string()), Some((at_ms * 1_000, false)));
        }

        #[test]
        fn every_instant_reads_back(at_us in EARLIEST_US..LATEST_US) {
            let timestamp = jiff::Timestamp::from_microsecond(at_us).unwrap();
            prop_assert_eq!(read_rfc3339(&timestamp.to_string()), Some((at_us, false)));
        }

        #[test]
        fn any_text_is_survived(text in "[-+0-9TZ:., ]{0,40}") {
            read_rfc3339(&text);
            read_iso8601(&text);
            TimeFormat::Date.read_text(&text);
        }

        #[test]
        fn any_mail_time_is_survived(text in "[ ,0-9:+.A-Fa-fJunéGMT-]{0,40}") {
            read_rfc2822(&text);
            read_iso8601(&text);
            read_tid(&text);
        }
    }
}
