//! The servers that are crawled, each in a process of its own: the pages, at the least cost, and
//! the synthetic network.

use crate::pages::{PAGES_PER_TIMELINE, Pages, Place};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use kittiwake_sim::SimConfig;
use std::collections::HashMap;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// 2026-06-01T12:00:00Z, as in `kittiwake sim serve`.
const WORLD_AT_US: i64 = 1_780_315_200_000_000;

struct Served {
    pages: Pages,
    address: SocketAddr,
    pace: Pace,
    count: AtomicU64,
}

/// How quickly pages are given.
pub(crate) struct Pace {
    latency: Duration,
    /// From one page to the next; nothing if they come as they are asked for.
    pause: Duration,
    next_at: Mutex<Instant>,
}

impl Pace {
    /// Each page takes so long.
    pub(crate) fn latency(latency: Duration) -> Self {
        Self {
            latency,
            pause: Duration::ZERO,
            next_at: Mutex::new(Instant::now()),
        }
    }

    /// So many in a second at the most; 0 for as many as are asked for.
    pub(crate) fn pages_per_second(pages: u32) -> Self {
        let pause = Duration::from_secs(1).checked_div(pages);
        Self {
            pause: pause.unwrap_or_default(),
            ..Self::latency(Duration::ZERO)
        }
    }

    async fn wait(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        if self.pause.is_zero() {
            return;
        }
        let turn = {
            let mut next_at = self.next_at.lock().unwrap();
            let turn = (*next_at).max(Instant::now());
            *next_at = turn + self.pause;
            turn
        };
        tokio::time::sleep_until(turn).await;
    }
}

/// Prints its address and serves pages until standard input is closed.
pub(crate) fn serve_pages(pace: Pace) {
    // One thread is enough, and cheaper than several.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served {
            pages: Pages::new(),
            address,
            pace,
            count: AtomicU64::new(0),
        };
        let router = Router::new()
            .route("/api/v1/accounts/{account}/statuses", get(timeline))
            .route("/count", get(count))
            .with_state(Arc::new(served));
        let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
        println!("{address}");
        tokio::select! {
            _ = axum::serve(listener, router) => {}
            () = input_closed() => {}
        }
    });
}

/// Prints the address and a user, and serves a synthetic network until standard input is closed.
pub(crate) fn serve_world(users: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let config = SimConfig::frozen(users, 1, WORLD_AT_US, WORLD_AT_US);
        let server = kittiwake_sim::serve(config);
        let server = server.await.unwrap();
        let handles = server.seed_handles(1);
        println!("{} {}", server.address(), handles.join(" "));
        input_closed().await;
        server.shutdown().await;
    });
}

/// A server must not outlive the benchmark that started it, however that ends.
pub(crate) async fn input_closed() {
    let (closed, close) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = closed.send(());
    });
    let _ = close.await;
}

/// How many pages were served.
async fn count(State(served): State<Arc<Served>>) -> String {
    served.count.load(Ordering::Relaxed).to_string()
}

async fn timeline(
    State(served): State<Arc<Served>>,
    Path(account): Path<u64>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Response {
    let max_id = parameters.get("max_id").map(|id| id.parse());
    let Ok(max_id) = max_id.transpose() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(place) = Place::find(account, max_id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    served.pace.wait().await;
    served.count.fetch_add(1, Ordering::Relaxed);
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, json);
    if let Some(next) = place.next() {
        let address = served.address;
        let link = format!(
            "<http://{address}/api/v1/accounts/{account}/statuses?limit=40&max_id={next}>; rel=\"next\""
        );
        headers.insert(header::LINK, HeaderValue::try_from(link).unwrap());
    }
    (headers, served.pages.render(place)).into_response()
}

/// How many timelines hold so many pages.
pub(crate) fn timelines(pages: u64) -> u64 {
    pages.div_ceil(PAGES_PER_TIMELINE)
}
