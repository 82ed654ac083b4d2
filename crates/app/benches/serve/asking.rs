//! B: pages of the dashboard and answers of the API about a large crawl, over HTTP.

use crate::client::{Shown, get};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Times that each page is asked for.
const ASKED: u64 = 300;

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// What is asked for, by a random number; the file has a million users, whose keys come first, and ten
/// million posts.
type Address = fn(u64) -> String;

const PAGES: &[(&str, Address)] = &[
    ("overview", |_| "/".to_owned()),
    ("robots", |_| "/robots".to_owned()),
    ("budgets", |_| "/budgets".to_owned()),
    ("freshness", |_| "/freshness".to_owned()),
    ("graph", |_| "/graph".to_owned()),
    ("a user", |random| format!("/object/{}", 1 + random % USERS)),
    ("a post", |random| {
        format!("/object/{}", USERS + 1 + random % POSTS)
    }),
    ("query log", |_| "/log".to_owned()),
    ("settings", |_| "/settings".to_owned()),
    ("search, nothing", |_| "/search".to_owned()),
    ("search, everywhere", |_| "/search?words=the".to_owned()),
    ("search, frequent", |random| {
        format!("/search?words=topic{}", random % 1_000)
    }),
    ("search, rare", |random| {
        format!("/search?words=rare{}", random % POSTS)
    }),
    ("search, both", |random| {
        format!("/search?words=the+place{}", random % 200_000)
    }),
    ("search, never both", |random| {
        let (one, other) = (random % 10, (random + 1) % 10);
        format!("/search?words=common{one}+common{other}")
    }),
    ("search, without", |random| {
        format!("/search?words=about+-common{}", random % 10)
    }),
    ("search, without all", |_| {
        "/search?words=about+-the".to_owned()
    }),
    ("search, phrase", |random| {
        let (one, other) = (random % 10, (random >> 8) % 1_000);
        format!("/search?words=%22the+common{one}+topic{other}%22")
    }),
    ("search, rare phrase", |random| {
        format!("/search?words=%22with+rare{}%22", random % POSTS)
    }),
    ("search, no phrase", |random| {
        format!("/search?words=%22about+topic{}%22", random % 1_000)
    }),
    ("search, beginning", |random| {
        format!("/search?words=topic{}*", random % 100)
    }),
    ("search, beginnings", |random| {
        format!("/search?words=wor*+place{}*", random % 2_000)
    }),
    ("search, name", |random| {
        format!("/search?words=%40name{}", 1 + random % USERS)
    }),
    ("search, page on", |random| {
        let after = USERS + 1 + random % POSTS;
        format!("/search?words=topic{}&after=words.{after}", random % 1_000)
    }),
    ("API, search", |random| {
        format!("/api/search?words=the+place{}", random % 200_000)
    }),
    ("API, users", |_| "/api/users?limit=50".to_owned()),
    ("API, posts", |_| "/api/posts?limit=50".to_owned()),
    ("API, status", |_| "/api/status".to_owned()),
];
const USERS: u64 = 1_000_000;
const POSTS: u64 = 10_000_000;

pub(crate) fn run(file: &Path) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kittiwake"));
    command
        .env_clear()
        .env("HOME", folder.path())
        .arg("serve")
        .arg(file)
        .args(["--listen", "127.0.0.1:0"]);
    let shown = Shown::start(&mut command);
    println!(
        "\nB. {}, each page {ASKED} times over HTTP\n",
        file.display()
    );
    println!("page                    p50 ms    p99 ms    most ms    cpu ms");
    for (name, path) in PAGES {
        let before = shown.cpu_seconds();
        let mut times: Vec<f64> = (0..ASKED)
            .map(|number| {
                let path = path(mix(number));
                let begun = Instant::now();
                let (status, body) = get(&shown.address, &path);
                let took_ms = begun.elapsed().as_secs_f64() * 1_000.0;
                assert_eq!(status, 200, "{path}: {body:.300}");
                took_ms
            })
            .collect();
        // The processor's time does not depend on what else the machine does.
        let cpu_ms = (shown.cpu_seconds() - before) * 1_000.0 / ASKED as f64;
        times.sort_unstable_by(f64::total_cmp);
        let at = |permille: usize| times[(times.len() * permille / 1_000).min(times.len() - 1)];
        println!(
            "{name:<20} {:>9.1} {:>9.1} {:>10.1} {cpu_ms:>9.1}",
            at(500),
            at(990),
            times[times.len() - 1]
        );
    }
}
