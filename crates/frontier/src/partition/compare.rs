//! The ways to divide, compared as in CUVIM's Tables 3 and 4, and how steady a ring is.

use super::{
    Node, PartitionError, Ring, Workload, loads, random, round_robin, set_division, variation,
};
use crate::random::Random;
use crate::replay::Trace;

/// Chance is drawn so often; its mean is compared. One draw is now better, now worse by far.
const DRAWS: u32 = 100;
/// The rates of a synthetic population: half of all post less than this a day.
const MEDIAN_PER_DAY: f64 = 1.0;
/// The standard deviation of their logarithms. It makes a mean of 5 a day, as in CUVIM's tables,
/// and differences by chance of the size that it measured.
const LOG_DEVIATION: f64 = 1.8;

/// Somebody, and how often they post.
#[derive(Debug, Clone, PartialEq)]
pub struct Rated {
    pub name: String,
    pub per_day: f64,
}

/// The users of a trace with their posts a day, over all facets; a trace is never shorter than a
/// day.
pub fn of_trace(trace: &Trace) -> Vec<Rated> {
    let mut posts = vec![0_u64; trace.users.len()];
    for subject in &trace.subjects {
        posts[subject.user as usize] += subject.posts.len() as u64;
    }
    let days = trace.days().max(1.0);
    let users = trace.users.iter().zip(posts);
    users
        .map(|(name, posts)| Rated {
            name: name.clone(),
            per_day: posts as f64 / days,
        })
        .collect()
}

/// Users whose rates follow a log-normal law.
pub fn synthetic(users: usize, random: &mut Random) -> Vec<Rated> {
    (0..users)
        .map(|user| Rated {
            name: format!("user-{user}"),
            per_day: MEDIAN_PER_DAY * (LOG_DEVIATION * normal(random)).exp(),
        })
        .collect()
}

/// A draw from the standard normal law, by Box and Muller.
fn normal(random: &mut Random) -> f64 {
    // From above 0 to 1: the logarithm of 0 is none.
    let radius = (-2.0 * (1.0 - random.share()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.share()).cos()
}

/// One row of the tables: how unlike parts are, in posts a day.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub users: usize,
    pub parts: u32,
    pub total_per_day: f64,
    /// The mean of many draws.
    pub random: Workload,
    pub round_robin: Workload,
    pub set_division: Workload,
    /// Whether set division found the best of each split, or gave a search up.
    pub is_proven: bool,
    /// With loads over the weights of the nodes, by their mean.
    pub ring: Workload,
}

/// Divides users among as many parts as the ring has nodes, in every way; tells which is tried.
pub fn compare(
    users: &[Rated],
    ring: &Ring,
    epsilon: Option<f64>,
    source: &mut Random,
    progress: &mut dyn FnMut(&str),
) -> Result<Comparison, PartitionError> {
    let parts = ring.nodes().len() as u32;
    let rates: Vec<f64> = users.iter().map(|user| user.per_day).collect();
    let workload = |part_of: &[u32]| Workload::of(&loads(&rates, part_of, parts));
    let mut by_chance = Workload::default();
    for _ in 0..DRAWS {
        progress("random");
        let drawn = workload(&random(rates.len(), parts, source)?);
        by_chance.difference += drawn.difference / f64::from(DRAWS);
        by_chance.pairwise += drawn.pairwise / f64::from(DRAWS);
    }
    progress("set division");
    let division = set_division(&rates, parts, epsilon)?;
    progress("ring");
    let owners: Vec<u32> = users.iter().map(|user| ring.owner(&user.name)).collect();
    Ok(Comparison {
        users: users.len(),
        parts,
        total_per_day: rates.iter().sum(),
        random: by_chance,
        round_robin: workload(&round_robin(&rates, parts)?),
        set_division: workload(&division.part_of),
        is_proven: division.is_proven,
        ring: Workload::of(&by_weight(ring, loads(&rates, &owners, parts))),
    })
}

/// Loads as they would be if every node had the mean weight.
fn by_weight(ring: &Ring, loads: Vec<f64>) -> Vec<f64> {
    let mean = weight(ring) / ring.nodes().len() as f64;
    let nodes = ring.nodes().iter();
    let each = nodes.zip(loads);
    each.map(|(node, load)| load * mean / node.weight).collect()
}

fn weight(ring: &Ring) -> f64 {
    ring.nodes().iter().map(|node| node.weight).sum()
}

/// How evenly a ring divides so many subjects, and how many move.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    pub subjects: usize,
    /// The coefficient of variation over the nodes, by their weights: of subjects, of posts a day.
    pub subjects_variation: f64,
    pub load_variation: f64,
    /// The share of subjects that move when a node of the mean weight joins, and its share of all
    /// weights, which is the least that must move.
    pub moved_by_join: f64,
    pub fair_join: f64,
    /// The same for the last node when it leaves.
    pub moved_by_leave: f64,
    pub fair_leave: f64,
}

