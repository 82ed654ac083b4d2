//! Servers that refuse, redirect, overload or vanish: the crawl waits, goes on or stops as it should.

use crate::counterpart::{Call, Counterpart, account, reply};
use crate::oracle::{ALL_ROBOTS, Plan, Truth};
use crate::support::{Folder, Running, Sim, open, rows, text};
use crate::truth::{TOKEN, compare};
use std::collections::BTreeMap;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What an ordinary server answers about the account with id 1, which has no relations or posts.
fn ordinary(call: &Call, stream: &mut std::net::TcpStream) -> std::io::Result<()> {
    let body = if call.target.contains("id%5B%5D") || call.target.contains("id[]") {
        format!("[{}]", account(1))
    } else {
        "[]".to_owned()
    };
    reply(stream, "200 OK", "", body.as_bytes())
}

fn crawl(folder: &Folder, server: &Counterpart, more: &str) -> Output {
    // These servers know the three robots that every network has.
    let robots = if more.contains("--robots") {
        ""
    } else {
        "--robots relations,profiles,statuses"
    };
    let words = format!("id:1 --until-idle --json {robots} {more}");
    folder.crawl(&server.address, &words)
}

fn outcomes(folder: &Folder) -> Vec<(String, String)> {
    let found = rows(
        &open(&folder.path("t.db")),
        "SELECT query, outcome FROM outcomes",
    );
    found
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect()
}

fn count(folder: &Folder, sql: &str) -> u64 {
    let found = rows(&open(&folder.path("t.db")), sql);
    found
        .into_iter()
        .flatten()
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a count")
}

#[test]
fn faults_that_pass_are_tried_again_and_leave_no_trace_but_the_log() {
    let faults = AtomicU64::new(0);
    let server =
        Counterpart::mastodon(
            move |call, stream| match faults.fetch_add(1, Ordering::Relaxed) {
                0 => reply(
                    stream,
                    "503 Service Unavailable",
                    "",
                    b"{\"error\":\"busy\"}",
                ),
                1 => reply(stream, "500 Internal Server Error", "", b"oops"),
                2 => Ok(()),
                3 => reply(stream, "200 OK", "", b"[{\"id\":"),
                _ => ordinary(call, stream),
            },
        );
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--limits off");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        outcomes(&folder)
            .iter()
            .all(|(_, code)| code == "ok" || code == "empty"),
        "{:?}",
        outcomes(&folder)
    );
    assert_eq!(
        count(
            &folder,
            "SELECT count(*) FROM query_log WHERE outcome NOT IN ('ok', 'empty')"
        ),
        4
    );
    assert_eq!(count(&folder, "SELECT count(*) FROM users"), 1);
}

#[test]
fn a_fault_that_stays_ends_as_an_outcome_after_a_bounded_number_of_tries() {
    let server = Counterpart::mastodon(|_, stream| reply(stream, "502 Bad Gateway", "", b"no"));
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--limits off --robots profiles");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        outcomes(&folder),
        [("profiles".to_owned(), "transient".to_owned())]
    );
    // Four leases of three tries each.
    assert_eq!(server.calls().len(), 12);
    let logged = "SELECT count(*) FROM query_log WHERE query = 'profiles'";
    assert_eq!(count(&folder, logged), 12);
}

#[test]
fn a_refusal_for_a_limit_is_waited_out() {
    let refusals = AtomicU64::new(0);
    let server = Counterpart::mastodon(move |call, stream| {
        if refusals.fetch_add(1, Ordering::Relaxed) == 0 {
            return reply(
                stream,
                "429 Too Many Requests",
                "retry-after: 2\r\n",
                b"{\"error\":\"Throttled\"}",
            );
        }
        ordinary(call, stream)
    });
    let folder = Folder::new();
    let started = Instant::now();
    let output = crawl(&folder, &server, "--concurrency 1");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        started.elapsed() >= Duration::from_secs(2),
        "it did not wait"
    );
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a summary");
    assert_eq!(summary["violations"], 1);
    assert!(
        outcomes(&folder)
            .iter()
            .all(|(_, code)| code == "ok" || code == "empty")
    );
}

