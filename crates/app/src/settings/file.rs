//! Reading one settings file: every mistake with its line and column, and what to write instead.

use super::table::{Kind, SETTINGS, Setting};
use super::value::Value;
use clap::CommandFactory;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Mistakes beyond this many are not listed.
const MISTAKES_MAX: usize = 50;
/// A key that is nearer than this (0 to 1) to a known one is taken for a slip.
const NEARNESS_MIN: f64 = 0.75;
/// Letters of a key or value that are repeated in a message.
const SHOWN_MAX: usize = 40;

/// What one file sets: by name, the value and its line.
pub(crate) type FileValues = BTreeMap<&'static str, (Value, usize)>;

/// Reads the text of a settings file, or lists what is wrong with it, one line for each mistake.
pub(crate) fn read(file: &str, text: &str) -> Result<FileValues, Vec<String>> {
    let mut reader = Reader {
        file,
        text,
        values: FileValues::new(),
        mistakes: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(table) => reader.table(table.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            // Only what the parser says of the form: the text itself may hold a secret.
            reader.mistake(&span, &format!("not TOML: {}", error.message()));
        }
    }
    if reader.mistakes.is_empty() {
        return Ok(reader.values);
    }
    reader.mistakes.sort();
    let lines = reader.mistakes.into_iter().map(|(_, line)| line).collect();
    Err(lines)
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    values: FileValues,
    /// By their place in the text.
    mistakes: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            if self.mistakes.len() >= MISTAKES_MAX {
                return;
            }
            let name = key.get_ref().as_ref();
            match Setting::find(name) {
                Some(setting) => self.value(setting, value),
                None => self.unknown(name, &key.span(), value),
            }
        }
    }

    fn value(&mut self, setting: &'static Setting, value: &Spanned<DeValue<'_>>) {
        if let Some(found) = Value::from_toml(setting.kind, value.get_ref()) {
            let line = place_of(self.text, value.span().start).0;
            self.values.insert(setting.name, (found, line));
            return;
        }
        let given = match setting.kind {
            // It may hold a password.
            Kind::Place => "what stands here".to_owned(),
            _ => given(value.get_ref()),
        };
        let (name, expected) = (setting.name, setting.kind.expected());
        let example = setting.example();
        self.mistake(
            &value.span(),
            &format!("`{name}` must be {expected}, not {given}; write for example `{example}`"),
        );
    }

    fn unknown(&mut self, name: &str, span: &Range<usize>, value: &Spanned<DeValue<'_>>) {
        if is_secret(name) {
            let shown = shown(name);
            self.mistake(
                span,
                &format!(
                    "`{shown}` looks like a secret, and settings files are read and copied by many; \
                     remove it here, and put a token into KITTIWAKE_<NETWORK>_TOKEN"
                ),
            );
            return;
        }
        let secrets_before = self.mistakes.len();
        self.secrets_inside(value.get_ref());
        if self.mistakes.len() > secrets_before {
            return;
        }
        let message = format!("unknown setting `{}`; {}", shown(name), advice(name));
        self.mistake(span, &message);
    }

    /// Finds secrets in tables that are not settings, so that the advice fits.
    fn secrets_inside(&mut self, value: &DeValue<'_>) {
        match value {
            DeValue::Table(table) => {
                for (key, value) in table {
                    if is_secret(key.get_ref()) {
                        self.unknown(key.get_ref(), &key.span(), value);
                    } else {
                        self.secrets_inside(value.get_ref());
                    }
                }
            }
            DeValue::Array(items) => {
                for item in items {
                    self.secrets_inside(item.get_ref());
                }
            }
            _ => {}
        }
    }

    fn mistake(&mut self, span: &Range<usize>, message: &str) {
        if self.mistakes.len() >= MISTAKES_MAX {
            return;
        }
        let (line, column) = place_of(self.text, span.start);
        let said = format!("{}:{line}:{column}: {message}", self.file);
        self.mistakes.push((span.start, said));
    }
}

