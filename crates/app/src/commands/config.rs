//! `kittiwake config`: what is set, and by whom.

use crate::cli::ConfigCommand;
use crate::failure::Failure;
use crate::settings::{Default, Settings, Source, Standing};
use crate::{console, environment};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn run(command: &ConfigCommand) -> Result<ExitCode, Failure> {
    let ConfigCommand::Show(arguments) = command;
    let settings = Settings::load()?;
    let shown = if arguments.json {
        as_json(&settings).to_string()
    } else {
        as_text(&settings)
    };
    console::output(shown.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn as_json(settings: &Settings) -> Value {
    let standing: Vec<Value> = settings.standing.iter().map(setting_json).collect();
    let files: Vec<Value> = environment::settings_files()
        .iter()
        .map(|layer| {
            json!({
                "layer": layer.name,
                "path": from_root(&layer.path),
                "exists": layer.path.exists(),
            })
        })
        .collect();
    let places: serde_json::Map<String, Value> = places(settings)
        .into_iter()
        .map(|(name, place)| (name.to_owned(), json!(place)))
        .collect();
    json!({
        "settings": standing,
        "files": files,
        "places": places,
        "tokens": tokens(),
    })
}

fn setting_json(standing: &Standing) -> Value {
    let setting = standing.setting;
    let from = match &standing.source {
        Source::Environment { variable } => json!({ "layer": "environment", "variable": variable }),
        Source::File { path, line } => {
            json!({ "layer": "file", "path": from_root(path), "line": line })
        }
        Source::Default => json!({ "layer": "default" }),
    };
    let (Default::Value(default) | Default::Told(default)) = setting.default;
    json!({
        "name": setting.name,
        "value": standing.value.as_ref().map(crate::settings::Value::to_json),
        "from": from,
        "default": default,
        "variable": setting.variable(),
        "help": setting.help,
    })
}

fn as_text(settings: &Settings) -> String {
    let mut text = String::from("Settings\n");
    for standing in &settings.standing {
        let setting = standing.setting;
        let value = match (&standing.value, setting.default) {
            (Some(value), _) => value.to_string(),
            (None, Default::Value(told) | Default::Told(told)) => told.to_owned(),
        };
        let from = match &standing.source {
            Source::Environment { variable } => variable.clone(),
            Source::File { path, line } => format!("{}:{line}", from_root(path).display()),
            Source::Default => "default".to_owned(),
        };
        let _ = writeln!(text, "  {:<18} {value:<26} {from}", setting.name);
    }
    text.push_str("\nFiles, the first one wins\n");
    for layer in environment::settings_files() {
        let there = if layer.path.exists() {
            "read"
        } else {
            "not there"
        };
        let path = from_root(&layer.path);
        let _ = writeln!(text, "  {:<18} {} ({there})", layer.name, path.display());
    }
    text.push_str("\nPlaces\n");
    for (name, place) in places(settings) {
        let _ = writeln!(text, "  {name:<18} {place}");
    }
    text.push_str("\nTokens\n");
    let tokens = tokens();
    for variable in &tokens {
        let _ = writeln!(text, "  {variable} is set");
    }
    if tokens.is_empty() {
        text.push_str("  none (KITTIWAKE_<NETWORK>_TOKEN)\n");
    }
    text
}

/// Where things are kept besides crawls.
fn places(settings: &Settings) -> Vec<(&'static str, String)> {
    let shown = |path: PathBuf| path.display().to_string();
    let ledger = match settings.get("budgets") {
        Some(set) => Some(set.to_string()),
        None => environment::ledger_path().ok().map(shown),
    };
    let found = [
        ("state", environment::state_folder().ok().map(shown)),
        ("ledger", ledger),
        ("cache", environment::cache_folder().map(shown)),
        ("vault", crate::vault::Vault::place().ok().map(shown)),
    ];
    found
        .into_iter()
        .filter_map(|(name, place)| Some((name, place?)))
        .collect()
}

/// The variables that hold a token: their names, never what they hold.
fn tokens() -> Vec<String> {
    environment::variable_names()
        .into_iter()
        .filter(|name| environment::is_token_variable(name))
        .filter(|name| environment::variable_os(name).is_some())
        .collect()
}

fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
