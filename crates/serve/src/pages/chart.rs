//! Charts as SVG, drawn on the server. Shapes stretch with the page; words are HTML beside them, so that
//! they keep their size. Each chart has a title, a description and its numbers as a table; colours come
//! from the style sheet (`.s0` to `.s7`, told apart also by those who do not see all colours).

use crate::pages::words::{self, brief};
use maud::{Markup, html};
use std::borrow::Cow;
use std::fmt::Write;

/// Colours that there are; further series share the last.
const COLOURS: usize = 8;
/// Sides of a drawing, in its own units.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;
/// Larger values are drawn as this one.
const VALUE_MAX: f64 = 1e18;

/// One row of values, one for each place of the axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The number of its colour.
    pub(crate) colour: usize,
    pub(crate) values: Vec<f64>,
}

/// Places that are all labelled, each under its own column.
const LABELLED_EACH: usize = 8;

/// What a chart of columns shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// Unlike that of every other on the page.
    pub(crate) id: String,
    pub(crate) title: String,
    /// What the columns count: `calls`.
    pub(crate) unit: &'static str,
    /// What stands under each column, and in the table's first column.
    pub(crate) places: Vec<String>,
    /// The heading of the table's first column.
    pub(crate) axis: &'static str,
    pub(crate) series: Vec<Series>,
}

/// Columns, one beside the other, each a pile of its series.
pub(crate) fn columns(chart: &Columns) -> Markup {
    let count = chart.places.len().max(1);
    let sums: Vec<f64> = (0..chart.places.len())
        .map(|place| chart.series.iter().map(|it| value(it, place)).sum())
        .collect();
    let top = nice_top(sums.iter().copied().fold(0.0, f64::max));
    let step = WIDTH / count as f64;
    let gap = if count > 60 { 0.0 } else { step * 0.16 };
    let mut bars = Vec::new();
    for (place, name) in chart.places.iter().enumerate() {
        let mut base = 0.0;
        for series in &chart.series {
            let value = value(series, place);
            if value <= 0.0 {
                continue;
            }
            let height = value / top * HEIGHT;
            bars.push(html! {
                rect.{ "s" (colour(series)) } x=(shape(place as f64 * step + gap / 2.0))
                    y=(shape(HEIGHT - base - height)) width=(shape(step - gap)) height=(shape(height)) {
                    title { (name) ", " (series.name) ": " (brief(value)) }
                }
            });
            base += height;
        }
    }
    let describe = describe(chart, &sums);
    let drawn = html! { @for bar in &bars { (bar) } };
    let is_each = count <= LABELLED_EACH;
    figure(chart, top, is_each, &describe, &drawn)
}

/// Lines over the same places.
pub(crate) fn lines(chart: &Columns) -> Markup {
    let maxima: Vec<f64> = (0..chart.places.len())
        .map(|place| {
            let values = chart.series.iter().map(|it| value(it, place));
            values.fold(0.0, f64::max)
        })
        .collect();
    let top = nice_top(maxima.iter().copied().fold(0.0, f64::max));
    let last = chart.places.len().saturating_sub(1).max(1) as f64;
    let path = |series: &Series| {
        let mut text = String::new();
        for (place, known) in series.values.iter().enumerate() {
            if known.is_finite() {
                let x = place as f64 / last * WIDTH;
                let y = HEIGHT - value(series, place) / top * HEIGHT;
                let _ = write!(text, "{} {} ", shape(x), shape(y));
            }
        }
        text
    };
    let drawn = html! {
        @for series in &chart.series {
            polyline.line.{ "s" (colour(series)) } points=(path(series)) vector-effect="non-scaling-stroke" {
                title { (series.name) }
            }
        }
    };
    figure(chart, top, false, &describe(chart, &maxima), &drawn)
}

/// What a chart shows, in a sentence.
fn describe(chart: &Columns, heights: &[f64]) -> String {
    let highest = heights.iter().copied().enumerate().fold(
        None,
        |best: Option<(usize, f64)>, (place, height)| {
            let is_higher = best.is_none_or(|(_, most)| height > most);
            if is_higher {
                Some((place, height))
            } else {
                best
            }
        },
    );
    let place = highest.and_then(|(place, height)| Some((chart.places.get(place)?, height)));
    match place {
        Some((place, height)) if height > 0.0 => format!(
            "{} places; the highest is {} {} at {}.",
            chart.places.len(),
            brief(height),
            chart.unit,
            place
        ),
        _ => "There is nothing to show yet.".to_owned(),
    }
}

fn figure(chart: &Columns, top: f64, is_each: bool, describe: &str, drawn: &Markup) -> Markup {
    let title_id = format!("{}-title", chart.id);
    let text_id = format!("{}-text", chart.id);
    html! {
        figure.chart id=(chart.id) {
            figcaption { (chart.title) " " span.unit { (chart.unit) } }
            div.plot {
                div.axis-y aria-hidden="true" {
                    span { (brief(top)) } span { (brief(top / 2.0)) } span { "0" }
                }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                    aria-labelledby=(format!("{title_id} {text_id}")) {
                    title id=(title_id) { (chart.title) }
                    desc id=(text_id) { (describe) }
                    line.grid x1="0" x2=(WIDTH) y1="0" y2="0" vector-effect="non-scaling-stroke" {}
                    line.grid x1="0" x2=(WIDTH) y1=(HEIGHT / 2.0) y2=(HEIGHT / 2.0) vector-effect="non-scaling-stroke" {}
                    line.base x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) vector-effect="non-scaling-stroke" {}
                    (drawn)
                }
                div.axis-x.each[is_each] aria-hidden="true" {
                    @for place in labels(&chart.places, if is_each { LABELLED_EACH } else { 5 }) { span { (place) } }
                }
            }
            @if chart.series.len() > 1 { (legend(&chart.series)) }
            (numbers(chart))
        }
    }
}

