//! A network that says what is left of its limits only when it is asked, and others who use them up.

use crate::support::{Folder, Running, Sim, open, output_of, rows, text};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use toml::Table;

const MASTODON: &str = include_str!("../../../../networks/mastodon.toml");
const TOKEN: &str = "planted/ann:phone";
const LIMIT: u64 = 60;
/// Calls that others make with the same token.
const STRANGERS: u64 = 25;
/// How long a crawl may take to come to its last call.
const WAIT_MAX: Duration = Duration::from_mins(3);

/// The network's: no header tells of it.
const LIMITS: &str = r#"
[[bucket]]
name = "calls"
scope = "token"
kind = "KIND"
limit = 60
window_seconds = 900
"#;

/// The crawler's.
const BUDGETS: &str = r#"
[budgets.calls]
scope = "token"
kind = "KIND"
limit = 60
window = "15m"
authenticated = true
"#;

const STATUS: &str = r#"
[limit_status]
path = "/api/v1/limits"
authenticated = true
charged_to = []

[limit_status.budgets.calls]
limit = ".resources.calls.limit"
remaining = ".resources.calls.remaining"
reset = ".resources.calls.reset"
reset_format = "epoch_s"
"#;

fn definition(name: &str, kind: &str, further: &str) -> String {
    let mut definition: Table = MASTODON.parse().expect("a definition");
    definition.remove("budgets");
    definition.remove("limit_headers");
    definition.insert("name".into(), name.into());
    if let Some(queries) = definition["queries"].as_table_mut() {
        for (_, query) in queries {
            let query = query.as_table_mut().expect("a query");
            query.remove("budgets");
            query.remove("costs");
        }
    }
    let further = format!("{BUDGETS}{further}").replace("KIND", kind);
    let further: Table = further.parse().expect("limits");
    definition.extend(further);
    toml::to_string(&definition).expect("a definition")
}

/// A network whose windows last for ever, and one token of which strangers have used up a part.
struct Scene {
    folder: Folder,
    sim: Sim,
    seed: String,
}

impl Scene {
    fn new(kind: &str) -> Self {
        let folder = Folder::new();
        let write = |name: &str, content: &str| std::fs::write(folder.path(name), content);
        write("limits.toml", &LIMITS.replace("KIND", kind)).expect("a file");
        write("asking.toml", &definition("asking", kind, STATUS)).expect("a file");
        write("silent.toml", &definition("silent", kind, "")).expect("a file");
        let words = "--users 300 --seed 5 --speed 0 --limit-speed 0.001 --limits-file limits.toml";
        let sim = Sim::start(&folder, words);
        let seed = sim.first_handle();
        let scene = Self { folder, sim, seed };
        scene.open_window();
        // Others have a ledger of their own: nothing of theirs is known here but by the server.
        let others = Folder::new();
        std::fs::copy(scene.folder.path("silent.toml"), others.path("silent.toml"))
            .expect("a copy");
        let words = format!("--calls {STRANGERS}");
        let output = scene.crawl(&others, "silent", &words).output();
        let output = output.expect("the binary runs");
        assert_eq!(scene.used(), STRANGERS, "{}", text(&output.stderr));
        scene
    }

    /// Moves the time of limits on to a moment after the beginning of a window.
    fn open_window(&self) {
        let clock = self.sim.json("/_sim/clock");
        let now_s = clock["limit"]["origin_us"].as_i64().expect("a time") / 1_000_000;
        let span_s = 900 - now_s.rem_euclid(900) + 60;
        self.sim
            .get(&format!("/_sim/advance?limit_seconds={span_s}"));
    }

    fn crawl(&self, folder: &Folder, network: &str, words: &str) -> Command {
        let mut command = folder.kittiwake();
        command
            .args(["crawl", &format!("{network}.toml"), &self.seed])
            .args(["--host", &self.sim.address])
            .args(["--clock-from", &self.sim.address])
            .args(["--into", "t.db", "--depth", "2", "--until-idle", "--quiet"])
            .args([
                "--reserve",
                "0",
                "--pace",
                "burst",
                "--include-opted-out",
                "a test",
            ])
            .args(words.split_whitespace())
            .env("KITTIWAKE_ASKING_TOKEN", TOKEN)
            .env("KITTIWAKE_SILENT_TOKEN", TOKEN);
        command
    }

    fn ledger(&self) -> Value {
        self.sim.json("/_sim/ledger?calls=0")
    }

