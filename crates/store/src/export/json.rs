//! JSON texts that go through unread.

use serde_json::value::RawValue;
use std::borrow::Cow;

/// How deeply JSON may be nested: a little deeper than what is taken from answers, because a column
/// holds it together with others.
const DEPTH_MAX: usize = 100;

/// The text on one line, if it is JSON at all. Between values a line break means nothing; within
/// strings JSON has none.
pub(crate) fn on_one_line(json: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<&RawValue>(json).ok()?;
    if json.contains(['\n', '\r']) {
        return Some(Cow::Owned(json.replace(['\n', '\r'], " ")));
    }
    Some(Cow::Borrowed(json))
}

/// Whether it is nested no deeper than what databases and other programs can read.
pub(crate) fn is_shallow(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return false;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_go_and_everything_else_stays() {
        assert_eq!(on_one_line("[1, 2.50]").unwrap(), "[1, 2.50]");
        assert_eq!(
            on_one_line("{\n\"a\\n\":\r\n1}").unwrap(),
            "{ \"a\\n\":  1}"
        );
        assert!(on_one_line("{").is_none());
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        assert!(is_shallow(&format!("\"{}\"", "[".repeat(1_000))));
        assert!(is_shallow(r#"["\"[[["]"#));
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_shallow(&deep(DEPTH_MAX)));
        assert!(!is_shallow(&deep(DEPTH_MAX + 1)));
    }
}