#[test]
fn what_the_server_says_is_left_is_not_exceeded() {
    // The server's own limit is 5 calls a window, not the 300 that the definition declares.
    let windows: Arc<Mutex<BTreeMap<u64, u64>>> = Arc::default();
    let counted = Arc::clone(&windows);
    let server = Counterpart::mastodon(move |call, stream| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time")
            .as_secs();
        let used = {
            let mut counted = counted.lock().expect("counts");
            let used = counted.entry(now / 300).or_default();
            *used += 1;
            *used
        };
        let reset = jiff::Timestamp::from_second((now - now % 300 + 300) as i64).expect("a time");
        let headers = format!(
            "x-ratelimit-limit: 5\r\nx-ratelimit-remaining: {}\r\nx-ratelimit-reset: {reset}\r\n",
            5_u64.saturating_sub(used)
        );
        let list = call.target.contains("follow");
        let path = call.target.split('?').next().unwrap_or_default();
        let next = format!(
            "{headers}link: <http://{}{path}?limit=80&max_id={used}>; rel=\"next\"\r\n",
            call.host
        );
        let body = format!("[{}]", account(used + 1));
        if list {
            reply(stream, "200 OK", &next, body.as_bytes())
        } else {
            reply(stream, "200 OK", &headers, b"[]")
        }
    });
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--concurrency 1 --max-time 4s");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let windows = windows.lock().expect("counts");
    assert!(windows.values().all(|calls| *calls <= 5), "{windows:?}");
    assert!(server.calls().len() >= 5, "the allowance was used");
}

#[test]
fn a_token_that_is_refused_stops_the_crawl_with_its_own_code() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 50 --speed 0");
    let mut command = folder.crawl_command(&sim.address, "id:1 --until-idle");
    let output = command
        .env("KITTIWAKE_MASTODON_TOKEN", "bad-and-secret")
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("token"), "{said}");
    assert!(!said.contains("bad-and-secret"), "{said}");
}

#[test]
fn a_host_that_is_down_is_waited_for_and_then_given_up_with_state_saved() {
    let folder = Folder::new();
    let words = "id:1 --until-idle --limits off --json";
    let output = folder.crawl("http://127.0.0.1:9", words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a summary");
    assert_eq!(summary["end"]["reason"], "host_down");
    assert_eq!(
        summary["robots"]["profiles"]["visited"], 0,
        "nobody was given up"
    );
}

#[test]
fn redirects_stay_on_the_host_and_never_lead_to_private_addresses() {
    let inner = Counterpart::mastodon(|_, stream| reply(stream, "200 OK", "", b"[]"));
    let elsewhere = inner.address.clone();
    let server = Counterpart::mastodon(move |call, stream| {
        if call.target.contains("moved=1") {
            return ordinary(call, stream);
        }
        let mark = if call.target.contains('?') { '&' } else { '?' };
        let location = if call.target.contains("statuses") {
            format!("{elsewhere}{}", call.target)
        } else {
            format!("{}{mark}moved=1", call.target)
        };
        reply(
            stream,
            "302 Found",
            &format!("location: {location}\r\n"),
            b"",
        )
    });
    let folder = Folder::new();
    let mut command = folder.crawl_command(&server.address, "id:1 --until-idle");
    let output = command
        .env("KITTIWAKE_MASTODON_TOKEN", "planted")
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = outcomes(&folder);
    assert!(
        found.contains(&("profiles".to_owned(), "ok".to_owned())),
        "{found:?}"
    );
    assert!(
        found.contains(&("timeline".to_owned(), "malformed".to_owned())),
        "{found:?}"
    );
    assert!(inner.calls().is_empty(), "a private address was dialled");
    let sent = server.calls();
    assert!(sent.iter().all(|call| {
        call.headers
            .iter()
            .any(|line| line == "authorization: Bearer planted")
    }));
}

#[test]
fn redirects_in_a_circle_end() {
    let server = Counterpart::mastodon(|call, stream| {
        reply(
            stream,
            "301 Moved Permanently",
            &format!("location: {}\r\n", call.target),
            b"",
        )
    });
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--limits off --robots profiles");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        outcomes(&folder),
        [("profiles".to_owned(), "bad request".to_owned())]
    );
    assert_eq!(server.calls().len(), 4);
}

