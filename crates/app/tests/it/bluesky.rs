//! The shipped definition against the real PLC directory, PDS and AppView: what a crawl has to hold is
//! known by what was put in (`tests/pds/seed.mjs`).

use crate::atproto::Servers;
use crate::postgres::server;
use crate::support::{Folder, Running, Tables, open, output_of, rows, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const ACCOUNTS: usize = 50;

type Pairs = BTreeSet<(String, String)>;

/// What is in the network.
struct Truth {
    people: Vec<Person>,
    posts: Vec<Post>,
    follows: Pairs,
    likes: Pairs,
    reposts: Pairs,
    /// The id of a post that was written and deleted again.
    deleted_post: String,
}

struct Person {
    did: String,
    /// None that leads back to the account.
    handle: Option<String>,
    name: Option<String>,
    /// Why nobody is there any more.
    gone: Option<String>,
}

struct Post {
    uri: String,
    author: String,
    text: String,
    parent: Option<String>,
    quoted: Option<String>,
    tags: Vec<String>,
    mentions: Vec<String>,
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn words(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(word)
        .collect()
}

fn pairs(value: &Value) -> Pairs {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|pair| Some((word(&pair[0])?, word(&pair[1])?)))
        .collect()
}

impl Truth {
    fn read(told: &Value) -> Self {
        let people = told["people"].as_array().expect("people").iter();
        let posts = told["posts"].as_array().expect("posts").iter();
        Self {
            people: people
                .map(|person| Person {
                    did: word(&person["did"]).expect("an id"),
                    handle: word(&person["handle"]),
                    name: word(&person["name"]),
                    gone: word(&person["gone"]),
                })
                .collect(),
            posts: posts
                .map(|post| Post {
                    uri: word(&post["uri"]).expect("an id"),
                    author: word(&post["author"]).expect("an author"),
                    text: word(&post["text"]).expect("a text"),
                    parent: word(&post["parent"]),
                    quoted: word(&post["quoted"]),
                    tags: words(&post["tags"]),
                    mentions: words(&post["mentions"]),
                })
                .collect(),
            follows: pairs(&told["follows"]),
            likes: pairs(&told["likes"]),
            reposts: pairs(&told["reposts"]),
            deleted_post: word(&told["deletedPost"]).expect("an id"),
        }
    }

    /// The ids of those who are still there.
    fn present(&self) -> BTreeSet<&str> {
        let present = self.people.iter().filter(|it| it.gone.is_none());
        present.map(|person| &*person.did).collect()
    }

    /// Posts that anybody can read.
    fn shown(&self) -> impl Iterator<Item = &Post> {
        let present = self.present();
        self.posts
            .iter()
            .filter(move |post| present.contains(&*post.author))
    }

    fn texts(&self) -> BTreeSet<Vec<String>> {
        self.shown()
            .map(|post| vec![post.uri.clone(), post.author.clone(), post.text.clone()])
            .collect()
    }

    /// Pairs of whom the first is still there and, as `is_shown` says, the second.
    fn seen<'t>(&'t self, pairs: &'t Pairs, is_shown: impl Fn(&str) -> bool) -> Pairs {
        let present = self.present();
        let pairs = pairs.iter();
        pairs
            .filter(|(from, to)| present.contains(&**from) && is_shown(to))
            .cloned()
            .collect()
    }

    /// What posts that can be read have of something.
    fn of_posts(&self, what: impl Fn(&Post) -> Vec<String>) -> Pairs {
        self.shown()
            .flat_map(|post| what(post).into_iter().map(|it| (post.uri.clone(), it)))
            .collect()
    }
}

/// Links of a kind, by the ids of both ends.
fn links(tables: &dyn Tables, kind: &str) -> Pairs {
    let sql = format!(
        "SELECT f.id, t.id FROM links l JOIN ids f ON f.key = l.from_key AND f.canonical
         JOIN ids t ON t.key = l.to_key AND t.canonical WHERE l.kind = '{kind}'"
    );
    pair_rows(tables, &sql)
}

