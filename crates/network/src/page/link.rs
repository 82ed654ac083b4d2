//! The `Link` header, as servers write it.

/// How much of a header is looked at.
const HEADER_BYTES_MAX: usize = 65_536;
const LINKS_MAX: usize = 64;

/// The address of a relation.
pub(super) fn related<'h>(header: &'h str, relation: &str) -> Option<&'h str> {
    let mut links = parse_links(header).into_iter();
    links.find(|link| link.is(relation)).map(|link| link.target)
}

/// One entry of a `Link` header.
struct Link<'h> {
    target: &'h str,
    parameters: &'h str,
}

impl Link<'_> {
    /// Whether its relation is this one (a link may have several).
    fn is(&self, relation: &str) -> bool {
        self.parameters.split(';').any(|parameter| {
            let Some((name, value)) = parameter.split_once('=') else {
                return false;
            };
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && value
                    .split_ascii_whitespace()
                    .any(|word| word.eq_ignore_ascii_case(relation))
        })
    }
}

/// The entries of a `Link` header. Garbage between them is passed over.
fn parse_links(header: &str) -> Vec<Link<'_>> {
    let mut end = header.len().min(HEADER_BYTES_MAX);
    while !header.is_char_boundary(end) {
        end -= 1;
    }
    let mut rest = &header[..end];
    let mut links = Vec::new();
    while links.len() < LINKS_MAX {
        let Some((_, after)) = rest.split_once('<') else {
            break;
        };
        let Some((target, after)) = after.split_once('>') else {
            break;
        };
        let length = parameters_length(after);
        links.push(Link {
            target: target.trim(),
            parameters: &after[..length],
        });
        rest = &after[length..];
    }
    links
}

/// Up to the comma that ends an entry; a comma in quotes does not.
fn parameters_length(text: &str) -> usize {
    let mut is_quoted = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return place,
            // A quote that never closes must not swallow the next entry.
            b'<' => return place,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn link_headers_are_read_in_all_their_spellings() {
        let header = "<https://a/x?max_id=1>; rel=\"next\", <https://a/x?min_id=2>; rel=\"prev\"";
        assert_eq!(related(header, "next"), Some("https://a/x?max_id=1"));
        assert_eq!(related(header, "prev"), Some("https://a/x?min_id=2"));
        assert_eq!(
            related("<u,v>;title=\"a, b\";REL=next", "next"),
            Some("u,v")
        );
        assert_eq!(related("< u >; rel=\"last next\"", "next"), Some("u"));
        assert_eq!(related("<u>; rel=\"next, <v>; rel=prev", "prev"), Some("v"));
        assert_eq!(related("garbage, <u", "next"), None);
        assert_eq!(related("<u>; rel", "next"), None);
        assert_eq!(related("", "next"), None);
    }

    #[test]
    fn a_header_of_ten_thousand_entries_is_cut_short() {
        let header = "<u>; rel=\"x\", ".repeat(10_000);
        assert_eq!(parse_links(&header).len(), LINKS_MAX);
    }

    proptest! {
        #[test]
        fn any_header_is_survived(header in "[<>;,=\"a é]{0,80}") {
            for link in parse_links(&header) {
                link.is("next");
            }
        }
    }
}