#[test]
fn a_batch_that_fails_as_a_whole_is_split_until_the_id_at_fault_is_alone() {
    let server = Counterpart::mastodon(|call, stream| {
        let ids: Vec<u64> = call
            .target
            .split(['?', '&'])
            .filter_map(|part| part.split('=').next_back())
            .filter_map(|id| id.parse().ok())
            .collect();
        if ids.contains(&7) {
            return reply(stream, "403 Forbidden", "", b"{\"error\":\"not that one\"}");
        }
        let accounts: Vec<String> = ids.iter().map(|id| account(*id)).collect();
        reply(
            stream,
            "200 OK",
            "",
            format!("[{}]", accounts.join(",")).as_bytes(),
        )
    });
    let folder = Folder::new();
    let seeds: Vec<String> = (1..=12).map(|id| format!("id:{id}")).collect();
    let words = format!(
        "--until-idle --limits off --robots profiles {}",
        seeds.join(" ")
    );
    let output = folder.crawl(&server.address, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        count(
            &folder,
            "SELECT count(*) FROM outcomes WHERE outcome = 'ok'"
        ),
        11
    );
    assert_eq!(
        count(
            &folder,
            "SELECT count(*) FROM outcomes WHERE outcome = 'forbidden'"
        ),
        1
    );
    assert_eq!(count(&folder, "SELECT count(*) FROM users"), 11);
}

/// A server that stumbles over one account of twelve, in whatever call it is asked for.
fn stumbling_over_seven() -> Counterpart {
    Counterpart::mastodon(|call, stream| {
        let parts = call.target.split(['?', '&']);
        let ids: Vec<u64> = parts
            .filter_map(|part| part.split('=').next_back()?.parse().ok())
            .collect();
        if ids.contains(&7) {
            return reply(stream, "500 Internal Server Error", "", b"oops");
        }
        let accounts: Vec<String> = ids.iter().map(|id| account(*id)).collect();
        let body = format!("[{}]", accounts.join(","));
        reply(stream, "200 OK", "", body.as_bytes())
    })
}

