//! Pages of rows, and the text by which the next one is asked for.

use crate::StoreError;
use crate::rules::read::bytes_of;
use serde::Serialize;
use std::fmt::Write as _;

/// Rows that one page has at the most.
pub const LIMIT_MAX: usize = 200;

/// One page. No page is found by counting rows before it: the millionth is as quick as the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// What to ask the next page with; `None` when this was the last one. Where a filter is applied
    /// that no index serves, a page may have few rows, or none, and a next one all the same.
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) const fn last(rows: Vec<T>) -> Self {
        Self { rows, next: None }
    }
}

/// How many rows are given when so many are asked for.
pub(crate) fn clamped(limit: usize) -> usize {
    limit.clamp(1, LIMIT_MAX)
}

/// A place in an order: which order it is, the numbers and perhaps a word where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor<const N: usize> {
    pub numbers: [i64; N],
    pub word: String,
}

impl<const N: usize> Cursor<N> {
    pub(crate) const fn new(numbers: [i64; N]) -> Self {
        Self {
            numbers,
            word: String::new(),
        }
    }

    /// `order` is the sign of the order that the place belongs to.
    pub(crate) fn to_text(&self, order: &str) -> String {
        let mut text = order.to_owned();
        for number in self.numbers {
            text.push('.');
            text.push_str(&number.to_string());
        }
        if !self.word.is_empty() {
            // Digits alone could be one number more.
            text.push_str(".x");
            for byte in self.word.bytes() {
                let _ = write!(text, "{byte:02x}");
            }
        }
        text
    }

    /// Reads what [`Self::to_text`] wrote, in the same order.
    pub(crate) fn read(text: &str, order: &str) -> Result<Self, StoreError> {
        Self::parse(text, order).ok_or_else(|| {
            StoreError::invalid("this is no place in this list; begin with its first page")
        })
    }

    fn parse(text: &str, order: &str) -> Option<Self> {
        const TEXT_BYTES_MAX: usize = 1_024;
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut parts = text.split('.');
        if parts.next()? != order {
            return None;
        }
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = parts.next()?.parse().ok()?;
        }
        let word = match parts.next() {
            Some(word) => word_of(word.strip_prefix('x')?)?,
            None => String::new(),
        };
        match parts.next() {
            Some(_) => None,
            None => Some(Self { numbers, word }),
        }
    }
}

fn word_of(hex: &str) -> Option<String> {
    let bytes = bytes_of(hex).filter(|bytes| !bytes.is_empty())?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreErrorKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_reads_back(numbers in any::<[i64; 3]>(), word in "\\PC{0,20}") {
            let cursor = Cursor { numbers, word };
            let text = cursor.to_text("links");
            prop_assert_eq!(Cursor::read(&text, "links").unwrap(), cursor);
            prop_assert!(Cursor::<3>::read(&text, "posts").is_err());
            prop_assert!(Cursor::<2>::read(&text, "links").is_err());
        }

        #[test]
        fn garbage_is_refused_and_not_more(text in "\\PC{0,40}|u(\\.[0-9a-f]{1,20}){0,4}") {
            if let Err(error) = Cursor::<1>::read(&text, "u") {
                prop_assert_eq!(error.kind(), StoreErrorKind::Invalid);
            }
        }
    }

    #[test]
    fn limits_are_clamped() {
        for (asked, given) in [(0, 1), (1, 1), (50, 50), (201, 200), (usize::MAX, 200)] {
            assert_eq!(clamped(asked), given);
        }
    }
}
