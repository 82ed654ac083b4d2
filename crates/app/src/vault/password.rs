//! Hashes of passwords. The only file that knows argon2.

use super::Kept;
use crate::machine;
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kittiwake_model::Secret;
use serde::{Deserialize, Serialize};

/// What a look at a password takes: 19 MiB and two passes, as OWASP advises at the least.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;
/// No hash of ours takes more, whoever wrote the vault.
const MEMORY_KIB_MAX: u32 = 256 * 1_024;
const PASSES_MAX: u32 = 10;
const HASH_BYTES: usize = 32;
const CHARACTERS_MIN: usize = 12;
const BYTES_MAX: usize = 1_024;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PasswordError {
    #[error(
        "a password has at least {CHARACTERS_MIN} characters; a few words are easy to keep in mind"
    )]
    Short,
    #[error("a password has at most {BYTES_MAX} bytes")]
    Long,
    #[error("the password cannot be hashed on this machine")]
    Unhashable,
}

/// What is kept of a password (Argon2id).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredPassword {
    memory_kib: u32,
    passes: u32,
    salt: String,
    hash: Kept,
}

impl StoredPassword {
    pub(crate) fn new(password: &Secret) -> Result<Self, PasswordError> {
        let text = password.expose_secret();
        if text.chars().count() < CHARACTERS_MIN {
            return Err(PasswordError::Short);
        }
        if text.len() > BYTES_MAX {
            return Err(PasswordError::Long);
        }
        Self::of(password, &machine::random::<16>())
    }

    /// One that no password fits, so that looking takes as long where there is none.
    pub(crate) fn nobodys() -> Result<Self, PasswordError> {
        let random = machine::random_word();
        Self::of(&Secret::new(random), &machine::random::<16>())
    }

    fn of(password: &Secret, salt: &[u8]) -> Result<Self, PasswordError> {
        let hash = hashed(password, salt, MEMORY_KIB, PASSES).ok_or(PasswordError::Unhashable)?;
        Ok(Self {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            salt: STANDARD.encode(salt),
            hash: Kept(Secret::new(STANDARD.encode(hash))),
        })
    }

    /// Whether the password is the one. Takes the same time whether it is or not.
    pub(crate) fn fits(&self, password: &Secret) -> bool {
        let is_sane = self.memory_kib <= MEMORY_KIB_MAX && self.passes <= PASSES_MAX;
        let salt = STANDARD.decode(&self.salt).ok().filter(|_| is_sane);
        let found = salt.and_then(|salt| hashed(password, &salt, self.memory_kib, self.passes));
        let wanted = STANDARD.decode(self.hash.0.expose_secret()).ok();
        let (Some(found), Some(wanted)) = (found, wanted) else {
            return false;
        };
        let differences = found
            .iter()
            .zip(&wanted)
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        wanted.len() == HASH_BYTES && differences == 0
    }
}

fn hashed(
    password: &Secret,
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
) -> Option<[u8; HASH_BYTES]> {
    let parameters = Params::new(memory_kib, passes, 1, Some(HASH_BYTES)).ok()?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    let mut hash = [0; HASH_BYTES];
    let password = password.expose_secret().as_bytes();
    argon.hash_password_into(password, salt, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_itself_fits_and_it_is_not_kept() {
        let password = Secret::new("gulls over the harbour");
        let stored = StoredPassword::new(&password).unwrap();
        assert!(stored.fits(&password));
        assert!(!stored.fits(&Secret::new("gulls over the harbor")));
        assert!(!stored.fits(&Secret::new("")));
        let written = serde_json::to_string(&stored).unwrap();
        assert!(!written.contains("gulls"), "{written}");
        let read: StoredPassword = serde_json::from_str(&written).unwrap();
        assert!(read.fits(&password));
        let again = StoredPassword::new(&password).unwrap();
        assert_ne!(written, serde_json::to_string(&again).unwrap());
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        let short = StoredPassword::new(&Secret::new("hunter2"));
        assert_eq!(short.unwrap_err(), PasswordError::Short);
        let long = StoredPassword::new(&Secret::new("x".repeat(2_000)));
        assert_eq!(long.unwrap_err(), PasswordError::Long);
    }

    #[test]
    fn a_hash_that_asks_for_too_much_fits_nothing() {
        let stored = StoredPassword::nobodys().unwrap();
        let greedy = StoredPassword {
            memory_kib: u32::MAX,
            ..stored
        };
        assert!(!greedy.fits(&Secret::new("anything at all")));
    }
}
