//! What servers say of their limits when they are asked for that alone.

use crate::support::{HOST, base};
use kittiwake_model::LimitTime;
use kittiwake_network::{LimitReport, Network, Word};
use proptest::prelude::*;

/// Monday, 16 November 2026, 12:00 UTC.
const NOW: LimitTime = LimitTime(1_794_830_400_000_000);

const HEAD: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = { kind = "instance" }

[types.user]
table = "users"
canonical = ".id"

[queries.user]
subject = "user"
path = "/users/{canonical}"
selects = [{ at = ".", as = "user", is_subject = true }]

[[robots]]
name = "profiles"
subject = "user"
steps = [{ query = "user" }]

[[seeds]]
pattern = "id:{id}"
type = "user"
value = "{id}"
"#;

const GITHUB: &str = r#"
[budgets.core]
scope = "user"
limit = 5000
window = "1h"
authenticated = true

[budgets.search]
scope = "user"
limit = 30
window = "1m"
authenticated = true

[budgets.anonymous]
scope = "ip"
limit = 60
window = "1h"
authenticated = false

[limit_status]
path = "/rate_limit"
charged_to = []

[limit_status.budgets.core]
limit = ".resources.core.limit"
remaining = ".resources.core.remaining"
reset = ".resources.core.reset"
reset_format = "epoch_s"

[limit_status.budgets.search]
remaining = ".resources.search | .limit - .used"
reset = ".resources.search.reset"
reset_format = "epoch_s"

[limit_status.budgets.anonymous]
limit = ".resources.core.limit"
remaining = ".resources.core.remaining"
reset = ".resources.core.reset"
reset_format = "epoch_s"
"#;

const WEIBO: &str = r#"
[budgets.address]
scope = "ip"
limit = 10000
window = "1h"

[budgets.user]
scope = "user"
limit = 1000
window = "1h"
authenticated = true

[limit_status]
path = "/2/account/rate_limit_status.json"
authenticated = true
charged_to = ["address"]

[limit_status.budgets.address]
limit = ".ip_limit"
remaining = ".remaining_ip_hits"
reset = ".reset_time_in_seconds"
reset_format = "seconds_left"

[limit_status.budgets.user]
limit = ".user_limit"
remaining = ".remaining_user_hits"
reset = ".reset_time_in_seconds"
reset_format = "seconds_left"
"#;

