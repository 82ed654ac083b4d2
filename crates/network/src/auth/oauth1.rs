//! OAuth 1.0a: every request is signed (RFC 5849, HMAC-SHA1).

use super::{MissingSecret, Secrets, secret, secret_names};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, Mac};
use kittiwake_model::Secret;
use sha1::Sha1;
use std::fmt::Write;
use url::Url;

/// The four keys of a signature.
#[derive(Debug, Clone)]
pub struct OAuth1Keys {
    pub consumer_key: Secret,
    pub consumer_secret: Secret,
    pub token: Secret,
    pub token_secret: Secret,
}

impl OAuth1Keys {
    pub(super) fn of(secrets: &Secrets) -> Result<Self, MissingSecret> {
        let get = |name| secret(secrets, name).cloned();
        Ok(Self {
            consumer_key: get(secret_names::CONSUMER_KEY)?,
            consumer_secret: get(secret_names::CONSUMER_SECRET)?,
            token: get(secret_names::TOKEN)?,
            token_secret: get(secret_names::TOKEN_SECRET)?,
        })
    }
}

/// When a request is signed, and a word that no other request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub unix_s: i64,
    pub nonce: String,
}

/// The value of `Authorization` for a request without a form in its body.
pub fn authorization(keys: &OAuth1Keys, method: &str, url: &Url, stamp: &Stamp) -> Secret {
    let time = stamp.unix_s.to_string();
    let protocol = [
        ("oauth_consumer_key", keys.consumer_key.expose_secret()),
        ("oauth_nonce", &stamp.nonce),
        ("oauth_signature_method", "HMAC-SHA1"),
        ("oauth_timestamp", &time),
        ("oauth_token", keys.token.expose_secret()),
        ("oauth_version", "1.0"),
    ];
    let base = signature_base(method, url, &protocol);
    let signature = sign(&keys.consumer_secret, &keys.token_secret, &base);
    let mut header = String::from("OAuth ");
    for (name, value) in protocol {
        let _ = write!(header, "{name}=\"{}\", ", encode(value));
    }
    let _ = write!(header, "oauth_signature=\"{}\"", encode(&signature));
    Secret::new(header)
}

/// The text that is signed (RFC 5849, section 3.4.1): method, address and all parameters, those of
/// the query and of the protocol and, where there is one, of the form.
pub fn signature_base(method: &str, url: &Url, protocol: &[(&str, &str)]) -> String {
    let query = url.query_pairs();
    let mut pairs: Vec<(String, String)> = query
        .map(|(name, value)| (encode(&name), encode(&value)))
        .chain(
            protocol
                .iter()
                .map(|(name, value)| (encode(name), encode(value))),
        )
        .collect();
    pairs.sort();
    let joined: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "{}&{}&{}",
        method.to_ascii_uppercase(),
        encode(&base_address(url)),
        encode(&joined.join("&"))
    )
}

/// Scheme, host and path; the port where it is not the usual one.
fn base_address(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}{}", url.scheme(), url.path()),
        None => format!("{}://{host}{}", url.scheme(), url.path()),
    }
}

