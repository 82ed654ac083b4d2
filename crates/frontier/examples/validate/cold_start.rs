//! What cards are worth before anybody was visited.
//!
//! The first days of the trace become everybody's past: the card tells how many posts were made in
//! it, and that the account is as old. What comes after is replayed from nothing, with cards and
//! without. Followers are not in a trace, so that their part of the forecast is not measured.

use super::{populations, replayed};
use kittiwake_frontier::policy::Facts;
use kittiwake_frontier::replay::{Experiment, Trace};

const DAY_US: i64 = 86_400_000_000;
/// How much of the trace is the past that cards tell of.
const PAST_DAYS: i64 = 90;
/// How long the beginning lasts.
const BEGINNINGS_DAYS: [i64; 3] = [7, 14, 30];

/// What the cards say on the day on which the replay begins.
fn cards(past: &Trace) -> Vec<Facts> {
    let subjects = past.subjects.iter();
    let facts = subjects.map(|subject| Facts {
        posts: Some(subject.posts.len() as u64),
        age_days: Some(past.days()),
        ..Facts::default()
    });
    facts.collect()
}

/// Prints the mean delay of the first weeks, with cards and without.
pub(crate) fn compare(trace: &Trace, visits: f64, page: usize) {
    let now = trace.start.plus_us(PAST_DAYS * DAY_US);
    let facts = cards(&populations::between(trace, trace.start, now));
    for days in BEGINNINGS_DAYS {
        let beginning = populations::between(trace, now, now.plus_us(days * DAY_US));
        let without = Experiment {
            calls_per_day: visits * trace.subjects.len() as f64,
            page,
            ..Experiment::default()
        };
        let with = Experiment {
            facts: facts.clone(),
            ..without.clone()
        };
        println!("v={visits} c={page}, the first {days} days:");
        let rows = [
            ("round robin", replayed(&beginning, "round-robin", &without)),
            ("without cards", replayed(&beginning, "adaptive", &without)),
            ("with cards", replayed(&beginning, "adaptive", &with)),
        ];
        for (name, report) in rows {
            println!(
                "  {name:<14} mean {:.2} h  per call {:.3}  lost {:.2} %  waiting {:.0}",
                report.figures.mean_delay_s / 3600.0,
                report.messages_per_call(),
                report.figures.lost_share() * 100.0,
                report.figures.waiting_mean,
            );
        }
    }
}
