//! The crawl of this process: it runs, ends, and can be begun again.

use super::Secrets;
use crate::cli::{CrawlArguments, VaultArguments};
use crate::commands::crawl::{self, Ready, Watched};
use crate::failure::{Failure, code};
use crate::place::Place;
use crate::{console, environment};
use kittiwake_engine::{Clock, Progress, Snapshot};
use kittiwake_model::{LimitTime, WorldTime};
use kittiwake_network::Network;
use kittiwake_store::{Location, OpenMode};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How long a crawl may take to make its file.
const FILE_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    NotYet,
    Well,
    Failed(String),
}

/// A run that is under way.
#[derive(Debug, Clone)]
struct Running {
    progress: Arc<Progress>,
    clock: Clock,
    stop: watch::Sender<bool>,
    /// Becomes true when it is over.
    over: watch::Receiver<bool>,
}

#[derive(Debug)]
pub(crate) struct Runner {
    /// Where crawls run, whoever begins them: the server's threads stand behind these.
    threads: Handle,
    arguments: CrawlArguments,
    vault: VaultArguments,
    ledger: Location,
    /// The text of a definition that was given since.
    definition: Mutex<Option<String>>,
    /// Only one begins at a time.
    beginning: tokio::sync::Mutex<()>,
    running: Mutex<Option<Running>>,
    has_begun: AtomicBool,
    is_closing: AtomicBool,
    exit_code: AtomicU8,
}

impl Runner {
    pub(crate) fn new(arguments: CrawlArguments, secrets: &Secrets, ledger: Location) -> Self {
        Self {
            threads: Handle::current(),
            arguments,
            vault: secrets.arguments(),
            ledger,
            definition: Mutex::default(),
            beginning: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            has_begun: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            exit_code: AtomicU8::new(0),
        }
    }

    fn running(&self) -> Option<Running> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    pub(crate) fn progress(&self) -> Option<Snapshot> {
        self.running().map(|it| it.progress.snapshot())
    }

    pub(crate) fn clocks(&self) -> Option<(WorldTime, LimitTime)> {
        self.running()
            .map(|it| (it.clock.world(), it.clock.limit()))
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code.load(Ordering::Relaxed)
    }

    pub(crate) fn arguments(&self) -> &CrawlArguments {
        &self.arguments
    }

    /// Where the network is asked, by the definition that holds now.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        let arguments = &self.arguments;
        let given = self
            .definition
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(text) = given.as_deref() else {
            return Place::find(&arguments.network, arguments.host.as_deref());
        };
        let network = Network::parse("the definition that was given", text)
            .map_err(|errors| Failure::usage(errors.to_string()))?;
        let named_host = arguments.network.rsplit_once('@').map(|(_, host)| host);
        Place::of(network, named_host, arguments.host.as_deref())
    }

    /// Begins a run, and returns when its file is there.
    pub(crate) async fn start(this: &Arc<Self>) -> Result<(), Failure> {
        let begun = this.threads.spawn(Self::begin(Arc::clone(this)));
        begun
            .await
            .map_err(|error| Failure::other(format!("the crawl broke down: {error}")))?
    }

    async fn begin(this: Arc<Self>) -> Result<(), Failure> {
        let _alone = this.beginning.lock().await;
        if this.is_running() || this.is_closing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let ready = this.ready().await?;
        let (stop, stopping) = watch::channel(false);
        let (tell_over, over) = watch::channel(false);
        let progress: Arc<Progress> = Arc::default();
        let running = Running {
            progress: Arc::clone(&progress),
            clock: ready.clock.clone(),
            stop,
            over: over.clone(),
        };
        *this.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        let watched = Watched {
            stop: stopping,
            progress,
            is_quiet: this.arguments.quiet,
        };
        let runner = Arc::clone(&this);
        let (tell_end, ended) = watch::channel(Ending::NotYet);
        tokio::spawn(async move {
            let ending = runner.run(ready, watched).await;
            *runner
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = None;
            let _ = tell_end.send(ending);
            let _ = tell_over.send(true);
        });
        this.wait_for_file(&ended).await
    }

    async fn ready(&self) -> Result<Ready, Failure> {
        let mut arguments = self.arguments.clone();
        if self.has_begun.swap(true, Ordering::Relaxed) {
            // They were read from standard input once, and are in the file.
            arguments.seeds.retain(|seed| seed != "-");
        }
        let contact = arguments.contact.clone();
        let ready =
            crawl::ready_at(self.place()?, &arguments, contact.as_deref(), &self.vault).await?;
        crawl::note_what_is_odd(&ready, arguments.quiet);
        Ok(ready)
    }

    /// One run, from beginning to end.
    async fn run(&self, ready: Ready, watched: Watched) -> Ending {
        let started = Instant::now();
        let into = environment::with_password(&self.arguments.into);
        let crawled = Box::pin(crawl::crawl_into(ready, &into, &self.ledger, watched)).await;
        match crawled {
            Ok(report) => {
                let code = crawl::exit_code(&report.end);
                self.exit_code.store(code, Ordering::Relaxed);
                crawl::show(&self.arguments, &report, started.elapsed());
                Ending::Well
            }
            Err(failure) => {
                self.exit_code.store(failure.code, Ordering::Relaxed);
                console::error(&failure.message);
                Ending::Failed(failure.message)
            }
        }
    }

    async fn wait_for_file(&self, ended: &watch::Receiver<Ending>) -> Result<(), Failure> {
        let place = environment::with_password(&self.arguments.into);
        let started = Instant::now();
        while started.elapsed() < FILE_PATIENCE {
            if let Ending::Failed(failure) = &*ended.borrow() {
                return Err(Failure {
                    message: failure.clone(),
                    code: self.exit_code(),
                });
            }
            let looked = place.clone();
            let is_there = tokio::task::spawn_blocking(move || {
                looked.is_crawled().unwrap_or(false) && looked.open(OpenMode::Read).is_ok()
            });
            if is_there.await.unwrap_or(false) || *ended.borrow() == Ending::Well {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(Failure::other(format!(
            "the crawl has not begun within {} s; look for what holds it up with: kittiwake status",
            FILE_PATIENCE.as_secs()
        )))
    }

    /// Asks the run to end, and waits until everything is stored.
    async fn end(&self) {
        if let Some(mut running) = self.running() {
            let _ = running.stop.send(true);
            let _ = running.over.wait_for(|is_over| *is_over).await;
        }
    }

    /// Ends the run, and begins no other.
    pub(crate) async fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.end().await;
    }

    /// Goes on with another definition of the network. A run that is under way ends where it can be gone on
    /// with, and another begins.
    pub(crate) async fn apply(this: Arc<Self>, text: String) -> Result<bool, Failure> {
        let was_running = this.is_running();
        *this
            .definition
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(text);
        if was_running {
            this.end().await;
            if this.exit_code() == code::INTERRUPTED {
                this.exit_code.store(0, Ordering::Relaxed);
            }
            Self::start(&this).await?;
        }
        Ok(was_running)
    }
}
