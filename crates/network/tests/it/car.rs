//! Whole accounts of the AT Protocol, as a definition reads them. How the bytes are taken apart is
//! tested beside what does it.

use crate::repository::{DID, Part, Repository, cid_text};
use crate::support::field;
use kittiwake_model::{Alias, Identity, Key, OutcomeCode, Reference, Value};
use kittiwake_network::{ANSWER_BYTES_MAX, Answer, Ask, Network, Page, Reading, car_to_json};
use serde_json::json;
use std::sync::LazyLock;

const DEFINITION: &str = include_str!("repository.toml");

static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    Network::parse("repository.toml", DEFINITION).unwrap_or_else(|it| panic!("{it}"))
});

fn keeper(did: &str) -> Identity {
    Identity {
        network: "ledges".into(),
        kind: "keeper".into(),
        canonical: Some(did.to_owned()),
        aliases: Vec::new(),
    }
}

fn answer(query: &str, subject: &Identity, status: u16, body: &[u8]) -> Reading {
    let base = NETWORK.base("").unwrap();
    NETWORK.read(&Answer {
        query: NETWORK.query(query).unwrap(),
        base: &base,
        host: "ledges.example",
        subjects: &[(Key(1), subject)],
        page: Page::First,
        url: &base,
        status,
        header: &|_| None,
        body,
        walk: None,
    })
}

fn read(query: &str, body: &[u8]) -> Reading {
    answer(query, &keeper(DID), 200, body)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

const PICTURE: &str = "bafkreihwihm6kpd6zuwhhlro75p5qks5qtrcu55jp3gddbfjsieiv7wuka";

fn account() -> Repository {
    Repository::new([
        (
            "app.birds.note/3jzfcijpj2z2a",
            json!({
                "$type": "app.birds.note",
                "text": "On a \"ledge\" 🐦",
                "langs": ["de", "en"],
                "createdAt": "2026-10-14T17:06:00Z",
                "reply": {"parent": {"uri": "at://did:plc:b/app.birds.note/1", "cid": "x"}},
                "picture": {"$link": PICTURE},
                "drawing": {"$bytes": "AAH/"},
                "weight": 9_007_199_254_740_993_i64,
                "height": 1.5,
                "facets": [{"index": {"byteStart": 0, "byteEnd": 4}}],
                "tags": ["sea", "sky"],
            }),
        ),
        ("app.birds.note/3k", json!({"text": "", "weight": "many"})),
        ("app.birds.follow/3l", json!({"subject": "did:plc:b"})),
        (
            "app.birds.follow/3m",
            json!({"subject": "did:web:c.example"}),
        ),
        ("app.birds.like/3n", json!({"subject": {"uri": "at://x"}})),
        ("app.birds.perch/3o", json!({"height": 7})),
    ])
}

#[test]
fn a_whole_account_is_read_like_any_answer() {
    let body = account().car();
    let reading = read("repository", &body);
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 6));
    // A number that is none, and a key that tells no time.
    assert_eq!(reading.mended, 2);
    let [owner, note, second, followed, last, liked] = reading.objects.as_slice() else {
        panic!("{:?}", reading.objects);
    };
    assert_eq!(
        (owner.identity.canonical.as_deref(), owner.known_as),
        (Some(DID), Some(Key(1)))
    );
    assert_eq!(field(owner, "revision"), Some(&text("3lzkittiwak2e")));
    let (root, _) = account().blocks(&mut |_, _| {});
    assert_eq!(field(owner, "commit"), Some(&text(&cid_text(&root))));
    let uri = format!("at://{DID}/app.birds.note/3jzfcijpj2z2a");
    assert_eq!(note.identity.canonical, Some(uri));
    assert!(note.identity.aliases[0].id.starts_with("bafyrei"));
    assert_eq!(field(note, "text"), Some(&text("On a \"ledge\" 🐦")));
    assert_eq!(field(note, "language"), Some(&text("de")));
    assert_eq!(field(note, "picture"), Some(&text(PICTURE)));
    assert_eq!(field(note, "drawing"), Some(&text("AAH/")));
    assert_eq!(
        field(note, "weight"),
        Some(&Value::Int(9_007_199_254_740_993))
    );
    assert_eq!(field(note, "height"), Some(&Value::Float(1.5)));
    let facets = "[{\"index\":{\"byteEnd\":4,\"byteStart\":0}}]";
    assert_eq!(field(note, "facets"), Some(&Value::Json(facets.to_owned())));
    assert!(matches!(
        field(note, "reply_to"),
        Some(Value::Object(Reference::Identity(_)))
    ));
    assert!(matches!(
        field(note, "created_us"),
        Some(Value::Time { .. })
    ));
    assert!(matches!(field(note, "filed_us"), Some(Value::Time { .. })));
    assert_eq!(field(second, "text"), Some(&text("")));
    assert_eq!(followed.identity.canonical.as_deref(), Some("did:plc:b"));
    assert_eq!(
        last.identity.canonical.as_deref(),
        Some("did:web:c.example")
    );
    assert_eq!(liked.identity.canonical.as_deref(), Some("at://x"));
    let kinds: Vec<&str> = reading.links.iter().map(|link| &*link.kind).collect();
    assert_eq!(
        kinds,
        ["tag", "tag", "wrote", "wrote", "follow", "follow", "like"]
    );
}

