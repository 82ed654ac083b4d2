//! Conditional requests (RFC 9110, section 13): an answer that is still the same is not sent again.
//!
//! What a server says to tell its answers apart is kept as the mark of the query.

use crate::read::Answer;
use url::form_urlencoded;

/// What answers carry, and what sends it back.
const VALIDATORS: [(&str, &str); 2] = [
    ("etag", "if-none-match"),
    ("last-modified", "if-modified-since"),
];
/// The longest validator that is kept.
const BYTES_MAX: usize = 1_000;

/// The mark of an answer, if its server says how to tell it from others.
pub(crate) fn mark_of(answer: &Answer<'_>) -> Option<String> {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, _) in VALIDATORS {
        let value = (answer.header)(name).filter(|value| is_sound(value));
        if let Some(value) = value {
            pairs.append_pair(name, &value);
        }
    }
    Some(pairs.finish()).filter(|mark| !mark.is_empty())
}

fn is_sound(value: &str) -> bool {
    let is_printed = |byte: u8| (b' '..=b'~').contains(&byte);
    !value.is_empty() && value.len() <= BYTES_MAX && value.bytes().all(is_printed)
}

/// The headers that ask for an answer only if it is another than that of the mark.
pub(crate) fn headers_of(mark: &str) -> Vec<(String, String)> {
    let pairs = form_urlencoded::parse(mark.as_bytes());
    pairs
        .filter(|(_, value)| is_sound(value))
        .filter_map(|(known, value)| {
            let (_, header) = VALIDATORS.into_iter().find(|(name, _)| *name == known)?;
            Some((header.to_owned(), value.into_owned()))
        })
        .collect()
}
