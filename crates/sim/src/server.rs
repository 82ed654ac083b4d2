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
use crate::fediverse::{Canary, INSTANCES_MAX, Instance, Plan};
use crate::http::{self, Books, Shared};
use crate::hub::Hub;
use crate::mastodon::AccountCache;
use crate::wire::{Peer, WireListener};
use crate::world::{Moment, World};
use crate::{Dialect, Limits, SimConfig, SimError};

/// How long a shutdown waits for requests that are being answered.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(2);

/// A running synthetic network. Dropping it leaves it running until its runtime ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seed: u64,
    at_us: i64,
    hub: Arc<Hub>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts a synthetic network; it answers from the moment this returns.
pub async fn serve(config: SimConfig) -> Result<Server, SimError> {
    let clock = Arc::new(Clock::new(&config, machine_now_us)?);
    let (instances, troubled) = (config.instances, config.troubled_instances);
    if !(1..=INSTANCES_MAX).contains(&instances) || troubled >= instances {
        return Err(SimError::Instances {
            instances,
            troubled,
        });
    }
    if config.dialect != Dialect::Mastodon && instances > 1 {
        return Err(SimError::DialectOfInstances);
    }
    let mut world = World::new(config.seed, config.users, config.at_us)?;
    if let Some(days) = config.habits_day {
        world.change_habits(days)?;
    }
    let refused = |source| SimError::Listen {
        address: config.listen,
        source,
    };
    let listener = TcpListener::bind(config.listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let (canary, instances) = if instances > 1 {
        let canary = Canary::listen().await.map_err(refused)?;
        let plan = Plan {
            seed: config.seed,
            instances,
            troubled,
            port: address.port(),
            canary: canary.address,
        };
        (Some(canary), plan.instances())
    } else {
        (None, Vec::new())
    };
    let all = shared_by_instance(&config, world, &clock, instances);
    let hub = Arc::new(Hub::new(all, canary));
    let router = http::router(Arc::clone(&hub));
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
        hub,
        stop,
        task,
    })
}

/// What the requests of each instance share; of one server if there are no instances.
fn shared_by_instance(
    config: &SimConfig,
    mut world: World,
    clock: &Arc<Clock>,
    instances: Vec<Instance>,
) -> Vec<Arc<Shared>> {
    if !instances.is_empty() {
        world.settle(instances.iter().map(Instance::home_plan).collect());
    }
    let world = Arc::new(world);
    let faults = Arc::new(FaultState::new(config.seed, config.faults));
    let shared = |instance: Option<Instance>| {
        let limits = match (&config.limits, &instance) {
            (Limits::Strict, Some(instance)) if instance.is_sound() => instance.software.limits(),
            // Nobody counts where nobody answers.
            (_, Some(instance)) if !instance.is_sound() && !instance.is_lying() => Limits::Off,
            (Limits::Strict, None) => config.dialect.strict_limits(),
            (limits, _) => limits.clone(),
        };
        Arc::new(Shared {
            world: Arc::clone(&world),
            clock: Arc::clone(clock),
            latency: Duration::from_millis(config.latency_ms),
            seed: config.seed,
            faults: Arc::clone(&faults),
            stall: Duration::from_millis(config.stall_ms),
            accounts: AccountCache::default(),
            books: Mutex::new(Books::new(&limits)),
            has_limits_page: matches!(config.limits, Limits::Declared(_)),
            instance,
            speech: config.dialect.speech(),
        })
    };
    if instances.is_empty() {
        return vec![shared(None)];
    }
    instances.into_iter().map(Some).map(shared).collect()
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
        self.hub.first().clock.spec()
    }

    /// One line of JSON that says where the network is and how its clocks run.
    pub fn ready_line(&self) -> String {
        let shared = self.hub.first();
        let mut line = json!({
            "listening": self.url(),
            "users": shared.world.users(),
            "seed": self.seed,
            "clock": shared.clock.spec(),
        });
        if let Some(from_us) = shared.world.habits_from_us() {
            line["habits_from_us"] = json!(from_us);
        }
        if let Some(canary) = self.hub.canary() {
            line["instances"] = json!(self.hosts());
            line["canary"] = json!(canary.address.to_string());
        }
        line.to_string()
    }

    /// Host and port of every instance; none if everybody is on one server.
    pub fn hosts(&self) -> Vec<String> {
        let instances = self.hub.instances();
        instances
            .into_iter()
            .map(|instance| instance.host().to_owned())
            .collect()
    }

    /// How often somebody called the listener that stands for all private addresses.
    pub fn canary_calls(&self) -> u64 {
        self.hub
            .canary()
            .map_or(0, |canary| canary.dialled().dialled)
    }

    /// Handles of users to begin a crawl with: the most followed who were shown, wrote and followed
    /// somebody when the world started. With their host if there are several.
    pub fn seed_handles(&self, count: usize) -> Vec<String> {
        let world = &self.hub.first().world;
        let users = world
            .seed_users(Moment::undisturbed(self.at_us))
            .take(count);
        users
            .map(|user| {
                let username = world.username(user, self.at_us);
                if world.is_settled() {
                    return format!("{username}@{}", world.host(user));
                }
                username
            })
            .collect()
    }

    /// Calls that broke a limit so far.
    pub fn violations(&self) -> u64 {
        let violations = |shared: &Arc<Shared>| shared.books().ledger.violations_total();
        self.hub.all().iter().map(violations).sum()
    }

    /// Stops listening, lets requests that are being answered finish, and returns.
    pub async fn shutdown(self) {
        let Self {
            stop,
            mut task,
            hub,
            ..
        } = self;
        if let Some(canary) = hub.canary() {
            canary.stop();
        }
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