#[test]
fn what_no_rule_reads_can_be_told() {
    let tree = serde_json::from_str(&car_to_json(&account().car()).unwrap()).unwrap();
    let unmapped = NETWORK.unmapped_answer(NETWORK.query("repository").unwrap(), &tree);
    let expected = [
        ".collections[\"app.birds.follow\"][].cid",
        ".collections[\"app.birds.follow\"][].rkey",
        ".collections[\"app.birds.follow\"][].uri",
        ".collections[\"app.birds.like\"][].cid",
        ".collections[\"app.birds.like\"][].rkey",
        ".collections[\"app.birds.like\"][].uri",
        ".collections[\"app.birds.note\"][].value.reply.parent.cid",
        ".collections[\"app.birds.note\"][].value[\"$type\"]",
        ".collections[\"app.birds.perch\"]",
    ];
    assert_eq!(unmapped, expected);
}

#[test]
fn an_account_without_records_of_a_kind_is_empty_and_not_malformed() {
    let mut account = account();
    account.records.retain(|path, _| !path.contains("note"));
    let reading = read("notes", &account.car());
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Empty, 0));
    account.records.clear();
    let reading = read("notes", &account.car());
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Empty, 0));
    let reading = read("repository", &account.car());
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 1));
}

#[test]
fn the_repository_of_somebody_else_is_malformed() {
    let body = account().car();
    let reading = answer("repository", &keeper("did:plc:somebody"), 200, &body);
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
    assert_eq!(reading.reason, "the repository of somebody else");
    assert!(reading.objects.is_empty() && reading.links.is_empty());
    // Where the question cannot tell, the commit says whose it is.
    let mut by_handle = keeper(DID);
    by_handle.canonical = None;
    by_handle.aliases.push(Alias {
        name: "handle".into(),
        id: "ann.ledges.example".into(),
        host: String::new(),
        movable: true,
    });
    let reading = answer("repository", &by_handle, 200, &body);
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!(reading.objects[0].identity.canonical.as_deref(), Some(DID));
}

#[test]
fn what_is_dropped_of_a_repository_is_counted() {
    let mut turn = 0;
    let body = account().damaged(&mut |part, data| {
        turn += 1;
        // The first record is a follow.
        if part == Part::Record && turn == 1 {
            data.clear();
        }
    });
    let reading = read("repository", &body);
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 5));
    assert_eq!(reading.mended, 3);
    let broken = read("repository", &body[..body.len() - 1]);
    assert_eq!(broken.outcome, OutcomeCode::Malformed);
    assert_eq!(broken.reason, "car ends too early");
}

#[test]
fn errors_are_told_in_json() {
    for (status, body, outcome) in [
        (
            400,
            &br#"{"error":"RepoTakendown","message":"gone"}"#[..],
            OutcomeCode::Suspended,
        ),
        (
            200,
            br#"{"error":"RepoDeactivated"}"#,
            OutcomeCode::Deactivated,
        ),
        (400, br#"{"error":"RepoNotFound"}"#, OutcomeCode::BadRequest),
        (400, &account().car(), OutcomeCode::BadRequest),
        (200, br#"{"error":"Other"}"#, OutcomeCode::Malformed),
        (200, b"", OutcomeCode::Malformed),
        (502, b"<html>", OutcomeCode::Transient),
    ] {
        let reading = answer("repository", &keeper(DID), status, body);
        assert_eq!(reading.outcome, outcome, "{status}");
    }
}

#[test]
fn a_repository_is_asked_for_as_what_it_is() {
    let ask = |query: &str| {
        NETWORK
            .request(&Ask {
                query: NETWORK.query(query).unwrap(),
                base: &NETWORK.base("").unwrap(),
                host: "ledges.example",
                subjects: &[&keeper(DID)],
                page: Page::First,
                authenticated: false,
            })
            .unwrap()
    };
    let plan = ask("repository");
    let accept = ("accept".to_owned(), "application/vnd.ipld.car".to_owned());
    assert_eq!(plan.headers, [accept]);
    assert_eq!(plan.bytes_max, Some(ANSWER_BYTES_MAX));
    assert_eq!(ask("notes").bytes_max, None);
}

#[test]
fn more_than_96_mib_cannot_be_asked_for() {
    let much = DEFINITION.replace("100663296", "100663297");
    let errors = Network::parse("repository.toml", &much)
        .unwrap_err()
        .to_string();
    assert!(
        errors.contains("a whole number from 1 to 100663296"),
        "{errors}"
    );
}

/// More than an answer in JSON may hold, and more than one in CAR may.
#[test]
fn a_large_account_is_read_whole_and_a_huge_one_is_too_much_data() {
    let tags: Vec<String> = (0..10).map(|number| format!("t{number}")).collect();
    let note = json!({"text": "x", "tags": tags});
    let of = |count: usize| {
        let path = |number| format!("app.birds.note/{number:06}");
        Repository::new((0..count).map(|number| (path(number), note.clone())))
    };
    let reading = read("notes", &of(21_000).car());
    assert_eq!(
        (reading.outcome, reading.objects.len()),
        (OutcomeCode::Ok, 21_000)
    );
    assert_eq!(reading.links.len(), 210_000);
    let reading = read("notes", &of(41_000).car());
    assert_eq!(reading.outcome, OutcomeCode::TooMuchData);
    assert!((400_000..=400_010).contains(&reading.links.len()));
}
