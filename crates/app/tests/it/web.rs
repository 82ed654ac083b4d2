//! Web pages: the definitions of docs/web-pages.md against the site that it describes. A crawl holds
//! what the site shows, row by row, and the site's own log says what was asked for.

mod hostile;
mod site;

use crate::authority::PLANTED;
use crate::counterpart::{Counterpart, reply};
use crate::login::search;
use crate::oracle::Rows;
use crate::strict::{Held, kill_and_resume, rows_of};
use crate::support::{Folder, output_of, text};
use site::{Door, NAME, PASSWORD, Roost, State, Told, Truth};
use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DOCUMENTATION: &str = include_str!("../../../../docs/web-pages.md");

const USERS: &str =
    "SELECT key AS \"@\", handle, display_name, description, followers_count FROM users";
const RELATIONS: &str = "SELECT source AS \"@\", target AS \"@\" FROM user_relations";
const STATUSES: &str = "SELECT key AS \"@\", author AS \"@\", text, created_us, url FROM statuses";

/// A block of the documentation that has a line.
fn documented(line: &str) -> &'static str {
    let mut blocks = DOCUMENTATION.split("```toml\n").skip(1);
    let block = blocks.find(|block| block.lines().any(|it| it == line));
    let block = block.and_then(|block| block.split("```").next());
    block.expect("a definition in docs/web-pages.md")
}

/// A clock on which limits pass so many times as quickly as on the machine's.
fn quick_clock(rate: u32) -> Counterpart {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = now.expect("a time after 1970").as_micros();
    let spec = format!(
        r#"{{"real_origin_us":{now_us},"world":{{"origin_us":{now_us},"rate":1.0}},"limit":{{"origin_us":{now_us},"rate":{rate}.0}}}}"#
    );
    Counterpart::start(move |_, stream| reply(stream, "200 OK", "", spec.as_bytes()))
}

/// The site, its definition as it is documented, and somebody who is logged in.
struct Scene {
    folder: Folder,
    roost: Roost,
    clock: Counterpart,
}

impl Scene {
    fn new(roost: Roost) -> Self {
        Self::with_clock(roost, 200)
    }

    fn with_clock(roost: Roost, rate: u32) -> Self {
        let folder = Folder::new();
        let definition = documented("name = \"roost\"");
        std::fs::write(folder.path("roost.toml"), definition).expect("a definition");
        let made = folder.say("auth key vault.key");
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let scene = Self {
            folder,
            roost,
            clock: quick_clock(rate),
        };
        let output = scene.login(PASSWORD);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        scene
    }

    fn command(&self, words: &str) -> Command {
        let mut command = self.folder.kittiwake();
        command.args(words.split_whitespace());
        command.args(["--key-file", "vault.key"]);
        command
    }

    fn login(&self, password: &str) -> Output {
        let words = format!("login roost.toml --host {}", self.roost.address());
        output_of(&mut self.command(&words), &format!("{NAME}\n{password}\n"))
    }

    fn crawl_command(&self, words: &str) -> Command {
        self.command(&format!(
            "crawl roost.toml --host {} --clock-from {} --into t.db {words} @ann",
            self.roost.address(),
            self.clock.address
        ))
    }

    fn crawl(&self, words: &str) -> Output {
        output_of(&mut self.crawl_command(words), "")
    }

    /// A crawl that comes to its end.
    #[track_caller]
    fn crawl_to_the_end(&self, words: &str) -> Output {
        let output = self.crawl(words);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        self.assert_nothing_leaked(&output);
        output
    }

    /// Nothing of the password or a cookie is in what was said, or in any file.
    fn assert_nothing_leaked(&self, output: &Output) {
        assert!(!said(output).contains(PLANTED), "{}", said(output));
        search(&self.folder.path("."));
    }

    fn held(&self) -> Held {
        Held::open(&self.folder)
    }

    fn truth(&self, depth: usize) -> Truth {
        Truth::of(self.roost.address(), depth)
    }

    /// The file holds what the site shows, and the site was asked for each page once.
    fn assert_whole(&self, depth: usize) {
        self.assert_rows(depth);
        let mut targets = self.roost.targets();
        targets.sort();
        assert_eq!(targets, self.truth(depth).targets());
    }

    /// The same where pages were asked for in vain: each was shown once.
    fn assert_shown_once(&self, depth: usize) {
        self.assert_rows(depth);
        let mut shown = self.roost.state().shown.clone();
        shown.sort();
        assert_eq!(shown, self.truth(depth).targets());
    }

