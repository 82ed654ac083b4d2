//! The environment: variables, folders, settings files and the machine's clock. The only file that
//! reads them.

use crate::failure::Failure;
use kittiwake_model::RealTime;
use kittiwake_store::Location;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes that a settings file may have.
const SETTINGS_BYTES_MAX: u64 = 1_048_576;
/// What the names of our variables begin with.
const PREFIX: &str = "KITTIWAKE_";
const TOKEN_SUFFIX: &str = "_TOKEN";
const TOKENS_SUFFIX: &str = "_TOKENS";

/// A settings file, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// `project` or `user`.
    pub name: &'static str,
    pub path: PathBuf,
}

/// The words of the command line.
pub(crate) fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
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

/// The same, whatever bytes it holds.
pub(crate) fn variable_os(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The names of all variables of ours that are set, sorted.
pub(crate) fn variable_names() -> Vec<String> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    names.sort();
    names
}

/// The variable that holds a network's token.
pub(crate) fn token_variable(network: &str) -> String {
    format!("{PREFIX}{}{TOKEN_SUFFIX}", variable_word(network))
}

/// The variable that holds several tokens of a network.
pub(crate) fn tokens_variable(network: &str) -> String {
    format!("{PREFIX}{}{TOKENS_SUFFIX}", variable_word(network))
}

fn variable_word(network: &str) -> String {
    network
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}

/// Whether the variable is one that holds tokens.
pub(crate) fn is_token_variable(name: &str) -> bool {
    let network = name.strip_prefix(PREFIX).and_then(|name| {
        let single = name.strip_suffix(TOKEN_SUFFIX);
        single.or_else(|| name.strip_suffix(TOKENS_SUFFIX))
    });
    network.is_some_and(|network| !network.is_empty())
}

/// Whether the variable is one that holds several tokens.
pub(crate) fn is_list_of_tokens(name: &str) -> bool {
    name.ends_with(TOKENS_SUFFIX)
}

/// A token in a list, perhaps with the name of the account that it is of.
#[derive(PartialEq, Eq)]
pub(crate) struct NamedToken {
    pub account: Option<String>,
    pub token: String,
}

/// The tokens for a network, from `KITTIWAKE_<NETWORK>_TOKENS`.
pub(crate) fn tokens(network: &str) -> Result<Vec<NamedToken>, Failure> {
    let name = tokens_variable(network);
    let Some(list) = variable(&name) else {
        return Ok(Vec::new());
    };
    // The value itself is never shown.
    named_tokens(&list).ok_or_else(|| {
        Failure::usage(format!(
            "{name} is no list of tokens; write them with commas in between, each perhaps behind its \
             account's name: ada TOKEN, bob TOKEN"
        ))
    })
}

/// `TOKEN, ada TOKEN`: tokens hold neither spaces nor commas.
pub(crate) fn named_tokens(list: &str) -> Option<Vec<NamedToken>> {
    let parts = list.split(',').filter(|part| !part.trim().is_empty());
    let named = parts.map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let (account, token) = match words.as_slice() {
            [token] => (None, *token),
            [account, token] => (Some((*account).to_owned()), *token),
            _ => return None,
        };
        let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| NamedToken {
            account,
            token: token.to_owned(),
        })
    });
    named.collect()
}

/// The token for a network, from `KITTIWAKE_<NETWORK>_TOKEN`.
pub(crate) fn token(network: &str) -> Result<Option<String>, Failure> {
    token_of(&token_variable(network))
}

/// The token in a variable, if it is set.
pub(crate) fn token_of(name: &str) -> Result<Option<String>, Failure> {
    let Some(token) = variable(name) else {
        return Ok(None);
    };
    let token = token.trim().to_owned();
    if token.is_empty() {
        return Ok(None);
    }
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(token));
    }
    // The value itself is never shown.
    Err(Failure::usage(format!(
        "{name} holds characters that no token has; set it again"
    )))
}

/// Where state is kept: what must not be lost and is not a crawl.
pub(crate) fn state_folder() -> Result<PathBuf, Failure> {
    folder("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::other(
            "neither XDG_STATE_HOME nor HOME names a folder from the root; set one of them",
        )
    })
}

