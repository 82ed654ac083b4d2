//! `kittiwake crawl`: the main job.

use crate::cli::{
    CrawlArguments, CrawlCommand, FollowChoice, LimitsChoice, PaceChoice, VaultArguments,
};
use crate::credentials::{self, Wanted};
use crate::failure::{Failure, code};
use crate::place::{GUARD, Place, parse_base};
use crate::reach::Reach;
use crate::{console, crash, environment, history, policies, robots, serving, summary};
use kittiwake_engine::{
    Clock, CrashHook, CrawlReport, CrawlSettings, Credential, End, Guide, Limits, Pace, Parts,
    Progress, Rounds,
};
use kittiwake_fetch::{FetchConfig, Fetcher, HostTrust, Request, is_loopback_host};
use kittiwake_frontier::Spill;
use kittiwake_frontier::order::remove_within;
use kittiwake_model::{ClockSpec, Follow, Name, Unit};
use kittiwake_network::{AuthNeed, Network};
use kittiwake_store::ledger::Ledger;
use kittiwake_store::{Location, OpenMode};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The share of an allowance that is left to others on hosts one does not own.
const RESERVE: f64 = 0.1;
/// On the same machine there is one clock.
const GUARD_LOOPBACK: Duration = Duration::from_millis(2);
/// How long a host may be out of reach before a crawl gives up.
const HOST_PATIENCE: Duration = Duration::from_mins(10);
/// A server on the same machine is up or it is not.
const HOST_PATIENCE_LOOPBACK: Duration = Duration::from_secs(5);
/// The first pause before a failed call is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// A server of one's own needs no politeness.
const RETRY_PAUSE_LOOPBACK: Duration = Duration::from_millis(20);
const SEEDS_MAX: usize = 1_000_000;
/// Seeds that the run's record names.
const SEEDS_RECORDED_MAX: usize = 100;

pub(crate) async fn run(
    CrawlCommand {
        crawl: arguments,
        serving,
    }: CrawlCommand,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let ledger = environment::ledger_place(arguments.budgets.as_ref())?;
    if let Some(listen) = serving.serve {
        let how = serving.at(listen);
        return Box::pin(serving::crawl(arguments, vault, ledger, how)).await;
    }
    let started = Instant::now();
    let report = Box::pin(crawl(&arguments, vault, &ledger)).await?;
    show(&arguments, &report, started.elapsed());
    Ok(ExitCode::from(exit_code(&report.end)))
}

/// Shows what a run did.
pub(crate) fn show(arguments: &CrawlArguments, report: &CrawlReport, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    if arguments.json {
        console::output(&summary::crawled(&arguments.into, report, seconds).to_string());
    } else {
        let text = format!(
            "{}{}",
            summary::table(&report.summary),
            summary::ending(report, seconds)
        );
        console::output(text.trim_end());
    }
}

pub(crate) fn exit_code(end: &End) -> u8 {
    match end {
        End::Idle | End::Stopped => 0,
        End::Interrupted => code::INTERRUPTED,
        End::Time | End::Calls | End::Spend(_) | End::HostDown(_) | End::ShutOut(_) => code::CAPPED,
        End::AuthExpired(_) => code::AUTHENTICATION,
    }
}

/// A crawl that could begin: what it is to do, and with what.
#[derive(Clone)]
pub(crate) struct Ready {
    pub settings: CrawlSettings,
    pub fetcher: Fetcher,
    pub clock: Clock,
    pub crash: CrashHook,
    /// How robots decide whom to visit again.
    pub guides: BTreeMap<Name, Guide>,
    /// How many subjects robots hold in memory together.
    pub in_memory: usize,
    /// Whether the server runs on this machine, and by its time.
    pub is_own_server: bool,
}

/// Finds out what the arguments mean. `contact` is what a host's owner is told.
pub(crate) async fn ready(
    arguments: &CrawlArguments,
    contact: Option<&str>,
    vault: &VaultArguments,
) -> Result<Ready, Failure> {
    let place = Place::find(&arguments.network, arguments.host.as_deref())?;
    ready_at(place, arguments, contact, vault).await
}

