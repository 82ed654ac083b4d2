//! Definitions that are wrong: every problem is found, with its place and what to write instead.

use kittiwake_network::Network;
use proptest::prelude::*;

/// A small definition without a fault.
const SOUND: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-15"
host = { kind = "fixed", address = "https://api.tiny.example" }

[budgets.all]
scope = "ip"
limit = 10
window = "1m"

[types.user]
table = "users"
canonical = ".id"
resolve = "lookup"
aliases.handle = { path = ".name", movable = true }

[types.user.fields.card]
display_name = ".title"
mood = { path = ".mood", kind = "text" }

[queries.lookup]
subject = "user"
path = "/users/{handle}"

[[queries.lookup.selects]]
at = ".user"
as = "user"
is_subject = true

[[robots]]
name = "profiles"
subject = "user"
steps = [{ query = "lookup" }]

[[seeds]]
pattern = "@{name}"
type = "user"
alias = "handle"
value = "{name}"

[[errors]]
status = 404
match = '.code == 7'
outcome = "not found"
"#;

fn problems(text: &str) -> String {
    match Network::parse("tiny.toml", text) {
        Ok(_) => "none".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn the_small_definition_is_sound() {
    assert_eq!(problems(SOUND), "none");
}

/// What is right, what is written in its place, and what is said about it.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "format = 1",
        "format = 2",
        "tiny.toml:1:10: format 2 is not known to this version of Kittiwake; write `format = 1`, or use a newer Kittiwake",
    ),
    (
        "format = 1\n",
        "",
        "tiny.toml:1:1: the definition has no `format`; write `format = 1` on the first line",
    ),
    (
        "format = 1",
        "format = \"1\"",
        "tiny.toml:1:10: `format` in the definition must be a whole number",
    ),
    (
        "name = \"tiny\"",
        "nmae = \"tiny\"",
        "tiny.toml:2:1: unknown key `nmae` in the definition; did you mean `name`?",
    ),
    (
        "name = \"tiny\"",
        "name = \"Tiny Net\"",
        "tiny.toml:2:8: `Tiny Net` is no name",
    ),
    (
        "verified_on = \"2026-11-15\"",
        "verified_on = \"soon\"",
        "tiny.toml:3:15: `verified_on` is no day",
    ),
    (
        "https://api.tiny.example",
        "http://api.tiny.example",
        "is no address",
    ),
    (
        "kind = \"fixed\"",
        "kind = \"fix\"",
        "`kind` cannot be `fix`; did you mean `fixed`?",
    ),
    (
        "scope = \"ip\"",
        "scope = \"address\"",
        "tiny.toml:7:9: `scope` cannot be `address`; it is one of ip, user, token",
    ),
    (
        "scope = \"ip\"",
        "scope = \"user\"",
        "a limit per user or token needs a credential; write `authenticated = true`",
    ),
    (
        "limit = 10",
        "limit = -1",
        "`limit` in [budgets.all] must be a whole number from 1 to",
    ),
    (
        "window = \"1m\"",
        "window = \"1 month\"",
        "`1 month` is no span of time; write for example `30s`",
    ),
    (
        "window = \"1m\"",
        "",
        "[budgets.all] has no `window`; write for example `window = \"5m\"`",
    ),
    (
        "table = \"users\"",
        "table = \"user\"",
        "tiny.toml:12:9: `table` cannot be `user`; did you mean `users`?",
    ),
    (
        "table = \"users\"",
        "tabel = \"users\"",
        "unknown key `tabel` in [types.user]; did you mean `table`?",
    ),
    (
        "resolve = \"lookup\"",
        "resolve = \"lokup\"",
        "the query at `resolve` cannot be `lokup`; did you mean `lookup`?",
    ),
    (
        "canonical = \".id\"",
        "canonical = \".id |\"",
        "`.id |` cannot be used: expected",
    ),
    (
        "canonical = \".id\"",
        "canonical = \"[range(9)]\"",
        "the function `range` is not allowed in an expression",
    ),
    (
        "canonical = \".id\"",
        "canonical = \".ids[]\"",
        "`.ids[]` stands for many values",
    ),
    (
        "movable = true",
        "movable = 1",
        "`movable` in [types.user.aliases.handle] must be true or false, not 1",
    ),
    (
        "aliases.handle",
        "aliases.host",
        "`host` is no name for an alias",
    ),
    (
        "display_name = \".title\"",
        "display_name = { path = \".title\", kind = \"int\" }",
        "the column `display_name` holds text; write `kind = \"text\"`",
    ),
    (
        "display_name = \".title\"",
        "nickname = \".title\"",
        "`nickname` is no column, so that its kind is not known",
    ),
    (
        "kind = \"text\"",
        "kind = \"string\"",
        "`kind` cannot be `string`; it is one of text, html, time",
    ),
    (
        "kind = \"text\"",
        "kind = \"time\", format = \"iso\"",
        "`iso` is no format of times",
    ),
    (
        "kind = \"text\"",
        "type = \"post\"",
        "the type at `type` cannot be `post`; it is one of user",
    ),
    (
        "kind = \"text\"",
        "kind = \"text\", alias = \"x\"",
        "`alias` has no meaning without `type`",
    ),
    (
        "subject = \"user\"\npath",
        "subject = \"usr\"\npath",
        "the type at `subject` cannot be `usr`; did you mean `user`?",
    ),
    (
        "/users/{handle}",
        "/users/{handel}",
        "a placeholder cannot be `handel`; did you mean `handle`?",
    ),
    ("/users/{handle}", "/users/{handle", "is not closed"),
    (
        "/users/{handle}",
        "users",
        "`users` is no path; begin it with `/`",
    ),
    (
        "at = \".user\"",
        "at = \".user | .x\"",
        "`.user | .x` is no plain path",
    ),
    (
        "is_subject = true",
        "",
        "the query `lookup` cannot resolve a `user`",
    ),
    (
        "as = \"user\"",
        "as = \"user\"\nshape = \"small\"",
        "the shape of `user` cannot be `small`",
    ),
    (
        "as = \"user\"",
        "as = \"user\"\nlink = { kind = \"follow\", from = \"subject\", to = \"subject\" }",
        "make `from` and `to` differ",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nbudgets = [\"none\"]\n",
        "a budget cannot be `none`; it is one of all",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nmethod = \"POST\"\n",
        "`method` cannot be `POST`",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nlist = \"following\"\n",
        "a `list` is walked page by page",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nbatch = { parameter = \"id\", alias = \"handle\" }\n",
        "has no `max`",
    ),
    (
        "query = \"lookup\"",
        "query = \"look\"",
        "a query cannot be `look`; did you mean `lookup`?",
    ),
    (
        "query = \"lookup\"",
        "query = \"lookup\", follow = \"all\"",
        "`follow` cannot be `all`",
    ),
    (
        "pattern = \"@{name}\"",
        "pattern = \"@{a}{b}\"",
        "`@{a}{b}` is no pattern",
    ),
    (
        "value = \"{name}\"",
        "value = \"{nam}\"",
        "the pattern has no placeholder `{nam}`",
    ),
    (
        "alias = \"handle\"",
        "alias = \"id\"",
        "the alias of `user` cannot be `id`; it is one of handle",
    ),
    ("status = 404", "status = 4040", "`4040` is no status"),
    (
        "outcome = \"not found\"",
        "outcome = \"lost\"",
        "an outcome cannot be `lost`",
    ),
    (".code == 7", ".code == ", "cannot be used: expected"),
    (
        "name = \"tiny\"\n",
        "name = \"tiny\nx",
        "see https://toml.io",
    ),
    (
        "name = \"tiny\"\n",
        "name = \"tiny\"\nname = \"b\"\n",
        "duplicate key",
    ),
    (
        "[[robots]]",
        "[[robots]]\nname = \"profiles\"\nsubject = \"user\"\nsteps = [{ query = \"lookup\" }]\n\n[[robots]]",
        "there are two robots `profiles`",
    ),
];

#[test]
fn every_mistake_is_named_with_its_place_and_a_remedy() {
    for (good, bad, expected) in MISTAKES {
        assert!(SOUND.contains(good), "{good}");
        let text = SOUND.replacen(good, bad, 1);
        let found = problems(&text);
        assert!(
            found.contains(expected),
            "{bad}\n  found: {found}\n  expected: {expected}"
        );
        for line in found.lines() {
            assert!(line.starts_with("tiny.toml:"), "{line}");
            assert!(line.contains("; "), "{line}");
        }
    }
}

#[test]
fn all_problems_are_listed_in_the_order_of_the_text() {
    let text = SOUND
        .replace("table = \"users\"", "table = \"people\"")
        .replace("outcome = \"not found\"", "outcome = \"lost\"")
        .replace("limit = 10", "limit = 0");
    let found = problems(&text);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(lines[0].contains("limit") && lines[1].contains("people") && lines[2].contains("lost"));
}

#[test]
fn a_definition_is_bounded() {
    let text = format!("{SOUND}\n#{}", "x".repeat(2_000_000));
    assert!(problems(&text).contains("bytes at most"));
    let deep = format!(
        "format = 1\nx = {}{}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    assert_ne!(problems(&deep), "none");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        let _ = Network::parse("x", &text);
    }

    #[test]
    fn a_damaged_definition_is_survived(place in 0..SOUND.len(), length in 0..40_usize, piece in "[\\[\\]{}=\".a-z0-9\n#]{0,8}") {
        let end = (place + length).min(SOUND.len());
        let damaged = format!("{}{piece}{}", &SOUND[..place], &SOUND[end..]);
        let _ = Network::parse("x", &damaged);
    }
}
