//! The hash ring with virtual nodes (SWORM).
//!
//! Nodes and subjects are points on a circle; a subject belongs to the first node clockwise. A node
//! has as many points as its weight says, whatever the other nodes weigh: so a node that joins takes
//! subjects over and moves no other, and what a node that leaves had goes to the others.

use super::PartitionError;
use crate::random::Random;

/// Points that a ring has at most, 16 bytes each.
const POINTS_MAX: usize = 10_000_000;

/// A machine that takes part.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub name: String,
    /// What it can do, beside others: 2 gets twice the subjects of 1.
    pub weight: f64,
}

/// Who owns which subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    nodes: Vec<Node>,
    /// By place on the circle; the node by its number.
    points: Vec<(u64, u32)>,
    virtual_nodes: u32,
}

impl Ring {
    /// A ring in which a node of weight 1 has `virtual_nodes` points.
    pub fn new(nodes: Vec<Node>, virtual_nodes: u32) -> Result<Self, PartitionError> {
        check(&nodes)?;
        let counts: Vec<u64> = nodes
            .iter()
            .map(|node| ((node.weight * f64::from(virtual_nodes)).round() as u64).max(1))
            .collect();
        let all = counts
            .iter()
            .try_fold(0_u64, |all, count| all.checked_add(*count));
        if all.is_none_or(|all| all > POINTS_MAX as u64) {
            return Err(PartitionError::TooManyPoints(POINTS_MAX));
        }
        let mut points = Vec::new();
        for ((node, count), number) in nodes.iter().zip(counts).zip(0_u32..) {
            points.extend((0..count).map(|copy| (point(&node.name, Some(copy)), number)));
        }
        // Of two nodes at one point the first by name has it, in whatever order they are given.
        let name = |number: u32| nodes[number as usize].name.as_str();
        points.sort_unstable_by(|one, other| {
            one.0
                .cmp(&other.0)
                .then_with(|| name(one.1).cmp(name(other.1)))
        });
        Ok(Self {
            nodes,
            points,
            virtual_nodes,
        })
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub const fn virtual_nodes(&self) -> u32 {
        self.virtual_nodes
    }

    /// The number of the node that a subject belongs to.
    pub fn owner(&self, subject: &str) -> u32 {
        let at = point(subject, None);
        let next = self.points.partition_point(|(place, _)| *place < at);
        self.points[next % self.points.len()].1
    }

    /// The ring after a node has joined.
    pub fn with(&self, node: Node) -> Result<Self, PartitionError> {
        let mut nodes = self.nodes.clone();
        nodes.push(node);
        Self::new(nodes, self.virtual_nodes)
    }

    /// The ring after a node has left.
    pub fn without(&self, name: &str) -> Result<Self, PartitionError> {
        let mut nodes = self.nodes.clone();
        nodes.retain(|node| node.name != name);
        if nodes.len() == self.nodes.len() {
            return Err(PartitionError::UnknownNode(name.to_owned()));
        }
        Self::new(nodes, self.virtual_nodes)
    }
}

fn check(nodes: &[Node]) -> Result<(), PartitionError> {
    if nodes.is_empty() {
        return Err(PartitionError::NoNodes);
    }
    let is_weight = |node: &&Node| node.weight.is_finite() && node.weight > 0.0;
    if let Some(wrong) = nodes.iter().find(|node| !is_weight(node)) {
        return Err(PartitionError::Weight(wrong.weight));
    }
    let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PartitionError::SameName(pair[0].to_owned())),
        None => Ok(()),
    }
}