#[test]
fn somebody_whom_the_server_stumbles_over_keeps_nobody_else_out() {
    let server = stumbling_over_seven();
    let folder = Folder::new();
    let seeds: Vec<String> = (1..=12).map(|id| format!("id:{id}")).collect();
    let words = format!("--limits off --robots profiles {}", seeds.join(" "));
    let visited = |times: u32| {
        let sql = format!("SELECT count(*) FROM frontier WHERE visits = {times}");
        count(&folder, &sql)
    };
    let crawl = |ending: &str| {
        let output = folder.crawl(&server.address, &format!("{words} {ending}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    crawl("--until-idle");
    assert_eq!((visited(0), visited(1)), (1, 11));
    // Tried as a whole for as often as anything is, then in parts, once each.
    assert!(server.calls().len() <= 12 + 2 * 12);
    // Nor from another round.
    crawl("--again");
    assert_eq!((visited(0), visited(2)), (1, 11));
}

#[test]
fn a_round_that_was_broken_off_is_completed_before_another_begins() {
    let server = Counterpart::mastodon(ordinary);
    let folder = Folder::new();
    for (ending, code, calls) in [
        // What the server is, and one more.
        ("--max-calls 2", 3, 1),
        ("--again", 0, 4),
        ("--again", 0, 8),
    ] {
        let words = format!("id:1 --limits off --robots relations,profiles,statuses {ending}");
        let output = folder.crawl(&server.address, &words);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert_eq!(server.calls().len(), calls, "after {ending}");
    }
}

#[test]
fn a_token_of_blanks_is_no_token() {
    let server = Counterpart::mastodon(ordinary);
    let folder = Folder::new();
    let words = "id:1 --until-idle --limits off --robots profiles";
    let output = folder.crawl_with_token(&server.address, words, "  ");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let calls = server.calls();
    let headers = calls.iter().flat_map(|call| &call.headers);
    let sent = headers
        .filter(|header| header.to_lowercase().starts_with("authorization"))
        .count();
    assert_eq!((calls.len(), sent), (1, 0));
}

/// A crawl whose first list is on its way until the test lets it be answered.
struct HeldList {
    folder: Folder,
    server: Counterpart,
    crawl: Running,
    may_answer: Arc<AtomicBool>,
}

impl HeldList {
    fn start() -> Self {
        let may_answer = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&may_answer);
        let server = Counterpart::mastodon(move |call, stream| {
            while call.target.contains("/following") && !answers.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if call.target.contains("/lookup") {
                return reply(stream, "200 OK", "", account(2).as_bytes());
            }
            ordinary(call, stream)
        });
        let folder = Folder::new();
        // One call at a time: the robot of lists has the lookup of the second user at hand.
        let words = "id:1 u2 --until-idle --limits off --concurrency 1 --robots relations,statuses";
        let crawl = Running::start(&mut folder.crawl_command(&server.address, words));
        let held = Self {
            folder,
            server,
            crawl,
            may_answer,
        };
        held.waits_for("/accounts/1/following");
        held
    }

    fn waits_for(&self, part: &str) {
        let started = Instant::now();
        let is_there = || {
            let calls = self.server.calls();
            calls.iter().any(|call| call.target.contains(part))
        };
        while !is_there() {
            assert!(started.elapsed() < Duration::from_mins(1), "no {part}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Says something to the crawl, then lets the list be answered.
    fn say(&self, words: &str) {
        let told = self.folder.say(words);
        assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
        self.may_answer.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_robot_that_is_paused_holds_up_no_lookup_that_others_wait_for() {
    let held = HeldList::start();
    held.say("pause t.db --robot relations");
    held.waits_for("/lookup");
    held.waits_for("/accounts/2/statuses");
}

#[test]
fn a_robot_that_is_stopped_in_the_middle_of_a_visit_keeps_no_crawl_from_its_end() {
    let mut held = HeldList::start();
    held.say("stop t.db --robot relations");
    assert_eq!(held.crawl.wait(), Some(0));
    held.waits_for("/accounts/2/statuses");
    let calls = held.server.calls();
    let is_second_list = |call: &&Call| call.target.contains("/followers");
    assert_eq!(calls.iter().filter(is_second_list).count(), 0);
}

#[test]
fn depth_may_grow_and_seeds_may_be_added_later() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 120 --seed 3 --speed 0 --limits off");
    let truth = Truth::read(&sim);
    let seed = truth.seed();
    let local = format!("id:{}", truth.local_id(&seed));
    // The same subject under another name is the same subject.
    for (depth, name) in [(0, &seed), (1, &seed), (2, &local)] {
        let words = everything(name, depth).words();
        let output = folder
            .crawl_command(&sim.address, &format!("{words} --until-idle --limits off"))
            .env("KITTIWAKE_MASTODON_TOKEN", TOKEN)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        compare(&folder.path("t.db"), &truth, everything(&seed, depth));
    }
}

fn everything(seed: &str, depth: u32) -> Plan<'_> {
    Plan {
        seed,
        depth,
        robots: ALL_ROBOTS,
        include_opted_out: true,
    }
}

#[test]
fn a_handle_that_turns_out_to_be_a_known_user_is_merged_with_it() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 120 --seed 3 --speed 0 --limits off");
    let truth = Truth::read(&sim);
    let seed = truth.seed();
    let local = truth.local_id(&seed);
    let plan = everything(&seed, 1);
    // Both names at once: the store learns only from the lookup that they are one.
    let words = format!(
        "{} id:{local} --until-idle --limits off --concurrency 8",
        plan.words()
    );
    let output = folder.crawl_with_token(&sim.address, &words, TOKEN);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    compare(&folder.path("t.db"), &truth, plan);
    assert_eq!(count(&folder, "SELECT count(*) FROM key_merges"), 1);
}

#[test]
fn what_an_outage_left_undone_is_done_by_the_same_command() {
    let calls = AtomicU64::new(0);
    let server = Counterpart::mastodon(move |call, stream| {
        if calls.fetch_add(1, Ordering::Relaxed) < 40 {
            return reply(stream, "503 Service Unavailable", "", b"{}");
        }
        ordinary(call, stream)
    });
    let folder = Folder::new();
    let first = crawl(&folder, &server, "--limits off");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&first.stdout).expect("a summary");
    assert_eq!(summary["given_up"], 3);
    assert_eq!(
        summary["robots"]["profiles"]["visited"], 0,
        "a visit that failed is no visit"
    );
    // The outage may last a little longer than one run.
    for _ in 0..2 {
        crawl(&folder, &server, "--limits off");
    }
    assert_eq!(count(&folder, "SELECT count(*) FROM users"), 1);
    assert_eq!(
        count(&folder, "SELECT count(*) FROM frontier WHERE visits = 0"),
        0
    );
}

#[test]
fn a_lookup_that_names_nobody_is_asked_once() {
    for (answer, outcome) in [
        ("null", "not found"),
        (
            r#"{"acct":"u1","uri":"https://h.example/users/1"}"#,
            "malformed",
        ),
    ] {
        let server =
            Counterpart::mastodon(move |_, stream| reply(stream, "200 OK", "", answer.as_bytes()));
        let folder = Folder::new();
        let output = folder.crawl(
            &server.address,
            "u1 --until-idle --limits off --robots profiles,statuses",
        );
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(
            outcomes(&folder),
            [("lookup".to_owned(), outcome.to_owned())]
        );
        assert_eq!(server.calls().len(), 1);
    }
}

#[test]
fn a_redirect_to_a_host_that_is_not_there_is_a_fault_of_that_call_alone() {
    let server = Counterpart::mastodon(|call, stream| {
        if call.target.contains("following") {
            return reply(
                stream,
                "302 Found",
                "location: http://nowhere.invalid/x\r\n",
                b"",
            );
        }
        ordinary(call, stream)
    });
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--limits off");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = outcomes(&folder);
    assert!(
        found.contains(&("following".to_owned(), "host down".to_owned())),
        "{found:?}"
    );
    assert!(
        found.contains(&("followers".to_owned(), "empty".to_owned())),
        "{found:?}"
    );
    assert!(
        found.contains(&("profiles".to_owned(), "ok".to_owned())),
        "{found:?}"
    );
}

#[test]
fn a_refusal_is_waited_out_even_where_no_budget_is_declared() {
    let folder = Folder::new();
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    let mut kept = Vec::new();
    let mut skipping = false;
    for line in shipped.lines() {
        if line.starts_with('[') {
            skipping = line.starts_with("[budgets.");
        }
        if !skipping {
            kept.push(line);
        }
    }
    std::fs::write(folder.path("free.toml"), kept.join("\n")).expect("a definition");
    let server = Counterpart::mastodon(|_, stream| {
        reply(stream, "429 Too Many Requests", "retry-after: 1\r\n", b"{}")
    });
    let fixed = "--into t.db --until-idle --max-time 4s --robots profiles --quiet";
    let words = format!("crawl free.toml id:1 --host {} {fixed}", server.address);
    let output = folder.say(&words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        server.calls().len() <= 5,
        "{} calls in 4 seconds",
        server.calls().len()
    );
    assert_eq!(
        outcomes(&folder),
        [("profiles".to_owned(), "rate limited".to_owned())]
    );
}

/// The shipped definition with something more.
fn widened(folder: &Folder, more: &str) {
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    std::fs::write(folder.path("wide.toml"), format!("{shipped}\n{more}")).expect("a definition");
}

#[test]
fn a_page_that_shuts_us_out_stops_everything_and_the_same_command_goes_on_later() {
    let folder = Folder::new();
    widened(
        &folder,
        "[[blocks]]\nstatus = [200, 403]\ntext = [\"prove that you are human\"]\nreason = \"captcha\"\n\
         [[blocks]]\nredirect = \"/login\"\nreason = \"log-in asked for\"",
    );
    let pages: [(&str, &str, &[u8]); 2] = [
        (
            "200 OK",
            "",
            b"<html>Please PROVE that you are human</html>",
        ),
        ("302 Found", "location: /login?next=x\r\n", b""),
    ];
    for (status, headers, page) in pages {
        let is_open = Arc::new(AtomicBool::new(false));
        let opened = Arc::clone(&is_open);
        let server = Counterpart::mastodon(move |call, stream| {
            if opened.load(Ordering::Relaxed) {
                return ordinary(call, stream);
            }
            reply(stream, status, headers, page)
        });
        let file = format!("{}.db", &status[..3]);
        let words = format!(
            "crawl wide.toml id:1 --host {} --into {file} --until-idle --robots profiles,statuses",
            server.address
        );
        let output = folder.say(&words);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("shuts us out"), "{said}");
        let asked = server.calls().len();
        assert!((1..=4).contains(&asked), "{asked} calls");
        is_open.store(true, Ordering::Relaxed);
        let output = folder.say(&words);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let visited = "SELECT count(*) FROM frontier WHERE visits > 0";
        let visited = rows(&open(&folder.path(&file)), visited);
        assert!(visited.contains(&vec!["2".to_owned()]), "{visited:?}");
    }
}

#[test]
fn a_host_without_declared_limits_is_asked_politely_and_its_refusals_are_remembered() {
    let folder = Folder::new();
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    let mut kept = vec!["[politeness]\nstart = \"50/s\"\nmost = \"60/s\"".to_owned()];
    let mut skipping = false;
    for line in shipped.lines() {
        if line.starts_with('[') {
            skipping = line.starts_with("[budgets.");
        }
        if !skipping {
            kept.push(line.to_owned());
        }
    }
    kept.rotate_left(1);
    std::fs::write(folder.path("polite.toml"), kept.join("\n")).expect("a definition");
    let refusals = AtomicU64::new(0);
    let server = Counterpart::mastodon(move |call, stream| {
        if refusals.fetch_add(1, Ordering::Relaxed) == 0 {
            return reply(stream, "429 Too Many Requests", "retry-after: 0\r\n", b"{}");
        }
        ordinary(call, stream)
    });
    let words = format!(
        "crawl polite.toml id:1 --host {} --into t.db --until-idle --robots profiles",
        server.address
    );
    let output = folder.say(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let ledger = open(&folder.path("state/kittiwake/budgets.db"));
    let learnt = rows(
        &ledger,
        "SELECT number FROM lessons WHERE topic LIKE 'rate %'",
    );
    let half = vec!["25000000".to_owned()];
    assert!(
        learnt.contains(&half),
        "half of fifty calls a second: {learnt:?}"
    );
}

#[test]
fn a_server_cannot_shut_a_budget_for_years() {
    let server = Counterpart::mastodon(|_, stream| {
        let headers = "x-ratelimit-limit: 300\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 9998-01-01T00:00:00Z\r\n";
        reply(stream, "429 Too Many Requests", headers, b"{}")
    });
    let folder = Folder::new();
    let output = crawl(&folder, &server, "--max-time 2s");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let ledger = open(&folder.path("state/kittiwake/budgets.db"));
    let now_us = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";
    let blocks = rows(
        &ledger,
        &format!("SELECT budget, (blocked_us - {now_us}) / 86400000000 FROM budgets"),
    );
    assert!(!blocks.is_empty());
    assert!(
        blocks
            .iter()
            .all(|row| row[1].parse::<i64>().is_ok_and(|days| days <= 7)),
        "{blocks:?}"
    );
}

#[test]
fn another_spelling_of_a_host_is_no_second_allowance() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 400 --seed 3 --speed 0 --limits strict");
    let seed = Truth::read(&sim).seed();
    // The first takes nearly the whole allowance of a window; the others would break the limit
    // as soon as they thought that they had one of their own.
    for (name, file, bound, code) in [
        ("mastodon@sim.example", "a.db", "--max-calls 270", 3),
        ("mastodon@Sim.Example.", "b.db", "--max-time 2s", 3),
        ("mastodon", "c.db", "--max-time 2s", 3),
    ] {
        let fixed = "--depth 2 --quiet --concurrency 8";
        let words = format!(
            "crawl {name} {seed} --host {} --into {file} {fixed} {bound}",
            sim.address
        );
        let output = folder.say(&words);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    }
    assert!(sim.calls() >= 270);
    assert_eq!(sim.violations(), 0);
}
