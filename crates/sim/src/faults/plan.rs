//! Who meets which fault: a pure function of the seed, the target and how often it was asked for.

use super::{Faults, Kind};
use crate::spoil::Spoil;
use crate::world::dice::{Dice, Purpose, mix};
use crate::world::feistel::Permutation;

const MILD_PERMILLE: u64 = 30;
const HOSTILE_PERMILLE: u64 = 450;
/// Of every so many times a target is asked for, the last is free of transport faults.
const TIMES_UNTIL_CLEAN: u64 = 3;
const SPOILT_PERMILLE: u64 = 300;
/// Pages in the middle of a walk can be spoilt in more ways, and are rarer.
const SPOILT_LATER_PERMILLE: u64 = 500;
const LATER_SPOILS: [Spoil; 5] = [
    Spoil::Duplicates,
    Spoil::Shifted,
    Spoil::Shifted,
    Spoil::Shuffled,
    Spoil::RepeatedNext,
];
/// Of so many users one meets each of the faults that change the world.
const GROUP_USERS: u64 = 25;
/// So many posts or relations are withdrawn at once, at most.
const WITHDRAWN_AT_ONCE_MAX: u64 = 3;

/// A user's list that can be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Following,
    Followers,
    Timeline,
}

/// What is taken away from or around one user, and on which of their lists' walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doom {
    pub(super) kind: Kind,
    list: List,
    /// For a ban: deleted at once, not only suspended.
    pub(super) is_gone: bool,
    /// Whether a first page still shows what is taken away with it.
    pub(super) is_shown: bool,
    /// How many posts or relations are taken away.
    pub(super) count: usize,
}

impl Doom {
    /// Whether it strikes while a list is walked. A ban strikes when a walk goes on, or when the
    /// next list is begun; never on the first call about a user, as a rule.
    pub(super) fn strikes(&self, list: List, is_later_page: bool) -> bool {
        self.list == list || (self.kind == Kind::Ban && is_later_page)
    }
}

/// The choices of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    seed: u64,
    faults: Faults,
}

impl Plan {
    pub(super) const fn new(seed: u64, faults: Faults) -> Self {
        Self { seed, faults }
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self.faults, Faults::None)
    }

    /// The transport fault of a call, if any.
    pub(super) fn transport(&self, target: u64, times_asked: u64) -> Option<Kind> {
        // The rule that a patient caller gets through: no memory of earlier faults is needed.
        if times_asked % TIMES_UNTIL_CLEAN == TIMES_UNTIL_CLEAN - 1 {
            return None;
        }
        let (permille, kinds): (u64, &[Kind]) = match self.faults {
            Faults::None => return None,
            Faults::Mild => (MILD_PERMILLE, &Kind::MILD),
            Faults::Hostile => (HOSTILE_PERMILLE, &Kind::TRANSPORT),
        };
        let mut dice = Dice::new(self.seed, Purpose::TransportFault, target, times_asked);
        dice.chance(permille).then(|| dice.pick(kinds))
    }

    /// How the page of a call is spoilt, if it is.
    pub(super) fn page(&self, target: u64, times_asked: u64, is_later: bool) -> Option<Spoil> {
        if self.faults != Faults::Hostile {
            return None;
        }
        let (permille, spoils): (u64, &[Spoil]) = if is_later {
            (SPOILT_LATER_PERMILLE, &LATER_SPOILS)
        } else {
            (SPOILT_PERMILLE, &Spoil::ALL)
        };
        let mut dice = Dice::new(self.seed, Purpose::PageFault, target, times_asked);
        dice.chance(permille).then(|| dice.pick(spoils))
    }

    /// What is taken away from or around the user with a place in the order of fame, if anything
    /// ever is.
    pub(super) fn doom(&self, place: u64) -> Option<Doom> {
        if self.faults != Faults::Hostile {
            return None;
        }
        // Dealt like cards among neighbours in fame, so that a short crawl meets its share of each.
        let (group, member) = (place / GROUP_USERS, place % GROUP_USERS);
        let dealt = Permutation::new(self.seed ^ mix(group), 6, GROUP_USERS).forward(member);
        let kind = *Kind::WORLD.get(dealt as usize)?;
        let mut dice = Dice::new(self.seed, Purpose::WorldFault, place, 0);
        let list = match kind {
            Kind::PostsWithdrawn => List::Timeline,
            Kind::RelationsWithdrawn => dice.pick(&[List::Following, List::Followers]),
            _ => dice.pick(&[List::Followers, List::Timeline]),
        };
        Some(Doom {
            kind,
            list,
            is_gone: dice.chance(500),
            is_shown: dice.chance(500),
            count: 1 + dice.below(WITHDRAWN_AT_ONCE_MAX) as usize,
        })
    }
}

/// A number for a target, the same on every machine.
pub(super) fn target_number(target: &str) -> u64 {
    target.bytes().fold(0xCBF2_9CE4_8422_2325, |number, byte| {
        mix(number ^ u64::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn targets(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| target_number(&format!("/api/v1/accounts/{number}")))
    }

    #[test]
    fn nobody_meets_three_transport_faults_in_a_row() {
        for faults in [Faults::Mild, Faults::Hostile] {
            let plan = Plan::new(7, faults);
            let mut longest = 0;
            for target in targets(500) {
                let mut run = 0;
                for times_asked in 0..40 {
                    let is_hit = plan.transport(target, times_asked).is_some();
                    run = if is_hit { run + 1 } else { 0 };
                    longest = longest.max(run);
                }
            }
            assert!((1..=2).contains(&longest), "{longest}");
        }
    }

    #[test]
    fn every_kind_is_met_and_the_mild_ones_pass() {
        let hostile = Plan::new(7, Faults::Hostile);
        let met: BTreeSet<Kind> = targets(300)
            .filter_map(|target| hostile.transport(target, 0))
            .collect();
        assert_eq!(met.len(), Kind::TRANSPORT.len());
        let spoilt: BTreeSet<Kind> = targets(100)
            .filter_map(|target| hostile.page(target, 0, false).map(Kind::from))
            .collect();
        assert_eq!(spoilt.len(), Kind::PAGE.len());
        let mild = Plan::new(7, Faults::Mild);
        let hits: Vec<Kind> = targets(2_000)
            .filter_map(|target| mild.transport(target, 0))
            .collect();
        assert!((30..100).contains(&hits.len()), "{}", hits.len());
        assert!(hits.iter().all(|kind| Kind::MILD.contains(kind)));
        assert!(targets(500).all(|target| mild.page(target, 0, true).is_none()));
        assert!((0..500).all(|place| mild.doom(place).is_none()));
    }

    #[test]
    fn a_few_of_a_hundred_users_are_struck_by_each_kind() {
        let plan = Plan::new(7, Faults::Hostile);
        for kind in Kind::WORLD {
            let struck = (0..2_000)
                .filter(|&place| plan.doom(place).is_some_and(|doom| doom.kind == kind))
                .count();
            assert_eq!(struck, 80, "{kind:?}");
        }
        assert!((0..2_000).all(|place| Plan::new(7, Faults::None).doom(place).is_none()));
    }

    #[test]
    fn another_seed_gives_other_faults_and_the_same_seed_the_same() {
        let choices = |seed| -> Vec<Option<Kind>> {
            let plan = Plan::new(seed, Faults::Hostile);
            targets(200)
                .map(|target| plan.transport(target, 1))
                .collect()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
    }
}