    /// Calls that the window has let through.
    fn used(&self) -> u64 {
        let ledger = self.ledger();
        let windows = ledger["windows"].as_array().expect("windows");
        let latest = windows.iter().max_by_key(|it| it["start_us"].as_i64());
        latest.and_then(|it| it["used"].as_u64()).unwrap_or(0)
    }

    /// Lets a crawl use up the window, and gives it time for a call too many.
    fn use_up(&self, network: &str) -> Option<i32> {
        let mut crawl = Running::start(&mut self.crawl(&self.folder, network, ""));
        let started = Instant::now();
        while self.used() < LIMIT {
            assert!(!crawl.has_ended(), "there is more to do");
            assert!(started.elapsed() < WAIT_MAX, "{} calls", self.used());
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(200));
        crawl.interrupt();
        crawl.wait()
    }
}

#[test]
fn what_strangers_have_used_up_is_asked_for_before_the_first_call() {
    for kind in ["aligned", "from_first", "sliding"] {
        let scene = Scene::new(kind);
        assert_eq!(scene.use_up("asking"), Some(130), "{kind}");
        let ledger = scene.ledger();
        let violations = &ledger["violations"];
        assert_eq!(ledger["violations_total"], 0, "{kind}: {violations}");
        let file = open(&scene.folder.path("t.db"));
        let sql = "SELECT target, outcome, reason FROM query_log WHERE query = 'limit_status'";
        let question = ["/api/v1/limits", "ok", ""].map(str::to_owned).to_vec();
        assert_eq!(rows(&file, sql), [question].into());
        let first = rows(&file, "SELECT query FROM query_log ORDER BY id LIMIT 1");
        assert_eq!(first, [vec!["limit_status".to_owned()]].into());
    }
}

#[test]
fn who_does_not_ask_finds_out_by_a_refusal() {
    for kind in ["aligned", "from_first", "sliding"] {
        let scene = Scene::new(kind);
        scene.use_up("silent");
        let is_refused = scene.sim.violations() > 0;
        assert!(is_refused, "{kind}: that they are asked for proves nothing");
    }
}

#[test]
fn the_question_is_one_of_the_calls_that_may_be_made() {
    let scene = Scene::new("aligned");
    let output = scene
        .crawl(&scene.folder, "asking", "--calls 5")
        .output()
        .expect("the binary runs");
    assert_ne!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let file = open(&scene.folder.path("t.db"));
    let count = rows(&file, "SELECT count(*) FROM query_log");
    assert_eq!(count, [vec!["5".to_owned()]].into());
    assert_eq!(scene.used(), STRANGERS + 4, "the question itself is free");
}

#[test]
fn a_test_of_a_credential_tells_what_is_left() {
    let scene = Scene::new("aligned");
    let test = "test = { path = \"/api/v2/instance\" }";
    let auth = format!("{STATUS}[auth.methods.token]\nkind = \"token\"\n{test}\n");
    let content = definition("asking", "aligned", &auth);
    std::fs::write(scene.folder.path("asking.toml"), content).expect("a file");
    let made = scene.folder.say("auth key vault.key");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let run = |words: &str, input: &str| {
        let mut command = scene.folder.kittiwake();
        command.args(words.split(' ')).args([
            "--host",
            &scene.sim.address,
            "--key-file",
            "vault.key",
        ]);
        output_of(&mut command, input)
    };
    let login = run("login asking.toml --name mine", &format!("{TOKEN}\n"));
    assert_eq!(login.status.code(), Some(0), "{}", text(&login.stderr));
    let tested = run("auth test asking.toml --json", "");
    assert_eq!(tested.status.code(), Some(0), "{}", text(&tested.stderr));
    let said: Value = serde_json::from_slice(&tested.stdout).expect("JSON");
    let limits = &said["limits"][0];
    assert_eq!(limits["budget"], "calls", "{said}");
    assert_eq!(limits["limit"], LIMIT, "{said}");
    assert_eq!(limits["remaining"], LIMIT - scene.used(), "{said}");
    assert!(limits["reset"].is_string(), "{said}");
    let tested = run("auth test asking.toml", "");
    let left = format!("calls: {} of {LIMIT} left, until ", LIMIT - scene.used());
    assert!(
        text(&tested.stdout).contains(&left),
        "{}",
        text(&tested.stdout)
    );
}
