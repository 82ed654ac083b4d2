//! Answers and what they are read as, kept beside every definition; `networks/samples/README.md`
//! says how they are named.

use crate::support::{base, mastodon, root, shipped};
use kittiwake_model::{Alias, Identity, Key};
use kittiwake_network::{Answer, Ask, Network, Page, Query, Reading, RequestPlan};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// `samples.toml`: what holds for all samples of a network.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Common {
    /// The host that is asked, of networks with many.
    #[serde(default)]
    host: String,
    /// What queries about a type are asked about.
    #[serde(default)]
    subjects: BTreeMap<String, Named>,
    /// Queries of robots without a sample, each with the reason.
    #[serde(default)]
    pub(crate) unsampled: BTreeMap<String, String>,
}

/// `QUERY-variant.ask.toml`: what is special about one answer and its question.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Special {
    /// What is asked about, in place of what `samples.toml` says.
    subjects: Option<Vec<Named>>,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The token of the page that is asked for.
    page: Option<String>,
    /// The mark that an incremental walk begins at.
    since: Option<String>,
    /// Why it cannot be held against the rules as a tree.
    uncovered: Option<String>,
}

/// An object that is asked about.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Named {
    /// As users name it.
    Seed(String),
    /// By its aliases, and `canonical`.
    Ids(BTreeMap<String, String>),
}

/// A file with an answer.
struct Sample {
    file: String,
    stem: String,
    query: String,
    body: Vec<u8>,
    special: Special,
}

/// All samples of one network.
pub(crate) struct Samples {
    folder: PathBuf,
    pub(crate) common: Common,
    all: Vec<Sample>,
}

impl Samples {
    pub(crate) fn of(name: &str) -> Self {
        let folder = root().join("networks/samples").join(name);
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut samples = Self {
            common: toml_of(&folder.join("samples.toml")),
            folder,
            all: Vec::new(),
        };
        let is_other = |file: &str| {
            matches!(file, "README.md" | "samples.toml")
                || file.ends_with(".expected.json")
                || file.ends_with(".ask.toml")
        };
        for file in files.iter().filter(|file| !is_other(file)) {
            let (stem, _) = file.split_once('.').unwrap_or((file, ""));
            let (query, _) = stem.split_once('-').unwrap_or((stem, ""));
            samples.all.push(Sample {
                stem: stem.to_owned(),
                query: query.to_owned(),
                body: std::fs::read(samples.folder.join(file)).unwrap(),
                special: toml_of(&samples.folder.join(format!("{stem}.ask.toml"))),
                file: format!("{name}/{file}"),
            });
        }
        let stems: BTreeSet<&str> = samples.all.iter().map(|one| one.stem.as_str()).collect();
        assert_eq!(stems.len(), samples.all.len(), "two samples of one name");
        for file in files.iter().filter(|file| is_other(file)) {
            let owner = file.strip_suffix(".expected.json");
            let owner = owner.or_else(|| file.strip_suffix(".ask.toml"));
            let is_owned = owner.is_none_or(|stem| stems.contains(stem));
            assert!(is_owned, "{name}/{file} belongs to no sample");
        }
        samples
    }

    /// The queries that have one.
    pub(crate) fn queries(&self) -> BTreeSet<&str> {
        self.all.iter().map(|one| one.query.as_str()).collect()
    }

    fn subject(&self, network: &Network, kind: &str, named: &Named) -> Identity {
        let host = self.host(network);
        match named {
            Named::Seed(seed) => {
                let identity = network.seed(seed, &host);
                let identity = identity.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(&*identity.kind, kind, "{seed} names another type");
                identity
            }
            Named::Ids(ids) => identity_of(network, kind, ids, &host),
        }
    }

    fn host(&self, network: &Network) -> String {
        // Nobody is asked for all.
        if network.asks_subjects() {
            return String::new();
        }
        let fixed = network.base("").ok();
        let fixed = fixed.and_then(|base| base.host_str().map(str::to_owned));
        fixed.unwrap_or_else(|| self.common.host.clone())
    }

    fn subjects(&self, network: &Network, query: &Query, sample: &Sample) -> Vec<Identity> {
        if let Some(named) = &sample.special.subjects {
            let named = named.iter();
            return named
                .map(|named| self.subject(network, &query.kind, named))
                .collect();
        }
        if let Some(named) = self.common.subjects.get(&*query.kind) {
            return vec![self.subject(network, &query.kind, named)];
        }
        let host = network.host_identity(&self.host(network));
        let host = host.filter(|identity| identity.kind == query.kind);
        let host = host.unwrap_or_else(|| {
            panic!(
                "{}: samples.toml names no {}",
                self.folder.display(),
                query.kind
            )
        });
        vec![host]
    }

    /// Asks and reads one sample.
    fn read(&self, network: &Network, sample: &Sample) -> (RequestPlan, Reading) {
        let query = network.query(&sample.query);
        let query = query.unwrap_or_else(|| panic!("{}: there is no such query", sample.file));
        let host = self.host(network);
        let base = network.base(&host).unwrap();
        let subjects = self.subjects(network, query, sample);
        let special = &sample.special;
        let page = match (&special.page, &special.since) {
            (Some(token), _) => Page::Next(token),
            (None, Some(mark)) => Page::Since(mark),
            (None, None) => Page::First,
        };
        let plan = network.request(&Ask {
            query,
            base: &base,
            host: &host,
            subjects: &subjects.iter().collect::<Vec<_>>(),
            page,
            authenticated: true,
        });
        let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", sample.file));
        let keyed: Vec<(Key, &Identity)> = (1..).map(Key).zip(&subjects).collect();
        let reading = network.read(&Answer {
            query,
            base: &base,
            host: &host,
            subjects: &keyed,
            page,
            url: &plan.url,
            status: special.status.unwrap_or(200),
            header: &|name| special.headers.get(name).cloned(),
            body: &sample.body,
            walk: Some(3),
        });
        (plan, reading)
    }
}

