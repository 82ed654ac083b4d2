//! What a URL says about encryption.

use super::check::{Check, Verifier};
use super::roots::{self, RootsWish};
use super::stream::Connector;
use crate::{StoreError, StoreErrorKind};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};

/// How much encryption is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TlsMode {
    Disable,
    /// With it if the server can, else without.
    #[default]
    Prefer,
    Require,
    /// The certificate has to come from a root that is trusted.
    VerifyCa,
    /// And it has to be that of the host.
    VerifyFull,
}

impl TlsMode {
    const NAMES: [(&str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    fn of(name: &str) -> Result<Self, StoreError> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            unreadable("sslmode is one of disable, prefer, require, verify-ca and verify-full")
        })
    }
}

/// What a URL asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::postgres) struct TlsWish {
    pub(super) mode: TlsMode,
    pub(super) roots: Option<RootsWish>,
}

impl TlsWish {
    fn new(mode: Option<TlsMode>, roots: Option<RootsWish>) -> Result<Self, StoreError> {
        if roots != Some(RootsWish::System) {
            let mode = mode.unwrap_or_default();
            return Ok(Self { mode, roots });
        }
        // Anybody gets a certificate from one of the system's roots, so only its name says anything.
        match mode {
            None | Some(TlsMode::VerifyFull) => Ok(Self {
                mode: TlsMode::VerifyFull,
                roots,
            }),
            Some(_) => Err(unreadable(
                "sslrootcert=system goes with sslmode=verify-full only",
            )),
        }
    }

