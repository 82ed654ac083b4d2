//! Seeds: how users name where to begin.

use crate::network::{Network, is_host};
use crate::shape::AliasReference;
use kittiwake_model::value::is_id;
use kittiwake_model::{Alias, Identity, Name};

/// One way in which a seed can be written, for example `@{name}@{host}`.
#[derive(Debug)]
pub(crate) struct SeedRule {
    pub(crate) pattern: Vec<PatternPiece>,
    /// The pattern as it was written.
    pub(crate) text: String,
    pub(crate) kind: Name,
    /// Which alias the value is; without one it is the canonical id.
    pub(crate) alias: Option<AliasReference>,
    pub(crate) value: Vec<ValuePiece>,
}

/// The placeholder that is the crawl's host where a pattern has none.
pub(crate) const HOST: &str = "host";

/// A part of a seed's pattern.
#[derive(Debug)]
pub(crate) enum PatternPiece {
    Text(String),
    /// `{name}`: up to a character that separates.
    Word(String),
    /// `{words:any}`: all that is left.
    Rest(String),
}

/// A part of a seed's value.
#[derive(Debug)]
pub(crate) enum ValuePiece {
    Text(String),
    AsWritten(String),
    /// `{tag:lower}`
    LowerCase(String),
}

/// A part of a template.
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
        // `search:` without words is no user of that name.
        let prefix = self.seeds.iter().find_map(|rule| rule.prefix_of(text));
        for rule in &self.seeds {
            if prefix.is_some_and(|prefix| !rule.begins_with(prefix)) {
                continue;
            }
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
    /// The text that the rule's pattern begins with.
    fn literal(&self) -> Option<&str> {
        match self.pattern.first() {
            Some(PatternPiece::Text(literal)) => Some(literal),
            _ => None,
        }
    }

    /// The rule's own word and colon, as in `tag:…` and `list:top`, if a text begins with them.
    fn prefix_of(&self, text: &str) -> Option<&str> {
        let word = self.literal()?.split_inclusive(':').next()?;
        let is_prefix = word.ends_with(':') && strip_literal(text, word).is_some();
        is_prefix.then_some(word)
    }

    fn begins_with(&self, prefix: &str) -> bool {
        let literal = self.literal();
        literal.is_some_and(|literal| strip_literal(literal, prefix).is_some())
    }

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

/// The value for what a pattern found; `None` when it needs a host and there is none.
fn fill(value: &[ValuePiece], found: &[(&str, &str)], host: &str) -> Option<String> {
    let mut out = String::new();
    for piece in value {
        let (name, is_lower) = match piece {
            ValuePiece::Text(text) => {
                out.push_str(text);
                continue;
            }
            ValuePiece::AsWritten(name) => (name, false),
            ValuePiece::LowerCase(name) => (name, true),
        };
        let written = found.iter().find(|(known, _)| known == name);
        let written = match written {
            Some((_, written)) => written,
            None if name == HOST && !host.is_empty() => host,
            None => return None,
        };
        if is_lower {
            out.push_str(&written.to_lowercase());
        } else {
            out.push_str(written);
        }
    }
    Some(out)
}

/// What the placeholders of a pattern stand for in `text`, if the whole of it fits. A word takes at
/// least one character, and no `/`, `@`, `?`, `#` or space; that makes the match unique.
fn match_pattern<'p, 't>(
    pattern: &'p [PatternPiece],
    text: &'t str,
) -> Option<Vec<(&'p str, &'t str)>> {
    let mut found = Vec::new();
    let mut rest = text;
    for piece in pattern {
        match piece {
            PatternPiece::Text(literal) => rest = strip_literal(rest, literal)?,
            PatternPiece::Rest(name) => {
                let all = rest.trim();
                if all.is_empty() {
                    return None;
                }
                found.push((name.as_str(), all));
                rest = "";
            }
            PatternPiece::Word(name) => {
                let stops = |character: char| {
                    matches!(character, '/' | '@' | '?' | '#') || character.is_whitespace()
                };
                let end = rest.find(stops).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let is_fit = if name == HOST {
                    is_host(word)
                } else {
                    !word.is_empty()
                };
                if !is_fit {
                    return None;
                }
                found.push((name.as_str(), word));
                rest = after;
            }
        }
    }
    rest.is_empty().then_some(found)
}

/// What follows a pattern's own letters. `HTTPS://` is `https://`.
fn strip_literal<'t>(text: &'t str, literal: &str) -> Option<&'t str> {
    let head = text.get(..literal.len())?;
    head.eq_ignore_ascii_case(literal)
        .then(|| &text[literal.len()..])
}
