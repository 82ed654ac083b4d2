//! Slices of JSON that were found to be well formed, and the values in them.
//!
//! The reader keeps slices of the answer and decodes only what a field asks for, so that one bad
//! value (a lone surrogate, a number beyond all bounds) spoils itself and nothing else. Every
//! function here expects a complete, well-formed JSON value without space around it.

use crate::scan::measure_string;

/// Containers within containers that are kept; deeper values are dropped.
pub(crate) const DEPTH_MAX: usize = 96;

const REPLACEMENT: char = '\u{FFFD}';

pub(crate) fn is_null(raw: &str) -> bool {
    raw == "null"
}

pub(crate) fn is_object(raw: &str) -> bool {
    raw.starts_with('{')
}

/// Whether `//` passes over the value, as in jq.
pub(crate) fn is_falsy(raw: &str) -> bool {
    matches!(raw, "null" | "false")
}

/// A string's text. Lone surrogates and NUL become U+FFFD and are counted in `mended`.
pub(crate) fn text(raw: &str, mended: &mut u32) -> Option<String> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.as_bytes().contains(&b'\\') {
        Some(unescape(inner, mended))
    } else {
        Some(inner.to_owned())
    }
}

/// A string's text or an integer's digits, kept exactly however long; for ids.
pub(crate) fn id_text(raw: &str, mended: &mut u32) -> Option<String> {
    if raw.starts_with('"') {
        let mut broken = 0;
        let id = text(raw, &mut broken)?;
        *mended += broken;
        // An id that had to be mended is another id.
        return (broken == 0).then_some(id);
    }
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then(|| raw.to_owned())
}

