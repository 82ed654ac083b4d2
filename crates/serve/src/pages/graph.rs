//! A picture of who follows whom, laid out here.

use super::classes::{class_colour, class_name};
use super::force::{self, Point};
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{address, called, empty, link};
use super::words;
use crate::{Problem, Shared};
use axum::extract::{Query, State};
use axum::response::Response;
use kittiwake_model::Key;
use kittiwake_store::browse::{Graph, GraphNode, GraphQuestion};
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

const NODES_MAX: usize = 300;
/// Edges that are drawn; more would be a blot.
const EDGES_MAX: usize = 4_000;
/// Sides of the picture, and the room around the outermost nodes.
const WIDTH: f64 = 1_200.0;
const HEIGHT: f64 = 800.0;
const MARGIN: f64 = 40.0;
/// Nodes with a name beside them: the most followed, and of those the ones that a phone shows.
const NAMED: usize = 30;
const NAMED_OF: usize = 120;
const NAMED_ON_PHONES: usize = 6;
/// The room that a name takes.
const NAME_WIDTH: u32 = 110;
const NAME_HEIGHT: u32 = 18;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    around: Option<i64>,
}

pub(super) async fn get(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Response {
    let sheet = sheet(&shared, asked.around.map(Key)).await;
    frame.answer(sheet)
}

async fn sheet(shared: &Shared, around: Option<Key>) -> Result<Sheet, Problem> {
    let question = GraphQuestion {
        around,
        nodes_max: NODES_MAX,
    };
    let mut graph = shared.browser.graph(question).await?;
    graph.edges.truncate(EDGES_MAX);
    let (graph, points) = tokio::task::spawn_blocking(move || {
        let points = force::layout(graph.nodes.len(), &graph.edges);
        (graph, points)
    })
    .await
    .map_err(|_| Problem::conflict("The picture could not be laid out. Try again."))?;
    let middle = around.and_then(|key| graph.nodes.iter().find(|node| node.label.key == key));
    let body = html! {
        div.head {
            h1 { "Graph" }
            p {
                @match middle {
                    Some(node) => { "Those around " (link(&node.label)) ", and who of them follows whom. " a href="/graph" { "Everybody" } },
                    None => { "The best connected people that were collected, and who of them follows whom. Choose one to go there." },
                }
            }
        }
        @if graph.nodes.is_empty() {
            section.part { (empty("There is no picture yet.", "It needs people and who follows whom: let the robots following and followers run for a while.")) }
        } @else {
            (drawing(&graph, &points))
            (numbers(&graph))
        }
    };
    Ok(Sheet {
        here: Here::Graph,
        title: "Graph".into(),
        refresh: Refresh::Standing,
        body,
    })
}

fn drawing(graph: &Graph, points: &[Point]) -> Markup {
    let place = |number: usize| points.get(number).map(|it| placed(*it));
    let names = names(&graph.nodes, points);
    let edges = graph.edges.iter().filter_map(|(from, to)| {
        let (one, other) = (place(*from)?, place(*to)?);
        Some((*from, *to, one, other))
    });
    let summary = format!(
        "{} people and {} follow relations between them. The table below has the same people.",
        graph.nodes.len(),
        graph.edges.len()
    );
    html! {
        section.part.graph aria-label="Picture" {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="group" aria-labelledby="graph-title graph-text" {
                title #graph-title { "Who follows whom" }
                desc #graph-text { (summary) }
                g {
                    @for (from, to, one, other) in edges {
                        line.edge data-from=(from) data-to=(to) x1=(one.0) y1=(one.1) x2=(other.0) y2=(other.1) {}
                    }
                }
                @for (number, node) in graph.nodes.iter().enumerate() {
                    @if let Some((x, y)) = place(number) {
                        a href=(address(node.label.key)) data-node=(number) {
                            title { (called(&node.label)) (followers_text(node)) }
                            circle.{ "s" (class_of(node)) } cx=(x) cy=(y) r=(radius(node)) {}
                        }
                    }
                }
                g aria-hidden="true" {
                    @for name in &names {
                        text.lesser[name.is_lesser] x=(name.x) y=(name.y) { (name.text) }
                    }
                }
            }
            (legend(graph))
            p.note { (summary) @if graph.is_cut { " There are more than are shown." } " A larger circle has more followers." }
        }
    }
}

/// A place in the picture, in whole units.
fn placed(point: Point) -> (u32, u32) {
    let x = MARGIN + point.x.clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN);
    let y = MARGIN + point.y.clamp(0.0, 1.0) * (HEIGHT - 2.0 * MARGIN);
    (x as u32, y as u32)
}

