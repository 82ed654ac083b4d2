//! `kittiwake simulate --partition`: how work is divided among machines.

use super::inputs;
use crate::cli::SimulateArguments;
use crate::console::{self, CountLine};
use crate::failure::Failure;
use kittiwake_frontier::Random;
use kittiwake_frontier::partition::{
    self, Comparison, Node, PartitionError, Rated, Ring, Steadiness, Workload,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// CUVIM's numbers of users.
const USERS: [usize; 4] = [10_000, 20_000, 40_000, 80_000];
/// How many subjects a ring is tried with.
const SUBJECTS: [usize; 3] = [1_000, 10_000, 100_000];

/// Whose work is divided, and how many of them in each row.
struct Population {
    /// In an order of chance: the first are as good as any.
    users: Vec<Rated>,
    sizes: Vec<usize>,
    is_synthetic: bool,
}

pub(super) async fn run(arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    let rings = rings(arguments)?;
    let population = population(arguments).await?;
    if !arguments.json {
        console::output(&heading(&population, arguments.seed));
    }
    for ring in &rings {
        let rows = rows(arguments, &population, ring)?;
        let tried = tried(arguments, &population, ring)?;
        if arguments.json {
            let kind = if population.is_synthetic {
                "synthetic"
            } else {
                "trace"
            };
            let rows = rows.iter().map(row_json);
            let lines = rows.chain(tried.iter().map(|found| steadiness_json(ring, found)));
            for mut line in lines {
                line["population"] = json!(kind);
                line["seed"] = json!(arguments.seed);
                console::output(&line.to_string());
            }
        } else {
            console::output(&table(&rows));
            console::output(steadiness_table(ring, &tried).trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(error: &PartitionError) -> Failure {
    Failure::usage(error.to_string())
}

/// A ring for each number of parts.
fn rings(arguments: &SimulateArguments) -> Result<Vec<Ring>, Failure> {
    let weights = &arguments.partition.node_weights;
    let ring = |parts: &u32| {
        let parts = *parts as usize;
        if !weights.is_empty() && weights.len() != parts {
            return Err(Failure::usage(format!(
                "--node-weights has {} weights for {parts} parts; give one for each",
                weights.len()
            )));
        }
        let nodes = (0..parts).map(|node| Node {
            name: format!("node-{}", node + 1),
            weight: weights.get(node).copied().unwrap_or(1.0),
        });
        Ring::new(nodes.collect(), arguments.partition.virtual_nodes)
            .map_err(|error| refused(&error))
    };
    arguments.partition.partition.iter().map(ring).collect()
}

async fn population(arguments: &SimulateArguments) -> Result<Population, Failure> {
    let asked = arguments.partition.users.iter();
    let mut sizes: Vec<usize> = asked.map(|users| *users as usize).collect();
    let mut random = Random::new(arguments.seed);
    let is_synthetic = arguments.trace.is_none() && arguments.from.is_none();
    if is_synthetic {
        if sizes.is_empty() {
            sizes = USERS.to_vec();
        }
        let most = sizes.iter().copied().max().unwrap_or(0);
        return Ok(Population {
            users: partition::synthetic(most, &mut random),
            sizes,
            is_synthetic,
        });
    }
    let mut users = partition::of_trace(&inputs::trace(arguments).await?);
    random.shuffle(&mut users);
    if sizes.is_empty() {
        sizes.push(users.len());
    }
    if let Some(size) = sizes.iter().find(|size| **size > users.len()) {
        return Err(Failure::usage(format!(
            "the trace has {} users, fewer than --users {size}",
            users.len()
        )));
    }
    Ok(Population {
        users,
        sizes,
        is_synthetic,
    })
}

/// Draws of their own for every row, so that it is the same whatever stands beside it.
const fn draws(arguments: &SimulateArguments) -> Random {
    Random::new(!arguments.seed)
}

fn rows(
    arguments: &SimulateArguments,
    population: &Population,
    ring: &Ring,
) -> Result<Vec<Comparison>, Failure> {
    let mut line = CountLine::new(!arguments.quiet);
    let epsilon = arguments.partition.epsilon;
    let row = |size: &usize| {
        let users = &population.users[..*size];
        let mut tell = |way: &str| {
            line.tell(&format!(
                "{} parts, {size} users: {way}",
                ring.nodes().len()
            ));
        };
        partition::compare(users, ring, epsilon, &mut draws(arguments), &mut tell)
            .map_err(|error| refused(&error))
    };
    population.sizes.iter().map(row).collect()
}

fn tried(
    arguments: &SimulateArguments,
    population: &Population,
    ring: &Ring,
) -> Result<Vec<Steadiness>, Failure> {
    let users = &population.users;
    let tried = |subjects| partition::steadiness(users, ring, subjects, &mut draws(arguments));
    let tried = SUBJECTS.into_iter().map(tried);
    tried
        .collect::<Result<_, _>>()
        .map_err(|error| refused(&error))
}

fn heading(population: &Population, seed: u64) -> String {
    let users = population.users.len();
    if population.is_synthetic {
        return format!(
            "a synthetic population of {users} users (rates by a log-normal law, half below 1 post \
             a day), seed {seed}"
        );
    }
    format!("{users} users of the trace, seed {seed}")
}

/// The row's methods by their names.
fn methods(row: &Comparison) -> [(&'static str, Workload); 4] {
    [
        ("random", row.random),
        ("round robin", row.round_robin),
        ("set division", row.set_division),
        ("ring", row.ring),
    ]
}

fn table(rows: &[Comparison]) -> String {
    let parts = rows.first().map_or(0, |row| row.parts);
    let mut text = format!(
        "\n{parts} parts: how unlike their work is, in posts a day (largest - smallest; sum over \
         all pairs)\n{:>8} {:>12}",
        "users", "total"
    );
    for (name, _) in rows.first().map(methods).iter().flatten() {
        let _ = write!(text, " {name:>12} {:>12}", "pairs");
    }
    for row in rows {
        let _ = write!(text, "\n{:>8} {:>12.2}", row.users, row.total_per_day);
        for (_, workload) in methods(row) {
            let _ = write!(
                text,
                " {:>12.2} {:>12.2}",
                workload.difference, workload.pairwise
            );
        }
        if !row.is_proven {
            text.push_str(" *");
        }
    }
    if rows.iter().any(|row| !row.is_proven) {
        text.push_str("\n* a search for the most even sets was given up; --epsilon bounds it");
    }
    text
}

fn steadiness_table(ring: &Ring, tried: &[Steadiness]) -> String {
    let mut text = format!(
        "\nring of {} nodes, {} virtual nodes for a weight of 1: coefficient of variation over the \
         nodes, and\nthe share of subjects that moves when a node joins or leaves (its share of all \
         weights)\n{:>8} {:>12} {:>14} {:>20} {:>20}\n",
        ring.nodes().len(),
        ring.virtual_nodes(),
        "subjects",
        "of subjects",
        "of posts a day",
        "joins",
        "leaves",
    );
    for found in tried {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        let moved = |moved: f64, fair: f64| format!("{} ({})", percent(moved), percent(fair));
        let _ = writeln!(
            text,
            "{:>8} {:>12} {:>14} {:>20} {:>20}",
            found.subjects,
            percent(found.subjects_variation),
            percent(found.load_variation),
            moved(found.moved_by_join, found.fair_join),
            moved(found.moved_by_leave, found.fair_leave),
        );
    }
    text
}

fn row_json(row: &Comparison) -> Value {
    let mut value = json!({
        "experiment": "partition",
        "parts": row.parts,
        "users": row.users,
        "total_per_day": row.total_per_day,
        "set_division_is_proven": row.is_proven,
    });
    for (name, workload) in methods(row) {
        value[name.replace(' ', "_")] = json!({
            "difference": workload.difference,
            "pairwise": workload.pairwise,
        });
    }
    value
}

fn steadiness_json(ring: &Ring, found: &Steadiness) -> Value {
    json!({
        "experiment": "ring",
        "parts": ring.nodes().len(),
        "virtual_nodes": ring.virtual_nodes(),
        "subjects": found.subjects,
        "subjects_variation": found.subjects_variation,
        "load_variation": found.load_variation,
        "moved_by_join": found.moved_by_join,
        "fair_join": found.fair_join,
        "moved_by_leave": found.moved_by_leave,
        "fair_leave": found.fair_leave,
    })
}
