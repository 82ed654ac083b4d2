//! Sealing and unsealing the vault's bytes. The only file that knows age.

use age::secrecy::{ExposeSecret, SecretString};
use age::{DecryptError, Decryptor, scrypt, x25519};
use kittiwake_model::Secret;
use std::fmt;
use std::io::Read;
use std::str::FromStr;
use zeroize::Zeroizing;

/// scrypt's N = 2^17 with r = 8: 128 MiB and some tenths of a second. age would measure the machine
/// and take a second, also for every token that is renewed.
const WORK_FACTOR: u8 = 17;
/// A vault that asks for more work than this was not sealed here.
const WORK_FACTOR_MAX: u8 = 20;

/// What opens a vault.
#[derive(Clone)]
pub(crate) enum Key {
    Passphrase(Secret),
    Identity(x25519::Identity),
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Passphrase(_) => "Key(passphrase)",
            Self::Identity(_) => "Key(identity)",
        })
    }
}

/// Which kind of key a vault was sealed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Passphrase,
    Identity,
}

/// Why bytes cannot be sealed or unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealError {
    /// The key is another one.
    WrongKey,
    /// The bytes are not what was sealed.
    Damaged,
    Unsealable,
}

impl Key {
    /// The first age identity of a key file's text.
    pub(crate) fn from_identity_text(text: &str) -> Option<Self> {
        let line = text.lines().map(str::trim);
        let mut identities = line.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let identity = x25519::Identity::from_str(identities.next()?).ok()?;
        Some(Self::Identity(identity))
    }

    pub(crate) const fn kind(&self) -> KeyKind {
        match self {
            Self::Passphrase(_) => KeyKind::Passphrase,
            Self::Identity(_) => KeyKind::Identity,
        }
    }
}

/// A new identity: its text, and the public key that goes with it.
pub(crate) fn new_identity() -> (Secret, String) {
    let identity = x25519::Identity::generate();
    let text = identity.to_string();
    (
        Secret::new(text.expose_secret()),
        identity.to_public().to_string(),
    )
}

pub(super) fn kind_of(sealed: &[u8]) -> Result<KeyKind, SealError> {
    let decryptor = Decryptor::new_buffered(sealed).map_err(|_| SealError::Damaged)?;
    Ok(if decryptor.is_scrypt() {
        KeyKind::Passphrase
    } else {
        KeyKind::Identity
    })
}

pub(super) fn seal(key: &Key, plain: &[u8]) -> Result<Vec<u8>, SealError> {
    let sealed = match key {
        Key::Passphrase(passphrase) => {
            let passphrase = SecretString::from(passphrase.expose_secret().to_owned());
            let mut recipient = scrypt::Recipient::new(passphrase);
            recipient.set_work_factor(WORK_FACTOR);
            age::encrypt(&recipient, plain)
        }
        Key::Identity(identity) => age::encrypt(&identity.to_public(), plain),
    };
    sealed.map_err(|_| SealError::Unsealable)
}

pub(super) fn unseal(key: &Key, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let decryptor = Decryptor::new_buffered(sealed).map_err(|_| SealError::Damaged)?;
    let reader = match key {
        Key::Passphrase(passphrase) => {
            let passphrase = SecretString::from(passphrase.expose_secret().to_owned());
            let mut identity = scrypt::Identity::new(passphrase);
            identity.set_max_work_factor(WORK_FACTOR_MAX);
            decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity))
        }
        Key::Identity(identity) => decryptor.decrypt(std::iter::once(identity as _)),
    };
    let mut reader = reader.map_err(|error| match error {
        DecryptError::NoMatchingKeys
        | DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed => SealError::WrongKey,
        _ => SealError::Damaged,
    })?;
    // As large as it can become, so that no copy is left behind by growing.
    let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len()));
    reader
        .read_to_end(&mut plain)
        .map_err(|_| SealError::Damaged)?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_own_key_only() {
        let (text, _) = new_identity();
        let key = Key::from_identity_text(&format!("# made\n{}\n", text.expose_secret())).unwrap();
        let other = Key::from_identity_text(new_identity().0.expose_secret()).unwrap();
        let sealed = seal(&key, b"hunter2").unwrap();
        assert_eq!(kind_of(&sealed), Ok(KeyKind::Identity));
        assert_eq!(**unseal(&key, &sealed).unwrap(), *b"hunter2");
        assert_eq!(unseal(&other, &sealed), Err(SealError::WrongKey));
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let key = Key::from_identity_text(new_identity().0.expose_secret()).unwrap();
        let sealed = seal(&key, b"hunter2").unwrap();
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(unseal(&key, &changed).is_err(), "byte {place} was changed");
            assert!(unseal(&key, &sealed[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn a_key_shows_nothing() {
        let (text, _) = new_identity();
        let key = Key::from_identity_text(text.expose_secret()).unwrap();
        assert_eq!(format!("{key:?}"), "Key(identity)");
        assert!(Key::from_identity_text("AGE-SECRET-KEY-1WRONG").is_none());
        assert!(Key::from_identity_text("").is_none());
    }
}