/// A name in the picture.
struct Name {
    text: String,
    x: u32,
    y: u32,
    /// A phone leaves it out.
    is_lesser: bool,
}

/// Names of the most followed, as far as they do not cover one another.
fn names(nodes: &[GraphNode], points: &[Point]) -> Vec<Name> {
    let mut order: Vec<(&GraphNode, &Point)> = nodes.iter().zip(points).collect();
    order.sort_by_key(|(node, _)| std::cmp::Reverse(node.followers));
    let mut names: Vec<Name> = Vec::new();
    for (node, point) in order.into_iter().take(NAMED_OF) {
        let (x, y) = placed(*point);
        let y = y.saturating_sub(radius(node) + 5);
        let text = words::short_to(&called(&node.label), 18);
        let is_free = names
            .iter()
            .all(|name| name.x.abs_diff(x) > NAME_WIDTH || name.y.abs_diff(y) > NAME_HEIGHT);
        if is_free {
            let is_lesser = names.len() >= NAMED_ON_PHONES;
            names.push(Name {
                text,
                x,
                y,
                is_lesser,
            });
        }
        if names.len() == NAMED {
            break;
        }
    }
    names
}

fn radius(node: &GraphNode) -> u32 {
    let followers = node.followers.unwrap_or(0).max(0) as f64;
    (4.0 + (followers + 1.0).log10() * 3.0) as u32
}

fn class_of(node: &GraphNode) -> usize {
    class_colour(node.class.as_deref().unwrap_or_default())
}

fn followers_text(node: &GraphNode) -> String {
    let followers = node.followers.and_then(|count| u64::try_from(count).ok());
    followers.map_or_else(String::new, |count| {
        format!(", {} followers", words::grouped(count))
    })
}

fn legend(graph: &Graph) -> Markup {
    let mut classes: Vec<&str> = graph
        .nodes
        .iter()
        .map(|node| node.class.as_deref().unwrap_or_default())
        .collect();
    classes.sort_by_key(|class| (class_colour(class), *class));
    classes.dedup();
    html! {
        ul.legend {
            @for class in classes {
                li { span.key.{ "s" (class_colour(class)) } aria-hidden="true" {} (class_name(class)) }
            }
        }
    }
}

fn numbers(graph: &Graph) -> Markup {
    let mut degrees = vec![(0_u64, 0_u64); graph.nodes.len()];
    for (from, to) in &graph.edges {
        if let Some(degree) = degrees.get_mut(*from) {
            degree.0 += 1;
        }
        if let Some(degree) = degrees.get_mut(*to) {
            degree.1 += 1;
        }
    }
    html! {
        section.part {
            details {
                summary { "As a table" }
                div.scroll tabindex="0" role="region" aria-label="People of the picture" {
                    table {
                        thead { tr {
                            th scope="col" { "Who" } th scope="col" { "Class" } th.number scope="col" { "Steps from a seed" }
                            th.number scope="col" { "Followers" } th.number scope="col" { "Follows here" } th.number scope="col" { "Followed by here" }
                            th scope="col" { span.aside { "Picture" } }
                        } }
                        tbody {
                            @for (node, (follows, followed)) in graph.nodes.iter().zip(degrees) {
                                tr {
                                    th scope="row" { (link(&node.label)) }
                                    td { @match &node.class { Some(class) => { (class) }, None => { (words::dash()) } } }
                                    td.number { (words::number_or_dash(node.depth.map(u64::from))) }
                                    td.number { (words::number_or_dash(node.followers.and_then(|it| u64::try_from(it).ok()))) }
                                    td.number { (words::number(follows)) }
                                    td.number { (words::number(followed)) }
                                    td.act { a href={ "/graph?around=" (node.label.key.0) } { "Around" span.aside { " " (called(&node.label)) } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
