//! Many instances over one world: homes know everything of their people, others a part.

use std::collections::{BTreeMap, BTreeSet};

use kittiwake_sim::{Faults, Limits, SimConfig, SimError, serve};
use serde_json::Value;

use crate::client::{AT_US, Sim, ids, now_us};

pub(crate) const INSTANCES: usize = 8;

pub(crate) fn config(users: u64, seed: u64) -> SimConfig {
    let mut config = SimConfig::frozen(users, seed, AT_US, now_us());
    config.instances = INSTANCES;
    config
}

pub(crate) async fn healthy(users: u64, seed: u64) -> Sim {
    Sim::start(config(users, seed)).await
}

pub(crate) fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

fn set_of(rows: &[Value], key: &str) -> BTreeSet<String> {
    rows.iter().map(|row| text(row, key).to_owned()).collect()
}

/// Rows of a table by the text of a key.
fn grouped<'a>(rows: &'a [Value], key: &str) -> BTreeMap<&'a str, Vec<&'a Value>> {
    let mut groups: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in rows {
        groups.entry(text(row, key)).or_default().push(row);
    }
    groups
}

#[tokio::test]
async fn one_seed_gives_one_fediverse() {
    let (one, other, different) = (
        healthy(120, 4).await,
        healthy(120, 4).await,
        healthy(120, 5).await,
    );
    // The port is in every host, and all that two runs may differ in.
    let portless = |sim: &Sim, rows: Vec<Value>| -> Vec<String> {
        let port = format!(":{}", sim.server.address().port());
        let rows = rows.iter().map(|row| row.to_string().replace(&port, ""));
        rows.collect()
    };
    for table in ["users", "user_relations", "statuses", "comments", "likes"] {
        let rows = portless(&one, one.truth(table).await);
        assert!(!rows.is_empty(), "{table}");
        assert_eq!(rows, portless(&other, other.truth(table).await), "{table}");
        assert_ne!(rows, portless(&different, different.truth(table).await));
    }
    let hosts = one.server.hosts();
    let handle = one.server.seed_handles(1).remove(0);
    for (host, twin) in hosts.iter().zip(other.server.hosts()) {
        let target = format!(
            "/api/v1/accounts/lookup?acct={}",
            handle.split(':').next().unwrap()
        );
        let target = |sim: &Sim| format!("{target}:{}", sim.server.address().port());
        let seen = one.get_at(host, &target(&one)).await;
        let twin = other.get_at(&twin, &target(&other)).await;
        assert_eq!(seen.status, twin.status);
        let replies =
            [(&one, seen), (&other, twin)].map(|(sim, reply)| portless(sim, vec![reply.json()]));
        assert_eq!(replies[0], replies[1]);
    }
}

#[tokio::test]
async fn the_union_over_all_homes_is_the_truth() {
    let sim = healthy(150, 9).await;
    let statuses = sim.truth("statuses").await;
    let relations = sim.truth("user_relations").await;
    let (by_author, by_source, by_target) = (
        grouped(&statuses, "author"),
        grouped(&relations, "source"),
        grouped(&relations, "target"),
    );
    let mut homes = BTreeSet::new();
    let mut names_the_deleted = BTreeSet::new();
    for user in sim.truth("users").await {
        let (id, host) = (text(&user, "id"), text(&user, "host"));
        homes.insert(host.to_owned());
        let path = format!("/api/v1/accounts/{}", text(&user, "local_id"));
        let reply = sim.get_at(host, &path).await;
        if user["gone"] == true {
            if reply.status == 200 {
                assert_eq!(reply.json()["suspended"], true);
                names_the_deleted.insert(host.to_owned());
            } else {
                assert_eq!(reply.status, 410);
            }
            continue;
        }
        let account = reply.json();
        assert_eq!(format!("{}@{host}", text(&account, "acct")), user["acct"]);
        for (ours, theirs) in [
            ("url", "url"),
            ("display_name", "display_name"),
            ("note", "note"),
            ("followers", "followers_count"),
            ("following", "following_count"),
            ("statuses", "statuses_count"),
        ] {
            assert_eq!(user[ours], account[theirs], "{ours} of {id}");
        }
        let shown = sim
            .walk_at(host, &format!("{path}/statuses?limit=40"))
            .await;
        let told = by_author.get(id).cloned().unwrap_or_default();
        assert_eq!(shown.len(), told.len());
        let contents = |rows: &[&Value], key: &str| -> BTreeSet<String> {
            let row = |row: &&Value| format!("{} {}", text(row, key), text(row, "content"));
            rows.iter().map(row).collect()
        };
        let shown: Vec<&Value> = shown.iter().collect();
        assert_eq!(contents(&shown, "uri"), contents(&told, "id"));
        for (list, rows, key) in [
            ("following", &by_source, "in_following"),
            ("followers", &by_target, "in_followers"),
        ] {
            let told = rows
                .get(id)
                .map_or(0, |rows| rows.iter().filter(|row| row[key] == true).count());
            let shown = sim.walk_at(host, &format!("{path}/{list}?limit=80")).await;
            assert_eq!(shown.len(), told, "{list} of {id}");
        }
    }
    assert_eq!(homes.len(), INSTANCES);
    let hosts = sim.truth("hosts").await;
    for host in hosts
        .iter()
        .filter(|host| names_the_deleted.contains(text(host, "host")))
    {
        assert_eq!(host["software"], "go_to_social");
    }
    assert!(statuses.len() > 1_000);
}

