//! Starting and stopping the network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kittiwake_model::clock::ClockSpec;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::clock::{Clock, machine_now_us};
use crate::faults::FaultState;
use crate::http::{self, Books, Shared};
use crate::mastodon::AccountCache;
use crate::wire::{Peer, WireListener};
use crate::world::{Moment, World};
use crate::{SimConfig, SimError};

/// How long a shutdown waits for requests that are being answered.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(2);

/// A running synthetic network. Dropping it leaves it running until its runtime ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seed: u64,
    at_us: i64,
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts a synthetic network; it answers from the moment this returns.
pub async fn serve(config: SimConfig) -> Result<Server, SimError> {
    let clock = Clock::new(&config, machine_now_us)?;
    let world = World::new(config.seed, config.users, config.at_us)?;
    let refused = |source| SimError::Listen {
        address: config.listen,
        source,
    };
    let listener = TcpListener::bind(config.listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let shared = Arc::new(Shared {
        world,
        clock,
        latency: Duration::from_millis(config.latency_ms),
        seed: config.seed,
        faults: FaultState::new(config.seed, config.faults),
        stall: Duration::from_millis(config.stall_ms),
        accounts: AccountCache::default(),
        books: Mutex::new(Books::new(&config.limits)),
    });
    let router = http::router(Arc::clone(&shared));
    let service = router.into_make_service_with_connect_info::<Peer>();
    let listener = WireListener(listener);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
            // A server that was dropped without a word goes on.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        // axum's server has no way to fail: a connection that breaks is only dropped.
        drop(serving.await);
    });
    Ok(Server {
        address,
        seed: config.seed,
        at_us: config.at_us,
        shared,
        stop,
        task,
    })
}

impl Server {
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where calls go, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn clock(&self) -> ClockSpec {
        self.shared.clock.spec()
    }

    /// One line of JSON that says where the network is and how its clocks run.
    pub fn ready_line(&self) -> String {
        json!({
            "listening": self.url(),
            "users": self.shared.world.users(),
            "seed": self.seed,
            "clock": self.shared.clock.spec(),
        })
        .to_string()
    }

    /// Handles of users to begin a crawl with: the most followed who were shown, wrote and followed
    /// somebody when the world started.
    pub fn seed_handles(&self, count: usize) -> Vec<String> {
        let world = &self.shared.world;
        let users = world
            .seed_users(Moment::undisturbed(self.at_us))
            .take(count);
        users.map(|user| world.username(user, self.at_us)).collect()
    }

    /// Calls that broke a limit so far.
    pub fn violations(&self) -> u64 {
        self.shared.books().ledger.violations_total()
    }

    /// Stops listening, lets requests that are being answered finish, and returns.
    pub async fn shutdown(self) {
        let Self { stop, mut task, .. } = self;
        // The task may be over already; then there is nothing left to stop.
        let _ = stop.send(());
        if tokio::time::timeout(SHUTDOWN_WAIT, &mut task)
            .await
            .is_err()
        {
            task.abort();
        }
    }
}
