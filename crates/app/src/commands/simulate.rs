//! `kittiwake simulate`: how policies would have done on a trace.

mod inputs;
mod outputs;
mod partition;
mod plot;

use crate::cli::{ObjectiveChoice, SimulateArguments};
use crate::console::{self, CountLine};
use crate::failure::Failure;
use kittiwake_frontier::policy::{NAMES, Objective, Policy, PolicySettings, by_name};
use kittiwake_frontier::replay::{
    self, Decider, Experiment, ReplayError, Report, Trace, mispredictions, one_visit,
    unbudgeted_hash,
};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Below so many visits a day the warm-up is longer.
const STARVED_VISITS_PER_DAY: f64 = 0.26;
const WARM_UP_DAYS: f64 = 60.0;
const WARM_UP_STARVED_DAYS: f64 = 120.0;
/// A short trace is warmed up by this part of it.
const WARM_UP_PART: f64 = 3.0;
/// CUVIM's longest span, s.
const LONGEST_SPAN_DAYS: f64 = 30.0;

/// One policy under one budget.
#[derive(Debug)]
pub(super) struct Outcome {
    pub report: Report,
    pub visits_per_day: f64,
    pub page: u32,
    pub took: Duration,
}

pub(crate) async fn run(arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    if !arguments.partition.partition.is_empty() {
        return partition::run(arguments).await;
    }
    let deciders = deciders(arguments)?;
    let trace = inputs::trace(arguments).await?;
    if arguments.one_visit || arguments.hash_unbudgeted || arguments.mispredictions.is_some() {
        return papers(arguments, &trace);
    }
    let budgets = budgets(arguments, &trace)?;
    let weights = inputs::weights(arguments, &trace)?;
    let mut outcomes = Vec::new();
    for visits_per_day in budgets {
        for decider in &deciders {
            let experiment = experiment(arguments, &trace, visits_per_day, weights.clone());
            let outcome = replayed(arguments, &trace, decider, &experiment)?;
            if arguments.json {
                console::output(&outputs::json(&outcome).to_string());
            }
            outcomes.push(outcome);
        }
    }
    if !arguments.json {
        console::output(outputs::table(&trace, &outcomes).trim_end());
    }
    if let Some(path) = &arguments.observed {
        outputs::write(path, &outputs::observed(&trace, &outcomes))?;
    }
    if let Some(path) = &arguments.plot {
        outputs::write(path, &plot::svg(&trace, &outcomes))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A policy, or somebody who knows the future.
#[derive(Debug)]
enum Deciding {
    Policy(Box<dyn Policy>),
    Clairvoyant,
    MostWaiting,
}

impl Deciding {
    fn decider(&self) -> Decider<'_> {
        match self {
            Self::Policy(policy) => Decider::Policy(policy.as_ref()),
            Self::Clairvoyant => Decider::Clairvoyant,
            Self::MostWaiting => Decider::MostWaiting,
        }
    }
}

fn deciders(arguments: &SimulateArguments) -> Result<Vec<Deciding>, Failure> {
    let settings = PolicySettings {
        page: arguments.page as usize,
        hash_weight: arguments.hash_weight,
        objective: Objective {
            patience: arguments.patience,
            is_hot: arguments.objective == ObjectiveChoice::Hot,
            ..Objective::default()
        },
        holidays: inputs::holidays(arguments)?,
    };
    let names = arguments.policies.iter();
    names
        .map(|name| match name.as_str() {
            "clairvoyant" => Ok(Deciding::Clairvoyant),
            "most-waiting" => Ok(Deciding::MostWaiting),
            name => by_name(name, &settings)
                .map(Deciding::Policy)
                .ok_or_else(|| unknown_policy(name)),
        })
        .collect()
}

fn unknown_policy(name: &str) -> Failure {
    let known = NAMES.iter().copied();
    let near = known.max_by(|one, other| {
        let near = |known: &str| strsim::jaro_winkler(known, name);
        near(one).total_cmp(&near(other))
    });
    Failure::usage(format!(
        "there is no policy {name:?}; did you mean {}? kittiwake simulate --help lists all",
        near.unwrap_or("adaptive")
    ))
}

/// Visits per user and day.
fn budgets(arguments: &SimulateArguments, trace: &Trace) -> Result<Vec<f64>, Failure> {
    const HOURS: f64 = 24.0;
    if !arguments.visits_per_day.is_empty() {
        return Ok(arguments.visits_per_day.clone());
    }
    if arguments.calls_per_hour.is_empty() {
        return Err(Failure::usage(
            "say what may be spent: --visits-per-day V or --calls-per-hour N",
        ));
    }
    let per_user = HOURS / trace.subjects.len() as f64;
    let calls = arguments.calls_per_hour.iter();
    Ok(calls.map(|calls| calls * per_user).collect())
}

fn experiment(
    arguments: &SimulateArguments,
    trace: &Trace,
    visits_per_day: f64,
    weights: Vec<f64>,
) -> Experiment {
    Experiment {
        calls_per_day: visits_per_day * trace.subjects.len() as f64,
        page: arguments.page as usize,
        warm_up_days: warm_up_days(arguments, trace, visits_per_day),
        seed: arguments.seed,
        longest_span_days: arguments.longest_span,
        weights,
        pages_max: usize::from(arguments.pages),
        ..Experiment::default()
    }
}

fn warm_up_days(arguments: &SimulateArguments, trace: &Trace, visits_per_day: f64) -> f64 {
    let usual = if visits_per_day < STARVED_VISITS_PER_DAY {
        WARM_UP_STARVED_DAYS
    } else {
        WARM_UP_DAYS
    };
    let usual = usual.min(trace.days() / WARM_UP_PART);
    arguments.warm_up.unwrap_or(usual)
}

fn replayed(
    arguments: &SimulateArguments,
    trace: &Trace,
    decider: &Deciding,
    experiment: &Experiment,
) -> Result<Outcome, Failure> {
    let decider = decider.decider();
    let mut line = CountLine::new(!arguments.quiet);
    let started = Instant::now();
    let report = replay::run(trace, decider, experiment, &mut |share| {
        line.tell(&format!("{}: {:.0} %", decider.name(), share * 100.0));
    });
    Ok(Outcome {
        report: report.map_err(|error| refused(&error))?,
        visits_per_day: experiment.calls_per_day / trace.subjects.len() as f64,
        page: arguments.page,
        took: started.elapsed(),
    })
}

fn refused(error: &ReplayError) -> Failure {
    Failure::usage(error.to_string())
}

/// The experiments of the papers.
fn papers(arguments: &SimulateArguments, trace: &Trace) -> Result<ExitCode, Failure> {
    let page = arguments.page as usize;
    if arguments.one_visit {
        let result = one_visit(trace, arguments.window, page, arguments.seed)
            .map_err(|error| refused(&error))?;
        outputs::show_one_visit(&result, arguments.json);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.hash_unbudgeted {
        let warm_up = warm_up_days(arguments, trace, 0.0);
        let results: Vec<_> = (4..=9)
            .map(|tenths| f64::from(tenths) / 10.0)
            .map(|weight| unbudgeted_hash(trace, page, weight, LONGEST_SPAN_DAYS, warm_up))
            .collect();
        outputs::show_unbudgeted(&results, arguments.json);
        return Ok(ExitCode::SUCCESS);
    }
    let months = inputs::months(trace);
    outputs::show_mispredictions(&mispredictions(trace, &months), arguments.json);
    Ok(ExitCode::SUCCESS)
}
