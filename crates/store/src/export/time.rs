//! Instants as ISO 8601 text and back, without loss.

use kittiwake_model::clock::{EARLIEST_US, LATEST_US};

const DAY_US: i64 = 86_400_000_000;
/// Days of 400 years, after which the calendar repeats itself.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Years are counted from March here, so that the leap day is
/// the last of its year.
const MARCH_OF_YEAR_0: i64 = 719_468;

/// `2026-11-15T20:30:00.000000Z`. Every instant that fits 64 bits has its own text: years that four
/// digits cannot show get a sign and six.
pub(crate) fn iso(at_us: i64) -> String {
    let (year, month, day) = date_of(at_us.div_euclid(DAY_US));
    let rest_us = at_us.rem_euclid(DAY_US);
    let (seconds, micros) = (rest_us / 1_000_000, rest_us % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let year = if (0..=9_999).contains(&year) {
        format!("{year:04}")
    } else {
        format!("{year:+07}")
    };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Reads what [`iso`] writes, and nothing else.
fn parse_iso(text: &str) -> Option<i64> {
    let year_length = if text.starts_with(['+', '-']) { 7 } else { 4 };
    let (year, rest) = text.split_at_checked(year_length)?;
    let number = |place: std::ops::Range<usize>| rest.get(place)?.parse::<i64>().ok();
    let (month, day) = (number(1..3)?, number(4..6)?);
    let (hour, minute, second) = (number(7..9)?, number(10..12)?, number(13..15)?);
    let micros = number(16..22)?;
    let days = days_of(year.parse().ok()?, month, day);
    let seconds = hour * 3_600 + minute * 60 + second;
    let at_us = i128::from(days) * i128::from(DAY_US) + i128::from(seconds * 1_000_000 + micros);
    let at_us = i64::try_from(at_us).ok()?;
    // Whatever is not in its place, or no date at all, does not come out as it went in.
    (iso(at_us) == text).then_some(at_us)
}

/// Reads an instant that may be stored: those of years that four digits can show.
pub(crate) fn parse_stored(text: &str) -> Option<i64> {
    parse_iso(text).filter(|at_us| (EARLIEST_US..=LATEST_US).contains(at_us))
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    // Leap days that lie behind: one in 4 years, none in 100, one in 400 (the very last day).
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, five months have 153 days, again and again.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9).rem_euclid(12);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - MARCH_OF_YEAR_0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants_have_their_known_texts() {
        for (at_us, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_825_600_000_000, "2000-02-29T12:00:00.000000Z"),
            (1_780_315_200_000_001, "2026-06-01T12:00:00.000001Z"),
            (EARLIEST_US, "0001-01-01T00:00:00.000000Z"),
            (LATEST_US, "9999-12-30T22:00:00.000000Z"),
            (i64::MAX, "+294247-01-10T04:00:54.775807Z"),
            (i64::MIN, "-290308-12-21T19:59:05.224192Z"),
        ] {
            assert_eq!(iso(at_us), text);
            assert_eq!(parse_iso(text), Some(at_us));
            let may_be_stored = text.starts_with(|first: char| first.is_ascii_digit());
            assert_eq!(parse_stored(text).is_some(), may_be_stored, "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11-15",
            "2026-11-15T20:30:00Z",
            "2026-02-30T00:00:00.000000Z",
            "2026-13-01T00:00:00.000000Z",
            "2026-11-15T24:00:00.000000Z",
            "2026-11-15T20:30:60.000000Z",
            "2026-11-15 20:30:00.000000Z",
            "2026-11-15T20:30:00.000000+",
            "+02026-11-15T20:30:00.000000Z",
            "-999999-01-01T00:00:00.000000Z",
            "2026-11-15T20:30:00.00000🐦",
            "２026-11-15T20:30:00.000000Z",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_instant_reads_back_as_itself(
            at_us in prop_oneof![any::<i64>(), EARLIEST_US..LATEST_US],
        ) {
            prop_assert_eq!(parse_iso(&iso(at_us)), Some(at_us));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
            parse_iso(&text);
        }
    }
}
