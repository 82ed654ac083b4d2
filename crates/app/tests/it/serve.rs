//! The server: what it answers, to whom, and what it makes a crawl do. The real binary, over real sockets.

mod attacks;
mod client;
mod feed;
mod schema;

use crate::support::{Folder, Sim, output_of, text};
use client::{Answer, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(2);
const OPERATOR: &str = "gulls over the harbour";
const VIEWER: &str = "only looking at them";

/// A crawl of a small world that is over, and its network.
fn small_crawl() -> (Folder, Sim) {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 40 --seed 3 --speed 0 --limits off");
    let seed = sim.first_handle();
    let words = format!("{seed} --depth 2 --limits off --until-idle --include-opted-out test");
    let done = folder.crawl(&sim.address, &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    (folder, sim)
}

/// A crawl that goes round and round, served by its own process.
fn endless_crawl() -> (Folder, Sim, Server) {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 60 --seed 3 --speed 1000 --limits off");
    let words = format!(
        "{} --depth 2 --limits off --include-opted-out test --clock-from {} --serve=127.0.0.1:0",
        sim.first_handle(),
        sim.address
    );
    let server = Server::start(&mut folder.crawl_command(&sim.address, &words));
    (folder, sim, server)
}

fn plain_server(folder: &Folder) -> Server {
    let mut command = folder.kittiwake();
    command.args(["serve", "t.db", "--listen", "127.0.0.1:0"]);
    Server::start(&mut command)
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A vault with passwords of both roles; what opens it is in `vault.key`.
fn set_passwords(folder: &Folder) {
    let made = folder.say("auth key vault.key");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (words, password) in [
        ("auth password --key-file vault.key", OPERATOR),
        ("auth password --viewer --key-file vault.key", VIEWER),
    ] {
        let mut command = folder.kittiwake();
        command.args(words.split(' '));
        let set = output_of(&mut command, &format!("{password}\n"));
        assert!(set.status.success(), "{}", text(&set.stderr));
    }
}

fn guarded_server(folder: &Folder) -> Server {
    set_passwords(folder);
    let mut command = folder.kittiwake();
    command.args("serve t.db --listen 127.0.0.1:0 --key-file vault.key".split(' '));
    Server::start(&mut command)
}

#[test]
fn everything_that_the_description_lists_for_reading_is_answered() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let described = server.get("/api/openapi.json").json();
    let users = server.get("/api/users").json();
    let user = users["rows"][0]["key"].as_str().expect("a key").to_owned();
    let call = server.get("/api/calls").json()["rows"][0]["id"].clone();
    let lane = server.get("/api/lanes").json()[0].clone();
    let paths = described["paths"].as_object().expect("paths");
    let mut asked = 0;
    for (path, methods) in paths {
        if methods.get("get").is_none() || ["/api/live", "/api/subscribe"].contains(&path.as_str())
        {
            continue;
        }
        let path = path
            .replace("{key}", &user)
            .replace(
                "/api/calls/{id}",
                &format!("/api/calls/{}", call.as_str().expect("an id")),
            )
            .replace("{name}", "mastodon")
            .replace("{network}", "mastodon");
        let path = match path.as_str() {
            "/api/find" => "/api/find?id=1".to_owned(),
            "/api/search" => "/api/search?words=the".to_owned(),
            "/api/ages" => format!(
                "/api/ages?lane={}",
                lane.as_str().expect("a lane").replace(':', "%3A")
            ),
            "/api/why" => "/api/why?user=nobody".to_owned(),
            "/api/logins/{id}" => continue,
            other => other.to_owned(),
        };
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
    let object = server.get(&format!("/api/objects/{user}")).json();
    assert_eq!(object["key"], json!(user));
    assert!(
        object["groups"][0]["observed"]["call"].is_string(),
        "{object}"
    );
    let interest = server.get("/api/interest").json();
    assert_eq!(interest[0]["user"]["key"], json!(user), "{interest}");
}

#[test]
fn what_is_not_there_is_a_problem_that_says_what_to_do() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    for (path, status) in [
        ("/api/objects/999999999", 404),
        ("/api/objects/word", 400),
        ("/api/users?after=garbage", 400),
        ("/api/users?limit=-1", 400),
        ("/api/calls?outcome=word", 400),
        ("/api/outcomes?subject=1&failed=true", 400),
        ("/api/definitions/none", 404),
        ("/api/logins/none", 404),
        ("/api/none", 404),
        ("/api/subscribe?type=none", 400),
        ("/api/subscribe?after=none", 400),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
        let problem = answer.json();
        assert_eq!(problem["status"], json!(status));
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| detail.len() > 10),
            "{problem}"
        );
    }
}