    /// The outcomes of a query that are none of the usual: whose, which and why.
    fn outcomes(&self, query: &str) -> Rows {
        self.held().rows(&format!(
            "SELECT key AS \"@\", outcome, reason FROM outcomes
             WHERE query = '{query}' AND outcome NOT IN ('ok', 'empty')"
        ))
    }

    fn user(&self, handle: &str) -> String {
        format!("user {}/@{handle}", self.roost.address())
    }

    fn say(&self, words: &str) -> String {
        said(&self.folder.say(words))
    }

    fn assert_rows(&self, depth: usize) {
        let truth = self.truth(depth);
        let mut held = self.held();
        held.compare("users", &truth.users(), USERS);
        held.compare("relations", &truth.relations(), RELATIONS);
        held.compare("posts", &truth.statuses(), STATUSES);
        held.finish();
        assert_eq!(self.roost.state().faults, [""; 0]);
    }
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

const ONCE: &str = "--until-idle --quiet";

#[test]
fn a_crawl_with_a_log_in_holds_what_the_pages_say() {
    for depth in [0, 1, 2] {
        let scene = Scene::new(Roost::start());
        scene.crawl_to_the_end(&format!("--depth {depth} {ONCE} --raw"));
        scene.assert_whole(depth);
        let log = scene.roost.log();
        assert_eq!(
            &log[..3],
            ["GET /login", "POST /session", "GET /robots.txt"]
        );
        assert_eq!(scene.roost.count("GET /robots.txt"), 1);
        assert_eq!(scene.roost.count("POST /session"), 1);
        // What was asked for stands in the log, and nothing else does.
        let logged = scene.held().rows("SELECT id, target FROM query_log");
        let mut logged: Vec<String> = logged.into_iter().map(|row| row[1].clone()).collect();
        logged.sort();
        let mut asked: Vec<String> = log[2..].iter().map(|it| it[4..].to_owned()).collect();
        asked.sort();
        assert_eq!(logged, asked);
    }
}

/// Something that is done to the site once, when so many pages were shown.
fn once_shown(
    pages: usize,
    change: impl Fn(&mut State) + Send + Sync + 'static,
) -> impl Fn(&mut State, &str) -> Option<Told> + Send + Sync + 'static {
    let times = AtomicUsize::new(0);
    move |state, target| {
        let is_now = state.shown.len() >= pages && target.starts_with("/@");
        if is_now && times.fetch_add(1, Ordering::Relaxed) == 0 {
            change(state);
        }
        None
    }
}

#[test]
fn a_session_that_expires_is_renewed_once_and_nothing_is_lost() {
    for door in [Door::Redirect, Door::Form] {
        let roost = Roost::twisted(once_shown(9, State::end_sessions));
        roost.state().door = door;
        let scene = Scene::new(roost);
        scene.crawl_to_the_end(&format!("--depth 2 {ONCE}"));
        scene.assert_shown_once(2);
        let shown = scene.roost.state().shown.len();
        let in_vain = scene.roost.targets().len() - shown;
        assert!((1..=4).contains(&in_vain), "{in_vain} calls in flight");
        assert_eq!(scene.roost.count("POST /session"), 2);
        assert_eq!(scene.roost.count("GET /login"), 2);
        assert_eq!(scene.roost.count("GET /robots.txt"), 1);
    }
}

#[test]
fn a_password_that_no_longer_holds_ends_the_crawl_and_is_tried_once() {
    const OTHER: &str = "planted/other&word+0002";
    let roost = Roost::twisted(once_shown(9, |state| {
        state.end_sessions();
        OTHER.clone_into(&mut state.password);
    }));
    let scene = Scene::new(roost);
    for tries in [2, 3] {
        let output = scene.crawl(&format!("--depth 2 {ONCE}"));
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        assert!(
            said(&output).contains("name and password may be wrong"),
            "{}",
            said(&output)
        );
        scene.assert_nothing_leaked(&output);
        assert_eq!(scene.roost.count("POST /session"), tries);
    }
    let refused = scene.login(PASSWORD);
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    scene.assert_nothing_leaked(&refused);
    assert_eq!(scene.login(OTHER).status.code(), Some(0));
    scene.crawl_to_the_end(&format!("--depth 2 {ONCE}"));
    scene.assert_shown_once(2);
}

const UNFOUND: &str = "nothing on the page fits name (h1.name)";

