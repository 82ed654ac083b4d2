//! Seeds: how users name where to begin.

use crate::network::{Network, is_host};
use crate::shape::AliasReference;
use kittiwake_model::value::is_id;
use kittiwake_model::{Alias, Identity, Name};

/// One way in which a seed can be written, for example `@{name}@{host}`.
#[derive(Debug)]
pub(crate) struct SeedRule {
    pub(crate) pattern: Vec<Piece>,
    /// The pattern as it was written.
    pub(crate) text: String,
    pub(crate) kind: Name,
    /// Which alias the value is; without one it is the canonical id.
    pub(crate) alias: Option<AliasReference>,
    pub(crate) value: Vec<Piece>,
}

/// A part of a pattern or of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Placeholder(String),
}

/// Why a text is no seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("{seed:?} is no seed of {network}; write one like {patterns}")]
    Unknown {
        seed: String,
        network: Name,
        patterns: String,
    },
    #[error("{seed:?} needs a host: write one like {patterns}")]
    NeedsHost { seed: String, patterns: String },
}

/// Splits `@{name}@{host}` into its parts; `None` when a bracket is left open.
pub(crate) fn parse_template(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(place);
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let (name, after) = after.strip_prefix('{')?.split_once('}')?;
        if name.is_empty() || name.contains('{') {
            return None;
        }
        pieces.push(Piece::Placeholder(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Some(pieces)
}

impl Network {
    /// Reads what a user wrote as the name of an object to begin with.
    pub fn seed(&self, text: &str, host: &str) -> Result<Identity, SeedError> {
        let text = text.trim();
        for rule in &self.seeds {
            let Some(found) = match_pattern(&rule.pattern, text) else {
                continue;
            };
            let Some(id) = fill(&rule.value, &found, host) else {
                return Err(SeedError::NeedsHost {
                    seed: shorten(text),
                    patterns: self.patterns(),
                });
            };
            if !is_id(&id) {
                break;
            }
            return Ok(rule.identity(self.name.clone(), id, host));
        }
        Err(SeedError::Unknown {
            seed: shorten(text),
            network: self.name.clone(),
            patterns: self.patterns(),
        })
    }

    fn patterns(&self) -> String {
        let patterns: Vec<&str> = self.seeds.iter().map(|rule| rule.text.as_str()).collect();
        patterns.join(", ")
    }
}

impl SeedRule {
    fn identity(&self, network: Name, id: String, host: &str) -> Identity {
        let mut identity = Identity {
            network,
            kind: self.kind.clone(),
            canonical: None,
            aliases: Vec::new(),
        };
        match &self.alias {
            None => identity.canonical = Some(id),
            Some(alias) => identity.aliases.push(Alias {
                name: alias.name.clone(),
                id,
                host: if alias.is_host_scoped {
                    host.to_owned()
                } else {
                    String::new()
                },
                movable: alias.is_movable,
            }),
        }
        identity
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

fn fill(pieces: &[Piece], found: &[(&str, &str)], host: &str) -> Option<String> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Placeholder(name) => {
                let (wanted, is_folded) = match name.strip_suffix(":lower") {
                    Some(wanted) => (wanted, true),
                    None => (name.as_str(), false),
                };
                let value = found.iter().find(|(known, _)| *known == wanted);
                match value {
                    Some((_, value)) if is_folded => out.push_str(&value.to_lowercase()),
                    Some((_, value)) => out.push_str(value),
                    None if wanted == "host" && !host.is_empty() => out.push_str(host),
                    None => return None,
                }
            }
        }
    }
    Some(out)
}

/// What the placeholders of a pattern stand for in `text`, if the whole of it fits. A placeholder
/// takes at least one character, and no `/`, `@`, `?`, `#` or space; that makes the match unique.
/// One that ends in `:any` takes all that is left, whatever it is.
fn match_pattern<'p, 't>(pattern: &'p [Piece], text: &'t str) -> Option<Vec<(&'p str, &'t str)>> {
    let mut found = Vec::new();
    let mut rest = text;
    for piece in pattern {
        match piece {
            Piece::Text(literal) => {
                let head = rest.get(..literal.len())?;
                // `HTTPS://` is `https://`, and a pattern's own letters are few.
                if !head.eq_ignore_ascii_case(literal) {
                    return None;
                }
                rest = &rest[literal.len()..];
            }
            Piece::Placeholder(name) if name.ends_with(":any") => {
                let name = name.trim_end_matches(":any");
                if rest.trim().is_empty() {
                    return None;
                }
                found.push((name, rest.trim()));
                rest = "";
            }
            Piece::Placeholder(name) => {
                let stops = |character: char| {
                    matches!(character, '/' | '@' | '?' | '#') || character.is_whitespace()
                };
                let end = rest.find(stops).unwrap_or(rest.len());
                let (value, after) = rest.split_at(end);
                let is_fit = if name == "host" {
                    is_host(value)
                } else {
                    !value.is_empty()
                };
                if !is_fit {
                    return None;
                }
                found.push((name.as_str(), value));
                rest = after;
            }
        }
    }
    rest.is_empty().then_some(found)
}
