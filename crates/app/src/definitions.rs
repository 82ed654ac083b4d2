//! The shipped network definitions, and those of the user.

use crate::failure::Failure;
use kittiwake_network::Network;
use std::io::Read;
use std::path::Path;

/// The most bytes that a definition may have.
const DEFINITION_BYTES_MAX: u64 = 1_048_576;

/// Definitions that are part of the program: (name, text). A new file in `networks/` needs a line
/// here, and nothing else in Rust.
pub(crate) const SHIPPED: &[(&str, &str)] = &[
    // By name.
    ("bluesky", include_str!("../../../networks/bluesky.toml")),
    ("facebook", include_str!("../../../networks/facebook.toml")),
    ("feeds", include_str!("../../../networks/feeds.toml")),
    ("github", include_str!("../../../networks/github.toml")),
    (
        "hackernews",
        include_str!("../../../networks/hackernews.toml"),
    ),
    ("lemmy", include_str!("../../../networks/lemmy.toml")),
    ("mastodon", include_str!("../../../networks/mastodon.toml")),
    ("reddit", include_str!("../../../networks/reddit.toml")),
    ("weibo", include_str!("../../../networks/weibo.toml")),
    ("x", include_str!("../../../networks/x.toml")),
    ("youtube", include_str!("../../../networks/youtube.toml")),
];

/// The text of a shipped definition.
pub(crate) fn shipped(name: &str) -> Option<&'static str> {
    let found = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
    found.map(|(_, text)| *text)
}

/// The names of the shipped definitions, for people.
pub(crate) fn shipped_names() -> String {
    let names: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// The definition of that name, or in that file.
pub(crate) fn find(name: &str) -> Result<Network, Failure> {
    if let Some(text) = shipped(name) {
        return parse(&format!("networks/{name}.toml"), text);
    }
    let path = Path::new(name);
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.exists()
    {
        return read(path);
    }
    Err(Failure::usage(format!(
        "no network {name:?}; shipped are {}, or name a definition file that ends in .toml",
        shipped_names()
    )))
}

/// Reads and checks a definition file.
pub(crate) fn read(path: &Path) -> Result<Network, Failure> {
    let shown = path.display();
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    // Read within a bound: the path may name a device that never ends.
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(DEFINITION_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > DEFINITION_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{shown} has more than {DEFINITION_BYTES_MAX} bytes; a definition has fewer"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage(format!(
            "{shown} is not UTF-8 text; a definition is a TOML file"
        ))
    })?;
    parse(&shown.to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Network, Failure> {
    Network::parse(file, text).map_err(|errors| Failure::usage(errors.to_string()))
}
