//! Values of settings, read from text or from TOML.

use super::table::Kind;
use crate::duration;
use kittiwake_store::Location;
use serde_json::json;
use std::ffi::OsString;
use std::fmt;
use toml::de::DeValue;

/// The most letters of a line or a word, and words of a list: what is longer is a mistake.
const LETTERS_MAX: usize = 500;
const WORDS_MAX: usize = 100;

/// A value that was found to be of its setting's kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(u32),
    Share(f64),
    Words(Vec<String>),
    Switch(bool),
    Place(Location),
}

impl Value {
    /// Reads a value as it stands in the environment.
    pub(crate) fn from_text(kind: Kind, text: &str) -> Option<Self> {
        let text = text.trim();
        match kind {
            Kind::Line => is_line(text).then(|| Self::Text(text.to_owned())),
            Kind::Number { min, max } => number(text.parse().ok()?, min, max),
            Kind::Share => duration::parse_share(text).ok().map(Self::Share),
            Kind::Choice(words) => words.contains(&text).then(|| Self::Text(text.to_owned())),
            Kind::Words => words(text.split(',').map(str::trim)),
            Kind::Switch => switch(text).map(Self::Switch),
            Kind::Place => place(text),
        }
    }

    /// Reads a value of a settings file.
    pub(crate) fn from_toml(kind: Kind, value: &DeValue<'_>) -> Option<Self> {
        match (kind, value) {
            (Kind::Line | Kind::Choice(_) | Kind::Share, DeValue::String(text)) => {
                Self::from_text(kind, text)
            }
            // Settings files are read and copied by many.
            (Kind::Place, DeValue::String(text)) => Self::from_text(kind, text)
                .filter(|value| !matches!(value, Self::Place(place) if place.has_password())),
            (Kind::Number { min, max }, DeValue::Integer(integer)) => number(
                i64::from_str_radix(integer.as_str(), integer.radix()).ok()?,
                min,
                max,
            ),
            (Kind::Share, DeValue::Float(share)) => Self::from_text(kind, share.as_str()),
            (Kind::Share, DeValue::Integer(share)) => Self::from_text(kind, share.as_str()),
            (Kind::Words, DeValue::Array(items)) => {
                let texts: Option<Vec<&str>> =
                    items.iter().map(|item| item.get_ref().as_str()).collect();
                let texts = texts?;
                if texts.is_empty() {
                    return Some(Self::Words(Vec::new()));
                }
                words(texts.into_iter())
            }
            (Kind::Switch, DeValue::Boolean(on)) => Some(Self::Switch(*on)),
            _ => None,
        }
    }

    /// The value as the words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Number(number) => vec![number.to_string()],
            Self::Share(share) => vec![share.to_string()],
            Self::Words(words) => words.clone(),
            Self::Switch(on) => vec![on.to_string()],
            Self::Place(Location::File(path)) => vec![path.display().to_string()],
            Self::Place(Location::Server(url)) => vec![url.clone()],
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
            Self::Share(share) => json!(share),
            Self::Words(words) => json!(words),
            Self::Switch(on) => json!(on),
            Self::Place(place) => json!(place.to_string()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Number(number) => write!(formatter, "{number}"),
            // A share has few digits; the rest is how machines keep it.
            Self::Share(share) => write!(formatter, "{}%", (share * 1e8).round() / 1e6),
            Self::Words(words) => formatter.write_str(&words.join(",")),
            Self::Switch(on) => write!(formatter, "{on}"),
            Self::Place(place) => write!(formatter, "{place}"),
        }
    }
}

/// Whether the text can be sent in a header.
pub(crate) fn is_line(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LETTERS_MAX
        && text.chars().all(|letter| (' '..='~').contains(&letter))
}

fn number(number: i64, min: u32, max: u32) -> Option<Value> {
    let number = u32::try_from(number).ok()?;
    (min..=max)
        .contains(&number)
        .then_some(Value::Number(number))
}

fn words<'w>(words: impl Iterator<Item = &'w str>) -> Option<Value> {
    let words: Vec<String> = words.map(str::to_owned).collect();
    let is_word = |word: &String| is_line(word) && !word.contains([',', ' ']);
    (words.len() <= WORDS_MAX && words.iter().all(is_word)).then_some(Value::Words(words))
}

fn place(text: &str) -> Option<Value> {
    let is_place = !text.is_empty() && text.len() <= LETTERS_MAX;
    is_place.then(|| Value::Place(Location::from(OsString::from(text))))
}

/// Switches in the environment are written in many ways.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_wrong_kind_are_refused() {
        for (kind, right, wrong) in [
            (Kind::Line, "me@example.org", "mé"),
            (Kind::Line, "x", "a\nb"),
            (Kind::Number { min: 1, max: 9 }, "9", "10"),
            (Kind::Number { min: 1, max: 9 }, "1", "-1"),
            (Kind::Share, "12.5%", "100%"),
            (Kind::Choice(&["both"]), "both", "Both"),
            (Kind::Words, "a,b", "a,,b"),
            (Kind::Switch, "On", "maybe"),
        ] {
            assert!(Value::from_text(kind, right).is_some(), "{right}");
            assert_eq!(Value::from_text(kind, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_place_is_shown_without_its_password_and_used_with_it() {
        let url = "postgres://me:hunter2@h/d";
        let value = Value::from_text(Kind::Place, url).unwrap();
        assert_eq!(value.to_string(), "postgres://me@h/d");
        assert_eq!(value.to_json(), "postgres://me@h/d");
        assert!(!format!("{value:?}").contains("hunter2"));
        assert_eq!(value.words(), [url]);
    }

    #[test]
    fn a_share_is_shown_as_people_write_it() {
        assert_eq!(Value::Share(0.07).to_string(), "7%");
        assert_eq!(Value::Share(0.125).to_string(), "12.5%");
    }
}