#[test]
fn a_robot_that_is_paused_by_the_api_sends_nothing_until_it_is_resumed() {
    let (_folder, sim, server) = endless_crawl();
    let timelines = || {
        let targets = sim.targets_after(0);
        targets
            .iter()
            .filter(|it| it.contains("/statuses?"))
            .count()
    };
    let goes_on = || {
        let before = timelines();
        until("timelines are asked for", || timelines() > before + 2);
    };
    goes_on();
    let paused = server.post("/api/robots/statuses/pause", &json!({}));
    assert_eq!(paused.status, 200, "{}", paused.body);
    assert_eq!(paused.json()["done"], json!(true));
    until("what was in flight is over", || {
        let before = timelines();
        std::thread::sleep(Duration::from_millis(500));
        timelines() == before
    });
    let state = || {
        let robots = server.get("/api/robots").json();
        let robots = robots.as_array().expect("robots").clone();
        let robot = robots.into_iter().find(|robot| robot["name"] == "statuses");
        robot.expect("the robot")["state"].clone()
    };
    until("it is shown as paused", || state() == "paused");
    let resumed = server.post("/api/robots/statuses/resume", &json!({}));
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    goes_on();
    until("it is shown as running", || state() == "running");
    until("it has said what it did", || {
        let messages = server.get("/api/messages?robot=statuses").json();
        messages
            .as_array()
            .is_some_and(|messages| !messages.is_empty())
    });
    let unknown = server.post("/api/robots/none/pause", &json!({}));
    assert_eq!(unknown.status, 404, "{}", unknown.body);
}

#[test]
fn a_crawl_that_was_stopped_is_begun_again_and_takes_another_definition() {
    let (_folder, sim, mut server) = endless_crawl();
    let stopped = server.post("/api/crawl/stop", &json!({}));
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    let standing = |name: &str| server.get("/api/status").json()[name].clone();
    until("it has stopped", || standing("crawling") == json!(false));
    let before = sim.calls();
    let started = server.post("/api/crawl/start", &json!({}));
    assert_eq!(started.status, 200, "{}", started.body);
    sim.wait_for_calls(before + 5);
    until("there is another run", || {
        standing("run")["number"] == json!(2)
    });
    let text = server.get("/api/definitions/mastodon").json()["text"].clone();
    let text = text.as_str().expect("a definition");
    let changed = json!({ "text": format!("{text}\n# changed\n") });
    let applied = server.put("/api/definitions/mastodon", &changed);
    assert_eq!(applied.status, 200, "{}", applied.body);
    until("there is a run with it", || {
        let run = standing("run");
        run["number"] == json!(3) && run["definition"] == applied.json()["digest"]
    });
    let broken = server.put("/api/definitions/mastodon", &json!({ "text": "[" }));
    assert_eq!(broken.status, 400, "{}", broken.body);
    server.running.interrupt();
    assert_eq!(server.running.wait(), Some(130));
}

#[test]
fn a_server_that_only_shows_says_who_begins() {
    let (folder, sim) = small_crawl();
    let server = plain_server(&folder);
    let calls = sim.calls();
    let started = server.post("/api/crawl/start", &json!({}));
    assert_eq!(started.status, 409, "{}", started.body);
    assert!(started.body.contains("kittiwake crawl"), "{}", started.body);
    assert_eq!(server.post("/api/crawl/stop", &json!({})).status, 409);
    let left = server.post("/api/crawl/pause", &json!({}));
    assert_eq!(left.json()["done"], json!(false), "{}", left.body);
    assert_eq!(sim.calls(), calls);
}

#[test]
fn a_search_on_the_network_costs_one_call_and_says_so() {
    let (folder, sim) = small_crawl();
    let server = plain_server(&folder);
    let handle = sim.first_handle();
    let word = handle.split('_').next().expect("a word");
    let before = sim.calls();
    let asked = json!({ "network": "mastodon", "host": sim.address, "words": word });
    let answer = server.post("/api/search/online", &asked);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    assert_eq!(answer["calls"], json!(1), "{answer}");
    assert!(
        !answer["found"].as_array().expect("hits").is_empty(),
        "{answer}"
    );
    let targets = sim.targets_after(before);
    assert!(
        targets
            .iter()
            .any(|target| target.contains("/api/v2/search")),
        "{targets:?}"
    );
    let none = json!({ "network": "hackernews", "words": word });
    assert_eq!(server.post("/api/search/online", &none).status, 404);
}

