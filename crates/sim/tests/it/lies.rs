//! Instances that are out of order, or lie.

use serde_json::Value;

use crate::client::{Reply, Sim};
use crate::fediverse::{config, text};

async fn troubled(users: u64) -> Sim {
    let mut config = config(users, 3);
    config.troubled_instances = 5;
    config.stall_ms = 50;
    Sim::start(config).await
}

async fn host_with(sim: &Sim, trouble: &str) -> String {
    let hosts = sim.truth("hosts").await;
    let host = hosts.iter().find(|host| host["trouble"] == trouble);
    text(host.unwrap(), "host").to_owned()
}

/// People who come with a lie.
async fn liars(sim: &Sim, lie: &str) -> Vec<Value> {
    let mut users = sim.truth("users").await;
    users.retain(|user| user["lie"] == lie && user["suspended"] == false);
    assert!(!users.is_empty(), "{lie}");
    users
}

async fn ask(sim: &Sim, user: &Value, further: &str) -> Reply {
    let path = format!("/api/v1/accounts/{}{further}", text(user, "local_id"));
    sim.try_get_at(text(user, "host"), &path).await.unwrap()
}

fn is_private(url: &str) -> bool {
    [
        "127.0.0.1:",
        "localhost:",
        "169.254.169.254/",
        "[::1]:1/",
        "10.0.0.1/",
    ]
    .iter()
    .any(|host| url.starts_with(&format!("http://{host}")))
}

#[tokio::test]
async fn instances_that_are_out_of_order_answer_as_such() {
    let sim = troubled(100).await;
    for (trouble, status) in [
        ("bad_gateway", Some(502)),
        ("silent", None),
        ("closing", None),
        ("slow", Some(200)),
        ("lying", Some(200)),
    ] {
        let host = host_with(&sim, trouble).await;
        let reply = sim.try_get_at(&host, "/.well-known/nodeinfo").await;
        assert_eq!(reply.map(|reply| reply.status), status, "{trouble}");
        let ledger = sim.get(&format!("/_sim/ledger?host={host}")).await.json();
        assert_eq!(ledger["total"], 1, "{trouble}");
    }
    let rows = sim.truth("hosts").await;
    assert!(rows[0]["trouble"].is_null());
    let in_order = rows.iter().filter(|row| row["trouble"].is_null());
    assert_eq!(in_order.count(), 3);
    // Nothing can be learnt from those that do not answer, or relied on from those that lie.
    let told = sim.truth_where("users", "&hosts=*").await;
    assert!(
        told.iter()
            .all(|user| user["trouble"].is_null() || user["trouble"] == "slow")
    );
    assert!(told.iter().any(|user| user["trouble"] == "slow"));
}

#[tokio::test]
async fn a_lying_instance_claims_to_be_the_home_of_others() {
    let sim = troubled(300).await;
    let host = host_with(&sim, "lying").await;
    let users = sim.truth("users").await;
    let others: Vec<&Value> = users
        .iter()
        .filter(|user| user["host"] != host && user["suspended"] == false)
        .take(20)
        .collect();
    for user in others {
        let name = text(user, "username");
        let lookup = format!("/api/v1/accounts/lookup?acct={name}");
        let account = sim.try_get_at(&host, &lookup).await.unwrap().json();
        assert_eq!(account["uri"], user["id"]);
        assert_eq!(account["acct"], name);
        assert_eq!(
            (&account["display_name"], &account["note"]),
            (&"forged".into(), &"forged".into())
        );
        let timeline = format!("/api/v1/accounts/{}/statuses", text(&account, "id"));
        for status in sim.try_get_at(&host, &timeline).await.unwrap().list() {
            assert_eq!(status["content"], "forged");
        }
        let finger = format!("/.well-known/webfinger?resource=acct:{name}@{host}");
        assert_eq!(sim.try_get_at(&host, &finger).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn every_one_of_its_people_comes_with_a_lie() {
    let sim = troubled(600).await;
    let host = host_with(&sim, "lying").await;
    for user in liars(&sim, "megabyte_bio").await.iter().take(2) {
        let account = ask(&sim, user, "").await.json();
        assert_eq!(text(&account, "note").len(), 1 << 20);
    }
    for user in liars(&sim, "impostor").await.iter().take(3) {
        let account = ask(&sim, user, "").await.json();
        assert_ne!(account["uri"], user["id"]);
        assert!(!text(&account, "uri").contains(&host));
        let users = sim.truth("users").await;
        assert!(users.iter().any(|other| other["id"] == account["uri"]));
    }
    for user in liars(&sim, "private_next_page").await.iter().take(3) {
        for list in ["/followers", "/following", "/statuses"] {
            let reply = ask(&sim, user, list).await;
            let link = reply.headers["link"].strip_prefix('<').unwrap().to_owned();
            assert!(is_private(&link), "{link}");
        }
    }
    for user in liars(&sim, "private_redirect").await.iter().take(3) {
        let reply = ask(&sim, user, "/statuses").await;
        assert_eq!(reply.status, 302);
        assert!(is_private(&reply.headers["location"]));
    }
    let finger = |handle: String| {
        let (sim, host) = (&sim, &host);
        async move {
            let target = format!("/.well-known/webfinger?resource={handle}");
            sim.try_get_at(host, &target).await.unwrap().json()
        }
    };
    for user in liars(&sim, "private_handle").await.iter().take(3) {
        let found = finger(format!("acct:{}", text(user, "acct"))).await;
        assert!(is_private(text(&found["links"][1], "href")));
    }
    for user in liars(&sim, "handle_loop").await.iter().take(3) {
        let first = format!("acct:{}", text(user, "acct"));
        let second = text(&finger(first.clone()).await, "subject").to_owned();
        assert_ne!(second, first);
        assert_eq!(finger(second).await["subject"], first);
    }
    let peers = sim
        .try_get_at(&host, "/api/v1/instance/peers")
        .await
        .unwrap()
        .list();
    assert!(peers.contains(&"169.254.169.254".into()));
    assert_eq!(sim.server.canary_calls(), 0);
}
