//! `kittiwake network new`: what it writes is correct, and works.

use crate::gulls;
use crate::support::{Folder, Tables, open, text};

fn made(folder: &Folder) -> String {
    let output = folder.say("network new gulls");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    std::fs::read_to_string(folder.path("gulls.toml")).expect("the file was made")
}

/// The same with every example in its comments put to use.
fn with_examples(skeleton: &str) -> String {
    let line = |line: &str| {
        let example = line.strip_prefix('#').filter(|rest| {
            let first = rest.chars().next();
            first.is_some_and(|letter| letter.is_ascii_lowercase() || letter == '[')
        });
        format!("{}\n", example.unwrap_or(line))
    };
    skeleton.lines().map(line).collect()
}

#[test]
fn the_skeleton_is_correct_with_and_without_its_examples() {
    let folder = Folder::new();
    let skeleton = made(&folder);
    let examples = with_examples(&skeleton);
    for example in ["\n[limit_headers]\n", "\nincremental = ", "\nproved = "] {
        assert!(
            !skeleton.contains(example) && examples.contains(example),
            "{example}"
        );
    }
    std::fs::write(folder.path("examples.toml"), examples).expect("a file");
    for (file, end) in [("gulls.toml", "4 queries"), ("examples.toml", "4 queries")] {
        let checked = folder.say(&format!("network check {file}"));
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        assert!(
            text(&checked.stdout).contains(end),
            "{}",
            text(&checked.stdout)
        );
    }
    // Short enough to be read.
    assert!(skeleton.lines().count() < 200);
    for chapter in [
        "Hosts", "Limits", "Types", "Queries", "Robots", "Seeds", "Errors",
    ] {
        assert!(skeleton.contains(&format!("\"{chapter}\"")), "{chapter}");
        let documentation = include_str!("../../../../docs/definition-format.md");
        assert!(
            documentation.contains(&format!("\n## {chapter}\n")),
            "{chapter}"
        );
    }
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let folder = Folder::new();
    made(&folder);
    std::fs::write(folder.path("gulls.toml"), "mine").expect("a file");
    let again = folder.say("network new gulls");
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("left alone"),
        "{}",
        text(&again.stderr)
    );
    let kept = std::fs::read_to_string(folder.path("gulls.toml")).expect("the file is there");
    assert_eq!(kept, "mine");
    let elsewhere = folder.say("network new gulls -o other.toml");
    assert_eq!(
        elsewhere.status.code(),
        Some(0),
        "{}",
        text(&elsewhere.stderr)
    );
    assert!(folder.path("other.toml").exists());
    let refused = folder.say("network new Gulls");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("lower-case"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!folder.path("Gulls.toml").exists());
}

#[test]
fn what_the_skeleton_describes_can_be_crawled() {
    for with in [str::to_owned, with_examples] {
        let folder = Folder::new();
        let definition = with(&made(&folder));
        std::fs::write(folder.path("gulls.toml"), definition).expect("a file");
        let (server, base) = gulls::serve_soundly();
        let output = folder.say(&format!(
            "crawl gulls.toml @Ada --host {base} --into t.db --depth 1 --until-idle --quiet"
        ));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let database = open(&folder.path("t.db"));
        let found = |sql: &str| database.select(sql).1.concat();
        assert_eq!(
            found("SELECT id || handle || statuses_count FROM users_view ORDER BY id"),
            ["10Dora0", "7Ada3", "8Ben1", "9Cleo0"]
        );
        assert_eq!(
            found("SELECT source || ' ' || target FROM user_relations_view ORDER BY 1"),
            ["10 7", "7 8", "8 7", "9 7"]
        );
        assert_eq!(
            found("SELECT id || ' ' || author || ' ' || text FROM statuses_view ORDER BY id"),
            [
                "71 7 Gull number 71.",
                "72 7 Gull number 72.",
                "73 7 Gull number 73.",
                "81 8 Gull number 81."
            ]
        );
        assert_eq!(
            found(
                "SELECT DISTINCT id || ' ' || outcome FROM outcomes_view WHERE outcome NOT IN ('ok', 'empty')"
            ),
            ["9 protected"]
        );
        assert!(server.calls().len() < 30, "{}", server.calls().len());
    }
}