fn pair_rows(tables: &dyn Tables, sql: &str) -> Pairs {
    let rows = rows(tables, sql).into_iter();
    rows.map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// Posts with a text: id, author, text.
fn texts(tables: &dyn Tables) -> BTreeSet<Vec<String>> {
    rows(
        tables,
        "SELECT i.id, a.id, s.text FROM statuses s JOIN ids i ON i.key = s.key AND i.canonical
         JOIN ids a ON a.key = s.author AND a.canonical WHERE s.text IS NOT NULL",
    )
}

fn relations(tables: &dyn Tables) -> Pairs {
    pair_rows(
        tables,
        "SELECT s.id, t.id FROM user_relations r JOIN ids s ON s.key = r.source AND s.canonical
         JOIN ids t ON t.key = r.target AND t.canonical",
    )
}

#[track_caller]
fn assert_same<T: Ord + std::fmt::Debug>(what: &str, found: &BTreeSet<T>, expected: &BTreeSet<T>) {
    let missing: Vec<_> = expected.difference(found).take(5).collect();
    let invented: Vec<_> = found.difference(expected).take(5).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "{what}: {} expected, {} found; missing {missing:?}; invented {invented:?}",
        expected.len(),
        found.len()
    );
}

/// A network with everybody in it, and a folder of crawls.
struct World {
    servers: Servers,
    truth: Truth,
    folder: Folder,
}

impl World {
    fn start() -> Option<Self> {
        // The AppView cleans up after itself no more than its database does: that goes with the test.
        let database = server::shared().url_by_parameter();
        let servers = Servers::start(Some(&database))?;
        let started = Instant::now();
        let truth = Truth::read(&servers.tell(&format!("seed?accounts={ACCOUNTS}")));
        println!(
            "{} people, {} posts, {} follows, {} likes, {} reposts in {:.0?}",
            truth.people.len(),
            truth.posts.len(),
            truth.follows.len(),
            truth.likes.len(),
            truth.reposts.len(),
            started.elapsed()
        );
        Some(Self {
            servers,
            truth,
            folder: Folder::new(),
        })
    }

    /// `words` are seeds, and what else there is to say.
    fn command(&self, file: &str, robots: &str, words: &[&str]) -> Command {
        let directory = format!("directory={}", self.servers.plc);
        let mut command = self.folder.kittiwake();
        command.args(["crawl", "bluesky", "--host", &self.servers.appview]);
        command.args(["--at", &directory, "--hosts", &self.servers.pds_host]);
        command.args(["--into", file, "--robots", robots]);
        command.args(["--quiet", "--json"]).args(words);
        command
    }

    /// Everybody, some by their handles.
    fn everybody(&self) -> Vec<&str> {
        let people = self.truth.people.iter().enumerate();
        let named = people.map(|(place, person)| match &person.handle {
            Some(handle) if place < 12 => handle,
            _ => &person.did,
        });
        named.map(String::as_str).collect()
    }

    /// Crawls, is killed after so many calls, and crawls on to the end.
    fn crawl_and_kill(&self, file: &str, robots: &str, words: &[&str], calls: u64) {
        let before = self.servers.calls_total();
        let mut command = self.command(file, robots, words);
        let mut process = Running::start(command.arg("--until-idle"));
        let started = Instant::now();
        while self.servers.calls_total() < before + calls {
            assert!(!process.has_ended(), "it ended before it was killed");
            assert!(started.elapsed() < Duration::from_mins(2), "nobody calls");
            std::thread::sleep(Duration::from_millis(20));
        }
        process.kill();
        self.crawl(file, robots, words);
    }

    fn crawl(&self, file: &str, robots: &str, words: &[&str]) -> Value {
        let mut command = self.command(file, robots, words);
        let output = command.arg("--until-idle").output();
        assert_done(&output.expect("the binary runs"))
    }

    /// How often a method was asked for.
    fn count(&self, method: &str) -> u64 {
        self.servers.calls()[method].as_u64().unwrap_or(0)
    }
}

#[track_caller]
fn assert_done(output: &Output) -> Value {
    let said = text(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}{}",
        text(&output.stdout)
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["violations"], 0, "{report}");
    report
}

