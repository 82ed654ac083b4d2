//! YouTube and Facebook against answers that real servers gave to others.
//!
//! The recordings are no part of the project: they lie in `shared/recorded` beside it, where they do, and in folders of
//! the folder that `KITTIWAKE_RECORDINGS` names, `youtube` and `facebook`. All that some query asks for is read without
//! remainder. What those are read as that the project knows stands in `networks/samples/NAME.recorded.txt`, in words that a
//! person can hold against the recording; `KITTIWAKE_UPDATE_SAMPLES=1` writes it anew, from `shared/recorded` alone.

use crate::support::{root, shipped};
use kittiwake_model::{Identity, Key, Object, Reference, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What was asked about, and in which form the answer was recorded. Seeds are what a crawl would name.
enum About {
    This(&'static str),
    /// The id at the top of the answer.
    Id(&'static str),
    /// The keys of the answer.
    Keys(&'static str),
    /// The ids of its items. One item alone, without a list around it, is taken for a list of one.
    Items(&'static str),
    /// One object, where the query asks for several by their ids.
    One(&'static str),
    /// Objects by their ids, or one alone, where the query asks for the list of them, of this subject.
    Listed(&'static str),
}

use About::{Id, Items, Keys, Listed, One, This};

/// How the name of a file begins, or what an answer says that it is; the query that it belongs to, and what that was about.
type Route = (&'static str, &'static str, About);

const CHANNEL: &str = "id:UC_x5XG1OV2P6uZZ5FSM9Ttw";
const PLAYLIST: &str = "playlist:PLOU2XLYxmsIJpufeMHncnQvFOe0K3MhVp";
const PARENT: &str = "comment:Ugx0000000000000000AaABAg";

const YOUTUBE: &[Route] = &[
    ("videos/videos_chart", "popular", This("chart:US")),
    ("comments/comments_by_parent", "replies", This(PARENT)),
    ("comments_by_parent", "replies", This(PARENT)),
    ("error", "channel", This(CHANNEL)),
    ("youtube#activity", "activities", This(CHANNEL)),
    ("youtube#channel", "channels", Items("id:")),
    ("youtube#channelSection", "sections", This(CHANNEL)),
    ("youtube#comment", "comments", Items("comment:")),
    ("youtube#commentThread", "channel_threads", This(CHANNEL)),
    ("youtube#playlist", "playlists", This(CHANNEL)),
    ("youtube#playlistItem", "playlist_items", This(PLAYLIST)),
    ("youtube#search", "search", This("search:gulls")),
    ("youtube#searchResult", "search", This("search:gulls")),
    ("youtube#subscription", "subscriptions", This(CHANNEL)),
    ("youtube#video", "videos", Items("video:")),
];

const PAGE: &str = "id:2121008874780932";
const PERSON: &str = "id:413140042878187";
const POST: &str = "post:2121008874780932_2498598377021978";
const COMMENT: &str = "comment:2498598377021978_2498617433686739";

const FACEBOOK: &[Route] = &[
    ("albums/album_info", "album", Id("album:")),
    ("albums/albums_info", "albums_by_id", Keys("album:")),
    ("albums/albums_", "albums", This(PAGE)),
    ("apis/page", "page", Id("id:")),
    ("base/error", "page", This(PAGE)),
    ("base/full_connecions", "posts", This(PAGE)),
    ("base/object_d", "page", Id("id:")),
    ("base/objects_d", "pages", Keys("id:")),
    ("business/business_", "businesses", Listed(PERSON)),
    ("business/businesses_", "businesses", Listed(PERSON)),
    ("comments/comment_by_parent", "comments", This(POST)),
    ("comments/comment_info", "comment", Id("comment:")),
    ("comments/comments_info", "comments_by_id", Keys("comment:")),
    ("comments/comments_p", "comments", This(POST)),
    ("comments/create", "comment", Id("comment:")),
    ("comments/multi", "comments_by_id", Keys("comment:")),
    ("comments.", "comments", This(POST)),
    ("comments_next", "comments", This(POST)),
    ("error", "page", This(PAGE)),
    ("groups/feed", "feed", This(PAGE)),
    ("likes/", "likes", This(COMMENT)),
    ("live/live_videos_p", "live_videos", This(PAGE)),
    ("live/live_video", "live_videos", Listed(PAGE)),
    ("live_videos/live_videos_p", "live_videos", This(PAGE)),
    ("live_videos/live_video", "live_videos", Listed(PAGE)),
    ("models/album", "album", Id("album:")),
    ("models/business", "businesses", Listed(PERSON)),
    ("models/comment.", "comment", Id("comment:")),
    ("models/comment_info", "comment", Id("comment:")),
    ("models/comments/", "comment", Id("comment:")),
    ("models/live", "live_videos", Listed(PAGE)),
    ("models/page.", "page", Id("id:")),
    ("models/pages/pages", "page", Id("id:")),
    ("models/photo", "photos_by_id", One("photo:")),
    ("models/post", "post", Id("post:")),
    ("models/user", "person", Id("id:")),
    ("models/video.", "videos_by_id", One("video:")),
    ("models/videos/video", "videos_by_id", One("video:")),
    ("pages/multi", "pages", Keys("id:")),
    ("pages/search", "search", This("search:facebook")),
    ("pages/single", "page", Id("id:")),
    ("photos/photo_info", "photos_by_id", One("photo:")),
    ("photos/photos_info", "photos_by_id", Keys("photo:")),
    ("photos/photos_", "photos", This(PAGE)),
    ("posts/feed", "posts", This("id:19292868552")),
    ("posts/multi", "posts_by_id", Keys("post:")),
    ("posts/posts", "posts", This(PAGE)),
    ("posts/single", "post", Id("post:")),
    ("posts/tagged", "tagged", This(PAGE)),
    ("users/user.json", "person", Id("id:")),
    ("users/user_accounts", "accounts", This(PERSON)),
    ("users/user_businesses", "businesses", This(PERSON)),
    ("users/users", "people", Keys("id:")),
    ("videos/page_videos", "videos", This(PAGE)),
    ("videos/video_info", "videos_by_id", One("video:")),
    ("videos/videos_info", "videos_by_id", Keys("video:")),
    ("videos/videos_p", "videos", This(PAGE)),
];

#[test]
fn youtube_reads_recorded_answers_without_remainder() {
    check("youtube", YOUTUBE);
}

#[test]
fn facebook_reads_recorded_answers_without_remainder() {
    check("facebook", FACEBOOK);
}

fn check(name: &str, routes: &[Route]) {
    let network = shipped()
        .into_iter()
        .find(|network| &**network.name() == name);
    let network = network.unwrap();
    let further =
        std::env::var_os("KITTIWAKE_RECORDINGS").map(|place| Path::new(&place).join(name));
    if let Some(folder) = further.filter(|folder| folder.is_dir()) {
        for told in read_all(&network, routes, &folder) {
            println!("{told}");
        }
    }
    let places = ["../shared", "../../shared"].map(|place| root().join(place));
    let folders = places.map(|place| place.join("recorded").join(name));
    let Some(folder) = folders.iter().find(|folder| folder.is_dir()) else {
        println!("absent: ../shared/recorded/{name}");
        return;
    };
    let told = read_all(&network, routes, folder);
    let path = root().join(format!("networks/samples/{name}.recorded.txt"));
    if std::env::var_os("KITTIWAKE_UPDATE_SAMPLES").is_some() {
        std::fs::write(&path, told.concat()).unwrap();
    }
    compare(&told, &path);
}

/// What every recording in a folder that some query asks for is read as.
fn read_all(network: &Network, routes: &[Route], folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    let told = files.iter().filter_map(|file| {
        let relative = file.strip_prefix(folder).unwrap().to_str().unwrap();
        let body = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let Some((_, query, about)) = find_route(routes, relative, &body) else {
            println!("{}: no query asks for this", file.display());
            return None;
        };
        let mut told = format!("== {relative}, an answer to `{query}`\n");
        read(network, query, about, file, body, &mut told);
        Some(told)
    });
    told.collect()
}

fn find_route<'r>(
    routes: &'r [Route],
    relative: &str,
    body: &serde_json::Value,
) -> Option<&'r Route> {
    let kind = body["kind"].as_str().unwrap_or_default();
    let kind = kind.strip_suffix("ListResponse").unwrap_or(kind);
    let by_name = routes
        .iter()
        .find(|(begin, ..)| relative.starts_with(begin));
    // The folders may lie in others.
    let further_in = || {
        let mut routes = routes.iter();
        routes.find(|(begin, ..)| relative.contains(&format!("/{begin}")))
    };
    let by_kind = || routes.iter().find(|(begin, ..)| *begin == kind);
    by_name.or_else(further_in).or_else(by_kind)
}

/// Every answer that the project knows has to be there and be read as it was. What it does not know was read without
/// remainder, and is told.
fn compare(told: &[String], path: &Path) {
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let known: Vec<&str> = expected.trim_start_matches("== ").split("\n== ").collect();
    for known in &known {
        let head = known.lines().next().unwrap_or_default();
        let is = told.iter().map(|is| is.trim_start_matches("== "));
        let is = is.clone().find(|is| is.lines().next() == Some(head));
        let is = is.unwrap_or_else(|| panic!("{head}: missing, or an answer to another query"));
        let differing = is.lines().zip(known.lines()).find(|(is, was)| is != was);
        assert!(is.trim_end() == known.trim_end(), "{head}: {differing:?}");
    }
    if told.len() > known.len() {
        let count = told.len() - known.len();
        println!("{count} answers are not in {}", path.display());
    }
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

fn read(
    network: &Network,
    query: &str,
    about: &About,
    file: &Path,
    body: serde_json::Value,
    told: &mut String,
) {
    let body = in_form(about, body);
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
    // YouTube leaves out the list of those whom it does not find.
    let is_left_out = body.get("kind").is_some() && body.get("items").is_none();
    let is_read = reading.outcome.is_success() || is_left_out;
    assert_eq!(is_read, status == 200, "{name}: {}", reading.reason);
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

/// An answer in the form in which the query is answered.
fn in_form(about: &About, body: serde_json::Value) -> serde_json::Value {
    if body.get("error").is_some() {
        return body;
    }
    // One thing without a list around it, which is what a server answers to writing.
    let is_alone = body["kind"]
        .as_str()
        .is_some_and(|kind| !kind.ends_with("Response"));
    if is_alone {
        return serde_json::json!({ "items": [body] });
    }
    match about {
        One(_) => serde_json::json!({ text(&body["id"]): body }),
        Listed(_) if body.get("id").is_some() => serde_json::json!({ "data": [body] }),
        Listed(_) => {
            let items: Vec<_> = body.as_object().unwrap().values().collect();
            serde_json::json!({ "data": items })
        }
        _ => body,
    }
}

/// Whether a list has nothing in it, or was left out.
fn is_hollow(body: &serde_json::Value) -> bool {
    body["items"].as_array().is_none_or(Vec::is_empty)
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

fn seeds(about: &About, body: &serde_json::Value) -> Vec<String> {
    match about {
        This(seed) | Listed(seed) => vec![(*seed).to_owned()],
        Id(prefix) => vec![format!("{prefix}{}", text(&body["id"]))],
        Keys(prefix) | One(prefix) => {
            let keys = body.as_object().unwrap().keys();
            keys.map(|key| format!("{prefix}{key}")).collect()
        }
        Items(prefix) => {
            let items = body["items"].as_array().into_iter().flatten();
            let ids = items.map(|item| text(&item["id"]));
            // Somebody was asked about where nobody was found, too.
            let ids = ids.chain(is_hollow(body).then(|| "0".to_owned()));
            ids.map(|id| format!("{prefix}{id}")).collect()
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