/// The same for a network at a place, whatever the arguments call it.
pub(crate) async fn ready_at(
    mut place: Place,
    arguments: &CrawlArguments,
    contact: Option<&str>,
    vault: &VaultArguments,
) -> Result<Ready, Failure> {
    let reach = Reach::find(&place.network, &arguments.hosts, &arguments.at)?;
    place.loopback &= reach.is_this_machine();
    place.own_hosts = place.own_hosts_at(&reach.named);
    let user_agent = place.user_agent(contact)?;
    let fetcher = Fetcher::new(FetchConfig {
        user_agent,
        per_host_max: usize::from(arguments.concurrency),
        ..FetchConfig::default()
    })
    .map_err(|error| Failure::other(error.to_string()))?;
    let crash = crash::hook()?;
    let wanted = Wanted {
        anonymous: arguments.anonymous,
        names: &arguments.credentials,
        vault,
    };
    // Before anything is sent: what must not be used together is not used at all.
    let credentials = credentials::find(&place, wanted, &fetcher, &crash)?;
    let permission = arguments.i_have_permission.as_deref();
    credentials::check_pooling(&place.network, &credentials, permission)?;
    let spec = clock_spec(&fetcher, arguments.clock_from.as_deref()).await?;
    let clock = Clock::new(spec.clone(), environment::real_now);
    let settings = settings(arguments, (place, reach), &spec, credentials)?;
    let guides = policies::choose(
        &settings.network,
        &settings.robots,
        &arguments.policies,
        &arguments.worths,
    )?;
    Ok(Ready {
        guides,
        in_memory: arguments.in_memory as usize,
        is_own_server: is_loopback_host(&settings.base) && spec.is_real(),
        settings,
        fetcher,
        clock,
        crash,
    })
}

/// Crawls as the arguments say.
pub(crate) async fn crawl(
    arguments: &CrawlArguments,
    vault: &VaultArguments,
    ledger: &Location,
) -> Result<CrawlReport, Failure> {
    let ready = ready(arguments, arguments.contact.as_deref(), vault).await?;
    note_what_is_odd(&ready, arguments.quiet);
    let into = environment::with_password(&arguments.into);
    Box::pin(crawl_alone(ready, &into, ledger, arguments.quiet)).await
}

/// Crawls into a place until Ctrl-C.
pub(crate) async fn crawl_alone(
    ready: Ready,
    into: &Location,
    ledger: &Location,
    is_quiet: bool,
) -> Result<CrawlReport, Failure> {
    let (ask_to_stop, stop) = watch::channel(false);
    let listening = tokio::spawn(watch_for_stop(ask_to_stop));
    let watched = Watched {
        stop,
        progress: Arc::default(),
        is_quiet,
    };
    let report = Box::pin(crawl_into(ready, into, ledger, watched)).await;
    listening.abort();
    report
}

/// Says what a person may not expect of the crawl.
pub(crate) fn note_what_is_odd(ready: &Ready, is_quiet: bool) {
    let settings = &ready.settings;
    if is_quiet {
        return;
    }
    if ready.is_own_server && settings.limits != Limits::Off {
        console::note(
            "the network's declared limits are kept; for a server of your own that has none, --limits off lifts them",
        );
    }
    note_locked_robots(settings);
}

/// How a crawl is looked at, and told to stop.
#[derive(Debug)]
pub(crate) struct Watched {
    pub stop: watch::Receiver<bool>,
    pub progress: Arc<Progress>,
    pub is_quiet: bool,
}

/// Crawls into a place.
pub(crate) async fn crawl_into(
    ready: Ready,
    into: &Location,
    ledger: &Location,
    watched: Watched,
) -> Result<CrawlReport, Failure> {
    let ledger = match ready.settings.limits {
        Limits::Keep { .. } => Some(Ledger::open(ledger)?),
        Limits::Off => None,
    };
    let store = into.open(OpenMode::Crawl)?;
    let index = index_folder(into)?;
    let Watched {
        stop,
        progress,
        is_quiet,
    } = watched;
    let shown = (!is_quiet)
        .then(|| console::ProgressLines::start(Arc::clone(&progress), ready.clock.clone()));
    let parts = Parts {
        store: store.into(),
        ledger,
        fetcher: ready.fetcher,
        clock: ready.clock,
        guides: ready.guides,
        progress,
        crash: ready.crash,
        spill: Some(Spill {
            folder: index.clone(),
            ranked_max: ready.in_memory,
        }),
        stop,
        jitter_seed: environment::real_now().micros().unsigned_abs(),
        node: environment::node_name(),
    };
    let report = Box::pin(kittiwake_engine::crawl(ready.settings, parts)).await;
    drop(shown);
    // It is made anew from the store by the next run; a large one is in the way.
    remove_within(&index);
    Ok(report?)
}

