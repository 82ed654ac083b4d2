//! Any file goes out and in again, and files can be put together in any order.

use crate::export::{
    assert_goes_round, at, commit, identity, import, import_bytes, lines, log_row, named, store,
    with_alias,
};
use kittiwake_model::clock::{EARLIEST_US, LATEST_US};
use kittiwake_model::{
    Commit, Discovery, Group, Identity, Link, LinkTable, Name, Object, Outcome, OutcomeCode,
    Reference, Standing, Table, Value, WorldTime,
};
use kittiwake_store::Store;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Texts that have broken other programs.
fn nasty_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("NUL \0 here".to_owned()),
        Just("\"quotes\", commas, 'apostrophes'".to_owned()),
        Just("line\nbreak\r\nand \u{2028} more\r".to_owned()),
        Just("🐦‍⬛ naïve 日本語 \u{202E}rtl".to_owned()),
        Just("=HYPERLINK(\"http://x\")".to_owned()),
        Just("=\"0123\"".to_owned()),
        Just("null".to_owned()),
        Just("\u{FEFF}mark".to_owned()),
        "\\PC{0,20}",
    ]
}

fn nasty_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => prop_oneof![Just(i64::MAX), Just(i64::MIN), any::<i64>()].prop_map(Value::Int),
        2 => prop_oneof![
            Just(-0.0),
            Just(1e300),
            Just(5e-324),
            Just(f64::NAN),
            Just(1.0),
            any::<f64>()
        ]
        .prop_map(Value::Float),
        4 => nasty_text().prop_map(Value::Text),
        2 => (EARLIEST_US..=LATEST_US, any::<bool>())
            .prop_map(|(at_us, clamped)| Value::Time { at_us, clamped }),
        2 => prop_oneof![
            Just("[1, 2.50,\n 12345678901234567890]"),
            Just("{\"b\": null, \"a\":\"\\u0000\\n\"}"),
            Just("{\"a\":1,\"a\":2}"),
            Just("5"),
            Just("\"x\""),
            Just("null"),
            Just("not json"),
        ]
        .prop_map(|text| Value::Json(text.into())),
        2 => any_identity().prop_map(|identity| Value::Object(named(&identity))),
    ]
}

/// Few objects, with ids of all sorts, so that they meet, merge and get in one another's way. No two
/// canonical ids are said to have one local id: who keeps it then is a matter of who came first.
fn any_identity() -> impl Strategy<Value = Identity> {
    let kind =
        prop_oneof![4 => Just("user"), 4 => Just("status"), 1 => Just("tag"), 1 => Just("event")];
    let network = prop_oneof![5 => Just("net"), 1 => Just("other")];
    let ids = (
        prop::option::weighted(0.7, 0_u8..3),
        prop::option::weighted(0.5, 0_u8..6),
        prop::option::weighted(0.4, 0_u8..4),
    );
    (network, kind, ids).prop_map(|(network, kind, (canonical, local, handle))| {
        let mut identity = identity(kind, None);
        identity.network = network.into();
        identity.canonical = canonical.map(|number| match number {
            0 => "alias:id:h:1".to_owned(),
            1 => "o'hara \"x\", y".to_owned(),
            number => format!("https://h/{number}"),
        });
        if let Some(number) = local {
            let number = canonical.map_or(number, |canonical| canonical * 2 + number % 2);
            identity = with_alias(identity, "id", "h:80", &number.to_string(), false);
        }
        if let Some(number) = handle {
            identity = with_alias(identity, "handle", "", &format!("n{number}@h"), true);
        }
        if identity.is_anonymous() {
            identity.canonical = Some("https://h/0".to_owned());
        }
        identity
    })
}

