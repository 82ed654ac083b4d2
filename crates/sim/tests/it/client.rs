//! A network to test, and a small HTTP client that shows all of an answer.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use kittiwake_sim::{Server, SimConfig, serve};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// 2026-09-21T14:13:20Z
pub(crate) const AT_US: i64 = 1_790_000_000_000_000;
pub(crate) const DAY_US: i64 = 86_400_000_000;

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json().as_array().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What was sent in chunks, put together again.
    pub(crate) fn unchunked(&self) -> String {
        assert_eq!(self.headers["transfer-encoding"], "chunked");
        let (mut whole, mut rest) = (String::new(), self.text.as_str());
        loop {
            let (length, begins) = rest.split_once("\r\n").unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            if length == 0 {
                return whole;
            }
            whole.push_str(&begins[..length]);
            rest = begins[length..].strip_prefix("\r\n").unwrap();
        }
    }

    /// Path and query of a link of the `Link` header.
    pub(crate) fn link(&self, rel: &str) -> Option<String> {
        let ending = format!(">; rel=\"{rel}\"");
        let link = self
            .headers
            .get("link")?
            .split(", ")
            .find(|link| link.ends_with(&ending))?;
        let url = link
            .strip_prefix('<')
            .unwrap()
            .strip_suffix(&ending)
            .unwrap();
        Some(url[url.find("/api").unwrap()..].to_owned())
    }
}

pub(crate) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros() as i64
}

pub(crate) struct Sim {
    pub(crate) server: Server,
}

impl Sim {
    pub(crate) async fn start(config: SimConfig) -> Self {
        Self {
            server: serve(config).await.unwrap(),
        }
    }

    pub(crate) async fn frozen(users: u64, seed: u64) -> Self {
        Self::start(SimConfig::frozen(users, seed, AT_US, now_us())).await
    }

    /// A world started at [`AT_US`], seen some days later.
    pub(crate) async fn seen_after(users: u64, seed: u64, days: i64) -> Self {
        let mut config = SimConfig::frozen(users, seed, AT_US, now_us() - days * DAY_US);
        config.speed = 1.0;
        Self::start(config).await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.get_as(target, None).await
    }

    pub(crate) async fn get_as(&self, target: &str, token: Option<&str>) -> Reply {
        self.call(target, token).await.unwrap()
    }

    /// An answer as far as there is one that can be read at all.
    pub(crate) async fn try_get(&self, target: &str) -> Option<Reply> {
        self.call(target, None).await
    }

    /// Calls an instance by its name, with a token.
    pub(crate) async fn get_at(&self, host: &str, target: &str) -> Reply {
        self.call_at(host, target, Some("ann")).await.unwrap()
    }

    /// The same without a token, and as far as there is an answer at all.
    pub(crate) async fn try_get_at(&self, host: &str, target: &str) -> Option<Reply> {
        self.call_at(host, target, None).await
    }

    async fn call(&self, target: &str, token: Option<&str>) -> Option<Reply> {
        let host = self.server.address().to_string();
        self.call_at(&host, target, token).await
    }

    /// The answer, unless it still has a mark.
    pub(crate) async fn get_if_none_match(&self, target: &str, mark: &str) -> Reply {
        let host = self.server.address().to_string();
        let header = format!("if-none-match: {mark}\r\n");
        self.send(&host, target, &header).await.unwrap()
    }

    async fn call_at(&self, host: &str, target: &str, token: Option<&str>) -> Option<Reply> {
        let authorization = token
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        self.send(host, target, &authorization).await
    }

    async fn send(&self, host: &str, target: &str, headers: &str) -> Option<Reply> {
        let mut socket = TcpStream::connect(self.server.address()).await.unwrap();
        let request =
            format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).await.ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Some(Reply {
            status,
            headers,
            text: body.to_owned(),
        })
    }

    /// Follows `next` links from a first page to the end.
    pub(crate) async fn walk(&self, first: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut target = Some(first.to_owned());
        while let Some(page) = target {
            let reply = self.get(&page).await;
            items.extend(reply.list());
            target = reply.link("next");
        }
        items
    }

    /// The same at an instance, with a token.
    pub(crate) async fn walk_at(&self, host: &str, first: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut target = Some(first.to_owned());
        while let Some(page) = target {
            let reply = self.get_at(host, &page).await;
            items.extend(reply.list());
            target = reply.link("next");
        }
        items
    }

    /// A whole table of the truth.
    pub(crate) async fn truth(&self, table: &str) -> Vec<Value> {
        self.truth_where(table, "").await
    }

    /// A table of the truth with further parameters.
    pub(crate) async fn truth_where(&self, table: &str, further: &str) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        loop {
            let after = rows
                .last()
                .map(|row| format!("&after={}", row["_after"].as_str().unwrap()));
            let after = after.unwrap_or_default();
            let page = self
                .get(&format!("/_sim/truth/{table}?limit=10000{after}{further}"))
                .await
                .lines();
            if page.is_empty() {
                return rows;
            }
            rows.extend(page);
        }
    }

    /// The id of somebody with lists, whatever goes wrong on the way.
    pub(crate) async fn account_id_of_seed(&self) -> String {
        let handle = self.server.seed_handles(1).remove(0);
        let target = format!("/api/v1/accounts/lookup?acct={handle}");
        loop {
            let reply = self.try_get(&target).await;
            let account: Option<Value> =
                reply.and_then(|reply| serde_json::from_str(&reply.text).ok());
            if let Some(id) = account.as_ref().and_then(|account| account["id"].as_str()) {
                return id.to_owned();
            }
        }
    }

    pub(crate) async fn account_of_seed(&self) -> Value {
        let handle = self.server.seed_handles(1).remove(0);
        let reply = self
            .get(&format!("/api/v1/accounts/lookup?acct={handle}"))
            .await;
        assert_eq!(reply.status, 200);
        reply.json()
    }
}

pub(crate) fn ids(items: &[Value]) -> Vec<String> {
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}
