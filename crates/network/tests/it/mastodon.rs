//! The shipped definition of Mastodon: what it asks, and what it makes of answers.

use crate::support::{HOST, Sent, base, field, mastodon, plan, subject};
use kittiwake_model::{
    Identity, Key, LimitTime, LinkTable, List, Name, OutcomeCode, Reference, Role, Standing, Table,
    Value, Walk,
};
use kittiwake_network::{Answer, Ask, AuthNeed, LimitReport, Page, RequestError, SeedError, Word};

const USER: &str = r#"{"id":"7","username":"ann","acct":"ann","display_name":"Ann","locked":false,
  "bot":true,"created_at":"2026-10-14T00:00:00.000Z","note":"<p>sea &amp; sky</p>",
  "url":"https://sea.example/@ann","uri":"https://sea.example/users/ann","avatar":"https://a/1.png",
  "header":null,"followers_count":3,"following_count":4,"statuses_count":5,"last_status_at":"2026-11-01",
  "fields":[],"emojis":[]}"#;

fn status(id: &str, extra: &str) -> String {
    format!(
        r#"{{"id":"{id}","created_at":"2026-11-01T10:00:00.000Z","content":"<p>hi</p>",
        "uri":"https://sea.example/users/ann/statuses/{id}","url":"https://sea.example/@ann/{id}",
        "visibility":"public","account":{USER}{extra}}}"#
    )
}

#[test]
fn it_declares_what_a_crawl_needs() {
    let network = mastodon();
    assert_eq!(&**network.name(), "mastodon");
    assert!(network.needs_host());
    assert_eq!(
        network.base("sea.example").unwrap().as_str(),
        "https://sea.example/"
    );
    for host in ["", "a/b", "a b", "x@y", "a?b"] {
        assert!(network.base(host).is_err(), "{host}");
    }
    let relations = network.robot("relations").unwrap();
    let lists: Vec<_> = relations.steps.iter().map(|step| step.list).collect();
    assert_eq!(lists, [Some(List::Following), Some(List::Followers)]);
    let resolve = network.resolve_queries("user").map(|query| &*query.name);
    let resolve: Vec<&str> = resolve.collect();
    assert_eq!(resolve, ["webfinger", "lookup", "lookup_by_name"]);
    assert!(network.resolve_queries("status").next().is_none());
    assert_eq!(network.query("profiles").unwrap().batch_max, 40);
    assert_eq!(network.query("statuses").unwrap().batch_max, 20);
    let timeline = network.query("timeline").unwrap();
    assert!(timeline.incremental);
    assert_eq!(timeline.auth, AuthNeed::Optional);
    assert_eq!(network.digest().len(), 16);
    assert_eq!(network.verified_on(), "2026-11-15");
}

#[test]
fn its_robots_say_what_they_need_skip_and_bring() {
    let network = mastodon();
    let names: Vec<&str> = network.robots().iter().map(|robot| &*robot.name).collect();
    assert_eq!(
        names,
        [
            "relations",
            "profiles",
            "statuses",
            "tags",
            "comments",
            "reposts",
            "likes",
            "updates",
            "hashtags",
            "search",
            "instance",
            "peers"
        ]
    );
    for robot in network.robots() {
        let lives_on_posts = &*robot.kind == "status";
        let expected: &[Name] = if lives_on_posts {
            &["statuses".into()]
        } else {
            &[]
        };
        assert_eq!(robot.needs, expected, "{}", robot.name);
        assert_eq!(robot.is_optional, matches!(&*robot.name, "likes" | "peers"));
        assert_eq!(robot.begins_visited, &*robot.name == "updates");
    }
    let robot = |name| network.robot(name).unwrap();
    assert_eq!(
        robot("comments").unless_zero.as_deref(),
        Some("replies_count")
    );
    assert_eq!(
        robot("reposts").unless_zero.as_deref(),
        Some("reposts_count")
    );
    assert_eq!(robot("likes").unless_zero.as_deref(), Some("likes_count"));
    let seconds = |name| {
        robot(name)
            .revisit_after_us
            .map(|rest_us| rest_us / 1_000_000)
    };
    assert_eq!(seconds("instance"), Some(86_400));
    assert_eq!(seconds("hashtags"), Some(60));
    assert_eq!(seconds("statuses"), None, "posts are never waited for");
    assert_eq!(robot("reposts").repost_steps, 3);
    assert_eq!(robot("comments").brings, [Role::Commenters]);
    assert_eq!(robot("reposts").brings, [Role::Reposters]);
    assert_eq!(robot("likes").brings, []);
    assert_eq!(robot("hashtags").brings, [Role::Authors]);
    assert_eq!(robot("search").brings, [Role::Authors]);
}

