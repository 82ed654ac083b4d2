//! A client that only downloads: what no crawler can be quicker than.

use crate::pages::owner;
use reqwest::Client;
use reqwest::header::LINK;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Walks all timelines, `at_once` of them at a time, and throws the pages away.
pub(crate) fn run(address: &str, timelines: u64, at_once: usize) {
    kittiwake_fetch::install_tls_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let base = format!("http://{address}");
    runtime.block_on(async {
        let client = Client::builder().no_proxy().build().unwrap();
        let started = Arc::new(AtomicU64::new(0));
        let walkers = (0..at_once).map(|_| {
            let (client, started, base) = (client.clone(), Arc::clone(&started), base.clone());
            tokio::spawn(async move {
                loop {
                    let timeline = started.fetch_add(1, Ordering::Relaxed);
                    if timeline >= timelines {
                        break;
                    }
                    walk(&client, &base, timeline).await;
                }
            })
        });
        for walker in walkers.collect::<Vec<_>>() {
            walker.await.unwrap();
        }
    });
}

async fn walk(client: &Client, base: &str, timeline: u64) {
    let account = owner(timeline);
    let mut next = Some(format!(
        "{base}/api/v1/accounts/{account}/statuses?limit=40"
    ));
    while let Some(url) = next {
        let response = client.get(url).send().await.unwrap();
        let link = response.headers().get(LINK);
        next = link.map(|link| link_target(link.to_str().unwrap()));
        let body = response.bytes().await.unwrap();
        assert!(body.len() > 10_000, "a page is missing");
    }
}

fn link_target(link: &str) -> String {
    let end = link.find('>').unwrap();
    link[1..end].to_owned()
}