/// What to write instead of a key that is no setting.
fn advice(name: &str) -> String {
    let plain = name.replace('-', "_").to_lowercase();
    let near = SETTINGS
        .iter()
        .map(|setting| (strsim::jaro_winkler(&plain, setting.name), setting.name))
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .filter(|(nearness, _)| *nearness >= NEARNESS_MIN);
    let is_argument = crate::cli::Arguments::command()
        .find_subcommand("crawl")
        .is_some_and(|crawl| {
            crawl
                .get_arguments()
                .any(|argument| argument.get_id() == plain.as_str())
        });
    if is_argument && Setting::find(&plain).is_none() {
        return "it belongs to one crawl and is given on its command line".to_owned();
    }
    if let Some((_, near)) = near {
        return format!("did you mean `{near}`?");
    }
    let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    format!("settings are {}", names.join(", "))
}

/// Whether a key is named like something that nobody else may know.
fn is_secret(key: &str) -> bool {
    const WORDS: [&str; 10] = [
        "token",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "privatekey",
        "bearer",
        "credential",
        "cookie",
    ];
    let letters: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    WORDS.iter().any(|word| letters.contains(word))
}

/// A value as a message repeats it.
fn given(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", shown(text)),
        DeValue::Integer(number) => shown(number.as_str()),
        DeValue::Float(number) => shown(number.as_str()),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "this list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    if text.chars().count() > SHOWN_MAX {
        shown.push('…');
    }
    shown
}

/// Line and column of a place, both from 1, columns in characters.
fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |place| place + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> String {
        read("kittiwake.toml", text).unwrap_err().join("\n")
    }

    #[test]
    fn what_is_set_is_read_with_its_line() {
        let values = read("f", "contact = \"me\"\nreserve = 0.25\nrobots = [\"a\"]").unwrap();
        assert_eq!(values["reserve"], (Value::Share(0.25), 2));
        assert_eq!(values["robots"], (Value::Words(vec!["a".into()]), 3));
        assert!(read("f", "").unwrap().is_empty());
    }

    #[test]
    fn every_mistake_has_its_place_and_says_what_to_write() {
        let said = mistakes("depht = 2\n  follow = \"folow\"\nconcurrency = 0\nraw = \"yes\"");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 4, "{said}");
        assert_eq!(
            lines[0],
            "kittiwake.toml:1:1: unknown setting `depht`; did you mean `depth`?"
        );
        assert!(
            lines[1].starts_with("kittiwake.toml:2:12: `follow` must be one of following, "),
            "{said}"
        );
        assert!(
            lines[2].contains("3:15: `concurrency` must be a whole number from 1 to 1024, not 0")
        );
        assert!(lines[3].ends_with("write for example `raw = true`"));
    }

    #[test]
    fn arguments_of_one_crawl_are_no_settings() {
        let said = mistakes("into = \"x.db\"\nlimits = \"off\"");
        assert_eq!(said.matches("belongs to one crawl").count(), 2, "{said}");
    }

    #[test]
    fn a_secret_is_refused_and_never_repeated() {
        for text in [
            "token = \"hunter2\"",
            "api-key = \"hunter2\"",
            "mastodon_Password = \"hunter2\"",
            "[mastodon]\naccess_token = \"hunter2\"",
            "[[hosts]]\nclient.secret = \"hunter2\"",
        ] {
            let said = mistakes(text);
            assert!(said.contains("KITTIWAKE_<NETWORK>_TOKEN"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        assert!(!mistakes("token = hunter2").contains("hunter2"));
        for url in ["postgres://me:hunter2@h/d", "postgres://me:hunter2@h:x/d"] {
            let said = mistakes(&format!("budgets = \"{url}\""));
            assert!(said.contains("PGPASSWORD"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        assert!(!mistakes("token = \"hunter2").contains("hunter2"));
    }

    #[test]
    fn a_file_full_of_mistakes_lists_some_of_them() {
        let lines: Vec<String> = (0..50_000).map(|place| format!("a{place} = 1")).collect();
        assert_eq!(mistakes(&lines.join("\n")).lines().count(), MISTAKES_MAX);
    }

    #[test]
    fn hostile_text_is_one_short_mistake() {
        let long = format!("{} = 1", "k".repeat(100_000));
        for text in [
            "\u{0}",
            "= 1",
            "a = ",
            long.as_str(),
            &"[a.".repeat(10_000),
            "\"\\u001b[31m\" = 1",
        ] {
            let said = mistakes(text);
            assert!(said.len() < 400, "{} letters", said.len());
            assert!(!said.chars().any(char::is_control), "{said:?}");
        }
    }
}
