//! Perch, the network of the tutorial: a few people, their notes, and an API that resembles no
//! other.

use crate::counterpart::Call;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Calls that are allowed in a window.
pub(crate) const LIMIT: usize = 120;
const WINDOW_SECONDS: u64 = 60;

#[derive(Default)]
pub(crate) struct Perch {
    /// The window of the last call, and the calls in it.
    window: Mutex<(u64, usize)>,
}

/// Headers without a body's length, and the body.
type Answer = (String, String);

impl Perch {
    pub(crate) fn answer(&self, call: &Call) -> Answer {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let used = {
            let mut window = self.window.lock().expect("the window");
            let number = seconds / WINDOW_SECONDS;
            *window = match *window {
                (known, calls) if known == number => (number, calls + 1),
                _ => (number, 1),
            };
            window.1
        };
        let (link, body) = if used > LIMIT {
            (None, error("slow_down"))
        } else {
            respond(call)
        };
        let link = link.map_or_else(String::new, |link| format!("link: {link}\r\n"));
        let headers = format!(
            "{link}x-calls-limit: {LIMIT}\r\nx-calls-left: {}\r\nx-calls-reset: {}\r\n",
            LIMIT.saturating_sub(used),
            WINDOW_SECONDS - seconds % WINDOW_SECONDS,
        );
        (headers, body.to_string())
    }
}

fn error(code: &str) -> Value {
    json!({ "ok": false, "error": { "code": code } })
}

/// The address of the next page, and the answer.
fn respond(call: &Call) -> (Option<String>, Value) {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(known, _)| *known == name)?;
        Some(value.replace("%2C", ","))
    };
    let segments: Vec<&str> = path.trim_start_matches("/api/3/").split('/').collect();
    match segments.as_slice() {
        ["people", "find"] => {
            let login = parameter("login").unwrap_or_default();
            let found = (1..=PEOPLE.len()).find(|num| login.eq_ignore_ascii_case(login_of(*num)));
            match found {
                Some(num) => (None, json!({ "ok": true, "person": person(num) })),
                None => (None, error("no_such_person")),
            }
        }
        ["people"] => {
            let nums = parameter("nums").unwrap_or_default();
            let found = nums.split(',').filter_map(|num| num.parse().ok());
            let people: Vec<Value> = found.filter(|num| is_person(*num)).map(person).collect();
            (None, json!({ "ok": true, "people": people }))
        }
        ["people", num, list] => match num.parse().ok().filter(|num| is_person(*num)) {
            None => (None, error("no_such_person")),
            Some(num) if is_private(num) => (None, error("private")),
            Some(num) => {
                let items = if *list == "watchers" {
                    watchers(num)
                } else {
                    notes(num)
                };
                let page = Page::of(&items, parameter("per"), parameter("past"));
                let link = page.next.map(|past| {
                    let (host, per) = (&call.host, page.per);
                    format!("<http://{host}{path}?per={per}&past={past}>; rel=\"next\"")
                });
                (link, json!({ "ok": true, *list: page.items }))
            }
        },
        ["notes", key, "remarks"] => (None, json!({ "ok": true, "remarks": remarks(key) })),
        ["notes", key, "stars"] => (None, json!({ "ok": true, "people": stars(key) })),
        _ => (None, error("no_such_page")),
    }
}

struct Page {
    items: Vec<Value>,
    per: usize,
    /// The item after which the next page begins.
    next: Option<String>,
}

impl Page {
    fn of(items: &[(String, Value)], per: Option<String>, past: Option<String>) -> Self {
        let per = per.and_then(|per| per.parse().ok()).unwrap_or(10);
        let start = past.map_or(0, |past| {
            let place = items.iter().position(|(key, _)| *key == past);
            place.map_or(items.len(), |place| place + 1)
        });
        let end = items.len().min(start + per);
        let page = &items[start..end];
        let last = page.last().filter(|_| end < items.len());
        Self {
            items: page.iter().map(|(_, item)| item.clone()).collect(),
            per,
            next: last.map(|(key, _)| key.clone()),
        }
    }
}