fn network(limits: &str) -> Network {
    let text = format!("{HEAD}{limits}");
    Network::parse("tiny.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn problems(limits: &str) -> String {
    let text = format!("{HEAD}{limits}");
    match Network::parse("tiny.toml", &text) {
        Ok(_) => "none".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

/// (budget, limit, remaining, seconds until the reset)
fn told(reports: &[LimitReport]) -> Vec<(&str, u64, u64, Option<i64>)> {
    let told = reports.iter().map(|report| {
        assert!(report.is_named);
        let Word::Left { limit, remaining } = report.word else {
            panic!("{report:?}");
        };
        let left_s = report.reset.map(|reset| reset.since_us(NOW) / 1_000_000);
        (&*report.budget, limit, remaining, left_s)
    });
    told.collect()
}

fn names(costs: &[kittiwake_model::Cost]) -> Vec<&str> {
    costs.iter().map(|cost| &*cost.budget).collect()
}

#[test]
fn githubs_status_speaks_of_the_budgets_of_the_one_who_asks() {
    let network = network(GITHUB);
    let body = br#"{"resources":{
        "core":{"limit":5000,"remaining":4123,"reset":1794832200,"used":877,"resource":"core"},
        "search":{"limit":30,"remaining":12,"reset":1794830460,"used":18}},
        "rate":{"limit":5000,"remaining":4123,"reset":1794832200,"used":877}}"#;
    let asked = network.limit_status_request(&base(), true).unwrap();
    assert_eq!(asked.url.as_str(), format!("https://{HOST}/rate_limit"));
    assert!(asked.costs.is_empty(), "asking is free");
    assert_eq!(names(&asked.speaks_of), ["core", "search"]);
    let reports = network.read_limit_status(true, HOST, body, NOW);
    assert_eq!(
        told(&reports),
        [
            ("core", 5000, 4123, Some(1800)),
            ("search", 30, 12, Some(60))
        ]
    );
    // Nobody in particular has the limits of the address.
    let asked = network.limit_status_request(&base(), false).unwrap();
    assert_eq!(names(&asked.speaks_of), ["anonymous"]);
    let body = br#"{"resources":{"core":{"limit":60,"remaining":0,"reset":1794832200,"used":60}}}"#;
    let reports = network.read_limit_status(false, HOST, body, NOW);
    assert_eq!(told(&reports), [("anonymous", 60, 0, Some(1800))]);
    assert!(reports[0].is_spent());
}

#[test]
fn weibos_status_counts_seconds_and_is_charged_as_the_definition_says() {
    let network = network(WEIBO);
    let body = br#"{"ip_limit":10000,"limit_time_unit":"HOURS","remaining_ip_hits":9997,
        "remaining_user_hits":149,"reset_time":"2026-11-16 21:00:00","reset_time_in_seconds":2415,
        "user_limit":150,"api_rate_limits":[{"api":"/statuses/update","limit":30}]}"#;
    let asked = network.limit_status_request(&base(), true).unwrap();
    assert_eq!(names(&asked.costs), ["address"]);
    assert_eq!(names(&asked.speaks_of), ["address", "user"]);
    // The server knows a lower limit than the definition: an application that is being tested.
    let reports = network.read_limit_status(true, HOST, body, NOW);
    assert_eq!(
        told(&reports),
        [
            ("address", 10000, 9997, Some(2415)),
            ("user", 150, 149, Some(2415))
        ]
    );
    assert!(network.limit_status_request(&base(), false).is_none());
}

#[test]
fn asking_is_charged_to_all_that_apply_unless_the_definition_says_otherwise() {
    let network = network(&GITHUB.replace("charged_to = []\n", ""));
    let asked = network.limit_status_request(&base(), true).unwrap();
    assert_eq!(names(&asked.costs), ["core", "search"]);
    let asked = network.limit_status_request(&base(), false).unwrap();
    assert_eq!(names(&asked.costs), ["anonymous"]);
}

