//! The program behind the server: what `kittiwake_serve` asks of it.

mod definitions;
mod logins;
mod online;
mod program;
mod runner;

pub(crate) use program::{Program, Secrets};

use crate::cli::{CrawlArguments, How, VaultArguments};
use crate::commands::crawl::stop_asked;
use crate::failure::{Failure, code};
use crate::{console, environment, machine, policies};
use kittiwake_serve::{Parts, RequestLine, ServeError, Settings};
use kittiwake_store::Location;
use runner::Runner;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

/// Enough to read and write what goes over the wire; questions to the crawl have others.
const THREADS: usize = 2;

/// Serves a crawl until it is told to stop: on threads of its own, so that however many look, the crawl comes
/// first.
pub(crate) async fn serve(
    place: &Location,
    ledger: Location,
    how: &How,
    program: Arc<Program>,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("serve")
        .on_thread_start(machine::step_back)
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start the server: {error}")))?;
    let served = serve_here(place.clone(), ledger, how.clone(), program, stop);
    let served = runtime.spawn(served).await;
    // Whoever still waits for an answer has been given time.
    runtime.shutdown_background();
    served.map_err(|error| Failure::other(format!("the server broke down: {error}")))?
}

async fn serve_here(
    place: Location,
    ledger: Location,
    how: How,
    program: Arc<Program>,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let public_url = how.public_url.as_ref().map(checked_url).transpose()?;
    machine::raise_open_files();
    let listener = bind(how.listen).await?;
    let listen = listener
        .local_addr()
        .map_err(|error| Failure::other(format!("cannot listen: {error}")))?;
    let settings = Settings {
        listen,
        public_url,
        has_password: program.has_password(),
    };
    if !listen.ip().is_loopback() && !settings.has_password {
        return Err(Failure::usage(ServeError::Unprotected(listen).to_string()));
    }
    let shown = settings
        .public_url
        .as_ref()
        .map_or_else(|| address(listen), Url::to_string);
    console::note(&format!("the dashboard is at {shown} until Ctrl-C"));
    let parts = Parts {
        location: place,
        ledger: Some(ledger),
        policies: policies::settings(),
        desk: program,
        now: environment::real_now,
        random: machine::random,
        log: how.log.map(|_| log_line as fn(&RequestLine)),
    };
    let served = kittiwake_serve::serve(listener, settings, parts, stop).await;
    served.map_err(|error| Failure::other(error.to_string()))
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        Failure::other(format!(
            "cannot listen on {listen}: {error}; choose another address, or port 0 for a free one"
        ))
    })
}

fn log_line(line: &RequestLine) {
    if let Ok(text) = serde_json::to_string(line) {
        console::note(&text);
    }
}

/// What browsers are told to open.
fn address(listen: SocketAddr) -> String {
    if listen.ip().is_unspecified() {
        return format!("http://127.0.0.1:{}/", listen.port());
    }
    format!("http://{listen}/")
}

/// Whoever is not on this machine speaks TLS, to a proxy in front.
fn checked_url(url: &Url) -> Result<Url, Failure> {
    let is_plain_here = url.scheme() == "http" && kittiwake_fetch::is_loopback_host(url);
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_nobody = url.username().is_empty() && url.password().is_none();
    if (url.scheme() == "https" || is_plain_here) && is_bare && has_nobody && url.host().is_some() {
        return Ok(url.clone());
    }
    Err(Failure::usage(
        "--public-url is what browsers open, without a path: https://crawl.example",
    ))
}

/// Crawls, and shows it: the server stays when a run ends, and can begin another.
pub(crate) async fn crawl(
    arguments: CrawlArguments,
    vault: &VaultArguments,
    ledger: Location,
    how: How,
) -> Result<ExitCode, Failure> {
    let place = environment::with_password(&arguments.into);
    let secrets = if arguments.anonymous {
        Secrets::without_asking(vault)?
    } else {
        Secrets::open(vault)?
    };
    let runner = Arc::new(Runner::new(arguments, &secrets, ledger.clone()));
    Runner::start(&runner).await?;
    let program = Program::new(secrets, &place, ledger.clone(), Some(Arc::clone(&runner)));
    let program = Arc::new(match program {
        Ok(program) => program,
        Err(failure) => {
            runner.close().await;
            return Err(failure);
        }
    });
    let (ask_to_stop, stop) = watch::channel(false);
    let closing = tokio::spawn(close_when_asked(Arc::clone(&runner), ask_to_stop));
    let served = serve(&place, ledger, &how, program, stop).await;
    runner.close().await;
    closing.abort();
    served?;
    Ok(ExitCode::from(runner.exit_code()))
}

/// Asks the crawl to stop, then the server; asked twice, it ends at once.
#[expect(
    clippy::exit,
    reason = "the user asked twice; everything committed is safe"
)]
async fn close_when_asked(runner: Arc<Runner>, ask_to_stop: watch::Sender<bool>) {
    stop_asked().await;
    console::note("stopping: finishing what is in flight; once more to stop at once");
    tokio::select! {
        () = runner.close() => {}
        () = stop_asked() => std::process::exit(i32::from(code::INTERRUPTED)),
    }
    let _ = ask_to_stop.send(true);
}