fn sign(consumer_secret: &Secret, token_secret: &Secret, base: &str) -> String {
    let key = Secret::new(format!(
        "{}&{}",
        encode(consumer_secret.expose_secret()),
        encode(token_secret.expose_secret())
    ));
    // Keys of any length are taken.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key.expose_secret().as_bytes()) else {
        return String::new();
    };
    mac.update(base.as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

/// Percent-encoding as section 3.6 has it: only letters, digits and `-._~` stay.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5849, section 3.4.1.1: the request and the text that has to be signed.
    #[test]
    fn the_text_of_the_specification_is_made() {
        let url = Url::parse("http://example.com/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b").unwrap();
        let protocol = [
            ("oauth_consumer_key", "9djdj82h48djs9d2"),
            ("oauth_token", "kkk9d7dh3k39sjv7"),
            ("oauth_signature_method", "HMAC-SHA1"),
            ("oauth_timestamp", "137131201"),
            ("oauth_nonce", "7d8f3e4a"),
            // The form of the request's body: `c2&a3=2+q`.
            ("c2", ""),
            ("a3", "2 q"),
        ];
        assert_eq!(
            signature_base("POST", &url, &protocol),
            "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D\
             %253D%25253D%26c%2540%3D%26c2%3D%26oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce\
             %3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131201%26\
             oauth_token%3Dkkk9d7dh3k39sjv7"
        );
    }

    /// RFC 5849, section 1.2: the request for a protected photo and its signature.
    #[test]
    fn the_photo_of_the_specification_is_signed() {
        let url =
            Url::parse("http://photos.example.net/photos?file=vacation.jpg&size=original").unwrap();
        let protocol = [
            ("oauth_consumer_key", "dpf43f3p2l4k3l03"),
            ("oauth_token", "nnch734d00sl2jdk"),
            ("oauth_signature_method", "HMAC-SHA1"),
            ("oauth_timestamp", "137131202"),
            ("oauth_nonce", "chapoH"),
        ];
        let base = signature_base("GET", &url, &protocol);
        let signature = sign(
            &Secret::new("kd94hf93k423kf44"),
            &Secret::new("pfkkdhi9sl3r4s00"),
            &base,
        );
        assert_eq!(signature, "MdpQcU8iPSUjWoN/UDMsK2sui9I=");
    }

    fn published_keys() -> OAuth1Keys {
        OAuth1Keys {
            consumer_key: Secret::new("xvz1evFS4wEEPTGEFPHBog"),
            consumer_secret: Secret::new("kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw"),
            token: Secret::new("370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb"),
            token_secret: Secret::new("LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE"),
        }
    }

    /// The parameters of the published example.
    const PUBLISHED: [(&str, &str); 7] = [
        (
            "status",
            "Hello Ladies + Gentlemen, a signed OAuth request!",
        ),
        ("oauth_consumer_key", "xvz1evFS4wEEPTGEFPHBog"),
        ("oauth_nonce", "kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg"),
        ("oauth_signature_method", "HMAC-SHA1"),
        ("oauth_timestamp", "1318622958"),
        (
            "oauth_token",
            "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb",
        ),
        ("oauth_version", "1.0"),
    ];

    /// X's documentation, "Creating a signature": a post with a form.
    #[test]
    fn the_published_example_of_a_post_is_signed() {
        let url = Url::parse("https://api.x.com/1.1/statuses/update.json?include_entities=true");
        let keys = published_keys();
        let base = signature_base("post", &url.unwrap(), &PUBLISHED);
        let signature = sign(&keys.consumer_secret, &keys.token_secret, &base);
        assert_eq!(signature, "Ls93hJiZbQ3akF3HF3x1Bz8/zU4=");
    }

    #[test]
    fn the_older_address_gives_the_older_published_signature() {
        let url =
            Url::parse("https://api.twitter.com/1.1/statuses/update.json?include_entities=true");
        let keys = published_keys();
        let base = signature_base("POST", &url.unwrap(), &PUBLISHED);
        let signature = sign(&keys.consumer_secret, &keys.token_secret, &base);
        assert_eq!(signature, "hCtSmYh+iHYCEqBWrE7C7hYmtUk=");
    }

    #[test]
    fn the_header_holds_every_part_and_shows_nothing() {
        let stamp = Stamp {
            unix_s: 1_318_622_958,
            nonce: "abc".to_owned(),
        };
        let url = Url::parse("https://api.example:8443/a?q=%C3%A9&b=x+y").unwrap();
        let header = authorization(&published_keys(), "GET", &url, &stamp);
        let text = header.expose_secret();
        assert!(text.starts_with("OAuth oauth_consumer_key=\"xvz1evFS4wEEPTGEFPHBog\", "));
        assert!(text.contains("oauth_timestamp=\"1318622958\""));
        assert!(text.contains("oauth_signature=\""));
        assert_eq!(format!("{header:?}"), "***");
        let base = signature_base("GET", &url, &[]);
        assert_eq!(
            base,
            "GET&https%3A%2F%2Fapi.example%3A8443%2Fa&b%3Dx%2520y%26q%3D%25C3%25A9"
        );
    }
}
