//! How far back a first visit goes, as people type it.

use kittiwake_engine::History;
use kittiwake_model::WorldTime;

/// Reads `all`, a number of posts, or `since:` with a day or a time.
pub(crate) fn parse(text: &str) -> Result<History, String> {
    let advice =
        || format!("{text:?} is no history; write all, a number of posts, or since:2026-01-31");
    if text == "all" {
        return Ok(History::All);
    }
    if let Some(since) = text.strip_prefix("since:") {
        return time(since).map(History::Since).ok_or_else(advice);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(advice()),
        Ok(posts) => Ok(History::Posts(posts)),
    }
}

/// A day, or a time with its zone.
fn time(text: &str) -> Option<WorldTime> {
    let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let day: jiff::civil::Date = text.parse().ok()?;
        Some(day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })?;
    Some(WorldTime(at.as_microsecond()))
}

/// As it was typed, for the run's record.
pub(crate) fn text(history: History) -> String {
    match history {
        History::All => "all".to_owned(),
        History::Posts(posts) => posts.to_string(),
        History::Since(since) => {
            let at = jiff::Timestamp::from_microsecond(since.micros());
            at.map_or_else(|_| String::new(), |at| format!("since:{at}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_read_as_people_write_them() {
        assert_eq!(parse("all"), Ok(History::All));
        assert_eq!(parse("200"), Ok(History::Posts(200)));
        let day = History::Since(WorldTime(1_767_225_600_000_000));
        assert_eq!(parse("since:2026-01-01"), Ok(day));
        assert_eq!(parse("since:2026-01-01T00:00:00Z"), Ok(day));
        assert_eq!(parse(&text(day)), Ok(day));
        for wrong in [
            "",
            "0",
            "-5",
            "since:",
            "since:soon",
            "1e9",
            "since:2026-13-01",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
