//! Who is asked about whom, on small networks made for it: hosts by home, by handle, by name, by what they
//! can do, and what becomes of those that cannot be asked.

use crate::counterpart::{Counterpart, reply};
use crate::support::{Folder, Tables, open, text};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::{Arc, Mutex};

/// Answers by `host path`, where `PORT` stands for the port of all hosts; anything else is 404.
type Answers = BTreeMap<String, (&'static str, String)>;

/// Many hosts behind one listener, told apart by the name that they are called by.
struct World {
    server: Counterpart,
    answers: Arc<Mutex<Answers>>,
}

impl World {
    fn new() -> Self {
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let known = Arc::clone(&answers);
        let server = Counterpart::start(move |call, stream| {
            let asked = format!("{} {}", host_of(&call.headers), call.target);
            let found = known.lock().expect("answers").get(&asked).cloned();
            let (status, body) = found.unwrap_or(("404 Not Found", "{}".to_owned()));
            if status == "dead" {
                return Ok(());
            }
            reply(stream, status, "", body.as_bytes())
        });
        Self { server, answers }
    }

    fn port(&self) -> &str {
        self.server.address.rsplit_once(':').expect("a port").1
    }

    fn host(&self, name: &str) -> String {
        format!("{name}.localhost:{}", self.port())
    }

    fn answer(&self, asked: &str, status: &'static str, body: &str) {
        let body = body.replace("PORT", self.port());
        let mut answers = self.answers.lock().expect("answers");
        answers.insert(asked.to_owned(), (status, body));
    }

    fn ok(&self, asked: &str, body: &str) {
        self.answer(asked, "200 OK", body);
    }

    /// What was asked, as `host path`, in the order in which it came.
    fn asked(&self) -> Vec<String> {
        let calls = self.server.calls().into_iter();
        calls
            .map(|call| format!("{} {}", host_of(&call.headers), call.target))
            .collect()
    }

    /// The same without what was asked before.
    fn asked_since(&self, before: usize) -> Vec<String> {
        self.asked().split_off(before)
    }

    fn was_asked(&self, asked: &str) -> bool {
        self.asked().iter().any(|it| it == asked)
    }

    fn names_asked(&self) -> BTreeSet<String> {
        let asked = self.asked().into_iter();
        asked
            .filter_map(|it| it.split_once(' ').map(|(host, _)| host.to_owned()))
            .collect()
    }
}

/// The first part of the name that a host was called by.
fn host_of(headers: &[String]) -> String {
    let mut pairs = headers.iter().filter_map(|line| line.split_once(':'));
    let host = pairs.find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = host.map_or("", |(_, value)| value.trim());
    host.split(['.', ':']).next().unwrap_or_default().to_owned()
}

struct Crawl {
    folder: Folder,
    definition: &'static str,
}

impl Crawl {
    fn new(definition: &'static str) -> Self {
        let folder = Folder::new();
        std::fs::write(folder.path("nests.toml"), definition).expect("a definition");
        Self { folder, definition }
    }

    /// Crawls from `own.localhost` until nothing is left.
    fn run(&self, world: &World, words: &str) -> Output {
        let own = world.host("own");
        let base = format!("http://{own}");
        let mut command = self.folder.kittiwake();
        command.args(["crawl", "nests.toml", "--host", &base, "--into", "t.db"]);
        command.arg("--quiet");
        if !words.contains("--again") {
            command.arg("--until-idle");
        }
        command.args(words.replace("PORT", world.port()).split_whitespace());
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(!self.definition.is_empty());
        output
    }

    fn column(&self, sql: &str) -> Vec<String> {
        let (_, found) = open(&self.folder.path("t.db")).select(sql);
        found.into_iter().map(|row| row.join(" ")).collect()
    }

    fn titles(&self) -> Vec<String> {
        self.column("SELECT coalesce(display_name, '') FROM users ORDER BY 1")
    }

    /// Queries and outcomes of everybody.
    fn outcomes(&self) -> Vec<String> {
        self.column("SELECT query || ': ' || outcome || ', ' || reason FROM outcomes ORDER BY 1")
    }
}

/// Birds that live in nests: each is known best where it lives.
const NESTS: &str = r#"
format = 1
name = "nests"
verified_on = "2026-11-17"
sources = ["https://nests.example"]

[host]
kind = "instance"
type = "nest"

[probe]
queries = ["about", "about_old"]

[probe.capabilities]
flocks = ".level >= 2"

[politeness]
start = "100/s"
most = "100/s"

[types.nest]
fields.card.level = { path = ".level", kind = "int" }

[types.bird]
table = "users"
canonical = ".uri"
home = ["canonical", "page"]
resolve = ["finger", "lookup"]

[types.bird.aliases]
page = ".page"
id = { path = ".id", scope = "host" }
name = { path = ".name", qualify = true, movable = true }

[types.bird.fields.card]
display_name = ".title"

[types.bird.shapes.finger]
canonical = ".uri"
aliases.page = ".page"

[queries.about]
subject = "nest"
path = "/about"
selects = [{ at = ".", as = "nest", is_subject = true }]

[queries.about_old]
subject = "nest"
path = "/about/old"
selects = [{ at = ".", as = "nest", is_subject = true }]

[queries.finger]
subject = "bird"
host = { alias = "name" }
path = "/finger"
parameters = { who = "{name}" }
selects = [{ at = ".", as = "bird", shape = "finger", is_subject = true }]

[queries.lookup]
subject = "bird"
path = "/lookup/{name:local}"
selects = [{ at = ".", as = "bird", is_subject = true }]

[queries.bird]
subject = "bird"
path = "/birds/{id}"
selects = [{ at = ".", as = "bird", is_subject = true }]

[queries.flock]
subject = "bird"
needs = "flocks"
path = "/birds"
batch = { parameter = "ids", style = "comma", alias = "id", max = 10 }
selects = [{ at = ".[]", as = "bird", is_subject = true }]

[queries.friends]
subject = "bird"
path = "/birds/{id}/friends"
list = "following"
page = { style = "link", size = 40 }
selects = [{ at = ".[]", as = "bird", link = { kind = "follow", from = "subject", to = "item", table = "user_relations" } }]

[[robots]]
name = "birds"
subject = "bird"
steps = [{ query = "flock", or = ["bird"] }]

[[robots]]
name = "friends"
subject = "bird"
steps = [{ query = "friends", follow = "following" }]
optional = true

[[robots]]
name = "nests"
subject = "nest"
steps = [{ query = "about", or = ["about_old"] }]
optional = true

[[seeds]]
pattern = "id:{id}"
type = "bird"
alias = "id"
value = "{id}"

[[seeds]]
pattern = "{name}@{host}"
type = "bird"
alias = "name"
value = "{name}@{host}"
"#;

/// What a host says of a bird that lives on `home`.
fn bird(home: &str, name: &str, id: &str, title: &str) -> String {
    format!(
        r#"{{"uri":"http://{home}.localhost:PORT/u/{name}","page":"http://{home}.localhost:PORT/@{name}","id":"{id}","name":"{name}@{home}.localhost:PORT","title":"{title}"}}"#
    )
}

/// A bird with all that its home is asked about it.
fn lives(world: &World, home: &str, name: &str, id: &str, title: &str) {
    let body = bird(home, name, id, title);
    world.ok(
        &format!(
            "{home} /finger?who={name}%40{home}.localhost%3A{}",
            world.port()
        ),
        &body,
    );
    world.ok(&format!("{home} /lookup/{name}"), &body);
    world.ok(&format!("{home} /birds/{id}"), &body);
    world.ok(&format!("{home} /birds?ids={id}"), &format!("[{body}]"));
}

/// The crawl's own host knows everybody, by hearsay.
fn is_heard_of(world: &World, home: &str, name: &str, id: &str) {
    let body = bird(home, name, id, "hearsay");
    let handle = format!("{name}%40{home}.localhost%3A{}", world.port());
    world.ok(&format!("own /lookup/{handle}"), &body);
    world.ok(&format!("own /birds/{id}"), &body);
}

#[test]
fn an_account_is_asked_for_where_it_lives() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "Ann herself");
    is_heard_of(&world, "cliff", "ann", "70");
    crawl.run(&world, "ann@cliff.localhost:PORT --hosts *.localhost");
    assert_eq!(crawl.titles(), ["Ann herself"]);
    assert!(world.was_asked("cliff /birds/7"), "{:?}", world.asked());
    assert!(!world.was_asked("own /birds/70"), "{:?}", world.asked());
    // Without leave to ask there, the crawl's own host is asked for everything.
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "Ann herself");
    is_heard_of(&world, "cliff", "ann", "70");
    crawl.run(&world, "ann@cliff.localhost:PORT");
    assert_eq!(crawl.titles(), ["hearsay"]);
    assert_eq!(world.names_asked(), BTreeSet::from(["own".to_owned()]));
}

