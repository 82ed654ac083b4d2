//! Posts and profiles as plain text: tags fall away, paragraphs and line breaks stay.

/// The text of a fragment of HTML. Never fails: what is no tag stays as it is.
pub fn html_to_text(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    // A paragraph's end, or its beginning where the last one was not ended, becomes an empty line,
    // but only once something follows it.
    let mut breaks_due = 0_usize;
    while let Some(place) = rest.bytes().position(|byte| matches!(byte, b'<' | b'&')) {
        let (before, after) = rest.split_at(place);
        push(&mut text, &mut breaks_due, before);
        if after.starts_with('&') {
            let (character, length) = entity(after);
            push(
                &mut text,
                &mut breaks_due,
                character.encode_utf8(&mut [0; 4]),
            );
            rest = &after[length..];
        } else if let Some(end) = tag_end(after) {
            breaks_due = breaks_due.max(breaks_of(&after[1..end]));
            if is_line_break(&after[1..end]) {
                breaks_due = 0;
                text.push('\n');
            }
            rest = &after[end + 1..];
        } else {
            push(&mut text, &mut breaks_due, "<");
            rest = &after[1..];
        }
    }
    push(&mut text, &mut breaks_due, rest);
    text.truncate(text.trim_end().len());
    text
}

fn push(text: &mut String, breaks_due: &mut usize, piece: &str) {
    if piece.is_empty() {
        return;
    }
    if *breaks_due > 0 && !text.is_empty() {
        for _ in 0..*breaks_due {
            text.push('\n');
        }
    }
    *breaks_due = 0;
    text.push_str(piece);
}

/// The place of the `>` that ends the tag at the start of `text`, if it is a tag.
fn tag_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = *bytes.get(1)?;
    if !(first.is_ascii_alphabetic() || first == b'/' || first == b'!') {
        return None;
    }
    let mut quote = None;
    for (place, byte) in bytes.iter().enumerate().skip(1) {
        match (quote, byte) {
            (None, b'>') => return Some(place),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    // A quote that never closes: take the first `>` after all.
    text.find('>')
}

fn tag_name(tag: &str) -> &str {
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    let end = tag
        .find(|character: char| !character.is_ascii_alphanumeric())
        .unwrap_or(tag.len());
    &tag[..end]
}

fn is_line_break(tag: &str) -> bool {
    tag_name(tag).eq_ignore_ascii_case("br")
}

/// How many line breaks a tag stands for before the text that follows.
fn breaks_of(tag: &str) -> usize {
    let name = tag_name(tag);
    let is = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
    let is_end = tag.starts_with('/');
    if is(&["p"]) || is_end && is(&["ul", "ol", "blockquote", "pre", "h1", "h2", "h3"]) {
        return 2;
    }
    usize::from(is(&["li", "div", "ul", "ol", "blockquote", "pre"]))
}

/// The character that an entity at the start of `text` stands for, and the entity's length.
fn entity(text: &str) -> (char, usize) {
    const NAMED: &[(&str, char)] = &[
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", '\u{A0}'),
        ("hellip", '…'),
        ("ndash", '–'),
        ("mdash", '—'),
    ];
    const LENGTH_MAX: usize = 12;
    let Some(end) = text.bytes().take(LENGTH_MAX).position(|byte| byte == b';') else {
        return ('&', 1);
    };
    let name = &text[1..end];
    if let Some((_, character)) = NAMED.iter().find(|(known, _)| *known == name) {
        return (*character, end + 1);
    }
    let code = name
        .strip_prefix('#')
        .and_then(|digits| match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        });
    match code {
        // NUL and surrogates cannot be stored.
        Some(code) => match char::from_u32(code) {
            Some(character) if code != 0 => (character, end + 1),
            _ => ('\u{FFFD}', end + 1),
        },
        None => ('&', 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paragraphs_breaks_links_and_entities_become_text() {
        for (html, text) in [
            ("<p>Toot!</p>", "Toot!"),
            ("<p>one</p><p>two<br />three</p>", "one\n\ntwo\nthree"),
            // As Hacker News writes it.
            ("one<p>two<p>three", "one\n\ntwo\n\nthree"),
            (
                "<p><a href=\"https://a.b/?x=1>2\">#<span>tag</span></a> &amp; &lt;b&gt; &#39;q&#x27;</p>",
                "#tag & <b> 'q'",
            ),
            ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
            ("<ul><li>a</li><li>b</li></ul>c", "a\nb\n\nc"),
            ("&#0;&#xD800;&unknown;", "\u{FFFD}\u{FFFD}&unknown;"),
            ("<p>open", "open"),
            ("<img alt='", "<img alt='"),
            ("", ""),
        ] {
            assert_eq!(html_to_text(html), text, "{html}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(html in "[<>&;#a-zé'\"/ ]{0,60}") {
            html_to_text(&html);
        }
    }
}
