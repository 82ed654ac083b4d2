//! Chance without a state: what a die shows depends on the seed, on what it is thrown for and on
//! whom it is thrown for, and on nothing else.
//!
//! Only whole numbers are used, so that every machine computes the same world.

/// What a die is thrown for. Two purposes never share a sequence.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    Permutation = 1,
    AccountId,
    Kind,
    Person,
    Ban,
    Username,
    Profile,
    Follow,
    Pace,
    Burst,
    DayCount,
    DayTimes,
    Target,
    Likes,
    Deletion,
    Edit,
    Text,
    Wishes,
    FeaturedTags,
    TransportFault,
    PageFault,
    WorldFault,
    LocalId,
    Move,
    /// Whether a post arrives at an instance.
    Delivery,
    /// How old an instance's word about somebody is.
    Hearsay,
    Instance,
    Lie,
    /// Who changes their habits, and how.
    Habit,
}

/// Spreads every bit of the input over the whole output.
pub(crate) const fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A sequence of throws.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) const fn new(seed: u64, purpose: Purpose, whom: u64, when: u64) -> Self {
        let state = mix(mix(mix(seed ^ ((purpose as u64) << 56)) ^ whom) ^ when);
        Self { state }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0xD1B5_4A32_D192_ED03);
        mix(self.state)
    }

    /// A number from 0 to `bound - 1`; 0 if there is no such number.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// True `permille` times in a thousand.
    pub(crate) const fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    /// A span with a long tail: every further doubling of `shortest` is as likely as the one before.
    pub(crate) const fn long_tail(&mut self, shortest: u64, doublings_max: u64) -> u64 {
        let doublings = self.below(doublings_max + 1);
        let base = shortest << doublings;
        base + self.below(base)
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// As [`Self::pick`], with the first choices the most likely.
    pub(crate) fn pick_early<T: Copy>(&mut self, choices: &[T]) -> T {
        let bound = self.below(choices.len() as u64) + 1;
        choices[self.below(bound) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_throw_shows_the_same_number() {
        let throw = |purpose, whom| Dice::new(7, purpose, whom, 3).next();
        assert_eq!(throw(Purpose::Ban, 1), throw(Purpose::Ban, 1));
        assert_ne!(throw(Purpose::Ban, 1), throw(Purpose::Ban, 2));
        assert_ne!(throw(Purpose::Ban, 1), throw(Purpose::Kind, 1));
    }

    #[test]
    fn chances_come_out_about_as_often_as_asked() {
        let hits = (0..10_000)
            .filter(|&who| Dice::new(1, Purpose::Ban, who, 0).chance(30))
            .count();
        assert!((200..400).contains(&hits), "{hits}");
    }
}
