//! How an export names an object: one text that says which id it is.
//!
//! A canonical id stands as it is. An object that has none is named by its best alias,
//! `alias:NAME:HOST:ID`, or `movable:NAME:HOST:ID` if it may belong to somebody else later. A
//! canonical id that begins with one of these words gets `canonical:` before it.

use kittiwake_model::value::is_id;
use kittiwake_model::{Alias, Identity, Name};

const CANONICAL: &str = "canonical:";
const ALIAS: &str = "alias:";
const MOVABLE: &str = "movable:";

/// An object as a row names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub network: Name,
    pub kind: Name,
    pub id: String,
}

/// The text for an id. A canonical one has an alias without a name.
pub(crate) fn to_text(alias: &str, host: &str, id: &str, movable: bool) -> String {
    if alias.is_empty() {
        let needs_word = [CANONICAL, ALIAS, MOVABLE]
            .iter()
            .any(|word| id.starts_with(word));
        return format!("{}{id}", if needs_word { CANONICAL } else { "" });
    }
    let word = if movable { MOVABLE } else { ALIAS };
    format!("{word}{}:{}:{id}", escape(alias), escape(host))
}

/// The identity that a text stands for, with that one id in it.
pub(crate) fn parse(network: &str, kind: &str, text: &str) -> Result<Identity, String> {
    let mut identity = Identity {
        network: word(network)?,
        kind: word(kind)?,
        canonical: None,
        aliases: Vec::new(),
    };
    let (alias, movable) = match (text.strip_prefix(ALIAS), text.strip_prefix(MOVABLE)) {
        (Some(rest), _) => (Some(rest), false),
        (None, Some(rest)) => (Some(rest), true),
        (None, None) => (None, false),
    };
    let Some(rest) = alias else {
        let id = text.strip_prefix(CANONICAL).unwrap_or(text);
        identity.canonical = Some(checked(id)?);
        return Ok(identity);
    };
    let mut parts = rest.splitn(3, ':');
    let (Some(name), Some(host), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("{} is no id: NAME:HOST:ID is missing", shown(text)));
    };
    identity.aliases.push(Alias {
        name: word(&unescape(name))?,
        id: checked(id)?,
        host: host_of(&unescape(host))?,
        movable,
    });
    Ok(identity)
}

/// The only id of an identity that was read from a row.
pub(crate) fn only_alias(identity: &Identity) -> Option<Alias> {
    match &identity.canonical {
        Some(id) => Some(Alias {
            name: "".into(),
            id: id.clone(),
            host: String::new(),
            movable: false,
        }),
        None => identity.aliases.first().cloned(),
    }
}

/// An id as it may be stored.
pub(crate) fn checked(id: &str) -> Result<String, String> {
    if is_id(id) {
        Ok(id.to_owned())
    } else {
        Err(format!("{} cannot be an id", shown(id)))
    }
}

/// A host, or nothing where an id is valid everywhere.
pub(crate) fn host_of(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Ok(String::new());
    }
    checked(host)
}

/// A word of a definition.
pub(crate) fn word(text: &str) -> Result<Name, String> {
    checked(text).map(Name::from)
}

/// A value in a message: short, and nothing in it that could spoil a terminal.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut short: String = text.chars().take(CHARACTERS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace(':', "%3A")
}

fn unescape(text: &str) -> String {
    text.replace("%3A", ":").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_ids_stand_as_they_are() {
        for id in ["https://a.example/users/x", "did:plc:123", "109", "=1+1"] {
            assert_eq!(to_text("", "", id, false), id);
        }
        assert_eq!(to_text("", "", "alias:x", false), "canonical:alias:x");
        assert_eq!(
            to_text("id", "127.0.0.1:80", "a:b", false),
            "alias:id:127.0.0.1%3A80:a:b"
        );
        assert_eq!(
            to_text("handle", "", "o'hara@b", true),
            "movable:handle::o'hara@b"
        );
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "a\u{0}b",
            "a\nb",
            "alias:",
            "alias:id",
            "alias:id:host",
            "alias::host:x",
            "movable:a:b:",
            "canonical:",
        ] {
            assert!(parse("net", "user", text).is_err(), "{text:?}");
        }
        assert!(parse("", "user", "x").is_err());
        assert!(parse("net", "us\ner", "x").is_err());
    }

    proptest! {
        #[test]
        fn every_id_reads_back_as_itself(
            name in "|id|a:b|%3A|[a-z%:]{1,6}",
            host in "|h\\.example|[::1]:80|[a-z%:.]{1,8}",
            id in "(canonical:|alias:|movable:|)[\\PC&&[^\\pC]]{1,10}",
            movable in any::<bool>(),
        ) {
            let canonical = name.is_empty();
            let host = if canonical { String::new() } else { host };
            let movable = movable && !canonical;
            let identity = parse("net", "user", &to_text(&name, &host, &id, movable)).unwrap();
            prop_assert_eq!(
                only_alias(&identity),
                Some(Alias { name: name.into(), id, host, movable })
            );
        }
    }
}
