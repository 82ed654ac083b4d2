//! People change their habits in the middle of a crawl: some wake up, some fall silent, some move to
//! another time zone, some have one viral day.

use crate::network::{Network, User};
use crate::outcome::Outcome;
use crate::plot::{Line, Panel};
use crate::{Bench, POLICIES, plot};

const GROUPS: [(&str, &str); 5] = [
    ("wakes", "wake up"),
    ("silent", "fall silent"),
    ("moves", "move time zone"),
    ("viral", "one viral day"),
    ("", "all others"),
];

fn is_of(group: &str) -> impl Fn(&User) -> bool {
    move |user| user.habit.as_deref().unwrap_or("") == group
}

pub(crate) fn run(bench: &Bench) {
    let change_day = (bench.days / 2.0).floor();
    println!("\nB. Habits change on day {change_day}\n");
    let mut outcomes = Vec::new();
    for policy in POLICIES {
        let folder = tempfile::tempdir_in(&bench.target).unwrap();
        let network = Network::start(bench, folder.path(), Some(change_day as i64));
        outcomes.push((
            policy,
            Outcome::crawl(bench, &network, folder.path(), policy),
        ));
    }
    for (policy, outcome) in &outcomes {
        print(bench, policy, outcome, change_day);
    }
    if let Some(path) = &bench.plot {
        std::fs::write(path, drawn(bench, &outcomes, change_day)).unwrap();
        println!("\ndrawn into {}", path.display());
    }
}

/// The mean delay of each group, and visits to it, before and after the change.
fn print(bench: &Bench, policy: &str, outcome: &Outcome, change_day: f64) {
    let spans = [
        ("before", bench.warm_up_days / 2.0..change_day),
        ("day 1", change_day..change_day + 1.0),
        ("days 2-3", change_day + 1.0..change_day + 3.0),
        ("days 4-7", change_day + 3.0..change_day + 7.0),
        ("later", change_day + 7.0..bench.days),
    ];
    println!("{policy}: mean hours from a post to its collection / visits a day and person");
    print!("{:<16} {:>7}", "", "people");
    for (name, _) in &spans {
        print!(" {name:>15}");
    }
    println!();
    for (group, title) in GROUPS {
        let people = outcome
            .users
            .values()
            .filter(|user| is_of(group)(user))
            .count();
        print!("{title:<16} {people:>7}");
        for (_, days) in &spans {
            let delays = outcome.delays_hours(is_of(group), days.clone());
            let visits = visits_a_day(outcome, group, days.start, days.end) / people.max(1) as f64;
            if delays.count() == 0 {
                print!(" {:>8} / {visits:>4.1}", "-");
            } else {
                print!(" {:>8.2} / {visits:>4.1}", delays.mean());
            }
        }
        println!();
    }
    println!();
}

fn visits_a_day(outcome: &Outcome, group: &str, from: f64, until: f64) -> f64 {
    let is_meant = is_of(group);
    let visits = outcome.visits.iter().filter(|(user, day)| {
        (from..until).contains(day) && outcome.users.get(user).is_some_and(&is_meant)
    });
    visits.count() as f64 / (until - from).max(1e-9)
}

/// A panel for each group: the mean delay day by day, under each policy, and visits.
fn drawn(bench: &Bench, outcomes: &[(&str, Outcome)], change_day: f64) -> String {
    let days = bench.days.floor() as usize;
    let panels = GROUPS.map(|(group, title)| {
        let lines = outcomes.iter().map(|(policy, outcome)| Line {
            name: (*policy).to_owned(),
            points: (1..days)
                .filter_map(|day| {
                    let span = day as f64..day as f64 + 1.0;
                    let delays = outcome.delays_hours(is_of(group), span);
                    (delays.count() > 0).then(|| (day as f64 + 0.5, delays.mean()))
                })
                .collect(),
        });
        let people = |outcome: &Outcome| {
            outcome
                .users
                .values()
                .filter(|user| is_of(group)(user))
                .count()
                .max(1)
        };
        let visits = outcomes.iter().map(|(policy, outcome)| Line {
            name: (*policy).to_owned(),
            points: (1..days)
                .map(|day| {
                    let visits = visits_a_day(outcome, group, day as f64, day as f64 + 1.0);
                    (day as f64 + 0.5, visits / people(outcome) as f64)
                })
                .collect(),
        });
        Panel {
            title: title.to_owned(),
            delays: lines.collect(),
            visits: visits.collect(),
        }
    });
    plot::svg(&panels, bench.days, change_day)
}