    /// What makes encrypted connections, unless they are to be without. Roots are read now.
    pub(in crate::postgres) fn connector(
        &self,
        config: &mut Config,
    ) -> Result<Option<Connector>, StoreError> {
        name_addresses(config);
        if self.mode == TlsMode::Disable || is_on_this_machine(config) {
            config.ssl_mode(SslMode::Disable);
            return Ok(None);
        }
        config.ssl_mode(match self.mode {
            TlsMode::Disable | TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let is_direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let connector = Connector::new(Verifier::new(self.check()?), is_direct)?;
        Ok(Some(connector))
    }

    fn check(&self) -> Result<Check, StoreError> {
        match (self.mode, &self.roots) {
            (TlsMode::VerifyFull, roots) => roots::read(roots.as_ref()).map(Check::RootAndName),
            (TlsMode::VerifyCa, roots) => roots::read(roots.as_ref()).map(Check::Root),
            // As libpq does: whoever gives a root wants it looked at.
            (_, Some(given)) => roots::read(Some(given)).map(Check::Root),
            (_, None) => Ok(Check::Nothing),
        }
    }

    pub(in crate::postgres) fn is_disabled(&self) -> bool {
        self.mode == TlsMode::Disable
    }

    /// Whether a connection may be made without encryption after one with it has failed. Whoever
    /// gives a root does not want that.
    pub(in crate::postgres) fn may_do_without(&self) -> bool {
        self.mode == TlsMode::Prefer && self.roots.is_none()
    }
}

/// A host that is given by its address alone is known by it, to its certificate too.
fn name_addresses(config: &mut Config) {
    if config.get_hosts().is_empty() {
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
}

/// No server encrypts on local sockets; libpq does not ask for it either.
fn is_on_this_machine(config: &Config) -> bool {
    config.get_hostaddrs().is_empty()
        && config.get_hosts().iter().all(|host| match host {
            Host::Tcp(_) => false,
            #[cfg(unix)]
            Host::Unix(_) => true,
        })
}

/// Takes `sslmode` and `sslrootcert` out of a URL: whoever reads the rest does not know all of them.
/// Gives the rest, and what they say.
pub(in crate::postgres) fn take_wish(url: &str) -> Result<(String, TlsWish), StoreError> {
    let Some((before, parameters)) = split(url) else {
        return Ok((url.to_owned(), TlsWish::default()));
    };
    let (mut mode, mut roots) = (None, None);
    let mut kept = Vec::new();
    let mut rest = parameters;
    while !rest.is_empty() {
        let (parameter, after) = take_parameter(rest);
        rest = after;
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        // The last word holds, as everywhere.
        match &*percent_decode_str(name).decode_utf8_lossy() {
            "sslmode" if parameter.contains('=') => mode = Some(TlsMode::of(&decoded(value)?)?),
            "sslrootcert" if parameter.contains('=') => roots = Some(named_roots(value)?),
            _ => kept.push(parameter),
        }
    }
    let kept = kept.join("&");
    let mark = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{before}{mark}{kept}"), TlsWish::new(mode, roots)?))
}

/// What is before the question mark of the parameters and what is after it. A password may have
/// question marks, too: it goes up to the first `@`.
fn split(url: &str) -> Option<(&str, &str)> {
    let after_password = url.find('@').map_or(0, |place| place + 1);
    let mark = after_password + url[after_password..].find('?')?;
    Some((&url[..mark], &url[mark + 1..]))
}

/// The first parameter and what comes after it. A name goes up to `=`, whatever is in it: that is how
/// the rest is read, and both have to see the same.
fn take_parameter(parameters: &str) -> (&str, &str) {
    let value = parameters.find('=').unwrap_or(parameters.len());
    match parameters[value..].find('&') {
        Some(length) => (
            &parameters[..value + length],
            &parameters[value + length + 1..],
        ),
        None => (parameters, ""),
    }
}

fn named_roots(value: &str) -> Result<RootsWish, StoreError> {
    match &*decoded(value)? {
        // A variable that was not set, perhaps: no reason to trust everybody.
        "" => Err(unreadable(
            "sslrootcert names no file; name one, or leave it out",
        )),
        "system" => Ok(RootsWish::System),
        path => Ok(RootsWish::File(PathBuf::from(path))),
    }
}

fn decoded(value: &str) -> Result<String, StoreError> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(std::borrow::Cow::into_owned)
        .map_err(|_| unreadable("sslmode or sslrootcert is not UTF-8"))
}

/// Says it without the URL, which may hold a password.
fn unreadable(what: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Missing,
        format!("the URL of the database cannot be read: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wish(mode: TlsMode, file: Option<&str>) -> TlsWish {
        let roots = file.map(|file| RootsWish::File(PathBuf::from(file)));
        TlsWish { mode, roots }
    }

    #[track_caller]
    fn assert_taken(url: &str, rest: &str, wanted: TlsWish) {
        assert_eq!(take_wish(url).unwrap(), (rest.to_owned(), wanted), "{url}");
    }

    #[test]
    fn what_a_url_says_of_encryption_is_taken_out() {
        let plain = "postgres://alice@h/d";
        assert_taken(plain, plain, TlsWish::default());
        for (name, mode) in TlsMode::NAMES {
            let url = format!("{plain}?sslmode={name}");
            assert_taken(&url, plain, wish(mode, None));
        }
        assert_taken(
            "postgres://h/d?a=1&sslmode=verify-full&b=%26&sslrootcert=%2Fmy%20ca.pem&c=?",
            "postgres://h/d?a=1&b=%26&c=?",
            wish(TlsMode::VerifyFull, Some("/my ca.pem")),
        );
        assert_taken(
            "postgres://h/d?sslrootcert=ca.pem",
            "postgres://h/d",
            wish(TlsMode::Prefer, Some("ca.pem")),
        );
    }

    #[test]
    fn strange_urls_are_read_as_the_rest_of_them_is() {
        let default = TlsWish::default;
        // The last word holds; a name may be escaped.
        assert_taken(
            "postgres://h?sslmode=disable&ssl%6Dode=require&",
            "postgres://h",
            wish(TlsMode::Require, None),
        );
        // Not parameters, but parts of a password, a name and a value.
        for url in [
            "postgres://alice:x?sslmode=disable@h/d",
            "postgres://h/d?a&sslmode=disable",
            "postgres://h/d?a=sslmode=disable",
            "postgres://h/d?sslmode",
            "postgres://h/d?a=1&sslrootcert",
            "postgres://h/d?%FF=1",
            "",
            "@",
        ] {
            assert_taken(url, url, default());
        }
        assert_taken("postgres://h/d?", "postgres://h/d", default());
        assert_taken(
            "postgres://alice:x?y@h/d?sslmode=require",
            "postgres://alice:x?y@h/d",
            wish(TlsMode::Require, None),
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_showing_it() {
        for (parameters, words) in [
            ("sslmode=s3cret", "verify-full"),
            ("sslmode=", "verify-full"),
            ("sslmode=Require", "verify-full"),
            ("sslmode=%FF", "UTF-8"),
            ("sslrootcert=", "names no file"),
            ("sslrootcert=system&sslmode=require", "verify-full only"),
        ] {
            let url = format!("postgres://alice:s3cret@h/d?{parameters}");
            let error = take_wish(&url).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn the_roots_of_the_system_go_with_the_whole_check() {
        for url in [
            "postgres://h/d?sslrootcert=system",
            "postgres://h/d?sslmode=verify-full&sslrootcert=system",
        ] {
            let (_, wish) = take_wish(url).unwrap();
            assert_eq!(wish.mode, TlsMode::VerifyFull);
            assert_eq!(wish.roots, Some(RootsWish::System));
        }
    }

    #[test]
    fn only_a_mere_preference_may_do_without() {
        assert!(TlsWish::default().may_do_without());
        assert!(!wish(TlsMode::Prefer, Some("ca.pem")).may_do_without());
        for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
            assert!(!wish(mode, None).may_do_without());
        }
    }

    #[test]
    fn local_sockets_are_not_encrypted_and_addresses_have_names() {
        for (url, mode, hosts) in [
            ("postgres://a@%2Ftmp/d", SslMode::Disable, 1),
            ("postgres://a@h/d", SslMode::Require, 1),
            ("postgres://a@%2Ftmp,h/d", SslMode::Require, 2),
            ("postgres:///d?hostaddr=127.0.0.1", SslMode::Require, 1),
        ] {
            let mut config: Config = url.parse().unwrap();
            let connector = wish(TlsMode::Require, None).connector(&mut config);
            assert_eq!(connector.unwrap().is_some(), mode == SslMode::Require);
            assert_eq!(config.get_ssl_mode(), mode, "{url}");
            assert_eq!(config.get_hosts().len(), hosts, "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_url_brings_it_down(url in "(postgres://)?([a@?=&%:/]|ssl(mode|rootcert)=?|require|\\PC){0,12}") {
            if let Ok((rest, _)) = take_wish(&url) {
                // Nothing is left, and nothing else is touched.
                prop_assert_eq!(take_wish(&rest).unwrap(), (rest.clone(), TlsWish::default()));
            }
        }
    }
}
