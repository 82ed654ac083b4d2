//! The real server's limits: aligned windows, overlapping buckets, the first full one refuses.
//!
//! A call goes through the buckets that apply to it in a fixed order. Each counts it; the first
//! that is full refuses it, and the buckets after that one do not see it.

use std::collections::HashMap;

use kittiwake_model::clock::LimitTime;
use serde::Serialize;

use super::finished::Finished;
use super::{Announced, Caller, Header, OPEN_WINDOWS_MAX, Refusal};
use crate::world::time::{SECOND_US, iso_us};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub(super) enum Bucket {
    AuthenticatedApi,
    TokenApi,
    UnauthenticatedApi,
    AuthenticatedPaging,
    UnauthenticatedPaging,
}

impl From<Bucket> for &'static str {
    fn from(bucket: Bucket) -> Self {
        match bucket {
            Bucket::AuthenticatedApi => "authenticated_api",
            Bucket::TokenApi => "token_api",
            Bucket::UnauthenticatedApi => "unauthenticated_api",
            Bucket::AuthenticatedPaging => "authenticated_paging",
            Bucket::UnauthenticatedPaging => "unauthenticated_paging",
        }
    }
}

impl Bucket {
    const fn limit(self) -> u64 {
        match self {
            Self::AuthenticatedApi => 1_500,
            Self::TokenApi
            | Self::UnauthenticatedApi
            | Self::AuthenticatedPaging
            | Self::UnauthenticatedPaging => 300,
        }
    }

    const fn period_s(self) -> i64 {
        match self {
            Self::AuthenticatedApi | Self::TokenApi | Self::UnauthenticatedApi => 300,
            Self::AuthenticatedPaging | Self::UnauthenticatedPaging => 900,
        }
    }
}

/// One bucket's account of one caller in one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Window {
    bucket: Bucket,
    /// The user, token or address that the bucket counts for.
    scope: String,
    start_us: i64,
    end_us: i64,
    limit: u64,
    /// Calls that were let through by this bucket.
    used: u64,
    refused: u64,
}

/// What the answer says about limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RateHeaders {
    limit: u64,
    remaining: u64,
    reset: String,
}