#[test]
fn hosts_outside_are_never_called() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    for (home, name, id) in [
        ("cliff", "ann", "7"),
        ("marsh", "bob", "8"),
        ("reed", "cid", "9"),
    ] {
        lives(&world, home, name, id, "at home");
        is_heard_of(&world, home, name, &format!("{id}0"));
    }
    let seeds = "ann@cliff.localhost:PORT bob@marsh.localhost:PORT cid@reed.localhost:PORT";
    crawl.run(
        &world,
        &format!("{seeds} --hosts cliff.localhost:PORT --hosts marsh.localhost:PORT"),
    );
    assert_eq!(crawl.titles(), ["at home", "at home", "hearsay"]);
    assert!(!world.names_asked().contains("reed"), "{:?}", world.asked());
}

#[test]
fn a_redirect_to_a_host_outside_is_not_followed() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "Ann herself");
    lives(&world, "reed", "ann", "7", "forged");
    let to_reed = "302 Found\r\nlocation: http://reed.localhost:PORT/birds/7";
    let to_reed = to_reed.replace("PORT", world.port());
    world.answer("cliff /birds/7", Box::leak(to_reed.into_boxed_str()), "");
    crawl.run(
        &world,
        "ann@cliff.localhost:PORT --hosts cliff.localhost:PORT",
    );
    assert!(!world.names_asked().contains("reed"), "{:?}", world.asked());
    let log = crawl.column("SELECT outcome || ', ' || reason FROM query_log WHERE query = 'bird'");
    let told = "malformed, http 302: redirect to where nobody may ask (--hosts)";
    assert!(
        !log.is_empty() && log.iter().all(|it| it == told),
        "{log:?}"
    );
}

