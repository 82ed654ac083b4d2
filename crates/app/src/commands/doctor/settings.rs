//! The settings: files, variables, tokens.

use super::Check;
use crate::definitions::{self, SHIPPED};
use crate::environment::{self, Layer};
use crate::failure::Failure;
use crate::settings::{SETTINGS, Setting, Settings};
use std::os::unix::fs::PermissionsExt;

const AREA: &str = "settings";
/// Variables of ours that are no settings.
const OTHER_VARIABLES: [&str; 4] = [
    "KITTIWAKE_CRASH_POINT",
    "KITTIWAKE_RECORDINGS",
    "KITTIWAKE_TEST_",
    "KITTIWAKE_VAULT_KEY",
];
/// No network gives out shorter tokens.
const TOKEN_LETTERS_MIN: usize = 12;
/// Anybody may write.
const WORLD_WRITABLE: u32 = 0o002;

pub(super) fn checks(settings: &Result<Settings, Failure>) -> Vec<Check> {
    let mut checks = vec![match settings {
        Ok(_) => Check::ok(AREA, "files", files_found()),
        Err(failure) => Check::problem(
            AREA,
            "files",
            &failure.message,
            "mend what is named; docs/settings.md lists all settings",
        ),
    }];
    if let Ok(settings) = settings {
        checks.push(contact(settings));
    }
    checks.extend(environment::settings_files().iter().filter_map(permissions));
    checks.extend(vault());
    let names = environment::variable_names();
    checks.extend(names.iter().filter_map(|name| unknown_variable(name)));
    checks.extend(folders());
    let tokens = names
        .iter()
        .filter(|name| environment::is_token_variable(name));
    checks.extend(tokens.map(|name| token(name)));
    checks
}

fn files_found() -> String {
    let there: Vec<String> = environment::settings_files()
        .iter()
        .filter(|layer| layer.path.exists())
        .map(|layer| layer.path.display().to_string())
        .collect();
    if there.is_empty() {
        "none; defaults hold".to_owned()
    } else {
        format!("correct: {}", there.join(", "))
    }
}

fn contact(settings: &Settings) -> Check {
    match settings.get("contact") {
        Some(contact) => Check::ok(AREA, "contact", contact.to_string()),
        None => Check::warning(
            AREA,
            "contact",
            "not set",
            "hosts want to know who asks: write contact = \"you@example.org\" into kittiwake.toml; \
             without it only servers on this machine are asked",
        ),
    }
}

/// Who may write a settings file may speak in its owner's name.
fn permissions(layer: &Layer) -> Option<Check> {
    let metadata = std::fs::metadata(&layer.path).ok()?;
    if metadata.permissions().mode() & WORLD_WRITABLE == 0 {
        return None;
    }
    let path = layer.path.display();
    Some(Check::warning(
        AREA,
        "permissions",
        format!("anybody on this machine may change {path}"),
        &format!("chmod o-w {path}"),
    ))
}

/// Whether the vault is for its owner only, as it was made.
fn vault() -> Option<Check> {
    const OTHERS: u32 = 0o077;
    let path = crate::vault::Vault::place().ok()?;
    let metadata = std::fs::metadata(&path).ok()?;
    let shown = path.display();
    if metadata.permissions().mode() & OTHERS == 0 {
        return Some(Check::ok(AREA, "vault", shown.to_string()));
    }
    Some(Check::warning(
        AREA,
        "vault",
        format!("others on this machine may read or change {shown}"),
        &format!("chmod 600 {shown}"),
    ))
}

/// A variable that looks like ours and is not: a slip, most likely.
fn unknown_variable(name: &str) -> Option<Check> {
    let known = SETTINGS.iter().any(|setting| setting.variable() == name)
        || environment::is_token_variable(name)
        || OTHER_VARIABLES.iter().any(|other| name.starts_with(other));
    if known {
        return None;
    }
    let variables: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    Some(Check::warning(
        AREA,
        "variables",
        format!("{name} sets nothing"),
        &format!("unset it, or set one of {}", variables.join(", ")),
    ))
}

