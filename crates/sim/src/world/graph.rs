//! Who follows whom, seen alike from both ends.
//!
//! Every user has stubs for the edges that leave and stubs for the edges that arrive. One
//! permutation joins leaving stubs to arriving stubs; run backwards it joins them the other way
//! round, so `following` and `followers` cannot disagree. Loops are dropped, and of several edges
//! between the same two users only the one with the lowest leaving stub counts, whichever end
//! asks. When an edge begins and ends depends on its leaving stub alone.

use super::degrees::{Degrees, Shape};
use super::dice::{Dice, Purpose};
use super::feistel::Permutation;
use super::ids;
use super::time::{DAY_S, SECOND_US};

/// Edges begin within this span before the world's anchor, and one year after it.
const PAST_DAYS: u64 = 1_095;
const FUTURE_DAYS: u64 = 365;
/// How many of a thousand edges begin only after the anchor.
const FUTURE_PERMILLE: u64 = 60;
const UNFOLLOW_PERMILLE: u64 = 160;

/// One follow edge over all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follow {
    pub(crate) source: u64,
    pub(crate) target: u64,
    /// Sorts edges by when they began.
    pub(crate) id: u64,
    from_us: i64,
    until_us: i64,
}

impl Follow {
    pub(crate) const fn has_begun(&self, at_us: i64) -> bool {
        self.from_us <= at_us
    }

    pub(crate) const fn begun_us(&self) -> i64 {
        self.from_us
    }

    pub(crate) const fn holds_at(&self, at_us: i64) -> bool {
        self.from_us <= at_us && at_us < self.until_us
    }
}

#[derive(Debug)]
pub(crate) struct Graph {
    seed: u64,
    anchor_s: i64,
    leaving: Degrees,
    arriving: Degrees,
    leaving_ranks: Permutation,
    arriving_ranks: Permutation,
    stubs: Permutation,
}

impl Graph {
    pub(crate) fn new(seed: u64, users: u64, anchor_s: i64) -> Self {
        let leaving = Degrees::power_law(
            users,
            Shape {
                degree_min: 6,
                degree_max: (users / 8).clamp(6, 1_500),
                next_level_percent: 59,
            },
        );
        let arriving = Degrees::power_law(
            users,
            Shape {
                degree_min: 4,
                degree_max: (users / 6).clamp(4, 30_000),
                next_level_percent: 64,
            },
        );
        // The two sums differ; a stub that meets nothing on the other side is no edge.
        let stubs_total = leaving.stubs().max(arriving.stubs());
        Self {
            seed,
            anchor_s,
            leaving,
            arriving,
            leaving_ranks: Permutation::new(seed, 1, users),
            arriving_ranks: Permutation::new(seed, 2, users),
            stubs: Permutation::new(seed, 3, stubs_total),
        }
    }

    /// How many arriving stubs a user has: an upper bound of the followers at any time.
    pub(crate) fn fame(&self, user: u64) -> u64 {
        self.arriving.degree(self.arriving_ranks.forward(user))
    }

    /// Where a user stands among all when the most famous comes first.
    pub(crate) fn place_by_fame(&self, user: u64) -> u64 {
        self.arriving_ranks.forward(user)
    }

    /// Users by the number of arriving stubs, the most famous first.
    pub(crate) fn by_fame(&self, position: u64) -> u64 {
        self.arriving_ranks.backward(position)
    }

    /// All edges that ever leave a user, in no particular order.
    pub(crate) fn following(&self, user: u64) -> Vec<Follow> {
        let stubs = self.leaving.stubs_of(self.leaving_ranks.forward(user));
        let mut edges: Vec<(u64, u64)> = stubs
            .filter_map(|stub| {
                let rank = self.arriving.owner(self.stubs.forward(stub))?;
                Some((self.arriving_ranks.backward(rank), stub))
            })
            .filter(|&(target, _)| target != user)
            .collect();
        keep_lowest_stub(&mut edges);
        edges
            .into_iter()
            .map(|(target, stub)| self.follow(user, target, stub))
            .collect()
    }

