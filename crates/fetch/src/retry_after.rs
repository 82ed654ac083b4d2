//! `Retry-After`: how long a server asks to be left alone.

use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// Nobody is left alone for longer: a hostile or broken value must not stop a crawl for good.
const DELAY_US_MAX: i64 = 7 * 24 * 60 * 60 * MICROSECONDS_PER_SECOND;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// No valid value comes near; longer ones are not looked at.
const VALUE_BYTES_MAX: usize = 64;

/// The delay in microseconds that a `Retry-After` value asks for, between 0 and 7 days; none when
/// the value means nothing. `now_us` is the wall clock, needed where the value is a date.
pub fn retry_after(value: &str, now_us: i64) -> Option<i64> {
    let value = value.trim();
    if value.is_empty() || value.len() > VALUE_BYTES_MAX {
        return None;
    }
    let delay_us = match delay_from_seconds(value) {
        Some(delay_us) => delay_us,
        None => date_us(value)?.saturating_sub(now_us),
    };
    Some(delay_us.clamp(0, DELAY_US_MAX))
}

/// The instant that an HTTP date names, in microseconds since 1970.
pub fn http_date_us(value: &str) -> Option<i64> {
    let value = value.trim();
    if value.is_empty() || value.len() > VALUE_BYTES_MAX {
        return None;
    }
    date_us(value)
}

/// Whole seconds, as the standard has it. Some servers send a fraction, which is rounded up so
/// that no call is early.
fn delay_from_seconds(value: &str) -> Option<i64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let all_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    // Digits that do not fit mean longer than any bound.
    let whole_seconds: i64 = whole.parse().unwrap_or(i64::MAX);
    let begun_second = i64::from(fraction.bytes().any(|digit| digit != b'0'));
    Some(
        whole_seconds
            .saturating_add(begun_second)
            .saturating_mul(MICROSECONDS_PER_SECOND),
    )
}

/// The three date forms of HTTP: today's (`Sun, 06 Nov 1994 08:49:37 GMT`), RFC 850's and C's.
fn date_us(value: &str) -> Option<i64> {
    // A wrong day of the week does not make the date unclear.
    const TODAYS: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    if let Ok(timestamp) = TODAYS.parse_timestamp(value) {
        return Some(timestamp.as_microsecond());
    }
    // Today's again: the parser above refuses the very last day that can be written.
    [
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    ]
    .iter()
    .find_map(|format| DateTime::strptime(format, value).ok())
    .map(|date_time| match TimeZone::UTC.to_timestamp(date_time) {
        Ok(timestamp) => timestamp.as_microsecond(),
        Err(_out_of_range) if date_time.year() > 0 => i64::MAX,
        Err(_out_of_range) => i64::MIN,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const DATE_US: i64 = 784_111_777_000_000;

    #[test]
    fn seconds_are_read_and_clamped() {
        assert_eq!(retry_after("0", 5), Some(0));
        assert_eq!(retry_after(" 120 ", 5), Some(120_000_000));
        assert_eq!(retry_after("0003", 5), Some(3_000_000));
        assert_eq!(retry_after("1.25", 5), Some(2_000_000));
        assert_eq!(retry_after("1.000", 5), Some(1_000_000));
        assert_eq!(retry_after("604801", 5), Some(DELAY_US_MAX));
        assert_eq!(
            retry_after("99999999999999999999999999", 5),
            Some(DELAY_US_MAX)
        );
    }

    #[test]
    fn the_three_date_forms_are_read() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            // As X writes it.
            "Sun, 06 Nov 1994 08:49:37 UTC",
            // A wrong weekday.
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(
                retry_after(date, DATE_US - 90_000_000),
                Some(90_000_000),
                "{date}"
            );
            assert_eq!(retry_after(date, DATE_US), Some(0), "{date}");
            assert_eq!(
                retry_after(date, DATE_US + 1),
                Some(0),
                "{date} in the past"
            );
            assert_eq!(
                retry_after(date, i64::MIN),
                Some(DELAY_US_MAX),
                "{date} far ahead"
            );
            assert_eq!(retry_after(date, i64::MAX), Some(0), "{date} long ago");
        }
        assert_eq!(
            retry_after("Fri, 31 Dec 9999 23:59:59 GMT", DATE_US),
            Some(DELAY_US_MAX)
        );
    }

    #[test]
    fn what_means_nothing_is_nothing() {
        for value in [
            "",
            " ",
            "-1",
            "+1",
            "1e3",
            ".5",
            "5.",
            "soon",
            "0x10",
            "१२",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994",
            "120, 240",
        ] {
            assert_eq!(retry_after(value, DATE_US), None, "{value:?}");
        }
        assert_eq!(retry_after(&"1".repeat(10_000), DATE_US), None);
    }

    proptest! {
        #[test]
        fn any_text_gives_nothing_or_a_delay_in_bounds(value in any::<String>(), now_us: i64) {
            if let Some(delay_us) = retry_after(&value, now_us) {
                prop_assert!((0..=DELAY_US_MAX).contains(&delay_us));
            }
        }

        #[test]
        fn text_like_a_date_gives_nothing_or_a_delay_in_bounds(
            value in "[A-Z][a-z]{2,5}[, ]{1,2}[0-9]{1,3}[ -][A-Z][a-z]{2}[ -][0-9]{1,5} \
                      [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}( GMT| [+-][0-9]{4})?",
            now_us: i64,
        ) {
            if let Some(delay_us) = retry_after(&value, now_us) {
                prop_assert!((0..=DELAY_US_MAX).contains(&delay_us));
            }
        }

        #[test]
        fn seconds_within_bounds_are_exact(seconds in 0_i64..=7 * 24 * 60 * 60, now_us: i64) {
            prop_assert_eq!(retry_after(&seconds.to_string(), now_us), Some(seconds * 1_000_000));
        }
    }
}
