//! The vault: the user's secrets in one encrypted file.
//!
//! Whoever changes it holds a lock, reads it anew, and replaces it as a whole: a new file is written
//! beside it, synced, and renamed into its place. A crash leaves the old one or the new one.

mod contents;
mod key;
mod password;
mod seal;

pub(crate) use contents::{Contents, Kept, StoredApplication, StoredCredential, kept};
pub(crate) use key::{KeySource, new_key_file};
pub(crate) use password::StoredPassword;
pub(crate) use seal::Key as VaultKey;

use crate::environment;
use crate::failure::{Failure, code};
use seal::{Key, KeyKind, SealError};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No vault is larger.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
const OWNER_ONLY: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Why a vault cannot be used. No message holds anything that is in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("the vault does not open: wrong passphrase or key; nothing was changed")]
    WrongKey,
    #[error("this vault opens with {0}")]
    OtherKey(&'static str),
    #[error(
        "the vault {0} is damaged: bytes are missing or were changed; put a copy back in its place, \
         or move it away and log in again"
    )]
    Damaged(String),
    #[error("the vault cannot be read by this version; it is as it was")]
    Unreadable,
    #[error("the vault is of version {0}; use a newer Kittiwake, it is as it was")]
    Version(u32),
    #[error("the vault cannot be encrypted; it is as it was")]
    Unwritable,
    #[error("{doing} {path}: {error}; the vault is as it was")]
    File {
        doing: &'static str,
        path: String,
        error: std::io::Error,
    },
}

impl VaultError {
    fn file(doing: &'static str, path: &Path, error: std::io::Error) -> Self {
        Self::File {
            doing,
            path: path.display().to_string(),
            error,
        }
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let code = match error {
            VaultError::WrongKey | VaultError::OtherKey(_) => code::AUTHENTICATION,
            _ => code::OTHER,
        };
        Self {
            message: error.to_string(),
            code,
        }
    }
}

/// A vault and what opens it.
#[derive(Debug, Clone)]
pub(crate) struct Vault {
    path: PathBuf,
    key: Key,
}

/// A vault that nobody else changes until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedVault {
    vault: Vault,
    pub contents: Contents,
    _lock: File,
}

impl Vault {
    /// Where the vault is, whether there is one or not.
    pub(crate) fn place() -> Result<PathBuf, Failure> {
        let path = environment::config_folder()?.join("vault.age");
        // A link to where it really is stays one when the file is replaced.
        Ok(std::fs::canonicalize(&path).unwrap_or(path))
    }

    pub(crate) fn exists() -> bool {
        Self::place().is_ok_and(|path| path.exists())
    }

    /// The vault, with the key that the user gives for it. Whether the key fits is seen when it is
    /// read.
    pub(crate) fn open(source: KeySource<'_>) -> Result<Self, Failure> {
        let path = Self::place()?;
        let kind = match read_bounded(&path)? {
            Some(sealed) => Some(seal::kind_of(&sealed).map_err(|error| unsealed(&path, error))?),
            None => None,
        };
        let key = source.key(kind)?;
        match (kind, key.kind()) {
            (Some(KeyKind::Passphrase), KeyKind::Identity) => {
                Err(VaultError::OtherKey("a passphrase; give it with --passphrase-file").into())
            }
            (Some(KeyKind::Identity), KeyKind::Passphrase) => {
                Err(VaultError::OtherKey("a key; give it with --key-file").into())
            }
            _ => Ok(Self { path, key }),
        }
    }

    /// What opens it, for those who open it again without asking anybody.
    pub(crate) fn key(&self) -> VaultKey {
        self.key.clone()
    }

    /// What is in it; nothing if there is none yet.
    pub(crate) fn read(&self) -> Result<Contents, VaultError> {
        let Some(sealed) = read_bounded(&self.path)? else {
            return Ok(Contents::default());
        };
        let plain =
            seal::unseal(&self.key, &sealed).map_err(|error| unsealed(&self.path, error))?;
        Contents::from_bytes(&plain)
    }

