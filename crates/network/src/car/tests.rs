use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use writer::{
    Block, Part, REVISION, Repository, car, cbor, cid_bytes, cid_text, commit, entry, expected,
    float, head, length, link, list, map, node, null, number, text, tree,
};

#[path = "../../tests/it/repository.rs"]
mod writer;

fn tree_of(body: &[u8]) -> (Value, u32) {
    let converted = convert(body).unwrap();
    (
        serde_json::from_str(&converted.json).unwrap(),
        converted.mended,
    )
}

fn fault(body: &[u8]) -> CarError {
    convert(body).unwrap_err()
}

fn malformed(body: &[u8]) -> &'static str {
    match fault(body) {
        CarError::Malformed(reason) => reason,
        CarError::TooLarge(reason) => panic!("too large: {reason}"),
    }
}

/// A file of one commit, a tree by hand and some further blocks.
fn by_hand(root: &[u8], blocks: Vec<Block>) -> Vec<u8> {
    let commit = Block::new(commit(writer::DID, root));
    let name = commit.cid.clone();
    car(&name, &[vec![commit], blocks].concat())
}

/// A file whose tree is one node with these entries.
fn of_entries(entries: impl IntoIterator<Item = Vec<u8>>, blocks: Vec<Block>) -> Vec<u8> {
    let entries: Vec<Vec<u8>> = entries.into_iter().collect();
    let node = Block::new(node(None, &entries));
    let root = node.cid.clone();
    by_hand(&root, [vec![node], blocks].concat())
}

/// A file with one record of these bytes.
fn of_record(data: Vec<u8>) -> Vec<u8> {
    let record = Block::new(data);
    let entry = entry(0, b"app.birds.note/1", &record.cid, None);
    of_entries([entry], vec![record])
}

fn many(count: usize) -> Repository {
    Repository::new((0..count).map(|number| {
        let collection = ["app.birds.follow", "app.birds.note", "app.birds.note.like"][number % 3];
        (
            format!("{collection}/3l{number:011}"),
            json!({"$type": collection, "number": number, "text": "Kittiwakes nest on ledges"}),
        )
    }))
}

#[test]
fn a_repository_becomes_a_tree() {
    let repository = Repository::new([
        (
            "app.birds.note/3lb",
            json!({
                "text": "On a \"ledge\",\n\u{1}🐦 \\",
                "picture": {"$link": "bafkreihwihm6kpd6zuwhhlro75p5qks5qtrcu55jp3gddbfjsieiv7wuka"},
                "raw": {"$bytes": "AAH/"},
                "empty": {"list": [], "map": {}, "none": null, "raw": {"$bytes": ""}},
                "numbers": [0, -1, u64::MAX, i64::MIN, 9_007_199_254_740_993_u64, 1.5],
                "signs": [true, false, [[]]],
            }),
        ),
        ("app.birds.note/3la", json!({"text": ""})),
        ("app.birds.keeper/self", json!({})),
    ]);
    let (found, mended) = tree_of(&repository.car());
    assert_eq!(found, expected(&repository));
    assert_eq!(mended, 0);
    assert_eq!(found["rev"], REVISION);
    let note = &found["collections"]["app.birds.note"][0];
    assert_eq!(
        note["uri"],
        "at://did:plc:kittiwake7kittiwake7kitt/app.birds.note/3la"
    );
    assert_eq!(note["rkey"], "3la");
}

#[test]
fn an_empty_repository_has_no_collections() {
    let (found, mended) = tree_of(&Repository::new::<String>([]).car());
    assert_eq!(
        (found["collections"].to_string().as_str(), mended),
        ("{}", 0)
    );
}

/// The roots that other programs get for the same keys: the writer is held against the world.
#[test]
fn the_writer_makes_trees_as_the_specification_has_them() {
    let value = cid_bytes("bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454").unwrap();
    let root = |keys: &[&str]| {
        let keys = keys.iter().map(|key| format!("com.example.record/{key}"));
        let leaves: Vec<_> = keys.map(|key| (key.into_bytes(), value.clone())).collect();
        cid_text(&tree(&leaves, &mut |_, _| {}, &mut Vec::new()))
    };
    let simple = [
        "3jqfcqzm3fp2j",
        "3jqfcqzm3fr2j",
        "3jqfcqzm3fs2j",
        "3jqfcqzm3ft2j",
        "3jqfcqzm4fc2j",
    ];
    for (keys, expected) in [
        (
            &[][..],
            "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm",
        ),
        (
            &["3jqfcqzm3fo2j"],
            "bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu",
        ),
        (
            &["3jqfcqzm3fx2j"],
            "bafyreih7wfei65pxzhauoibu3ls7jgmkju4bspy4t2ha2qdjnzqvoy33ai",
        ),
        (
            &simple,
            "bafyreicmahysq4n6wfuxo522m6dpiy7z7qzym3dzs756t5n7nfdgccwq7m",
        ),
    ] {
        assert_eq!(root(keys), expected);
    }
}