/// All that is shown by the AppView: nothing missing, nothing invented.
fn assert_as_seeded(world: &World, tables: &dyn Tables) {
    let truth = &world.truth;
    let present = truth.present();
    assert_same("posts", &texts(tables), &truth.texts());
    let shown: BTreeSet<&str> = truth.shown().map(|post| &*post.uri).collect();
    assert!(!shown.contains(&*truth.deleted_post), "it was deleted");
    let follows = truth.seen(&truth.follows, |to| present.contains(to));
    assert_same("follows", &relations(tables), &follows);
    let likes = truth.seen(&truth.likes, |to| shown.contains(to));
    assert_same("likes", &links(tables, "like"), &likes);
    let reposts = truth.seen(&truth.reposts, |to| shown.contains(to));
    assert_same("reposts", &links(tables, "repost"), &reposts);
    let quotes = truth.of_posts(|post| post.quoted.iter().cloned().collect());
    assert_same("quotes", &links(tables, "quote"), &quotes);
    let tags = truth.of_posts(|post| post.tags.clone());
    assert_same("tags", &links(tables, "tag"), &tags);
    let mentions = truth.of_posts(|post| post.mentions.clone());
    assert_same("mentions", &links(tables, "mention"), &mentions);
    let parents = pair_rows(
        tables,
        "SELECT i.id, p.id FROM statuses s JOIN ids i ON i.key = s.key AND i.canonical
         JOIN ids p ON p.key = s.reply_to AND p.canonical",
    );
    let expected = truth.of_posts(|post| post.parent.iter().cloned().collect());
    assert_same("answers", &parents, &expected);
}

fn assert_people(world: &World, tables: &dyn Tables) {
    let present = world.truth.people.iter().filter(|it| it.gone.is_none());
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "NULL".to_owned());
    let expected: BTreeSet<Vec<String>> = present
        .map(|it| vec![it.did.clone(), or_none(&it.handle), or_none(&it.name)])
        .collect();
    let found = rows(
        tables,
        "SELECT i.id, coalesce(u.handle, 'NULL'), coalesce(u.display_name, 'NULL') FROM users u
         JOIN ids i ON i.key = u.key AND i.canonical WHERE u.followers_count IS NOT NULL",
    );
    assert_same("people", &found, &expected);
    let gone = world.truth.people.iter().filter(|it| it.gone.is_some());
    let gone: BTreeMap<&str, &str> = gone
        .map(|it| (&*it.did, it.gone.as_deref().unwrap_or_default()))
        .collect();
    let outcomes = pair_rows(
        tables,
        "SELECT i.id, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key AND i.canonical
         WHERE o.query = 'profile'",
    );
    let expected: Pairs = gone
        .iter()
        .map(|(did, why)| ((*did).to_owned(), (*why).to_owned()))
        .collect();
    assert_same("who is gone", &outcomes, &expected);
    let invalid = rows(
        tables,
        "SELECT i.id FROM invalid_users v JOIN ids i ON i.key = v.key AND i.canonical
         WHERE v.until_us IS NULL",
    );
    let gone: BTreeSet<Vec<String>> = gone.keys().map(|did| vec![(*did).to_owned()]).collect();
    assert_same("who is not valid", &invalid, &gone);
}

/// Whole accounts, as their own server has them: also what they did with those who are gone.
fn assert_repositories(world: &World, tables: &dyn Tables) {
    let truth = &world.truth;
    assert_same("posts in repositories", &texts(tables), &truth.texts());
    let all = |pairs| truth.seen(pairs, |_| true);
    let follows = all(&truth.follows);
    assert_same("follows in repositories", &relations(tables), &follows);
    assert_same(
        "likes in repositories",
        &links(tables, "like"),
        &all(&truth.likes),
    );
    let reposts = all(&truth.reposts);
    assert_same(
        "reposts in repositories",
        &links(tables, "repost"),
        &reposts,
    );
    let quotes = truth.of_posts(|post| post.quoted.iter().cloned().collect());
    assert_same("quotes in repositories", &links(tables, "quote"), &quotes);
}

#[test]
fn the_real_network_is_crawled_as_it_was_seeded() {
    let Some(world) = World::start() else {
        return;
    };
    let started = Instant::now();
    let robots = "relations,profiles,statuses,comments,reposts,updates,likes,quotes";
    let everybody = world.everybody();
    world.crawl_and_kill("a.db", robots, &everybody, 150);
    let file = open(&world.folder.path("a.db"));
    assert_as_seeded(&world, &file);
    assert_people(&world, &file);
    println!("by the AppView: {:.0?}", started.elapsed());
    assert_few_calls(&world, &file);
    by_their_own_server(&world);
    in_one_piece(&world);
    by_searches(&world);

    // Neither did anybody say that it was too much.
    let refused = world.servers.tell("refused");
    assert_eq!(refused, serde_json::json!({}), "the PDS's own limits");
}

