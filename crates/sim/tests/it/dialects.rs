//! Every software's answers hold their documented shape.

use serde_json::Value;

use crate::client::Sim;
use crate::fediverse::{healthy, text};

const SOFTWARES: [&str; 5] = [
    "mastodon",
    "old_mastodon",
    "go_to_social",
    "akkoma",
    "pixelfed",
];

async fn host_of(sim: &Sim, software: &str) -> String {
    let hosts = sim.truth("hosts").await;
    let host = hosts.iter().find(|host| host["software"] == software);
    text(host.unwrap(), "host").to_owned()
}

/// Somebody who is shown and has posts and followers, with their account and first page of posts.
async fn somebody(sim: &Sim, host: &str) -> (Value, Value, Vec<Value>) {
    let users = sim.truth("users").await;
    let user = users.iter().find(|user| {
        user["host"] == host
            && user["hides_lists"] == false
            && user["statuses"].as_u64() > Some(1)
            && user["followers"].as_u64() > Some(3)
    });
    let user = user.unwrap().clone();
    let path = format!("/api/v1/accounts/{}", text(&user, "local_id"));
    let account = sim.get_at(host, &path).await.json();
    let statuses = sim.get_at(host, &format!("{path}/statuses")).await.list();
    (user, account, statuses)
}

#[tokio::test]
async fn only_the_newest_mastodon_names_uris_and_only_akkoma_ap_ids() {
    let sim = healthy(400, 1).await;
    for software in SOFTWARES {
        let host = host_of(&sim, software).await;
        let (user, account, statuses) = somebody(&sim, &host).await;
        let is_new = software == "mastodon";
        assert_eq!(account.get("uri").is_some(), is_new, "{software}");
        for key in ["indexable", "feature_approval", "show_media", "noindex"] {
            assert_eq!(account.get(key).is_some(), is_new, "{software}: {key}");
        }
        for key in ["quote", "quotes_count", "tagged_collections"] {
            assert_eq!(statuses[0].get(key).is_some(), is_new, "{software}: {key}");
        }
        if is_new {
            assert_eq!(account["uri"], user["id"]);
        }
        let ap_id = &account["pleroma"]["ap_id"];
        assert_eq!(*ap_id == user["id"], software == "akkoma");
        let has_edits = statuses[0].get("edited_at").is_some();
        assert_eq!(has_edits, software != "pixelfed");
        assert!(statuses.iter().all(|status| status["uri"].is_string()));
        assert!(account["discoverable"].is_boolean() || software != "go_to_social");
    }
}

#[tokio::test]
async fn ids_have_the_form_of_their_software() {
    let sim = healthy(400, 1).await;
    for software in SOFTWARES {
        let host = host_of(&sim, software).await;
        let (_, account, statuses) = somebody(&sim, &host).await;
        for id in [text(&account, "id"), text(&statuses[0], "id")] {
            let is_upper = |letter: char| letter.is_ascii_digit() || letter.is_ascii_uppercase();
            match software {
                "go_to_social" => {
                    assert!(id.len() == 26 && id.chars().all(is_upper), "{id}");
                }
                "akkoma" => {
                    assert!(
                        id.len() == 18 && id.chars().all(|letter| letter.is_ascii_alphanumeric())
                    );
                }
                _ => assert!(id.parse::<i64>().is_ok(), "{software}: {id}"),
            }
        }
        let mut sorted = statuses.clone();
        sorted.sort_by_key(|status| {
            let id = text(status, "id").to_owned();
            std::cmp::Reverse((id.len(), id))
        });
        assert_eq!(sorted, statuses, "newest first, by id too");
    }
}

#[tokio::test]
async fn routes_that_a_software_lacks_are_not_found_and_closed_ones_need_a_token() {
    let sim = healthy(400, 1).await;
    // Per software: v2 instance, batch, featured tags, search and an account without a token.
    for (software, expected) in [
        ("mastodon", [200, 200, 200, 200, 200]),
        ("old_mastodon", [404, 404, 200, 401, 200]),
        ("go_to_social", [200, 404, 401, 401, 401]),
        ("akkoma", [200, 404, 404, 200, 200]),
        ("pixelfed", [404, 404, 404, 401, 401]),
    ] {
        let host = host_of(&sim, software).await;
        let (user, _, _) = somebody(&sim, &host).await;
        let id = text(&user, "local_id");
        let mut seen = Vec::new();
        for path in [
            "/api/v2/instance".to_owned(),
            format!("/api/v1/accounts?id[]={id}"),
            format!("/api/v1/accounts/{id}/featured_tags"),
            "/api/v2/search?q=a".to_owned(),
            format!("/api/v1/accounts/{id}"),
        ] {
            seen.push(sim.try_get_at(&host, &path).await.unwrap().status);
        }
        assert_eq!(seen, expected, "{software}");
        let is_closed = user["needs_token"] == true;
        assert_eq!(is_closed, expected[4] == 401);
        for (path, is_open) in [
            (format!("/api/v1/accounts/{id}/followers"), !is_closed),
            (
                "/api/v1/timelines/tag/birds".to_owned(),
                software != "go_to_social",
            ),
        ] {
            let status = sim.try_get_at(&host, &path).await.unwrap().status;
            assert_eq!(
                status,
                if is_open { 200 } else { 401 },
                "{software}: {path}"
            );
        }
    }
}

