//! Settings: flag over environment over project file over user file over default.
//!
//! A setting is an argument of a command. What files and environment say becomes the argument's
//! default, so that a flag wins by itself and each value is read and checked as a flag would be.

mod file;
mod table;
mod value;

pub(crate) use table::{COMMANDS, Default, Kind, SETTINGS, Setting};
pub(crate) use value::{Value, is_line};

use crate::environment::{self, Layer};
use crate::failure::Failure;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};
use file::FileValues;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Environment { variable: String },
    File { path: PathBuf, line: usize },
    Default,
}

/// A setting as it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    pub setting: &'static Setting,
    /// `None` when nobody has set it and there is no single default.
    pub value: Option<Value>,
    pub source: Source,
}

/// All settings as they stand, in the table's order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub standing: Vec<Standing>,
}

impl Settings {
    /// Reads environment and files. Every mistake in them is told.
    pub(crate) fn load() -> Result<Self, Failure> {
        let mut mistakes = Vec::new();
        let mut layers: Vec<(PathBuf, FileValues)> = Vec::new();
        for layer in environment::settings_files() {
            match read_layer(&layer) {
                Ok(values) => layers.push((layer.path, values)),
                Err(lines) => mistakes.extend(lines),
            }
        }
        let mut standing = Vec::new();
        for setting in SETTINGS {
            match from_environment(setting) {
                Ok(Some(found)) => standing.push(found),
                Ok(None) => standing.push(from_files(setting, &layers)),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.is_empty() {
            Ok(Self { standing })
        } else {
            Err(Failure::usage(mistakes.join("\n")))
        }
    }

    /// The value of a setting, or its default.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let found = self
            .standing
            .iter()
            .find(|standing| standing.setting.name == name);
        found.and_then(|standing| standing.value.as_ref())
    }

    /// The command line with what is set as the defaults of its arguments.
    pub(crate) fn as_defaults(&self, line: Command) -> Command {
        let set = |mut command: Command| {
            for standing in &self.standing {
                let name = standing.setting.name;
                if standing.source == Source::Default || !has_argument(&command, name) {
                    continue;
                }
                if let Some(value) = &standing.value {
                    let words = value.words();
                    command = command.mut_arg(name, |argument| argument.default_values(words));
                }
            }
            command
        };
        for_commands(line, set)
    }
}

/// The command line in which every switch that can be set elsewhere can be switched off:
/// `--raw=false` wins over `raw = true` in a file.
pub(crate) fn with_switches(line: Command) -> Command {
    for_commands(line, |mut command| {
        for setting in SETTINGS {
            if setting.kind == Kind::Switch && has_argument(&command, setting.name) {
                command = command.mut_arg(setting.name, switch_with_value);
            }
        }
        command
    })
}

fn switch_with_value(argument: Arg) -> Arg {
    argument
        .action(ArgAction::Set)
        .value_parser(ValueParser::bool())
        .num_args(0..=1)
        .require_equals(true)
        .value_name("true|false")
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .hide_possible_values(true)
}

/// Changes the commands that have settings, and leaves all in their order.
fn for_commands(line: Command, change: impl Fn(Command) -> Command) -> Command {
    line.mut_subcommands(|command| {
        if COMMANDS.contains(&command.get_name()) {
            change(command)
        } else {
            command
        }
    })
}

fn has_argument(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|known| known.get_id() == name)
}

fn read_layer(layer: &Layer) -> Result<FileValues, Vec<String>> {
    match environment::read_settings(&layer.path) {
        Ok(Some(text)) => file::read(&layer.path.display().to_string(), &text),
        Ok(None) => Ok(FileValues::new()),
        Err(failure) => Err(vec![failure.message]),
    }
}

fn from_environment(setting: &'static Setting) -> Result<Option<Standing>, String> {
    let variable = setting.variable();
    let Some(text) = environment::variable_os(&variable) else {
        return Ok(None);
    };
    let value = text
        .to_str()
        .and_then(|text| Value::from_text(setting.kind, text));
    match value {
        Some(value) => Ok(Some(Standing {
            setting,
            value: Some(value),
            source: Source::Environment { variable },
        })),
        None => Err(format!(
            "the environment variable {variable} must be {}; set it again, or unset it",
            setting.kind.expected()
        )),
    }
}

