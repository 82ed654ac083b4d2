//! Walking over JSON that is known to be well formed.
//!
//! The JSON library has checked the slice when it was cut out of the answer; to find the members
//! of an object in it needs no second check, and is several times as quick without one. Whatever
//! the text, nothing here panics or runs past its end.

/// The members of the object that a slice holds: key (as it is written, between its quotes) and
/// value.
pub(crate) struct Members<'t> {
    text: &'t str,
    place: usize,
}

impl<'t> Members<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, place: 1 }
    }

    /// Moves over space and the marks between members.
    fn skip(&mut self, mark: u8) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.place) {
            if *byte != mark && !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                break;
            }
            self.place += 1;
        }
    }

    /// The next member: its key with the quotes, and its value.
    pub(crate) fn next_literal(&mut self) -> Option<(&'t str, &'t str)> {
        self.skip(b',');
        let start = self.place;
        let (key, value) = self.next()?;
        let literal = self.text.get(start..start + key.len() + 2)?;
        Some((literal, value))
    }
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip(b',');
        let rest = self.text.get(self.place..)?;
        if !rest.starts_with('"') {
            return None;
        }
        let key_length = string_length(rest);
        let key = rest.get(1..key_length.checked_sub(1)?)?;
        self.place += key_length;
        self.skip(b':');
        let rest = self.text.get(self.place..)?;
        let value_length = value_length(rest);
        if value_length == 0 {
            return None;
        }
        self.place += value_length;
        Some((key, &rest[..value_length]))
    }
}

/// The items of the list that a slice holds.
pub(crate) struct Elements<'t> {
    text: &'t str,
    place: usize,
}

impl<'t> Elements<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, place: 1 }
    }
}

impl<'t> Iterator for Elements<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.place..)?;
        let between = |byte: &u8| matches!(byte, b',' | b' ' | b'\n' | b'\r' | b'\t');
        let skipped = rest.bytes().take_while(between).count();
        let rest = &rest[skipped..];
        let length = value_length(rest);
        if length == 0 {
            return None;
        }
        self.place += skipped + length;
        Some(&rest[..length])
    }
}

/// The length of the string literal at the start of `text`, with its quotes.
pub(crate) fn string_length(text: &str) -> usize {
    measure_string(text).0
}

/// The same, and whether anything in it is escaped.
#[inline]
pub(crate) fn measure_string(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut place = 1;
    let mut is_escaped = false;
    // Most strings are short: a plain loop beats the search functions of the library.
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => return (place + 1, is_escaped),
            b'\\' => {
                is_escaped = true;
                place += 2;
            }
            _ => place += 1,
        }
    }
    (text.len(), is_escaped)
}

/// The length of the value at the start of `text`.
fn value_length(text: &str) -> usize {
    match text.as_bytes().first() {
        Some(b'"') => string_length(text),
        Some(b'{' | b'[') => container_length(text),
        _ => text
            .bytes()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
            .unwrap_or(text.len()),
    }
}

fn container_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => {
                place += string_length(text.get(place..).unwrap_or_default()).max(1);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place + 1;
                }
            }
            _ => {}
        }
        place += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn members(text: &str) -> Vec<(&str, &str)> {
        Members::of(text).collect()
    }

    #[test]
    fn members_are_found_between_any_space() {
        assert_eq!(
            members("{ \"a\" : 1 , \"b\":[{\"x\":\"]}\"} ,2],\n\"c\\\"\":\"\\\\\",\"\":null}"),
            [
                ("a", "1"),
                ("b", "[{\"x\":\"]}\"} ,2]"),
                ("c\\\"", "\"\\\\\""),
                ("", "null")
            ]
        );
        assert_eq!(members("{}"), []);
        assert_eq!(members("{ }"), []);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\\\\"{}\\[\\],: ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\\\\\"{}a-c]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_are_those_that_the_json_library_finds(
            object in prop::collection::btree_map(any::<String>(), json(), 0..5),
            is_pretty in any::<bool>(),
        ) {
            let expected = Value::Object(object.into_iter().collect());
            let text = if is_pretty {
                serde_json::to_string_pretty(&expected).unwrap()
            } else {
                expected.to_string()
            };
            let found: serde_json::Map<String, Value> = Members::of(&text)
                .map(|(key, value)| {
                    let key = serde_json::from_str(&format!("\"{key}\"")).unwrap();
                    (key, serde_json::from_str(value).unwrap())
                })
                .collect();
            prop_assert_eq!(Value::Object(found), expected);
        }

        #[test]
        fn items_are_those_that_the_json_library_finds(
            items in prop::collection::vec(json(), 0..5),
            is_pretty in any::<bool>(),
        ) {
            let text = if is_pretty {
                serde_json::to_string_pretty(&items).unwrap()
            } else {
                serde_json::to_string(&items).unwrap()
            };
            let found: Vec<Value> = Elements::of(&text)
                .map(|item| serde_json::from_str(item).unwrap())
                .collect();
            prop_assert_eq!(found, items);
        }

        #[test]
        fn any_text_is_survived(text in "[{}\\[\\]\":,\\\\ a1é]{0,40}") {
            let _ = members(&text);
            // Every item takes a byte at least, so that there is an end.
            assert!(Elements::of(&text).count() <= text.len());
        }
    }
}