    /// All edges that ever arrive at a user, in no particular order.
    pub(crate) fn followers(&self, user: u64) -> Vec<Follow> {
        let stubs = self.arriving.stubs_of(self.arriving_ranks.forward(user));
        let mut edges: Vec<(u64, u64)> = stubs
            .filter_map(|arriving_stub| {
                let stub = self.stubs.backward(arriving_stub);
                let rank = self.leaving.owner(stub)?;
                Some((self.leaving_ranks.backward(rank), stub))
            })
            .filter(|&(source, _)| source != user)
            .collect();
        keep_lowest_stub(&mut edges);
        edges
            .into_iter()
            .map(|(source, stub)| self.follow(source, user, stub))
            .collect()
    }

    fn follow(&self, source: u64, target: u64, leaving_stub: u64) -> Follow {
        let mut dice = Dice::new(self.seed, Purpose::Follow, leaving_stub, 0);
        let day_s = DAY_S as u64;
        let from_s = if dice.chance(FUTURE_PERMILLE) {
            self.anchor_s + dice.below(FUTURE_DAYS * day_s) as i64
        } else {
            self.anchor_s - dice.below(PAST_DAYS * day_s) as i64
        };
        let until_s = if dice.chance(UNFOLLOW_PERMILLE) {
            from_s + dice.long_tail(2 * day_s, 9) as i64
        } else {
            i64::MAX / SECOND_US
        };
        Follow {
            source,
            target,
            id: ids::follow_id(from_s, leaving_stub),
            from_us: from_s * SECOND_US,
            until_us: until_s * SECOND_US,
        }
    }
}

/// Of several edges to the same other end keeps the one with the lowest leaving stub.
fn keep_lowest_stub(edges: &mut Vec<(u64, u64)>) {
    edges.sort_unstable();
    edges.dedup_by_key(|edge| edge.0);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const ANCHOR_S: i64 = 1_790_000_000;

    fn edges_seen_from(graph: &Graph, users: u64, leaving: bool) -> BTreeSet<(u64, u64, u64)> {
        let list = |user| {
            if leaving {
                graph.following(user)
            } else {
                graph.followers(user)
            }
        };
        (0..users)
            .flat_map(list)
            .map(|edge| (edge.source, edge.target, edge.id))
            .collect()
    }

    #[test]
    fn both_ends_tell_the_same_edges() {
        for (seed, users) in [(1, 1), (2, 2), (3, 50), (4, 1_000), (99, 2_000)] {
            let graph = Graph::new(seed, users, ANCHOR_S);
            let leaving = edges_seen_from(&graph, users, true);
            assert_eq!(
                leaving,
                edges_seen_from(&graph, users, false),
                "seed {seed}"
            );
            assert!(leaving.iter().all(|&(source, target, _)| source != target));
        }
    }

    #[test]
    fn edges_come_and_go() {
        let graph = Graph::new(5, 2_000, ANCHOR_S);
        let count_at = |at_s: i64| {
            (0..2_000)
                .flat_map(|user| graph.following(user))
                .filter(|edge| edge.holds_at(at_s * SECOND_US))
                .count()
        };
        let now = count_at(ANCHOR_S);
        assert!((16_000..40_000).contains(&now), "{now}");
        assert_ne!(now, count_at(ANCHOR_S + 30 * DAY_S));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn an_edge_is_listed_at_its_other_end(seed: u64, users in 2_u64..100_000_000, share in 0.0..1.0_f64) {
            let graph = Graph::new(seed, users, ANCHOR_S);
            let user = ((users as f64 * share) as u64).min(users - 1);
            for edge in graph.following(user).into_iter().take(5) {
                prop_assert!(graph.followers(edge.target).contains(&edge));
            }
            for edge in graph.followers(user).into_iter().take(5) {
                prop_assert!(graph.following(edge.source).contains(&edge));
            }
        }
    }
}
