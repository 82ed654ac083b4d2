//! Replays a trace under one policy: `policies TRACE POLICY VISITS_PER_DAY PAGE [scan] [tune=i:v]…`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints, and stops at the first surprise"
)]

use kittiwake_frontier::policy::{PolicySettings, by_name};
use kittiwake_frontier::replay::{Choice, Decider, Experiment, Trace, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let trace = Trace::read(std::fs::File::open(&arguments[0]).unwrap()).unwrap();
    for budget in arguments[2].split(',') {
        let visits: f64 = budget.parse().unwrap();
        let mut settings = PolicySettings {
            page: arguments[3].parse().unwrap(),
            ..PolicySettings::default()
        };
        let mut choice = Choice::Market;
        let mut warm = if visits < 0.26 { 120.0 } else { 60.0 };
        for argument in &arguments[4..] {
            if argument == "scan" {
                choice = Choice::Scan;
            }
            if let Some(w) = argument.strip_prefix("warm=") {
                warm = w.parse().unwrap();
            }
            if let Some(w) = argument.strip_prefix("q=") {
                settings.objective.patience = w.parse().unwrap();
            }
            if let Some(w) = argument.strip_prefix("L=") {
                settings.objective.loss_days = w.parse().unwrap();
            }
            if let Some((index, value)) = argument
                .strip_prefix("tune=")
                .and_then(|t| t.split_once(':'))
            {
                settings.objective.tune[index.parse::<usize>().unwrap()] = value.parse().unwrap();
            }
        }
        for name in arguments[1].split(',') {
            let experiment = Experiment {
                calls_per_day: visits * trace.subjects.len() as f64,
                page: settings.page,
                warm_up_days: warm,
                seed: 1,
                choice,
            };
            let policy;
            let decider = match name {
                "clairvoyant" => Decider::Clairvoyant,
                "most-waiting" => Decider::MostWaiting,
                name => {
                    policy = by_name(name, &settings).unwrap();
                    Decider::Policy(policy.as_ref())
                }
            };
            let started = std::time::Instant::now();
            let report = run(&trace, decider, &experiment, &mut |_| {}).unwrap();
            let f = &report.figures;
            println!(
                "{:<14} v={visits:<6} c={:<3} msg/call {:.3} lost {:.2}% mean {:.2}h median {:.2} p95 {:.1} <=1h {:.2}% <=24h {:.1}% waiting {:.0}  ({:.1}s, {:.1} looks/call, rho {:.3}) {:?}",
                report.policy,
                settings.page,
                report.messages_per_call(),
                f.lost_share() * 100.0,
                f.mean_delay_s / 3600.0,
                f.median_delay_s / 3600.0,
                f.p95_delay_s / 3600.0,
                f.within_1h * 100.0,
                f.within_24h * 100.0,
                f.waiting_mean,
                started.elapsed().as_secs_f64(),
                report.looked_at as f64 / report.calls_all as f64,
                report.posts_per_call_arriving(),
                report
                    .weights
                    .iter()
                    .map(|w| (w * 100.0).round() / 100.0)
                    .collect::<Vec<_>>()
            );
        }
    }
}
