//! Paging: where the next page is, as durable text that names no host.

use crate::network::Query;
use url::{Url, form_urlencoded};

/// Which page of a list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page<'a> {
    First,
    /// The first page of an incremental walk: what is newer than this mark.
    Since(&'a str),
    /// A token that an earlier reading returned.
    Next(&'a str),
}

/// The longest token that is kept.
pub(crate) const TOKEN_BYTES_MAX: usize = 2_048;
/// How much of a `Link` header is looked at.
const HEADER_BYTES_MAX: usize = 65_536;
const LINKS_MAX: usize = 64;

pub(crate) const ON_ANOTHER_HOST: &str = "next page on another host";
const ON_ANOTHER_PATH: &str = "next page on another path";
const THE_SAME: &str = "next page is the same page";
const UNREADABLE: &str = "next page cannot be read";

/// The parameters of a token; `None` when it is none of ours.
pub(crate) fn token_parameters(token: &str) -> Option<Vec<(String, String)>> {
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || !token.is_ascii() {
        return None;
    }
    let parameters: Vec<(String, String)> = form_urlencoded::parse(token.as_bytes())
        .into_owned()
        .collect();
    let is_sound = parameters.iter().all(|(name, _)| !name.is_empty());
    (is_sound && !parameters.is_empty()).then_some(parameters)
}

/// Whether a page goes towards newer items.
pub(crate) fn is_forward(query: &Query, page: Page<'_>) -> bool {
    let Some(since) = &query.since else {
        return false;
    };
    match page {
        Page::First => false,
        Page::Since(_) => true,
        Page::Next(token) => token_parameters(token)
            .is_some_and(|pairs| pairs.iter().any(|(name, _)| *name == since.parameter)),
    }
}

/// The token of the page after this one; an error says why there is one that cannot be used.
pub(crate) fn next_token(
    query: &Query,
    page: Page<'_>,
    base: &Url,
    asked: &Url,
    header: &str,
) -> Result<Option<String>, &'static str> {
    let relation = if is_forward(query, page) {
        "prev"
    } else {
        "next"
    };
    let links = parse_links(header);
    let Some(link) = links.iter().find(|link| link.is(relation)) else {
        return Ok(None);
    };
    let target = asked.join(link.target).map_err(|_| UNREADABLE)?;
    if !is_same_place(&target, base) {
        return Err(ON_ANOTHER_HOST);
    }
    if target.path() != asked.path() {
        return Err(ON_ANOTHER_PATH);
    }
    let token = differing_parameters(query, page, asked, &target);
    if token.is_empty() {
        return Err(THE_SAME);
    }
    if token.len() > TOKEN_BYTES_MAX {
        return Err(UNREADABLE);
    }
    Ok(Some(token))
}

/// Same host and port. A server behind a proxy may write `http` for `https`; since the address
/// itself is never followed, that does no harm.
fn is_same_place(target: &Url, base: &Url) -> bool {
    let is_web = matches!(target.scheme(), "http" | "https");
    let has_default_ports = target.port().is_none() && base.port().is_none();
    is_web
        && target.host_str() == base.host_str()
        && (has_default_ports || target.port_or_known_default() == base.port_or_known_default())
}

/// The parameters of `target` that the first page does not have.
fn differing_parameters(query: &Query, page: Page<'_>, asked: &Url, target: &Url) -> String {
    let own: Vec<(String, String)> = match page {
        Page::First => Vec::new(),
        Page::Since(mark) => query
            .since
            .iter()
            .map(|since| (since.parameter.clone(), mark.to_owned()))
            .collect(),
        Page::Next(token) => token_parameters(token).unwrap_or_default(),
    };
    let first: Vec<_> = asked
        .query_pairs()
        .filter(|(name, _)| !own.iter().any(|(known, _)| known == name))
        .collect();
    let mut token = form_urlencoded::Serializer::new(String::new());
    for (name, value) in target.query_pairs() {
        let is_first = first
            .iter()
            .any(|(known, same)| *known == name && *same == value);
        // Servers repeat the key that they were asked with; a cursor is stored and logged.
        let is_secret = query.secret_parameters.iter().any(|key| *key == name);
        if !is_first && !is_secret && !name.is_empty() {
            token.append_pair(&name, &value);
        }
    }
    token.finish()
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

    fn relation<'h>(header: &'h str, relation: &str) -> Option<&'h str> {
        parse_links(header)
            .into_iter()
            .find(|link| link.is(relation))
            .map(|link| link.target)
    }

    #[test]
    fn link_headers_are_read_in_all_their_spellings() {
        let header = "<https://a/x?max_id=1>; rel=\"next\", <https://a/x?min_id=2>; rel=\"prev\"";
        assert_eq!(relation(header, "next"), Some("https://a/x?max_id=1"));
        assert_eq!(relation(header, "prev"), Some("https://a/x?min_id=2"));
        assert_eq!(
            relation("<u,v>;title=\"a, b\";REL=next", "next"),
            Some("u,v")
        );
        assert_eq!(relation("< u >; rel=\"last next\"", "next"), Some("u"));
        assert_eq!(
            relation("<u>; rel=\"next, <v>; rel=prev", "prev"),
            Some("v")
        );
        assert_eq!(relation("garbage, <u", "next"), None);
        assert_eq!(relation("<u>; rel", "next"), None);
        assert_eq!(relation("", "next"), None);
    }

    #[test]
    fn a_header_of_ten_thousand_entries_is_cut_short() {
        let header = "<u>; rel=\"x\", ".repeat(10_000);
        assert_eq!(parse_links(&header).len(), LINKS_MAX);
    }

    #[test]
    fn tokens_read_back() {
        assert_eq!(
            token_parameters("max_id=1&a%5B%5D=%F0%9F%90%A6"),
            Some(vec![
                ("max_id".into(), "1".into()),
                ("a[]".into(), "🐦".into())
            ])
        );
        assert_eq!(token_parameters(""), None);
        assert_eq!(token_parameters("=x"), None);
        assert_eq!(token_parameters(&"a".repeat(5_000)), None);
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