#[tokio::test]
async fn walks_of_gotosocial_and_akkoma_end_with_an_empty_page() {
    let sim = healthy(400, 1).await;
    for (software, ends_with_empty, per_page) in [
        ("mastodon", false, 80),
        ("go_to_social", true, 80),
        ("akkoma", true, 40),
    ] {
        let host = host_of(&sim, software).await;
        let (user, _, _) = somebody(&sim, &host).await;
        let followers = user["followers"].as_u64().unwrap() as usize;
        // A last page that is full tells nothing about how walks end.
        let limit = (2..=20)
            .find(|limit| !followers.is_multiple_of(*limit))
            .unwrap();
        let path = format!(
            "/api/v1/accounts/{}/followers?limit={limit}",
            text(&user, "local_id")
        );
        let mut sizes = Vec::new();
        let mut target = Some(path.clone());
        while let Some(page) = target {
            let reply = sim.get_at(&host, &page).await;
            sizes.push(reply.list().len());
            target = reply.link("next");
        }
        assert_eq!(sizes.iter().sum::<usize>(), followers);
        assert_eq!(sizes.last() == Some(&0), ends_with_empty);
        let greatest = sim
            .get_at(&host, &path.replace("?limit=", "?limit=1000&x="))
            .await
            .list();
        assert_eq!(greatest.len(), followers.min(per_page));
    }
}

#[tokio::test]
async fn every_instance_says_what_it_is() {
    let sim = healthy(200, 1).await;
    let hosts = sim.truth("hosts").await;
    for row in &hosts {
        let host = text(row, "host");
        let ask = |target: String| {
            let sim = &sim;
            async move { sim.try_get_at(host, &target).await.unwrap() }
        };
        let links = ask("/.well-known/nodeinfo".to_owned()).await.json();
        let href = text(&links["links"][0], "href");
        let path = href.strip_prefix(&format!("http://{host}")).unwrap();
        let node_info = ask(path.to_owned()).await.json();
        let name = text(&node_info["software"], "name");
        assert_eq!(
            name,
            match text(row, "software") {
                "old_mastodon" => "mastodon".to_owned(),
                software => software.replace('_', ""),
            }
        );
        assert_eq!(node_info["usage"]["users"]["total"], row["people"]);
        let instance = ask("/api/v1/instance".to_owned()).await.json();
        assert_eq!(
            (&instance["uri"], &instance["version"]),
            (&row["host"], &row["version"])
        );
        let peers = sim.get_at(host, "/api/v1/instance/peers").await;
        if name == "pixelfed" {
            assert_eq!(peers.status, 404);
        } else {
            let peers = peers.list();
            assert_eq!(peers.len(), hosts.len() - 1);
            assert!(!peers.contains(&row["host"]));
        }
    }
}

#[tokio::test]
async fn web_finger_tells_who_has_a_handle() {
    let sim = healthy(100, 2).await;
    for user in sim.truth("users").await {
        let (host, acct) = (text(&user, "host"), text(&user, "acct"));
        let target = format!("/.well-known/webfinger?resource=acct:{acct}");
        let reply = sim.try_get_at(host, &target).await.unwrap();
        if user["gone"] == true {
            assert_eq!(reply.status, 410);
            continue;
        }
        assert!(reply.headers["content-type"].starts_with("application/jrd+json"));
        let found = reply.json();
        assert_eq!(found["subject"], format!("acct:{acct}"));
        let links = found["links"].as_array().unwrap();
        let own = links.iter().find(|link| link["rel"] == "self").unwrap();
        assert_eq!(own["href"], user["id"]);
        // Nobody else answers for it.
        for other in sim.server.hosts().iter().filter(|other| *other != host) {
            assert_eq!(sim.try_get_at(other, &target).await.unwrap().status, 404);
        }
    }
    let host = &sim.server.hosts()[0];
    for (query, status) in [
        ("", 400),
        ("?resource=acct:nobody", 404),
        ("?resource=%00", 404),
    ] {
        let target = format!("/.well-known/webfinger{query}");
        assert_eq!(sim.try_get_at(host, &target).await.unwrap().status, status);
    }
}
