//! How long pages of a large crawl take to read: p50 and p99 of every question, over random places.
//!
//! `cargo bench -p kittiwake-store --bench browse -- [POSTS] [FOLDER] [SECONDS]`: a file of so many posts (a million
//! by default), a tenth as many users, half as many relations, and a call for every twenty posts is made
//! in the folder, or taken from there if it was made before. The index of words is built by the browser
//! itself, and is timed; it is waited for so many seconds at the most, an hour by default.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

use kittiwake_model::{Key, WorldTime};
use kittiwake_store::browse::{
    ActivityQuestion, AgesQuestion, Browser, CallsQuestion, CommentsQuestion, EventId,
    GraphQuestion, LinkDirection, LinksQuestion, OutcomesOf, OutcomesQuestion, PostsQuestion,
    RelationsList, RelationsQuestion, SearchIn, SearchQuestion, UsersOrder, UsersQuestion,
    VersionsQuestion,
};
use kittiwake_store::{Location, OpenMode, SqliteStore, StoreError};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Questions of each kind.
const ASKED: usize = 300;
/// Posts that one call brought.
const POSTS_PER_CALL: i64 = 20;
const NOW_US: i64 = 1_800_000_000_000_000;

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// As docs/tables.md has it.
fn hash(parts: [&str; 5]) -> i64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in parts.join("\u{0}").bytes() {
        let byte = if byte == 0 { 0xFF } else { byte };
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash.cast_signed()
}

/// How large the crawl is: keys of users come first, those of posts follow.
#[derive(Clone, Copy)]
struct Size {
    users: i64,
    posts: i64,
}

impl Size {
    fn user(self, random: u64) -> Key {
        Key(1 + (random % self.users.cast_unsigned()).cast_signed())
    }

    fn post(self, random: u64) -> Key {
        Key(self.users + 1 + (random % self.posts.cast_unsigned()).cast_signed())
    }

    fn calls(self) -> i64 {
        self.posts / POSTS_PER_CALL
    }
}

/// A text of a few words, some of which nearly everybody uses and some nearly nobody.
fn says(number: i64) -> String {
    let random = mix(number.cast_unsigned());
    format!(
        "the common{} topic{} about word{} in place{} with rare{} and 東京 #{}",
        random % 10,
        (random >> 8) % 1_000,
        (random >> 16) % 20_000,
        (random >> 24) % 200_000,
        number,
        (random >> 40) % 300,
    )
}

fn make(path: &Path, size: Size) {
    let begun = Instant::now();
    drop(SqliteStore::open(path, OpenMode::Crawl).unwrap());
    let mut connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000;")
        .unwrap();
    let transaction = connection.transaction().unwrap();
    transaction
        .execute_batch(
            "INSERT INTO types VALUES ('mastodon', 'user', 'users'), ('mastodon', 'status', 'statuses');
             INSERT INTO field_lists VALUES
               (1, '[\"description\",\"display_name\",\"followers_count\",\"handle\",\"url\"]'),
               (2, '[\"author\",\"created_us\",\"text\",\"url\"]');
             INSERT INTO runs(id, network, host, definition, clock, settings, started_us)
               VALUES (1, 'mastodon', 'example.social', 'digest', 'real', '{}', 1);",
        )
        .unwrap();
    make_people(&transaction, size);
    make_posts(&transaction, size);
    make_calls(&transaction, size);
    transaction
        .execute_batch(
            "INSERT INTO id_places SELECT hash, rowid FROM ids ORDER BY hash, rowid;
             UPDATE rules SET value = (SELECT CAST(max(rowid) AS TEXT) FROM ids) WHERE name = 'id_places';",
        )
        .unwrap();
    transaction.commit().unwrap();
    println!(
        "made {} users, {} posts, {} calls in {:.0} s",
        size.users,
        size.posts,
        size.calls(),
        begun.elapsed().as_secs_f64()
    );
}

