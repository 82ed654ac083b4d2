//! Days and seconds of the world, and how the network writes them.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::Offset;

pub(crate) const SECOND_US: i64 = 1_000_000;
pub(crate) const DAY_S: i64 = 86_400;
pub(crate) const DAY_US: i64 = DAY_S * SECOND_US;
pub(crate) const HOUR_S: i64 = 3_600;

/// Days since 1970-01-01.
pub(crate) const fn day_of(at_us: i64) -> i64 {
    at_us.div_euclid(DAY_US)
}

/// 0 is Monday.
pub(crate) const fn weekday(day: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (day + 3).rem_euclid(7)
}

/// `2026-10-14T19:04:23Z`
pub(crate) fn iso_s(at_us: i64) -> String {
    format!("{:.0}", timestamp(at_us.div_euclid(SECOND_US) * SECOND_US))
}

/// `2026-10-14T19:04:23.300Z`
pub(crate) fn iso_ms(at_us: i64) -> String {
    format!("{:.3}", timestamp(at_us))
}

/// `2026-10-14T19:05:00.142751Z`
pub(crate) fn iso_us(at_us: i64) -> String {
    format!("{:.6}", timestamp(at_us))
}

/// `2026-10-14`
pub(crate) fn iso_day(day: i64) -> String {
    let text = format!("{:.0}", timestamp(day * DAY_US));
    text.chars().take_while(|&letter| letter != 'T').collect()
}

/// `Tue, 13 Oct 2026 19:04:23 GMT`, as HTTP writes it.
pub(crate) fn http_date(at_us: i64) -> String {
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&timestamp(at_us))
        .unwrap_or_default()
}

/// An instant as clocks in Beijing show it, in the form of strftime.
pub(crate) fn in_beijing(at_us: i64, format: &str) -> String {
    let zone = Offset::constant(8).to_time_zone();
    timestamp(at_us).to_zoned(zone).strftime(format).to_string()
}

fn timestamp(at_us: i64) -> Timestamp {
    // Instants come from the world, whose bounds are checked when it is made, or from a clock.
    Timestamp::from_microsecond(at_us).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_the_network_writes_them() {
        let at_us = 1_791_918_263_300_000;
        assert_eq!(iso_ms(at_us), "2026-10-13T19:04:23.300Z");
        assert_eq!(iso_us(at_us + 7), "2026-10-13T19:04:23.300007Z");
        assert_eq!(iso_day(day_of(at_us)), "2026-10-13");
        let weibo = in_beijing(at_us, "%a %b %d %H:%M:%S %z %Y");
        assert_eq!(weibo, "Wed Oct 14 03:04:23 +0800 2026");
        assert_eq!(http_date(at_us), "Tue, 13 Oct 2026 19:04:23 GMT");
    }

    #[test]
    fn the_first_of_january_1970_was_a_thursday() {
        assert_eq!(weekday(0), 3);
        assert_eq!(weekday(-3), 0);
    }
}
