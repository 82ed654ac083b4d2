//! The environment: paths, tokens, settings files and the machine's clock. The only file that
//! reads them.

use crate::failure::Failure;
use kittiwake_model::RealTime;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Settings that are kept in `kittiwake.toml` (project) or `config.toml` (user).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// How a host's owner can reach you.
    pub contact: Option<String>,
}

/// The machine's clock.
pub(crate) fn real_now() -> RealTime {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    RealTime(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// An environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The token for a network, from `KITTIWAKE_<NETWORK>_TOKEN`.
pub(crate) fn token(network: &str) -> Result<Option<String>, Failure> {
    let word: String = network
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    let name = format!("KITTIWAKE_{word}_TOKEN");
    let Some(token) = variable(&name) else {
        return Ok(None);
    };
    let token = token.trim().to_owned();
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(token));
    }
    // The value itself is never shown.
    Err(Failure::usage(format!(
        "{name} holds characters that no token has; set it again"
    )))
}

/// The ledger of grants, one per user of the machine.
pub(crate) fn ledger_path() -> Result<PathBuf, Failure> {
    let state = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| home().map(|home| home.join(".local/state")))
        .ok_or_else(|| Failure::other("neither XDG_STATE_HOME nor HOME is set; set one of them"))?;
    Ok(state.join("kittiwake/budgets.db"))
}

/// The settings of the project, over those of the user.
pub(crate) fn settings() -> Result<Settings, Failure> {
    let project = read_settings(Path::new("kittiwake.toml"))?;
    let user = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| home().map(|home| home.join(".config")))
        .map_or(Ok(Settings::default()), |config| {
            read_settings(&config.join("kittiwake/config.toml"))
        })?;
    Ok(Settings {
        contact: project.contact.or(user.contact),
    })
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

fn read_settings(path: &Path) -> Result<Settings, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Settings::default());
        }
        Err(error) => {
            return Err(Failure::usage(format!(
                "cannot read {}: {error}",
                path.display()
            )));
        }
    };
    toml::from_str(&text).map_err(|error| {
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        Failure::usage(format!("{}: {message}", path.display()))
    })
}