/// Where a crawl's order goes that memory does not hold: beside its file or, for a crawl on a server, among
/// what this user's programs keep.
fn index_folder(into: &Location) -> Result<PathBuf, Failure> {
    if let Some(file) = into.file() {
        let mut name = file.as_os_str().to_owned();
        name.push(".index");
        return Ok(name.into());
    }
    let digest = Sha256::digest(into.to_string().as_bytes());
    let name = format!("{digest:x}");
    // Anything that can be made again.
    let folder = environment::cache_folder().map_or_else(environment::state_folder, Ok)?;
    Ok(folder.join("index").join(name))
}

/// Says which robots can do nothing without a credential.
fn note_locked_robots(settings: &CrawlSettings) {
    let network = &settings.network;
    let is_locked = |name: &&Name| {
        if settings.credentials.iter().any(|it| it.serves(name)) {
            return false;
        }
        let steps = network.robot(name).into_iter().flat_map(|it| &it.steps);
        let mut queries = steps.filter_map(|step| network.query(&step.query));
        queries.any(|query| query.auth == AuthNeed::Required)
    };
    let locked: Vec<&str> = settings
        .robots
        .iter()
        .filter(is_locked)
        .map(|it| &**it)
        .collect();
    if !locked.is_empty() {
        console::note(&format!(
            "there is no credential, and nothing is answered without one to {}: kittiwake login {}@{} \
             gets one",
            locked.join(", "),
            network.name(),
            settings.host
        ));
    }
}

/// The clocks of a synthetic network, or the machine's own.
async fn clock_spec(fetcher: &Fetcher, address: Option<&str>) -> Result<ClockSpec, Failure> {
    let Some(address) = address else {
        return Ok(ClockSpec::real());
    };
    let base = parse_base("--clock-from", address)?;
    if !is_loopback_host(&base) {
        return Err(Failure::usage(
            "--clock-from takes only a synthetic network on loopback",
        ));
    }
    let url = base
        .join("/_sim/clock")
        .map_err(|error| Failure::usage(error.to_string()))?;
    let response = fetcher
        .fetch(Request::get(url, HostTrust::Named))
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    let spec: ClockSpec = serde_json::from_slice(&response.body).map_err(|_| {
        Failure::usage(format!(
            "{address} is no synthetic network: it gives no clock"
        ))
    })?;
    if spec.is_sound() {
        Ok(spec)
    } else {
        Err(Failure::usage(format!(
            "{address} gives a clock that cannot be"
        )))
    }
}

fn settings(
    arguments: &CrawlArguments,
    (place, reach): (Place, Reach),
    spec: &ClockSpec,
    credentials: Vec<Credential>,
) -> Result<CrawlSettings, Failure> {
    let Place {
        network,
        base,
        host,
        loopback,
        ..
    } = place;
    let seeds = seeds(arguments, &network, &host)?;
    let loopback = loopback || reach.is_this_machine() && are_this_machine(&network, &seeds);
    let limits = limits(arguments, loopback, spec)?;
    if let Some(cap) = &arguments.spend {
        check_currency(&network, &cap.currency)?;
    }
    let robots = robots::choose(&network, &arguments.robots, &arguments.without)?;
    if arguments
        .include_opted_out
        .as_ref()
        .is_some_and(|reason| reason.trim().is_empty())
    {
        return Err(Failure::usage(
            "--include-opted-out wants the reason, in words: it is kept in the run's record",
        ));
    }
    let clock_source = match &arguments.clock_from {
        Some(_) => format!("synthetic from {}", spec.real_origin_us),
        None => "real".to_owned(),
    };
    Ok(CrawlSettings {
        record: json!({
            "version": env!("CARGO_PKG_VERSION"),
            "until_idle": arguments.until_idle,
            "again": arguments.again,
            "policies": arguments.policies,
            "worths": arguments.worths,
            "concurrency": arguments.concurrency,
            "seeds": seeds.len(),
            "first_seeds": seeds.iter().take(SEEDS_RECORDED_MAX).collect::<Vec<_>>(),
            "limits": format!("{limits:?}"),
            "history": history::text(arguments.history),
            "include_opted_out": arguments.include_opted_out,
            "hosts": arguments.hosts,
            "permission": arguments.i_have_permission,
            "credentials": credentials::record(&credentials),
            "raw": arguments.raw,
            "calls_max": arguments.calls,
            "seconds_max": arguments.time.map(|time| time.as_secs_f64()),
            "spend_max": arguments.spend.as_ref().map(ToString::to_string),
        }),
        base,
        host,
        hosts: reach.hosts,
        named_hosts: reach.named,
        seeds,
        depth: arguments.depth,
        follow: follow(arguments.follow),
        robots,
        rounds: match (arguments.again, arguments.until_idle) {
            (true, _) => Rounds::Another,
            (false, true) => Rounds::One,
            (false, false) => Rounds::Endless,
        },
        history: arguments.history,
        include_opted_out: arguments.include_opted_out.is_some(),
        calls_max: arguments.calls,
        time_max: arguments.time,
        spend_max: arguments.spend.clone(),
        concurrency: usize::from(arguments.concurrency),
        limits,
        credentials,
        clock_source,
        host_patience: if loopback {
            HOST_PATIENCE_LOOPBACK
        } else {
            HOST_PATIENCE
        },
        retry_pause: if loopback {
            RETRY_PAUSE_LOOPBACK
        } else {
            RETRY_PAUSE
        },
        keep_raw: arguments.raw,
        network: Arc::new(network),
    })
}

