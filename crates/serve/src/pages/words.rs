//! Numbers, times and names as people read them. The text is sensible as it stands; the page's script
//! puts it into the reader's own language.

use maud::{Markup, html};
use url::Url;

/// Letters of a text that a table or a heading shows.
const SHORT_CHARS: usize = 80;

/// A whole number: `12,345`.
pub(crate) fn number(value: u64) -> Markup {
    html! { data value=(value) { (grouped(value)) } }
}

/// A number that may be missing.
pub(crate) fn number_or_dash(value: Option<u64>) -> Markup {
    value.map_or_else(dash, number)
}

/// A measured number, as exact as is of use.
pub(crate) fn decimal(value: f64) -> Markup {
    if !value.is_finite() {
        return dash();
    }
    let text = decimal_text(value);
    html! { data value=(text) { (text) } }
}

pub(crate) fn decimal_text(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A share of one: `12 %`.
pub(crate) fn percent(share: f64) -> Markup {
    if !share.is_finite() {
        return dash();
    }
    let percent = share * 100.0;
    let text = if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    };
    html! { data value=(text) { (text) } " %" }
}

pub(crate) fn dash() -> Markup {
    html! { span.none aria-hidden="true" { "–" } span.aside { "none" } }
}

/// Digits in groups of three.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number for an axis: `950`, `1.2k`, `3M`.
pub(crate) fn brief(value: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = UNITS.iter().find(|(size, _)| value.abs() >= *size);
    let (value, unit) = unit.map_or((value, ""), |(size, unit)| (value / size, *unit));
    let mut text = format!("{value:.2}");
    if text.contains('.') {
        let kept = text.trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(kept);
    }
    text.push_str(unit);
    text
}

/// `812 B`, `9.1 kB`, `3.2 MB`.
pub(crate) fn bytes(count: u64) -> Markup {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1_000.0 {
            break;
        }
        value /= 1_000.0;
        unit = larger;
    }
    let text = if unit == "B" {
        count.to_string()
    } else {
        format!("{value:.1}")
    };
    html! { data value=(text) { (text) } " " (unit) }
}

/// A moment: `2026-11-18 03:30:12` UTC, in the reader's zone and language where the script runs.
pub(crate) fn moment(us: i64) -> Markup {
    let Some(iso) = iso(us) else {
        return html! { (us) " µs" };
    };
    let plain = iso.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(iso) { (plain) } }
}

pub(crate) fn moment_or_dash(us: Option<i64>) -> Markup {
    us.map_or_else(dash, moment)
}

/// How long ago something was, seen from a moment that may be a little older than it; its own moment is told on
/// pointing at it.
pub(crate) fn ago(us: i64, now_us: i64) -> Markup {
    let apart_us = now_us.saturating_sub(us);
    let text = if apart_us < 1_000_000 {
        "now".to_owned()
    } else {
        format!("{} ago", span_text(apart_us))
    };
    pointed_at(us, &text)
}

/// When something is to be.
pub(crate) fn due(us: i64, now_us: i64) -> Markup {
    let left_us = us.saturating_sub(now_us);
    if left_us <= 0 {
        return html! { "now" };
    }
    pointed_at(us, &format!("in {}", span_text(left_us)))
}

fn pointed_at(us: i64, text: &str) -> Markup {
    html! {
        @match iso(us) {
            Some(iso) => { time datetime=(iso) data-as="title" title=(iso) { (text) } },
            None => { (text) },
        }
    }
}

/// A time that runs down; the script counts the seconds.
pub(crate) fn countdown(left_us: i64) -> Markup {
    let seconds = left_us.max(0) / 1_000_000;
    html! { span.countdown data-seconds-left=(seconds) { (span_text(left_us.max(0))) } }
}

/// A span as people say it: `42 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`.
pub(crate) fn span_text(span_us: i64) -> String {
    let seconds = span_us / 1_000_000;
    match seconds {
        ..1 => "under 1 s".to_owned(),
        1..60 => format!("{seconds} s"),
        60..600 => format!("{} min {} s", seconds / 60, seconds % 60),
        600..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A span in hours: `30 min`, `3.2 h`, `4.2 d`.
pub(crate) fn hours(hours: Option<f64>) -> Markup {
    let Some(hours) = hours.filter(|it| it.is_finite()) else {
        return dash();
    };
    let (value, unit) = if hours < 1.0 {
        (hours * 60.0, "min")
    } else if hours < 72.0 {
        (hours, "h")
    } else {
        (hours / 24.0, "d")
    };
    let text = format!("{value:.1}");
    html! { data value=(text) { (text) } " " (unit) }
}

/// ISO 8601, UTC, whole seconds.
pub(crate) fn iso(us: i64) -> Option<String> {
    let at = jiff::Timestamp::from_microsecond(us).ok()?;
    Some(at.round(jiff::Unit::Second).ok()?.to_string())
}

/// A text cut to a line.
pub(crate) fn short(text: &str) -> String {
    short_to(text, SHORT_CHARS)
}

pub(crate) fn short_to(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The address of a page elsewhere: a link only where it leads to the web, and shown as it is.
pub(crate) fn outside(address: &str) -> Markup {
    let web = Url::parse(address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let shown = short_to(address, 120);
    html! {
        @if let Some(url) = web { a.outside href=(url) rel="noopener noreferrer nofollow" target="_blank" { (shown) } }
        @else { span.text { (shown) } }
    }
}

/// One or two letters that stand for somebody: no picture is fetched from anywhere.
pub(crate) fn initials(name: &str) -> String {
    let words = name.split(|it: char| !it.is_alphanumeric());
    let letters: String = words
        .filter_map(|word| word.chars().next())
        .take(2)
        .flat_map(char::to_uppercase)
        .collect();
    if letters.is_empty() {
        "?".to_owned()
    } else {
        letters
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn many(count: u64, one: &str, more: &str) -> Markup {
    html! { (number(count)) " " (if count == 1 { one } else { more }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let told = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(told, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn axes_are_labelled_briefly() {
        let told = [0.0, 0.25, 950.0, 1_200.0, 3e6, 2e9].map(brief);
        assert_eq!(told, ["0", "0.25", "950", "1.2k", "3M", "2G"]);
    }

    #[test]
    fn only_addresses_of_the_web_become_links() {
        for address in [
            "javascript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            " \u{1}javascript:alert(1)",
            "vbscript:x",
            "/relative",
            "at://did:plc:x/app.bsky.feed.post/1",
        ] {
            assert!(
                !outside(address).into_string().contains("href"),
                "{address}"
            );
        }
        let link = outside("https://example.org/\"onclick=alert(1) x=\"").into_string();
        assert!(
            link.contains("rel=\"noopener noreferrer nofollow\""),
            "{link}"
        );
        assert!(!link.contains("\"onclick"), "{link}");
    }

    #[test]
    fn times_beyond_every_calendar_are_told_as_they_are() {
        assert_eq!(moment(i64::MAX).into_string(), format!("{} µs", i64::MAX));
        assert!(moment(0).into_string().contains("1970-01-01 00:00:00 UTC"));
        assert!(ago(i64::MIN, i64::MAX).into_string().contains("ago"));
    }

    #[test]
    fn names_become_initials() {
        let told = ["Ada Lovelace", "@bob@sea.example", "<script>", "", "🐦"].map(initials);
        assert_eq!(told, ["AL", "BS", "S", "?", "?"]);
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(short_to("größer als gedacht", 4), "größ…");
        assert_eq!(short_to("a\n\t b", 10), "a b");
    }
}
