//! How many attributes an element may have at most, before a page is read. Linear, and never too few.
//!
//! Where a tag begins depends on all before it: in a script or a comment there is none. To know that
//! one would have to read the page, so that every `<` with a letter behind it is taken for the
//! beginning of a tag. Since a tag is read by a few states, and of two that are in the same state the
//! one with more attributes is all that matters, all of them are followed at once.

/// The states in which a tag is read, as the HTML standard has them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Name,
    BeforeAttribute,
    Attribute,
    AfterAttribute,
    BeforeValue,
    DoubleQuoted,
    SingleQuoted,
    Unquoted,
}

const STATES: [State; 8] = [
    State::Name,
    State::BeforeAttribute,
    State::Attribute,
    State::AfterAttribute,
    State::BeforeValue,
    State::DoubleQuoted,
    State::SingleQuoted,
    State::Unquoted,
];

/// What follows a byte, and whether an attribute begins there; nothing where the tag ends.
fn step(state: State, byte: u8) -> Option<(State, bool)> {
    let is_space = matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ');
    Some(match (state, byte) {
        (State::DoubleQuoted, b'"') | (State::SingleQuoted, b'\'') => {
            (State::BeforeAttribute, false)
        }
        (State::DoubleQuoted | State::SingleQuoted, _) => (state, false),
        (_, b'>') => return None,
        (State::BeforeValue, _) if is_space => (State::BeforeValue, false),
        (State::Attribute | State::AfterAttribute, _) if is_space => (State::AfterAttribute, false),
        (_, _) if is_space => (State::BeforeAttribute, false),
        (State::BeforeValue, b'"') => (State::DoubleQuoted, false),
        (State::BeforeValue, b'\'') => (State::SingleQuoted, false),
        (State::BeforeValue | State::Unquoted, _) => (State::Unquoted, false),
        (_, b'/') => (State::BeforeAttribute, false),
        (State::Attribute | State::AfterAttribute, b'=') => (State::BeforeValue, false),
        (State::Attribute, _) => (State::Attribute, false),
        (State::Name, _) => (State::Name, false),
        (State::BeforeAttribute | State::AfterAttribute, _) => (State::Attribute, true),
    })
}

/// The most attributes that any tag of a page can have.
pub(super) fn most_attributes(page: &str) -> u32 {
    let bytes = page.as_bytes();
    let mut tags: [Option<u32>; STATES.len()] = [None; STATES.len()];
    let mut most = 0;
    for (place, byte) in bytes.iter().enumerate() {
        let mut after = [None; STATES.len()];
        for (state, count) in STATES.iter().zip(tags) {
            let Some(count) = count else { continue };
            let Some((next, begins)) = step(*state, *byte) else {
                continue;
            };
            let count = count + u32::from(begins);
            most = most.max(count);
            let slot = &mut after[next as usize];
            *slot = (*slot).max(Some(count));
        }
        tags = after;
        let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        let begins = *byte == b'<'
            && (is_letter(place + 1)
                || bytes.get(place + 1) == Some(&b'/') && is_letter(place + 2));
        if begins {
            let slot = &mut tags[State::Name as usize];
            *slot = (*slot).max(Some(0));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_counted_however_they_are_written() {
        for (page, expected) in [
            ("", 0),
            ("<p>", 0),
            ("<p a>", 1),
            ("<p a=1 b='2' c=\"3\">", 3),
            ("<p a='>'b=1 c/d>", 4),
            ("<p a = 'x y z' >", 1),
            // Its slash looks like one in front of an attribute: one too many is none too few.
            ("</p a b>", 3),
            ("1 < 2 a b c", 0),
            ("<p <b <c>", 2),
            ("<p \" a b c>", 4),
            ("<!-- <a b c --><p a>", 3),
        ] {
            assert_eq!(most_attributes(page), expected, "{page}");
        }
    }

    proptest! {
        #[test]
        fn no_tag_has_more_than_are_counted(
            before in "[<>a-c '\"=/!-]{0,20}",
            names in prop::collection::vec(("[a-z]{1,3}", "(=[a-z]{1,2}|='[^']{0,3}'|=\"[^\"]{0,3}\"|)"), 0..20),
        ) {
            let written: Vec<String> = names.iter().map(|(name, value)| format!("{name}{value}")).collect();
            let page = format!("{before}<p {}>", written.join(" "));
            prop_assert!(most_attributes(&page) >= names.len() as u32, "{page}");
        }
    }
}
