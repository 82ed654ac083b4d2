//! The definition's text with the places of everything in it, and the problems found so far.

use crate::body::Literal;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Everything that is wrong with a definition, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionErrors {
    pub file: String,
    pub problems: Vec<Problem>,
}

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            if place > 0 {
                formatter.write_str("\n")?;
            }
            let Problem {
                line,
                column,
                message,
                help,
            } = problem;
            write!(formatter, "{}:{line}:{column}: {message}", self.file)?;
            if !help.is_empty() {
                write!(formatter, "; {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionErrors {}

/// Problems beyond this many are not listed.
const PROBLEMS_MAX: usize = 100;

pub(super) struct Source<'t> {
    text: &'t str,
    problems: RefCell<Vec<(usize, Problem)>>,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            problems: RefCell::default(),
        }
    }

    pub(super) fn report(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() >= PROBLEMS_MAX {
            return;
        }
        let (line, column) = place_of(self.text, span.start);
        let problem = Problem {
            line,
            column,
            message: message.into(),
            help: help.into(),
        };
        problems.push((span.start, problem));
    }

    pub(super) fn is_clean(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|(start, _)| *start);
        problems.dedup();
        problems.into_iter().map(|(_, problem)| problem).collect()
    }
}

fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |place| place + 1);
    (line, before[line_start..].chars().count() + 1)
}

/// A value with its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// One table of the definition.
#[derive(Clone)]
pub(super) struct Section<'s, 't> {
    pub(super) source: &'s Source<'t>,
    table: &'s DeTable<'t>,
    pub(super) span: Range<usize>,
    /// How messages call this table, for example `types.user`.
    pub(super) path: String,
}

impl<'s, 't> Section<'s, 't> {
    pub(super) fn root(source: &'s Source<'t>, table: &'s Spanned<DeTable<'t>>) -> Self {
        Self {
            source,
            table: table.get_ref(),
            span: 0..0,
            path: String::new(),
        }
    }

    fn child(&self, key: &str, table: &'s DeTable<'t>, span: Range<usize>) -> Self {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        Self {
            source: self.source,
            table,
            span,
            path,
        }
    }

    fn title(&self) -> String {
        if self.path.is_empty() {
            "the definition".to_owned()
        } else {
            format!("[{}]", self.path)
        }
    }

    pub(super) fn report(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.source.report(span, message, help);
    }

    /// Reports every key that is not known here.
    pub(super) fn expect_keys(&self, known: &[&str]) {
        for (key, _) in self.table {
            if known.contains(&key.get_ref().as_ref()) {
                continue;
            }
            let help = match closest(key.get_ref(), known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys are {}", known.join(", ")),
            };
            let message = format!("unknown key `{}` in {}", key.get_ref(), self.title());
            self.report(&key.span(), message, help);
        }
    }

    fn get(&self, key: &str) -> Option<&'s Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The place of a key's value, or of the table when the key is missing.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    fn wrong(&self, key: &str, value: &Spanned<DeValue<'t>>, expected: &str, example: &str) {
        let given = match value.get_ref() {
            DeValue::Integer(number) => format!("{number}"),
            other => kind_of(other).to_owned(),
        };
        let message = format!(
            "`{key}` in {} must be {expected}, not {given}",
            self.title()
        );
        self.report(
            &value.span(),
            message,
            format!("write for example `{example}`"),
        );
    }

    pub(super) fn missing(&self, key: &str, example: &str) {
        let message = format!("{} has no `{key}`", self.title());
        self.report(
            &self.span,
            message,
            format!("write for example `{example}`"),
        );
    }

    pub(super) fn text(&self, key: &str) -> Option<Placed<String>> {
        let value = self.get(key)?;
        if let DeValue::String(text) = value.get_ref() {
            return Some(Placed {
                value: text.clone().into_owned(),
                span: value.span(),
            });
        }
        self.wrong(key, value, "a text", &format!("{key} = \"…\""));
        None
    }

    pub(super) fn need_text(&self, key: &str, example: &str) -> Option<Placed<String>> {
        if !self.has(key) {
            self.missing(key, example);
        }
        self.text(key)
    }

