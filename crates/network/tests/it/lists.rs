//! Lists that tell what their items are to the subject: whose posts these are, what they answer.

use crate::support::field;
use kittiwake_model::{Identity, Key, Object, OutcomeCode, Reference, Standing, Value};
use kittiwake_network::{Answer, Network, Page, Reading};

const DEFINITION: &str = r#"
format = 1
name = "reef"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://reef.example" }

[types.user]
table = "users"
canonical = ".name"

[types.user.fields.card]
display_name = ".title"

[types.post]
table = "statuses"
canonical = ".id"

[types.post.states]
gone = ".deleted"

[types.post.fields.counts]
likes_count = ".likes"

[types.post.fields.content]
author = { path = ".by", type = "user", alias = "canonical" }
text = ".text"
reply_to = { path = ".parent", type = "post", alias = "canonical" }

[types.post.shapes.item]
canonical = ".id"

[types.post.shapes.item.fields.content]
text = ".text"

[queries.user]
subject = "user"
path = "/users/{canonical}"

[[queries.user.selects]]
at = ".user"
as = "user"
is_subject = true

[[queries.user.selects]]
at = ".posts[]"
as = "post"
alias = "canonical"
fills = "author"

[queries.feed]
subject = "user"
path = "/feeds/{canonical}"

[[queries.feed.selects]]
at = ".items[]"
as = "post"
shape = "item"
fills = "author"

[queries.post]
subject = "post"
path = "/posts/{canonical}"

[[queries.post.selects]]
at = "."
as = "post"
is_subject = true

[[queries.post.selects]]
at = ".answers[]"
as = "post"
alias = "canonical"
fills = "reply_to"

[[robots]]
name = "posts"
subject = "post"
steps = [{ query = "post" }]
reply_steps = 20

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"

[[seeds]]
pattern = "list:all"
type = "user"
value = "everybody"

[[seeds]]
pattern = "https://reef.example/post?id={id}"
type = "post"
value = "{id}"
"#;

fn network() -> Network {
    Network::parse("reef.toml", DEFINITION).unwrap_or_else(|errors| panic!("{errors}"))
}

const SUBJECT: Key = Key(9);

fn read(query: &str, body: &str) -> Reading {
    let network = network();
    let query = network.query(query).unwrap();
    let base = network.base("").unwrap();
    let subject = Identity {
        network: "reef".into(),
        kind: query.kind.clone(),
        canonical: Some("7".into()),
        aliases: Vec::new(),
    };
    network.read(&Answer {
        query,
        base: &base,
        host: "reef.example",
        subjects: &[(SUBJECT, &subject)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    })
}

fn subject() -> Value {
    Value::Object(Reference::Key(SUBJECT))
}

/// The object of this id.
fn found<'r>(reading: &'r Reading, id: &str) -> &'r Object {
    let mut objects = reading.objects.iter();
    let found = objects.find(|object| object.identity.canonical.as_deref() == Some(id));
    found.unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn ids_in_a_list_are_posts_of_the_subject_that_are_still_to_be_described() {
    let reading = read("user", r#"{"user": {"name": "7"}, "posts": [1, null, 22]}"#);
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 3));
    for id in ["1", "22"] {
        let post = found(&reading, id);
        assert_eq!(post.standing, Standing::Named);
        assert_eq!(post.groups.len(), 1);
        assert_eq!(&*post.groups[0].name, "content");
        assert_eq!(field(post, "author"), Some(&subject()));
    }
    assert_eq!(found(&reading, "7").standing, Standing::Present);
}

#[test]
fn what_answers_the_subject_is_told_even_of_one_that_is_gone() {
    let body = r#"{"id": "7", "deleted": true, "text": "x", "answers": ["8"]}"#;
    let reading = read("post", body);
    assert_eq!(reading.subject_outcomes[0].1, OutcomeCode::Gone);
    assert_eq!(found(&reading, "7").groups, []);
    assert_eq!(field(found(&reading, "8"), "reply_to"), Some(&subject()));
}

#[test]
fn an_item_that_says_so_itself_is_believed() {
    let body = r#"{"user": {"name": "7"}, "posts": [
        {"id": "1", "by": "8", "likes": 3}, {"id": "2", "by": null}, {"id": "3", "text": "x"},
        {"id": "4", "deleted": true}]}"#;
    let reading = read("user", body);
    let author = |id: &str| field(found(&reading, id), "author").cloned();
    let Some(Value::Object(Reference::Identity(other))) = author("1") else {
        panic!("{:?}", author("1"));
    };
    assert_eq!(other.canonical.as_deref(), Some("8"));
    assert_eq!(
        (author("2"), author("3")),
        (Some(subject()), Some(subject()))
    );
    assert_eq!(author("4"), None);
    assert_eq!(found(&reading, "3").standing, Standing::Present);
}

#[test]
fn a_shape_need_not_know_of_the_field() {
    let reading = read(
        "feed",
        r#"{"items": [{"id": "1", "text": "x"}, {"id": "2"}]}"#,
    );
    let post = found(&reading, "1");
    assert_eq!((post.groups.len(), post.standing), (1, Standing::Present));
    assert_eq!(field(post, "author"), Some(&subject()));
    // Nothing describes it.
    assert_eq!(found(&reading, "2").standing, Standing::Named);
}

#[test]
fn only_a_column_that_the_subject_can_be_is_filled() {
    let wrong = DEFINITION.replacen("fills = \"author\"", "fills = \"place\"", 1);
    let error = Network::parse("reef.toml", &wrong).unwrap_err().to_string();
    let expected = "a column of a `post` that the subject can be cannot be `place`; it is one of author, reply_to_author";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_word_with_a_colon_is_held_against_patterns_with_that_word_only() {
    let network = network();
    let seed = |text: &str| network.seed(text, "").ok().and_then(|it| it.canonical);
    assert_eq!(seed("list:all").as_deref(), Some("everybody"));
    assert_eq!(seed("LIST:ALL").as_deref(), Some("everybody"));
    assert_eq!(seed("list:some"), None);
    assert_eq!(
        seed("https://reef.example/post?id=12").as_deref(),
        Some("12")
    );
    assert_eq!(seed("https://reef.example/post?id="), None);
    assert_eq!(seed("@ann").as_deref(), Some("ann"));
}
