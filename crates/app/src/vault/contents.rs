//! What a vault holds, as versioned JSON.

use super::{StoredPassword, VaultError};
use kittiwake_model::Secret;
use kittiwake_network::auth::Secrets;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// The only version there is.
const VERSION: u32 = 1;

/// Everything in a vault.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    version: u32,
    #[serde(default)]
    pub credentials: Vec<StoredCredential>,
    /// Applications that were registered at hosts, to be used again.
    #[serde(default)]
    pub applications: Vec<StoredApplication>,
    /// URLs that hold a password, by the names that stand for them.
    #[serde(default)]
    pub urls: BTreeMap<String, Kept>,
    /// Hashes of the dashboard's passwords, by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passwords: BTreeMap<String, StoredPassword>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            version: VERSION,
            credentials: Vec::new(),
            applications: Vec::new(),
            urls: BTreeMap::new(),
            passwords: BTreeMap::new(),
        }
    }
}

/// A credential as a log-in left it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCredential {
    pub network: String,
    /// The host as the user calls it.
    pub host: String,
    /// Where it is asked.
    pub base: String,
    /// The account, or a name of the user's choice.
    pub name: String,
    /// Whose it is, as the network says; `None` where nobody was asked.
    #[serde(default)]
    pub account: Option<String>,
    /// The way to log in, by its name in the definition.
    pub method: String,
    pub kind: String,
    /// Tells nothing of the secrets; stands in the ledger and in the query log.
    pub fingerprint: String,
    pub secrets: BTreeMap<String, Kept>,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// When the access token expires, in microseconds since 1970.
    #[serde(default)]
    pub expires_us: Option<i64>,
    /// The origins that it may be sent to.
    pub origins: Vec<String>,
    /// The origins that may see what renews it.
    #[serde(default)]
    pub issuers: Vec<String>,
    pub added_us: i64,
    #[serde(default)]
    pub renewed_us: Option<i64>,
}

impl StoredCredential {
    pub(crate) fn is_for(&self, network: &str, origin: &str) -> bool {
        self.network == network && self.origins.iter().any(|known| known == origin)
    }

    /// Whether both are the same log-in, the later of which counts.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.network, &self.host, &self.name) == (&other.network, &other.host, &other.name)
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let secrets = self.secrets.iter();
        secrets
            .map(|(name, kept)| (name.clone(), kept.0.clone()))
            .collect()
    }
}

/// An application that was registered at a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredApplication {
    pub network: String,
    pub base: String,
    pub method: String,
    pub redirects: Vec<String>,
    pub scopes: Vec<String>,
    pub secrets: BTreeMap<String, Kept>,
}

/// A secret that is written down here and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept(pub Secret);

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}

pub(crate) fn kept(secrets: &Secrets) -> BTreeMap<String, Kept> {
    let secrets = secrets.iter();
    secrets
        .map(|(name, secret)| (name.clone(), Kept(secret.clone())))
        .collect()
}

impl Contents {
    pub(super) fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        const BYTES_FIRST: usize = 64 * 1024;
        let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_FIRST));
        serde_json::to_writer(&mut *bytes, self).map_err(|_| VaultError::Unwritable)?;
        Ok(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, VaultError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        // serde's words would repeat what they stumble over.
        let Version { version } =
            serde_json::from_slice(bytes).map_err(|_| VaultError::Unreadable)?;
        if version != VERSION {
            return Err(VaultError::Version(version));
        }
        serde_json::from_slice(bytes).map_err(|_| VaultError::Unreadable)
    }

    /// Puts a credential in the place of an earlier one of the same account, or adds it.
    pub(crate) fn put(&mut self, credential: StoredCredential) {
        self.credentials.retain(|known| !known.is_same(&credential));
        self.credentials.push(credential);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_shows_everything_shows_no_secret() {
        let secrets = Secrets::from([("access_token".to_owned(), Secret::new("hunter2hunter2"))]);
        let mut contents = Contents::default();
        contents.put(StoredCredential {
            network: "tiny".to_owned(),
            host: "h.example".to_owned(),
            base: "https://h.example/".to_owned(),
            name: "ada".to_owned(),
            account: None,
            method: "user".to_owned(),
            kind: "code".to_owned(),
            fingerprint: "0123".to_owned(),
            secrets: kept(&secrets),
            scopes: Vec::new(),
            expires_us: None,
            origins: vec!["https://h.example".to_owned()],
            issuers: Vec::new(),
            added_us: 0,
            renewed_us: None,
        });
        let bytes = contents.to_bytes().unwrap();
        let read = Contents::from_bytes(&bytes).unwrap();
        assert_eq!(read.credentials[0].secrets(), secrets);
        let caught = std::panic::catch_unwind(|| panic!("{read:?} {secrets:?}"));
        let caught = caught.unwrap_err();
        let said = caught.downcast_ref::<String>().expect("a text");
        assert!(said.contains("ada") && !said.contains("hunter2"), "{said}");
    }
}