#[test]
fn a_changed_layout_is_told_and_costs_nothing_that_is_known() {
    let scene = Scene::new(Roost::start());
    let words = format!("--depth 1 {ONCE}");
    scene.crawl_to_the_end(&words);
    scene.assert_whole(1);
    scene.roost.state().name_class = "title";
    let output = scene.crawl("--depth 1 --quiet --again");
    assert!(said(&output).contains(UNFOUND), "{}", said(&output));
    scene.assert_rows(1);
    let everybody = || {
        scene
            .truth(1)
            .handles()
            .map(|it| scene.user(it))
            .collect::<Vec<_>>()
    };
    let malformed = everybody()
        .into_iter()
        .map(|it| [it, "malformed".to_owned(), UNFOUND.to_owned()]);
    assert_eq!(scene.outcomes("profile"), rows_of(malformed));
    assert_eq!(scene.outcomes("posts"), Rows::new());
    for words in ["status t.db", "report t.db"] {
        let shown = scene.say(words);
        assert!(shown.contains(UNFOUND), "{words}: {shown}");
    }
    let check = format!(
        "network check roost.toml --against {} --seed @ann",
        scene.roost.address()
    );
    let checked = said(&output_of(&mut scene.command(&check), ""));
    assert!(checked.contains(UNFOUND), "{checked}");
    scene.roost.state().name_class = "name";
    scene.crawl_to_the_end("--depth 1 --quiet --again");
    scene.assert_rows(1);
    assert_eq!(scene.outcomes("profile"), Rows::new());
    let shown = scene.say("status t.db");
    assert!(!shown.contains(UNFOUND), "{shown}");
}

#[test]
fn a_layout_that_changes_on_the_way_is_read_when_it_is_back() {
    let roost = Roost::twisted(once_shown(9, |state| state.name_class = "title"));
    let scene = Scene::new(roost);
    let words = format!("--depth 2 {ONCE}");
    let output = scene.crawl(&words);
    assert!(said(&output).contains(UNFOUND), "{}", said(&output));
    let malformed = scene.outcomes("profile").len();
    assert!(malformed > 0, "the layout has changed");
    // Three times each, and nobody else is the worse for it.
    let in_vain = scene
        .roost
        .state()
        .shown
        .iter()
        .filter(|it| !it[1..].contains('/'))
        .count();
    let seen = scene
        .held()
        .rows("SELECT key FROM users WHERE followers_count IS NOT NULL")
        .len();
    assert_eq!(in_vain, seen + 3 * malformed);
    scene.roost.state().name_class = "name";
    scene.crawl_to_the_end(&words);
    scene.assert_rows(2);
    assert_eq!(scene.outcomes("profile"), Rows::new());
}

#[test]
fn a_calendar_without_end_is_left_after_its_pages() {
    let roost = Roost::start();
    roost.state().later = |handle, shown, page| match handle {
        // Back to the second of four pages.
        "bea" if page == 4 => "page=2".to_owned(),
        // Always the first, under another address.
        "cid" => format!("page=1&visit={shown}"),
        _ => format!("page={}", page + 1),
    };
    let scene = Scene::new(roost);
    scene.crawl_to_the_end(&format!("--depth 1 --robots all {ONCE}"));
    let truth = scene.truth(1);
    let months = |handle: &str| match handle {
        "bea" => 4,
        "cid" => 1,
        _ => 6,
    };
    let mut held = scene.held();
    held.compare("users", &truth.users(), USERS);
    held.compare("relations", &truth.relations(), RELATIONS);
    let mut statuses = truth.statuses();
    statuses.extend(truth.dates(months));
    held.compare("posts and dates", &statuses, STATUSES);
    held.finish();
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for target in scene.roost.targets() {
        if let Some((person, _)) = target.split_once("/calendar") {
            *asked.entry(person.to_owned()).or_default() += 1;
        }
    }
    let most = asked.values().max();
    assert!(asked.len() == 5 && most == Some(&6), "{asked:?}");
    let outcomes = scene.outcomes("calendar");
    let capped = outcomes.iter().filter(|row| row[1] == "cap reached");
    assert_eq!(capped.count(), 5, "{outcomes:?}");
}

fn robots(text: &str) -> Told {
    Told::with("200 OK", "text/plain", text)
}