/// Login, name, what they say, where they live, and what they care for.
const PEOPLE: &[(&str, &str, &str, &str, &[&str])] = &[
    (
        "Ada",
        "Ada Finch",
        "Counts gulls & waders.",
        "Hythe",
        &["Gulls", "waders"],
    ),
    ("Ben", "Ben Tern", "", "Lydd", &["gulls"]),
    ("Cleo", "Cleo Wren", "", "", &[]),
    ("Dora", "Dora Rail", "For friends.", "", &[]),
    ("Eli", "Eli Stint", "", "Hythe", &[]),
    ("Fay", "Fay Knot", "", "", &[]),
    ("Gus", "Gus Smew", "", "", &[]),
];

fn is_person(num: usize) -> bool {
    (1..=PEOPLE.len()).contains(&num)
}

fn login_of(num: usize) -> &'static str {
    PEOPLE[num - 1].0
}

fn is_private(num: usize) -> bool {
    login_of(num) == "Dora"
}

fn person(num: usize) -> Value {
    let (login, name, bio, town, interests) = PEOPLE[num - 1];
    let words: Vec<Value> = interests
        .iter()
        .map(|word| json!({ "word": word }))
        .collect();
    json!({
        "num": num, "login": login,
        "about": { "name": name, "bio": bio, "town": town },
        "since": 1_577_836_800,
        "private": is_private(num),
        "totals": { "watchers": watchers(num).len(), "notes": notes(num).len() },
        "interests": words,
        "badge": "gold",
    })
}

/// A person as lists show it.
fn brief(num: usize) -> Value {
    json!({ "num": num, "login": login_of(num) })
}

fn watchers(num: usize) -> Vec<(String, Value)> {
    let nums: &[usize] = match login_of(num) {
        "Ada" => &[2, 3, 4],
        "Ben" => &[1],
        "Dora" => &[6],
        _ => &[],
    };
    let item = |num: &usize| (num.to_string(), brief(*num));
    nums.iter().map(item).collect()
}

/// Newest first.
fn notes(num: usize) -> Vec<(String, Value)> {
    let pier = json!({ "name": "the old pier", "east": 1.09, "north": 51.06 });
    let note = |key: &str, written: u64, words: &str, place: &Value| {
        let note = json!({
            "key": key, "by": num, "written": written, "words": words, "place": place,
            "remarks": remarks(key).len(), "stars": stars(key).len(),
        });
        (key.to_owned(), note)
    };
    match login_of(num) {
        "Ada" => vec![
            note("n6", 1_794_733_200, "Gone again.", &Value::Null),
            note("n4", 1_794_646_800, "Two kittiwakes on the pier.", &pier),
            note("n1", 1_794_556_800, "Nothing but fog.", &Value::Null),
        ],
        "Ben" => vec![note("n2", 1_794_643_200, "A tern, at last!", &pier)],
        "Dora" => vec![note("n3", 1_794_644_000, "Hush.", &Value::Null)],
        _ => Vec::new(),
    }
}

fn remarks(note: &str) -> Vec<Value> {
    let remark = |key: &str, num: usize, written: u64, words: &str| json!({ "key": key, "note": note, "by": brief(num), "written": written, "words": words });
    match note {
        "n2" => vec![remark("r3", 7, 1_794_646_800, "Which one?")],
        "n4" => vec![
            remark("r1", 2, 1_794_647_400, "Where?"),
            remark("r2", 5, 1_794_650_400, "North side."),
        ],
        _ => Vec::new(),
    }
}

fn stars(note: &str) -> Vec<Value> {
    match note {
        "n4" => vec![brief(3)],
        "n6" => vec![brief(2), brief(6)],
        _ => Vec::new(),
    }
}