#[test]
fn a_tree_of_several_layers_is_read_in_order() {
    let repository = many(2_000);
    let mut nodes = 0;
    let body = repository.damaged(&mut |part, _| nodes += u32::from(part == Part::Node));
    assert!(nodes > 500);
    assert_eq!(tree_of(&body), (expected(&repository), 0));
}

#[test]
fn the_order_of_blocks_does_not_matter_and_repeated_ones_are_one() {
    let repository = many(50);
    let (root, mut blocks) = repository.blocks(&mut |_, _| {});
    blocks.reverse();
    blocks.extend(blocks.clone());
    assert_eq!(tree_of(&car(&root, &blocks)), (expected(&repository), 0));
}

#[test]
fn what_no_entry_names_is_no_record() {
    let repository = many(9);
    let (root, mut blocks) = repository.blocks(&mut |_, _| {});
    blocks.push(Block::new(cbor(&json!({"text": "of nobody"}))));
    assert_eq!(tree_of(&car(&root, &blocks)), (expected(&repository), 0));
}

#[test]
fn what_is_missing_is_left_out_and_counted() {
    let (root, blocks) = many(30).blocks(&mut |_, _| {});
    let records = |found: &Value| -> usize {
        let lists = found["collections"].as_object().unwrap().values();
        lists.map(|list| list.as_array().unwrap().len()).sum()
    };
    // Whatever block but the commit is left out: a record, or a node with all that hangs on it.
    let mut is_root_missed = false;
    for place in 1..blocks.len() {
        let mut rest = blocks.clone();
        rest.remove(place);
        match convert(&car(&root, &rest)) {
            Ok(converted) => {
                let found = serde_json::from_str(&converted.json).unwrap();
                assert!(records(&found) < 30);
                assert_eq!(converted.mended, 1);
            }
            Err(error) => {
                assert_eq!(error.to_string(), "the tree is not in the car");
                is_root_missed = true;
            }
        }
    }
    assert!(is_root_missed);
    assert_eq!(
        malformed(&car(&root, &blocks[1..])),
        "the commit is not in the car"
    );
}

#[test]
fn a_block_that_is_not_what_its_name_says_is_no_block() {
    let repository = many(30);
    let (root, blocks) = repository.blocks(&mut |_, _| {});
    // The first is the commit, the second a record.
    for change in [
        |block: &mut Block| block.data[3] ^= 1,
        |block: &mut Block| block.cid[10] ^= 1,
        // Other codecs, hash functions and versions; the last is cut off.
        |block: &mut Block| block.cid[1] = 0x55,
        |block: &mut Block| block.cid[2] = 0x13,
        |block: &mut Block| block.cid[3] = 0x1F,
        |block: &mut Block| block.cid[0] = 0x02,
        |block: &mut Block| block.cid.truncate(20),
    ] {
        let mut changed = blocks.clone();
        change(&mut changed[1]);
        changed[1].data.truncate(40);
        let (found, mended) = tree_of(&car(&root, &changed));
        // The block itself, and the record that is missing then.
        assert_eq!(mended, 2);
        assert_ne!(found, expected(&repository));
        let mut changed = blocks.clone();
        change(&mut changed[0]);
        assert_eq!(
            malformed(&car(&root, &changed)),
            "the commit is not in the car"
        );
    }
    let huge = vec![0x5A; BYTES_MAX / 16];
    let (_, mended) = tree_of(&of_record(huge));
    assert_eq!(mended, 2);
}

#[test]
fn keys_that_are_no_paths_are_left_out_and_counted() {
    let record = Block::new(cbor(&json!({"text": "x"})));
    let keys: [&[u8]; 12] = [
        b"",
        b"/",
        b"/1",
        b"app..birds/1",
        b"app.birds.note",
        b"app.birds.note/",
        b"app.birds.note/.",
        b"app.birds.note/..",
        b"app.birds.note/a b",
        b"app.birds.note/a/b",
        b"app.birds.\xFF/1",
        b"note/1",
    ];
    let good: &[u8] = b"app.birds.note/a:B-_~1.c";
    let mut sorted: Vec<&[u8]> = keys.into_iter().chain([good]).collect();
    sorted.sort_unstable();
    let entries = sorted.iter().map(|key| entry(0, key, &record.cid, None));
    let (found, mended) = tree_of(&of_entries(entries, vec![record.clone()]));
    assert_eq!(mended, 12);
    let collections = found["collections"].as_object().unwrap();
    assert_eq!(collections.len(), 1);
    assert_eq!(collections["app.birds.note"].as_array().unwrap().len(), 1);
}

