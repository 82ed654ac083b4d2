//! Replays populations that are derived from a trace, so that a gain is seen to hold for others, too:
//! `validate TRACE [populations=A,…] [visits=V,…] [page=C] [policies=P,…] [scan]`.
//!
//! For each population and budget it prints the figures of round robin, and what those of other
//! policies are as a part of them; `!` marks where `adaptive` is not the best. With `cold` it prints
//! what cards are worth in the first weeks instead.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints, and stops at the first surprise"
)]

mod cold_start;
mod populations;

use kittiwake_frontier::policy::{PolicySettings, by_name};
use kittiwake_frontier::replay::{Choice, Decider, Experiment, Report, Trace, run};

/// What is to be replayed.
struct Request {
    trace: String,
    populations: Vec<String>,
    visits: Vec<f64>,
    page: usize,
    policies: Vec<String>,
    choice: Choice,
    is_cold: bool,
}

impl Request {
    fn read() -> Self {
        let mut arguments = std::env::args().skip(1);
        let trace = arguments.next().unwrap_or_default();
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut request = Self {
            trace,
            populations: populations::ALL.map(|(name, _)| name.to_owned()).to_vec(),
            visits: vec![0.0333, 0.26, 1.03],
            page: 100,
            policies: names("adaptive,square-root,hash"),
            choice: Choice::Market,
            is_cold: false,
        };
        for argument in arguments {
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("populations", value) => request.populations = names(value),
                ("visits", value) => {
                    let visits = value.split(',').map(|one| one.parse().unwrap());
                    request.visits = visits.collect();
                }
                ("page", value) => request.page = value.parse().unwrap(),
                ("policies", value) => request.policies = names(value),
                ("scan", _) => request.choice = Choice::Scan,
                ("cold", _) => request.is_cold = true,
                (unknown, _) => panic!("{unknown} is no argument; see the first lines"),
            }
        }
        request
    }
}

/// Replays a trace under the policy of a name.
fn replayed(trace: &Trace, name: &str, experiment: &Experiment) -> Report {
    let settings = PolicySettings {
        page: experiment.page,
        ..PolicySettings::default()
    };
    let policy = by_name(name, &settings);
    let decider = match &policy {
        Some(policy) => Decider::Policy(policy.as_ref()),
        None if name == "most-waiting" => Decider::MostWaiting,
        None => Decider::Clairvoyant,
    };
    run(trace, decider, experiment, &mut |_| {}).unwrap()
}

/// The usual warm-up, and at most a third of the time.
fn warm_up_days(trace: &Trace, visits: f64) -> f64 {
    let usual: f64 = if visits < 0.26 { 120.0 } else { 60.0 };
    usual.min(trace.days() / 3.0)
}

fn compare(name: &str, trace: &Trace, visits: f64, request: &Request) {
    let experiment = Experiment {
        calls_per_day: visits * trace.subjects.len() as f64,
        page: request.page,
        warm_up_days: warm_up_days(trace, visits),
        choice: request.choice,
        ..Experiment::default()
    };
    let usual = replayed(trace, "round-robin", &experiment);
    println!(
        "{name:<13} v={visits:<6} c={:<3} rho {:.2}: round-robin {:.3} per call, lost {:.2} %, mean \
         {:.2} h, p95 {:.1} h",
        request.page,
        usual.posts_per_call_arriving(),
        usual.messages_per_call(),
        usual.figures.lost_share() * 100.0,
        usual.figures.mean_delay_s / 3600.0,
        usual.figures.p95_delay_s / 3600.0,
    );
    let mut best: Option<Report> = None;
    for policy in &request.policies {
        let report = replayed(trace, policy, &experiment);
        let is_better = best.as_ref().is_some_and(|best| is_better(&report, best));
        print_row(&report, &usual, is_better);
        best.get_or_insert(report);
    }
}

/// Whether one policy is better than another: fresher where little is lost, otherwise more posts.
fn is_better(one: &Report, other: &Report) -> bool {
    const LITTLE: f64 = 0.01;
    let lost = one.figures.lost_share().max(other.figures.lost_share());
    if lost > LITTLE {
        return one.messages > other.messages;
    }
    one.figures.mean_delay_s < other.figures.mean_delay_s
}

fn print_row(report: &Report, usual: &Report, is_better: bool) {
    let (figures, others) = (&report.figures, &usual.figures);
    println!(
        "  {:<14}{} mean {:.3}  per call {:.3}  p95 {:.2}  waiting {:.3}  lost {:.2} %  <=1h {:.1} %",
        report.policy,
        if is_better { '!' } else { ' ' },
        figures.mean_delay_s / others.mean_delay_s,
        report.messages_per_call() / usual.messages_per_call(),
        figures.p95_delay_s / others.p95_delay_s,
        figures.waiting_mean / others.waiting_mean,
        figures.lost_share() * 100.0,
        figures.within_1h * 100.0,
    );
}

fn main() {
    let request = Request::read();
    let trace = Trace::read(std::fs::File::open(&request.trace).unwrap()).unwrap();
    if request.is_cold {
        for visits in &request.visits {
            cold_start::compare(&trace, *visits, request.page);
        }
        return;
    }
    for (name, make) in populations::ALL.into_iter().chain([populations::LARGE]) {
        if !request.populations.iter().any(|wanted| wanted == name) {
            continue;
        }
        let population = make(&trace);
        for visits in &request.visits {
            compare(name, &population, *visits, &request);
        }
    }
}
