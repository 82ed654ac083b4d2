//! Whether several credentials may be used together. Pure.

use std::collections::BTreeSet;

/// What a network's terms say of using several accounts or applications in one crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooling {
    /// Not without the network's word.
    #[default]
    Forbidden,
    /// Everybody who has agreed adds what their own account may do.
    PerConsentingUser,
    Free,
}

/// One credential as far as pooling is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooled<'a> {
    /// Whose it is, if that is known.
    pub account: Option<&'a str>,
    /// The application that it was issued to, if that is known.
    pub application: Option<&'a str>,
}

/// Why credentials may not be used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolingError {
    #[error("its terms do not allow one crawl to use several accounts or applications")]
    Forbidden,
    #[error("its terms want each credential to be another account, and two are of one account")]
    OneAccountTwice,
    #[error("its terms want each credential to be another account, and of some it is not known")]
    AccountUnknown,
}

impl Pooling {
    /// Whether these credentials may be used together. What is not known counts as different
    /// here: who cannot tell that two tokens are of one account may not use both.
    pub fn check(self, credentials: &[Pooled<'_>]) -> Result<(), PoolingError> {
        if credentials.len() < 2 {
            return Ok(());
        }
        match self {
            Self::Free => Ok(()),
            Self::Forbidden => {
                let is_one = is_one(credentials.iter().map(|it| it.account))
                    && is_one(credentials.iter().map(|it| it.application));
                is_one.then_some(()).ok_or(PoolingError::Forbidden)
            }
            Self::PerConsentingUser => {
                let mut accounts = BTreeSet::new();
                for credential in credentials {
                    let account = credential.account.ok_or(PoolingError::AccountUnknown)?;
                    if !accounts.insert(account) {
                        return Err(PoolingError::OneAccountTwice);
                    }
                }
                Ok(())
            }
        }
    }
}

fn is_one<'a>(mut values: impl Iterator<Item = Option<&'a str>>) -> bool {
    match values.next() {
        Some(Some(first)) => values.all(|value| value == Some(first)),
        Some(None) => values.next().is_none(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled<'a>(account: &'a str, application: &'a str) -> Pooled<'a> {
        let known = |text: &'a str| (!text.is_empty()).then_some(text);
        Pooled {
            account: known(account),
            application: known(application),
        }
    }

    #[test]
    fn one_credential_is_no_pool_whatever_is_known_of_it() {
        for pooling in [
            Pooling::Forbidden,
            Pooling::PerConsentingUser,
            Pooling::Free,
        ] {
            assert_eq!(pooling.check(&[]), Ok(()));
            assert_eq!(pooling.check(&[pooled("", "")]), Ok(()));
        }
    }

    #[test]
    fn two_log_ins_of_one_account_and_application_are_no_pool() {
        let forbidden = Pooling::Forbidden;
        let twice = [pooled("ada", "gulls"), pooled("ada", "gulls")];
        assert_eq!(forbidden.check(&twice), Ok(()));
        for other in [
            pooled("bob", "gulls"),
            pooled("ada", "terns"),
            pooled("", "gulls"),
            pooled("ada", ""),
        ] {
            let both = [pooled("ada", "gulls"), other];
            assert_eq!(forbidden.check(&both), Err(PoolingError::Forbidden));
            let back = [other, pooled("ada", "gulls")];
            assert_eq!(forbidden.check(&back), Err(PoolingError::Forbidden));
        }
        let unknown = [pooled("", ""), pooled("", "")];
        assert_eq!(forbidden.check(&unknown), Err(PoolingError::Forbidden));
        assert_eq!(Pooling::Free.check(&unknown), Ok(()));
    }

    #[test]
    fn those_who_agreed_bring_one_account_each() {
        let consenting = Pooling::PerConsentingUser;
        let two = [pooled("ada", "gulls"), pooled("bob", "gulls")];
        assert_eq!(consenting.check(&two), Ok(()));
        let twice = [pooled("ada", "gulls"), pooled("ada", "terns")];
        assert_eq!(consenting.check(&twice), Err(PoolingError::OneAccountTwice));
        let unknown = [pooled("ada", "gulls"), pooled("", "gulls")];
        assert_eq!(
            consenting.check(&unknown),
            Err(PoolingError::AccountUnknown)
        );
    }
}