#[test]
fn records_that_are_no_dag_cbor_are_left_out_and_counted() {
    let deep = |depth: usize| {
        let mut data = vec![0x81; depth];
        data.extend(null());
        data
    };
    for (what, data) in [
        ("nothing", Vec::new()),
        ("something behind it", [null(), null()].concat()),
        ("cut off", cbor(&json!({"text": "x"}))[..5].to_vec()),
        ("a list without end", vec![0x9F, 0x01, 0xFF]),
        ("a text without end", vec![0x7F, 0x61, b'a', 0xFF]),
        ("a map without end", vec![0xBF, 0xFF]),
        ("a long number that is short", vec![0x19, 0x00, 0x01]),
        ("another tag", vec![0xC1, 0x01]),
        ("a large number", vec![0xC2, 0x41, 0x01]),
        ("no text", vec![0x62, 0xC3, 0x28]),
        ("no name", vec![0xD8, 42, 0x42, 0x00, 0x01]),
        ("a name without its mark", vec![0xD8, 42, 0x42, 0x01, 0x01]),
        ("not a number", float(f64::NAN)),
        ("without bound", float(f64::INFINITY)),
        ("half a float", vec![0xF9, 0x3C, 0x00]),
        ("undefined", vec![0xF7]),
        ("a key that is a number", vec![0xA1, 0x01, 0x01]),
        (
            "keys out of order",
            [&[0xA2][..], &text("b"), &null(), &text("a"), &null()].concat(),
        ),
        (
            "a key twice",
            [&[0xA2][..], &text("a"), &null(), &text("a"), &null()].concat(),
        ),
        ("a lying list", [head(4, u64::MAX), null()].concat()),
        (
            "a lying map",
            [head(5, 1 << 40), text("a"), null()].concat(),
        ),
        ("a lying text", [head(3, u64::MAX), null()].concat()),
        ("lying bytes", [head(2, 1 << 33), null()].concat()),
        ("nested too deeply", deep(97)),
        ("nested without measure", deep(100_000)),
    ] {
        let (found, mended) = tree_of(&of_record(data));
        assert_eq!(
            (found["collections"].to_string().as_str(), mended),
            ("{}", 1),
            "{what}"
        );
    }
    let (found, mended) = tree_of(&of_record(deep(96)));
    assert_eq!(
        (found["collections"]["app.birds.note"].is_array(), mended),
        (true, 0)
    );
    let lowest = head(1, u64::MAX);
    assert!(
        car_to_json(&of_record(lowest))
            .unwrap()
            .contains("\"value\":-18446744073709551616}")
    );
}

#[test]
fn what_is_cut_off_is_malformed() {
    let body = many(20).car();
    let header = 59;
    for end in 0..body.len() {
        let reason = convert(&body[..end]).err().map(|error| error.to_string());
        let reason = reason.unwrap_or_default();
        match end {
            0 => assert_eq!(reason, "empty body"),
            _ if end < header => assert_eq!(reason, "no car", "{end}"),
            _ if end == header => assert_eq!(reason, "the commit is not in the car"),
            // Between two blocks nobody can see that more should follow, but the tree tells.
            _ => assert!(
                ["car ends too early", "the tree is not in the car"].contains(&&*reason),
                "{end}: {reason}"
            ),
        }
    }
}

#[test]
fn what_is_no_car_is_malformed() {
    for body in [
        &b"{\"error\":\"RepoNotFound\",\"message\":\"Could not find repo\"}"[..],
        b"<html><body>Not here</body></html>",
        &[0x80; 100],
        &[0xFF; 4_000],
        &[0; 4_000],
        b"\x01\xA0",
        b"\x01\xF6",
    ] {
        assert_eq!(malformed(body), "no car", "{body:?}");
    }
    let headed = |header: Vec<u8>| [length(header.len()), header].concat();
    let second = headed(map(vec![("roots", list(&[])), ("version", number(2))]));
    assert_eq!(malformed(&second), "a car of another version than 1");
    let rootless = headed(map(vec![("roots", list(&[])), ("version", number(1))]));
    assert_eq!(malformed(&rootless), "a car without a root");
    // A length without end, and one that is longer than the rest.
    let body = many(3).car();
    for more in [&[0x80; 40][..], &[0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1], &[9, 1]] {
        assert_eq!(malformed(&[&body, more].concat()), "car ends too early");
    }
}

