//! Every kind of limit against a plain model of it, and what answers say.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kittiwake_model::clock::LimitTime;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::declared::DeclaredLimiter;
use super::{Call, Caller, DeclaredLimits, Header, Verdict};

/// 2026-10-31T23:50:00Z, close to the end of a day and of a month.
const START_US: i64 = 1_793_490_600_000_000;
const SECOND_US: i64 = 1_000_000;

fn limiter(text: &str) -> DeclaredLimiter {
    DeclaredLimiter::new(&DeclaredLimits::parse(text).unwrap())
}

/// A bucket of everybody with these lines.
fn bucket(name: &str, lines: &str) -> String {
    let scope = if lines.contains("scope") {
        ""
    } else {
        "scope = \"host\"\n"
    };
    format!("[[bucket]]\nname = \"{name}\"\n{scope}{lines}\n")
}

fn token(name: &str, user: &str, app: &str) -> Caller {
    Caller::Token {
        token: name.to_owned(),
        user: user.to_owned(),
        app: app.to_owned(),
        is_of_user: name.contains('/'),
        address: "10.1.1.1".to_owned(),
    }
}

fn ask(limiter: &mut DeclaredLimiter, caller: &Caller, query: &'static str, at_us: i64) -> Verdict {
    let call = Call {
        caller,
        query,
        is_paging: false,
    };
    limiter.admit(call, LimitTime(at_us))
}

fn passes(limiter: &mut DeclaredLimiter, query: &'static str, at_us: i64) -> bool {
    let caller = token("t", "u", "a");
    ask(limiter, &caller, query, at_us).refusal.is_none()
}

fn windows(limiter: &DeclaredLimiter) -> Vec<Value> {
    let (windows, dropped) = limiter.windows();
    assert_eq!(dropped, 0);
    windows
        .iter()
        .map(|window| serde_json::to_value(window).unwrap())
        .collect()
}

fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// A call of a sequence: how long after the one before, in milliseconds, and its query.
fn steps(most_ms: i64) -> impl Strategy<Value = Vec<(i64, &'static str)>> {
    let query = prop_oneof![Just("lookup"), Just("timeline")];
    prop::collection::vec((0..most_ms, query), 1..120)
}