#[test]
fn whoever_is_known_by_a_number_alone_is_found_by_the_handle() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "Ann herself");
    // The crawl's own host names her in a list, without saying who she is.
    let named = r#"[{"id":"70","name":"ann@cliff.localhost:PORT"}]"#;
    world.ok("own /birds/1", &bird("own", "me", "1", "Me"));
    world.ok("own /birds/1/friends", named);
    world.ok("cliff /birds/7/friends", "[]");
    let words = "id:1 --depth 1 --hosts *.localhost --robots birds,friends";
    crawl.run(&world, words);
    assert_eq!(crawl.titles(), ["Ann herself", "Me"]);
    let once = |asked: &str| world.asked().iter().filter(|it| *it == asked).count();
    let finger = format!("cliff /finger?who=ann%40cliff.localhost%3A{}", world.port());
    assert_eq!(once(&finger), 1, "{:?}", world.asked());
    assert_eq!(once("cliff /lookup/ann"), 1, "{:?}", world.asked());
}

#[test]
fn hosts_are_asked_in_the_way_that_they_offer_and_what_they_are_once() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    for (name, id) in [("ann", "1"), ("bob", "2")] {
        lives(&world, "new", name, id, "new");
        lives(&world, "old", name, id, "old");
        lives(&world, "odd", name, id, "odd");
    }
    world.ok("new /about", r#"{"level": 2}"#);
    let both = [
        bird("new", "ann", "1", "new"),
        bird("new", "bob", "2", "new"),
    ]
    .join(",");
    world.ok("new /birds?ids=1%2C2", &format!("[{both}]"));
    // One tells it in another place, one says nothing that could be read.
    world.ok("old /about/old", r#"{"level": 1}"#);
    world.answer("odd /about", "401 Unauthorized", "{}");
    world.ok("odd /about/old", "no json");
    let seeds: Vec<String> = ["new", "old", "odd"]
        .iter()
        .flat_map(|host| ["ann", "bob"].map(|name| format!("{name}@{host}.localhost:PORT")))
        .collect();
    let words = format!("{} --hosts *.localhost", seeds.join(" "));
    crawl.run(&world, &words);
    assert_eq!(crawl.titles(), ["new", "new", "odd", "odd", "old", "old"]);
    let asked = world.asked();
    let of = |host: &str, part: &str| {
        let wanted = format!("{host} {part}");
        asked.iter().filter(|it| it.starts_with(&wanted)).count()
    };
    assert!(
        of("new", "/birds?ids=") > 0 && of("new", "/birds/") == 0,
        "{asked:?}"
    );
    for host in ["old", "odd"] {
        assert_eq!(
            (of(host, "/birds?"), of(host, "/birds/")),
            (0, 2),
            "{asked:?}"
        );
    }
    assert_eq!(
        (
            of("new", "/about"),
            of("old", "/about"),
            of("odd", "/about")
        ),
        (1, 2, 2)
    );
    let levels = crawl.column(
        "SELECT substr(i.id, 1, 3) || o.extra FROM objects o JOIN ids i ON i.key = o.key ORDER BY 1",
    );
    assert_eq!(levels, [r#"new{"level":2}"#, r#"old{"level":1}"#]);
    // What a host said is believed by later runs, too.
    let before = asked.len();
    crawl.run(&world, &format!("{words} --again --robots birds,nests"));
    let again = world.asked_since(before);
    let is_about = |host: &str| again.iter().any(|it| *it == format!("{host} /about"));
    assert!(!again.is_empty() && !is_about("new"), "{again:?}");
}

#[test]
fn hosts_that_ask_for_a_token_are_stood_in_for() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "never shown");
    for path in ["/lookup/ann", "/birds/7", "/birds?ids=7"] {
        world.answer(&format!("cliff {path}"), "401 Unauthorized", "{}");
    }
    is_heard_of(&world, "cliff", "ann", "70");
    crawl.run(&world, "ann@cliff.localhost:PORT --hosts *.localhost");
    assert_eq!(crawl.titles(), ["hearsay"]);
    // It was asked once whether it answers.
    let refused = |it: &&String| it.starts_with("cliff /lookup") || it.starts_with("cliff /birds");
    assert_eq!(
        world.asked().iter().filter(refused).count(),
        1,
        "{:?}",
        world.asked()
    );
    let outcomes = crawl.outcomes();
    assert!(
        outcomes.iter().all(|it| it.contains(": ok")),
        "{outcomes:?}"
    );
}

#[test]
fn a_host_that_is_dead_costs_only_itself() {
    let (crawl, world) = (Crawl::new(NESTS), World::new());
    lives(&world, "cliff", "ann", "7", "Ann herself");
    is_heard_of(&world, "dead", "bob", "80");
    let port = world.port();
    for path in [
        "/about".to_owned(),
        "/about/old".to_owned(),
        "/lookup/bob".to_owned(),
        format!("/finger?who=bob%40dead.localhost%3A{port}"),
        format!("/finger?who=eve%40dead.localhost%3A{port}"),
    ] {
        world.answer(&format!("dead {path}"), "dead", "");
    }
    let seeds = "ann@cliff.localhost:PORT bob@dead.localhost:PORT eve@dead.localhost:PORT";
    crawl.run(&world, &format!("{seeds} --hosts *.localhost"));
    assert_eq!(crawl.titles(), ["Ann herself", "hearsay"]);
    // Nobody knows the third, and that is no sign that she is gone.
    let gone = crawl.column("SELECT count(*) FROM invalid_users");
    assert!(
        world
            .asked()
            .iter()
            .filter(|it| it.starts_with("dead"))
            .count()
            <= 8
    );
    assert_eq!(gone, ["0"], "{:?}", crawl.outcomes());
}

#[test]
fn private_addresses_in_answers_are_never_dialled() {
    let canary = Counterpart::json("{}");
    let (_, port) = canary.address.rsplit_once(':').expect("a port");
    let places = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("x.localhost:{port}"),
        "10.0.0.1".to_owned(),
        "169.254.169.254".to_owned(),
        "[::1]:1".to_owned(),
    ];
    for place in places {
        let (crawl, world) = (Crawl::new(NESTS), World::new());
        let uri = format!("http://{place}/u/ann");
        let body = format!(r#"{{"uri":"{uri}","id":"7","name":"ann","title":"x"}}"#);
        world.ok("own /birds/7", &body);
        world.ok("own /birds/7/friends", "[]");
        let words = "id:7 --hosts any --depth 1 --robots birds,friends --contact a@b.example";
        crawl.run(&world, &format!("{words} --again"));
        crawl.run(&world, &format!("{words} --again"));
    }
    assert_eq!(canary.calls().len(), 0);
}

/// An account is found through three services that all share: a name has a number, the number a
/// document, and the document says on which host the account is, and under which name.
const CHAIN: &str = r#"
format = 1
name = "nests"
verified_on = "2026-11-17"
sources = ["https://nests.example"]
host = { kind = "instance" }

[hosts.names]
address = "https://names.example"

[hosts.registry]
address = "https://registry.example"

[politeness]
start = "100/s"
most = "100/s"

[types.bird]
table = "users"
canonical = ".number"
home = "account"
resolve = ["number", "document"]

[types.bird.aliases]
account = { path = ".account", scope = { host = ".place" } }
name = { path = ".name", movable = true }

[types.bird.fields.card]
display_name = ".title"

[types.bird.shapes.number]
canonical = ".number"

[types.bird.shapes.document]
canonical = ".number"
aliases.account = { path = ".account", scope = { host = ".place" } }

[queries.number]
subject = "bird"
host = "names"
path = "/numbers/{name}"
selects = [{ at = ".", as = "bird", shape = "number", is_subject = true }]

[queries.document]
subject = "bird"
host = "registry"
path = "/{canonical}"
selects = [{ at = ".", as = "bird", shape = "document", is_subject = true }]

[queries.bird]
subject = "bird"
host = "own"
path = "/birds/{account}"
selects = [{ at = ".", as = "bird", is_subject = true }]

[[robots]]
name = "birds"
subject = "bird"
steps = [{ query = "bird" }]

[[seeds]]
pattern = "@{name}"
type = "bird"
alias = "name"
value = "{name}"

[[seeds]]
pattern = "{number}"
type = "bird"
value = "{number}"
"#;

const PLACES: &str =
    "--at names=http://names.localhost:PORT --at registry=http://registry.localhost:PORT/docs";

#[test]
fn lookups_lead_from_one_to_the_next() {
    let (crawl, world) = (Crawl::new(CHAIN), World::new());
    world.ok("names /numbers/ann", r#"{"number":"n1"}"#);
    let document = r#"{"number":"n1","account":"ann","place":"http://cliff.localhost:PORT/x"}"#;
    world.ok("registry /docs/n1", document);
    world.ok(
        "cliff /birds/ann",
        r#"{"number":"n1","account":"ann","place":"http://cliff.localhost:PORT","title":"Ann"}"#,
    );
    crawl.run(&world, &format!("@ann {PLACES} --hosts *.localhost"));
    assert_eq!(crawl.titles(), ["Ann"]);
    let chain = [
        "names /numbers/ann",
        "registry /docs/n1",
        "cliff /birds/ann",
    ];
    assert_eq!(world.asked(), chain);
    // Whoever is known by number has one link less to go, and what is known is not asked again.
    crawl.run(&world, &format!("n1 {PLACES} --hosts *.localhost --again"));
    assert_eq!(world.asked_since(3), ["cliff /birds/ann"]);
}

#[test]
fn a_chain_that_leads_nowhere_ends_with_a_word() {
    let port_outside = "http://far.example/x";
    for (answers, hosts, outcome, calls) in [
        (vec![], "*.localhost", "number: not found", 1),
        // A document that is about somebody else.
        (
            vec![
                ("names /numbers/ann", r#"{"number":"n1"}"#.to_owned()),
                (
                    "registry /docs/n1",
                    r#"{"number":"n2","account":"ann","place":"http://cliff.localhost:PORT"}"#
                        .to_owned(),
                ),
            ],
            "*.localhost",
            "document: malformed, the answer is about somebody else",
            2,
        ),
        // One that does not say where.
        (
            vec![
                ("names /numbers/ann", r#"{"number":"n1"}"#.to_owned()),
                ("registry /docs/n1", r#"{"number":"n1"}"#.to_owned()),
            ],
            "*.localhost",
            "document: malformed, the answer names no id of the subject",
            2,
        ),
        // One that leads to where nobody may go.
        (
            vec![
                ("names /numbers/ann", r#"{"number":"n1"}"#.to_owned()),
                (
                    "registry /docs/n1",
                    r#"{"number":"n1","account":"ann","place":"http://cliff.localhost:PORT"}"#
                        .to_owned(),
                ),
            ],
            "marsh.localhost:PORT",
            "birds: forbidden, its own host is not known, or may not be asked (--hosts)",
            2,
        ),
        (
            vec![
                ("names /numbers/ann", r#"{"number":"n1"}"#.to_owned()),
                (
                    "registry /docs/n1",
                    format!(r#"{{"number":"n1","account":"ann","place":"{port_outside}"}}"#),
                ),
            ],
            "*.localhost",
            "document: malformed, the answer names no id of the subject",
            2,
        ),
    ] {
        let (crawl, world) = (Crawl::new(CHAIN), World::new());
        for (asked, body) in answers {
            world.ok(asked, &body);
        }
        crawl.run(&world, &format!("@ann {PLACES} --hosts {hosts}"));
        let outcomes = crawl.outcomes();
        assert!(
            outcomes.iter().any(|it| it.starts_with(outcome)),
            "{outcomes:?}"
        );
        assert_eq!(world.asked().len(), calls, "{:?}", world.asked());
    }
}

#[test]
fn a_chain_that_leads_in_a_circle_asks_nobody() {
    let circle: &'static str = Box::leak(
        CHAIN
            .replace(
                "path = \"/numbers/{name}\"",
                "path = \"/numbers/{account}\"",
            )
            .into_boxed_str(),
    );
    let (crawl, world) = (Crawl::new(circle), World::new());
    crawl.run(&world, &format!("@ann {PLACES} --hosts *.localhost"));
    assert_eq!(world.asked(), Vec::<String>::new());
    let outcomes = crawl.outcomes();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert!(outcomes[0].starts_with("birds: forbidden"), "{outcomes:?}");
}

#[test]
fn a_host_that_has_no_name_is_no_host() {
    let (crawl, world) = (Crawl::new(CHAIN), World::new());
    let own = format!("http://{}", world.host("own"));
    let at = |place: &str| {
        let words = [
            "crawl",
            "nests.toml",
            "@ann",
            "--host",
            &own,
            "--into",
            "t.db",
            "--at",
            place,
        ];
        let output = crawl.folder.run(&words);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(at("registry").contains("NAME=URL"), "{}", at("registry"));
    assert!(at("nobody=http://x.localhost").contains("names, registry"));
}
