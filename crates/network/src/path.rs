//! Plain paths: `.a.b`, `.a // .b.c`, `.list[]`, `.map{}`.
//!
//! A plain path is read straight from the answer's bytes. Whatever is more than a plain path is
//! an expression.

/// A way into a document by the keys of nested objects; the empty path is the document itself.
pub(crate) type Keys = Vec<String>;

/// The key under which an item of a map stands, where a plain path may be.
const KEY_WORD: &str = "$key";

/// One plain path, perhaps to every item of a list or of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) keys: Keys,
    /// Whether it ends in `[]` or `{}`: every item of what stands there.
    pub(crate) each: bool,
    /// Whether it ends in `{}`: the items are the values of a map.
    pub(crate) is_map: bool,
}

impl Path {
    pub(crate) fn to_value(keys: Keys) -> Self {
        Self {
            keys,
            each: false,
            is_map: false,
        }
    }
}

/// Plain paths with `//` between them, and perhaps `$key` at the end: every item of a map has a
/// key, so that nothing can follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) paths: Vec<Path>,
    pub(crate) ends_in_key: bool,
}

/// Reads `.a.b // .c // $key`; `None` when the text is more than that.
pub(crate) fn parse_chain(text: &str) -> Option<Chain> {
    let text = text.trim();
    let Some(before) = text.strip_suffix(KEY_WORD) else {
        let paths = parse_alternatives(text)?;
        return Some(Chain {
            paths,
            ends_in_key: false,
        });
    };
    let before = before.trim_end();
    let paths = if before.is_empty() {
        Vec::new()
    } else {
        parse_alternatives(before.strip_suffix("//")?)?
    };
    Some(Chain {
        paths,
        ends_in_key: true,
    })
}

/// Reads `.a.b // .c`; `None` when the text is more than plain paths.
pub(crate) fn parse_alternatives(text: &str) -> Option<Vec<Path>> {
    text.split("//")
        .map(|part| parse_path(part.trim()))
        .collect()
}

/// Reads one plain path; `None` when the text is something else.
pub(crate) fn parse_path(text: &str) -> Option<Path> {
    let mut rest = text.strip_prefix('.')?;
    let mut keys = Keys::new();
    if let Some(key) = take_word(&mut rest) {
        keys.push(key);
    }
    while !matches!(rest, "" | "[]" | "{}") {
        if let Some(after) = rest.strip_prefix("[\"") {
            let (key, after) = after.split_once("\"]")?;
            if key.contains('\\') {
                return None;
            }
            keys.push(key.to_owned());
            rest = after;
        } else {
            rest = rest.strip_prefix('.')?;
            keys.push(take_word(&mut rest)?);
        }
    }
    Some(Path {
        keys,
        each: !rest.is_empty(),
        is_map: rest == "{}",
    })
}

fn take_word(rest: &mut &str) -> Option<String> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let end = rest
        .find(|character| !is_word(character))
        .unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    if word.is_empty() || word.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    *rest = after;
    Some(word.to_owned())
}

/// The path as a definition writes it.
pub(crate) fn render(keys: &[String]) -> String {
    if keys.is_empty() {
        return ".".to_owned();
    }
    keys.iter().fold(String::new(), |mut text, key| {
        let mut word = key.as_str();
        if take_word(&mut word).is_some() && word.is_empty() {
            text.push('.');
            text.push_str(key);
        } else {
            text.push_str(if text.is_empty() { ".[\"" } else { "[\"" });
            text.push_str(key);
            text.push_str("\"]");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<(Vec<String>, bool)> {
        parse_path(text).map(|path| (path.keys, path.each))
    }

    #[test]
    fn plain_paths_are_recognised() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(path("."), Some((keys(&[]), false)));
        assert_eq!(path(".[]"), Some((keys(&[]), true)));
        assert_eq!(path(".a.b_2"), Some((keys(&["a", "b_2"]), false)));
        assert_eq!(path(".a[]"), Some((keys(&["a"]), true)));
        assert_eq!(path(".[\"x y\"].b"), Some((keys(&["x y", "b"]), false)));
        assert_eq!(
            parse_alternatives(".a // .b.c").map(|all| all.len()),
            Some(2)
        );
    }

    #[test]
    fn a_map_and_its_keys_are_recognised() {
        let map = parse_path(".a.b{}").unwrap();
        assert_eq!((map.keys.len(), map.each, map.is_map), (2, true, true));
        assert!(parse_path(".{}").unwrap().is_map);
        assert!(!parse_path(".[]").unwrap().is_map);
        for (text, count, ends_in_key) in [
            ("$key", 0, true),
            (".id // $key", 1, true),
            (" .a.b//.c//$key ", 2, true),
            (".id", 1, false),
            (".id // .key", 2, false),
        ] {
            let chain = parse_chain(text).unwrap();
            assert_eq!((chain.paths.len(), chain.ends_in_key), (count, ends_in_key));
        }
        for text in [".id $key", ".$key", "$key // .id", "//$key", "$keys"] {
            assert_eq!(parse_chain(text), None, "{text}");
        }
    }

    #[test]
    fn everything_else_is_left_to_expressions() {
        for text in [
            "", "a", "..", ".a.", ".[0]", ".a | .b", ".a[].b", ".1", ".a // 3", ".a+.b", ".a{}.b",
            ".a{}[]", ".{", "$key",
        ] {
            assert_eq!(parse_alternatives(text), None, "{text}");
        }
    }

    #[test]
    fn a_rendered_path_reads_back() {
        for text in [".", ".a.b", ".[\"x y\"].b", ".a[\"x-y\"]"] {
            let keys = parse_path(text).unwrap().keys;
            assert_eq!(render(&keys), text);
        }
    }
}
