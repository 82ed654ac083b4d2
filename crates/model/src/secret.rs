//! A value that must appear in no log, error, URL or file.

use std::fmt;

use zeroize::Zeroizing;

const REDACTED: &str = "***";
/// Values shorter than this are not looked for in texts.
const REDACTED_BYTES_MIN: usize = 6;

/// A secret value. `Debug` prints `***`, there is no `Display`, and the memory is overwritten when
/// it is dropped. The bytes handed to the socket layer are a copy that lives as long as the
/// exchange.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value itself. The name is long so that every use of it is found by a search.
    pub fn expose_secret(&self) -> &str {
        &self.0
    }

    /// Takes the value out of a text, in the forms in which servers repeat what they were sent. Too
    /// short a value is left alone: it would take everything else with it.
    pub fn redact(&self, text: &mut String) {
        for form in self.forms() {
            if text.contains(form.as_str()) {
                *text = text.replace(form.as_str(), REDACTED);
            }
        }
    }

    /// The same for bytes that need not be text.
    pub fn redact_bytes(&self, bytes: &mut Vec<u8>) {
        for form in self.forms() {
            let wanted = form.as_bytes();
            let mut from = 0;
            while let Some(place) = find(&bytes[from..], wanted) {
                let place = from + place;
                bytes.splice(place..place + wanted.len(), REDACTED.bytes());
                from = place + REDACTED.len();
            }
        }
    }

    /// Whether it stands in some bytes, in any of the forms that are taken out of them.
    pub fn stands_in(&self, bytes: &[u8]) -> bool {
        let mut forms = self.forms().into_iter();
        forms.any(|form| find(bytes, form.as_bytes()).is_some())
    }

    /// As it is, percent-encoded, and percent-encoded as forms do it.
    fn forms(&self) -> Vec<Zeroizing<String>> {
        if self.0.len() < REDACTED_BYTES_MIN {
            return Vec::new();
        }
        let mut forms = vec![self.0.clone()];
        for is_plain in [is_unreserved, is_plain_in_form] {
            let encoded = percent_encoded(&self.0, is_plain);
            if !forms.contains(&encoded) {
                forms.push(encoded);
            }
        }
        forms
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

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_plain_in_form(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._*".contains(&byte)
}

fn percent_encoded(text: &str, is_plain: fn(u8) -> bool) -> Zeroizing<String> {
    use fmt::Write as _;
    let mut encoded = Zeroizing::new(String::with_capacity(text.len() * 3));
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
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

    #[test]
    fn a_secret_is_taken_out_of_what_a_server_repeats() {
        let secret = Secret::new("s3cr+t/v4lue");
        let mut text = "bad token s3cr+t/v4lue in ?key=s3cr%2Bt%2Fv4lue&x".to_owned();
        secret.redact(&mut text);
        assert_eq!(text, "bad token *** in ?key=***&x");
        let mut bytes = b"\xff s3cr+t/v4lues3cr+t/v4lue".to_vec();
        secret.redact_bytes(&mut bytes);
        assert_eq!(bytes, b"\xff ******");
        let mut short = "a b".to_owned();
        Secret::new("a").redact(&mut short);
        assert_eq!(short, "a b");
    }
}