/// Folders that are named and, as the specification of these variables has it, ignored.
fn folders() -> impl Iterator<Item = Check> {
    let names = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    let is_relative = |name: &&str| {
        environment::variable_os(name)
            .is_some_and(|path| !std::path::Path::new(&path).is_absolute())
    };
    names.into_iter().filter(is_relative).map(|name| {
        Check::warning(
            AREA,
            "folders",
            format!("{name} does not begin at the root and is ignored"),
            "give it a path that begins with /",
        )
    })
}

/// Says whether a variable holds something like a token. What it holds is never shown.
fn token(name: &str) -> Check {
    let Some(value) = environment::variable_os(name) else {
        return Check::warning(
            AREA,
            "token",
            format!("{name} is set and empty"),
            "give it a token, or unset it",
        );
    };
    let again = "copy the token once more, without quotes or other words around it";
    let is_list = environment::is_list_of_tokens(name);
    let mistake = |value: &str| {
        if is_list {
            tokens_mistake(value)
        } else {
            token_mistake(value)
        }
    };
    match value.to_str().map(mistake) {
        Some(None) => {}
        Some(Some(mistake)) => {
            return Check::problem(AREA, "token", format!("{name} {mistake}"), again);
        }
        None => return Check::problem(AREA, "token", format!("{name} holds no text"), again),
    }
    if known_networks().contains(&name.to_owned()) {
        return Check::ok(AREA, "token", format!("{name} is set"));
    }
    Check::warning(
        AREA,
        "token",
        format!("{name} is set, and no network of that name is known"),
        "check the name: KITTIWAKE_<NETWORK>_TOKEN, as kittiwake network list names it",
    )
}

fn known_networks() -> Vec<String> {
    let shipped = SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let own = super::definitions::own_files()
        .into_iter()
        .filter_map(|path| definitions::read(&path).ok())
        .map(|network| network.name().to_string());
    shipped
        .chain(own)
        .flat_map(|network| {
            [
                environment::token_variable(&network),
                environment::tokens_variable(&network),
            ]
        })
        .collect()
}

/// What no list of tokens looks like.
fn tokens_mistake(list: &str) -> Option<&'static str> {
    let Some(tokens) = environment::named_tokens(list) else {
        return Some("is no list of tokens with commas in between");
    };
    tokens.iter().find_map(|named| token_mistake(&named.token))
}

/// What no token looks like.
fn token_mistake(token: &str) -> Option<&'static str> {
    let token = token.trim();
    let lower = token.to_ascii_lowercase();
    if lower.starts_with("bearer ") {
        return Some("begins with Bearer, which is added by itself");
    }
    if token.starts_with(['"', '\'', '<', '$', '{']) || token.ends_with(['"', '\'', '>', '}']) {
        return Some("holds quotes or brackets");
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("holds characters that no token has");
    }
    let filler = ["changeme", "your", "token", "xxx", "...", "example"];
    if token.len() < TOKEN_LETTERS_MIN || filler.iter().any(|word| lower.starts_with(word)) {
        return Some("holds something that is no token");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_is_found_out() {
        for right in [
            "dGhpcyBpcyBub3QgYSB0b2tlbg",
            "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ-_",
            " padded-0123456789 ",
        ] {
            assert_eq!(token_mistake(right), None, "{right}");
        }
        for wrong in [
            "Bearer dGhpcyBpcyBub3QgYSB0b2tlbg",
            "\"dGhpcyBpcyBub3QgYSB0b2tlbg\"",
            "<your token here>",
            "your_token_goes_here",
            "two words of something",
            "short",
            "zażółć-gęślą-jaźń",
        ] {
            assert!(token_mistake(wrong).is_some(), "{wrong}");
        }
        let token = "dGhpcyBpcyBub3QgYSB0b2tlbg";
        assert_eq!(tokens_mistake(&format!("{token}, ada {token}")), None);
        assert!(tokens_mistake(&format!("{token}, ada short")).is_some());
        assert!(tokens_mistake(&format!("my own {token}")).is_some());
    }
}
