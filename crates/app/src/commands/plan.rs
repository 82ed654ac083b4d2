//! `kittiwake plan`: what a crawl will take, before it is begun.

use crate::cli::{PlanArguments, VaultArguments};
use crate::commands::crawl::{self, Ready};
use crate::failure::Failure;
use crate::{console, environment, outlook};
use kittiwake_engine::{Basis, CrawlSettings, EngineError, Forecast, Rounds, forecast};
use kittiwake_model::Name;
use kittiwake_store::ledger::Ledger;
use kittiwake_store::{Location, OpenMode, Store, StoreError, StoreErrorKind};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Calls that a probe makes at most.
const PROBE_CALLS_MAX: u64 = 10;

pub(crate) async fn run(
    arguments: &PlanArguments,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let crawl = &arguments.crawl;
    let ledger = environment::ledger_place(crawl.budgets.as_ref())?;
    // Whoever sends nothing need not say who they are.
    let contact = match &crawl.contact {
        None if !arguments.probe => Some("nobody: nothing is sent"),
        contact => contact.as_deref(),
    };
    let ready = crawl::ready(crawl, contact, vault).await?;
    let into = environment::with_password(&crawl.into);
    let planning = Planning {
        settings: ready.settings.clone(),
        ledger,
    };
    let mut probed = None;
    let forecast = if arguments.probe {
        let (forecast, calls) = Box::pin(planning.probe(ready, &into)).await?;
        probed = Some(calls);
        forecast
    } else {
        let store = open(&into)?;
        let store = store.as_deref().map(|store| (store, Basis::GoOn));
        planning.forecast(store, &ready).await?
    };
    if crawl.json {
        let shown = outlook::as_json(&crawl.into, &forecast, probed);
        console::output(&shown.to_string());
    } else {
        let text = outlook::as_text(&planning.settings, &forecast, probed);
        console::output(text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// The crawl that is there, if one is.
fn open(place: &Location) -> Result<Option<Box<dyn Store>>, StoreError> {
    match place.open(OpenMode::Read) {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.kind() == StoreErrorKind::Missing => Ok(None),
        Err(error) => Err(error),
    }
}

struct Planning {
    settings: CrawlSettings,
    ledger: Location,
}

impl Planning {
    async fn forecast(
        &self,
        store: Option<(&dyn Store, Basis)>,
        ready: &Ready,
    ) -> Result<Forecast, Failure> {
        // A ledger that is not there yet says as much as an empty one, and is not made for that.
        let is_there = self.ledger.file().is_none_or(std::path::Path::exists);
        let ledger = is_there.then(|| Ledger::open(&self.ledger)).transpose()?;
        Ok(forecast(&self.settings, store, ledger.as_ref(), &ready.clock).await?)
    }

    /// Makes a few calls and reckons with what they showed. They go into the crawl, or, where there
    /// is none yet, into a file that is thrown away.
    async fn probe(&self, ready: Ready, into: &Location) -> Result<(Forecast, u64), Failure> {
        let mut settings = self.settings.clone();
        let temporary = match open(into)? {
            Some(store) => {
                // The file must not be bound to a depth that was only planned.
                settings.depth = known_depth(&*store, settings.depth).await?;
                None
            }
            None => Some(Temporary::new()?),
        };
        let place = temporary
            .as_ref()
            .map_or_else(|| into.clone(), |it| Location::File(it.0.join("probe.db")));
        settings.robots = telling_robots(&settings);
        settings.rounds = Rounds::One;
        settings.calls_max = Some(PROBE_CALLS_MAX.min(settings.calls_max.unwrap_or(u64::MAX)));
        if let Some(record) = settings.record.as_object_mut() {
            record.insert("probe".into(), json!(true));
        }
        let probing = Ready {
            settings,
            ..ready.clone()
        };
        let report = Box::pin(crawl::crawl_alone(probing, &place, &self.ledger, true)).await?;
        let store = place.open(OpenMode::Read)?;
        let basis = match temporary {
            Some(_) => Basis::Sample,
            None => Basis::GoOn,
        };
        let forecast = self.forecast(Some((&*store, basis)), &ready).await?;
        drop(store);
        Ok((forecast, report.calls))
    }
}

/// The depth that a file was crawled to, if that is less.
async fn known_depth(store: &dyn Store, planned: u32) -> Result<u32, EngineError> {
    let last = store.last_run().await?;
    let known = last.and_then(|(_, record)| {
        let settings: serde_json::Value = serde_json::from_str(&record.settings).ok()?;
        u32::try_from(settings["depth"].as_u64()?).ok()
    });
    Ok(known.unwrap_or(0).min(planned))
}

/// The robots whose answers tell most about what is to come: those that walk lists.
fn telling_robots(settings: &CrawlSettings) -> Vec<Name> {
    let network = &settings.network;
    let walks = |name: &&Name| {
        let steps = network.robot(name).into_iter().flat_map(|it| &it.steps);
        let mut queries = steps.filter_map(|step| network.query(&step.query));
        queries.any(|query| query.page_size().is_some())
    };
    let telling: Vec<Name> = settings.robots.iter().filter(walks).cloned().collect();
    if telling.is_empty() {
        settings.robots.clone()
    } else {
        telling
    }
}

/// A folder that goes when it is no longer needed.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Self, Failure> {
        let path = environment::temporary_path("probe");
        std::fs::create_dir(&path).map_err(|error| {
            Failure::other(format!(
                "cannot make the folder {}: {error}",
                path.display()
            ))
        })?;
        Ok(Self(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