#[tokio::test]
async fn what_others_know_is_a_part_of_the_truth() {
    let sim = healthy(150, 9).await;
    let users = sim.truth("users").await;
    let truth = set_of(&sim.truth("statuses").await, "id");
    let (mut unknown, mut partial, mut whole, mut older) = (0, 0, 0, 0);
    for host in &sim.server.hosts() {
        let own: BTreeSet<&str> = users
            .iter()
            .filter(|user| text(user, "host") == host)
            .map(|user| text(user, "url"))
            .collect();
        for user in users
            .iter()
            .filter(|user| user["suspended"] == false && text(user, "host") != host)
        {
            let target = format!("/api/v1/accounts/lookup?acct={}", text(user, "acct"));
            let reply = sim.get_at(host, &target).await;
            if reply.status == 404 {
                unknown += 1;
                continue;
            }
            let account = reply.json();
            assert_eq!(account["acct"], user["acct"]);
            assert_eq!(account["url"], user["url"]);
            let path = format!("/api/v1/accounts/{}", text(&account, "id"));
            let shown = sim
                .walk_at(host, &format!("{path}/statuses?limit=40"))
                .await;
            let shown = set_of(&shown, "uri");
            assert!(shown.is_subset(&truth));
            if shown.len() as u64 == user["statuses"].as_u64().unwrap() {
                whole += 1;
            } else {
                partial += 1;
            }
            older += u32::from(account["statuses_count"] != user["statuses"]);
            for list in ["following", "followers"] {
                let others = sim.walk_at(host, &format!("{path}/{list}")).await;
                assert!(others.iter().all(|other| own.contains(text(other, "url"))));
            }
        }
    }
    assert!(unknown > 100, "{unknown}");
    assert!(partial > 100 && whole > 5, "{partial} and {whole}");
    assert!(older > 50, "{older}");
}

#[tokio::test]
async fn ids_never_collide_on_a_host_and_differ_between_hosts() {
    let sim = healthy(300, 2).await;
    let mut ids_by_url: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen_twice = 0;
    let hosts = sim.server.hosts();
    let mut post_ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for host in &hosts {
        let mut urls_by_id: BTreeMap<String, String> = BTreeMap::new();
        for tag in ["birds", "photography", "rust"] {
            let path = format!("/api/v1/timelines/tag/{tag}?limit=40");
            for status in sim.get_at(host, &path).await.list() {
                let (id, uri) = (text(&status, "id"), text(&status, "uri"));
                let known = urls_by_id.insert(format!("post {id}"), uri.to_owned());
                assert!(known.is_none_or(|known| known == uri));
                let of_post = post_ids.entry(uri.to_owned()).or_default();
                seen_twice += u32::from(!of_post.is_empty());
                of_post.insert(format!("{host} {id}"));
                let account = &status["account"];
                let (id, url) = (text(account, "id"), text(account, "url"));
                let known = urls_by_id.insert(id.to_owned(), url.to_owned());
                assert!(known.is_none_or(|known| known == url));
                ids_by_url
                    .entry(url.to_owned())
                    .or_default()
                    .insert(format!("{host} {id}"));
            }
        }
    }
    assert!(seen_twice > 20, "{seen_twice}");
    for ids in ids_by_url.values().chain(post_ids.values()) {
        let bare: BTreeSet<&str> = ids.iter().map(|id| id.split_once(' ').unwrap().1).collect();
        assert_eq!(bare.len(), ids.len(), "{ids:?}");
    }
}

