//! The values that fields hold, and the cleaning of text from outside.

use crate::identity::Reference;
use serde::{Deserialize, Serialize};

/// The value of one field of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Observed, and empty. A field that was not observed is absent instead.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Microseconds UTC; `clamped` when the server named an instant outside the stored range.
    Time {
        at_us: i64,
        clamped: bool,
    },
    /// A list or a map, as compact JSON text.
    Json(String),
    /// Another object.
    Object(Reference),
}

/// Replaces what no database can hold: NUL becomes U+FFFD. Returns how many were replaced.
/// (Lone surrogates cannot occur in a `String`; readers replace them while decoding.)
pub fn clean_text(text: &mut String) -> u32 {
    if !text.as_bytes().contains(&0) {
        return 0;
    }
    let replaced = text.bytes().filter(|byte| *byte == 0).count() as u32;
    *text = text.replace('\0', "\u{FFFD}");
    replaced
}

/// Whether a text may serve as an id: not empty, no control characters, of a sane length.
pub fn is_id(text: &str) -> bool {
    const ID_BYTES_MAX: usize = 2_048;
    !text.is_empty() && text.len() <= ID_BYTES_MAX && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_becomes_the_replacement_character_and_is_counted() {
        let mut text = String::from("a\0b\0");
        assert_eq!(clean_text(&mut text), 2);
        assert_eq!(text, "a\u{FFFD}b\u{FFFD}");
    }

    #[test]
    fn ids_may_hold_quotes_and_emoji_but_no_nul() {
        assert!(is_id("o'brien\"🐦"));
        assert!(!is_id("a\0b"));
        assert!(!is_id(""));
        assert!(!is_id(&"x".repeat(3_000)));
    }
}