#[test]
fn a_commit_that_names_nobody_is_malformed() {
    let of_commit = |data: Vec<u8>| {
        let commit = Block::new(data);
        car(&commit.cid.clone(), &[commit])
    };
    let tree = Block::new(node(None, &[])).cid;
    for data in [
        null(),
        map(vec![("data", link(&tree))]),
        map(vec![("did", text("did:plc:x"))]),
        map(vec![("did", text("did:plc:x")), ("data", null())]),
        map(vec![("did", number(1)), ("data", link(&tree))]),
        commit("", &tree),
        commit("did:", &tree),
        commit("plc:x", &tree),
        commit("did:plc:a/b", &tree),
        commit("did:plc:\"", &tree),
        commit(&format!("did:plc:{}", "x".repeat(3_000)), &tree),
    ] {
        assert_eq!(malformed(&of_commit(data)), "a commit that cannot be read");
    }
}

#[test]
fn keys_out_of_order_are_malformed() {
    let record = Block::new(cbor(&json!({})));
    let of_keys = |keys: &[&str]| {
        let entries = keys
            .iter()
            .map(|key| entry(0, key.as_bytes(), &record.cid, None));
        of_entries(entries, vec![record.clone()])
    };
    assert_eq!(tree_of(&of_keys(&["a.b/1", "a.b/2"])).1, 0);
    for keys in [["a.b/2", "a.b/1"], ["a.b/1", "a.b/1"], ["b.b/1", "a.b/2"]] {
        assert_eq!(malformed(&of_keys(&keys)), "keys of the tree out of order");
    }
    // In two nodes as in one.
    let right = Block::new(node(None, &[entry(0, b"a.b/1", &record.cid, None)]));
    let own = entry(0, b"a.b/2", &record.cid, Some(&right.cid));
    let body = of_entries([own], vec![right, record]);
    assert_eq!(malformed(&body), "keys of the tree out of order");
}

#[test]
fn keys_that_lie_about_what_they_begin_with_are_malformed() {
    let record = Block::new(cbor(&json!({})));
    let of = |entries: Vec<Vec<u8>>| of_entries(entries, vec![record.clone()]);
    let first = || entry(0, b"a.b/1", &record.cid, None);
    let shared = entry(4, b"2", &record.cid, None);
    assert_eq!(tree_of(&of(vec![first(), shared])).1, 0);
    let reason = "a key that begins like none before it";
    assert_eq!(
        malformed(&of(vec![entry(1, b"a.b/1", &record.cid, None)])),
        reason
    );
    assert_eq!(
        malformed(&of(vec![first(), entry(6, b"2", &record.cid, None)])),
        reason
    );
    assert_eq!(
        malformed(&of(vec![
            first(),
            entry(u64::from(u32::MAX), b"2", &record.cid, None)
        ])),
        reason
    );
    let unreadable = "a node of the tree that cannot be read";
    assert_eq!(
        malformed(&of(vec![entry(u64::MAX, b"1", &record.cid, None)])),
        unreadable
    );
    let long = "x".repeat(1_030);
    assert_eq!(
        malformed(&of(vec![entry(0, long.as_bytes(), &record.cid, None)])),
        "a key that is too long"
    );
}

#[test]
fn a_node_that_is_no_node_is_malformed() {
    let lying = [vec![0xA2], text("e"), head(4, 1 << 40), text("l"), null()].concat();
    for data in [null(), vec![0xA0], cbor(&json!({"text": "x"})), lying] {
        let node = Block::new(data);
        let body = by_hand(&node.cid.clone(), vec![node]);
        assert_eq!(malformed(&body), "a node of the tree that cannot be read");
    }
}

/// No hash can be in what it is the hash of, so that no circle can be written: a node in two places is
/// as near as one gets.
#[test]
fn a_node_in_two_places_is_malformed_before_it_unfolds() {
    let record = Block::new(cbor(&json!({})));
    // Each node has the one below it twice; 2^100 of them would be there to be looked at.
    let mut blocks = vec![Block::new(node(None, &[]))];
    for number in 0..100 {
        let below = blocks[number].cid.clone();
        let key = format!("a.b/{number:03}");
        let own = entry(0, key.as_bytes(), &record.cid, Some(&below));
        blocks.push(Block::new(node(Some(&below), &[own])));
    }
    let root = blocks[100].cid.clone();
    blocks.push(record.clone());
    assert_eq!(
        malformed(&by_hand(&root, blocks)),
        "one node of the tree in two places"
    );
    // One empty node, named a thousand times.
    let empty = Block::new(node(None, &[]));
    let own = |number: usize| {
        let key = format!("a.b/{number:04}");
        entry(0, key.as_bytes(), &record.cid, Some(&empty.cid))
    };
    let body = of_entries((0..1_000).map(own), vec![empty.clone(), record.clone()]);
    assert_eq!(malformed(&body), "one node of the tree in two places");
}

