//! How far a host is believed, where several are asked.
//!
//! Every host speaks for those who live there. What it tells of others is hearsay: it fills gaps, and
//! says nothing of who is who beyond the best id that it names.

use crate::home::{Address, HomeRule};
use crate::network::{Network, Query, Type};
use kittiwake_model::{Alias, Identity, Object, Standing, Weight};

/// A host that tells something, where others are asked as well.
pub struct Teller<'a> {
    /// The crawl's own host, or one that the definition names: it is believed of whom nobody else
    /// can be asked about, and that a handle is somebody's.
    pub is_trusted: bool,
    /// Whether those who live there are asked for there, and not here.
    pub asks_elsewhere: &'a dyn Fn(&Address) -> bool,
}

impl std::fmt::Debug for Teller<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Teller");
        shown.field("is_trusted", &self.is_trusted);
        shown.finish_non_exhaustive()
    }
}

/// Why an answer is not about the one who was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    Another,
    /// The host claims that a name of its own is somebody's who lives elsewhere.
    LivesElsewhere,
}

impl Stranger {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Another => "the answer is about somebody else",
            Self::LivesElsewhere => "the answer is about somebody who lives elsewhere",
        }
    }
}

impl Network {
    /// Marks what a host tells of objects that live elsewhere, and leaves out the ids that it has
    /// no say in.
    pub(crate) fn doubt(&self, teller: &Teller<'_>, objects: &mut [Object]) {
        for object in objects {
            let Some(kind) = self.find_type(&object.identity.kind) else {
                continue;
            };
            if kind.home.is_empty() {
                continue;
            }
            let home = self.home(&object.identity);
            let is_hearsay = match &home {
                Some(home) => (teller.asks_elsewhere)(home),
                // Whatever it is, it is not said to live here.
                None => !teller.is_trusted,
            };
            if let Some(home) = &home {
                let believed = |alias: &Alias, has_canonical: bool| {
                    self.is_believed(kind, alias, home, teller, is_hearsay && has_canonical)
                };
                let has_canonical = object.identity.canonical.is_some();
                let aliases = &mut object.identity.aliases;
                aliases.retain(|alias| believed(alias, has_canonical));
            }
            let is_gone = matches!(object.standing, Standing::Invalid(_));
            let is_told = object.standing != Standing::Named;
            if is_told && is_hearsay && !(is_gone && teller.is_trusted) {
                object.standing = Standing::Hearsay;
            }
        }
    }

    /// Whether a host can say that an alias is somebody's who lives at `home`. Beside a canonical id
    /// only the home of both can say whose address it is, and the host that the crawl trusts, which has
    /// it from there; a handle is given by the host in it.
    fn is_believed(
        &self,
        kind: &Type,
        alias: &Alias,
        home: &Address,
        teller: &Teller<'_>,
        is_claim: bool,
    ) -> bool {
        let is_address = kind
            .home
            .iter()
            .any(|rule| matches!(rule, HomeRule::Address(name) if *name == alias.name));
        if is_address {
            let is_there = Address::of(&alias.id).is_some_and(|place| place.host == home.host);
            return is_there && (!is_claim || teller.is_trusted);
        }
        if alias.movable && self.is_qualified(kind, alias) && !teller.is_trusted {
            let host = alias.id.rsplit_once('@').map(|(_, host)| host);
            return host.is_some_and(|host| host.eq_ignore_ascii_case(&home.host));
        }
        true
    }

    /// Whether an alias is a name with a host behind it.
    fn is_qualified(&self, kind: &Type, alias: &Alias) -> bool {
        let mut rules = self.shapes[kind.shape].aliases.iter();
        rules.any(|rule| rule.name == alias.name && rule.is_qualified)
    }

    /// Whether an answer to a question about somebody is about somebody else, as far as the ids of the
    /// two tell. By the same rule the store makes one out of two.
    pub(crate) fn is_stranger(
        &self,
        asked: &Identity,
        told: &Identity,
        teller: Option<&Teller<'_>>,
    ) -> Option<Stranger> {
        let shared = asked.shared(told);
        // The question itself says as much as an id that the host gave.
        let proof = shared.max(Weight::Host);
        if asked.weight().min(told.weight()) > proof {
            return Some(Stranger::Another);
        }
        let teller = teller.filter(|teller| shared == Weight::Hint && !teller.is_trusted)?;
        let home = self.home(told)?;
        (teller.asks_elsewhere)(&home).then_some(Stranger::LivesElsewhere)
    }
}

impl Query {
    /// The alias that has to be known of a subject, because nothing else would prove that an answer is
    /// about it.
    pub(crate) fn lacks_proof(&self, subject: &Identity) -> Option<&str> {
        let proof = self.proof.as_ref()?;
        let is_lacking = subject.canonical.is_some() && !subject.has_id(proof);
        is_lacking.then_some(proof)
    }
}