    /// A text out of a list of allowed words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.unknown_word(&text, &format!("`{key}`"), &names);
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn unknown_word(&self, text: &Placed<String>, what: &str, known: &[&str]) {
        let near = closest(&text.value, known)
            .map(|near| format!("did you mean `{near}`? "))
            .unwrap_or_default();
        let help = if known.is_empty() {
            format!("there is none in {}", self.title())
        } else {
            format!("{near}it is one of {}", known.join(", "))
        };
        let message = format!("{what} cannot be `{}`", text.value);
        self.report(&text.span, message, help);
    }

    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        let read = value.get_ref().as_bool();
        if read.is_none() {
            self.wrong(key, value, "true or false", &format!("{key} = true"));
        }
        read
    }

    /// A whole number in a range.
    pub(super) fn number(&self, key: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let value = self.get(key)?;
        let read = integer_of(value.get_ref()).filter(|number| range.contains(number));
        if read.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong(key, value, &expected, &format!("{key} = {}", range.start()));
        }
        read
    }

    /// The same, for numbers of any size.
    pub(super) fn long_number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.get(key)?;
        let read = long_integer_of(value.get_ref()).filter(|number| range.contains(number));
        if read.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong(key, value, &expected, &format!("{key} = {}", range.start()));
        }
        read
    }

    pub(super) fn is_table(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| matches!(value.get_ref(), DeValue::Table(_)))
    }

    pub(super) fn is_list(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// A number, perhaps with a fraction, as it is written; or a text.
    pub(super) fn amount(&self, key: &str) -> Option<Placed<String>> {
        let value = self.get(key)?;
        let text = match value.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => {
                self.wrong(key, value, "an amount", &format!("{key} = \"0.005\""));
                return None;
            }
        };
        Some(Placed {
            value: text,
            span: value.span(),
        })
    }

    /// A list of texts; one text alone is a list of one.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<Placed<String>>> {
        let value = self.get(key)?;
        let example = format!("{key} = [\"…\"]");
        let items = match value.get_ref() {
            DeValue::String(_) => std::slice::from_ref(value),
            DeValue::Array(items) => items.as_slice_spanned(),
            _ => {
                self.wrong(key, value, "a list of texts", &example);
                return None;
            }
        };
        let mut texts = Vec::new();
        for item in items {
            if let DeValue::String(text) = item.get_ref() {
                texts.push(Placed {
                    value: text.clone().into_owned(),
                    span: item.span(),
                });
            } else {
                self.wrong(key, item, "a list of texts", &example);
            }
        }
        Some(texts)
    }

    /// A list of numbers or texts, each as text; one alone is a list of one.
    pub(super) fn numbers_or_texts(&self, key: &str) -> Option<Vec<Placed<String>>> {
        let value = self.get(key)?;
        let items = match value.get_ref() {
            DeValue::Array(items) => items.as_slice_spanned(),
            _ => std::slice::from_ref(value),
        };
        let mut texts = Vec::new();
        for item in items {
            let text = match item.get_ref() {
                DeValue::String(text) => text.clone().into_owned(),
                DeValue::Integer(number) => number.as_str().to_owned(),
                _ => {
                    self.wrong(key, item, "a number or a text", &format!("{key} = [404]"));
                    continue;
                }
            };
            texts.push(Placed {
                value: text,
                span: item.span(),
            });
        }
        Some(texts)
    }

    /// A value of JSON: a text, a whole number, true or false, and lists and tables of them. The
    /// texts in it are added to `texts`.
    pub(super) fn literal(&self, key: &str, texts: &mut Vec<Placed<String>>) -> Option<Literal> {
        let value = self.get(key)?;
        let literal = literal_of(value, texts);
        if literal.is_none() {
            let expected = "a text, a whole number, true or false, or a list or a table of them";
            self.wrong(key, value, expected, &format!("{key} = \"…\""));
        }
        literal
    }

    /// What stands at a key, whatever the spaces and the order in which it is written.
    pub(super) fn written(&self, key: &str) -> String {
        let literal = self
            .get(key)
            .map(|value| literal_of(value, &mut Vec::new()));
        format!("{literal:?}")
    }

    pub(super) fn table(&self, key: &str) -> Option<Self> {
        let value = self.get(key)?;
        if let DeValue::Table(table) = value.get_ref() {
            return Some(self.child(key, table, value.span()));
        }
        self.wrong(key, value, "a table", &format!("{key} = {{ … }}"));
        None
    }

    /// The tables of an array of tables.
    pub(super) fn tables(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(key, value, "a list of tables", &format!("[[{key}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.as_slice_spanned() {
            if let DeValue::Table(table) = item.get_ref() {
                tables.push(self.child(key, table, item.span()));
            } else {
                self.wrong(key, item, "a list of tables", &format!("[[{key}]]"));
            }
        }
        tables
    }

    /// Every entry in the order of the text.
    pub(super) fn entries(&self) -> Vec<Entry<'s, 't>> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, value)| {
                let name = key.get_ref().clone().into_owned();
                let section = match value.get_ref() {
                    DeValue::Table(table) => Some(self.child(&name, table, key.span())),
                    _ => None,
                };
                let text = match value.get_ref() {
                    DeValue::String(text) => Some(Placed {
                        value: text.clone().into_owned(),
                        span: value.span(),
                    }),
                    _ => None,
                };
                Entry {
                    name,
                    span: key.span(),
                    section,
                    text,
                }
            })
            .collect();
        entries.sort_by_key(|entry| entry.span.start);
        entries
    }

    /// Every key in the order of the text.
    pub(super) fn keys(&self) -> Vec<Placed<String>> {
        let entries = self.entries().into_iter();
        let keys = entries.map(|entry| Placed {
            value: entry.name,
            span: entry.span,
        });
        keys.collect()
    }

    /// The entries that are tables; others are reported.
    pub(super) fn sections(&self) -> Vec<(Placed<String>, Self)> {
        let mut sections = Vec::new();
        for entry in self.entries() {
            let name = Placed {
                value: entry.name,
                span: entry.span,
            };
            if let Some(section) = entry.section {
                sections.push((name, section));
            } else {
                let message = format!("`{}` in {} must be a table", name.value, self.title());
                let help = format!("write `[{}.{}]`", self.path, name.value);
                self.report(&name.span, message, help);
            }
        }
        sections
    }
}

