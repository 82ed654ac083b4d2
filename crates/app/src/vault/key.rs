//! Where the key of the vault comes from.

use super::seal::{self, Key, KeyKind};
use crate::cli::VaultArguments;
use crate::failure::{Failure, code};
use crate::{console, environment};
use kittiwake_model::Secret;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// A key or passphrase file has fewer bytes.
const FILE_BYTES_MAX: u64 = 65_536;
const KEY_VARIABLE: &str = "KITTIWAKE_VAULT_KEY";

/// How the user opens the vault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeySource<'a> {
    arguments: &'a VaultArguments,
}

impl<'a> KeySource<'a> {
    pub(crate) fn new(arguments: &'a VaultArguments) -> Self {
        Self { arguments }
    }

    /// Whether the key can be had without asking anybody.
    pub(crate) fn is_given(self) -> bool {
        let VaultArguments {
            passphrase_file,
            key_file,
            known,
        } = self.arguments;
        passphrase_file.is_some()
            || key_file.is_some()
            || known.is_some()
            || environment::variable(KEY_VARIABLE).is_some()
    }

    /// The key for a vault of a kind, or for one that is yet to be made.
    pub(super) fn key(self, kind: Option<KeyKind>) -> Result<Key, Failure> {
        if let Some(known) = &self.arguments.known {
            return Ok(known.clone());
        }
        if let Some(path) = &self.arguments.key_file {
            let text = read(path, "the key file")?;
            return Key::from_identity_text(&text).ok_or_else(|| {
                Failure::usage(format!(
                    "{} holds no age identity (AGE-SECRET-KEY-1…); kittiwake auth key makes one",
                    path.display()
                ))
            });
        }
        if let Some(path) = &self.arguments.passphrase_file {
            let text = read(path, "the passphrase file")?;
            let line = text.lines().next().unwrap_or_default();
            if line.is_empty() {
                let shown = path.display();
                return Err(Failure::usage(format!(
                    "the first line of {shown} is empty"
                )));
            }
            return Ok(Key::Passphrase(Secret::new(line)));
        }
        if let Some(text) = environment::variable(KEY_VARIABLE) {
            let text = Zeroizing::new(text);
            // The value itself is never shown.
            return Key::from_identity_text(&text).ok_or_else(|| {
                Failure::usage(format!(
                    "{KEY_VARIABLE} holds no age identity (AGE-SECRET-KEY-1…); kittiwake auth key \
                     makes one"
                ))
            });
        }
        ask(kind)
    }
}

/// Asks a person at a terminal.
fn ask(kind: Option<KeyKind>) -> Result<Key, Failure> {
    let cannot = |message: &str| Failure {
        message: message.to_owned(),
        code: code::AUTHENTICATION,
    };
    if kind == Some(KeyKind::Identity) {
        return Err(cannot(
            "the vault opens with a key: give it with --key-file or in KITTIWAKE_VAULT_KEY",
        ));
    }
    if !console::can_ask() {
        return Err(cannot(
            "the vault needs a passphrase or a key, and nobody is there to ask: give \
             --passphrase-file, --key-file or KITTIWAKE_VAULT_KEY",
        ));
    }
    if kind.is_some() {
        let passphrase = console::ask_secret("passphrase of the vault: ")?;
        return Ok(Key::Passphrase(passphrase));
    }
    let first = console::ask_secret("passphrase for the new vault: ")?;
    if first.expose_secret().is_empty() {
        return Err(Failure::usage("a vault without a passphrase is none"));
    }
    if console::ask_secret("once more: ")? != first {
        return Err(Failure::usage(
            "the two passphrases differ; nothing was made",
        ));
    }
    Ok(Key::Passphrase(first))
}

fn read(path: &Path, what: &str) -> Result<Zeroizing<String>, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::usage(format!("cannot read {what} {}: {error}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    Ok(text)
}

/// Makes a key file that only its owner may read; gives the public key.
pub(crate) fn new_key_file(path: &Path) -> Result<String, Failure> {
    const OWNER_ONLY: u32 = 0o600;
    let (identity, public) = seal::new_identity();
    let text = Zeroizing::new(format!(
        "# a key for Kittiwake's vault\n# public key: {public}\n{}\n",
        identity.expose_secret()
    ));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", path.display())))?;
    Ok(public)
}
