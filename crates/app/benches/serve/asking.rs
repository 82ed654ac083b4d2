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
    ("search, frequent", |random| {
        format!("/search?q=topic{}", random % 1_000)
    }),
    ("search, rare", |random| {
        format!("/search?q=rare{}", 1 + random % POSTS)
    }),
    ("search, both", |random| {
        format!("/search?q=common1+word{}", random % 20_000)
    }),
    ("search, phrase", |random| {
        format!("/search?q=%22with+rare{}%22", 1 + random % POSTS)
    }),
    ("API, users", |_| "/api/users?limit=50".to_owned()),
    ("API, posts", |_| "/api/statuses?limit=50".to_owned()),
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
    println!("page                  p50 ms    p99 ms    most ms");
    for (name, path) in PAGES {
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
        times.sort_unstable_by(f64::total_cmp);
        let at = |permille: usize| times[(times.len() * permille / 1_000).min(times.len() - 1)];
        println!(
            "{name:<18} {:>9.1} {:>9.1} {:>10.1}",
            at(500),
            at(990),
            times[times.len() - 1]
        );
    }
}
