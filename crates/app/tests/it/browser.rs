//! The dashboard in real Chromium: what a person does, what a hostile network tries, and whether everybody
//! can use it.

mod driver;

use crate::authority::{Authority, PLANTED, Style};
use crate::counterpart::{Call, Counterpart, reply};
use crate::support::{Client, Folder, Sim, open};
use driver::{Browser, View};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);
/// Lines that the program may say before it says where the dashboard is.
const LINES_MAX: usize = 50;
const DASHBOARD: &str = "the dashboard is at ";

const WIDE: View = View {
    width: 1_360,
    height: 900,
    is_dark: false,
};
const PHONE: View = View {
    width: 390,
    height: 844,
    is_dark: false,
};

/// The program with its dashboard, until the test ends.
struct Served {
    process: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stderr = process.stderr.take().expect("standard error is piped");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let mut said: Vec<String> = Vec::new();
        for line in lines.by_ref().take(LINES_MAX) {
            said.push(line);
            if said.last().is_some_and(|line| line.contains(DASHBOARD)) {
                break;
            }
        }
        // Whoever writes must find somebody who reads.
        std::thread::spawn(move || lines.for_each(drop));
        let words = said.last().and_then(|line| line.split(DASHBOARD).nth(1));
        let address = words.and_then(|words| words.split('/').nth(2));
        let address = address.unwrap_or_else(|| panic!("no address: {said:?}"));
        Self {
            process,
            address: format!("http://{address}"),
        }
    }

    fn page(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

/// A crawl that goes round and round, of a world that never stands still, with its dashboard.
fn endless(folder: &Folder, words: &str) -> (Sim, Served, String) {
    let sim = Sim::start(folder, words);
    let seed = sim.first_handle();
    let limits = if words.ends_with("off") {
        "--limits off"
    } else {
        ""
    };
    let words = format!(
        "{seed} {limits} --depth 2 --include-opted-out test --clock-from {} --robots all --serve=127.0.0.1:0",
        sim.address
    );
    let served = Served::start(&mut folder.crawl_command(&sim.address, &words));
    (sim, served, seed)
}

/// Calls for posts of people, among those that the network has in its ledger.
fn timeline_calls(sim: &Sim, skipped: u64) -> usize {
    let targets = sim.targets_after(skipped);
    let is_timeline =
        |target: &&String| target.contains("/accounts/") && target.contains("/statuses?");
    targets.iter().filter(is_timeline).count()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn press(browser: &Browser, within: &str, command: &str) {
    browser.click(&format!("{within} form:has(input[value={command}]) button"));
}

#[test]
fn a_crawl_is_watched_steered_and_looked_through() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = Folder::new();
    let (sim, served, seed) = endless(&folder, "--users 60 --seed 3 --speed 1000 --limits off");
    browser.go(&served.page("/"));
    numbers_move_without_a_reload(&browser);
    a_robot_is_paused_and_resumed(&browser, &served, &sim);
    somebody_is_searched_for(&browser, &served, &seed);
    the_crawl_is_stopped_and_started(&browser, &served);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn numbers_move_without_a_reload(browser: &Browser) {
    let posts = "[data-table=statuses] dd";
    browser.script("window.isTheSamePage = true");
    let before = browser.text(posts);
    browser.until("another number of posts", |browser| {
        (browser.text(posts) != before).then_some(())
    });
    assert_eq!(browser.script("return window.isTheSamePage"), json!(true));
}

fn a_robot_is_paused_and_resumed(browser: &Browser, served: &Served, sim: &Sim) {
    browser.go(&served.page("/robots"));
    let robot = "[data-robot=statuses]";
    press(browser, robot, "pause");
    browser.wait_for_text(&format!("{robot} .pill"), "paused");
    // What was in flight is over when others have made some more calls.
    sim.wait_for_calls(sim.calls() + 50);
    let mark = sim.calls();
    sim.wait_for_calls(mark + 50);
    assert_eq!(timeline_calls(sim, mark), 0, "a paused robot calls");
    let mark = sim.calls();
    press(browser, robot, "resume");
    browser.wait_for_text(&format!("{robot} .pill"), "running");
    wait_until("a call of the robot that goes on", || {
        timeline_calls(sim, mark) > 0
    });
    let messages = browser.text(&format!("{robot} .messages"));
    assert!(messages.contains("timeline"), "{messages}");
}

fn somebody_is_searched_for(browser: &Browser, served: &Served, seed: &str) {
    browser.until("somebody in the index", |browser| {
        browser.go(&served.page("/"));
        browser.write("#find", seed);
        browser.click("form.find button");
        browser.has("main .list a[href^='/object/']").then_some(())
    });
    browser.click("main .list a[href^='/object/']");
    browser.wait_for_text("main .head", seed);
    assert!(browser.has("#counts-title"), "counts are shown");
    browser.click("main .list a.small[href^='/object/']");
    browser.wait_for_text("main h1", "Post by");
    browser.click("nav.tabs a[href$='provenance']");
    browser.click("main a[href^='/log/']");
    browser.wait_for_text("main h1", "Call ");
}

fn the_crawl_is_stopped_and_started(browser: &Browser, served: &Served) {
    browser.go(&served.page("/"));
    press(browser, "#crawl-acts", "stop");
    browser.say_yes();
    browser.wait_for_text("#standing", "ended");
    press(browser, "#crawl-acts", "start");
    browser.wait_for_text("#standing", "crawling");
}

#[test]
fn a_person_logs_in_to_a_network() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = Folder::new();
    let authority = Authority::start(Style::Bearer);
    assert_eq!(folder.say("auth key vault.key").status.code(), Some(0));
    let sim = Sim::start(&folder, "--users 5 --seed 1 --speed 0 --limits off");
    let seed = sim.first_handle();
    let crawled = folder.crawl(&sim.address, &format!("{seed} --limits off --until-idle"));
    assert_eq!(crawled.status.code(), Some(0));
    let mut command = folder.kittiwake();
    command.args([
        "serve",
        "t.db",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        "vault.key",
    ]);
    let served = Served::start(&mut command);
    browser.go(&served.page("/settings"));
    browser.wait_for_text("main", "Nobody is logged in");
    browser.write("#host", &authority.address);
    browser.click("form[action='/settings/login'] button");
    browser.click("section[aria-label='Log in by user'] form button");
    // The network's page opens beside this one, allows it, and sends the person back to the program.
    browser.click("#login a.outside");
    browser.wait_for_text("#login", "Logged in as ada");
    browser.go(&served.page("/settings"));
    browser.wait_for_text("#main table", "ada");
    let shown = browser.script("return document.documentElement.outerHTML");
    assert!(!shown.to_string().contains(PLANTED), "no secret comes out");
    authority.assert_no_complaints();
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// What a hostile account puts wherever it may write something.
const PAYLOAD: &str = "\"'><script>window.ran=1</script><svg onload=\"window.ran=2\"><img src=x \
     onerror=window.ran=3><style>*{display:none}</style><a href=\"javascript:window.ran=4\">x</a>";

fn hostile_account() -> Value {
    json!({
        "id": "1", "uri": format!("https://h.example/users/{PAYLOAD}"), "url": "javascript:window.ran=5",
        "acct": format!("u1{PAYLOAD}"), "username": "u1", "display_name": PAYLOAD, "note": escaped(PAYLOAD),
        "avatar": "javascript:window.ran=6", "header": "data:text/html,<script>window.ran=7</script>",
        "created_at": "2020-01-01T00:00:00.000Z", "followers_count": 1, "following_count": 1,
        "statuses_count": 1, "bot": false, "locked": false,
        "fields": [{ "name": PAYLOAD, "value": PAYLOAD }],
    })
}

fn hostile_post() -> Value {
    json!({
        "id": "11", "uri": format!("https://h.example/posts/{PAYLOAD}"), "url": "javascript:window.ran=8",
        "created_at": "2026-01-01T00:00:00.000Z", "account": hostile_account(), "content": escaped(PAYLOAD),
        "spoiler_text": PAYLOAD, "language": PAYLOAD, "visibility": PAYLOAD, "sensitive": true,
        "replies_count": 0, "reblogs_count": 0, "favourites_count": 0, "media_attachments": [],
        "mentions": [], "emojis": [], "tags": [{ "name": PAYLOAD, "url": "javascript:window.ran=9" }],
        "application": { "name": PAYLOAD },
    })
}

/// As HTML says it, so that it is the text that is hostile.
fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<p>{text}</p>")
}

fn hostile_network() -> Counterpart {
    Counterpart::mastodon(|call: &Call, stream| {
        let path = call.target.split('?').next().unwrap_or_default();
        let is_first = !call.target.contains("max_id");
        let body = match path {
            "/api/v1/accounts/1" => hostile_account(),
            "/api/v1/accounts/1/statuses" if is_first => json!([hostile_post()]),
            "/api/v1/statuses/11" => hostile_post(),
            _ if path.ends_with("/context") => json!({ "ancestors": [], "descendants": [] }),
            _ => json!([]),
        };
        reply(stream, "200 OK", "", body.to_string().as_bytes())
    })
}

#[test]
fn whatever_a_network_says_is_shown_as_text() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = Folder::new();
    let network = hostile_network();
    let words = "id:1 --until-idle --limits off --include-opted-out test";
    let crawled = folder.crawl(&network.address, words);
    assert_eq!(crawled.status.code(), Some(0));
    let file = open(&folder.path("t.db"));
    let newest = "SELECT max(key) FROM ids";
    let keys: i64 = file.query_row(newest, [], |row| row.get(0)).expect("keys");
    let calls: i64 = file
        .query_row("SELECT max(id) FROM query_log", [], |row| row.get(0))
        .expect("calls");
    let mut command = folder.kittiwake();
    command.args(["serve", "t.db", "--listen", "127.0.0.1:0"]);
    let served = Served::start(&mut command);
    let mut paths: Vec<String> = PAGES.map(|(_, path)| path.to_owned()).to_vec();
    paths.push("/search?words=%3Cscript%3E%22%27&in=%22%3E%3Csvg%20onload%3D1%3E".into());
    paths.extend((1..=calls).map(|call| format!("/log/{call}")));
    for key in 1..=keys {
        for part in [
            "",
            "posts",
            "comments",
            "links-from",
            "links-to",
            "changes",
            "provenance",
        ] {
            paths.push(format!("/object/{key}?show={part}"));
        }
    }
    let mut texts = String::new();
    for path in &paths {
        browser.go(&served.page(path));
        assert_eq!(
            browser.script("return window.ran ?? null"),
            Value::Null,
            "{path}"
        );
        let planted = "script, style, img, iframe, object, embed, [onload], [onerror], [style], \
                       a[href^='javascript' i], a[href^='data' i]";
        let found = format!("return document.querySelectorAll(`main :is({planted})`).length");
        assert_eq!(browser.script(&found), json!(0), "{path}");
        texts += browser
            .script("return document.body.innerText")
            .as_str()
            .expect("text");
    }
    let shown = texts.matches("<script>window.ran=1</script>").count();
    assert!(shown >= 4, "the text itself is shown: {shown} times");
    let complaints = browser.complaints();
    let refused: Vec<&String> = complaints.iter().filter(|it| !it.contains("404")).collect();
    assert_eq!(refused, Vec::<&String>::new());
    let reports = Client::new().get(&served.page("/api/reports/count"));
    assert_eq!(reports, r#"{"violations":0}"#);
}

/// Every page, and what its picture is called.
const PAGES: [(&str, &str); 14] = [
    ("overview", "/"),
    ("robots", "/robots"),
    ("budgets", "/budgets"),
    ("freshness", "/freshness"),
    ("graph", "/graph"),
    ("search", "/search"),
    ("found", "/search?words=terns"),
    ("log", "/log"),
    ("call", "/log/1"),
    ("settings", "/settings"),
    ("definition", "/settings/definitions/mastodon"),
    ("account", "/settings/login?network=mastodon"),
    ("login", "/login"),
    ("error", "/nowhere"),
];

/// What keeps somebody out of the page that is open, as axe-core finds it.
fn barriers(browser: &Browser, axe: &str) -> Vec<String> {
    browser.script(axe);
    let found = browser.script_later(
        "const told = arguments[arguments.length - 1];
         axe.run(document, { resultTypes: ['violations'] }).then((found) => told(found.violations
           .filter((it) => ['serious', 'critical'].includes(it.impact))
           .map((it) => `${it.id}: ${it.nodes.map((node) => node.target + ' ' + node.failureSummary).slice(0, 3).join('; ')}`)),
           (error) => told([String(error)]));",
    );
    let found = found.as_array().expect("a list").iter();
    found.map(ToString::to_string).collect()
}

#[test]
fn every_page_can_be_used_by_everybody() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let Some(axe) = std::env::var_os("KITTIWAKE_TEST_AXE") else {
        println!("skipped: KITTIWAKE_TEST_AXE names no script");
        return;
    };
    let axe = std::fs::read_to_string(axe).expect("axe-core");
    let pictures = std::env::var_os("KITTIWAKE_TEST_PICTURES").map(PathBuf::from);
    let folder = Folder::new();
    let (_sim, served, _) = endless(&folder, "--users 2000 --seed 7 --speed 150 --limits strict");
    browser.go(&served.page("/"));
    let user = browser.until("somebody with posts", |browser| {
        browser.go(&served.page("/search"));
        let links =
            "return document.querySelector('#people-title + .list a')?.getAttribute('href')";
        let posts = "return document.querySelectorAll('#posts-title + .list li').length";
        let has_posts = browser.script(posts).as_u64() >= Some(20);
        browser
            .script(links)
            .as_str()
            .filter(|_| has_posts)
            .map(str::to_owned)
    });
    browser.until("posts about terns", |browser| {
        browser.go(&served.page("/search?words=terns"));
        let found = "return document.querySelectorAll('#hits-title + .list li').length";
        browser.script(found).as_u64().filter(|found| *found >= 3)
    });
    browser.go(&served.page(&user));
    let post = "return document.querySelector('main .list a.small')?.getAttribute('href')";
    let post = browser.script(post).as_str().map(str::to_owned);
    let mut pages: Vec<(&str, String)> = PAGES.map(|(name, path)| (name, path.to_owned())).to_vec();
    pages.extend(post.map(|post| ("post", post)));
    pages.push(("fields", format!("{user}?show=provenance")));
    pages.push(("person", user));
    if pictures.is_some() {
        // A picture of the pace needs some past.
        std::thread::sleep(Duration::from_mins(1));
    }
    for (name, path) in &pages {
        for (size, view) in [("wide", WIDE), ("phone", PHONE)] {
            for is_dark in [false, true] {
                let view = View { is_dark, ..view };
                browser.look(view);
                browser.go(&served.page(path));
                assert_eq!(
                    barriers(&browser, &axe),
                    Vec::<String>::new(),
                    "{path}, {view:?}"
                );
                let room = browser.script("return document.documentElement.scrollWidth");
                assert!(
                    room.as_u64() <= Some(view.width),
                    "{path} is wider than {size}"
                );
                if let Some(pictures) = &pictures {
                    let theme = if is_dark { "dark" } else { "light" };
                    let file = pictures.join(format!("{name}-{size}-{theme}.png"));
                    std::fs::write(file, browser.photograph(view)).expect("a picture");
                }
            }
        }
    }
}