fn any_group() -> impl Strategy<Value = Group> {
    let field = prop_oneof![
        Just("display_name"),
        Just("text"),
        Just("author"),
        Just("parent"),
        Just("created_us"),
        Just("likes_count"),
        Just("longitude"),
        Just("media"),
        Just("is_bot"),
        Just("moved_to"),
        Just("o'hara \"x\""),
    ];
    let name = prop_oneof![Just("card"), Just("counts")];
    let fields = prop::collection::btree_map(field, nasty_value(), 0..7);
    (name, fields).prop_map(|(name, fields)| Group {
        name: name.into(),
        // One group of an object has a field, as definitions have it.
        fields: fields
            .into_iter()
            .map(|(field, value)| match name {
                "counts" => (Name::from(format!("{field}_counted")), value),
                _ => (Name::from(field), value),
            })
            .collect(),
    })
}

fn any_object() -> impl Strategy<Value = Object> {
    let standing = prop_oneof![
        8 => Just(Standing::Present),
        1 => Just(Standing::Invalid(OutcomeCode::Suspended)),
        2 => Just(Standing::Hearsay),
        2 => Just(Standing::Named),
    ];
    let groups = prop::collection::vec(any_group(), 0..3);
    (any_identity(), groups, standing).prop_map(|(identity, groups, standing)| Object {
        known_as: None,
        table: match &*identity.kind {
            "user" => Table::Users,
            "status" => Table::Statuses,
            "tag" => Table::Tags,
            _ => Table::Objects,
        },
        identity,
        // What is gone is shown without its fields.
        groups: match standing {
            Standing::Present | Standing::Hearsay | Standing::Named => groups,
            Standing::Invalid(_) => Vec::new(),
        },
        standing,
    })
}

fn any_link() -> impl Strategy<Value = Link> {
    let table = prop_oneof![
        Just(LinkTable::UserRelations),
        Just(LinkTable::UserTags),
        Just(LinkTable::Links)
    ];
    let kind = prop_oneof![Just("like"), Just("men,\"tion\"")];
    (
        table,
        kind,
        any_identity(),
        any_identity(),
        prop::option::of(0_i64..9),
    )
        .prop_map(|(table, kind, from, to, began)| Link {
            table,
            kind: kind.into(),
            from: named(&from),
            to: named(&to),
            at: began.map(WorldTime),
            walk: None,
        })
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) at_us: i64,
    has_log: bool,
    pub(crate) objects: Vec<Object>,
    links: Vec<Link>,
    outcome: Option<OutcomeCode>,
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        Just(OutcomeCode::Ok),
        Just(OutcomeCode::Gone),
        Just(OutcomeCode::NotFound)
    ];
    (
        prop_oneof![Just(7), 0_i64..20, Just(90_000_000_000)],
        any::<bool>(),
        prop::collection::vec(any_object(), 0..4),
        prop::collection::vec(any_link(), 0..4),
        prop::option::of(outcome),
    )
        .prop_map(|(at_us, has_log, objects, links, outcome)| Step {
            at_us,
            has_log,
            objects,
            links,
            outcome,
        })
}

pub(crate) async fn take(store: &dyn Store, step: Step) {
    let has_object = !step.objects.is_empty();
    let discoveries = has_object.then_some(Discovery {
        subject: Reference::Object(0),
        depth: 0,
    });
    let keys = commit(
        store,
        Commit {
            objects: step.objects,
            links: step.links,
            discoveries: discoveries.into_iter().collect(),
            log: step.has_log.then(log_row),
            ..at(step.at_us)
        },
    )
    .await;
    if let (Some(subject), Some(code)) = (keys.first(), step.outcome) {
        let outcome = Outcome {
            subject: *subject,
            query: "profile".into(),
            code,
            reason: String::new(),
        };
        let told = Commit {
            outcomes: vec![outcome],
            ..at(step.at_us + 1)
        };
        commit(store, told).await;
    }
}