pub(crate) fn boolean(raw: &str) -> Option<bool> {
    match raw {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

pub(crate) fn is_number(raw: &str) -> bool {
    raw.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// A whole number, exactly; `None` when it is none, or larger than 64 bits hold.
pub(crate) fn integer(raw: &str) -> Option<i64> {
    if !is_number(raw) {
        return None;
    }
    raw.parse().ok().or_else(|| scaled_integer(raw))
}

/// 1.0 and 2e3 are integers as well. They are moved about as text: a float would round them.
fn scaled_integer(raw: &str) -> Option<i64> {
    const DIGITS_MAX: i64 = 19;
    let (sign, number) = match raw.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", raw),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::from(exponent) - fraction.len() as i64 + (all.len() - digits.len()) as i64;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if zeros < 0 || digits.len() as i64 + zeros > DIGITS_MAX {
        return None;
    }
    format!("{sign}{digits}{}", "0".repeat(zeros as usize))
        .parse()
        .ok()
}

pub(crate) fn float(raw: &str) -> Option<f64> {
    if !is_number(raw) {
        return None;
    }
    raw.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The value without spaces and without what databases refuse in JSON text (NUL, lone
/// surrogates); `None` when it is nested too deeply.
pub(crate) fn compact(raw: &str, mended: &mut u32) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut depth = 0_usize;
    // Everything from `start` to `place` is taken over as it is.
    let (mut start, mut place) = (0, 0);
    while let Some(byte) = raw.as_bytes().get(place) {
        match byte {
            b'"' => {
                let (length, is_escaped) = measure_string(&raw[place..]);
                let end = place + length;
                let literal = &raw[place..end];
                if is_escaped && literal.contains("\\u") {
                    out.push_str(&raw[start..place]);
                    compact_string(literal, &mut out, mended);
                    start = end;
                }
                place = end;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return None;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' | b'\n' | b'\t' | b'\r' => {
                out.push_str(&raw[start..place]);
                start = place + 1;
            }
            _ => {}
        }
        place += 1;
    }
    out.push_str(&raw[start..place]);
    Some(out)
}

fn compact_string(literal: &str, out: &mut String, mended: &mut u32) {
    let mut broken = 0;
    let decoded = text(literal, &mut broken).unwrap_or_default();
    if broken == 0 {
        out.push_str(literal);
        return;
    }
    *mended += broken;
    out.push_str(&quote(&decoded));
}

/// A text as a JSON string literal.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Appends a text as a JSON string literal.
pub(crate) fn push_quoted(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte >= b' ' && !matches!(byte, b'"' | b'\\');
    if !text.bytes().all(is_plain) {
        out.push_str(&quote(text));
        return;
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// How deeply containers are nested, whatever the value.
pub(crate) fn depth(raw: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut in_string = false;
    let mut escaped = false;
    for byte in raw.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn unescape(inner: &str, mended: &mut u32) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(place) = rest.bytes().position(|byte| byte == b'\\') {
        out.push_str(&rest[..place]);
        let after = &rest[place + 1..];
        let mut length = 1;
        match after.bytes().next() {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r') => out.push('\r'),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{C}'),
            Some(b'u') => {
                let (character, taken) = unescape_unicode(after);
                if character.is_none() {
                    *mended += 1;
                }
                out.push(character.unwrap_or(REPLACEMENT));
                length = taken;
            }
            // A quote, a backslash or a slash stands for itself.
            Some(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => length = 0,
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// The character of `uXXXX` (or of a surrogate pair) and how many bytes stand for it; no
/// character for half a pair and for NUL.
fn unescape_unicode(text: &str) -> (Option<char>, usize) {
    let Some(unit) = hex_unit(text) else {
        return (None, 1);
    };
    if (0xD800..0xDC00).contains(&unit) {
        let low = text[5..].strip_prefix('\\').and_then(hex_unit);
        if let Some(low) = low.filter(|low| (0xDC00..0xE000).contains(low)) {
            let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            return (char::from_u32(code), 11);
        }
    }
    (
        char::from_u32(unit).filter(|character| *character != '\0'),
        5,
    )
}

fn hex_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lone_surrogates_and_nul_are_replaced_and_counted() {
        let mut mended = 0;
        let raw = r#""a\ud800b\u0000c\ud83d\udc26\udc00\ud800\ud83d\udc26""#;
        assert_eq!(
            text(raw, &mut mended).unwrap(),
            "a\u{FFFD}b\u{FFFD}c🐦\u{FFFD}\u{FFFD}🐦"
        );
        assert_eq!(mended, 4);
    }

    #[test]
    fn ids_keep_every_digit_and_are_never_mended() {
        let mut mended = 0;
        let long = "123456789012345678901234567890";
        assert_eq!(id_text(long, &mut mended).as_deref(), Some(long));
        assert_eq!(
            id_text("\"o'b\\\"\\ud83d\\udc26\"", &mut mended).as_deref(),
            Some("o'b\"🐦")
        );
        assert_eq!(mended, 0);
        assert_eq!(id_text(r#""a\u0000""#, &mut mended), None);
        assert_eq!(id_text("1e5", &mut mended), None);
        assert_eq!(id_text("true", &mut mended), None);
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775808"), None);
        assert_eq!(integer("1.0"), Some(1));
        assert_eq!(integer("9007199254740993.0"), Some(9_007_199_254_740_993));
        assert_eq!(integer("-9.223372036854775808e18"), Some(i64::MIN));
        assert_eq!(integer("9.223372036854775808e18"), None);
        assert_eq!(integer("1.5e1"), Some(15));
        assert_eq!(integer("1200e-2"), Some(12));
        assert_eq!(integer("-0.0"), Some(0));
        assert_eq!(integer("0e999999999"), Some(0));
        assert_eq!(integer("4503599627370496.5"), None);
        assert_eq!(integer("9007199254740991.4"), None);
        assert_eq!(integer("1e99999999999"), None);
        for text in ["-", "-.", "1_000", "0x10", "0.x", "1e", "-.0", "12 gulls"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("1e400"), None);
        assert_eq!(integer("\"12\""), None);
        assert_eq!(float("1e400"), None);
    }

    #[test]
    fn json_is_compacted_mended_and_bounded() {
        let mut mended = 0;
        let raw = "{ \"a b\" : [ 1 , \"x \\\" y\" ] , \"n\" : \"\\u0000\" }";
        assert_eq!(
            compact(raw, &mut mended).unwrap(),
            "{\"a b\":[1,\"x \\\" y\"],\"n\":\"\u{FFFD}\"}"
        );
        assert_eq!(mended, 1);
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(compact(&deep, &mut mended), None);
        assert_eq!(depth(&deep), 200);
    }

    proptest! {
        #[test]
        fn strings_decode_as_the_json_library_decodes_them(expected in any::<String>()) {
            prop_assume!(!expected.contains('\0'));
            let mut mended = 0;
            let raw = quote(&expected);
            prop_assert_eq!(text(&raw, &mut mended), Some(expected));
            prop_assert_eq!(mended, 0);
        }

        #[test]
        fn any_slice_is_survived(raw in "[\\\\u\"0-9a-fd\\[\\]{}:, é]{0,40}") {
            let mut mended = 0;
            text(&raw, &mut mended);
            id_text(&raw, &mut mended);
            compact(&raw, &mut mended);
            integer(&raw);
        }
    }
}