/// One key of a table with what stands there.
pub(super) struct Entry<'s, 't> {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) section: Option<Section<'s, 't>>,
    pub(super) text: Option<Placed<String>>,
}

trait SpannedSlice<'t> {
    fn as_slice_spanned(&self) -> &[Spanned<DeValue<'t>>];
}

impl<'t> SpannedSlice<'t> for toml::de::DeArray<'t> {
    fn as_slice_spanned(&self) -> &[Spanned<DeValue<'t>>] {
        self
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn literal_of(value: &Spanned<DeValue<'_>>, texts: &mut Vec<Placed<String>>) -> Option<Literal> {
    Some(match value.get_ref() {
        DeValue::String(text) => {
            texts.push(Placed {
                value: text.clone().into_owned(),
                span: value.span(),
            });
            Literal::Text(text.clone().into_owned())
        }
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Literal::Plain(number.to_string())
        }
        DeValue::Boolean(sign) => Literal::Plain(sign.to_string()),
        DeValue::Array(items) => {
            let items = items.as_slice_spanned().iter();
            Literal::List(
                items
                    .map(|item| literal_of(item, texts))
                    .collect::<Option<_>>()?,
            )
        }
        DeValue::Table(entries) => {
            let mut table = Vec::new();
            for (name, value) in entries {
                let name = name.get_ref().clone().into_owned();
                table.push((name, literal_of(value, texts)?));
            }
            Literal::Table(table)
        }
        DeValue::Float(_) | DeValue::Datetime(_) => return None,
    })
}

fn integer_of(value: &DeValue<'_>) -> Option<u32> {
    u32::try_from(long_integer_of(value)?).ok()
}

fn long_integer_of(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The known word that is nearest to `word`, if any is near.
pub(super) fn closest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    const WORD_MAX: usize = 40;
    const PREFIX_MIN: usize = 3;
    if word.len() > WORD_MAX {
        return None;
    }
    let longer = known.iter().find(|candidate| candidate.starts_with(word));
    if let Some(longer) = longer.filter(|_| word.len() >= PREFIX_MIN) {
        return Some(longer);
    }
    let near = known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .min()?;
    (near.0 <= 1 + word.len() / 4).then_some(near.1)
}

/// How many letters have to be changed, added or left out.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in right.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        assert_eq!(place_of("a\nbé = 1", 6), (2, 4));
        assert_eq!(place_of("", 9), (1, 1));
    }

    #[test]
    fn the_closest_word_is_suggested_only_when_it_is_close() {
        assert_eq!(closest("tabel", &["table", "path"]), Some("table"));
        assert_eq!(closest("canonicl", &["canonical"]), Some("canonical"));
        assert_eq!(closest("zebra", &["table", "path"]), None);
    }
}
