//! Asking and answering without a server.

use kittiwake_model::{Alias, Group, Identity, Key, Object, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading, RequestPlan};
use std::path::PathBuf;
use url::Url;

pub(crate) const HOST: &str = "sea.example";

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every definition in `networks/`, by name.
pub(crate) fn shipped() -> Vec<Network> {
    let files = std::fs::read_dir(root().join("networks")).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.display().to_string();
        Network::parse(&name, &text).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let networks: Vec<Network> = paths.iter().map(read).collect();
    assert!(!networks.is_empty(), "there are no definitions");
    networks
}

pub(crate) fn mastodon() -> Network {
    let path = root().join("networks/mastodon.toml");
    let text = std::fs::read_to_string(path).unwrap();
    Network::parse("mastodon.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn base() -> Url {
    Url::parse(&format!("https://{HOST}")).unwrap()
}

pub(crate) fn subject(kind: &str, id: &str) -> Identity {
    Identity {
        network: "mastodon".into(),
        kind: kind.into(),
        canonical: None,
        aliases: vec![Alias {
            name: "id".into(),
            id: id.to_owned(),
            host: HOST.to_owned(),
            movable: false,
        }],
    }
}

/// What a query about this type is asked about: the object 7, or what can only be named by a seed
/// or by the host.
pub(crate) fn asked_about(network: &Network, kind: &str) -> Identity {
    match kind {
        "tag" => network.seed("#Birds", HOST).unwrap(),
        "search" => network.seed("search:grey gulls", HOST).unwrap(),
        "instance" => network.host_identity(HOST).unwrap(),
        "user" => {
            let mut user = network.seed("ann@sea.example", HOST).unwrap();
            user.aliases.extend(subject(kind, "7").aliases);
            user
        }
        _ => subject(kind, "7"),
    }
}

pub(crate) fn plan(
    network: &Network,
    query: &str,
    page: Page<'_>,
    authenticated: bool,
) -> RequestPlan {
    let query = network.query(query).unwrap();
    let identity = asked_about(network, &query.kind);
    let ask = Ask {
        query,
        base: &base(),
        host: HOST,
        subjects: &[&identity],
        page,
        authenticated,
    };
    network.request(&ask).unwrap()
}

/// An answer to a query about the object 7, or the like (key 1).
pub(crate) struct Sent<'a> {
    pub(crate) query: &'a str,
    pub(crate) page: Page<'a>,
    pub(crate) status: u16,
    pub(crate) link: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

impl<'a> Sent<'a> {
    pub(crate) fn ok(query: &'a str, body: &'a [u8]) -> Self {
        Self {
            query,
            page: Page::First,
            status: 200,
            link: None,
            body,
        }
    }

    pub(crate) fn read(&self, network: &Network) -> Reading {
        let query = network.query(self.query).unwrap();
        let identity = asked_about(network, &query.kind);
        let base = base();
        let url = plan(network, self.query, self.page, false).url;
        network.read(&Answer {
            query,
            base: &base,
            host: HOST,
            subjects: &[(Key(1), &identity)],
            page: self.page,
            url: &url,
            status: self.status,
            header: &|name| {
                assert!(matches!(name, "link" | "content-type"), "{name}");
                self.link.filter(|_| name == "link").map(str::to_owned)
            },
            body: self.body,
            walk: Some(3),
        })
    }
}

pub(crate) fn field<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    object
        .groups
        .iter()
        .flat_map(|Group { fields, .. }| fields)
        .find(|(known, _)| &**known == name)
        .map(|(_, value)| value)
}