/// Where the user's own settings are kept, and the vault.
pub(crate) fn config_folder() -> Result<PathBuf, Failure> {
    folder("XDG_CONFIG_HOME", ".config").ok_or_else(|| {
        Failure::other(
            "neither XDG_CONFIG_HOME nor HOME names a folder from the root; set one of them",
        )
    })
}

/// Tells this process from every other that shares the ledger, here or in a container.
pub(crate) fn node_name() -> String {
    format!("{}-{:x}", std::process::id(), real_now().micros())
}

/// Where anything is kept that can be made again.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    folder("XDG_CACHE_HOME", ".cache")
}

/// A path of this process alone for what is thrown away.
pub(crate) fn temporary_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kittiwake-{}-{name}", std::process::id()))
}

/// The ledger of grants, one per user of the machine.
pub(crate) fn ledger_path() -> Result<PathBuf, Failure> {
    Ok(state_folder()?.join("budgets.db"))
}

/// Where grants are kept: where the user says, or in the ledger of this user.
pub(crate) fn ledger_place(named: Option<&Location>) -> Result<Location, Failure> {
    match named {
        Some(place) => Ok(with_password(place)),
        None => Ok(Location::File(ledger_path()?)),
    }
}

/// The place of a crawl, with the password that PostgreSQL's own programs would use.
pub(crate) fn with_password(place: &Location) -> Location {
    match std::env::var("PGPASSWORD") {
        Ok(password) if !password.is_empty() => place.clone().with_password(&password),
        _ => place.clone(),
    }
}

/// The settings files, the one that wins first.
pub(crate) fn settings_files() -> Vec<Layer> {
    let mut layers = vec![Layer {
        name: "project",
        path: PathBuf::from("kittiwake.toml"),
    }];
    layers.extend(folder("XDG_CONFIG_HOME", ".config").map(|config| Layer {
        name: "user",
        path: config.join("config.toml"),
    }));
    layers
}

/// Our folder below the one that the variable names, or below the home folder.
fn folder(variable_name: &str, below_home: &str) -> Option<PathBuf> {
    // A relative one is ignored, as the specification says: it would be another folder in every
    // folder, and limits would be counted once in each.
    let absolute = |name: &str| {
        variable_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable_name)
        .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        .map(|folder| folder.join("kittiwake"))
}

/// The text of a settings file, if there is one.
pub(crate) fn read_settings(path: &Path) -> Result<Option<String>, Failure> {
    let shown = path.display();
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    match std::fs::metadata(path) {
        // Also when something on the way to it is no folder.
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(cannot(error)),
        // A pipe would be waited for, a device might never end.
        Ok(metadata) if !metadata.is_file() => {
            return Err(Failure::usage(format!(
                "{shown} is not a regular file; settings are kept in a TOML file"
            )));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(SETTINGS_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > SETTINGS_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{shown} has more than {SETTINGS_BYTES_MAX} bytes; settings take a few lines"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage(format!(
            "{shown} is not UTF-8 text; settings are kept in a TOML file"
        ))
    })?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_names_the_variable_of_its_token() {
        assert_eq!(token_variable("my-net"), "KITTIWAKE_MY_NET_TOKEN");
        assert!(is_token_variable("KITTIWAKE_MY_NET_TOKEN"));
        assert_eq!(tokens_variable("my-net"), "KITTIWAKE_MY_NET_TOKENS");
        assert!(is_token_variable("KITTIWAKE_MY_NET_TOKENS"));
        assert!(is_list_of_tokens("KITTIWAKE_MY_NET_TOKENS"));
        assert!(!is_token_variable("KITTIWAKE_TOKEN"));
        assert!(!is_token_variable("MY_NET_TOKEN"));
    }

    #[test]
    fn a_list_of_tokens_may_name_accounts() {
        let named = named_tokens(" abc=,ada d:1 ,, bob\te ").expect("a list");
        let named: Vec<_> = named
            .iter()
            .map(|it| (it.account.as_deref(), it.token.as_str()))
            .collect();
        assert_eq!(
            named,
            [(None, "abc="), (Some("ada"), "d:1"), (Some("bob"), "e")]
        );
        assert!(named_tokens("a b c").is_none());
        assert!(named_tokens("ada zażółć").is_none());
        assert!(named_tokens(" , ").is_some_and(|list| list.is_empty()));
    }
}
