//! What a request asks for.

use url::form_urlencoded;

use crate::params::Params;

/// The names of all queries that limits can be for.
pub(crate) const QUERIES: [&str; 21] = [
    "lookup",
    "account",
    "accounts",
    "following",
    "followers",
    "timeline",
    "featured_tags",
    "tag_timeline",
    "search",
    "status",
    "statuses",
    "context",
    "reblogged_by",
    "favourited_by",
    "instance",
    "instance_v1",
    "peers",
    "rules",
    "nodeinfo",
    "webfinger",
    "unknown",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Lookup {
        acct: String,
    },
    Account {
        id: String,
    },
    Accounts {
        ids: Vec<String>,
    },
    Following {
        id: String,
    },
    Followers {
        id: String,
    },
    Timeline {
        id: String,
    },
    FeaturedTags {
        id: String,
    },
    TagTimeline {
        tag: String,
    },
    Search {
        query: String,
    },
    Status {
        id: String,
    },
    Statuses {
        ids: Vec<String>,
    },
    Context {
        id: String,
    },
    RebloggedBy {
        id: String,
    },
    FavouritedBy {
        id: String,
    },
    Instance,
    /// The rest up to the limits is served only where there are several instances.
    InstanceV1,
    Peers,
    Rules,
    NodeInfoLinks,
    NodeInfo {
        path: String,
    },
    WebFinger {
        resource: String,
    },
    /// What the caller has left, where limits are declared. Real servers of this dialect have none.
    Limits,
    /// Where a redirect that never ends leads.
    Loop,
    Unknown,
}

impl Route {
    pub(crate) fn read(path: &str, params: &Params) -> Self {
        let ids = || {
            let mut ids: Vec<String> = params.all("id[]").map(str::to_owned).collect();
            ids.extend(params.all("id").map(str::to_owned));
            ids
        };
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        match segments.as_slice() {
            ["api", "v1", "accounts", "lookup"] => Self::Lookup {
                acct: params.get("acct").unwrap_or_default().to_owned(),
            },
            ["api", "v1", "accounts"] => Self::Accounts { ids: ids() },
            ["api", "v1", "accounts", id] => Self::Account {
                id: (*id).to_owned(),
            },
            ["api", "v1", "accounts", id, "following"] => Self::Following {
                id: (*id).to_owned(),
            },
            ["api", "v1", "accounts", id, "followers"] => Self::Followers {
                id: (*id).to_owned(),
            },
            ["api", "v1", "accounts", id, "statuses"] => Self::Timeline {
                id: (*id).to_owned(),
            },
            ["api", "v1", "accounts", id, "featured_tags"] => Self::FeaturedTags {
                id: (*id).to_owned(),
            },
            ["api", "v1", "timelines", "tag", tag] => Self::TagTimeline { tag: decoded(tag) },
            ["api", "v2", "search"] => Self::Search {
                query: params.get("q").unwrap_or_default().to_owned(),
            },
            ["api", "v1", "statuses"] => Self::Statuses { ids: ids() },
            ["api", "v1", "statuses", id] => Self::Status {
                id: (*id).to_owned(),
            },
            ["api", "v1", "statuses", id, "context"] => Self::Context {
                id: (*id).to_owned(),
            },
            ["api", "v1", "statuses", id, "reblogged_by"] => Self::RebloggedBy {
                id: (*id).to_owned(),
            },
            ["api", "v1", "statuses", id, "favourited_by"] => Self::FavouritedBy {
                id: (*id).to_owned(),
            },
            ["api", "v2", "instance"] => Self::Instance,
            ["api", "v1", "instance"] => Self::InstanceV1,
            ["api", "v1", "instance", "peers"] => Self::Peers,
            ["api", "v1", "instance", "rules"] => Self::Rules,
            [".well-known", "nodeinfo"] => Self::NodeInfoLinks,
            ["nodeinfo", _] | ["api", "nodeinfo", _] => Self::NodeInfo {
                path: path.to_owned(),
            },
            [".well-known", "webfinger"] => Self::WebFinger {
                resource: params.get("resource").unwrap_or_default().to_owned(),
            },
            ["api", "v1", "limits"] => Self::Limits,
            ["loop", _] => Self::Loop,
            _ => Self::Unknown,
        }
    }

