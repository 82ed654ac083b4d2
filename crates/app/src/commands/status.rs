//! `kittiwake status`: what a file holds, and how its crawl stands.

use crate::cli::StatusArguments;
use crate::commands::crawl::stop_asked;
use crate::failure::Failure;
use crate::{console, environment, freshness, policies, standing, summary};
use kittiwake_engine::RobotFreshness;
use kittiwake_model::{LimitTime, Name, WorldTime};
use kittiwake_store::ledger::{BudgetUsage, Ledger};
use kittiwake_store::{Detail, Location, OpenMode, Store, Summary};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The least time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A look at a large file takes its time; watching must not become the file's main occupation.
const SHARE_OF_TIME: u32 = 10;

/// Everything that one look finds.
struct Look {
    summary: Summary,
    detail: Detail,
    budgets: Vec<BudgetUsage>,
    is_crawled: bool,
    freshness: Vec<RobotFreshness>,
}

pub(crate) async fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let place = environment::with_password(&arguments.file);
    let named = arguments.budgets.as_ref();
    let store = place.open(OpenMode::Read)?;
    if let Some(called) = &arguments.why {
        return explain(arguments, &*store, called).await;
    }
    if !arguments.watch {
        show(arguments, &look(&place, named, &*store).await?, None);
        return Ok(ExitCode::SUCCESS);
    }
    let mut screen = (!arguments.json).then(console::Screen::new);
    let stop = stop_asked();
    tokio::pin!(stop);
    loop {
        let started = Instant::now();
        show(
            arguments,
            &look(&place, named, &*store).await?,
            screen.as_mut(),
        );
        let pause = LOOK_EVERY.max(started.elapsed() * SHARE_OF_TIME);
        tokio::select! {
            () = &mut stop => return Ok(ExitCode::SUCCESS),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn look(
    place: &Location,
    named: Option<&Location>,
    store: &dyn Store,
) -> Result<Look, Failure> {
    let detail = store.detail().await?;
    let is_crawled = place.is_crawled()?;
    let now = world_now(store, &detail, is_crawled).await?;
    Ok(Look {
        summary: store.summary().await?,
        budgets: budgets(named).await,
        freshness: kittiwake_engine::freshness(store, &policies::settings(), now).await?,
        detail,
        is_crawled,
    })
}

/// The time by which freshness is told: that of the crawl's last answer where the crawl is over or has a
/// clock of its own.
async fn world_now(
    store: &dyn Store,
    detail: &Detail,
    is_crawled: bool,
) -> Result<WorldTime, Failure> {
    let is_real = detail
        .last_run
        .as_ref()
        .is_some_and(|it| it.clock == "real");
    let now = WorldTime(environment::real_now().micros());
    if is_real && is_crawled {
        return Ok(now);
    }
    Ok(store.newest().await?.unwrap_or(now))
}

/// Says why somebody is due when they are.
async fn explain(
    arguments: &StatusArguments,
    store: &dyn Store,
    called: &str,
) -> Result<ExitCode, Failure> {
    let detail = store.detail().await?;
    let now = world_now(store, &detail, false).await?;
    let robots: Vec<Name> = store.summary().await?.robots.into_keys().collect();
    // As people write handles.
    let called = called.trim().trim_start_matches('@');
    let settings = policies::settings();
    let whys = kittiwake_engine::why(store, &settings, called, &robots, now).await?;
    if whys.is_empty() {
        return Err(Failure::usage(format!(
            "nobody who is called {called:?} is visited by this crawl; give a handle, an address or an id \
             as the file has it"
        )));
    }
    if arguments.json {
        console::output(&freshness::why_json(called, &whys, now).to_string());
    } else {
        console::output(freshness::why_text(called, &whys, now).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &StatusArguments, look: &Look, screen: Option<&mut console::Screen>) {
    if arguments.json {
        console::output(&as_json(arguments, look).to_string());
        return;
    }
    let now = environment::real_now();
    let mut text = standing::headline(&look.detail, look.is_crawled, now);
    text.push_str(&summary::table(&look.summary));
    for usage in &look.budgets {
        text.push_str(&standing::budget(usage, LimitTime(now.micros())));
    }
    text.push_str(&freshness::table(&look.freshness));
    text.push_str(&standing::stages(&look.detail.recent));
    text.push_str(&standing::next(&look.detail.next));
    match screen {
        Some(screen) => screen.show(&text),
        None => console::output(text.trim_end()),
    }
}

fn as_json(arguments: &StatusArguments, look: &Look) -> Value {
    let mut shown = summary::held(&arguments.file, &look.summary);
    let Some(entries) = shown.as_object_mut() else {
        return shown;
    };
    let Detail {
        last_run,
        recent,
        next,
        paused,
    } = &look.detail;
    if let Some(run) = last_run {
        entries.insert("run".into(), standing::run_json(run));
    }
    entries.insert("crawling".into(), json!(look.is_crawled));
    let paused: Vec<_> = paused
        .iter()
        .map(|robot| robot.as_deref().unwrap_or("all"))
        .collect();
    entries.insert("paused".into(), json!(paused));
    let budgets: Vec<Value> = look.budgets.iter().map(standing::budget_json).collect();
    entries.insert("budgets".into(), json!(budgets));
    let fresh: Vec<Value> = look.freshness.iter().map(freshness::json).collect();
    entries.insert("freshness".into(), json!(fresh));
    entries.insert("recent".into(), standing::recent_json(recent));
    let next: Vec<Value> = next
        .iter()
        .map(|visit| {
            json!({
                "robot": visit.robot,
                "subject": visit.subject,
                "due_us": visit.due_us,
                "revisit": visit.is_revisit,
            })
        })
        .collect();
    entries.insert("next".into(), json!(next));
    shown
}

/// What the ledger says of the current windows; a ledger that is not there yet says nothing.
async fn budgets(named: Option<&Location>) -> Vec<BudgetUsage> {
    let Ok(place) = environment::ledger_place(named) else {
        return Vec::new();
    };
    if place.file().is_some_and(|path| !path.exists()) {
        return Vec::new();
    }
    let ledger = match Ledger::open(&place) {
        Ok(ledger) => ledger,
        Err(error) => {
            if named.is_some() {
                console::note(&format!("the grants cannot be looked at: {error}"));
            }
            return Vec::new();
        }
    };
    let now = LimitTime(environment::real_now().micros());
    ledger.usage(now).await.unwrap_or_default()
}