/// Moves a relation to those that have vanished, as a whole walk without it does.
fn lose_a_relation(folder: &Path) {
    let connection = rusqlite::Connection::open(folder.join("a.db")).unwrap();
    connection
        .execute_batch(
            "INSERT INTO invalid_relations
             SELECT source, target, first_seen_us, last_seen_us, last_seen_us + 5
             FROM user_relations ORDER BY source DESC LIMIT 1;
             DELETE FROM user_relations WHERE EXISTS (SELECT 1 FROM invalid_relations AS i
               WHERE i.source = user_relations.source AND i.target = user_relations.target)",
        )
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_file_goes_round(steps in prop::collection::vec(any_step(), 1..7)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path(), "a.db");
            for step in steps {
                take(&store, step).await;
            }
            lose_a_relation(folder.path());
            assert_goes_round(folder.path(), &store).await;
        });
    }

    #[test]
    fn damage_is_found_and_never_spoils_the_file(
        steps in prop::collection::vec(any_step(), 1..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_cut in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let original = store(folder.path(), "a.db");
            for step in steps {
                take(&original, step).await;
            }
            let mut bytes = lines(&original).await.into_bytes();
            for (place, byte) in damage {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = byte;
                    bytes.truncate(if is_cut { place } else { bytes.len() });
                }
            }
            let copy = store(folder.path(), "copy.db");
            if let Err(error) = import_bytes(&copy, bytes).await {
                let message = error.to_string();
                prop_assert!(!message.contains("the store has stopped"), "{}", message);
            }
            // Whatever was taken in can be had back, and goes round.
            drop(original);
            let again = lines(&copy).await;
            let third = store(folder.path(), "third.db");
            import(&third, &again).await.unwrap();
            prop_assert_eq!(lines(&third).await, again);
            Ok(())
        })?;
    }

    #[test]
    fn two_files_give_the_same_in_either_order(
        left in prop::collection::vec(any_step(), 1..4),
        right in prop::collection::vec(any_step(), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let mut texts = Vec::new();
            for (name, steps, shift_us) in [("l.db", left, 0), ("r.db", right, 1_000)] {
                let store = store(folder.path(), name);
                for step in apart(steps, shift_us) {
                    take(&store, step).await;
                }
                texts.push(lines(&store).await);
            }
            let mut results = Vec::new();
            for (name, order) in [("lr.db", [0, 1]), ("rl.db", [1, 0])] {
                let store = store(folder.path(), name);
                for place in order {
                    import(&store, &texts[place]).await.unwrap();
                }
                results.push(unordered(&lines(&store).await));
            }
            prop_assert_eq!(&results[0], &results[1]);
            Ok(())
        })?;
    }
}

/// Steps of one of several crawls: two of them do not ask in the same microsecond, and nobody who has
/// no id but a handle is told apart from its other holders.
pub(crate) fn apart(steps: Vec<Step>, shift_us: i64) -> Vec<Step> {
    let steps = steps.into_iter().map(|step| Step {
        at_us: step.at_us + shift_us,
        outcome: None,
        ..without_bare_handles(step)
    });
    steps.collect()
}

fn without_bare_handles(mut step: Step) -> Step {
    let mend = |identity: &mut Identity| {
        if identity.aliases.iter().all(|alias| alias.movable) && identity.canonical.is_none() {
            identity.canonical = Some("https://h/0".to_owned());
        }
    };
    let mend_reference = |reference: &mut Reference| {
        if let Reference::Identity(identity) = reference {
            mend(identity);
        }
    };
    for object in &mut step.objects {
        mend(&mut object.identity);
        object.standing = Standing::Present;
        for (_, value) in object.groups.iter_mut().flat_map(|group| &mut group.fields) {
            if let Value::Object(reference) = value {
                mend_reference(reference);
            }
        }
    }
    for link in &mut step.links {
        mend_reference(&mut link.from);
        mend_reference(&mut link.to);
    }
    step
}

/// The rows without their order; histories apart, which say the same in more or fewer rows.
fn unordered(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| {
            !line.starts_with("{\"table\":\"versions\"")
                && !line.starts_with("{\"table\":\"counts\"")
        })
        .map(str::to_owned)
        .collect()
}