#[test]
fn roles_are_kept_apart_and_sessions_begin_and_end() {
    let (folder, _sim) = small_crawl();
    let server = guarded_server(&folder);
    assert_eq!(server.get("/healthz").status, 200);
    for path in ["/api/status", "/metrics", "/api/openapi.json", "/api/live"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let basic = |role: &str, password: &str, method: &str, path: &str| -> Answer {
        let given = client::basic(role, password);
        let headers = [
            ("Authorization", given.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body = if method == "GET" { "" } else { "{}" };
        server.ask(method, path, &headers, body)
    };
    assert_eq!(basic("viewer", VIEWER, "GET", "/api/status").status, 200);
    assert_eq!(basic("viewer", OPERATOR, "GET", "/api/status").status, 401);
    assert_eq!(basic("nobody", OPERATOR, "GET", "/api/status").status, 401);
    assert_eq!(
        basic("viewer", VIEWER, "POST", "/api/crawl/pause").status,
        403
    );
    assert_eq!(
        basic("operator", OPERATOR, "POST", "/api/crawl/pause").status,
        200
    );
    let me = basic("viewer", VIEWER, "GET", "/api/me").json();
    assert_eq!(me["role"], json!("viewer"));

    let logged_in = server.post(
        "/api/login",
        &json!({ "role": "viewer", "password": VIEWER }),
    );
    assert_eq!(logged_in.status, 200, "{}", logged_in.body);
    let cookie = logged_in
        .header("set-cookie")
        .expect("a session")
        .to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().expect("a pair").to_owned();
    let with_cookie = |method: &str, path: &str| {
        let origin = server.origin();
        let headers = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
        server.ask(method, path, &headers, "")
    };
    assert_eq!(with_cookie("GET", "/api/status").status, 200);
    assert_eq!(with_cookie("POST", "/api/crawl/pause").status, 403);
    assert_eq!(with_cookie("POST", "/api/logout").status, 204);
    assert_eq!(with_cookie("GET", "/api/status").status, 401);
}

#[test]
fn beyond_this_machine_nothing_is_shown_without_a_password() {
    let (folder, _sim) = small_crawl();
    let refused = folder.say("serve t.db --listen 0.0.0.0:0");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("auth password") && said.contains("--public-url"),
        "{said}"
    );
    let odd = folder.say("serve t.db --listen 127.0.0.1:0 --public-url http://crawl.example");
    assert_eq!(odd.status.code(), Some(2), "{}", text(&odd.stderr));
}

#[test]
fn a_log_has_a_line_for_every_request_and_no_secrets() {
    let (folder, _sim) = small_crawl();
    let mut command = folder.kittiwake();
    command.args("serve t.db --listen 127.0.0.1:0 --log json".split(' '));
    let server = Server::start(&mut command);
    server.get("/api/search?words=hunter2hunter2");
    until("it is logged", || server.said().contains("/api/search"));
    let said = server.said();
    assert!(!said.contains("hunter2"), "{said}");
    let line = said
        .lines()
        .find(|line| line.contains("/api/search"))
        .expect("a line");
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["status"], json!(200));
}

#[test]
fn a_secret_goes_in_and_never_comes_out() {
    let (folder, sim) = small_crawl();
    let server = guarded_server(&folder);
    let given = client::basic("operator", OPERATOR);
    let as_operator = |method: &str, path: &str, body: &str| {
        let headers = [
            ("Authorization", given.as_str()),
            ("Content-Type", "application/json"),
        ];
        server.ask(method, path, &headers, body)
    };
    let secret = "s3cret-token-of-nobody";
    let methods = as_operator("GET", "/api/networks/lemmy/logins", "").json();
    let asked: Vec<&str> = methods[0]["asked"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(!asked.is_empty(), "{methods}");
    let secrets: serde_json::Map<String, Value> = asked
        .iter()
        .map(|name| ((*name).to_owned(), json!(secret)))
        .collect();
    let question = json!({ "network": "lemmy", "host": sim.address, "secrets": secrets });
    let begun = as_operator("POST", "/api/logins", &question.to_string());
    assert!(!begun.body.contains(secret), "{}", begun.body);
    let broken = as_operator(
        "POST",
        "/api/logins",
        &format!("{{\"secrets\": \"{secret}\"}}"),
    );
    assert_eq!(broken.status, 400, "{}", broken.body);
    assert!(!broken.body.contains(secret), "{}", broken.body);
    for path in [
        "/api/credentials",
        "/api/status",
        "/metrics",
        "/api/definitions",
    ] {
        let answer = as_operator("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(!answer.body.contains(secret), "{path}");
    }
    assert!(!server.said().contains(secret));
}
