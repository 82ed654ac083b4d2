//! A small server that answers as the skeleton of a definition says, for tests of definitions.

use crate::counterpart::{Call, Counterpart, reply};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use url::form_urlencoded;

/// Where its paths begin.
pub(crate) const BASE: &str = "/v1";

/// Items on a page at the most, however many are asked for.
const PAGE: usize = 2;

/// An answer before it is sent.
pub(crate) struct Told {
    pub(crate) status: &'static str,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// A server whose answers are told anew by `twist`, which is given what was asked for.
pub(crate) fn serve(
    twist: impl Fn(&str, Told) -> Told + Send + Sync + 'static,
) -> (Counterpart, String) {
    let server = Counterpart::start(move |call, stream| {
        let (status, body) = answer(call);
        let told = Told {
            status,
            headers: limit_headers(),
            body: body.to_string(),
        };
        let Told {
            status,
            headers,
            body,
        } = twist(&call.target, told);
        reply(stream, status, &headers, body.as_bytes())
    });
    let base = format!("{}{BASE}", server.address);
    (server, base)
}

/// A server that is as it should be.
pub(crate) fn serve_soundly() -> (Counterpart, String) {
    serve(|_, told| told)
}

fn limit_headers() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.expect("a time after 1970").as_secs();
    let reset_s = (now_s / 300 + 1) * 300;
    format!(
        "x-ratelimit-limit: 300\r\nx-ratelimit-remaining: 200\r\nx-ratelimit-reset: {reset_s}\r\n"
    )
}

fn user(id: u64) -> Value {
    let (name, title, followers, posts) = match id {
        7 => ("Ada", "Ada Finch", 3, 3),
        8 => ("Ben", "Ben Tern", 1, 1),
        9 => ("Cleo", "Cleo Wren", 1, 0),
        _ => ("Dora", "Dora Rail", 0, 0),
    };
    json!({
        "id": id, "name": name, "title": title, "joined": "2026-01-31T12:00:00Z",
        "followers": followers, "posts": posts, "pets": id % 3, "theme": "dark",
    })
}

fn post(id: u64) -> Value {
    let parent = (id == 81).then_some(71);
    json!({
        "id": id, "by": id / 10, "at": format!("2026-02-01T08:00:{:02}Z", id % 60),
        "text": format!("Gull number {id}."), "answers": u32::from(id == 71), "parent": parent,
    })
}

const USERS: [u64; 4] = [7, 8, 9, 10];

fn answer(call: &Call) -> (&'static str, Value) {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let parameter = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.into_owned())
    };
    let missing = ("404 Not Found", json!({ "error": "nobody" }));
    let Some(path) = path.strip_prefix(BASE) else {
        return missing;
    };
    let words: Vec<&str> = path.split('/').skip(1).collect();
    let known = |id: &str| id.parse().ok().filter(|id| USERS.contains(id));
    match words.as_slice() {
        ["users", "find"] => {
            let name = parameter("name").unwrap_or_default();
            let found = USERS.into_iter().map(user).find(|user| {
                let known = user["name"].as_str().unwrap_or_default();
                known.to_lowercase() == name
            });
            found.map_or(missing, |user| ("200 OK", json!({ "user": user })))
        }
        ["users", id] => match known(id) {
            Some(id) => ("200 OK", json!({ "user": user(id) })),
            None => missing,
        },
        // Cleo shows her lists to friends only.
        ["users", "9", _] => ("403 Forbidden", json!({ "error": "private" })),
        ["users", id, list] => {
            let ids: &[u64] = match (known(id), *list) {
                (Some(7), "followers") => &[8, 9, 10],
                (Some(8), "followers") => &[7],
                (Some(7), "posts") => &[73, 72, 71],
                (Some(8), "posts") => &[81],
                (Some(_), _) => &[],
                (None, _) => return missing,
            };
            let after = parameter("after").and_then(|after| after.strip_prefix('b')?.parse().ok());
            let begin = after.unwrap_or(0_usize).min(ids.len());
            let end = (begin + PAGE).min(ids.len());
            let next = (end < ids.len()).then(|| format!("b{end}"));
            let page = &ids[begin..end];
            let (key, items): (_, Vec<Value>) = match *list {
                "followers" => ("users", page.iter().copied().map(user).collect()),
                _ => ("posts", page.iter().copied().map(post).collect()),
            };
            ("200 OK", json!({ key: items, "next": next }))
        }
        _ => missing,
    }
}