    /// Waits until nobody else changes the vault, and reads it.
    pub(crate) fn lock(&self) -> Result<LockedVault, VaultError> {
        let folder = self.folder();
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(folder)
            .map_err(|error| VaultError::file("cannot make the folder", folder, error))?;
        let path = self.path.with_extension("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY)
            .open(&path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| VaultError::file("cannot lock", &path, error))?;
        Ok(LockedVault {
            contents: self.read()?,
            vault: self.clone(),
            _lock: lock,
        })
    }

    /// Changes the vault, alone.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Contents) -> T,
    ) -> Result<T, VaultError> {
        let mut locked = self.lock()?;
        let changed = change(&mut locked.contents);
        locked.save()?;
        Ok(changed)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

impl LockedVault {
    /// Replaces the file. When this returns, what is in it survives a power cut.
    pub(crate) fn save(&self) -> Result<(), VaultError> {
        let plain = self.contents.to_bytes()?;
        let sealed = seal::seal(&self.vault.key, &plain).map_err(|_| VaultError::Unwritable)?;
        let path = &self.vault.path;
        let beside = path.with_extension("age.new");
        let written = write_synced(&beside, &sealed)
            .and_then(|()| std::fs::rename(&beside, path))
            .and_then(|()| File::open(self.vault.folder())?.sync_all());
        written.map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            VaultError::file("cannot write", path, error)
        })
    }
}

/// A new file for its owner only. What a crash left behind is in the way of nobody: whoever writes
/// holds the lock.
fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn unsealed(path: &Path, error: SealError) -> VaultError {
    match error {
        SealError::WrongKey => VaultError::WrongKey,
        SealError::Damaged => VaultError::Damaged(path.display().to_string()),
        SealError::Unsealable => VaultError::Unwritable,
    }
}

fn read_bounded(path: &Path) -> Result<Option<Vec<u8>>, VaultError> {
    let cannot = |error| VaultError::file("cannot read", path, error);
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(cannot)?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::Secret;
    use std::os::unix::fs::PermissionsExt;

    fn vault(folder: &tempfile::TempDir) -> Vault {
        let (text, _) = seal::new_identity();
        Vault {
            path: folder.path().join("kittiwake/vault.age"),
            key: Key::from_identity_text(text.expose_secret()).unwrap(),
        }
    }

    #[test]
    fn what_is_put_in_comes_out_and_only_the_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(&folder);
        assert!(vault.read().unwrap().urls.is_empty());
        vault
            .change(|contents| {
                let url = Kept(Secret::new("postgres://a:hunter2@h/d"));
                contents.urls.insert("lab".to_owned(), url);
            })
            .unwrap();
        let read = vault.read().unwrap();
        assert_eq!(
            read.urls["lab"].0.expose_secret(),
            "postgres://a:hunter2@h/d"
        );
        assert!(!format!("{read:?} {vault:?}").contains("hunter2"));
        let mode = std::fs::metadata(&vault.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let bytes = std::fs::read(&vault.path).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
    }

    #[test]
    fn many_who_change_it_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(&folder);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let vault = &vault;
                scope.spawn(move || {
                    for number in 0..5 {
                        let url = Kept(Secret::new("u"));
                        let name = format!("{thread}-{number}");
                        vault
                            .change(|contents| contents.urls.insert(name, url))
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(vault.read().unwrap().urls.len(), 40);
    }

    #[test]
    fn what_a_crash_left_beside_it_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(&folder);
        vault.change(|_| ()).unwrap();
        std::fs::write(vault.path.with_extension("age.new"), b"half").unwrap();
        vault
            .change(|contents| contents.urls.insert("a".to_owned(), Kept(Secret::new("u"))))
            .unwrap();
        assert_eq!(vault.read().unwrap().urls.len(), 1);
    }

    #[test]
    fn a_vault_of_another_version_or_shape_is_refused_and_not_repeated() {
        let newer = Contents::from_bytes(br#"{"version":2,"credentials":"hunter2"}"#);
        assert!(matches!(newer, Err(VaultError::Version(2))));
        let odd = Contents::from_bytes(br#"{"version":1,"credentials":"hunter2"}"#);
        assert!(!odd.unwrap_err().to_string().contains("hunter2"));
    }
}