#[tokio::test]
async fn the_truth_is_restricted_to_what_some_hosts_tell() {
    let sim = healthy(150, 3).await;
    let hosts = sim.server.hosts();
    let users = sim.truth_where("users", "&hosts=i01.localhost,i02.*").await;
    let all = sim.truth("users").await;
    let expected = all
        .iter()
        .filter(|user| hosts[..2].iter().any(|host| text(user, "host") == host));
    assert_eq!(users.len(), expected.count());
    assert!(!users.is_empty() && users.len() < all.len());
    let own = set_of(&users, "id");
    let statuses = sim.truth_where("statuses", "&hosts=i01.*,i02.*").await;
    assert!(set_of(&statuses, "author").is_subset(&own));
    let relations = sim
        .truth_where("user_relations", "&hosts=i01.*,i02.*")
        .await;
    assert!(!relations.is_empty());
    for row in &relations {
        let tells = |end: &str, list: &str| own.contains(text(row, end)) && row[list] == true;
        assert!(tells("source", "in_following") || tells("target", "in_followers"));
    }
    assert!(
        sim.truth_where("users", "&hosts=elsewhere")
            .await
            .is_empty()
    );
    assert_eq!(sim.truth_where("users", "&hosts=*").await, all);
    assert_eq!(sim.truth("hosts").await.len(), INSTANCES);
}

#[tokio::test]
async fn the_limits_of_one_instance_are_nobody_elses() {
    let mut config = config(60, 1);
    config.limits = Limits::Strict;
    let sim = Sim::start(config).await;
    let hosts = sim.server.hosts();
    let mut statuses = Vec::new();
    for _ in 0..301 {
        statuses.push(
            sim.try_get_at(&hosts[0], "/api/v2/instance")
                .await
                .unwrap()
                .status,
        );
    }
    // A window may end while it is being filled, but not twice.
    let refused = statuses.iter().filter(|&&status| status == 429).count();
    assert!(refused <= 1);
    for _ in 0..301 {
        sim.try_get_at(&hosts[0], "/api/v2/instance").await.unwrap();
    }
    let other = sim.try_get_at(&hosts[1], "/api/v2/instance").await.unwrap();
    assert_eq!(other.status, 200);
    assert_eq!(other.headers["x-ratelimit-remaining"], "299");
    // GoToSocial, which has limits of its own.
    let third = sim.try_get_at(&hosts[3], "/api/v2/instance").await.unwrap();
    assert_eq!(third.headers["x-ratelimit-limit"], "300");
    assert!(third.headers["x-ratelimit-reset"].contains('T'));
    let ledger = sim.get("/_sim/ledger").await.json();
    let totals: Vec<u64> = ledger["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["total"].as_u64().unwrap())
        .collect();
    assert_eq!(totals, [602, 1, 0, 1, 0, 0, 0, 0]);
    let violations = |index: usize| ledger["hosts"][index]["violations_total"].as_u64().unwrap();
    assert!(violations(0) >= 1);
    assert_eq!(violations(1), 0);
    assert_eq!(ledger["violations_total"], violations(0));
    let own = sim.get("/_sim/ledger?host=i02").await.json();
    assert_eq!(
        (own["total"].clone(), own["calls"][0]["count"].clone()),
        (1.into(), 1.into())
    );
    assert_eq!(sim.get("/_sim/ledger?host=i99").await.status, 404);
    assert_eq!(sim.get("/_sim/ledger/calls").await.status, 400);
    assert_eq!(
        sim.get("/_sim/ledger/calls?host=i02").await.lines().len(),
        1
    );
}

#[tokio::test]
async fn calls_that_went_astray_are_told() {
    let sim = healthy(40, 1).await;
    let hosts = sim.server.hosts();
    for (host, status) in [
        (hosts[0].as_str(), 200),
        (hosts[2].as_str(), 200),
        ("evil.example", 421),
    ] {
        let reply = sim.try_get_at(host, "/api/v1/instance").await.unwrap();
        assert_eq!(reply.status, status, "{host}");
    }
    let ledger = |query: &'static str| {
        let sim = &sim;
        async move { sim.get(&format!("/_sim/ledger{query}")).await.json() }
    };
    assert_eq!(ledger("?allowed=i01.*").await["outside"], 2);
    assert_eq!(ledger("?allowed=*.localhost").await["outside"], 1);
    let all = ledger("").await;
    assert!(all["outside"].is_null());
    assert_eq!(all["strangers"]["evil.example"], 1);
    assert_eq!(all["canary"]["dialled"], 0);
    let address = text(&all["canary"], "address").to_owned();
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut socket, b"GET /latest HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    // It closes the connection when it has noted what was wanted.
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut rest)
        .await
        .ok();
    let canary = ledger("").await["canary"].clone();
    assert_eq!(
        (canary["dialled"].clone(), sim.server.canary_calls()),
        (1.into(), 1)
    );
    assert_eq!(canary["lines"][0], "GET /latest HTTP/1.1");
}

