//! A value that must appear in no log, error, URL or file.

use std::fmt;

use zeroize::Zeroizing;

/// A secret value. `Debug` prints `***`, there is no `Display`, and the memory is overwritten when
/// it is dropped. The bytes handed to the socket layer are a copy that lives as long as the
/// exchange.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value itself. The name is long so that every use of it is found by a search.
    pub fn expose_secret(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_stars() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(
            format!("{:?}", vec![("authorization", &secret)]),
            r#"[("authorization", ***)]"#
        );
        assert_eq!(secret.expose_secret(), "hunter2");
    }
}