/// Runs a sequence against one bucket and compares every verdict with what a model says of the time
/// and cost of this call and of all that were let through before.
fn compare(
    text: &str,
    steps: &[(i64, &'static str)],
    cost: impl Fn(&str) -> u64,
    may_pass: impl Fn(&[(i64, u64)], i64, u64) -> bool,
) -> Result<(), TestCaseError> {
    let mut limiter = limiter(text);
    let mut passed: Vec<(i64, u64)> = Vec::new();
    let mut refused = 0;
    let mut now_us = START_US;
    for (step_ms, query) in steps {
        now_us += step_ms * 1_000;
        let expected = may_pass(&passed, now_us, cost(query));
        prop_assert_eq!(passes(&mut limiter, query, now_us), expected);
        if expected {
            passed.push((now_us, cost(query)));
        } else {
            refused += 1;
        }
    }
    let rows = windows(&limiter);
    let sum = |key: &str| -> u64 { rows.iter().map(|row| row[key].as_u64().unwrap()).sum() };
    prop_assert_eq!(
        sum("used"),
        passed.iter().map(|(_, cost)| cost).sum::<u64>()
    );
    prop_assert_eq!(sum("refused"), refused);
    Ok(())
}

/// What was let through at times that a test picks.
fn spent(passed: &[(i64, u64)], counts: impl Fn(i64) -> bool) -> u64 {
    let counting = passed.iter().filter(|(at_us, _)| counts(*at_us));
    counting.map(|(_, cost)| cost).sum()
}

proptest! {
    #[test]
    fn aligned_windows_let_through_what_they_hold(steps in steps(5_000)) {
        let text = bucket("b", "kind = \"aligned\"\nlimit = 5\nwindow_seconds = 7");
        let window = |at_us: i64| at_us.div_euclid(7 * SECOND_US);
        compare(&text, &steps, |_| 1, |passed, now_us, cost| {
            spent(passed, |at_us| window(at_us) == window(now_us)) + cost <= 5
        })?;
    }

    #[test]
    fn points_are_spent_by_cost(steps in steps(5_000)) {
        let text = bucket(
            "b",
            "kind = \"points\"\nlimit = 11\nwindow_seconds = 7\ncost = { lookup = 4, timeline = 1 }",
        );
        let window = |at_us: i64| at_us.div_euclid(7 * SECOND_US);
        let cost = |query: &str| if query == "lookup" { 4 } else { 1 };
        compare(&text, &steps, cost, |passed, now_us, cost| {
            spent(passed, |at_us| window(at_us) == window(now_us)) + cost <= 11
        })?;
    }

    #[test]
    fn windows_from_the_first_call_begin_with_it(steps in steps(5_000)) {
        let text = bucket("b", "kind = \"from_first\"\nlimit = 5\nwindow_seconds = 7");
        compare(&text, &steps, |_| 1, |passed, now_us, _| {
            let (mut first_us, mut used) = (i64::MIN, 0);
            for (at_us, _) in passed {
                if first_us == i64::MIN || at_us - first_us >= 7 * SECOND_US {
                    (first_us, used) = (*at_us, 0);
                }
                used += 1;
            }
            first_us == i64::MIN || now_us - first_us >= 7 * SECOND_US || used < 5
        })?;
    }

    #[test]
    fn sliding_windows_look_back_from_every_call(steps in steps(3_000)) {
        let text = bucket(
            "b",
            "kind = \"sliding\"\nlimit = 9\nwindow_seconds = 7\ncost = { lookup = 3 }",
        );
        let cost = |query: &str| if query == "lookup" { 3 } else { 1 };
        compare(&text, &steps, cost, |passed, now_us, cost| {
            spent(passed, |at_us| now_us - at_us < 7 * SECOND_US) + cost <= 9
        })?;
    }

    #[test]
    fn percents_are_of_a_sliding_window(steps in steps(3_000)) {
        let text = bucket("b", "kind = \"percent\"\nlimit = 6\nwindow_seconds = 7");
        compare(&text, &steps, |_| 1, |passed, now_us, cost| {
            spent(passed, |at_us| now_us - at_us < 7 * SECOND_US) + cost <= 6
        })?;
    }

    #[test]
    fn days_are_those_of_a_calendar(steps in steps(40_000_000), zone in 0..3_usize) {
        let zone = ["America/Los_Angeles", "Asia/Kolkata", "UTC"][zone];
        let text = bucket("b", &format!("kind = \"daily\"\nlimit = 3\ntime_zone = \"{zone}\""));
        let zone = TimeZone::get(zone).unwrap();
        let day = |at_us| zone.to_datetime(Timestamp::from_microsecond(at_us).unwrap()).date();
        compare(&text, &steps, |_| 1, |passed, now_us, cost| {
            spent(passed, |at_us| day(at_us) == day(now_us)) + cost <= 3
        })?;
    }

    #[test]
    fn months_are_those_of_a_calendar(steps in steps(900_000_000)) {
        let text = bucket("b", "kind = \"monthly\"\nlimit = 3\ntime_zone = \"America/New_York\"");
        let zone = TimeZone::get("America/New_York").unwrap();
        let month = |at_us| {
            let date = zone.to_datetime(Timestamp::from_microsecond(at_us).unwrap()).date();
            (date.year(), date.month())
        };
        compare(&text, &steps, |_| 1, |passed, now_us, cost| {
            spent(passed, |at_us| month(at_us) == month(now_us)) + cost <= 3
        })?;
    }

    #[test]
    fn so_many_calls_are_under_way_at_once_and_no_more(
        events in prop::collection::vec(any::<bool>(), 1..200),
    ) {
        let mut limiter = limiter(&bucket("b", "kind = \"concurrency\"\nlimit = 4"));
        let caller = token("t", "u", "a");
        let (mut under_way, mut now_us, mut greatest) = (Vec::new(), START_US, 0);
        for is_arrival in events {
            now_us += 1;
            if is_arrival {
                let mut verdict = ask(&mut limiter, &caller, "lookup", now_us);
                prop_assert_eq!(verdict.refusal.is_none(), under_way.len() < 4);
                under_way.extend(verdict.take_held());
                greatest = greatest.max(under_way.len());
            } else if let Some(held) = under_way.pop() {
                limiter.release(&held, LimitTime(now_us));
            }
        }
        let most: Vec<Value> = windows(&limiter).iter().map(|row| row["greatest"].clone()).collect();
        prop_assert!(most.is_empty() || most == [json!(greatest)]);
    }

    /// Whatever the kinds: a call passes if and only if every bucket alone would have let it
    /// through, having seen those calls only that passed.
    #[test]
    fn a_call_that_one_bucket_refuses_is_charged_to_none(steps in steps(3_000)) {
        let buckets = [
            bucket("a", "kind = \"aligned\"\nlimit = 4\nwindow_seconds = 5"),
            bucket("b", "kind = \"sliding\"\nlimit = 6\nwindow_seconds = 11"),
            bucket("c", "kind = \"from_first\"\nlimit = 9\nwindow_seconds = 20"),
            bucket("d", "kind = \"aligned\"\nlimit = 2\nwindow_seconds = 6\nqueries = [\"lookup\"]"),
        ];
        let mut together = limiter(&buckets.concat());
        let mut passed: Vec<(i64, &'static str)> = Vec::new();
        let mut now_us = START_US;
        for (step_ms, query) in steps {
            now_us += step_ms * 1_000;
            let alone = buckets.iter().all(|text| {
                let mut alone = limiter(text);
                for (at_us, query) in &passed {
                    assert!(passes(&mut alone, query, *at_us));
                }
                passes(&mut alone, query, now_us)
            });
            prop_assert_eq!(passes(&mut together, query, now_us), alone);
            if alone {
                passed.push((now_us, query));
            }
        }
    }
}

#[test]
fn scopes_count_for_whom_they_say() {
    let lines = |scope: &str| {
        format!("scope = \"{scope}\"\nkind = \"aligned\"\nlimit = 100\nwindow_seconds = 900")
    };
    let text: String = ["ip", "app", "user", "token", "host"]
        .map(|scope| bucket(scope, &lines(scope)))
        .concat();
    let mut limiter = limiter(&text);
    let anonymous = Caller::Anonymous {
        address: "10.1.1.2".to_owned(),
    };
    for caller in [
        token("x/ann:1", "ann", "x"),
        token("x/bob:1", "bob", "x"),
        token("y/ann:1", "ann", "y"),
        anonymous,
    ] {
        assert_eq!(ask(&mut limiter, &caller, "lookup", START_US).refusal, None);
    }
    let mut counts: Vec<String> = windows(&limiter)
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap();
            format!("{} {} {}", text("bucket"), text("scope"), row["used"])
        })
        .collect();
    counts.sort();
    assert_eq!(
        counts,
        [
            "app x 2",
            "app y 1",
            "host host 4",
            "ip 10.1.1.1 3",
            "ip 10.1.1.2 1",
            "token x/ann:1 1",
            "token x/bob:1 1",
            "token y/ann:1 1",
            "user ann 2",
            "user bob 1",
        ]
    );
}

#[test]
fn every_query_can_have_a_counter_of_its_own() {
    let mut limiter = limiter(&bucket(
        "b",
        "each = \"query\"\nkind = \"aligned\"\nlimit = 1\nwindow_seconds = 900",
    ));
    assert!(passes(&mut limiter, "lookup", START_US));
    assert!(passes(&mut limiter, "timeline", START_US));
    assert!(!passes(&mut limiter, "lookup", START_US));
    let rows = windows(&limiter);
    assert_eq!(
        (&rows[0]["query"], &rows[0]["refused"]),
        (&"lookup".into(), &1.into())
    );
    assert_eq!(rows[1]["query"], "timeline");
}

#[test]
fn only_what_a_bucket_covers_is_counted_there() {
    let text = [
        bucket(
            "paging",
            "paging = true\nkind = \"aligned\"\nlimit = 1\nwindow_seconds = 900",
        ),
        bucket(
            "anonymous",
            "authenticated = false\nkind = \"aligned\"\nlimit = 1\nwindow_seconds = 900",
        ),
    ];
    let mut limiter = limiter(&text.concat());
    let (caller, anonymous) = (
        token("t", "u", "a"),
        Caller::Anonymous {
            address: "10.1.1.2".to_owned(),
        },
    );
    let mut call = |caller, is_paging| {
        let call = Call {
            caller,
            query: "timeline",
            is_paging,
        };
        let refusal = limiter.admit(call, LimitTime(START_US)).refusal;
        refusal.map(|refusal| refusal.bucket.into_owned())
    };
    for _ in 0..3 {
        assert_eq!(call(&caller, false), None);
    }
    assert_eq!(call(&caller, true), None);
    assert_eq!(call(&caller, true).as_deref(), Some("paging"));
    assert_eq!(call(&anonymous, false), None);
    assert_eq!(call(&anonymous, false).as_deref(), Some("anonymous"));
}

#[test]
fn a_sliding_window_reports_stretches_and_the_most_of_any_window() {
    let mut limiter = limiter(&bucket(
        "b",
        "kind = \"sliding\"\nlimit = 4\nwindow_seconds = 10",
    ));
    let start_us = START_US;
    assert_eq!(start_us % (10 * SECOND_US), 0);
    for second in [8, 9, 9, 11, 11, 17, 18] {
        passes(&mut limiter, "lookup", start_us + second * SECOND_US);
    }
    let rows = windows(&limiter);
    let row = |row: &Value| {
        let number = |key: &str| row[key].as_i64().unwrap();
        [
            (number("start_us") - start_us) / SECOND_US,
            (number("end_us") - start_us) / SECOND_US,
            number("used"),
            number("refused"),
            number("greatest"),
        ]
    };
    assert_eq!(
        rows.iter().map(row).collect::<Vec<_>>(),
        [[0, 10, 3, 0, 3], [10, 20, 2, 2, 4]]
    );
}

#[test]
fn items_are_charged_when_they_are_known_even_beyond_the_limit() {
    let mut limiter = limiter(&bucket(
        "money",
        "kind = \"aligned\"\nlimit = 10\nwindow_seconds = 900\ncost = { timeline = 0 }\n\
         item_cost = 2\nheaders = \"x-money\"\nreset = \"epoch_s\"",
    ));
    let caller = token("t", "u", "a");
    let mut verdict = ask(&mut limiter, &caller, "timeline", START_US);
    assert!(verdict.refusal.is_none() && verdict.charges_items);
    assert_eq!(header(&verdict.headers(), "x-money-remaining"), Some("10"));
    let super::Announced::Declared(notes) = &mut verdict.announced else {
        panic!("no notes");
    };
    limiter.charge_items(notes, 7, LimitTime(START_US + 1));
    assert_eq!(header(&verdict.headers(), "x-money-remaining"), Some("0"));
    let refused = ask(&mut limiter, &caller, "timeline", START_US + 2);
    assert_eq!(refused.refusal.unwrap().bucket, "money");
    assert!(!refused.charges_items);
    assert_eq!(windows(&limiter)[0]["used"], 14);
    assert!(passes(&mut limiter, "timeline", START_US + 900 * SECOND_US));
}

#[test]
fn resets_are_written_in_every_form_and_never_too_early() {
    let now_us = START_US + 250_000;
    let end_us = (now_us.div_euclid(900 * SECOND_US) + 1) * 900 * SECOND_US;
    let iso = Timestamp::from_microsecond(end_us).unwrap();
    for (form, expected) in [
        ("epoch_s", (end_us / SECOND_US).to_string()),
        (
            "seconds_left",
            ((end_us - now_us).div_euclid(SECOND_US) + 1).to_string(),
        ),
        ("iso8601", format!("{iso:.6}")),
    ] {
        let mut limiter = limiter(&bucket(
            "b",
            &format!(
                "kind = \"aligned\"\nlimit = 9\nwindow_seconds = 900\nheaders = \"x-rate\"\n\
                 reset = \"{form}\""
            ),
        ));
        let verdict = ask(&mut limiter, &token("t", "u", "a"), "lookup", now_us);
        let headers = verdict.headers();
        assert_eq!(header(&headers, "x-rate-limit"), Some("9"));
        assert_eq!(header(&headers, "x-rate-remaining"), Some("8"));
        assert_eq!(
            header(&headers, "x-rate-reset"),
            Some(expected.as_str()),
            "{form}"
        );
        assert_eq!(headers.len(), 3);
    }
}

#[test]
fn of_buckets_with_the_same_headers_the_closest_to_its_end_speaks() {
    let lines = |limit: u64, seconds: u64| {
        format!(
            "kind = \"from_first\"\nlimit = {limit}\nwindow_seconds = {seconds}\nheaders = \"x\"\n\
             reset = \"seconds_left\""
        )
    };
    let text = [
        bucket("wide", &lines(3, 100)),
        bucket("narrow", &lines(2, 10)),
    ];
    let mut limiter = limiter(&text.concat());
    let caller = token("t", "u", "a");
    let mut told = |second: i64| {
        let verdict = ask(
            &mut limiter,
            &caller,
            "lookup",
            START_US + second * SECOND_US,
        );
        let headers = verdict.headers();
        ["x-limit", "x-remaining", "x-reset"].map(|name| header(&headers, name).unwrap().to_owned())
    };
    assert_eq!(told(0), ["2", "1", "10"]);
    assert_eq!(told(1), ["2", "0", "9"]);
    assert_eq!(told(10), ["3", "0", "90"]);
    // Both have something to say; the one that refuses says it.
    assert_eq!(told(11), ["3", "0", "89"]);
}

#[test]
fn usage_is_announced_in_whole_percents_from_one_on() {
    let mut limiter = limiter(&bucket(
        "b",
        "kind = \"percent\"\nlimit = 150\nwindow_seconds = 60",
    ));
    let caller = token("t", "u", "a");
    let mut usage = || {
        let verdict = ask(&mut limiter, &caller, "lookup", START_US);
        header(&verdict.headers(), "x-app-usage").map(str::to_owned)
    };
    assert_eq!(usage(), None);
    assert_eq!(usage().as_deref(), Some("{\"call_count\":1}"));
    for _ in 2..149 {
        usage();
    }
    assert_eq!(usage().as_deref(), Some("{\"call_count\":100}"));
}

#[test]
fn retry_after_is_when_such_a_call_could_pass() {
    let mut limiter = limiter(&bucket(
        "b",
        "kind = \"sliding\"\nlimit = 5\nwindow_seconds = 10\ncost = { lookup = 4 }\n\
         refusal = { status = 403, retry_after = true, body = \"no\" }",
    ));
    let caller = token("t", "u", "a");
    for second in [0, 1, 2] {
        assert!(passes(
            &mut limiter,
            "timeline",
            START_US + second * SECOND_US
        ));
    }
    let verdict = ask(&mut limiter, &caller, "lookup", START_US + 3 * SECOND_US);
    // Two of the three have to leave: the second does so 11 seconds after the start.
    assert_eq!(header(&verdict.headers(), "retry-after"), Some("8"));
    let refusal = verdict.refusal.unwrap();
    assert_eq!((refusal.status, refusal.body.as_deref()), (403, Some("no")));
    assert!(!passes(
        &mut limiter,
        "lookup",
        START_US + 11 * SECOND_US - 1
    ));
    assert!(passes(&mut limiter, "lookup", START_US + 11 * SECOND_US));
}

#[test]
fn the_status_says_what_is_left_and_charges_nothing() {
    let text = [
        bucket("b", "kind = \"from_first\"\nlimit = 5\nwindow_seconds = 60"),
        bucket(
            "own",
            "scope = \"token\"\neach = \"query\"\nqueries = [\"lookup\", \"status\"]\n\
             kind = \"aligned\"\nlimit = 2\nwindow_seconds = 60",
        ),
    ];
    let mut limiter = limiter(&text.concat());
    passes(&mut limiter, "lookup", START_US);
    let caller = token("t", "u", "a");
    let later = LimitTime(START_US + 30 * SECOND_US);
    let mut status =
        |caller: &Caller, at| serde_json::to_value(limiter.status(caller, at)).unwrap();
    let reset = START_US / SECOND_US + 60;
    let expected = json!({ "resources": {
        "b": { "limit": 5, "remaining": 4, "reset": reset },
        "own/lookup": { "limit": 2, "remaining": 1, "reset": reset },
        "own/status": { "limit": 2, "remaining": 2, "reset": reset },
    }});
    assert_eq!(status(&caller, later), expected);
    assert_eq!(status(&caller, later), expected);
    let anonymous = Caller::Anonymous {
        address: "10.1.1.2".to_owned(),
    };
    assert_eq!(
        status(&anonymous, later)["resources"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
    // A window that is over has nothing used.
    let over = status(&caller, LimitTime(START_US + 60 * SECOND_US));
    assert_eq!(over["resources"]["b"]["remaining"], 5);
}

#[test]
fn a_clock_that_is_set_back_lets_nobody_in_again() {
    for kind in ["aligned", "from_first", "sliding"] {
        let lines = format!("kind = \"{kind}\"\nlimit = 1\nwindow_seconds = 10");
        let mut limiter = limiter(&bucket("b", &lines));
        assert!(passes(&mut limiter, "lookup", START_US), "{kind}");
        assert!(
            !passes(&mut limiter, "lookup", START_US - 60 * SECOND_US),
            "{kind}"
        );
        assert!(
            passes(&mut limiter, "lookup", START_US + 10 * SECOND_US),
            "{kind}"
        );
    }
}

#[test]
fn when_too_many_callers_are_about_new_ones_are_refused_until_others_are_forgotten() {
    let text = bucket(
        "b",
        "scope = \"token\"\nkind = \"aligned\"\nlimit = 9\nwindow_seconds = 10",
    );
    let limits = DeclaredLimits::parse(&text).unwrap();
    let mut limiter = DeclaredLimiter::with_caps(&limits, 2, 100);
    let mut pass = |name: &str, second: i64| {
        let caller = token(name, "u", "a");
        let at_us = START_US + second * SECOND_US;
        ask(&mut limiter, &caller, "lookup", at_us)
            .refusal
            .is_none()
    };
    assert!(pass("1", 0) && pass("2", 0));
    assert!(!pass("3", 1));
    assert!(pass("1", 1));
    assert!(pass("3", 10));
    let used: Vec<Value> = windows(&limiter)
        .iter()
        .map(|row| row["used"].clone())
        .collect();
    assert_eq!(used, [2, 1, 1]);
}

#[test]
fn making_room_for_a_caller_forgets_none_of_its_own_counters() {
    let text = [
        bucket("b", "scope = \"token\"\nkind = \"concurrency\"\nlimit = 1"),
        bucket(
            "c",
            "scope = \"user\"\nkind = \"aligned\"\nlimit = 9\nwindow_seconds = 10",
        ),
    ];
    let limits = DeclaredLimits::parse(&text.concat()).unwrap();
    let mut limiter = DeclaredLimiter::with_caps(&limits, 2, 100);
    let mut old = ask(&mut limiter, &token("1", "1", "1"), "lookup", START_US);
    limiter.release(&old.take_held().unwrap(), LimitTime(START_US));
    let caller = token("2", "2", "2");
    let later_us = START_US + 10 * SECOND_US;
    assert_eq!(ask(&mut limiter, &caller, "lookup", later_us).refusal, None);
    let second = ask(&mut limiter, &caller, "lookup", later_us).refusal;
    assert_eq!(second.unwrap().bucket, "b");
}

#[test]
fn sliding_windows_keep_only_so_many_calls() {
    let text = bucket(
        "b",
        "scope = \"token\"\nkind = \"sliding\"\nlimit = 9\nwindow_seconds = 10",
    );
    let limits = DeclaredLimits::parse(&text).unwrap();
    let mut limiter = DeclaredLimiter::with_caps(&limits, 100, 3);
    let mut pass = |name: &str, second: i64| {
        let caller = token(name, "u", "a");
        let at_us = START_US + second * SECOND_US;
        ask(&mut limiter, &caller, "lookup", at_us)
            .refusal
            .is_none()
    };
    assert!(pass("1", 0) && pass("2", 1) && pass("1", 2));
    assert!(!pass("3", 3));
    assert!(pass("3", 10));
    assert!(!pass("3", 10));
    assert!(pass("3", 11));
}
