//! What one step of a visit, or one lookup, tells is known to the next; what it does not tell ends
//! nothing else.

use crate::counterpart::{Counterpart, reply};
use crate::support::{Folder, Tables, open, text};

/// A forum: topics have a number, and a first post with a number of its own; members are known by
/// their names, and say who they are when they are asked.
const FORUM: &str = r#"
format = 1
name = "forum"
verified_on = "2026-11-17"
sources = ["https://forum.example"]
host = { kind = "instance" }

[politeness]
start = "100/s"
most = "100/s"

[types.member]
table = "users"
canonical = '"\($host)/u/\(.id)"'
resolve = "member"

[types.member.aliases]
name = { path = ".name", movable = true }

[types.summary]
canonical = ".title"
within = "subject"
fields.card.days = { path = ".days", kind = "int" }

[types.topic]
table = "statuses"
canonical = '"\($host)/t/\(.id)"'
resolve = "topic"

[types.topic.aliases]
id = { path = ".id", scope = "host" }
first = { path = ".first", scope = "host" }

[types.post]
table = "statuses"
canonical = '"\($host)/p/\(.id)"'

[types.post.fields.content]
text = ".text"

[queries.member]
subject = "member"
path = "/u/{name}"
selects = [{ at = ".", as = "member", is_subject = true }]

[queries.summary]
subject = "member"
path = "/u/{name}/summary"
selects = [{ at = ".", as = "summary" }]

[queries.topic]
subject = "topic"
path = "/t/{id}"
selects = [{ at = ".", as = "topic", is_subject = true }]

[queries.thread]
subject = "topic"
path = "/t/{id}/posts"
page = { style = "number", parameter = "page", first = 1, size = 2, ends = "empty" }
selects = [{ at = ".posts[]", as = "post" }]

[queries.likes]
subject = "topic"
path = "/p/{first}/likes"
selects = [{ at = ".[]", as = "member", link = { kind = "like", from = "item", to = "subject" } }]

[[robots]]
name = "members"
subject = "member"
steps = [{ query = "member" }, { query = "summary" }]

[[robots]]
name = "threads"
subject = "topic"
steps = [{ query = "thread" }]

[[robots]]
name = "likes"
subject = "topic"
steps = [{ query = "likes" }]

[[seeds]]
pattern = "topic:{id}"
type = "topic"
alias = "id"
value = "{id}"

[[seeds]]
pattern = "@{name}"
type = "member"
alias = "name"
value = "{name}"
"#;

fn forum() -> Counterpart {
    Counterpart::start(|call, stream| {
        let body = match &*call.target {
            "/u/ann" => r#"{"id":7,"name":"ann"}"#,
            "/u/ann/summary" => r#"{"title":"summary","days":3}"#,
            // It does not say what its first post is called.
            "/t/5" => r#"{"id":5}"#,
            "/t/5/posts?page=1" => r#"{"posts":[{"id":1,"text":"one"},{"id":2,"text":"two"}]}"#,
            "/t/5/posts?page=2" => r#"{"posts":[{"id":3,"text":"three"}]}"#,
            "/t/5/posts?page=3" => r#"{"posts":[]}"#,
            _ => return reply(stream, "404 Not Found", "", b"{}"),
        };
        reply(stream, "200 OK", "", body.as_bytes())
    })
}

/// Crawls the forum; `words` are seeds, robots and an ending.
fn crawl(folder: &Folder, server: &Counterpart, words: &str, code: i32) {
    std::fs::write(folder.path("forum.toml"), FORUM).expect("a definition");
    let fixed = format!(
        "crawl forum.toml --host {} --into t.db --quiet",
        server.address
    );
    let output = folder.say(&format!("{fixed} {words}"));
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}

fn column(folder: &Folder, sql: &str) -> Vec<String> {
    let (_, rows) = open(&folder.path("t.db")).select(sql);
    rows.into_iter().flatten().collect()
}

#[test]
fn what_one_step_tells_of_the_subject_is_known_to_the_next() {
    let (folder, server) = (Folder::new(), forum());
    crawl(&folder, &server, "@ann --until-idle", 0);
    let host = server.address.trim_start_matches("http://");
    let sql = "SELECT id FROM ids WHERE type = 'summary' AND canonical";
    assert_eq!(column(&folder, sql), [format!("{host}/u/7#summary")]);
}

#[test]
fn a_lookup_that_does_not_tell_an_id_ends_no_visit_that_needs_none() {
    let (folder, server) = (Folder::new(), forum());
    let words = "topic:5 --robots threads,likes";
    // Broken off on the way, when the lookup has failed and the thread is begun.
    crawl(&folder, &server, &format!("{words} --max-calls 2"), 3);
    crawl(&folder, &server, &format!("{words} --until-idle"), 0);
    let posts = "SELECT text FROM statuses WHERE text IS NOT NULL ORDER BY text";
    assert_eq!(column(&folder, posts), ["one", "three", "two"]);
    let outcomes = column(
        &folder,
        "SELECT query || ': ' || outcome || ', ' || reason FROM outcomes ORDER BY 1",
    );
    for wanted in [
        "thread: ok, ",
        "topic: malformed, the answer names no id of the subject",
    ] {
        assert!(outcomes.iter().any(|it| it == wanted), "{outcomes:?}");
    }
}