/// Divides subjects whose rates are drawn from the users'.
pub fn steadiness(
    users: &[Rated],
    ring: &Ring,
    subjects: usize,
    random: &mut Random,
) -> Result<Steadiness, PartitionError> {
    let Some(last) = ring.nodes().last() else {
        return Err(PartitionError::NoNodes);
    };
    let newcomer = Node {
        name: format!("{}-and-one-more", last.name),
        weight: weight(ring) / ring.nodes().len() as f64,
    };
    let fair_join = newcomer.weight / (weight(ring) + newcomer.weight);
    let joined = ring.with(newcomer)?;
    let left = ring.without(&last.name)?;
    let nodes = ring.nodes().len() as u32;
    let (mut owners, mut rates) = (Vec::new(), Vec::new());
    let (mut by_join, mut by_leave) = (0_u32, 0_u32);
    for subject in 0..subjects {
        let name = format!("subject-{subject}");
        let owner = ring.owner(&name);
        let drawn = users.get(random.below(users.len()));
        rates.push(drawn.map_or(0.0, |user| user.per_day));
        owners.push(owner);
        // Both rings begin with the same nodes.
        by_join += u32::from(joined.owner(&name) != owner);
        by_leave += u32::from(left.owner(&name) != owner);
    }
    let variation_of = |rates: &[f64]| variation(&by_weight(ring, loads(rates, &owners, nodes)));
    let share = |moved: u32| f64::from(moved) / subjects.max(1) as f64;
    Ok(Steadiness {
        subjects,
        subjects_variation: variation_of(&vec![1.0; subjects]),
        load_variation: variation_of(&rates),
        moved_by_join: share(by_join),
        fair_join,
        moved_by_leave: share(by_leave),
        fair_leave: last.weight / weight(ring),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::WorldTime;

    const SEED: u64 = 11;

    fn ring(weights: &[f64]) -> Ring {
        let named = weights.iter().zip(1_u32..);
        let nodes = named.map(|(weight, number)| Node {
            name: format!("n{number}"),
            weight: *weight,
        });
        Ring::new(nodes.collect(), 256).unwrap()
    }

    #[test]
    fn a_traces_users_have_their_posts_a_day() {
        let day = |days: i64| WorldTime(days * 86_400_000_000);
        let posts = [("a", 0), ("b", 1), ("a", 2), ("a", 4)];
        let trace = Trace::of(posts.map(|(user, days)| (user.to_owned(), day(days)))).unwrap();
        let rates: Vec<f64> = of_trace(&trace).iter().map(|user| user.per_day).collect();
        assert_eq!(rates, [0.75, 0.25]);
        // A single moment is a day.
        let trace = Trace::of([("a".to_owned(), day(3))]).unwrap();
        assert!((of_trace(&trace)[0].per_day - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_synthetic_population_has_the_median_and_the_mean_of_its_law() {
        let users = synthetic(100_000, &mut Random::new(SEED));
        let mut rates: Vec<f64> = users.iter().map(|user| user.per_day).collect();
        rates.sort_by(f64::total_cmp);
        assert!((rates[50_000] - 1.0).abs() < 0.05, "seed {SEED}");
        let mean = rates.iter().sum::<f64>() / 100_000.0;
        let expected = (LOG_DEVIATION * LOG_DEVIATION / 2.0).exp();
        assert!((mean / expected - 1.0).abs() < 0.1, "seed {SEED}: {mean}");
        assert_eq!(users, synthetic(100_000, &mut Random::new(SEED)));
    }

    #[test]
    fn every_way_is_better_than_chance_but_the_ring() {
        let users = synthetic(5_000, &mut Random::new(SEED));
        for parts in [2, 5, 16] {
            let row = compare(
                &users,
                &ring(&vec![1.0; parts]),
                None,
                &mut Random::new(SEED),
                &mut |_| {},
            );
            let row = row.unwrap();
            assert!(row.is_proven);
            assert!(
                row.set_division.difference < row.round_robin.difference,
                "{row:?}"
            );
            assert!(
                row.round_robin.difference < row.random.difference,
                "{row:?}"
            );
            assert!(row.ring.difference > row.set_division.difference, "{row:?}");
            let pairs = (parts * (parts - 1) / 2) as f64;
            assert!(
                row.random.pairwise <= pairs * row.random.difference,
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_ring_is_as_steady_as_its_points_are_many() {
        let users = synthetic(1_000, &mut Random::new(SEED));
        let weights = [1.0, 2.0, 1.0, 4.0];
        let found = steadiness(&users, &ring(&weights), 50_000, &mut Random::new(SEED)).unwrap();
        // 256 points a node of weight 1 give about one part in 16.
        assert!(found.subjects_variation < 0.15, "{found:?}");
        assert!((found.fair_join - 0.2).abs() < 1e-12 && (found.fair_leave - 0.5).abs() < 1e-12);
        assert!(
            (found.moved_by_join / found.fair_join - 1.0).abs() < 0.2,
            "{found:?}"
        );
        assert!(
            (found.moved_by_leave / found.fair_leave - 1.0).abs() < 0.2,
            "{found:?}"
        );
        let nobody = steadiness(&[], &ring(&weights), 0, &mut Random::new(SEED)).unwrap();
        assert!(nobody.moved_by_join.abs() < 1e-12 && nobody.load_variation.abs() < 1e-12);
    }
}