/// The first file that says something, or the default.
fn from_files(setting: &'static Setting, layers: &[(PathBuf, FileValues)]) -> Standing {
    for (path, values) in layers {
        if let Some((value, line)) = values.get(setting.name) {
            return Standing {
                setting,
                value: Some(value.clone()),
                source: Source::File {
                    path: path.clone(),
                    line: *line,
                },
            };
        }
    }
    let value = match setting.default {
        Default::Value(text) => Value::from_text(setting.kind, text),
        Default::Told(_) => None,
    };
    Standing {
        setting,
        value,
        source: Source::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command as Chosen, CrawlArguments, FollowChoice, command};
    use clap::FromArgMatches;

    fn settings(values: &[(&str, Value)]) -> Settings {
        let standing = values.iter().map(|(name, value)| Standing {
            setting: Setting::find(name).unwrap(),
            value: Some(value.clone()),
            source: Source::Environment {
                variable: String::new(),
            },
        });
        Settings {
            standing: standing.collect(),
        }
    }

    fn crawl(settings: &Settings, words: &str) -> CrawlArguments {
        let words = format!("kittiwake crawl mastodon@h a --into x.db {words}");
        let matches = settings
            .as_defaults(command())
            .try_get_matches_from(words.split_whitespace())
            .unwrap();
        let Chosen::Crawl(arguments) = Arguments::from_arg_matches(&matches).unwrap().command
        else {
            panic!("not a crawl");
        };
        arguments.crawl
    }

    /// Whether the argument itself takes this value.
    fn taken(setting: &Setting, value: &str) -> bool {
        let words = format!("kittiwake crawl n s --into x --{}={value}", setting.name);
        command()
            .try_get_matches_from(words.replace('_', "-").split(' '))
            .is_ok()
    }

    #[test]
    fn every_setting_is_an_argument_with_the_same_default_and_values() {
        let line = command();
        for setting in SETTINGS {
            let argument = COMMANDS
                .iter()
                .filter_map(|command| line.find_subcommand(command))
                .flat_map(Command::get_arguments)
                .find(|argument| argument.get_id() == setting.name)
                .unwrap_or_else(|| panic!("{} is no argument", setting.name));
            let long = setting.name.replace('_', "-");
            assert_eq!(argument.get_long(), Some(long.as_str()));
            let defaults: Vec<_> = argument.get_default_values().iter().collect();
            match setting.default {
                Default::Value(text) => {
                    assert!(Value::from_text(setting.kind, text).is_some(), "{text}");
                    assert_eq!(defaults, [text], "{}", setting.name);
                }
                Default::Told(_) => assert!(defaults.is_empty(), "{}", setting.name),
            }
            match setting.kind {
                Kind::Choice(words) => {
                    let possible = argument.get_possible_values();
                    let possible: Vec<_> = possible
                        .iter()
                        .map(clap::builder::PossibleValue::get_name)
                        .collect();
                    assert_eq!(possible, words);
                }
                Kind::Number { min, max } => {
                    assert!(taken(setting, &min.to_string()) && taken(setting, &max.to_string()));
                    assert!(!taken(setting, &(i64::from(min) - 1).to_string()));
                    assert!(!taken(setting, &(u64::from(max) + 1).to_string()));
                }
                Kind::Line | Kind::Share | Kind::Words | Kind::Switch | Kind::Place => {}
            }
        }
    }

    #[test]
    fn the_example_of_every_setting_is_right() {
        for setting in SETTINGS {
            let read = file::read("f", &setting.example());
            assert!(
                read.is_ok_and(|values| values.len() == 1),
                "{}",
                setting.name
            );
        }
    }

    #[test]
    fn a_flag_wins_over_a_setting() {
        let settings = settings(&[
            ("depth", Value::Number(3)),
            ("reserve", Value::Share(0.3)),
            ("follow", Value::Text("none".into())),
            ("robots", Value::Words(vec!["a".into(), "b".into()])),
            ("raw", Value::Switch(true)),
        ]);
        let set = crawl(&settings, "");
        assert_eq!((set.depth, set.reserve), (3, Some(0.3)));
        assert_eq!(set.follow, FollowChoice::None);
        assert_eq!(set.robots, ["a", "b"]);
        assert!(set.raw && !set.quiet);
        let given = crawl(
            &settings,
            "--depth 1 --reserve 5% --follow both --robots c --raw=false -q",
        );
        assert_eq!((given.depth, given.reserve), (1, Some(0.05)));
        assert_eq!(given.follow, FollowChoice::Both);
        assert_eq!(given.robots, ["c"]);
        assert!(!given.raw && given.quiet);
    }

    #[test]
    fn settings_leave_the_order_of_commands_alone() {
        let names = |line: &Command| -> Vec<String> {
            let names = line.get_subcommands().map(Command::get_name);
            names.map(str::to_owned).collect()
        };
        let defined = names(&<Arguments as clap::CommandFactory>::command());
        assert_eq!(names(&command()), defined);
    }

    #[test]
    fn a_switch_is_still_a_switch() {
        let none = settings(&[]);
        assert!(crawl(&none, "--raw").raw);
        assert!(!crawl(&none, "").raw);
        // It does not swallow the word behind it.
        assert_eq!(crawl(&none, "--raw true").seeds, ["a", "true"]);
    }
}
