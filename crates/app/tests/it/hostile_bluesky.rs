//! Bluesky's servers as liars: whatever AppView, directory and accounts' own servers say, nothing is lost, nobody is
//! dialled who may not be, and every account has an outcome.

mod bombs;

use crate::counterpart::{Call, Counterpart, reply};
use crate::hostile::watch_memory;
use crate::support::{Folder, Running, Tables, open, rows};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::TcpStream;
use url::form_urlencoded;

const CAR: &[u8] = include_bytes!("../../../../networks/samples/bluesky/repository.car");

/// Whose repository that is.
const OWNER: &str = "did:plc:xjxw5mklogihhxdhukybqeph";

/// What a crawl may take, whoever lies to it.
const MEMORY_MIB_MAX: u64 = 250;

/// A server that is AppView, directory and PDS at once: their paths differ.
type Answers = fn(&Asked<'_>) -> Option<Value>;

struct Asked<'a> {
    /// `app.bsky.actor.getProfile`, or the DID that the directory is asked about.
    method: &'a str,
    parameters: Vec<(String, String)>,
    /// The server that is asked.
    own: String,
    /// Another server on this machine, which nobody has named.
    trap: &'a str,
}

impl Asked<'_> {
    fn one(&self, name: &str) -> &str {
        let mut found = self.parameters.iter().filter(|(it, _)| it == name);
        found.next().map_or("", |(_, value)| value)
    }

    fn all(&self, name: &str) -> Vec<&str> {
        let found = self.parameters.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str()).collect()
    }
}

fn answer(
    call: &Call,
    stream: &mut TcpStream,
    trap: &str,
    answers: Answers,
) -> std::io::Result<()> {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let parameters = form_urlencoded::parse(query.as_bytes());
    let path = path.replace("%3A", ":");
    let asked = Asked {
        method: path.trim_start_matches("/xrpc/").trim_start_matches('/'),
        parameters: parameters.into_owned().collect(),
        own: format!("http://{}", call.host),
        trap,
    };
    if asked.method == "com.atproto.sync.getRepo" {
        return repository(stream, asked.one("did"));
    }
    if let Some(body) = answers(&asked) {
        return reply(stream, "200 OK", "", body.to_string().as_bytes());
    }
    let body = json!({ "error": "InvalidRequest", "message": "no" });
    reply(stream, "400 Bad Request", "", body.to_string().as_bytes())
}

fn repository(stream: &mut TcpStream, did: &str) -> std::io::Result<()> {
    const HEADERS: &str = "content-type: application/vnd.ipld.car\r\n";
    let body = match did {
        "did:plc:short" => &CAR[..CAR.len() / 2],
        "did:plc:noise" => b"no repository at all",
        OWNER | "did:plc:thief" => CAR,
        _ => return bombs::explode(stream, did, HEADERS),
    };
    reply(stream, "200 OK", HEADERS, body)
}

/// A crawl of some accounts, and what the server beside it heard.
struct Told {
    folder: Folder,
    peak_mib: u64,
    calls: Vec<Call>,
    trapped: Vec<Call>,
}

impl Told {
    fn crawl(answers: Answers, robots: &str, hosts: &str, seeds: &[&str]) -> Self {
        let trap = Counterpart::json("{}");
        let place = trap.address.clone();
        let server = Counterpart::start(move |call, stream| answer(call, stream, &place, answers));
        let folder = Folder::new();
        let directory = format!("directory={}", server.address);
        let own = server.address.trim_start_matches("http://").to_owned();
        let hosts = hosts.replace("SELF", &own);
        let mut command = folder.kittiwake();
        command.args([
            "crawl",
            "bluesky",
            "--host",
            &server.address,
            "--at",
            &directory,
        ]);
        command.args(["--into", "t.db", "--robots", robots, "--hosts", &hosts]);
        command
            .args(["--until-idle", "--quiet", "--json"])
            .args(["--contact", "tests@example.org"])
            .args(seeds);
        let mut process = Running::start(&mut command);
        let peak_mib = watch_memory(&mut process);
        assert_eq!(process.wait(), Some(0));
        assert!(peak_mib < MEMORY_MIB_MAX, "used {peak_mib} MiB");
        let report: Value = serde_json::from_str(&process.rest()).expect("JSON");
        assert_eq!(report["violations"], 0, "{report}");
        Self {
            folder,
            peak_mib,
            calls: server.calls(),
            trapped: trap.calls(),
        }
    }

    fn rows(&self, sql: &str) -> BTreeSet<Vec<String>> {
        let file = open(&self.folder.path("t.db"));
        rows(&file as &dyn Tables, sql)
    }