/// Where a name, or a copy of it, stands on the circle. Machines have to agree on it, so it never
/// changes: FNV-1a (64 bits) over the name, for a copy the byte 0xFF, which no text contains, and its
/// number; then mixed, because names that differ only at their end would stand close together.
fn point(name: &str, copy: Option<u64>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().for_each(&mut add);
    if let Some(copy) = copy {
        add(0xff);
        copy.to_le_bytes().into_iter().for_each(add);
    }
    Random::new(hash).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SUBJECTS: u32 = 20_000;

    fn node(name: &str, weight: f64) -> Node {
        Node {
            name: name.to_owned(),
            weight,
        }
    }

    fn ring(weights: &[f64], virtual_nodes: u32) -> Ring {
        let named = weights.iter().zip(1_u32..);
        let nodes = named.map(|(weight, number)| node(&format!("n{number}"), *weight));
        Ring::new(nodes.collect(), virtual_nodes).unwrap()
    }

    fn owners(ring: &Ring) -> Vec<&str> {
        let owner = |subject: u32| ring.owner(&format!("user{subject}")) as usize;
        let owners = (0..SUBJECTS).map(owner);
        owners
            .map(|number| ring.nodes()[number].name.as_str())
            .collect()
    }

    fn share(is_so: impl Iterator<Item = bool>) -> f64 {
        is_so.filter(|is_so| *is_so).count() as f64 / f64::from(SUBJECTS)
    }

    /// How far the share of a node may be off: four standard deviations of what its points give
    /// (each with a stretch of the circle as if by an exponential law) and of the subjects drawn.
    fn spread(fair: f64, points: f64) -> f64 {
        4.0 * (fair * fair / points + fair / f64::from(SUBJECTS)).sqrt()
    }

    #[test]
    fn the_places_on_the_circle_never_change() {
        let of = |name| point(name, None);
        assert_eq!(of("mastodon:109"), 0x11b5_69e6_1cab_518c);
        assert_eq!(point("n1", Some(7)), 0xe2cf_fb0f_ef21_c378);
        assert_ne!(point("n1", Some(0)), of("n1"));
    }

    #[test]
    fn a_subject_belongs_to_the_first_point_clockwise() {
        let way = |from: u64, to: u64| to.wrapping_sub(from);
        for virtual_nodes in 1..9 {
            let ring = ring(&[1.0, 2.0, 1.0], virtual_nodes);
            for subject in 0..500 {
                let name = format!("user{subject}");
                let at = point(&name, None);
                let next = ring.points.iter().min_by_key(|(place, _)| way(at, *place));
                assert_eq!(
                    Some(ring.owner(&name)),
                    next.map(|(_, node)| *node),
                    "{name} of {virtual_nodes}"
                );
            }
        }
    }

    #[test]
    fn a_ring_does_not_depend_on_the_order_of_its_nodes() {
        let weights = [("a", 1.0), ("b", 0.5), ("c", 3.0)];
        let nodes: Vec<Node> = weights
            .iter()
            .map(|(name, weight)| node(name, *weight))
            .collect();
        let turned = nodes.iter().rev().cloned().collect();
        let (one, other) = (
            Ring::new(nodes, 64).unwrap(),
            Ring::new(turned, 64).unwrap(),
        );
        assert_eq!(owners(&one), owners(&other));
    }

    #[test]
    fn what_is_no_ring_is_told() {
        let told = |nodes: Vec<Node>, copies| Ring::new(nodes, copies).unwrap_err();
        assert_eq!(told(vec![], 8), PartitionError::NoNodes);
        let twice = told(vec![node("a", 1.0), node("a", 2.0)], 8);
        assert_eq!(twice, PartitionError::SameName("a".to_owned()));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let wrong = told(vec![node("a", weight)], 8);
            assert!(matches!(wrong, PartitionError::Weight(_)), "{weight}");
        }
        for weight in [1e6, 1e300] {
            let many = told(vec![node("a", weight), node("b", weight)], 4_096);
            assert!(matches!(many, PartitionError::TooManyPoints(_)), "{weight}");
        }
        let alone = Ring::new(vec![node("a", 1e-9)], 8).unwrap();
        assert_eq!(alone.owner("anybody"), 0);
        assert_eq!(alone.without("a").unwrap_err(), PartitionError::NoNodes);
        let unknown = PartitionError::UnknownNode("b".to_owned());
        assert_eq!(alone.without("b").unwrap_err(), unknown);
    }

    #[test]
    fn weights_are_honoured() {
        let weights = [1.0, 1.0, 2.0, 4.0, 0.5];
        let total: f64 = weights.iter().sum();
        let ring = ring(&weights, 400);
        let owners = owners(&ring);
        for node in ring.nodes() {
            let fair = node.weight / total;
            let has = share(owners.iter().map(|owner| *owner == node.name));
            let off = (has - fair).abs();
            assert!(
                off < spread(fair, 400.0 * node.weight),
                "{node:?} {has} {fair}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_join_moves_subjects_to_the_new_node_only_and_a_leave_gives_them_back(
            weights in prop::collection::vec(0.25_f64..4.0, 1..12), joins in 0.25_f64..4.0,
        ) {
            let before = ring(&weights, 200);
            let after = before.with(node("new", joins)).unwrap();
            let (old, new) = (owners(&before), owners(&after));
            for (was, is) in old.iter().zip(&new) {
                prop_assert!(was == is || *is == "new");
            }
            let moved = share(old.iter().zip(&new).map(|(was, is)| was != is));
            let fair = joins / (joins + weights.iter().sum::<f64>());
            prop_assert!((moved - fair).abs() < spread(fair, 200.0 * joins), "{} {}", moved, fair);
            let left = after.without("new").unwrap();
            prop_assert_eq!(owners(&left), old);
        }

        #[test]
        fn a_leave_moves_only_what_the_node_had(
            weights in prop::collection::vec(0.25_f64..4.0, 2..12), which in any::<prop::sample::Index>(),
        ) {
            let before = ring(&weights, 50);
            let leaves = before.nodes()[which.index(weights.len())].name.clone();
            let after = before.without(&leaves).unwrap();
            for (was, is) in owners(&before).iter().zip(owners(&after)) {
                prop_assert!(is != leaves);
                prop_assert!(*was == is || *was == leaves);
            }
        }
    }
}
