//! Results as a picture: delays, freshness against the budget, the day of each class. Plain SVG that
//! can be read on light and on dark ground.

use super::Outcome;
use kittiwake_frontier::replay::Trace;
use kittiwake_frontier::{Class, replay::Report};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const PANEL: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 50.0;
/// Told apart by everybody, on light and on dark ground.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#8a6fd1", "#7f7f7f",
];

/// A line of a panel.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// One picture with two axes.
struct Panel {
    title: &'static str,
    x_name: &'static str,
    y_name: &'static str,
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
    lines: Vec<Line>,
}

pub(super) fn svg(trace: &Trace, outcomes: &[Outcome]) -> String {
    let mut panels = vec![delays(outcomes)];
    panels.extend(budgets(outcomes));
    panels.push(days(trace, outcomes.first().map(|outcome| &outcome.report)));
    let height = PANEL * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>:root{{--ground:#fff;--ink:#222;--rule:#ddd}}\
         @media (prefers-color-scheme:dark){{:root{{--ground:#16181c;--ink:#ddd;--rule:#3a3d42}}}}\
         text{{fill:var(--ink)}}.rule{{stroke:var(--rule)}}.line{{fill:none;stroke-width:2}}</style>\n\
         <rect width=\"100%\" height=\"100%\" style=\"fill:var(--ground)\"/>\n"
    );
    for (place, panel) in panels.iter().enumerate() {
        let _ = writeln!(
            text,
            "<g transform=\"translate(0,{})\">\n{}</g>",
            place as f64 * PANEL,
            panel.draw()
        );
    }
    text.push_str("</svg>\n");
    text
}

/// How much was collected within which time, under the first budget.
fn delays(outcomes: &[Outcome]) -> Panel {
    let first = outcomes.first().map(|outcome| outcome.visits_per_day);
    let same = outcomes
        .iter()
        .filter(|outcome| Some(outcome.visits_per_day) == first);
    let lines = same.map(|outcome| Line {
        name: outcome.report.policy.clone(),
        points: outcome
            .report
            .distribution
            .iter()
            .map(|(delay_s, share)| (delay_s.log10(), *share))
            .collect(),
    });
    let times = [
        (60.0, "1 min"),
        (600.0, "10 min"),
        (3_600.0, "1 h"),
        (21_600.0, "6 h"),
        (86_400.0, "1 d"),
        (604_800.0, "1 w"),
        (8_640_000.0, "100 d"),
    ];
    Panel {
        title: "Posts collected within a time",
        x_name: "delay",
        y_name: "share of posts",
        x_ticks: times
            .map(|(time, name): (f64, &str)| (time.log10(), name.to_owned()))
            .to_vec(),
        y_ticks: shares(),
        lines: lines.collect(),
    }
}

fn shares() -> Vec<(f64, String)> {
    let shares = (0..=4).map(|quarter| f64::from(quarter) / 4.0);
    shares
        .map(|share| (share, format!("{:.0} %", share * 100.0)))
        .collect()
}

/// Mean delay against the budget, if there are several.
fn budgets(outcomes: &[Outcome]) -> Option<Panel> {
    let mut lines: Vec<Line> = Vec::new();
    for outcome in outcomes {
        let delay_h = (outcome.report.figures.mean_delay_s / 3_600.0).max(1e-3);
        let point = (outcome.visits_per_day.log10(), delay_h.log10());
        let name = &outcome.report.policy;
        match lines.iter_mut().find(|line| line.name == *name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                name: name.clone(),
                points: vec![point],
            }),
        }
    }
    if lines.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    for line in &mut lines {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let x_ticks = lines[0]
        .points
        .iter()
        .map(|(x, _)| (*x, format!("{:.3}", 10_f64.powf(*x))));
    let points = || lines.iter().flat_map(|line| &line.points);
    let low = points()
        .map(|point| point.1)
        .fold(f64::INFINITY, f64::min)
        .floor();
    let high = points()
        .map(|point| point.1)
        .fold(f64::NEG_INFINITY, f64::max)
        .ceil();
    let steps = (low as i32)..=(high as i32).max(low as i32 + 1);
    Some(Panel {
        title: "Mean delay against the budget",
        x_name: "visits per user and day",
        y_name: "mean delay, hours",
        x_ticks: x_ticks.collect(),
        y_ticks: steps
            .map(|power| (f64::from(power), format!("{}", 10_f64.powi(power))))
            .collect(),
        lines,
    })
}

/// When the users of each class post.
fn days(trace: &Trace, report: Option<&Report>) -> Panel {
    const HOUR_US: i64 = 3_600_000_000;
    let mut counts = [[0_f64; 24]; Class::ALL.len()];
    if let Some(report) = report {
        for (subject, observed) in trace.subjects.iter().zip(&report.observed) {
            for post in &subject.posts {
                let hour = post.micros().rem_euclid(24 * HOUR_US) / HOUR_US;
                counts[observed.class as usize][hour as usize] += 1.0;
            }
        }
    }
    let lines = Class::ALL.iter().zip(counts).filter_map(|(class, hours)| {
        let total: f64 = hours.iter().sum();
        (total > 0.0).then(|| Line {
            name: class.name().to_owned(),
            points: hours
                .iter()
                .enumerate()
                .map(|(hour, count)| (hour as f64 + 0.5, count / total))
                .collect(),
        })
    });
    let lines: Vec<Line> = lines.collect();
    let points = lines.iter().flat_map(|line| &line.points);
    let highest = points.map(|point| point.1).fold(0.05, f64::max);
    let ticks = (0..=4).map(|quarter| highest * f64::from(quarter) / 4.0);
    Panel {
        title: "The day of each class of users",
        x_name: "hour of the day, UTC",
        y_name: "share of posts",
        x_ticks: (0..=8)
            .map(|step| (f64::from(step * 3), format!("{}", step * 3)))
            .collect(),
        y_ticks: ticks
            .map(|share| (share, format!("{:.1} %", share * 100.0)))
            .collect(),
        lines,
    }
}

impl Panel {
    fn range(ticks: &[(f64, String)]) -> (f64, f64) {
        let low = ticks
            .iter()
            .map(|tick| tick.0)
            .fold(f64::INFINITY, f64::min);
        let high = ticks
            .iter()
            .map(|tick| tick.0)
            .fold(f64::NEG_INFINITY, f64::max);
        if high > low {
            (low, high)
        } else {
            (low - 0.5, low + 0.5)
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (x_low, x_high) = Self::range(&self.x_ticks);
        let (y_low, y_high) = Self::range(&self.y_ticks);
        let across = WIDTH - LEFT - RIGHT;
        let down = PANEL - TOP - BOTTOM;
        (
            LEFT + (x - x_low) / (x_high - x_low) * across,
            PANEL - BOTTOM - (y - y_low) / (y_high - y_low) * down,
        )
    }

    fn draw(&self) -> String {
        let mut text = format!(
            "<text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
            self.title
        );
        self.draw_axes(&mut text);
        for (place, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[place % COLOURS.len()];
            let dash = if place < COLOURS.len() {
                ""
            } else {
                " stroke-dasharray=\"6 4\""
            };
            let points = line
                .points
                .iter()
                .filter(|(x, y)| x.is_finite() && y.is_finite());
            let points: Vec<String> = points
                .map(|point| self.place(*point))
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let y = TOP + 8.0 + 18.0 * place as f64;
            let _ = writeln!(
                text,
                "<polyline class=\"line\" stroke=\"{colour}\"{dash} points=\"{}\"/>\n\
                 <line class=\"line\" stroke=\"{colour}\"{dash} x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\"/>\n\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                points.join(" "),
                WIDTH - RIGHT + 16.0,
                WIDTH - RIGHT + 40.0,
                WIDTH - RIGHT + 46.0,
                y + 4.0,
                line.name,
            );
        }
        text
    }

    fn draw_axes(&self, text: &mut String) {
        let bottom = PANEL - BOTTOM;
        for (x, name) in &self.x_ticks {
            let (x, _) = self.place((*x, 0.0));
            let _ = writeln!(
                text,
                "<line class=\"rule\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
                bottom + 18.0
            );
        }
        for (y, name) in &self.y_ticks {
            let (_, y) = self.place((0.0, *y));
            let _ = writeln!(
                text,
                "<line class=\"rule\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(14,{}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            bottom + 38.0,
            self.x_name,
            f64::midpoint(TOP, bottom),
            self.y_name
        );
    }
}
