//! Made-up answers and what they are read as, kept beside the definition.

use crate::support::{Sent, mastodon, root};
use kittiwake_network::Reading;
use serde_json::{Value, json};

#[test]
fn samples_are_read_as_expected() {
    let network = mastodon();
    let folder = root().join("networks/samples/mastodon");
    let update = std::env::var_os("KITTIWAKE_UPDATE_SAMPLES").is_some();
    let mut checked = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name
            .strip_suffix(".json")
            .filter(|stem| !stem.contains('.'))
        else {
            continue;
        };
        let query = stem.split('-').next().unwrap();
        let body = std::fs::read(&path).unwrap();
        let reading = render(&Sent::ok(query, &body).read(&network));
        // One sample holds half a surrogate pair, which no document tree can.
        if let Ok(answer) = serde_json::from_slice(&body) {
            let unmapped = network.unmapped_answer(network.query(query).unwrap(), &answer);
            assert!(unmapped.is_empty(), "{name}: {unmapped:?}");
        }
        let expected_path = folder.join(format!("{stem}.expected.json"));
        if update {
            let text = serde_json::to_string_pretty(&reading).unwrap();
            std::fs::write(&expected_path, text + "\n").unwrap();
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(reading, expected, "{name}");
        checked += 1;
    }
    assert!(checked >= 13);
}

fn render(reading: &Reading) -> Value {
    json!({
        "outcome": reading.outcome.code(),
        "reason": reading.reason,
        "items": reading.items,
        "newest": reading.newest,
        "mended": reading.mended,
        "subject_outcomes": reading.subject_outcomes,
        "objects": reading.objects,
        "links": reading.links,
    })
}

#[test]
fn what_is_neither_mapped_nor_ignored_is_found_at_every_depth() {
    let network = mastodon();
    let object = json!({
        "id": "1", "uri": "u", "novelty": 1, "muted": {"any": "thing"}, "media_attachments": [{"x": 1}],
        "application": {"name": "Web", "colour": "red"},
        "account": {"id": "7", "acct": "a", "shoe_size": [], "fields": [{"q": 1}]},
        "tags": [{"name": "a", "rank": {"of": 3}}],
        "reblog": {"id": "2", "account": {"halo": null}},
        "odd key": true,
        "quote": {"quoted_status": {"id": "3", "deep": 1}, "state": "accepted"},
    });
    assert_eq!(
        network.unmapped("status", &object).unwrap(),
        [
            ".[\"odd key\"]",
            ".account.shoe_size",
            ".application.colour",
            ".novelty",
            ".quote.quoted_status.deep",
            ".reblog.account.halo",
            ".tags[].rank.of",
        ]
    );
    assert_eq!(network.unmapped("planet", &object), None);
}