#[test]
fn what_robots_txt_forbids_is_not_asked_for() {
    let scene = Scene::new(Roost::start());
    scene.roost.state().robots = robots(
        "User-agent: *\nDisallow: /\n\nUser-agent: kittiwake\nDisallow: /@cid\nAllow: /@cid/follows\n",
    );
    scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
    let mut asked = scene.roost.targets();
    asked.sort();
    let mut expected = scene.truth(1).targets();
    expected.retain(|it| !it.starts_with("/@cid") || it == "/@cid/follows");
    assert_eq!(asked, expected);
    for query in ["profile", "posts"] {
        let forbidden = [
            scene.user("cid"),
            "forbidden".to_owned(),
            "robots.txt forbids it".to_owned(),
        ];
        assert_eq!(scene.outcomes(query), rows_of([forbidden]));
    }
}

#[test]
fn a_robots_txt_that_changes_is_obeyed_from_when_it_is_read_again() {
    // An hour is a second.
    let roost = Roost::twisted(once_shown(6, |state| {
        state.robots = robots("User-agent: *\nDisallow: /*/posts\n");
        std::thread::sleep(Duration::from_millis(1_200));
    }));
    let scene = Scene::with_clock(roost, 3_600);
    let words = "--depth 2 --quiet --concurrency 1";
    scene.crawl_to_the_end(&format!("{words} --until-idle"));
    let log = scene.roost.log();
    let is_robots = |line: &&String| *line == "GET /robots.txt";
    assert!(log.iter().filter(is_robots).count() >= 2, "{log:?}");
    let second = log
        .iter()
        .enumerate()
        .filter(|(_, line)| is_robots(line))
        .nth(1);
    let (second, _) = second.expect("read again");
    let later: Vec<&String> = log[second..]
        .iter()
        .filter(|it| it.contains("/posts"))
        .collect();
    assert_eq!(later, [""; 0], "{log:?}");
    let forbidden = scene.outcomes("posts");
    assert!(!forbidden.is_empty(), "it forbids something");
    assert!(
        forbidden.iter().all(|row| row[1] == "forbidden"),
        "{forbidden:?}"
    );
    // Everything else was asked for.
    let mut held = scene.held();
    held.compare("users", &scene.truth(2).users(), USERS);
    held.compare("relations", &scene.truth(2).relations(), RELATIONS);
    held.finish();
    scene.roost.state().robots = Told::with("404 Not Found", "text/plain", "");
    scene.crawl_to_the_end(&format!("{words} --again"));
    scene.assert_rows(2);
    assert_eq!(scene.outcomes("posts"), Rows::new());
}

#[test]
fn a_crawl_delay_is_kept() {
    const RATE: u32 = 100;
    const DELAY_S: u32 = 20;
    let scene = Scene::with_clock(Roost::start(), RATE);
    scene.roost.state().robots = robots(&format!("User-agent: *\nCrawl-delay: {DELAY_S}\n"));
    let begun = Instant::now();
    scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
    let took = begun.elapsed() * RATE;
    scene.assert_whole(1);
    // robots.txt was asked for before it was known.
    let pauses = scene.roost.targets().len() as u32 - 1;
    let least = Duration::from_secs(u64::from(pauses * DELAY_S));
    assert!(took >= least, "{pauses} pauses in {took:?}");
}

#[test]
fn a_robots_txt_that_is_elsewhere_on_the_site_is_found_at_any_pace() {
    let roost = Roost::twisted(|_, target| match target {
        "/robots.txt" => Some(Told::to("/wishes")),
        "/wishes" => Some(Told::to("/wishes.txt")),
        "/wishes.txt" => Some(robots("User-agent: *\nDisallow: /@cid/posts\n")),
        _ => None,
    });
    // Each call has to wait for its turn.
    let scene = Scene::with_clock(roost, 20);
    scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
    let log = scene.roost.log();
    let asked = ["GET /robots.txt", "GET /wishes", "GET /wishes.txt"];
    assert_eq!(log[2..5], asked);
    assert_eq!(asked.map(|line| scene.roost.count(line)), [1, 1, 1]);
    let mut expected = scene.truth(1).targets();
    expected.retain(|it| !it.starts_with("/@cid/posts"));
    let mut targets = scene.roost.targets();
    targets.sort();
    assert_eq!(targets, expected);
}