#[test]
fn what_is_missing_or_wrong_says_nothing_and_spoils_nothing() {
    let network = network(GITHUB);
    let read = |body: &str| {
        let reports = network.read_limit_status(true, HOST, body.as_bytes(), NOW);
        let told = told(&reports);
        told.into_iter()
            .map(|(name, limit, remaining, left_s)| (name.to_owned(), limit, remaining, left_s))
            .collect::<Vec<_>>()
    };
    for nothing in [
        "",
        "null",
        "[]",
        "{",
        "<html>",
        "{\"resources\":7}",
        "{\"resources\":{\"core\":{\"limit\":5000}}}",
        "{\"resources\":{\"core\":{\"limit\":5000,\"remaining\":null}}}",
        "{\"resources\":{\"core\":{\"limit\":5000,\"remaining\":{\"a\":1}}}}",
        "{\"resources\":{\"core\":{\"limit\":5000,\"remaining\":\"NaN\"}}}",
        "{\"resources\":{\"core\":{\"limit\":5000,\"remaining\":1e300}}}",
    ] {
        assert_eq!(read(nothing), [], "{nothing}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read(&deep), []);
    let long = format!(
        "{{\"resources\":{{\"core\":{{\"remaining\":1}}}},\"x\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    assert_eq!(read(&long), []);
    let body = |core: &str| format!("{{\"resources\":{{\"core\":{core}}}}}");
    let core = |limit, remaining, left_s| vec![("core".to_owned(), limit, remaining, left_s)];
    // Digits in a text, more left than there was, less than nothing, a limit that is none.
    let digits = body(r#"{"limit":"100","remaining":" 7 ","reset":"1794830401"}"#);
    assert_eq!(read(&digits), core(100, 7, Some(1)));
    let more = body(r#"{"limit":100,"remaining":1000000}"#);
    assert_eq!(read(&more), core(100, 100, None));
    let less = body(r#"{"limit":100,"remaining":-3,"reset":"soon"}"#);
    assert_eq!(read(&less), core(100, 0, None));
    let none = body(r#"{"limit":-1,"remaining":3.9}"#);
    assert_eq!(read(&none), core(5000, 3, None));
}

#[test]
fn money_is_told_in_its_own_unit() {
    let network = network(
        "[budgets.spend]\nscope = \"app\"\nunit = \"USD\"\nlimit = \"200\"\nkind = \"month\"\n\
         authenticated = true\n[limit_status]\npath = \"/usage\"\n\
         [limit_status.budgets.spend]\nremaining = \".cap - .used\"\nlimit = \".cap\"\n",
    );
    let asked = network.limit_status_request(&base(), true).unwrap();
    assert!(asked.costs.is_empty(), "a question has no price");
    let body = br#"{"cap":200,"used":12.5}"#;
    let reports = network.read_limit_status(true, HOST, body, NOW);
    let expected = ("spend", 200_000_000, 187_500_000, None);
    assert_eq!(told(&reports), [expected]);
}

#[test]
fn mistakes_are_told_with_what_to_write() {
    assert_eq!(problems(GITHUB), "none");
    for (right, wrong, word) in [
        ("path = \"/rate_limit\"\n", "", "has no `path`"),
        ("\"/rate_limit\"", "\"rate limit\"", "is no address"),
        (
            "charged_to = []",
            "charged_to = [\"cor\"]",
            "did you mean `core`?",
        ),
        (
            "[limit_status.budgets.search]",
            "[limit_status.budgets.serch]",
            "did you mean `search`?",
        ),
        ("charged_to", "charge_to", "did you mean `charged_to`?"),
        (
            "remaining = \".resources.search | .limit - .used\"\n",
            "",
            "has no `remaining`",
        ),
        (".limit - .used", ".limit -", "expected"),
        (
            "reset = \".resources.search.reset\"\nreset_format = \"epoch_s\"",
            "reset = \".resources.search.reset\"",
            "has no `reset_format`",
        ),
        (
            "limit = 30\nwindow = \"1m\"",
            "limit = 30\nkind = \"concurrency\"",
            "is not one number",
        ),
        (
            "limit = 30\nwindow = \"1m\"",
            "limit = 30\nwindow = \"1m\"\neach = \"query\"",
            "is not one number",
        ),
    ] {
        assert!(GITHUB.contains(right), "{right}");
        let said = problems(&GITHUB.replacen(right, wrong, 1));
        assert!(said.contains(word), "{wrong}: {said}");
    }
    let empty = problems("[limit_status]\npath = \"/x\"\n");
    assert!(empty.contains("has no `budgets`"), "{empty}");
}

proptest! {
    #[test]
    fn any_answer_is_survived(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let network = network(WEIBO);
        network.read_limit_status(true, HOST, &body, NOW);
    }

    #[test]
    fn no_number_leaves_more_than_the_limit(
        limit in any::<f64>(),
        remaining in any::<f64>(),
        reset in any::<f64>(),
    ) {
        let network = network(WEIBO);
        let body = serde_json::json!({
            "ip_limit": limit, "remaining_ip_hits": remaining, "reset_time_in_seconds": reset,
        });
        let body = body.to_string();
        for report in network.read_limit_status(true, HOST, body.as_bytes(), NOW) {
            let Word::Left { limit, remaining } = report.word else {
                panic!("{report:?}");
            };
            prop_assert!(remaining <= limit);
        }
    }
}