impl RateHeaders {
    pub(super) fn headers(&self) -> Vec<Header> {
        vec![
            ("x-ratelimit-limit".into(), self.limit.to_string()),
            ("x-ratelimit-remaining".into(), self.remaining.to_string()),
            ("x-ratelimit-reset".into(), self.reset.clone()),
        ]
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    refused_by: Option<Bucket>,
    headers: Option<RateHeaders>,
}

impl From<Verdict> for super::Verdict {
    fn from(verdict: Verdict) -> Self {
        Self {
            refusal: verdict.refused_by.map(|bucket| Refusal {
                bucket: <&str>::from(bucket).into(),
                status: 429,
                body: None,
            }),
            announced: verdict
                .headers
                .map_or(Announced::Nothing, Announced::Mastodon),
            ..Self::free()
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct MastodonLimiter {
    open: HashMap<(Bucket, String), Window>,
    finished: Finished<Window>,
}

impl MastodonLimiter {
    /// Counts a call and says whether it may pass.
    pub(super) fn admit(&mut self, caller: &Caller, is_paging: bool, now: LimitTime) -> Verdict {
        let mut closest: Option<(Bucket, u64)> = None;
        for (bucket, scope) in buckets(caller, is_paging) {
            let Some(window) = self.window(bucket, scope, now) else {
                return verdict(Some(bucket), bucket, 0, now);
            };
            if window.used >= window.limit {
                window.refused += 1;
                return verdict(Some(bucket), bucket, 0, now);
            }
            window.used += 1;
            let remaining = window.limit - window.used;
            if closest.is_none_or(|(_, least)| remaining < least) {
                closest = Some((bucket, remaining));
            }
        }
        let nothing = Verdict {
            refused_by: None,
            headers: None,
        };
        closest.map_or(nothing, |(bucket, left)| verdict(None, bucket, left, now))
    }

    /// All windows, the oldest first, and how many older ones are not kept.
    pub(super) fn windows(&self) -> (Vec<&Window>, u64) {
        let mut windows: Vec<&Window> = self.finished.kept().chain(self.open.values()).collect();
        windows.sort_unstable_by_key(|window| (window.start_us, window.bucket, &window.scope));
        (windows, self.finished.dropped())
    }

    /// The caller's window; none if too many callers are about.
    fn window(&mut self, bucket: Bucket, scope: &str, now: LimitTime) -> Option<&mut Window> {
        if self.open.len() >= OPEN_WINDOWS_MAX {
            self.finish_all(now);
        }
        let key = (bucket, scope.to_owned());
        let is_full = self.open.len() >= OPEN_WINDOWS_MAX && !self.open.contains_key(&key);
        if is_full {
            return None;
        }
        let fresh = Window::new(bucket, scope, now);
        let window = self.open.entry(key).or_insert_with(|| fresh.clone());
        // A clock that was set back does not open an older window again.
        if fresh.start_us > window.start_us {
            let over = std::mem::replace(window, fresh);
            self.finished.keep(over);
        }
        Some(window)
    }

    fn finish_all(&mut self, now: LimitTime) {
        let over = self
            .open
            .extract_if(|_, window| window.end_us <= now.micros());
        for (_, window) in over {
            self.finished.keep(window);
        }
    }
}

impl Window {
    fn new(bucket: Bucket, scope: &str, now: LimitTime) -> Self {
        let period_us = bucket.period_s() * SECOND_US;
        let start_us = now.micros().div_euclid(period_us) * period_us;
        Self {
            bucket,
            scope: scope.to_owned(),
            start_us,
            end_us: start_us + period_us,
            limit: bucket.limit(),
            used: 0,
            refused: 0,
        }
    }
}

/// The buckets that apply to a call, in the order in which they count it.
fn buckets(caller: &Caller, is_paging: bool) -> Vec<(Bucket, &str)> {
    let mut buckets = match caller {
        Caller::Anonymous { address } => vec![(Bucket::UnauthenticatedApi, address.as_str())],
        Caller::Token { token, user, .. } => {
            vec![
                (Bucket::AuthenticatedApi, user.as_str()),
                (Bucket::TokenApi, token.as_str()),
            ]
        }
    };
    if is_paging {
        buckets.push(match caller {
            Caller::Anonymous { address } => (Bucket::UnauthenticatedPaging, address.as_str()),
            Caller::Token { user, .. } => (Bucket::AuthenticatedPaging, user.as_str()),
        });
    }
    buckets
}

fn verdict(refused_by: Option<Bucket>, bucket: Bucket, remaining: u64, now: LimitTime) -> Verdict {
    let headers = RateHeaders {
        limit: bucket.limit(),
        remaining,
        reset: reset(bucket, now),
    };
    Verdict {
        refused_by,
        headers: Some(headers),
    }
}

/// `now + (period - now mod period)` with now in whole seconds: the fraction of now stays, so the
/// announced instant lies up to a second after the window's real end, as on the real server.
fn reset(bucket: Bucket, now: LimitTime) -> String {
    let now_s = now.micros().div_euclid(SECOND_US);
    let wait_s = bucket.period_s() - now_s.rem_euclid(bucket.period_s());
    iso_us(now.micros() + wait_s * SECOND_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter of a second into a window of either length.
    const START: LimitTime = LimitTime(1_790_000_000_000_000 / 900_000_000 * 900_000_000 + 250_000);

    fn anonymous() -> Caller {
        Caller::Anonymous {
            address: "127.0.0.1".to_owned(),
        }
    }

    fn token(token: &str, user: &str) -> Caller {
        Caller::Token {
            token: token.to_owned(),
            user: user.to_owned(),
            app: token.to_owned(),
            is_of_user: true,
            address: "127.0.0.1".to_owned(),
        }
    }

    #[test]
    fn the_301st_anonymous_call_of_a_window_is_refused() {
        let mut limiter = MastodonLimiter::default();
        for call in 0..300 {
            let verdict = limiter.admit(&anonymous(), false, START);
            assert_eq!(verdict.refused_by, None);
            assert_eq!(verdict.headers.unwrap().remaining, 299 - call);
        }
        let refused = limiter.admit(&anonymous(), false, START);
        assert_eq!(refused.refused_by, Some(Bucket::UnauthenticatedApi));
        let next = LimitTime(limiter.windows().0[0].end_us);
        assert!(
            limiter
                .admit(&anonymous(), false, next.plus_us(-1))
                .refused_by
                .is_some()
        );
        assert_eq!(limiter.admit(&anonymous(), false, next).refused_by, None);
        let (windows, dropped) = limiter.windows();
        assert_eq!((windows.len(), dropped), (2, 0));
        assert_eq!(
            (windows[0].used, windows[0].refused, windows[1].used),
            (300, 2, 1)
        );
    }

    #[test]
    fn windows_are_aligned_and_the_reset_keeps_the_fraction() {
        let mut limiter = MastodonLimiter::default();
        let now = LimitTime(1_790_000_123_456_789);
        let headers = limiter.admit(&anonymous(), false, now).headers.unwrap();
        assert_eq!(limiter.windows().0[0].start_us % 300_000_000, 0);
        assert_eq!(headers.limit, 300);
        assert!(headers.reset.ends_with("5:00.456789Z") || headers.reset.ends_with("0:00.456789Z"));
    }

    #[test]
    fn paging_counts_in_its_own_bucket_too() {
        let mut limiter = MastodonLimiter::default();
        let half = START.plus_us(400_000_000);
        (0..200).for_each(|_| drop(limiter.admit(&anonymous(), true, START)));
        (0..100).for_each(|_| drop(limiter.admit(&anonymous(), true, half)));
        let refused = limiter.admit(&anonymous(), true, half);
        assert_eq!(refused.refused_by, Some(Bucket::UnauthenticatedPaging));
        // The first bucket had counted the call before the second refused it.
        assert_eq!(
            limiter
                .admit(&anonymous(), false, half)
                .headers
                .unwrap()
                .remaining,
            300 - 102
        );
    }

    #[test]
    fn tokens_of_one_user_share_that_users_buckets() {
        let mut limiter = MastodonLimiter::default();
        for name in ["a:1", "a:2", "a:3", "a:4", "a:5"] {
            for _ in 0..300 {
                assert_eq!(
                    limiter.admit(&token(name, "a"), false, START).refused_by,
                    None
                );
            }
        }
        let refused = limiter.admit(&token("a:6", "a"), false, START);
        assert_eq!(refused.refused_by, Some(Bucket::AuthenticatedApi));
        assert_eq!(
            limiter.admit(&token("b", "b"), false, START).refused_by,
            None
        );
    }

    #[test]
    fn headers_describe_the_bucket_closest_to_exhaustion() {
        let mut limiter = MastodonLimiter::default();
        (0..10).for_each(|_| drop(limiter.admit(&token("a:1", "a"), true, START)));
        let headers = limiter
            .admit(&token("a:2", "a"), true, START)
            .headers
            .unwrap();
        assert_eq!((headers.limit, headers.remaining), (300, 289));
    }
}
