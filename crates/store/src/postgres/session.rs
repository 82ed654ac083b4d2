//! A connection to the server, made when it is wanted and again when it was lost.

use super::error::refused;
use super::pipeline::Pipeline;
use super::tls::{self, Connector, TlsWish};
use crate::rules::service::no_thread;
use crate::{StoreError, StoreErrorKind};
use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Row, Socket};

/// How long a crawl waits for a server that is away.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
/// How long making a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long it may take until a server that is connected has agreed on everything.
const GREETING_WAIT: Duration = Duration::from_mins(1);
const TRY_AGAIN_MIN: Duration = Duration::from_millis(100);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(5);
/// Answers that may be outstanding.
const OUTSTANDING_MAX: usize = 4_096;

/// What whoever writes asks of the server's planner. Every statement of ours finds its rows by an
/// index, but a plan is made when tables are empty, and kept.
const PLAN_BY_INDEX: &str = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";

/// What a URL says: which server, and how the connection to it is protected.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: TlsWish,
}

#[derive(Debug)]
pub(super) struct Session {
    way: Way,
    patience: Duration,
    runtime: Runtime,
    client: RefCell<Arc<Client>>,
    pipeline: Pipeline,
}

impl Session {
    /// Tries once: whoever starts a crawl wants to know at once that there is no server.
    pub(super) fn open(address: Address, patience: Duration) -> Result<Self, StoreError> {
        let way = Way::new(address)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| no_thread(&error))?;
        let client = runtime.block_on(way.connect())?;
        Ok(Self {
            way,
            patience,
            runtime,
            client: RefCell::new(Arc::new(client)),
            pipeline: Pipeline::default(),
        })
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.client.borrow().clone()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.client.borrow().is_closed()
    }

    /// From now on plans are made for finding rows by their index. A server that knows no such setting
    /// needs none.
    pub(super) fn plan_by_index(&self) {
        if let Err(error) = self.batch(PLAN_BY_INDEX) {
            tracing::debug!(%error, "the server's planner is left alone");
        }
    }

    /// Connects again, with patience. Nothing of what was sent before is known afterwards.
    pub(super) fn connect_again(&self) -> Result<(), StoreError> {
        self.pipeline.clear();
        let client = self.patiently(|| self.runtime.block_on(self.way.connect()))?;
        *self.client.borrow_mut() = Arc::new(client);
        Ok(())
    }

    /// Tries again and again for as long as the server is away.
    pub(super) fn patiently<T>(
        &self,
        attempt: impl Fn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let mut pause = TRY_AGAIN_MIN;
        loop {
            match attempt() {
                Err(error)
                    if matches!(
                        error.kind(),
                        StoreErrorKind::Unreachable | StoreErrorKind::Locked
                    ) && started.elapsed() < self.patience =>
                {
                    tracing::warn!(%error, "the server is away; trying again");
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(TRY_AGAIN_MAX);
                }
                answer => return answer,
            }
        }
    }

    /// Sends without waiting; what goes wrong is heard of later.
    pub(super) fn send(&self, answer: impl Future<Output = Result<u64, Error>> + 'static) {
        self.pipeline.push(answer);
        if self.pipeline.len() > OUTSTANDING_MAX {
            let settled = self.pipeline.settle(OUTSTANDING_MAX / 2);
            self.runtime.block_on(settled);
        }
    }

    /// Waits for an answer, behind everything that was sent.
    pub(super) fn wait_for<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        let answered = self.runtime.block_on(self.pipeline.wait_for(answer));
        // What was sent before failed first, and this one because of it.
        answered.map_err(|error| {
            self.pipeline
                .take_failure()
                .unwrap_or_else(|| refused(error))
        })
    }

    /// Waits until everything that was sent is answered.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        self.runtime.block_on(self.pipeline.settle(0));
        self.pipeline.take_failure().map_or(Ok(()), Err)
    }

    /// Runs statements that have neither parameters nor results.
    pub(super) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        let client = self.client();
        self.wait_for(client.batch_execute(sql))
    }

    /// The rows of a question that is seldom asked.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Row>, StoreError> {
        let client = self.client();
        self.wait_for(client.query(sql, &[]))
    }

    /// One text, if there is one.
    pub(super) fn text(&self, sql: &str) -> Result<Option<String>, StoreError> {
        match self.rows(sql)?.first() {
            Some(row) => row.try_get(0).map_err(refused),
            None => Ok(None),
        }
    }
}

/// How connections to a server are made, as often as they are wanted.
#[derive(Debug)]
struct Way {
    config: Config,
    /// What encrypts, unless it is not to be.
    connector: Option<Connector>,
    /// The user has asked for connections without encryption.
    is_disabled: bool,
    may_do_without: bool,
    wait: Duration,
}

impl Way {
    fn new(address: Address) -> Result<Self, StoreError> {
        let Address { mut config, tls } = address;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WAIT);
        }
        if config.get_application_name().is_none() {
            config.application_name("kittiwake");
        }
        let wait = config.get_connect_timeout().copied().unwrap_or_default();
        Ok(Self {
            connector: tls.connector(&mut config)?,
            config,
            is_disabled: tls.is_disabled(),
            may_do_without: tls.may_do_without(),
            wait: wait.max(GREETING_WAIT),
        })
    }

    async fn connect(&self) -> Result<Client, StoreError> {
        let connected = tokio::time::timeout(self.wait, self.connect_somehow()).await;
        connected.unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::Unreachable,
                "the server takes connections and then does not answer; check that it is well, and \
                 that host and port are right",
            ))
        })
    }

    async fn connect_somehow(&self) -> Result<Client, StoreError> {
        let Some(connector) = &self.connector else {
            return self.connect_plain(&self.config).await;
        };
        let error = match self.config.connect(connector.clone()).await {
            Ok((client, connection)) => return Ok(keep_up(client, connection)),
            Err(error) => error,
        };
        if !self.may_do_without || !tls::is_for_encryption(&error) {
            return Err(tls::refused(error));
        }
        let mut config = self.config.clone();
        config.ssl_mode(SslMode::Disable);
        // What went wrong first says more.
        let plain = self.connect_plain(&config).await;
        plain.map_err(|_| tls::refused(error))
    }

    async fn connect_plain(&self, config: &Config) -> Result<Client, StoreError> {
        match config.connect(NoTls).await {
            Ok((client, connection)) => Ok(keep_up(client, connection)),
            Err(error) if self.is_disabled => Err(tls::refused_plain(error)),
            Err(error) => Err(refused(error)),
        }
    }
}

/// Serves a connection for as long as it lasts.
fn keep_up<S>(client: Client, connection: Connection<Socket, S>) -> Client
where
    S: TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the server has ended");
        }
    });
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_answers_is_not_waited_for_without_end() {
        // Whoever connects is taken by the system, and by nobody else.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for mode in ["disable", "require"] {
            let url = format!("postgres://a@127.0.0.1:{port}/d?sslmode={mode}");
            let mut way = Way::new(super::super::parse(&url).unwrap()).unwrap();
            assert_eq!(way.wait, GREETING_WAIT);
            way.wait = Duration::from_millis(50);
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let error = runtime.block_on(way.connect()).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unreachable);
            assert!(error.to_string().contains("does not answer"), "{error}");
        }
    }
}