#[tokio::test]
async fn some_have_moved_to_an_account_elsewhere() {
    let sim = healthy(400, 6).await;
    let users = sim.truth("users").await;
    let moved: Vec<&Value> = users
        .iter()
        .filter(|user| user["moved_to"].is_string())
        .collect();
    assert!(moved.len() >= 3, "{}", moved.len());
    for user in moved {
        let path = format!("/api/v1/accounts/{}", text(user, "local_id"));
        let account = sim.get_at(text(user, "host"), &path).await.json();
        let target = users
            .iter()
            .find(|other| other["id"] == user["moved_to"])
            .unwrap();
        assert_eq!(account["moved"]["acct"], target["acct"]);
        assert_ne!(target["host"], user["host"]);
        assert!(target["moved_to"].is_null() && account["moved"]["moved"].is_null());
    }
}

#[tokio::test]
async fn faults_strike_the_people_of_an_instance_by_its_own_ids() {
    let mut config = config(300, 6);
    config.faults = Faults::Hostile;
    config.stall_ms = 1;
    let sim = Sim::start(config).await;
    let host = &sim.server.hosts()[0];
    let before = set_of(&sim.truth_where("users", "&before_faults=1").await, "id");
    for user in sim.truth("users").await {
        if text(&user, "host") != host {
            continue;
        }
        for list in [
            "statuses?limit=5",
            "followers?limit=5",
            "statuses?limit=5&max_id=",
        ] {
            let path = format!("/api/v1/accounts/{}/{list}", text(&user, "local_id"));
            // Of three times the third is answered.
            for _ in 0..3 {
                sim.try_get_at(host, &path).await;
            }
        }
    }
    let faults = sim.get("/_sim/faults?host=i01&limit=10000").await.lines();
    let bans: Vec<&Value> = faults
        .iter()
        .filter(|fault| fault["kind"] == "ban")
        .collect();
    assert!(!bans.is_empty() && faults.iter().any(|fault| fault["class"] == "transport"));
    for ban in bans {
        let id = ban["withdrew"]["ids"][0].as_str().unwrap();
        assert!(before.contains(id));
    }
    assert!(sim.get("/_sim/faults?host=i02").await.lines().is_empty());
}

#[tokio::test]
async fn homes_have_people_by_zipfs_law() {
    let sim = healthy(1_000, 1).await;
    let people: Vec<u64> = sim
        .truth("hosts")
        .await
        .iter()
        .map(|host| host["people"].as_u64().unwrap())
        .collect();
    assert_eq!(people.iter().sum::<u64>(), 1_000);
    assert!(people[0] > 300 && people[7] > 20 && people.is_sorted_by(|one, next| one >= next));
    let seeds = sim.server.seed_handles(3);
    assert!(
        seeds.iter().all(|seed| seed.contains(".localhost:")),
        "{seeds:?}"
    );
    assert!(
        !ids(&sim
            .get_at(&sim.server.hosts()[0], "/api/v1/timelines/tag/birds")
            .await
            .list())
        .is_empty()
    );
}

#[tokio::test]
async fn fediverses_that_cannot_be_are_refused() {
    for (instances, troubled) in [(0, 0), (1_000, 0), (3, 3), (1, 1)] {
        let mut config = config(10, 1);
        (config.instances, config.troubled_instances) = (instances, troubled);
        assert!(matches!(
            serve(config).await.unwrap_err(),
            SimError::Instances { .. }
        ));
    }
}

#[tokio::test]
async fn a_server_alone_has_none_of_it() {
    let sim = Sim::frozen(20, 1).await;
    for path in [
        "/.well-known/webfinger?resource=acct:a@b",
        "/.well-known/nodeinfo",
        "/nodeinfo/2.0",
        "/_sim/truth/hosts",
    ] {
        assert_eq!(sim.get(path).await.status, 404, "{path}");
    }
    assert!(sim.server.hosts().is_empty());
    // It says what it is all the same, and that it knows of nobody else.
    assert_eq!(sim.get("/api/v1/instance").await.json()["version"], "4.7.3");
    let peers = sim.get("/api/v1/instance/peers").await.json();
    assert_eq!(peers, serde_json::json!([]));
}
