//! YouTube and Facebook against answers that real servers gave to others.
//!
//! The recordings are no part of the project: they lie in `shared/recorded` beside it, where they do. What they
//! are read as stands in `networks/samples/NAME.recorded.txt`, in words that a person can hold against the recording;
//! `KITTIWAKE_UPDATE_SAMPLES=1` writes it anew.

use crate::support::{root, shipped};
use kittiwake_model::{Identity, Key, Object, Reference, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What was asked about: seeds, as a crawl would name them.
enum About {
    This(&'static str),
    /// The id at the top of the answer.
    Id(&'static str),
    /// The keys of the answer.
    Keys(&'static str),
    /// The ids of its items.
    Items(&'static str),
}

use About::{Id, Items, Keys, This};

/// How the name of a file begins, the query that its answer belongs to, and what that was about.
const YOUTUBE: &[(&str, &str, About)] = &[
    ("channels/info", "channels", Items("id:")),
    ("channels/update", "channels", Items("id:")),
    (
        "comment_threads/",
        "channel_threads",
        This("id:UC_x5XG1OV2P6uZZ5FSM9Ttw"),
    ),
    (
        "playlist_items/",
        "playlist_items",
        This("playlist:PLOU2XLYxmsIJpufeMHncnQvFOe0K3MhVp"),
    ),
    ("videos/videos_chart", "popular", This("chart:US")),
    ("videos/videos_info", "videos", Items("video:")),
    (
        "error_permission",
        "channel",
        This("id:UC_x5XG1OV2P6uZZ5FSM9Ttw"),
    ),
];

const FACEBOOK: &[(&str, &str, About)] = &[
    ("albums/album_info", "album", Id("album:")),
    ("albums/albums_info", "albums_by_id", Keys("album:")),
    ("albums/albums_list", "albums", This("id:2121008874780932")),
    ("pages/multi", "pages", Keys("id:")),
    ("pages/search", "search", This("search:facebook")),
    ("pages/single", "page", Id("id:")),
    ("posts/feed", "posts", This("id:19292868552")),
    ("posts/multi", "posts_by_id", Keys("post:")),
    ("posts/single", "post", Id("post:")),
    ("users/user.json", "person", Id("id:")),
    (
        "users/user_accounts",
        "accounts",
        This("id:413140042878187"),
    ),
    (
        "users/user_businesses",
        "businesses",
        This("id:413140042878187"),
    ),
    ("users/users", "people", Keys("id:")),
];

#[test]
fn youtube_reads_recorded_answers_without_remainder() {
    check("youtube", YOUTUBE, 20);
}

#[test]
fn facebook_reads_recorded_answers_without_remainder() {
    check("facebook", FACEBOOK, 25);
}

fn check(name: &str, routes: &[(&str, &str, About)], files_min: usize) {
    let places = ["../shared", "../../shared"].map(|place| root().join(place));
    let folders = places.map(|place| place.join("recorded").join(name));
    let Some(folder) = folders.iter().find(|folder| folder.is_dir()) else {
        println!("absent: ../shared/recorded/{name}");
        return;
    };
    let network = shipped()
        .into_iter()
        .find(|network| &**network.name() == name);
    let network = network.unwrap();
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    assert!(files.len() >= files_min, "{} files", files.len());
    let mut told = String::new();
    for file in &files {
        let relative = file.strip_prefix(folder).unwrap().to_str().unwrap();
        let route = routes
            .iter()
            .find(|(begin, ..)| relative.starts_with(begin));
        let (_, query, about) = route.unwrap_or_else(|| panic!("{relative} belongs to no query"));
        let _ = writeln!(told, "== {relative}, an answer to `{query}`");
        read(&network, query, about, file, &mut told);
    }
    let path = root().join(format!("networks/samples/{name}.recorded.txt"));
    if std::env::var_os("KITTIWAKE_UPDATE_SAMPLES").is_some() {
        std::fs::write(&path, &told).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = told
        .lines()
        .zip(expected.lines())
        .find(|(is, was)| is != was);
    assert!(told == expected, "{}: {differing:?}", path.display());
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
}

fn read(network: &Network, query: &str, about: &About, file: &Path, told: &mut String) {
    let mut body: serde_json::Value =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    // An answer to writing, which is one channel without a list around it.
    if matches!(about, Items(_)) && body.get("items").is_none() {
        body = serde_json::json!({ "items": [body] });
    }
    let status = if body.get("error").is_some() {
        403
    } else {
        200
    };
    let query = network.query(query).unwrap();
    let base = network.base("").unwrap();
    let host = base.host_str().unwrap();
    let seeds = seeds(about, &body);
    let subjects: Vec<Identity> = seeds
        .iter()
        .map(|seed| network.seed(seed, host).unwrap())
        .collect();
    let plan = network.request(&Ask {
        query,
        base: &base,
        host,
        subjects: &subjects.iter().collect::<Vec<_>>(),
        page: Page::First,
        authenticated: true,
    });
    let keyed: Vec<(Key, &Identity)> = (1..).map(Key).zip(&subjects).collect();
    let text = body.to_string();
    let reading = network.read(&Answer {
        query,
        base: &base,
        host,
        subjects: &keyed,
        page: Page::First,
        url: &plan.unwrap().url,
        status,
        header: &|_| None,
        body: text.as_bytes(),
        walk: Some(1),
    });
    let name = file.display();
    assert_eq!(
        reading.outcome.is_success(),
        status == 200,
        "{name}: {}",
        reading.reason
    );
    assert_eq!(reading.mended, 0, "{name}");
    if status == 200 {
        let unmapped = network.unmapped_answer(query, &body);
        assert!(
            unmapped.is_empty(),
            "{name}: neither read nor ignored: {unmapped:?}"
        );
    }
    tell(&reading, told);
}

fn seeds(about: &About, body: &serde_json::Value) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    match about {
        This(seed) => vec![(*seed).to_owned()],
        Id(prefix) => vec![format!("{prefix}{}", text(&body["id"]))],
        Keys(prefix) => {
            let keys = body.as_object().unwrap().keys();
            keys.map(|key| format!("{prefix}{key}")).collect()
        }
        Items(prefix) => {
            let items = body["items"].as_array().unwrap().iter();
            items
                .map(|item| format!("{prefix}{}", text(&item["id"])))
                .collect()
        }
    }
}

/// What was read, object by object.
fn tell(reading: &Reading, told: &mut String) {
    let outcome = reading.outcome;
    let _ = writeln!(
        told,
        "{outcome} {}; {} items",
        reading.reason, reading.items
    );
    if let Some(next) = &reading.next {
        let _ = writeln!(told, "next page: {}", cut(next));
    }
    for object in &reading.objects {
        let table = object.table;
        let _ = writeln!(
            told,
            "{} {} (in {table:?})",
            object.identity.kind,
            id_of(object)
        );
        for alias in &object.identity.aliases {
            let _ = writeln!(told, "    also {} {}", alias.name, alias.id);
        }
        for group in &object.groups {
            for (field, value) in &group.fields {
                let value = shown(value, &reading.objects);
                let _ = writeln!(told, "    {field} = {value}");
            }
        }
    }
    for link in &reading.links {
        let end = |reference: &Reference| name_of(reference, &reading.objects);
        let (from, to) = (end(&link.from), end(&link.to));
        let _ = writeln!(told, "link {}: {from} -> {to}", link.kind);
    }
    told.push('\n');
}

fn id_of(object: &Object) -> &str {
    let identity = &object.identity;
    let alias = identity.aliases.first().map(|alias| alias.id.as_str());
    identity.canonical.as_deref().or(alias).unwrap_or("?")
}

fn name_of(reference: &Reference, objects: &[Object]) -> String {
    match reference {
        Reference::Object(place) => id_of(&objects[*place as usize]).to_owned(),
        Reference::Key(key) => format!("the one asked about ({})", key.0),
        Reference::Identity(identity) => {
            let alias = identity.aliases.first().map(|alias| alias.id.as_str());
            let id = identity.canonical.as_deref().or(alias).unwrap_or("?");
            format!("{} {id}", identity.kind)
        }
    }
}

fn shown(value: &Value, objects: &[Object]) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) | Value::Json(text) => cut(text),
        Value::Time { at_us, .. } => {
            let time = jiff::Timestamp::from_microsecond(*at_us);
            time.map_or_else(|error| error.to_string(), |time| time.to_string())
        }
        Value::Object(reference) => name_of(reference, objects),
    }
}

/// Enough of a text to know it by: whose it is does not belong here.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    let begin: String = text.chars().take(40).collect();
    if count > 40 {
        return format!("{begin:?} and {} more characters", count - 40);
    }
    format!("{begin:?}")
}
