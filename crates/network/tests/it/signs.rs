//! Signs, `.a == true or .b == false`, are read without jaq. They mean what jaq makes of them,
//! except that nothing observed stays nothing observed.

use crate::support::field;
use kittiwake_model::{Identity, Key, Value};
use kittiwake_network::{Answer, Network, Page};
use proptest::prelude::*;
use serde_json::json;

const PATHS: &[&str] = &[".a", ".b", ".c.d", r#".["odd key"]"#];

/// A network whose objects have one expression twice: `signs` as it is, `jaq` in brackets, which
/// leaves it to jaq.
fn network(expression: &str) -> Network {
    let text = format!(
        r#"format = 1
name = "signs"
verified_on = "2026-11-15"
host = {{ kind = "fixed", address = "https://signs.example" }}

[types.thing]
canonical = ".id"

[types.thing.fields.card]
signs = {{ path = '{expression}', kind = "bool" }}
jaq = {{ path = '({expression})', kind = "bool" }}

[queries.thing]
subject = "thing"
path = "/{{canonical}}"

[[queries.thing.selects]]
at = "."
as = "thing"
is_subject = true
"#
    );
    Network::parse("signs.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What `signs` and `jaq` are in an object, and how many values were dropped.
fn read(network: &Network, body: &str) -> (Option<Value>, Option<Value>, u32) {
    let base = network.base("").unwrap();
    let subject = Identity {
        network: "signs".into(),
        kind: "thing".into(),
        canonical: Some("1".into()),
        aliases: Vec::new(),
    };
    let reading = network.read(&Answer {
        query: network.query("thing").unwrap(),
        base: &base,
        host: "signs.example",
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    });
    let [object] = reading.objects.as_slice() else {
        panic!("{reading:?}")
    };
    (
        field(object, "signs").cloned(),
        field(object, "jaq").cloned(),
        reading.mended,
    )
}

#[test]
fn a_sign_is_given_by_the_very_truth_value_and_by_nothing_else() {
    let network = network(".a == true or .b == false");
    let (yes, no) = (Some(Value::Bool(true)), Some(Value::Bool(false)));
    for (body, expected) in [
        (r#"{"id":1}"#, None),
        (r#"{"id":1,"c":true}"#, None),
        (r#"{"id":1,"a":true}"#, yes.clone()),
        (r#"{"id":1,"a":false}"#, no.clone()),
        (r#"{"id":1,"b":false}"#, yes.clone()),
        (r#"{"id":1,"b":true}"#, no.clone()),
        (r#"{"id":1,"a":false,"b":false}"#, yes.clone()),
        (r#"{"id":1,"a":null}"#, no.clone()),
        (r#"{"id":1,"a":null,"b":null}"#, no.clone()),
        (r#"{"id":1,"a":"true"}"#, no.clone()),
        (r#"{"id":1,"b":"false"}"#, no.clone()),
        (r#"{"id":1,"a":1}"#, no.clone()),
        (r#"{"id":1,"b":0}"#, no.clone()),
        (r#"{"id":1,"b":[]}"#, no.clone()),
        (r#"{"id":1,"a":{"true":true}}"#, no.clone()),
        (r#"{"id":1, "a" :  true  }"#, yes.clone()),
        (r#"{"id":1,"a":false,"a":true}"#, yes),
        (r#"{"id":1,"a":true,"a":false}"#, no),
    ] {
        let (signs, by_jaq, mended) = read(&network, body);
        assert_eq!((&signs, mended), (&expected, 0), "{body}");
        assert_eq!(signs, by_jaq, "{body}");
    }
}

#[test]
fn a_sign_below_something_else_than_an_object_is_not_observed() {
    let network = network(".c.d == false");
    for body in [
        r#"{"id":1,"c":{}}"#,
        r#"{"id":1,"c":3}"#,
        r#"{"id":1,"c":"d"}"#,
        r#"{"id":1,"c":[{"d":false}]}"#,
    ] {
        assert_eq!(read(&network, body).0, None, "{body}");
    }
    let (signs, _, _) = read(&network, r#"{"id":1,"c":null}"#);
    assert_eq!(signs, Some(Value::Bool(false)));
}

#[test]
fn what_only_looks_like_signs_is_left_to_jaq() {
    let (yes, no) = (Some(Value::Bool(true)), Some(Value::Bool(false)));
    for (expression, body, expected) in [
        (r#".a == "true""#, r#"{"id":1,"a":"true"}"#, &yes),
        (
            ".a == true and .b == false",
            r#"{"id":1,"a":true,"b":true}"#,
            &no,
        ),
        (".a == true or .b > 3", r#"{"id":1,"b":4}"#, &yes),
        (".a != true", r#"{"id":1,"a":null}"#, &yes),
        (".a == null", r#"{"id":1,"a":null}"#, &yes),
        (r#".["x or y"] == true"#, r#"{"id":1,"x or y":true}"#, &yes),
        (r#".["x == y"] == true"#, r#"{"id":1,"x == y":true}"#, &yes),
        (".a == true or true", r#"{"id":1,"a":false}"#, &yes),
    ] {
        let network = network(expression);
        let (signs, by_jaq, _) = read(&network, body);
        assert_eq!(&signs, expected, "{expression}");
        assert_eq!(signs, by_jaq, "{expression}");
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(null)),
        Just(json!("true")),
        Just(json!("false")),
        Just(json!("")),
        Just(json!([])),
        Just(json!([true])),
        Just(json!({"d": true})),
        any::<i64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(|text| json!(text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn signs_agree_with_jaq_whenever_a_key_is_there(
        signs in prop::collection::vec((0..PATHS.len(), any::<bool>()), 1..5),
        values in prop::collection::vec(prop::option::of(value()), PATHS.len()),
    ) {
        let expression: Vec<String> = signs
            .iter()
            .map(|(path, sign)| format!("{} == {sign}", PATHS[*path]))
            .collect();
        let mut object = json!({"id": 1});
        for (path, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            match path {
                0 => object["a"] = value.clone(),
                1 => object["b"] = value.clone(),
                2 => object["c"] = json!({"d": value, "e": 1}),
                _ => object["odd key"] = value.clone(),
            }
        }
        let is_observed = signs.iter().any(|(path, _)| values[*path].is_some());
        let network = network(&expression.join(" or "));
        let (signs, by_jaq, mended) = read(&network, &object.to_string());
        prop_assert_eq!(mended, 0);
        prop_assert_eq!(signs.is_some(), is_observed);
        prop_assert_eq!(signs, by_jaq);
    }
}
