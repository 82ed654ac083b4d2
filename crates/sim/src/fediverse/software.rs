//! What the servers of a fediverse run, and how that shows.
//!
//! `docs/sim.md` tells for every difference where it is known from.

use serde::Serialize;

use crate::answer::{Answer, JSON};
use crate::mastodon::{Route, VERSION};
use crate::world::dice::{Dice, Purpose};
use crate::world::{HomePlan, IdForm, World};
use crate::{DeclaredLimits, Limits};

const GOTOSOCIAL_LIMITS: &str = include_str!("limits/gotosocial.toml");
const OLD_MASTODON_LIMITS: &str = include_str!("limits/mastodon-3.toml");
const AKKOMA_LIMITS: &str = include_str!("limits/akkoma.toml");
const PIXELFED_LIMITS: &str = include_str!("limits/pixelfed.toml");
/// How many of a thousand hide their lists where that is easily done.
const AKKOMA_HIDDEN_PERMILLE: u64 = 330;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Software {
    Mastodon,
    /// 3.5.
    OldMastodon,
    GoToSocial,
    Akkoma,
    Pixelfed,
}

/// Of ten instances that come one after the other, which runs what.
const SHARES: [Software; 10] = [
    Software::Mastodon,
    Software::Mastodon,
    Software::OldMastodon,
    Software::GoToSocial,
    Software::Akkoma,
    Software::Pixelfed,
    Software::Mastodon,
    Software::Mastodon,
    Software::OldMastodon,
    Software::Mastodon,
];

impl Software {
    pub(crate) const fn of(number: usize) -> Self {
        SHARES[number % SHARES.len()]
    }

    /// The name in nodeinfo.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mastodon | Self::OldMastodon => "mastodon",
            Self::GoToSocial => "gotosocial",
            Self::Akkoma => "akkoma",
            Self::Pixelfed => "pixelfed",
        }
    }

    /// The version in nodeinfo.
    pub(crate) const fn own_version(self) -> &'static str {
        match self {
            Self::Mastodon => VERSION,
            Self::OldMastodon => "3.5.19",
            Self::GoToSocial => "0.19.1",
            Self::Akkoma => "3.15.2",
            Self::Pixelfed => "0.12.5",
        }
    }

    /// Where it comes from, in what the API says about the server.
    pub(crate) const fn source_url(self) -> &'static str {
        match self {
            Self::Mastodon | Self::OldMastodon => "https://github.com/mastodon/mastodon",
            Self::GoToSocial => "https://codeberg.org/superseriousbusiness/gotosocial",
            Self::Akkoma => "https://akkoma.dev/AkkomaGang/akkoma",
            Self::Pixelfed => "https://github.com/pixelfed/pixelfed",
        }
    }

    /// The version in what the API says about the server.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Mastodon | Self::OldMastodon | Self::GoToSocial => self.own_version(),
            Self::Akkoma => "2.7.2 (compatible; Akkoma 3.15.2)",
            Self::Pixelfed => "3.5.3 (compatible; Pixelfed 0.12.5)",
        }
    }

    pub(super) fn home_plan(self, origin: String) -> HomePlan {
        HomePlan {
            origin,
            id_form: match self {
                Self::Mastodon | Self::OldMastodon | Self::Pixelfed => IdForm::Decimal,
                Self::GoToSocial => IdForm::Ulid,
                Self::Akkoma => IdForm::Flake,
            },
            has_named_uris: self != Self::Mastodon,
            has_edits: self != Self::Pixelfed,
            profile_path: match self {
                Self::Mastodon | Self::OldMastodon | Self::GoToSocial => "/@",
                Self::Akkoma => "/users/",
                Self::Pixelfed => "/",
            },
            status_path: match self {
                Self::GoToSocial => "/statuses/",
                _ => "/",
            },
        }
    }

    pub(crate) const fn nodeinfo_path(self) -> &'static str {
        match self {
            Self::Mastodon | Self::OldMastodon | Self::GoToSocial => "/nodeinfo/2.0",
            Self::Akkoma => "/nodeinfo/2.0.json",
            Self::Pixelfed => "/api/nodeinfo/2.0.json",
        }
    }

    /// Whether the software knows a route at all.
    pub(crate) fn has(self, route: &Route) -> bool {
        if let Route::NodeInfo { path } = route {
            return path == self.nodeinfo_path();
        }
        let is_batch = matches!(route, Route::Accounts { .. } | Route::Statuses { .. });
        match self {
            Self::Mastodon => true,
            Self::OldMastodon => !is_batch && *route != Route::Instance,
            Self::GoToSocial => !is_batch,
            Self::Akkoma => !is_batch && !matches!(route, Route::FeaturedTags { .. }),
            Self::Pixelfed => {
                !is_batch
                    && !matches!(
                        route,
                        Route::FeaturedTags { .. } | Route::Instance | Route::Peers | Route::Rules
                    )
            }
        }
    }

    /// Whether only those are answered who show a token.
    pub(crate) const fn needs_token(self, route: &Route) -> bool {
        let is_about_people = !matches!(
            route,
            Route::Instance | Route::Rules | Route::Loop | Route::Limits | Route::Unknown
        ) && !matches!(
            route,
            Route::InstanceV1
                | Route::NodeInfoLinks
                | Route::NodeInfo { .. }
                | Route::WebFinger { .. }
        );
        match self {
            Self::Mastodon | Self::Akkoma => false,
            Self::OldMastodon => matches!(route, Route::Search { .. }),
            Self::GoToSocial => is_about_people,
            Self::Pixelfed => is_about_people && !matches!(route, Route::TagTimeline { .. }),
        }
    }

    /// Whether nothing about people is told without a token.
    pub(crate) const fn is_closed(self) -> bool {
        matches!(self, Self::GoToSocial | Self::Pixelfed)
    }

    /// The answer to a call of a route that there is not.
    pub(crate) fn no_such_route(self) -> Answer {
        let body = match self {
            Self::Mastodon | Self::OldMastodon | Self::Pixelfed => r#"{"error":"Not Found"}"#,
            Self::GoToSocial => r#"{"error":"Not Found: page not found"}"#,
            Self::Akkoma => r#"{"error":"Not implemented"}"#,
        };
        Answer::with_body(404, JSON, body.as_bytes().to_vec())
    }

    pub(crate) const fn accounts_per_page(self) -> usize {
        match self {
            Self::Akkoma => 20,
            _ => 40,
        }
    }

    /// Whether every page that is not empty is said to have a next one.
    pub(crate) const fn ends_with_empty_page(self) -> bool {
        matches!(self, Self::GoToSocial | Self::Akkoma)
    }

    /// Whether somebody's lists are hidden who has a home on such a server, beside those who hide
    /// them everywhere.
    pub(crate) fn hides_lists(self, world: &World, user: u64) -> bool {
        self == Self::Akkoma
            && Dice::new(world.seed(), Purpose::Instance, user, 1).chance(AKKOMA_HIDDEN_PERMILLE)
    }

    /// The limits of such a server in place of those of the newest Mastodon.
    pub(crate) fn limits(self) -> Limits {
        let text = match self {
            Self::Mastodon => return Limits::Strict,
            Self::OldMastodon => OLD_MASTODON_LIMITS,
            Self::GoToSocial => GOTOSOCIAL_LIMITS,
            Self::Akkoma => AKKOMA_LIMITS,
            Self::Pixelfed => PIXELFED_LIMITS,
        };
        // The texts are part of the program, and a test reads them all.
        DeclaredLimits::parse(text).map_or(Limits::Strict, Limits::Declared)
    }
}