/// How few calls can tell everybody's profile, relations and posts, by what fits into a call.
fn calls_min(truth: &Truth) -> usize {
    const PROFILES_A_CALL: usize = 25;
    const PAGE: usize = 100;
    let present = truth.present();
    let shown: BTreeSet<&str> = truth.shown().map(|post| &*post.uri).collect();
    let follows = truth.seen(&truth.follows, |to| present.contains(to));
    let reposts = truth.seen(&truth.reposts, |to| shown.contains(to));
    let pages = present.iter().map(|did| {
        let following = follows.iter().filter(|(from, _)| from == did).count();
        let followers = follows.iter().filter(|(_, to)| to == did).count();
        let posts = truth.shown().filter(|post| post.author == *did).count();
        let reposts = reposts.iter().filter(|(from, _)| from == did).count();
        let lists = [following, followers, posts + reposts];
        lists
            .map(|length| length.div_ceil(PAGE).max(1))
            .iter()
            .sum::<usize>()
    });
    // Only who is asked for alone is told why nobody is there.
    let gone = truth.people.len() - present.len();
    truth.people.len().div_ceil(PROFILES_A_CALL) + gone + pages.sum::<usize>()
}

/// The AppView is asked for little more than it has to be, though the crawl was killed.
fn assert_few_calls(world: &World, tables: &dyn Tables) {
    const METHODS: [&str; 5] = [
        "actor.getProfiles",
        "actor.getProfile",
        "graph.getFollows",
        "graph.getFollowers",
        "feed.getAuthorFeed",
    ];
    let truth = &world.truth;
    let (people, present) = (truth.people.len(), truth.present().len());
    let least = calls_min(truth);
    // Lists of some servers end with an empty page, which is short; of those who are gone, all are refused.
    let empty = rows(
        tables,
        "SELECT DISTINCT query, subjects FROM query_log
         WHERE query IN ('follows', 'followers', 'author_feed') AND cursor <> '' AND bytes < 2000",
    )
    .len();
    assert!(empty <= 3 * present, "{empty} empty pages");
    let refused = 3 * (people - present);
    let methods = METHODS.iter();
    let calls: u64 = methods
        .map(|method| world.count(&format!("appview:app.bsky.{method}")))
        .sum();
    let again = i64::try_from(calls).expect("few") - (least + empty + refused) as i64;
    println!(
        "profiles, relations and posts of {people} accounts: {calls} calls, {:.2} each; {least} by arithmetic, \
         {empty} for empty last pages, {refused} for lists of those who are gone, {again} again after the kill",
        calls as f64 / people as f64
    );
    assert!((0..=20).contains(&again), "{again} calls too many");
}

/// Everybody on the server that a seed names: each whole, and page by page.
fn by_their_own_server(world: &World) {
    let started = Instant::now();
    let seed = format!("pds:http://{}", world.servers.pds_host);
    let people = &world.truth.people;
    let deleted = people.iter().find(|it| is_deleted(it));
    let deleted = &*deleted.expect("somebody was deleted").did;
    // Those who live on a server are one step away from it. Who was deleted is not on its list any more.
    let words = ["--depth", "1", &*seed, deleted];
    let robots = "accounts,repositories,identities";
    world.crawl_and_kill("b.db", robots, &words, 40);
    let whole = open(&world.folder.path("b.db"));
    assert_repositories(world, &whole);
    assert_gone_from_server(world, &whole);
    println!("by their own server, whole: {:.0?}", started.elapsed());
    let started = Instant::now();
    world.crawl("d.db", "accounts,records", &words[..3]);
    let paged = open(&world.folder.path("d.db"));
    assert_same("posts by pages", &texts(&paged), &world.truth.texts());
    println!("by their own server, in pages: {:.0?}", started.elapsed());
}

fn is_deleted(person: &Person) -> bool {
    person.gone.as_deref() == Some("not found")
}

/// The server says itself who is gone. The directory knows of those who were deleted that they were there.
fn assert_gone_from_server(world: &World, tables: &dyn Tables) {
    let gone = world.truth.people.iter().filter_map(|it| {
        let why = if is_deleted(it) {
            "gone"
        } else {
            it.gone.as_deref()?
        };
        Some((it.did.clone(), why.to_owned()))
    });
    let gone: Pairs = gone.collect();
    for query in ["repository", "repo_status"] {
        let sql = format!(
            "SELECT i.id, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key AND i.canonical
             WHERE o.query = '{query}' AND o.outcome <> 'ok'"
        );
        assert_same(query, &pair_rows(tables, &sql), &gone);
    }
    let invalid = pair_rows(
        tables,
        "SELECT i.id, v.reason FROM invalid_users v JOIN ids i ON i.key = v.key AND i.canonical",
    );
    assert_same("who is gone from the server", &invalid, &gone);
}