fn limits(arguments: &CrawlArguments, loopback: bool, spec: &ClockSpec) -> Result<Limits, Failure> {
    match arguments.limits {
        LimitsChoice::Keep => Ok(Limits::Keep {
            reserve: arguments
                .reserve
                .unwrap_or(if loopback { 0.0 } else { RESERVE }),
            guard: if loopback {
                GUARD_LOOPBACK.mul_f64(spec.limit.rate.max(1.0))
            } else {
                GUARD
            },
            pace: match arguments.pace {
                PaceChoice::Even => Pace::Even,
                PaceChoice::Burst => Pace::Burst,
            },
        }),
        LimitsChoice::Off if loopback => Ok(Limits::Off),
        LimitsChoice::Off => Err(Failure::usage(
            "--limits off is taken only for hosts on loopback; limits of others are kept",
        )),
    }
}

/// Whether everybody who was named lives on this machine, where nobody is asked for all.
fn are_this_machine(network: &Network, seeds: &[String]) -> bool {
    let is_here = |text: &String| {
        let home = network.seed(text, "").ok().and_then(|it| network.home(&it));
        home.is_some_and(|home| is_loopback_host(&home.base))
    };
    network.asks_subjects() && !seeds.is_empty() && seeds.iter().all(is_here)
}

/// Money can be capped only where it is counted.
fn check_currency(network: &Network, wanted: &str) -> Result<(), Failure> {
    let units = network.budgets().iter().map(|budget| &budget.unit);
    let mut currencies: Vec<&str> = units
        .filter_map(|unit| match unit {
            Unit::Money(currency) => Some(&**currency),
            Unit::Calls | Unit::Points => None,
        })
        .collect();
    currencies.dedup();
    let name = network.name();
    if currencies.is_empty() {
        return Err(Failure::usage(format!(
            "{name} has no prices, so --max-spend means nothing to it; leave it out, or cap the calls \
             with --max-calls"
        )));
    }
    if currencies.contains(&wanted) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name} has prices in {}, not in {wanted}",
        currencies.join(" and ")
    )))
}

fn follow(choice: FollowChoice) -> Follow {
    Follow {
        following: matches!(choice, FollowChoice::Following | FollowChoice::Both),
        followers: matches!(choice, FollowChoice::Followers | FollowChoice::Both),
    }
}

/// The seeds, from the arguments and, for `-`, from standard input; each one checked.
fn seeds(
    arguments: &CrawlArguments,
    network: &Network,
    host: &str,
) -> Result<Vec<String>, Failure> {
    let mut seeds = Vec::new();
    let mut add = |text: &str| {
        network
            .seed(text, host)
            .map_err(|error| Failure::usage(error.to_string()))?;
        if seeds.len() >= SEEDS_MAX {
            return Err(Failure::usage(format!(
                "more than {SEEDS_MAX} seeds; add the others by running the same command with them"
            )));
        }
        seeds.push(text.to_owned());
        Ok(())
    };
    for text in &arguments.seeds {
        if text != "-" {
            add(text)?;
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line =
                line.map_err(|error| Failure::usage(format!("cannot read seeds: {error}")))?;
            let line = line.trim();
            // `# words` is a remark, `#word` a tag.
            if !line.is_empty() && line != "#" && !line.starts_with("# ") {
                add(line)?;
            }
        }
    }
    Ok(seeds)
}

/// The first request to stop lets the crawl finish what is in flight, the second ends it at once.
#[expect(
    clippy::exit,
    reason = "the user asked twice; everything committed is safe"
)]
pub(crate) async fn watch_for_stop(ask: watch::Sender<bool>) {
    stop_asked().await;
    console::note("stopping: finishing what is in flight; once more to stop at once");
    let _ = ask.send(true);
    stop_asked().await;
    std::process::exit(i32::from(code::INTERRUPTED));
}

/// Waits for Ctrl-C or a request to terminate.
pub(crate) async fn stop_asked() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupt.await;
        }
    }
}