#[cfg(test)]
mod tests {
    use kittiwake_model::clock::LimitTime;

    use super::*;
    use crate::limits::{Call, Caller, Limiter};

    #[test]
    fn every_software_has_limits_that_can_be_read() {
        for text in [
            OLD_MASTODON_LIMITS,
            GOTOSOCIAL_LIMITS,
            AKKOMA_LIMITS,
            PIXELFED_LIMITS,
        ] {
            DeclaredLimits::parse(text).unwrap();
        }
        assert!(matches!(Software::Mastodon.limits(), Limits::Strict));
    }

    #[test]
    fn a_gotosocial_server_sends_those_away_who_come_when_too_many_are_served() {
        let mut limiter = Limiter::new(&Software::GoToSocial.limits());
        let caller = Caller::Anonymous {
            address: "127.0.0.1".to_owned(),
        };
        let call = Call {
            caller: &caller,
            query: "account",
            is_paging: false,
        };
        let mut statuses = Vec::new();
        let mut headers = Vec::new();
        for _ in 0..17 {
            let verdict = limiter.admit(call, LimitTime(1_790_000_000_000_000));
            headers = verdict.headers();
            statuses.push(verdict.refusal.map_or(200, |refusal| refusal.status));
        }
        assert_eq!(statuses[..16], [200; 16]);
        assert_eq!(statuses[16], 503);
        assert!(headers.contains(&("retry-after".into(), "30".to_owned())));
    }

    #[test]
    fn half_of_ten_instances_run_the_newest_mastodon_and_six_have_every_software() {
        let count = |wanted| {
            (0..10)
                .filter(|&number| Software::of(number) == wanted)
                .count()
        };
        let shares = [
            Software::Mastodon,
            Software::OldMastodon,
            Software::GoToSocial,
            Software::Akkoma,
            Software::Pixelfed,
        ]
        .map(|software| {
            assert!((0..6).any(|number| Software::of(number) == software));
            count(software)
        });
        assert_eq!(shares, [5, 2, 1, 1, 1]);
    }
}