/// Long histories are had in one piece where nobody needs counts, and gone on with from there.
fn in_one_piece(world: &World) {
    let people = &world.truth.people;
    let seeds = [&*people[0].did, &*people[3].did, &*people[4].did];
    let (whole, pages) = (
        "com.atproto.sync.getRepo",
        "appview:app.bsky.feed.getAuthorFeed",
    );
    let before = (world.count(whole), world.count(pages));
    // How long their histories are has to be known first.
    world.crawl("e.db", "profiles", &seeds);
    world.crawl("e.db", "profiles,statuses", &seeds);
    assert_eq!(world.count(whole) - before.0, 2, "those with many posts");
    assert!(world.count(pages) - before.1 <= 2, "one with a few");
    let tables = open(&world.folder.path("e.db"));
    let by_three = |row: &&Vec<String>| seeds.contains(&&*row[1]);
    let found: BTreeSet<_> = texts(&tables).iter().filter(by_three).cloned().collect();
    let expected: BTreeSet<_> = world
        .truth
        .texts()
        .iter()
        .filter(by_three)
        .cloned()
        .collect();
    assert_same("posts in one piece", &found, &expected);
    drop(tables);
    let did = &people[0].did;
    world
        .servers
        .tell(&format!("post?did={did}&text=something%20new"));
    let again = [&*people[0].did];
    let mut command = world.command("e.db", "profiles,statuses", &again);
    assert_done(&command.arg("--again").output().expect("the binary runs"));
    assert_eq!(world.count(whole) - before.0, 2, "nothing twice");
    let tables = open(&world.folder.path("e.db"));
    let new = texts(&tables);
    assert!(new.iter().any(|row| row[2] == "something new"));
}

/// Searches for words and tags need an account, whose own server passes them on. The tests' AppView finds words
/// in handles and texts as they are written.
fn by_searches(world: &World) {
    let started = Instant::now();
    let truth = &world.truth;
    log_in(world, &truth.people[1]);
    let words = ["quote", "user1", "nothingofthekind"];
    let seeds = words.map(|word| format!("search:{word}"));
    search(world, "f.db", "search,search_posts", &seeds);
    let tables = open(&world.folder.path("f.db"));
    let present = truth.people.iter().filter(|it| it.gone.is_none());
    let people = present.filter_map(|it| Some((&it.did, it.handle.as_ref()?)));
    let posts = truth.shown().map(|post| (&post.uri, &post.text));
    let mut expected = Pairs::new();
    for (id, text) in people.chain(posts) {
        let found = words.iter().filter(|word| text.contains(*word));
        expected.extend(found.map(|word| (id.clone(), (*word).to_owned())));
    }
    assert_same("what is found", &links(&tables, "found"), &expected);
    let stored = texts(&tables);
    assert!(stored.is_subset(&truth.texts()), "nothing is invented");

    search(world, "g.db", "hashtags", &["tag:birds0".to_owned()]);
    let tables = open(&world.folder.path("g.db"));
    let tagged = truth.texts().into_iter();
    let tagged = tagged.filter(|row| row[2].contains("#birds0"));
    assert_same("what is tagged", &texts(&tables), &tagged.collect());
    println!("by searches: {:.0?}", started.elapsed());
}

/// Keeps a session of somebody in the vault.
fn log_in(world: &World, person: &Person) {
    let asked = format!("appPassword?handle={}&name=searches", person.did);
    let password = word(&world.servers.tell(&asked)["password"]).expect("a password");
    let made = world.folder.say("auth key vault.key");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let mut command = world.folder.kittiwake();
    command.args(["login", "bluesky", "--host", &world.servers.pds]);
    command.args(["--key-file", "vault.key"]);
    let handle = person.handle.as_deref().expect("a handle");
    let done = output_of(&mut command, &format!("{handle}\n{password}\n"));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
}

fn search(world: &World, file: &str, robots: &str, seeds: &[String]) {
    let directory = format!("directory={}", world.servers.plc);
    let mut command = world.folder.kittiwake();
    command.args(["crawl", "bluesky", "--host", &world.servers.pds]);
    command.args(["--at", &directory, "--hosts", "none"]);
    command.args(["--key-file", "vault.key", "--into", file]);
    command.args(["--robots", robots, "--until-idle", "--quiet", "--json"]);
    assert_done(&command.args(seeds).output().expect("the binary runs"));
}