    /// The outcome of every account by a query.
    fn outcomes(&self, query: &str) -> BTreeSet<Vec<String>> {
        self.rows(&format!(
            "SELECT i.id, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key AND i.canonical
             WHERE o.query = '{query}'"
        ))
    }
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeSet<Vec<String>> {
    let rows = pairs.map(|(one, other)| vec![one.to_owned(), other.to_owned()]);
    rows.into()
}

fn profile(did: &str, handle: &str) -> Value {
    json!({ "did": did, "handle": handle, "followersCount": 1, "followsCount": 1, "postsCount": 1, "labels": [] })
}

fn document(did: &str, endpoint: &str) -> Value {
    let service = json!([{ "id": "#atproto_pds", "type": "x", "serviceEndpoint": endpoint }]);
    json!({ "id": did, "alsoKnownAs": ["at://some.example"], "service": service })
}

#[test]
fn the_profile_of_somebody_else_is_nobodys() {
    let told = Told::crawl(
        |asked| match asked.method {
            // Of two, the batch shows one, and somebody whom nobody asked for.
            "app.bsky.actor.getProfiles" => {
                assert_eq!(asked.all("actors").len(), 2);
                Some(
                    json!({ "profiles": [profile("did:plc:true", "true.example"), profile("did:plc:other", "x.example")] }),
                )
            }
            "app.bsky.actor.getProfile" => Some(profile("did:plc:other", "liar.example")),
            _ => None,
        },
        "profiles",
        "none",
        &["did:plc:true", "did:plc:lied"],
    );
    assert_eq!(told.outcomes("profiles"), pairs([("did:plc:true", "ok")]));
    assert_eq!(
        told.outcomes("profile"),
        pairs([("did:plc:lied", "malformed")])
    );
    let known = told.rows("SELECT i.id FROM users u JOIN ids i ON i.key = u.key AND i.canonical WHERE u.handle IS NOT NULL");
    assert!(
        !known.contains(&vec!["did:plc:lied".to_owned()]),
        "{known:?}"
    );
}

#[test]
fn a_directory_leads_nobody_to_an_address_that_is_not_public() {
    let told = Told::crawl(
        |asked| {
            let endpoint = match asked.method {
                "did:plc:trap" => asked.trap,
                "did:plc:cloud" => "http://169.254.169.254/",
                "did:plc:private" => "https://10.0.0.1",
                "did:plc:local" => "https://localhost:1",
                "did:plc:file" => "file:///etc/passwd",
                "did:plc:none" => return Some(json!({ "id": "did:plc:none" })),
                "did:plc:lied" => return Some(document("did:plc:else", asked.trap)),
                _ => return None,
            };
            Some(document(asked.method, endpoint))
        },
        "repositories",
        "any",
        &[
            "did:plc:trap",
            "did:plc:cloud",
            "did:plc:private",
            "did:plc:local",
            "did:plc:file",
            "did:plc:none",
            "did:plc:lied",
        ],
    );
    assert!(told.trapped.is_empty(), "{:?}", told.trapped);
    let repositories = told
        .calls
        .iter()
        .filter(|call| call.target.contains("getRepo"));
    assert_eq!(repositories.count(), 0);
    let outcomes = told.rows("SELECT DISTINCT i.id FROM outcomes o JOIN ids i ON i.key = o.key AND i.canonical WHERE i.type IN (SELECT type FROM ids WHERE id = 'did:plc:trap')");
    assert_eq!(outcomes.len(), 7, "every one has an outcome: {outcomes:?}");
    let stored = told.rows("SELECT key FROM statuses");
    assert!(stored.is_empty());
}

/// Everybody lives on the server that is asked.
fn all_at_home(asked: &Asked<'_>) -> Option<Value> {
    let did = asked.method;
    did.starts_with("did:").then(|| document(did, &asked.own))
}

#[test]
fn repositories_of_others_and_broken_ones_are_not_believed() {
    let told = Told::crawl(
        all_at_home,
        "repositories",
        "SELF",
        &[OWNER, "did:plc:thief", "did:plc:short", "did:plc:noise"],
    );
    let expected = [
        (OWNER, "ok"),
        ("did:plc:noise", "malformed"),
        ("did:plc:short", "malformed"),
        ("did:plc:thief", "malformed"),
    ];
    assert_eq!(told.outcomes("repository"), pairs(expected));
    let authors = told.rows("SELECT DISTINCT a.id FROM statuses s JOIN ids a ON a.key = s.author AND a.canonical WHERE s.text IS NOT NULL");
    assert_eq!(authors, [vec![OWNER.to_owned()]].into());
    let followers = told.rows(
        "SELECT DISTINCT s.id FROM user_relations r JOIN ids s ON s.key = r.source AND s.canonical",
    );
    assert_eq!(followers, [vec![OWNER.to_owned()]].into());
}

#[test]
fn forged_dates_and_long_words_are_kept_within_bounds() {
    let told = Told::crawl(
        |asked| match asked.method {
            "app.bsky.actor.getProfiles" => {
                let mut profile = profile("did:plc:long", "long.example");
                profile["description"] = Value::from("x".repeat(1 << 20));
                profile["createdAt"] = Value::from("9999-12-31T23:59:59.999Z");
                Some(json!({ "profiles": [profile] }))
            }
            "app.bsky.feed.getAuthorFeed" => {
                let dates = [
                    "9999-12-31T23:59:59.999Z",
                    "1969-07-20T20:17:00Z",
                    "0001-01-01T00:00:00Z",
                    "garbage",
                    "",
                    "2026-13-45T99:99:99Z",
                    "+012026-01-01T00:00:00Z",
                    "2026-01-01T00:00:00.000000000000001Z",
                ];
                let item = |(place, date): (usize, &&str)| {
                    let uri = format!("at://did:plc:long/app.bsky.feed.post/{place}");
                    let record = json!({ "text": format!("post {place}"), "createdAt": date });
                    let author = json!({ "did": "did:plc:long", "handle": "long.example" });
                    json!({ "post": { "uri": uri, "author": author, "record": record, "indexedAt": date } })
                };
                let feed: Vec<Value> = dates.iter().enumerate().map(item).collect();
                // A cursor that leads back to itself.
                Some(json!({ "feed": feed, "cursor": "again" }))
            }
            _ => None,
        },
        "profiles,statuses",
        "none",
        &["did:plc:long"],
    );
    let posts = told.rows("SELECT text FROM statuses");
    assert_eq!(posts.len(), 8);
    // What is no time is none; what is one is kept, however unlikely.
    let timeless = told.rows("SELECT text FROM statuses WHERE created_us IS NULL");
    let expected = ["post 3", "post 4", "post 5"].map(|text| vec![text.to_owned()]);
    assert_eq!(timeless, expected.into());
    let length = told.rows("SELECT length(description) FROM users");
    assert_eq!(length, [vec![(1 << 20).to_string()]].into());
    assert_eq!(
        told.outcomes("author_feed"),
        pairs([("did:plc:long", "cap reached")])
    );
}

#[test]
fn handles_that_lead_in_circles_make_nobody_somebody_else() {
    let told = Told::crawl(
        |asked| match asked.method {
            "com.atproto.identity.resolveHandle" => {
                // Two names lead to one account, which has a third.
                Some(json!({ "did": "did:plc:one" }))
            }
            "app.bsky.actor.getProfiles" => {
                let actors = asked.all("actors");
                // Everybody claims the same handle.
                Some(
                    json!({ "profiles": actors.iter().map(|did| profile(did, "same.example")).collect::<Vec<_>>() }),
                )
            }
            _ => None,
        },
        "profiles",
        "none",
        &[
            "first.example",
            "second.example",
            "did:plc:two",
            "did:plc:three",
        ],
    );
    let people =
        told.rows("SELECT i.id, u.handle FROM users u JOIN ids i ON i.key = u.key AND i.canonical");
    let all = [
        ("did:plc:one", "same.example"),
        ("did:plc:three", "same.example"),
        ("did:plc:two", "same.example"),
    ];
    assert_eq!(people, pairs(all));
    // They stay three: a name that can move proves nothing.
    let holders = told.rows("SELECT key, movable FROM ids WHERE id = 'same.example'");
    assert_eq!(holders.len(), 3);
    assert!(holders.iter().all(|row| row[1] == "1"), "{holders:?}");
    let resolved = told
        .calls
        .iter()
        .filter(|call| call.target.contains("resolveHandle"));
    assert_eq!(resolved.count(), 2, "each name is looked up once");
}

#[test]
fn a_list_whose_cursors_go_round_ends() {
    let told = Told::crawl(
        |asked| match asked.method {
            "app.bsky.graph.getFollows" | "app.bsky.graph.getFollowers" => {
                let place: u32 = asked.one("cursor").parse().unwrap_or(0);
                let key = if asked.method.ends_with("getFollows") {
                    "follows"
                } else {
                    "followers"
                };
                let person = profile(&format!("did:plc:f{place}"), "handle.invalid");
                Some(json!({ key: [person], "cursor": ((place + 1) % 7).to_string() }))
            }
            _ => None,
        },
        "relations",
        "none",
        &["did:plc:round"],
    );
    let both = told.rows("SELECT query, outcome FROM outcomes");
    assert_eq!(
        both,
        pairs([("followers", "cap reached"), ("follows", "cap reached")])
    );
    // Nobody has the handle of those who have none.
    assert!(
        told.rows("SELECT key FROM ids WHERE id = 'handle.invalid'")
            .is_empty()
    );
    assert_eq!(
        told.rows("SELECT source, target FROM user_relations").len(),
        14
    );
}

#[test]
fn ids_that_can_be_nobodys_are_dropped() {
    let told = Told::crawl(
        |asked| match asked.method {
            "app.bsky.graph.getFollows" => {
                let odd = [json!(null), json!(""), json!("x".repeat(1 << 20))];
                let odd = odd
                    .into_iter()
                    .map(|did| json!({ "did": did, "handle": "a.example" }));
                let mut all: Vec<Value> = odd.collect();
                all.push(json!({ "handle": "b.example" }));
                all.push(json!("did:plc:text"));
                all.push(profile("did:plc:good", "good.example"));
                Some(json!({ "follows": all }))
            }
            _ => Some(json!({ "followers": [] })),
        },
        "relations",
        "none",
        &["did:plc:seed"],
    );
    let targets = told
        .rows("SELECT t.id FROM user_relations r JOIN ids t ON t.key = r.target AND t.canonical");
    assert_eq!(targets, [vec!["did:plc:good".to_owned()]].into());
}