fn make_people(connection: &Connection, size: Size) {
    let mut user = connection
        .prepare(
            "INSERT INTO users(key, handle, display_name, description, url, followers_count, observed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .unwrap();
    let mut id = connection
        .prepare("INSERT INTO ids VALUES (?1, ?2, ?3, ?4, 1, 2, 'mastodon', 'user', ?5, '', ?6)")
        .unwrap();
    let mut relation = connection
        .prepare("INSERT OR IGNORE INTO user_relations VALUES (?1, ?2, 1, 2, NULL, NULL)")
        .unwrap();
    let mut other = connection
        .prepare("INSERT INTO frontier VALUES (?1, 'profiles', 'here/profiles', 1, ?2, x'', ?3)")
        .unwrap();
    let mut subject = connection
        .prepare("INSERT INTO subjects VALUES (?1, 1)")
        .unwrap();
    let mut outcome = connection
        .prepare("INSERT INTO outcomes VALUES (?1, 'profile', ?2, '', 1, 1, 1)")
        .unwrap();
    let mut counts = connection
        .prepare("INSERT INTO counts VALUES (?1, ?2, 1, '{\"followers_count\":7}')")
        .unwrap();
    for key in 1..=size.users {
        let random = mix(key.cast_unsigned());
        let (uri, handle) = (
            format!("https://example.social/users/name{key}"),
            format!("name{key}@example.social"),
        );
        let observed = format!("{{\"card\":[{},1,1]}}", NOW_US - key);
        let says = says(-key);
        let followers = (1_000_000 / (1 + random % 100_000)).cast_signed();
        user.execute(params![
            key,
            handle,
            format!("Name {key}"),
            says,
            uri,
            followers,
            observed
        ])
        .unwrap();
        let canonical = hash(["mastodon", "user", "", "", &uri]);
        id.execute(params![key, canonical, 1, 0, "", uri]).unwrap();
        let alias = hash(["mastodon", "user", "handle", "", &handle]);
        id.execute(params![key, alias, 0, 1, "handle", handle])
            .unwrap();
        let visited = NOW_US - (random % 10_000_000_000_000).cast_signed();
        other.execute(params![key, NOW_US + key, visited]).unwrap();
        subject.execute([key]).unwrap();
        let code = if random.is_multiple_of(50) {
            "protected"
        } else {
            "ok"
        };
        outcome.execute(params![key, code]).unwrap();
        for round in 0..3 {
            counts.execute(params![key, 1_000 * round]).unwrap();
        }
        // Half of all follow nearly nobody, and a few are followed by very many.
        let follows = if random.is_multiple_of(2) { 9 } else { 1 };
        for place in 0..follows {
            let drawn = mix(random ^ place) as f64 / u64::MAX as f64;
            let target = 1 + (drawn * drawn * drawn * (size.users - 1) as f64) as i64;
            relation.execute(params![key, target]).unwrap();
        }
    }
}

fn make_posts(connection: &Connection, size: Size) {
    let mut post = connection
        .prepare(
            "INSERT INTO statuses(key, author, created_us, text, url, reply_to, observed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .unwrap();
    let mut id = connection
        .prepare("INSERT INTO ids VALUES (?1, ?2, 1, 0, 1, 2, 'mastodon', 'status', '', '', ?3)")
        .unwrap();
    let mut comment = connection
        .prepare(
            "INSERT INTO comments(key, status, parent, root, author, observed)
             VALUES (?1, ?2, ?2, ?2, ?3, '{}')",
        )
        .unwrap();
    let mut link = connection
        .prepare("INSERT INTO links VALUES ('mention', ?1, ?2, NULL, 1, 2)")
        .unwrap();
    for number in 0..size.posts {
        let key = size.users + 1 + number;
        let random = mix(key.cast_unsigned());
        let author = size.user(random >> 3).0;
        let uri = format!("https://example.social/users/name{author}/statuses/{key}");
        let observed = format!(
            "{{\"content\":[{},{},2]}}",
            NOW_US - key,
            1 + number / POSTS_PER_CALL
        );
        let created = NOW_US - (random % 30_000_000_000_000).cast_signed();
        let parent = (number > 10 && random.is_multiple_of(5)).then(|| key - 1 - (number % 7));
        post.execute(params![
            key,
            author,
            created,
            says(number),
            uri,
            parent,
            observed
        ])
        .unwrap();
        id.execute(params![
            key,
            hash(["mastodon", "status", "", "", &uri]),
            uri
        ])
        .unwrap();
        if let Some(parent) = parent {
            comment.execute(params![key, parent, author]).unwrap();
        }
        if random.is_multiple_of(4) {
            link.execute(params![key, size.user(random >> 9).0])
                .unwrap();
        }
    }
}

fn make_calls(connection: &Connection, size: Size) {
    let mut call = connection
        .prepare(
            "INSERT INTO query_log(id, query, subjects, target, cursor, credential, node, status, outcome,
               reason, at_us, scheduled_us, sent_us, answered_us, committed_us, budgets, rank_us, read_us,
               seed_us, bytes, mended, rows_new, rows_changed, definition, found)
             VALUES (?1, 'posts', ?2, ?3, '', 'anonymous', 'here', 200, ?4, '', ?5, ?5, ?5, ?5, ?5,
                     '[\"ip\"]', 5, 500, 100, 130000, 0, 40, 5, 'digest', ?6)",
        )
        .unwrap();
    for id in 1..=size.calls() {
        let random = mix(id.cast_unsigned());
        let subject = size.user(random).0;
        let target = format!("/api/v1/accounts/{subject}/statuses?limit=40");
        let code = if random.is_multiple_of(100) {
            "transient"
        } else {
            "ok"
        };
        let first = size.users + 1 + (id - 1) * POSTS_PER_CALL;
        let last = first + POSTS_PER_CALL - 1;
        let found = format!("{{\"statuses\":{{\"new\":[[{first},{last}]]}}}}");
        let at = NOW_US + 50_000 * id;
        call.execute(params![id, format!("[{subject}]"), target, code, at, found])
            .unwrap();
    }
}

/// Asks one question again and again, and prints how long it took.
async fn timed<T, F: Future<Output = Result<T, StoreError>>>(
    name: &str,
    ask: impl Fn(u64) -> F,
    count: impl Fn(&T) -> usize,
) {
    let (mut times, mut rows) = (Vec::with_capacity(ASKED), 0);
    for number in 0..ASKED {
        let random = mix(7_919 + number as u64);
        let begun = Instant::now();
        let answer = ask(random).await.unwrap();
        times.push(begun.elapsed());
        rows += count(&answer);
    }
    times.sort_unstable();
    let at = |part: usize| times[(ASKED * part / 100).min(ASKED - 1)].as_secs_f64() * 1_000.0;
    println!(
        "browse, {name}: p50 {:.2} ms, p99 {:.2} ms, {:.1} rows",
        at(50),
        at(99),
        rows as f64 / ASKED as f64
    );
}

async fn fill(browser: &Browser, wait: Duration) {
    let begun = Instant::now();
    let before = browser.indexed().await.unwrap();
    browser.keep_indexed().unwrap();
    let mut indexed = before;
    while begun.elapsed() < wait {
        indexed = browser.indexed().await.unwrap();
        if indexed.is_filled && indexed.calls_behind == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!(
        "browse, index of words: from {} to {} permille in {:.0} s",
        before.permille,
        indexed.permille,
        begun.elapsed().as_secs_f64()
    );
}

async fn lists(browser: &Browser, size: Size) {
    let limit = 50;
    let users = |order, after| UsersQuestion {
        order,
        after,
        limit,
    };
    let newest = |random| {
        users(
            UsersOrder::Newest,
            Some(format!("newest.{}", size.user(random).0)),
        )
    };
    timed(
        "users, newest first",
        |random| browser.users(newest(random)),
        |page| page.rows.len(),
    )
    .await;
    let most = |random| {
        let after = format!(
            "followers.{}.{}",
            1_000_000 / (1 + random % 1_000),
            i64::MAX
        );
        users(UsersOrder::Followers, Some(after))
    };
    timed(
        "users, most followed first",
        |random| browser.users(most(random)),
        |page| page.rows.len(),
    )
    .await;
    let posts = |random| PostsQuestion {
        author: None,
        after: Some(format!("posts.{}", size.post(random).0)),
        limit,
    };
    timed(
        "posts, newest first",
        |random| browser.posts(posts(random)),
        |page| page.rows.len(),
    )
    .await;
    let of = |random| PostsQuestion {
        author: Some(size.user(random)),
        after: None,
        limit,
    };
    timed(
        "posts of a user",
        |random| browser.posts(of(random)),
        |page| page.rows.len(),
    )
    .await;
    let under = |random| CommentsQuestion {
        post: size.post(random),
        after: None,
        limit,
    };
    timed(
        "answers to a post",
        |random| browser.comments_of(under(random)),
        |page| page.rows.len(),
    )
    .await;
    for list in [RelationsList::Following, RelationsList::Followers] {
        let relations = |random: u64| RelationsQuestion {
            // The first are followed by very many.
            user: Key(1 + (random % 1_000).cast_signed()),
            list,
            after: None,
            limit,
        };
        let name = format!("relations, {list:?}").to_lowercase();
        timed(
            &name,
            |random| browser.relations(relations(random)),
            |page| page.rows.len(),
        )
        .await;
    }
}

async fn objects(browser: &Browser, size: Size) {
    let limit = 50;
    let links = |random| LinksQuestion {
        key: size.user(random),
        direction: LinkDirection::To,
        kind: None,
        after: None,
        limit,
    };
    timed(
        "links",
        |random| browser.links(links(random)),
        |page| page.rows.len(),
    )
    .await;
    timed(
        "object, a user",
        |random| browser.object(size.user(random)),
        |_| 1,
    )
    .await;
    timed(
        "object, a post",
        |random| browser.object(size.post(random)),
        |_| 1,
    )
    .await;
    timed(
        "counts",
        |random| browser.counts(size.user(random), 100),
        Vec::len,
    )
    .await;
    let versions = |random| VersionsQuestion {
        key: size.user(random),
        after: None,
        limit,
    };
    timed(
        "versions",
        |random| browser.versions(versions(random)),
        |page| page.rows.len(),
    )
    .await;
}

async fn crawl(browser: &Browser, size: Size) {
    let limit = 50;
    let after = |random: u64| {
        Some(format!(
            "calls.{}",
            1 + random % size.calls().cast_unsigned()
        ))
    };
    let calls = |random| CallsQuestion {
        after: after(random),
        limit,
        ..CallsQuestion::default()
    };
    timed(
        "calls",
        |random| browser.calls(calls(random)),
        |page| page.rows.len(),
    )
    .await;
    let failed = |random| CallsQuestion {
        failed_only: true,
        ..calls(random)
    };
    timed(
        "calls that failed",
        |random| browser.calls(failed(random)),
        |page| page.rows.len(),
    )
    .await;
    let of = |random| CallsQuestion {
        subject: Some(size.user(random >> 7)),
        ..calls(random)
    };
    timed(
        "calls about a user",
        |random| browser.calls(of(random)),
        |page| page.rows.len(),
    )
    .await;
    let call = |random: u64| 1 + (random % size.calls().cast_unsigned()).cast_signed();
    timed("one call", |random| browser.call(call(random)), |_| 1).await;
    let outcomes = |random| OutcomesQuestion {
        of: OutcomesOf::Failed,
        after: Some(format!("outcomes.{}", size.user(random).0)),
        limit,
    };
    timed(
        "outcomes that failed",
        |random| browser.outcomes(outcomes(random)),
        |page| page.rows.len(),
    )
    .await;
    timed(
        "errors among 5 000 calls",
        |_| browser.errors(5_000),
        |errors| errors.reasons.len(),
    )
    .await;
    let activity = ActivityQuestion {
        since: None,
        calls_max: 5_000,
        buckets: 60,
    };
    timed(
        "activity of 5 000 calls",
        |_| browser.activity(activity),
        |found| found.queries.len(),
    )
    .await;
}

async fn pictures(browser: &Browser, size: Size) {
    let call = |random: u64| 1 + (random % size.calls().cast_unsigned()).cast_signed();
    let ages = || AgesQuestion {
        lane: "here/profiles".to_owned(),
        now: WorldTime(NOW_US),
        sample_max: 1_000,
    };
    timed(
        "ages of 1 000 subjects",
        |_| browser.ages(ages()),
        |ages| ages.sample as usize,
    )
    .await;
    timed(
        "hours of 5 000 posts",
        |_| browser.hours(5_000),
        |hours| hours.sample as usize,
    )
    .await;
    let graph = |around| GraphQuestion {
        around,
        nodes_max: 300,
    };
    timed(
        "graph of the best connected",
        |_| browser.graph(graph(None)),
        |graph| graph.nodes.len(),
    )
    .await;
    let around = |random: u64| graph(Some(Key(1 + (random % 1_000).cast_signed())));
    timed(
        "graph around a user",
        |random| browser.graph(around(random)),
        |graph| graph.nodes.len(),
    )
    .await;
    let event = |random: u64| EventId {
        log: call(random),
        number: 0,
    };
    timed(
        "feed, 100 events",
        |random| browser.feed(event(random), 100),
        |feed| feed.events.len(),
    )
    .await;
    timed("newest event", |_| browser.newest_event(), |_| 1).await;
}

async fn words(browser: &Browser, size: Size) {
    let search = |words: String| SearchQuestion {
        words,
        within: SearchIn::All,
        after: None,
        limit: 50,
    };
    let ask = |form: fn(u64, Size) -> String| {
        move |random: u64| browser.search(search(form(random, size)))
    };
    let rows = |page: &kittiwake_store::browse::Page<_>| page.rows.len();
    timed(
        "search, a word of every post",
        ask(|_, _| "the".to_owned()),
        rows,
    )
    .await;
    timed(
        "search, a word of every thousandth",
        ask(|random, _| format!("topic{}", random % 1_000)),
        rows,
    )
    .await;
    timed(
        "search, a word of one post",
        ask(|random, size| format!("rare{}", random % size.posts.cast_unsigned())),
        rows,
    )
    .await;
    timed(
        "search, two frequent words",
        ask(|random, _| format!("about common{}", random % 10)),
        rows,
    )
    .await;
    timed(
        "search, a frequent and a rare word",
        ask(|random, _| format!("the place{}", random % 200_000)),
        rows,
    )
    .await;
    timed(
        "search, a phrase",
        ask(|random, _| {
            format!(
                "\"the common{} topic{}\"",
                random % 10,
                (random >> 8) % 1_000
            )
        }),
        rows,
    )
    .await;
    timed("search, 東京", ask(|_, _| "東京".to_owned()), rows).await;
    timed(
        "search, a beginning",
        ask(|random, _| format!("topic{}*", random % 100)),
        rows,
    )
    .await;
    timed(
        "search, a short beginning",
        ask(|_, _| "rar*".to_owned()),
        rows,
    )
    .await;
    timed(
        "search, without a frequent word",
        ask(|random, _| format!("about -common{}", random % 10)),
        rows,
    )
    .await;
    let find = |random| browser.find(format!("name{}@example.social", size.user(random).0));
    timed("find, a handle", find, Vec::len).await;
    let find = |random| browser.find(format!("@name{}", size.user(random).0));
    timed("find, a handle without its host", find, Vec::len).await;
}

#[tokio::main]
async fn main() {
    // `cargo bench` hands over words of its own.
    let mut words_given = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let posts: i64 = words_given
        .next()
        .map_or(1_000_000, |posts| posts.parse().unwrap());
    let own = tempfile::tempdir().unwrap();
    let folder = words_given
        .next()
        .map_or_else(|| own.path().to_owned(), PathBuf::from);
    let size = Size {
        users: (posts / 10).max(1_000),
        posts: posts.max(1_000),
    };
    let path = folder.join(format!("browse-{posts}.db"));
    if !path.exists() {
        make(&path, size);
    }
    let browser = Browser::open(&Location::File(path), 2).unwrap();
    let wait = words_given
        .next()
        .map_or(3_600, |seconds| seconds.parse().unwrap());
    fill(&browser, Duration::from_secs(wait)).await;
    lists(&browser, size).await;
    objects(&browser, size).await;
    crawl(&browser, size).await;
    pictures(&browser, size).await;
    words(&browser, size).await;
}