    /// The name of the query in the ledger.
    pub(crate) const fn query(&self) -> &'static str {
        match self {
            Self::Lookup { .. } => "lookup",
            Self::Account { .. } => "account",
            Self::Accounts { .. } => "accounts",
            Self::Following { .. } => "following",
            Self::Followers { .. } => "followers",
            Self::Timeline { .. } => "timeline",
            Self::FeaturedTags { .. } => "featured_tags",
            Self::TagTimeline { .. } => "tag_timeline",
            Self::Search { .. } => "search",
            Self::Status { .. } => "status",
            Self::Statuses { .. } => "statuses",
            Self::Context { .. } => "context",
            Self::RebloggedBy { .. } => "reblogged_by",
            Self::FavouritedBy { .. } => "favourited_by",
            Self::Instance => "instance",
            Self::InstanceV1 => "instance_v1",
            Self::Peers => "peers",
            Self::Rules => "rules",
            Self::NodeInfoLinks | Self::NodeInfo { .. } => "nodeinfo",
            Self::WebFinger { .. } => "webfinger",
            Self::Limits => "limits",
            Self::Loop => "loop",
            Self::Unknown => "unknown",
        }
    }

    /// Whom or what the query is about; several ids are joined by commas.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Lookup { acct } => acct.clone(),
            Self::Account { id }
            | Self::Following { id }
            | Self::Followers { id }
            | Self::Timeline { id }
            | Self::FeaturedTags { id }
            | Self::Status { id }
            | Self::Context { id }
            | Self::RebloggedBy { id }
            | Self::FavouritedBy { id } => id.clone(),
            Self::TagTimeline { tag } => tag.clone(),
            Self::Search { query } => query.clone(),
            Self::Accounts { ids } | Self::Statuses { ids } => ids.join(","),
            Self::WebFinger { resource } => resource.clone(),
            Self::NodeInfo { path } => path.clone(),
            Self::Instance
            | Self::InstanceV1
            | Self::Peers
            | Self::Rules
            | Self::NodeInfoLinks
            | Self::Limits
            | Self::Loop
            | Self::Unknown => String::new(),
        }
    }

    /// Whether only an instance of a fediverse serves it.
    pub(crate) const fn is_of_a_fediverse(&self) -> bool {
        matches!(
            self,
            Self::NodeInfoLinks | Self::NodeInfo { .. } | Self::WebFinger { .. }
        )
    }

    /// Whether the answer may take long: it is made from many users.
    pub(crate) const fn is_wide(&self) -> bool {
        matches!(self, Self::TagTimeline { .. } | Self::Search { .. })
    }
}

/// A part of a path as it was before it was escaped.
fn decoded(segment: &str) -> String {
    // In a path these three stand for themselves, in a form they would not.
    let form = segment
        .replace('+', "%2B")
        .replace('&', "%26")
        .replace('=', "%3D");
    form_urlencoded::parse(form.as_bytes())
        .next()
        .map_or_else(String::new, |(name, _)| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_take_ids_with_and_without_escapes() {
        let params = Params::read("id%5B%5D=1&id[]=2");
        let route = Route::read("/api/v1/accounts", &params);
        assert_eq!(
            route,
            Route::Accounts {
                ids: vec!["1".to_owned(), "2".to_owned()]
            }
        );
        assert_eq!(
            (route.query(), route.subject().as_str()),
            ("accounts", "1,2")
        );
    }

    #[test]
    fn every_query_is_listed() {
        let paths = [
            "api/v1/accounts/lookup",
            "api/v1/accounts/1",
            "api/v1/accounts",
            "api/v1/accounts/1/following",
            "api/v1/accounts/1/followers",
            "api/v1/accounts/1/statuses",
            "api/v1/accounts/1/featured_tags",
            "api/v1/timelines/tag/a",
            "api/v2/search",
            "api/v1/statuses/1",
            "api/v1/statuses",
            "api/v1/statuses/1/context",
            "api/v1/statuses/1/reblogged_by",
            "api/v1/statuses/1/favourited_by",
            "api/v2/instance",
            "api/v1/instance",
            "api/v1/instance/peers",
            "api/v1/instance/rules",
            "nodeinfo/2.0",
            ".well-known/webfinger",
            "nonsense",
        ];
        let queries = paths.map(|path| {
            let path = format!("/{path}");
            Route::read(&path, &Params::default()).query()
        });
        assert_eq!(queries, QUERIES);
    }

    #[test]
    fn a_slash_at_the_end_does_not_matter_and_unknown_paths_are_unknown() {
        let params = Params::default();
        assert_eq!(Route::read("/api/v2/instance/", &params), Route::Instance);
        assert_eq!(
            Route::read("/api/v1/accounts/1/nonsense", &params),
            Route::Unknown
        );
        assert_eq!(Route::read("", &params), Route::Unknown);
    }

    #[test]
    fn tags_in_paths_are_read_without_escapes() {
        for (path, tag) in [
            ("/api/v1/timelines/tag/caf%C3%A9", "café"),
            ("/api/v1/timelines/tag/a+b&c=d%20e", "a+b&c=d e"),
            ("/api/v1/timelines/tag/%FF%zz", "\u{FFFD}%zz"),
        ] {
            let route = Route::read(path, &Params::default());
            assert_eq!(route.subject(), tag);
        }
    }
}
