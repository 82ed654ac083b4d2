//! Replays a trace under policies: `policies TRACE POLICY[,…] VISITS_PER_DAY[,…] PAGE [scan] [KEY=VALUE]…`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints, and stops at the first surprise"
)]

use kittiwake_frontier::policy::{PolicySettings, by_name};
use kittiwake_frontier::replay::{Choice, Decider, Experiment, Trace, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut trace = Trace::read(std::fs::File::open(&arguments[0]).unwrap()).unwrap();
    let mut settings = PolicySettings {
        page: arguments[3].parse().unwrap(),
        ..PolicySettings::default()
    };
    let mut experiment = Experiment {
        page: settings.page,
        ..Experiment::default()
    };
    let mut warm: Option<f64> = None;
    for argument in &arguments[4..] {
        if argument == "scan" {
            experiment.choice = Choice::Scan;
        }
        let Some((key, value)) = argument.split_once('=') else {
            continue;
        };
        match key {
            "warm" => warm = Some(value.parse().unwrap()),
            "q" => settings.objective.patience = value.parse().unwrap(),
            "L" => settings.objective.loss_days = value.parse().unwrap(),
            "pages" => experiment.pages_max = value.parse().unwrap(),
            "seed" => experiment.seed = value.parse().unwrap(),
            "users" => {
                let odd = usize::from(value == "odd");
                trace
                    .subjects
                    .retain(|subject| subject.user as usize % 2 == odd);
            }
            _ => {}
        }
    }
    for budget in arguments[2].split(',') {
        let visits: f64 = budget.parse().unwrap();
        experiment.calls_per_day = visits * trace.subjects.len() as f64;
        experiment.warm_up_days = warm.unwrap_or(if visits < 0.26 { 120.0 } else { 60.0 });
        for name in arguments[1].split(',') {
            let policy = by_name(name, &settings);
            let decider = match &policy {
                Some(policy) => Decider::Policy(policy.as_ref()),
                None if name == "most-waiting" => Decider::MostWaiting,
                None => Decider::Clairvoyant,
            };
            let started = std::time::Instant::now();
            let report = run(&trace, decider, &experiment, &mut |_| {}).unwrap();
            let figures = &report.figures;
            println!(
                "{:<13} v={visits:<6} c={:<3} msg/call {:.3} lost {:.2}% mean {:.3}h median {:.2} \
                 p95 {:.1} <=1h {:.2}% <=24h {:.1}% waiting {:.0} ({:.1}s, rho {:.3})",
                report.policy,
                settings.page,
                report.messages_per_call(),
                figures.lost_share() * 100.0,
                figures.mean_delay_s / 3600.0,
                figures.median_delay_s / 3600.0,
                figures.p95_delay_s / 3600.0,
                figures.within_1h * 100.0,
                figures.within_24h * 100.0,
                figures.waiting_mean,
                started.elapsed().as_secs_f64(),
                report.posts_per_call_arriving(),
            );
        }
    }
}
