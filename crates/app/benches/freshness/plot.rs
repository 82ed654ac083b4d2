//! Small panels of lines, as an SVG file.

use std::fmt::Write;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 34.0;
const GAP: f64 = 58.0;
/// Told apart by colour-blind readers as well, and by their dashes.
const STYLES: [(&str, &str); 2] = [("#0072b2", "none"), ("#d55e00", "6 3")];

pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) delays: Vec<Line>,
    pub(crate) visits: Vec<Line>,
}

/// A row for each panel: delays on the left, visits on the right.
pub(crate) fn svg(panels: &[Panel], days: f64, change_day: f64) -> String {
    let height = TOP + panels.len() as f64 * (HEIGHT + GAP) + 10.0;
    let width = 2.0 * (LEFT + WIDTH) + 30.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Mean delay of posts and visits, day by day, when habits change</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (row, panel) in panels.iter().enumerate() {
        let top = TOP + row as f64 * (HEIGHT + GAP);
        let title = format!("{}: mean delay, hours", panel.title);
        chart(
            &mut text,
            &title,
            &panel.delays,
            (LEFT, top),
            (days, change_day),
        );
        let title = format!("{}: visits a day and person", panel.title);
        let left = 2.0 * LEFT + WIDTH + 20.0;
        chart(
            &mut text,
            &title,
            &panel.visits,
            (left, top),
            (days, change_day),
        );
    }
    text.push_str("</svg>\n");
    text
}

fn chart(
    text: &mut String,
    title: &str,
    lines: &[Line],
    (left, top): (f64, f64),
    (days, change_day): (f64, f64),
) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|(_, value)| *value).fold(0.1, f64::max);
    let x = |day: f64| left + day / days * WIDTH;
    let y = |value: f64| top + HEIGHT - value / most * HEIGHT;
    let bottom = top + HEIGHT;
    let _ = writeln!(
        text,
        "<text x=\"{left}\" y=\"{:.1}\" font-weight=\"bold\">{title}</text>",
        top - 8.0
    );
    for part in [0.0, 0.5, 1.0] {
        let value = most * part;
        let _ = writeln!(
            text,
            "<line x1=\"{left}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"end\">{value:.1}</text>",
            y(value),
            x(days),
            left - 5.0,
            y(value) + 4.0
        );
    }
    let mut day = 0.0;
    while day <= days {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{day}</text>",
            x(day),
            bottom + 15.0
        );
        day += 4.0;
    }
    let _ = writeln!(
        text,
        "<line x1=\"{0:.1}\" y1=\"{top}\" x2=\"{0:.1}\" y2=\"{bottom}\" stroke=\"#888\" \
         stroke-dasharray=\"2 3\"/>",
        x(change_day)
    );
    for (place, line) in lines.iter().enumerate() {
        let (colour, dashes) = STYLES[place % STYLES.len()];
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(day, value)| format!("{:.1},{:.1}", x(*day), y(*value)))
            .collect();
        let _ = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" \
             stroke-dasharray=\"{dashes}\" points=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
            path.join(" "),
            x(days),
            bottom + 30.0 + 13.0 * place as f64 - 1.0,
            line.name
        );
    }
}
