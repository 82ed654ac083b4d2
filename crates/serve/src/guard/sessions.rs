//! Who is logged in. What is kept of a session's token is a hash: a copy of this memory lets nobody in.

use crate::Role;
use kittiwake_model::{RealTime, Secret};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Sessions at once; beyond that, whoever was away the longest logs in again.
const SESSIONS_MAX: usize = 1_000;
/// Passwords that programs sent lately.
const KNOWN_MAX: usize = 256;
const SECOND_US: i64 = 1_000_000;
const IDLE_US: i64 = 8 * 3_600 * SECOND_US;
/// In all, however busy it is.
pub(crate) const AGE_MAX_S: i64 = 7 * 24 * 3_600;
/// For how long a password that fitted is not looked at again.
const KNOWN_US: i64 = 10 * 60 * SECOND_US;

/// What a browser shows to be let in.
#[derive(Clone)]
pub(crate) struct Token(pub [u8; 32]);

type Hash = [u8; 32];

#[derive(Debug)]
struct Session {
    role: Role,
    began: RealTime,
    seen: RealTime,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    /// Makes hashes of passwords useless elsewhere.
    salt: [u8; 32],
    open: HashMap<Hash, Session>,
    known: HashMap<Hash, (Role, RealTime)>,
}

impl Sessions {
    pub(crate) fn new(salt: [u8; 32]) -> Self {
        Self {
            salt,
            open: HashMap::new(),
            known: HashMap::new(),
        }
    }

    pub(crate) fn begin(&mut self, token: &Token, role: Role, now: RealTime) {
        self.open.retain(|_, session| session.is_open(now));
        if self.open.len() >= SESSIONS_MAX {
            let longest_away = self.open.iter().min_by_key(|(_, session)| session.seen);
            if let Some(hash) = longest_away.map(|(hash, _)| *hash) {
                self.open.remove(&hash);
            }
        }
        let session = Session {
            role,
            began: now,
            seen: now,
        };
        self.open.insert(hash(&token.0), session);
    }

    pub(crate) fn role(&mut self, token: &Token, now: RealTime) -> Option<Role> {
        let hash = hash(&token.0);
        let session = self.open.get_mut(&hash)?;
        if !session.is_open(now) {
            self.open.remove(&hash);
            return None;
        }
        session.seen = now;
        Some(session.role)
    }

    pub(crate) fn end(&mut self, token: &Token) {
        self.open.remove(&hash(&token.0));
    }

    /// A program sends its password with every request; it is looked at now and then.
    pub(crate) fn remember(&mut self, role: Role, password: &Secret, now: RealTime) {
        self.known.retain(|_, (_, until)| *until > now);
        if self.known.len() < KNOWN_MAX {
            let hash = self.password_hash(role.name(), password);
            self.known.insert(hash, (role, now.plus_us(KNOWN_US)));
        }
    }

    pub(crate) fn known(&self, role: &str, password: &Secret, now: RealTime) -> Option<Role> {
        let known = self.known.get(&self.password_hash(role, password));
        known
            .filter(|(_, until)| *until > now)
            .map(|(role, _)| *role)
    }

    fn password_hash(&self, role: &str, password: &Secret) -> Hash {
        let hasher = Sha256::new()
            .chain_update(self.salt)
            .chain_update(role.as_bytes())
            .chain_update([0])
            .chain_update(password.expose_secret().as_bytes());
        hasher.finalize().into()
    }
}

impl Session {
    fn is_open(&self, now: RealTime) -> bool {
        now.since_us(self.seen) < IDLE_US && now.since_us(self.began) < AGE_MAX_S * SECOND_US
    }
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u16) -> Token {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        Token(bytes)
    }

    #[test]
    fn a_session_ends_when_it_is_idle_or_old_or_ended() {
        let mut sessions = Sessions::new([7; 32]);
        let start = RealTime(0);
        sessions.begin(&token(1), Role::Viewer, start);
        assert_eq!(sessions.role(&token(2), start), None);
        let mut now = start;
        while now.micros() < (AGE_MAX_S - 4 * 3_600) * SECOND_US {
            assert_eq!(sessions.role(&token(1), now), Some(Role::Viewer));
            now = now.plus_us(IDLE_US / 2);
        }
        assert_eq!(
            sessions.role(&token(1), RealTime(AGE_MAX_S * SECOND_US)),
            None
        );
        sessions.begin(&token(3), Role::Operator, start);
        assert_eq!(sessions.role(&token(3), RealTime(IDLE_US)), None);
        sessions.begin(&token(4), Role::Operator, start);
        sessions.end(&token(4));
        assert_eq!(sessions.role(&token(4), start), None);
    }

    #[test]
    fn sessions_stay_few_and_the_longest_away_goes_first() {
        let mut sessions = Sessions::new([7; 32]);
        for number in 0..=SESSIONS_MAX as u16 {
            sessions.begin(&token(number), Role::Viewer, RealTime(i64::from(number)));
        }
        let now = RealTime(SESSIONS_MAX as i64);
        assert_eq!(sessions.role(&token(0), now), None);
        assert_eq!(sessions.role(&token(1), now), Some(Role::Viewer));
        assert_eq!(sessions.open.len(), SESSIONS_MAX);
    }

    #[test]
    fn a_password_is_known_for_its_role_and_for_a_while() {
        let mut sessions = Sessions::new([7; 32]);
        let password = Secret::new("correct horse");
        sessions.remember(Role::Viewer, &password, RealTime(0));
        let known = |role: &str, words: &str, at_us| {
            sessions.known(role, &Secret::new(words), RealTime(at_us))
        };
        assert_eq!(known("viewer", "correct horse", 1), Some(Role::Viewer));
        assert_eq!(known("operator", "correct horse", 1), None);
        assert_eq!(known("viewer", "correct", 1), None);
        assert_eq!(known("viewer", "correct horse", KNOWN_US), None);
    }
}