fn legend(series: &[Series]) -> Markup {
    html! {
        ul.legend {
            @for series in series {
                li { span.key.{ "s" (colour(series)) } aria-hidden="true" {} (series.name) }
            }
        }
    }
}

/// The same as a table, for whoever reads numbers.
fn numbers(chart: &Columns) -> Markup {
    html! {
        details.numbers {
            summary { "As numbers" }
            div.scroll tabindex="0" role="region" aria-label=(format!("{}, as numbers", chart.title)) {
                table {
                    thead { tr {
                        th scope="col" { (chart.axis) }
                        @for series in &chart.series { th.number scope="col" { (series.name) } }
                    } }
                    tbody {
                        @for (place, name) in chart.places.iter().enumerate() {
                            tr {
                                th scope="row" { (name) }
                                @for series in &chart.series {
                                    td.number { (words::decimal(value(series, place))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All places if they are few; else five, evenly spread, the first and the last among them.
fn labels(places: &[String], few: usize) -> Vec<Cow<'_, str>> {
    let count = places.len();
    if count <= few {
        return places.iter().map(Cow::from).collect();
    }
    let pick = |part: usize| Cow::from(&places[part * (count - 1) / 4]);
    (0..5).map(pick).collect()
}

/// A share of a whole as a bar: `parts` are shares of `whole`, drawn one after the other.
pub(crate) fn meter(parts: &[(&str, f64)], whole: f64, called: &str) -> Markup {
    let mut from = 0.0;
    let mut bars = Vec::new();
    for (class, part) in parts {
        let width = share(*part, whole).min(1.0 - from);
        bars.push((*class, from * WIDTH, width * WIDTH));
        from += width;
    }
    html! {
        svg.meter viewBox=(format!("0 0 {WIDTH} 10")) preserveAspectRatio="none" role="img" aria-label=(called) {
            rect.room x="0" y="0" width=(WIDTH) height="10" {}
            @for (class, x, width) in bars {
                rect class=(class) x=(shape(x)) y="0" width=(shape(width)) height="10" {}
            }
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if part.is_finite() && whole.is_finite() && whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn colour(series: &Series) -> usize {
    series.colour.min(COLOURS - 1)
}

fn value(series: &Series, place: usize) -> f64 {
    let value = series.values.get(place).copied().unwrap_or(0.0);
    if value.is_finite() {
        value.clamp(0.0, VALUE_MAX)
    } else {
        0.0
    }
}

/// A coordinate, no longer than it needs to be.
fn shape(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The least round number that is not below a value: 1, 2 or 5 times a power of ten.
fn nice_top(most: f64) -> f64 {
    if !most.is_finite() || most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 10.0];
    let step = steps
        .into_iter()
        .find(|step| step * power >= most * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: Vec<f64>) -> Columns {
        Columns {
            id: "calls".into(),
            title: "Calls".into(),
            unit: "calls a minute",
            places: (0..values.len()).map(|it| format!("10:{it:02}")).collect(),
            axis: "minute",
            series: vec![Series {
                name: "statuses".into(),
                colour: 0,
                values,
            }],
        }
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let tops = [0.0, 0.3, 1.0, 3.0, 4.1, 99.0, 101.0, f64::NAN].map(nice_top);
        let tenths = tops.map(|top| (top * 10.0).round() as u64);
        assert_eq!(tenths, [10, 4, 10, 40, 50, 1_000, 2_000, 10]);
    }

    #[test]
    fn a_chart_says_in_words_what_it_shows() {
        let drawn = columns(&chart(vec![1.0, 7.0, 3.0])).into_string();
        assert!(
            drawn.contains("3 places; the highest is 7 calls a minute at 10:01."),
            "{drawn}"
        );
        assert!(drawn.contains("<details"), "{drawn}");
        let empty = columns(&chart(Vec::new())).into_string();
        assert!(empty.contains("There is nothing to show yet."));
    }

    #[test]
    fn values_that_are_no_numbers_draw_nothing_outside() {
        for values in [vec![f64::NAN, f64::INFINITY, -5.0], vec![f64::MAX; 3]] {
            for drawn in [
                columns(&chart(values.clone())),
                lines(&chart(values.clone())),
            ] {
                let drawn = drawn.into_string();
                assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            }
        }
        let over = meter(&[("used", 80.0), ("others", 90.0)], 100.0, "").into_string();
        assert!(
            over.contains("width=\"800\"") && over.contains("width=\"200\""),
            "{over}"
        );
    }

    #[test]
    fn names_from_outside_are_text() {
        let mut hostile = chart(vec![1.0]);
        hostile.series[0].name = "<script>alert(1)</script>".into();
        hostile.places[0] = "\"><svg onload=alert(1)>".into();
        for drawn in [columns(&hostile), lines(&hostile)] {
            let drawn = drawn.into_string();
            assert!(
                !drawn.contains("<script") && !drawn.contains("<svg onload"),
                "{drawn}"
            );
        }
    }

    #[test]
    fn many_places_are_labelled_by_five() {
        let places: Vec<String> = (0..24).map(|hour| hour.to_string()).collect();
        assert_eq!(labels(&places, 8), ["0", "5", "11", "17", "23"]);
    }
}
