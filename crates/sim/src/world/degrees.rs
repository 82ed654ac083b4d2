//! How many stubs of follow edges each rank has: a power law whose sums have a closed form.
//!
//! Ranks are grouped in a few levels of equal degree. Each level has half as much again of degree
//! as the one before and a fixed share of its members, which is a power law seen in steps. Sums
//! over ranks are sums over levels, so the owner of a stub is found without a table of users.

/// What a power law looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) degree_min: u64,
    pub(crate) degree_max: u64,
    /// How many of a hundred members of a level there are in the next.
    pub(crate) next_level_percent: u64,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    first_rank: u64,
    first_stub: u64,
    degree: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Degrees {
    /// The highest degree first; never empty.
    levels: Vec<Level>,
    stubs: u64,
}

/// Bounds the levels, whatever shape is asked for.
const LEVELS_MAX: usize = 40;

impl Degrees {
    pub(crate) fn power_law(users: u64, shape: Shape) -> Self {
        let mut degree = shape.degree_min;
        let mut weight: u64 = 1 << 40;
        let mut steps = Vec::new();
        while steps.len() < LEVELS_MAX && (steps.is_empty() || degree <= shape.degree_max) {
            steps.push((degree, weight));
            degree = degree * 3 / 2;
            weight = weight * shape.next_level_percent / 100;
        }
        let weight_sum: u64 = steps.iter().map(|&(_, weight)| weight).sum();
        let mut levels = Vec::with_capacity(steps.len());
        let mut first_rank = 0;
        let mut first_stub = 0;
        for &(degree, weight) in steps.iter().rev() {
            let members = u128::from(users) * u128::from(weight) / u128::from(weight_sum);
            // What rounding left over belongs to the most common level, which comes last.
            let is_last = degree == shape.degree_min;
            let ranks = if is_last {
                users - first_rank
            } else {
                members as u64
            };
            if ranks > 0 || is_last {
                levels.push(Level {
                    first_rank,
                    first_stub,
                    degree,
                });
            }
            first_rank += ranks;
            first_stub += ranks * degree;
        }
        Self {
            levels,
            stubs: first_stub,
        }
    }

    pub(crate) const fn stubs(&self) -> u64 {
        self.stubs
    }

    pub(crate) fn degree(&self, rank: u64) -> u64 {
        self.level_of_rank(rank).degree
    }

    /// The stubs of a rank.
    pub(crate) fn stubs_of(&self, rank: u64) -> std::ops::Range<u64> {
        let level = self.level_of_rank(rank);
        let first = level.first_stub + (rank - level.first_rank) * level.degree;
        first..first + level.degree
    }

    /// The rank a stub belongs to; none if there is no such stub.
    pub(crate) fn owner(&self, stub: u64) -> Option<u64> {
        if stub >= self.stubs {
            return None;
        }
        let after = self
            .levels
            .partition_point(|level| level.first_stub <= stub);
        let level = self.levels[after - 1];
        Some(level.first_rank + (stub - level.first_stub) / level.degree)
    }

    fn level_of_rank(&self, rank: u64) -> Level {
        let after = self
            .levels
            .partition_point(|level| level.first_rank <= rank);
        self.levels[after - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        degree_min: 4,
        degree_max: 300,
        next_level_percent: 64,
    };

    #[test]
    fn every_stub_belongs_to_the_rank_that_lists_it() {
        for users in [1, 2, 7, 100, 2_000] {
            let degrees = Degrees::power_law(users, SHAPE);
            let mut next_stub = 0;
            for rank in 0..users {
                let stubs = degrees.stubs_of(rank);
                assert_eq!(stubs.start, next_stub);
                assert_eq!(stubs.end - stubs.start, degrees.degree(rank));
                next_stub = stubs.end;
                assert!(
                    stubs
                        .into_iter()
                        .all(|stub| degrees.owner(stub) == Some(rank))
                );
            }
            assert_eq!(degrees.stubs(), next_stub);
            assert_eq!(degrees.owner(next_stub), None);
        }
    }

    #[test]
    fn high_degrees_are_rare_but_there() {
        let degrees = Degrees::power_law(2_000, SHAPE);
        let over_80 = (0..2_000).filter(|&rank| degrees.degree(rank) > 80).count();
        assert!((20..200).contains(&over_80), "{over_80}");
        let mean = degrees.stubs() / 2_000;
        assert!((8..25).contains(&mean), "{mean}");
    }
}