fn toml_of<T: Default + for<'de> Deserialize<'de>>(path: &std::path::Path) -> T {
    let Ok(text) = std::fs::read_to_string(path) else {
        return T::default();
    };
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An object by its ids; which of them are good on one host only is said by the definition.
fn identity_of(
    network: &Network,
    kind: &str,
    ids: &BTreeMap<String, String>,
    host: &str,
) -> Identity {
    let definition: toml::Table = network.text().parse().unwrap();
    let rules = &definition["types"][kind];
    let mut identity = Identity {
        network: network.name().clone(),
        kind: kind.into(),
        canonical: ids.get("canonical").cloned(),
        aliases: Vec::new(),
    };
    for (name, id) in ids.iter().filter(|(name, _)| *name != "canonical") {
        let rule = rules.get("aliases").and_then(|aliases| aliases.get(name));
        let rule = rule.unwrap_or_else(|| panic!("a {kind} has no alias {name}"));
        let is_scoped = rule
            .get("scope")
            .is_some_and(|scope| scope.as_str() == Some("host"));
        identity.aliases.push(Alias {
            name: name.as_str().into(),
            id: id.clone(),
            host: if is_scoped {
                host.to_owned()
            } else {
                String::new()
            },
            movable: rule
                .get("movable")
                .is_some_and(|it| it.as_bool() == Some(true)),
        });
    }
    identity
}

fn render(plan: &RequestPlan, reading: &Reading) -> Value {
    let mut told = json!({
        "asked": format!("{} {}", plan.method, plan.target),
        "carried": plan.body,
        "outcome": reading.outcome.code(),
        "reason": reading.reason,
        "items": reading.items,
        "next": reading.next,
        "newest": reading.newest,
        "mended": reading.mended,
        "subject_outcomes": reading.subject_outcomes,
        "objects": reading.objects,
        "links": reading.links,
    });
    if !reading.stubs.is_empty() {
        told["stubs"] = json!(reading.stubs);
    }
    told
}

#[test]
fn samples_are_read_as_expected() {
    let update = std::env::var_os("KITTIWAKE_UPDATE_SAMPLES").is_some();
    for network in shipped() {
        let samples = Samples::of(network.name());
        for sample in &samples.all {
            let (plan, reading) = samples.read(&network, sample);
            let rendered = render(&plan, &reading);
            let path = samples
                .folder
                .join(format!("{}.expected.json", sample.stem));
            if update {
                let text = serde_json::to_string_pretty(&rendered).unwrap();
                std::fs::write(&path, text + "\n").unwrap();
            }
            let expected = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let expected: Value = serde_json::from_str(&expected).unwrap();
            assert_eq!(rendered, expected, "{}", sample.file);
        }
        println!("{}: {} samples", network.name(), samples.all.len());
    }
}

#[test]
fn every_part_of_a_sample_is_mapped_or_ignored_with_a_reason() {
    for network in shipped() {
        let samples = Samples::of(network.name());
        for sample in &samples.all {
            let file = &sample.file;
            let (_, reading) = samples.read(&network, sample);
            let is_error = sample.stem.contains("-error");
            assert_eq!(
                reading.outcome.is_success(),
                !is_error,
                "{file}: {} ({}); what is no answer is called QUERY-error-…",
                reading.outcome,
                reading.reason
            );
            if is_error {
                continue;
            }
            let query = network.query(&sample.query).unwrap();
            let headers = &sample.special.headers;
            let content_type = headers.get("content-type").map(String::as_str);
            let tree = query.tree_of(&base(), content_type, &sample.body);
            let is_excused = sample.special.uncovered.is_some();
            assert_eq!(
                tree.is_none(),
                is_excused,
                "{file}: `uncovered` is for what is no tree"
            );
            let unmapped = tree.map(|tree| network.unmapped_answer(query, &tree));
            let unmapped = unmapped.unwrap_or_default();
            assert!(
                unmapped.is_empty(),
                "{file}: neither read nor ignored: {unmapped:?}"
            );
        }
    }
}

#[test]
fn what_is_neither_mapped_nor_ignored_is_found_at_every_depth() {
    let network = mastodon();
    let object = json!({
        "id": "1", "uri": "u", "novelty": 1, "muted": {"any": "thing"}, "media_attachments": [{"x": 1}],
        "application": {"name": "Web", "colour": "red"},
        "account": {"id": "7", "acct": "a", "shoe_size": [], "fields": [{"q": 1}]},
        "tags": [{"name": "a", "rank": {"of": 3}}],
        "reblog": {"id": "2", "account": {"halo": null}},
        "odd key": true,
        "quote": {"quoted_status": {"id": "3", "deep": 1}, "state": "accepted"},
    });
    assert_eq!(
        network.unmapped("status", &object).unwrap(),
        [
            ".[\"odd key\"]",
            ".account.shoe_size",
            ".application.colour",
            ".novelty",
            ".quote.quoted_status.deep",
            ".reblog.account.halo",
            ".tags[].rank.of",
        ]
    );
    assert_eq!(network.unmapped("planet", &object), None);
}