#[test]
fn the_host_is_a_subject_that_is_known_by_its_address() {
    let network = mastodon();
    let host = network.host_identity("127.0.0.1:3000").unwrap();
    assert_eq!(&*host.kind, "instance");
    assert_eq!(host.canonical.as_deref(), Some("127.0.0.1:3000"));
    assert!(host.aliases.is_empty());
    // A server that calls itself otherwise is still the one that was asked.
    let reading = Sent::ok("instance", br#"{"domain":"sky.example","title":"Sky"}"#).read(&network);
    let [object] = reading.objects.as_slice() else {
        panic!("{reading:?}")
    };
    assert_eq!(object.identity.canonical.as_deref(), Some(HOST));
    assert_eq!(object.known_as, Some(Key(1)));
    assert_eq!(
        field(object, "domain"),
        Some(&Value::Text("sky.example".into()))
    );
    for body in ["[]", "3", "\"x\"", "[{\"domain\":\"x\"}]"] {
        let reading = Sent::ok("instance", body.as_bytes()).read(&network);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{body}");
        assert!(reading.objects.is_empty());
    }
}

#[test]
fn tags_searches_and_the_host_are_asked_for_by_their_names() {
    let network = mastodon();
    let target = |query| plan(&network, query, Page::First, false).target;
    assert_eq!(target("hashtag"), "/api/v1/timelines/tag/birds?limit=40");
    assert_eq!(target("search"), "/api/v2/search?q=grey+gulls&limit=40");
    assert_eq!(target("instance"), "/api/v2/instance");
    assert_eq!(target("context"), "/api/v1/statuses/7/context");
    assert_eq!(
        target("reblogged_by"),
        "/api/v1/statuses/7/reblogged_by?limit=80"
    );
    assert_eq!(
        target("favourited_by"),
        "/api/v1/statuses/7/favourited_by?limit=80"
    );
    assert_eq!(target("featured_tags"), "/api/v1/accounts/7/featured_tags");
    let since = plan(&network, "hashtag", Page::Since("12"), false);
    assert_eq!(
        since.target,
        "/api/v1/timelines/tag/birds?limit=40&min_id=12"
    );
}

#[test]
fn requests_name_the_subject_and_the_page_size() {
    let network = mastodon();
    let first = plan(&network, "following", Page::First, false);
    assert_eq!(first.target, "/api/v1/accounts/7/following?limit=80");
    assert_eq!(first.cursor, "");
    assert!(!first.send_credential);
    let next = plan(&network, "following", Page::Next("max_id=9"), true);
    assert_eq!(
        next.target,
        "/api/v1/accounts/7/following?limit=80&max_id=9"
    );
    assert_eq!(next.cursor, "max_id=9");
    assert!(next.send_credential);
    let since = plan(&network, "timeline", Page::Since("55"), false);
    assert_eq!(
        since.target,
        "/api/v1/accounts/7/statuses?exclude_replies=false&exclude_reblogs=false&limit=40&min_id=55"
    );
    assert_eq!(since.cursor, "min_id=55");
}

#[test]
fn budgets_follow_the_credential_and_the_paging_parameters() {
    let network = mastodon();
    let charged = |page, authenticated| -> Vec<String> {
        let plan = plan(&network, "timeline", page, authenticated);
        plan.costs.iter().map(|it| it.budget.to_string()).collect()
    };
    assert_eq!(charged(Page::First, true), ["user", "token"]);
    assert_eq!(charged(Page::First, false), ["ip"]);
    assert_eq!(
        charged(Page::Next("max_id=1"), true),
        ["user", "token", "paging-user"]
    );
    assert_eq!(charged(Page::Since("1"), false), ["ip", "paging-ip"]);
}

#[test]
fn a_batch_repeats_its_parameter_and_is_bounded() {
    let network = mastodon();
    let identities: Vec<Identity> = (0..41)
        .map(|number| subject("user", &number.to_string()))
        .collect();
    let references: Vec<&Identity> = identities.iter().collect();
    let base = base();
    let mut ask = Ask {
        query: network.query("profiles").unwrap(),
        base: &base,
        host: HOST,
        subjects: &references[..2],
        page: Page::First,
        authenticated: false,
    };
    let plan = network.request(&ask).unwrap();
    assert_eq!(plan.target, "/api/v1/accounts?id%5B%5D=0&id%5B%5D=1");
    ask.subjects = &references;
    let refused = network.request(&ask);
    assert_eq!(
        refused,
        Err(RequestError::TooManySubjects { given: 41, max: 40 })
    );
    ask.subjects = &[];
    assert_eq!(network.request(&ask), Err(RequestError::NoSubject));
}

#[test]
fn ids_cannot_leave_their_place_in_the_address() {
    let network = mastodon();
    let base = base();
    let ask = |id: &str| {
        let identity = subject("user", id);
        network.request(&Ask {
            query: network.query("profile").unwrap(),
            base: &base,
            host: HOST,
            subjects: &[&identity],
            page: Page::First,
            authenticated: true,
        })
    };
    assert_eq!(
        ask("a/../b?c#d'\"🐦").unwrap().target,
        "/api/v1/accounts/a%2F..%2Fb%3Fc%23d%27%22%F0%9F%90%A6"
    );
    for id in ["..", "."] {
        assert!(
            matches!(ask(id), Err(RequestError::BadAlias { .. })),
            "{id}"
        );
    }
    let nameless = Identity {
        aliases: Vec::new(),
        ..subject("user", "7")
    };
    let missing = network.request(&Ask {
        query: network.query("profile").unwrap(),
        base: &base,
        host: HOST,
        subjects: &[&nameless],
        page: Page::First,
        authenticated: false,
    });
    assert!(matches!(missing, Err(RequestError::MissingAlias { alias, .. }) if alias == "id"));
}

#[test]
fn wrong_cursors_are_refused() {
    let network = mastodon();
    let base = base();
    let identity = subject("user", "7");
    let ask = |query: &str, page| {
        network.request(&Ask {
            query: network.query(query).unwrap(),
            base: &base,
            host: HOST,
            subjects: &[&identity],
            page,
            authenticated: false,
        })
    };
    assert_eq!(
        ask("following", Page::Next("")),
        Err(RequestError::BadCursor)
    );
    assert_eq!(
        ask("profile", Page::Next("max_id=1")),
        Err(RequestError::BadCursor)
    );
    assert_eq!(
        ask("following", Page::Since("1")),
        Err(RequestError::NotIncremental)
    );
}

#[test]
fn seeds_are_handles_addresses_and_ids() {
    let network = mastodon();
    for (text, alias, id) in [
        ("@ann", "handle", "ann@sea.example"),
        ("ann", "handle", "ann@sea.example"),
        (" ann@sky.example ", "handle", "ann@sky.example"),
        ("@ann@sky.example", "handle", "ann@sky.example"),
        ("https://sky.example/@ann", "handle", "ann@sky.example"),
        (
            "https://sea.example/@ann@sky.example",
            "handle",
            "ann@sky.example",
        ),
        ("http://127.0.0.1:3000/@ann", "handle", "ann@127.0.0.1:3000"),
        ("id:12", "id", "12"),
        ("@o'brien🐦", "handle", "o'brien🐦@sea.example"),
    ] {
        let identity = network.seed(text, HOST).unwrap();
        assert_eq!(&*identity.kind, "user");
        assert_eq!(identity.alias(alias, HOST), Some(id), "{text}");
    }
    for text in [
        "",
        "@",
        "a b",
        "https://sea.example/",
        "a\0b",
        "@a@b@c",
        "ftp://x/@y",
    ] {
        assert!(
            matches!(network.seed(text, HOST), Err(SeedError::Unknown { .. })),
            "{text:?}"
        );
    }
}

#[test]
fn the_own_hosts_handles_are_asked_without_it() {
    let network = mastodon();
    let base = base();
    let target = |seed: &str| {
        let identity = network.seed(seed, HOST).unwrap();
        let ask = Ask {
            query: network.query("lookup").unwrap(),
            base: &base,
            host: HOST,
            subjects: &[&identity],
            page: Page::First,
            authenticated: false,
        };
        network.request(&ask).unwrap().target
    };
    assert_eq!(target("@ann"), "/api/v1/accounts/lookup?acct=ann");
    assert_eq!(
        target("ann@sky.example"),
        "/api/v1/accounts/lookup?acct=ann%40sky.example"
    );
}

#[test]
fn a_lookup_proves_who_the_subject_is() {
    let network = mastodon();
    let reading = Sent::ok("lookup_by_id", USER.as_bytes())
        .query("profile")
        .read(&network);
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!((reading.items, reading.mended), (1, 0));
    let user = &reading.objects[0];
    assert_eq!(user.known_as, Some(Key(1)));
    assert_eq!(user.table, Table::Users);
    assert_eq!(
        user.identity.canonical.as_deref(),
        Some("https://sea.example/users/ann")
    );
    assert_eq!(user.identity.alias("id", HOST), Some("7"));
    assert_eq!(user.identity.alias("handle", ""), Some("ann@sea.example"));
    assert_eq!(
        field(user, "handle"),
        Some(&Value::Text("ann@sea.example".into()))
    );
    assert_eq!(
        field(user, "description"),
        Some(&Value::Text("sea & sky".into()))
    );
    assert_eq!(field(user, "banner_url"), Some(&Value::Null));
    assert_eq!(field(user, "location"), None);
    assert_eq!(field(user, "is_bot"), Some(&Value::Bool(true)));
    assert_eq!(field(user, "followers_count"), Some(&Value::Int(3)));
    assert_eq!(
        field(user, "profile_fields"),
        Some(&Value::Json("[]".into()))
    );
}

impl<'a> Sent<'a> {
    fn query(mut self, query: &'a str) -> Self {
        self.query = query;
        self
    }

    fn page(mut self, page: Page<'a>) -> Self {
        self.page = page;
        self
    }

    fn link(mut self, link: &'a str) -> Self {
        self.link = Some(link);
        self
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

#[test]
fn lists_become_relations_of_a_walk() {
    let network = mastodon();
    let body = format!("[{USER}]");
    let link = "<https://sea.example/api/v1/accounts/7/followers?limit=80&max_id=44>; rel=\"next\", \
                <https://sea.example/api/v1/accounts/7/followers?limit=80&since_id=99>; rel=\"prev\"";
    let reading = Sent::ok("followers", body.as_bytes())
        .link(link)
        .read(&network);
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!(reading.next.as_deref(), Some("max_id=44"));
    let [link] = reading.links.as_slice() else {
        panic!("{:?}", reading.links)
    };
    assert_eq!(
        (link.table, &*link.kind),
        (LinkTable::UserRelations, "follow")
    );
    assert_eq!(
        (&link.from, &link.to),
        (&Reference::Object(0), &Reference::Key(Key(1)))
    );
    assert_eq!(
        link.walk,
        Some(Walk {
            list: List::Followers,
            number: 3
        })
    );
    let reading = Sent::ok("following", body.as_bytes()).read(&network);
    assert_eq!(reading.links[0].from, Reference::Key(Key(1)));
    assert_eq!(reading.next, None);
    let empty = Sent::ok("following", b" [] ").read(&network);
    assert_eq!((empty.outcome, empty.items), (OutcomeCode::Empty, 0));
    let last = Sent::ok("following", b"[]")
        .page(Page::Next("max_id=1"))
        .read(&network);
    assert_eq!(last.outcome, OutcomeCode::Ok);
}

#[test]
fn posts_bring_their_authors_reposts_tags_and_mentions() {
    let network = mastodon();
    let inner = status(
        "9",
        r#","tags":[{"name":"Sea","url":"https://sea.example/tags/sea"}]"#,
    );
    let repost = status("11", &format!(r#","reblog":{inner},"in_reply_to_id":null"#));
    let reply = status(
        "10",
        r#","in_reply_to_id":"5","in_reply_to_account_id":6,"reblog":null,
          "mentions":[{"id":"6","username":"bob","acct":"bob@sky.example","url":"https://sky.example/@bob"}],
          "media_attachments":[{"id": "1"}]"#,
    );
    let body = format!("[{repost},{reply}]");
    let reading = Sent::ok("timeline", body.as_bytes()).read(&network);
    assert_eq!((reading.items, reading.mended), (2, 0));
    let kinds: Vec<&str> = reading
        .objects
        .iter()
        .map(|object| &*object.identity.kind)
        .collect();
    // The author stands in three posts and is read once.
    assert_eq!(kinds, ["user", "tag", "status", "status", "user", "status"]);
    let repost = &reading.objects[3];
    assert_eq!(
        field(repost, "repost_of"),
        Some(&Value::Object(Reference::Object(2)))
    );
    assert_eq!(
        field(repost, "author"),
        Some(&Value::Object(Reference::Object(0)))
    );
    let reply = &reading.objects[5];
    let Some(Value::Object(Reference::Identity(parent))) = field(reply, "reply_to") else {
        panic!("{reply:?}")
    };
    assert_eq!(
        (&*parent.kind, parent.alias("id", HOST)),
        ("status", Some("5"))
    );
    let Some(Value::Object(Reference::Identity(author))) = field(reply, "reply_to_author") else {
        panic!("{reply:?}")
    };
    assert_eq!(author.alias("id", HOST), Some("6"));
    assert_eq!(field(reply, "repost_of"), Some(&Value::Null));
    assert_eq!(
        field(reply, "media"),
        Some(&Value::Json(r#"[{"id":"1"}]"#.into()))
    );
    assert_eq!(
        reading.objects[1].identity.canonical.as_deref(),
        Some("sea")
    );
    assert_eq!(reading.objects[4].identity.canonical, None);
    let links: Vec<(&str, &Reference, &Reference)> = reading
        .links
        .iter()
        .map(|link| (&*link.kind, &link.from, &link.to))
        .collect();
    let object = Reference::Object;
    assert_eq!(
        links,
        [
            ("tag", &object(2), &object(1)),
            ("repost", &object(3), &object(2)),
            ("mention", &object(5), &object(4)),
        ]
    );
}

#[test]
fn an_incremental_walk_goes_from_the_mark_to_the_present() {
    let network = mastodon();
    let posts: Vec<String> = (0..40)
        .map(|number| status(&(99 + number).to_string(), ""))
        .collect();
    let body = format!("[{}]", posts.join(","));
    let link = "<https://sea.example/api/v1/accounts/7/statuses?exclude_replies=false&limit=40&max_id=99>; rel=\"next\", \
                <https://sea.example/api/v1/accounts/7/statuses?exclude_replies=false&limit=40&min_id=138>; rel=\"prev\"";
    let first = Sent::ok("timeline", body.as_bytes())
        .link(link)
        .read(&network);
    // 138 is longer than 99, and greater.
    assert_eq!(first.newest.as_deref(), Some("138"));
    assert_eq!(first.next.as_deref(), Some("max_id=99"));
    let since = Sent::ok("timeline", body.as_bytes())
        .page(Page::Since("50"))
        .link(link)
        .read(&network);
    assert_eq!(since.next.as_deref(), Some("min_id=138"));
    assert_eq!(since.newest.as_deref(), Some("138"));
    let forward = Page::Next("min_id=60");
    let on = Sent::ok("timeline", body.as_bytes())
        .page(forward)
        .link(link)
        .read(&network);
    assert_eq!(on.next.as_deref(), Some("min_id=138"));
    let back = Page::Next("max_id=200");
    let on = Sent::ok("timeline", body.as_bytes())
        .page(back)
        .link(link)
        .read(&network);
    assert_eq!((on.next.as_deref(), on.newest), (Some("max_id=99"), None));
    let one = format!("[{}]", posts[0]);
    let short = Sent::ok("timeline", one.as_bytes())
        .page(forward)
        .link(link)
        .read(&network);
    assert_eq!((short.next, short.newest.as_deref()), (None, Some("99")));
}

#[test]
fn a_next_page_elsewhere_is_not_followed() {
    let network = mastodon();
    let body = format!("[{USER}]");
    for (link, reason) in [
        (
            "<https://evil.example/api/v1/accounts/7/following?max_id=1>; rel=next",
            "next page on another host",
        ),
        (
            "<https://sea.example:444/api/v1/accounts/7/following?max_id=1>; rel=next",
            "next page on another host",
        ),
        (
            "<https://sea.example/api/v1/accounts/8/following?max_id=1>; rel=next",
            "next page on another path",
        ),
        (
            "<https://sea.example/api/v1/accounts/7/following?limit=80>; rel=next",
            "next page is the same page",
        ),
        ("<https://[>; rel=next", "next page cannot be read"),
    ] {
        let reading = Sent::ok("following", body.as_bytes())
            .link(link)
            .read(&network);
        assert_eq!(
            (reading.outcome, reading.reason.as_str()),
            (OutcomeCode::Malformed, reason)
        );
        assert_eq!(reading.next, None);
        // What the page holds is true all the same.
        assert_eq!(reading.objects.len(), 1);
    }
    let relative = "</api/v1/accounts/7/following?max_id=1>; rel=next";
    let reading = Sent::ok("following", body.as_bytes())
        .link(relative)
        .read(&network);
    assert_eq!(reading.next.as_deref(), Some("max_id=1"));
}

#[test]
fn a_batch_says_who_is_absent_and_who_is_suspended() {
    let network = mastodon();
    let suspended = r#"{"id":"8","acct":"eve","uri":"https://sea.example/users/eve","suspended":true,
        "display_name":"","followers_count":0}"#;
    let body = format!("[{suspended},{USER}]");
    let identities = [
        subject("user", "7"),
        subject("user", "8"),
        subject("user", "9"),
    ];
    let base = base();
    let url = base.join("/api/v1/accounts").unwrap();
    let reading = network.read(&Answer {
        query: network.query("profiles").unwrap(),
        base: &base,
        host: HOST,
        subjects: &[
            (Key(70), &identities[0]),
            (Key(80), &identities[1]),
            (Key(90), &identities[2]),
        ],
        page: Page::First,
        url: &url,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    });
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!(
        reading.subject_outcomes,
        [
            (Key(80), OutcomeCode::Suspended, "suspended".to_owned()),
            (
                Key(90),
                OutcomeCode::NotFound,
                "absent from batch".to_owned()
            ),
        ]
    );
    assert_eq!(
        reading.objects[0].standing,
        Standing::Invalid(OutcomeCode::Suspended)
    );
    assert_eq!(reading.objects[0].known_as, Some(Key(80)));
    assert!(reading.objects[0].groups.is_empty());
    assert_eq!(reading.objects[1].known_as, Some(Key(70)));
}

#[test]
fn every_status_has_an_outcome() {
    let network = mastodon();
    for (query, status, outcome) in [
        ("profile", 401, OutcomeCode::AuthExpired),
        ("profile", 403, OutcomeCode::Forbidden),
        ("profile", 404, OutcomeCode::NotFound),
        ("profile", 410, OutcomeCode::Suspended),
        ("status", 410, OutcomeCode::Gone),
        ("profile", 422, OutcomeCode::BadRequest),
        ("profile", 418, OutcomeCode::BadRequest),
        ("profile", 429, OutcomeCode::RateLimited),
        ("profile", 500, OutcomeCode::Transient),
        ("profile", 503, OutcomeCode::Transient),
        ("profile", 304, OutcomeCode::NotModified),
        ("profile", 302, OutcomeCode::Malformed),
        ("profile", 999, OutcomeCode::Malformed),
    ] {
        let reading = Sent::ok(query, b"{\"error\":\"x\"}")
            .status(status)
            .read(&network);
        assert_eq!(reading.outcome, outcome, "{status}");
        assert_eq!(reading.reason, format!("http {status}"));
    }
}

#[test]
fn headers_lower_the_budgets_they_speak_of() {
    let network = mastodon();
    let costs = plan(&network, "timeline", Page::Next("max_id=1"), true).costs;
    // 12:07, so that the windows of 5 and of 15 minutes end at different times.
    let now: LimitTime = LimitTime(
        "2026-11-15T12:07:00Z"
            .parse::<jiff::Timestamp>()
            .unwrap()
            .as_microsecond(),
    );
    let reports = |limit: &str, reset: &str| {
        let header = |name: &str| match name {
            "x-ratelimit-limit" => Some(limit.to_owned()),
            "x-ratelimit-remaining" => Some("12".to_owned()),
            "x-ratelimit-reset" => Some(reset.to_owned()),
            _ => None,
        };
        let reports = network.limit_reports(&costs, &header, now);
        let left = |report: &LimitReport| matches!(report.word, Word::Left { remaining: 12, .. });
        assert!(reports.iter().all(left));
        reports
            .into_iter()
            .map(|report| report.budget.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(reports("300", "2026-11-15T12:10:00.000000Z"), ["token"]);
    assert_eq!(reports("1500", "2026-11-15T12:10:00.000000Z"), ["user"]);
    assert_eq!(
        reports("300", "2026-11-15T12:15:00.000000Z"),
        ["paging-user"]
    );
    // An older server: no declared limit fits, so that all which end then are lowered.
    assert_eq!(
        reports("200", "2026-11-15T12:10:00.000000Z"),
        ["user", "token"]
    );
    assert_eq!(reports("300", "garbage"), ["user", "token", "paging-user"]);
    assert!(reports("garbage", "garbage").is_empty());
}