#[test]
fn nothing_is_asked_for_before_robots_txt_can_be_had() {
    let asked = AtomicUsize::new(0);
    let roost = Roost::twisted(move |_, target| {
        let is_first = target == "/robots.txt" && asked.fetch_add(1, Ordering::Relaxed) < 4;
        is_first.then(|| Told::with("503 Service Unavailable", "text/plain", "later"))
    });
    let scene = Scene::new(roost);
    scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
    scene.assert_whole(1);
    let log = scene.roost.log();
    assert_eq!(log[2..7], ["GET /robots.txt"; 5]);
    assert_eq!(scene.roost.count("GET /robots.txt"), 5);
}

#[test]
fn a_site_whose_robots_txt_is_never_there_is_asked_for_nothing() {
    let scene = Scene::new(Roost::start());
    scene.roost.state().robots = Told::with("500 Internal Server Error", "text/plain", "");
    let output = scene.crawl(&format!("--depth 1 {ONCE}"));
    assert_eq!(scene.roost.targets(), [""; 0], "{}", said(&output));
    let asked = scene.roost.count("GET /robots.txt");
    assert!((1..=30).contains(&asked), "{asked}");
    let logged = "SELECT DISTINCT query, target, outcome, reason FROM query_log";
    let row = [
        "robots.txt",
        "/robots.txt",
        "transient",
        "robots.txt: http 500",
    ];
    assert_eq!(scene.held().rows(logged), rows_of([row.map(str::to_owned)]));
    let shown = scene.say("status t.db");
    assert!(shown.contains("robots.txt: http 500"), "{shown}");
    scene.roost.state().robots = Told::with("404 Not Found", "text/plain", "");
    scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
    scene.assert_whole(1);
}

#[test]
fn of_a_robots_txt_without_measure_the_beginning_counts() {
    let noise: String = (0..40_u8).map(|it| char::from(it * 3)).collect();
    let garbage = noise.repeat(20_000);
    let rules = "\nUser-agent: *\nDisallow: /@cid/posts\n";
    for (file, is_forbidden) in [
        (garbage.clone(), false),
        (format!("{rules}{}", "# more\n".repeat(3_000_000)), true),
        (format!("{}{rules}", "# more\n".repeat(80_000)), false),
        (format!("{rules}{garbage}"), true),
    ] {
        let scene = Scene::new(Roost::start());
        scene.roost.state().robots = robots(&file);
        scene.crawl_to_the_end(&format!("--depth 1 {ONCE}"));
        assert_eq!(scene.roost.count("GET /robots.txt"), 1);
        let mut asked = scene.roost.targets();
        asked.sort();
        let mut expected = scene.truth(1).targets();
        expected.retain(|it| !is_forbidden || !it.starts_with("/@cid/posts"));
        assert_eq!(asked, expected);
    }
}

#[test]
fn a_block_page_stops_the_crawl_and_it_goes_on_later() {
    let blocked = AtomicUsize::new(0);
    let roost = Roost::twisted(move |state, target| {
        let is_blocked = target.starts_with("/@")
            && state.shown.len() >= 7
            && blocked.fetch_add(1, Ordering::Relaxed) < 4;
        is_blocked.then(|| {
            Told::page("<title>Unusual traffic</title><p>Are you a robot? <input name=captcha>")
        })
    });
    let scene = Scene::new(roost);
    let words = format!("--depth 2 {ONCE}");
    let output = scene.crawl(&words);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("the network shuts us out"),
        "{}",
        said(&output)
    );
    let shown = scene.roost.state().shown.len();
    let in_vain = scene.roost.targets().len() - shown;
    assert!((1..=4).contains(&in_vain), "{in_vain} calls in flight");
    // Until it is over.
    for _ in 0..4 {
        if scene.crawl(&words).status.code() == Some(0) {
            break;
        }
    }
    scene.assert_shown_once(2);
}

#[test]
fn a_kill_loses_nothing_and_repeats_nothing() {
    for calls in [3, 11, 20] {
        let scene = Scene::with_clock(Roost::start(), 20);
        let crawl = || scene.crawl_command(&format!("--depth 2 {ONCE}"));
        kill_and_resume(&scene.folder, crawl, || scene.roost.targets(), calls);
        scene.assert_rows(2);
        search(&scene.folder.path("."));
    }
}

#[test]
fn a_cookie_that_a_page_repeats_is_kept_nowhere() {
    let scene = Scene::new(Roost::start());
    scene.roost.state().is_indiscreet = true;
    scene.crawl_to_the_end(&format!("--depth 0 {ONCE} --raw"));
    let about = scene
        .held()
        .rows("SELECT description FROM users WHERE handle = 'ann'");
    assert_eq!(about, rows_of([["***".to_owned()]]));
}