#[test]
fn a_tree_that_is_deeper_than_any_can_be_is_malformed() {
    let chain = |depth: usize| {
        let mut blocks = vec![Block::new(node(None, &[]))];
        for _ in 1..depth {
            let below = blocks[blocks.len() - 1].cid.clone();
            blocks.push(Block::new(node(Some(&below), &[])));
        }
        let root = blocks[depth - 1].cid.clone();
        by_hand(&root, blocks)
    };
    assert_eq!(tree_of(&chain(128)).1, 0);
    assert_eq!(malformed(&chain(129)), "a tree with too many layers");
    assert_eq!(malformed(&chain(20_000)), "a tree with too many layers");
}

#[test]
fn what_unfolds_to_more_than_it_can_hold_is_too_much() {
    // One long record under many keys: each takes some 60 bytes, and gives 200 000.
    let record = Block::new(text(&"x".repeat(200_000)));
    let own = |number: usize| {
        let key = format!("app.birds.note/{number:05}");
        entry(0, key.as_bytes(), &record.cid, None)
    };
    let body = of_entries((0..5_000).map(own), vec![record.clone()]);
    assert!(matches!(fault(&body), CarError::TooLarge(_)));
    // Long keys that are written in a few bytes each.
    let start = format!("app.birds.note/{}", "x".repeat(900));
    let record = Block::new(null());
    let mut entries = vec![entry(0, start.as_bytes(), &record.cid, None)];
    entries.extend((0..20_000).map(|number| {
        let rest = format!("{number:05}");
        entry(start.len() as u64, rest.as_bytes(), &record.cid, None)
    }));
    assert!(matches!(
        fault(&of_entries(entries, vec![record])),
        CarError::TooLarge(_)
    ));
    assert!(matches!(
        fault(&vec![0; BYTES_MAX + 1]),
        CarError::TooLarge(_)
    ));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|it| Value::from(f64::from(it) + 0.5)),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|it| json!({"$bytes": writer::base64_text(&it)})),
        prop::collection::vec(any::<u8>(), 0..9)
            .prop_map(|it| json!({"$link": cid_text(&Block::new(it).cid)})),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn repository() -> impl Strategy<Value = Repository> {
    let path = "[a-z]{1,3}\\.[a-zA-Z0-9]{1,3}(\\.[a-z-]{1,4})?/[a-zA-Z0-9._:~-]{0,6}[a-z0-9]";
    prop::collection::btree_map(path, value(), 0..40).prop_map(Repository::new)
}

proptest! {
    #[test]
    fn any_repository_reads_back(repository in repository()) {
        prop_assert_eq!(tree_of(&repository.car()), (expected(&repository), 0));
    }

    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = convert(&body);
    }

    /// Changed before or after the blocks got their names: what is read is JSON, and within bounds.
    #[test]
    fn any_change_is_survived(
        repository in repository(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_before in any::<bool>(),
    ) {
        let change = |data: &mut Vec<u8>| for (place, byte) in &changes {
            if !data.is_empty() {
                let place = place.index(data.len());
                data[place] = *byte;
            }
        };
        let mut turn = 0;
        let mut body = repository.damaged(&mut |_, data| {
            turn += 1;
            if is_before && turn % 5 == changes.len() {
                change(data);
            }
        });
        if !is_before {
            change(&mut body);
        }
        if let Ok(converted) = convert(&body) {
            prop_assert!(serde_json::from_str::<Value>(&converted.json).is_ok());
            prop_assert!(converted.json.len() <= body.len() * 3 + (65 << 10));
        }
    }

    #[test]
    fn any_block_is_survived(data in prop::collection::vec(any::<u8>(), 0..60)) {
        let converted = convert(&of_record(data.clone())).unwrap();
        prop_assert!(serde_json::from_str::<Value>(&converted.json).is_ok());
        let node = Block::new(data);
        let _ = convert(&by_hand(&node.cid.clone(), vec![node]));
    }
}
