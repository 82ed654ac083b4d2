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
        "name = \"tiny\"",
        "name = \"tiny\"\nproved = \"yes\"",
        "tiny.toml:3:10: `proved` cannot be `yes`; it is one of live server, recordings, documentation",
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
        "tiny.toml:7:9: `scope` cannot be `address`; it is one of ip, host, app, user, token",
    ),
    (
        "scope = \"ip\"",
        "scope = \"user\"",
        "a limit per application, user or token needs a credential; write `authenticated = true`",
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
        "window = \"1m\"",
        "window = \"1m\"\nkind = \"day\"",
        "`window` means nothing to this kind of budget; leave it out",
    ),
    (
        "window = \"1m\"",
        "kind = \"day\"\ntime_zone = \"Mars/Olympus\"",
        "there is no time zone `Mars/Olympus`; write for example `America/Los_Angeles`",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\nkind = \"percent\"",
        "only the server knows the limit of a budget in percent; leave it out",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\nunit = \"euros\"",
        "`unit` cannot be `euros`; write `calls`, `points` or the code of a currency",
    ),
    (
        "limit = 10",
        "limit = \"-3\"\nunit = \"USD\"",
        "`-3` is no amount of money; write for example `limit = \"0.005\"`",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\nheaders = { limit = \"x-limit\" }",
        "[budgets.all.headers] has no `remaining`",
    ),
    (
        "[budgets.all]",
        "[politeness]\nstart = \"fast\"\n[budgets.all]",
        "`fast` is no number of calls in a time; write for example `2/s`",
    ),
    (
        "[budgets.all]",
        "[[blocks]]\nreason = \"captcha\"\n[budgets.all]",
        "[blocks] has no `text`; write for example `text = \"captcha\"`",
    ),
    (
        "[budgets.all]",
        "[[blocks]]\ntext = \"no\"\nreason = \"no\"\n[budgets.all]",
        "a text of fewer than four letters stands in any page",
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
        "`kind` cannot be `string`; it is one of text, html, address, time",
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
        "window = \"1m\"",
        "window = \"1m\"\nfree_again = \"day\"",
        "`free_again` is of budgets that things are charged to, not calls",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\nunit = \"USD\"\nfree_again = \"week\"",
        "`free_again` cannot be `week`",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\nunit = \"USD\"\nprices = { user = \"cheap\" }",
        "`cheap` is no amount of money",
    ),
    (
        "window = \"1m\"",
        "window = \"1m\"\ntime_zone = \"UTC\"",
        "`time_zone` means nothing to this kind of budget",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nmethod = \"PUT\"\n",
        "`method` cannot be `PUT`",
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
    (
        "api.tiny.example\" }",
        "api.tiny.example\", type = \"server\" }",
        "tiny.toml:4:71: the type at `type` cannot be `server`; it is one of user",
    ),
    (
        "api.tiny.example\" }",
        "api.tiny.example\", type = \"user\" }",
        "tiny.toml:4:71: a host is named by its address, and a `user` by what it answers; leave out `canonical` and `aliases` in [types.user]",
    ),
    (
        "api.tiny.example\" }",
        "api.tiny.example\", type = 3 }",
        "tiny.toml:4:71: `type` in [host] must be a text, not 3; write for example",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nneeds = [\"posts\"]\n",
        "tiny.toml:34:10: another robot cannot be `posts`; there is none in [robots]",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nneeds = [\"profiles\"]\n",
        "tiny.toml:34:10: another robot cannot be `profiles`; there is none",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nneeds = [3]\n",
        "tiny.toml:34:10: `needs` in [robots] must be a list of texts, not 3",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\noptional = \"yes\"\n",
        "tiny.toml:34:12: `optional` in [robots] must be true or false, not a text; write for example `optional = true`",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nunless_zero = \"followers\"\n",
        "tiny.toml:34:15: a count of the subject cannot be `followers`; did you mean `followers_count`?",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nunless_zero = \"replies_count\"\n",
        "tiny.toml:34:15: a count of the subject cannot be `replies_count`; it is one of followers_count, following_count, statuses_count",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nunless_zero = 0\n",
        "tiny.toml:34:15: `unless_zero` in [robots] must be a text, not 0",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nbegins_visited = 1\n",
        "tiny.toml:34:18: `begins_visited` in [robots] must be true or false, not 1",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nrevisit_after = \"soon\"\n",
        "tiny.toml:34:17: `soon` is no span of time; write for example `30s`",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nrevisit_after = 60\n",
        "tiny.toml:34:17: `revisit_after` in [robots] must be a text, not 60",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nrepost_steps = 10\n",
        "tiny.toml:34:16: `repost_steps` in [robots] must be a whole number from 0 to 9, not 10",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nrepost_steps = 1\n",
        "tiny.toml:34:16: only posts are reposted and answered; leave out `repost_steps`, or visit a type whose `table` is `statuses`",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nbrings = [\"friends\"]\n",
        "tiny.toml:34:11: `brings` cannot be `friends`; it is one of commenters, reposters, likers, authors, posts",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nbrings = [\"commenter\"]\n",
        "`brings` cannot be `commenter`; did you mean `commenters`?",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nbrings = [\"authors\"]\n",
        "tiny.toml:34:11: `authors` are brought by tags, searches and the like; leave it out",
    ),
    (
        "steps = [{ query = \"lookup\" }]\n",
        "steps = [{ query = \"lookup\" }]\nbrings = true\n",
        "`brings` in [robots] must be a list of texts",
    ),
    (
        "pattern = \"@{name}\"",
        "pattern = \"@{name:any}!\"",
        "tiny.toml:36:11: `{name:any}` cannot stand there in a pattern; write `{name}`, or, at the end of the pattern, `{name:any}`",
    ),
    (
        "pattern = \"@{name}\"",
        "pattern = \"@{name:lower}\"",
        "tiny.toml:36:11: `{name:lower}` cannot stand there in a pattern",
    ),
    (
        "value = \"{name}\"",
        "value = \"{name:upper}\"",
        "tiny.toml:39:9: `{name:upper}` cannot stand in a value; write `{name}`, or `{name:lower}` for lower case",
    ),
    (
        "value = \"{name}\"",
        "value = \"{name:any}\"",
        "tiny.toml:39:9: `{name:any}` cannot stand in a value",
    ),
    (
        "value = \"{name}\"",
        "value = \"{nam:lower}\"",
        "tiny.toml:39:9: the pattern has no placeholder `{nam}`; use the pattern's placeholders and `{host}`",
    ),
    (
        "alias = \"handle\"",
        "alias = \"canonicl\"",
        "the alias of `user` cannot be `canonicl`; did you mean `canonical`?",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nignored = [{ path = \".took_ms\" }]\n",
        "tiny.toml:22:12: [queries.lookup.ignored] has no `reason`",
    ),
    (
        "[queries.lookup]\n",
        "[queries.lookup]\nignored = [{ path = \".a | .b\", reason = \"x\" }]\n",
        "`.a | .b` is no plain path",
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
fn other_ways_of_a_step_and_pooling_are_checked() {
    let steps = "steps = [{ query = \"lookup\" }]\n";
    let or = |or: &str| format!("steps = [{{ query = \"lookup\", or = [{or}] }}]\n");
    let queries = "[queries.lookup]\n";
    let pooling = format!("[auth]\npooling = \"sometimes\"\n\n{queries}");
    for (good, bad, expected) in [
        (steps, or("\"lookup\""), "the query `lookup` is named twice"),
        (steps, or("\"look_up\""), "did you mean `lookup`?"),
        (queries, pooling, "`pooling` cannot be `sometimes`"),
    ] {
        let found = problems(&SOUND.replacen(good, &bad, 1));
        assert!(found.contains(expected), "{bad}\n  found: {found}");
    }
    let path = "path = \"/users/{canonical}/posts\"\n";
    let with_page = format!("{path}page = {{ style = \"link\", size = 40 }}\n");
    let walked = with(POSTS).replacen(path, &with_page, 1);
    let walked = walked.replacen(steps, &or("\"posts\""), 1);
    let found = problems(&walked);
    assert!(
        found.contains("walked by one query"),
        "{walked}\n  found: {found}"
    );
}

/// The small definition with one more type, query and robot.
fn with(more: &str) -> String {
    format!("{SOUND}\n{more}")
}

const POSTS: &str = r#"
[types.post]
table = "statuses"
aliases.number = ".number"

[queries.posts]
subject = "user"
path = "/users/{canonical}/posts"

[[queries.posts.selects]]
at = ".posts[]"
as = "post"

[queries.replies]
subject = "post"
path = "/posts/{number}/replies"

[[queries.replies.selects]]
at = ".posts[]"
as = "post"

[[robots]]
name = "posts"
subject = "user"
steps = [{ query = "posts" }]
"#;

#[test]
fn robots_that_need_one_another_are_reported() {
    let robot = |name: &str, needs: &str| {
        format!(
            "[[robots]]\nname = \"{name}\"\nsubject = \"post\"\nsteps = [{{ query = \"replies\" }}]\nneeds = [{needs}]\n"
        )
    };
    let sound = format!(
        "{POSTS}{}{}",
        robot("replies", "\"deeper\", \"posts\""),
        robot("deeper", "\"posts\"")
    );
    assert_eq!(problems(&with(&sound)), "none");
    let circle = format!(
        "{POSTS}{}{}{}",
        robot("a", "\"b\""),
        robot("b", "\"posts\", \"c\""),
        robot("c", "\"a\"")
    );
    let found = problems(&with(&circle));
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(
        lines[0].starts_with("tiny.toml:75:9: the robot `a` needs itself by way of others; leave"),
        "{found}"
    );
}

#[test]
fn keys_of_robots_of_posts_are_sound() {
    let robot = r#"
[[robots]]
name = "replies"
subject = "post"
steps = [{ query = "replies" }]
needs = ["posts"]
optional = true
unless_zero = "replies_count"
begins_visited = true
revisit_after = "12h"
repost_steps = 9
brings = ["likers", "commenters", "likers"]
"#;
    assert_eq!(problems(&with(&format!("{POSTS}{robot}"))), "none");
}

#[test]
fn a_seed_without_an_alias_needs_a_canonical_id() {
    let sound = SOUND.replace("alias = \"handle\"\n", "");
    assert_eq!(problems(&sound), "none");
    let network = Network::parse("tiny.toml", &sound).unwrap();
    let identity = network.seed("@ann", "").unwrap();
    assert_eq!(identity.canonical.as_deref(), Some("ann"));
    let seed = "[[seeds]]\npattern = \"post:{n}\"\ntype = \"post\"\nvalue = \"{n}\"\n";
    let found = problems(&with(&format!("{POSTS}{seed}")));
    assert_eq!(
        found,
        "tiny.toml:71:1: [seeds] has no `alias`; write for example `alias = \"number\"`"
    );
}

#[test]
fn a_type_that_nothing_names_is_read_only_where_it_was_asked_for() {
    let hunt = |select: &str, more: &str| {
        let path = if more.is_empty() {
            "/hunts/{canonical}"
        } else {
            "/hunts"
        };
        with(&format!(
            "[types.hunt]\nfields.card.size = {{ path = \".size\", kind = \"int\" }}\n\n\
             [queries.hunt]\nsubject = \"hunt\"\npath = \"{path}\"\n{more}\n\
             [[queries.hunt.selects]]\n{select}\n\n\
             [[seeds]]\npattern = \"hunt:{{words:any}}\"\ntype = \"hunt\"\nvalue = \"{{words}}\"\n"
        ))
    };
    let sound = hunt("at = \".hunt\"\nas = \"hunt\"\nis_subject = true", "");
    assert_eq!(problems(&sound), "none");
    let nameless = "nothing in an answer names a `hunt`; write `canonical = \".id\"`, or an alias, in [types.hunt]";
    for (select, more) in [
        ("at = \".hunt\"\nas = \"hunt\"", ""),
        ("at = \".hunts[]\"\nas = \"hunt\"\nis_subject = true", ""),
        (
            "at = \".hunt\"\nas = \"hunt\"\nis_subject = true",
            "batch = { parameter = \"id\", alias = \"canonical\", max = 9 }",
        ),
    ] {
        let found = problems(&hunt(select, more));
        assert_eq!(found, format!("tiny.toml:55:6: {nameless}"), "{select}");
    }
    let found = problems(&hunt(
        "at = \".user\"\nas = \"user\"\nis_subject = true",
        "",
    ));
    assert_eq!(
        found,
        "tiny.toml:55:6: what was asked for is a `hunt`, not a `user`; write `as = \"hunt\"`, or leave out `is_subject`"
    );
    let field = sound.replace(
        "mood = { path = \".mood\", kind = \"text\" }",
        "hunt = { path = \".hunt\", type = \"hunt\" }",
    );
    assert_eq!(problems(&field), format!("tiny.toml:19:33: {nameless}"));
    // A shape of a type that is otherwise named has to name it too.
    let shape = SOUND.replace(
        "[types.user.fields.card]",
        "[types.user.shapes.bare]\nfields.card.display_name = \".n\"\n\n[types.user.fields.card]",
    );
    assert!(problems(&shape).contains("nothing names a `user`; write `canonical = \".id\"`"));
}

#[test]
fn only_hosts_of_a_network_with_one_address_share_its_credential() {
    let own = |host: &str| {
        let own = "[hosts.more]\naddress = \"https://more.example\"\ncredential = true\n";
        let text = SOUND.replace("[budgets.all]", &format!("{own}\n[budgets.all]"));
        let fixed = "host = { kind = \"fixed\", address = \"https://api.tiny.example\" }";
        problems(&text.replace(fixed, host))
    };
    assert_eq!(
        own("host = { kind = \"fixed\", address = \"https://api.tiny.example\" }"),
        "none"
    );
    assert_eq!(
        own("host = { kind = \"instance\" }"),
        "tiny.toml:8:14: a credential is for the host that it was issued by, and here there are many; leave `credential` out: only a network with one address (`kind = \"fixed\"`) has hosts that share one"
    );
}

#[test]
fn prices_are_of_something_and_are_set_aside() {
    let priced = |prices: &str, costs: &str, select: &str| {
        let text = SOUND
            .replace(
                "window = \"1m\"\n",
                &format!("window = \"1m\"\nunit = \"points\"\nfree_again = \"day\"\ntime_zone = \"UTC\"\n{prices}\n"),
            )
            .replace(
                "path = \"/users/{handle}\"\n",
                &format!("path = \"/users/{{handle}}\"\n{costs}\n"),
            )
            .replace("is_subject = true\n", &format!("is_subject = true\n{select}\n"));
        problems(&text)
    };
    let costs = "costs = { all = { item = 2 } }";
    assert_eq!(priced("prices = { user = 2 }", costs, ""), "none");
    let absent = "price = \"absent\"";
    assert_eq!(priced("prices = { absent = 0 }", costs, absent), "none");
    assert_eq!(
        priced("prices = { usr = 2 }", costs, ""),
        "tiny.toml:13:12: nothing is a `usr`; write the name of a type, or what a select has as its `price`"
    );
    assert_eq!(
        priced("prices = { user = 2 }", costs, absent),
        "tiny.toml:34:9: nothing has the price `absent`; name it under `prices` of a budget"
    );
    assert_eq!(
        priced("prices = { user = 3 }", costs, ""),
        "tiny.toml:28:26: a `user` costs more than `item` sets aside; write the price of a `user`"
    );
    let beside = "[[queries.lookup.selects]]\nat = \".friends[]\"\nas = \"user\"";
    assert_eq!(
        priced("prices = { user = 2 }", costs, beside),
        "tiny.toml:28:17: nothing is set aside for a `user` beside the list; write `beside`: what may come on top of each item at most, or `0`"
    );
    let aside = "costs = { all = { item = 2, beside = 0 } }";
    assert_eq!(priced("prices = { user = 2 }", aside, beside), "none");
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
