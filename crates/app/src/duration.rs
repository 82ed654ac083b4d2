//! Durations and shares as people type them.

use std::time::Duration;

/// Reads `90s`, `10m`, `2h`, `1h 30m` and the like.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let advice = || format!("{text:?} is no duration; write for example 90s, 10m or 2h");
    let span: jiff::SignedDuration = text.parse().map_err(|_| advice())?;
    Duration::try_from(span)
        .map_err(|_| advice())
        .and_then(|duration| {
            if duration.is_zero() {
                Err(advice())
            } else {
                Ok(duration)
            }
        })
}

/// Reads `10%` or `0.1` as a share from 0 up to (not including) 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let advice = || format!("{text:?} is no share; write for example 10% or 0.1");
    let (number, divisor) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map_err(|_| advice())? / divisor;
    if (0.0..1.0).contains(&share) {
        Ok(share)
    } else {
        Err(advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(parse("1h 30m"), Ok(Duration::from_mins(90)));
        for wrong in ["", "10", "-5s", "0s", "soon", "1e99h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_are_percents_or_fractions() {
        assert_eq!(parse_share("10%"), Ok(0.1));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        for wrong in ["100%", "-1%", "NaN", "ten"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
