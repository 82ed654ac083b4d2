//! What faults need to remember: how often each target was asked for, and what was taken away.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::plan::{Doom, Plan, target_number};
use super::strike::Walk;
use super::{Faults, Kind};
use crate::spoil::Spoil;
use crate::world::{Withdrawn, World};

/// Targets whose calls are counted; about 16 bytes each. What is beyond meets no faults.
const TARGETS_MAX: usize = 4_000_000;
/// Users around whom something was taken away.
const STRUCK_MAX: usize = 10_000;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Transport(Kind),
    Spoil(Spoil),
}

#[derive(Debug)]
pub(crate) struct FaultState {
    plan: Plan,
    times_asked: Mutex<HashMap<u64, u32>>,
    /// Users who met their doom: each does once.
    struck: Mutex<HashSet<u64>>,
    withdrawn: RwLock<Arc<Withdrawn>>,
}

impl FaultState {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            plan: Plan::new(seed, faults),
            times_asked: Mutex::default(),
            struck: Mutex::default(),
            withdrawn: RwLock::default(),
        }
    }

    pub(crate) const fn is_off(&self) -> bool {
        self.plan.is_empty()
    }

    /// Counts a call and says what happens to its answer.
    pub(crate) fn disturb(&self, target: &str, is_later_page: bool) -> Option<Disturbance> {
        if self.is_off() {
            return None;
        }
        let number = target_number(target);
        let times_asked = self.count(number)?;
        match self.plan.transport(number, times_asked) {
            Some(kind) => Some(Disturbance::Transport(kind)),
            None => self
                .plan
                .page(number, times_asked, is_later_page)
                .map(Disturbance::Spoil),
        }
    }

    fn count(&self, number: u64) -> Option<u64> {
        let mut targets = locked(&self.times_asked);
        if targets.len() >= TARGETS_MAX && !targets.contains_key(&number) {
            return None;
        }
        let times = targets.entry(number).or_insert(0);
        let before = *times;
        *times = times.saturating_add(1);
        Some(u64::from(before))
    }

    /// What was taken away by now.
    pub(crate) fn withdrawn(&self) -> Arc<Withdrawn> {
        let withdrawn = self.withdrawn.read();
        Arc::clone(&withdrawn.unwrap_or_else(PoisonError::into_inner))
    }

    /// The doom that a call brings upon the user whose list it walks, if any.
    pub(super) fn doom(&self, world: &World, walk: Walk) -> Option<Doom> {
        if self.is_off() {
            return None;
        }
        let doom = self.plan.doom(world.place_by_fame(walk.user))?;
        let struck = locked(&self.struck);
        let is_due = !struck.contains(&walk.user) && struck.len() < STRUCK_MAX;
        (is_due && doom.strikes(walk.list, walk.is_later_page)).then_some(doom)
    }

    /// Notes that a user met their doom; false if another call was quicker.
    pub(super) fn mark_struck(&self, user: u64) -> bool {
        locked(&self.struck).insert(user)
    }

    /// Takes something away for the rest of the run.
    pub(super) fn withdraw(&self, change: impl FnOnce(&mut Withdrawn)) {
        let mut withdrawn = self
            .withdrawn
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Calls that are being answered keep the state they began with.
        change(Arc::make_mut(&mut withdrawn));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under the locks can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_depend_on_the_target_and_its_count_and_not_on_the_order_of_calls() {
        let targets: Vec<String> = (0..50).map(|number| format!("/api/{number}")).collect();
        let one_by_one = FaultState::new(3, Faults::Hostile);
        let mut first: HashMap<(&str, u32), Option<Disturbance>> = HashMap::new();
        for target in &targets {
            for times in 0..4 {
                first.insert((target, times), one_by_one.disturb(target, false));
            }
        }
        let in_turns = FaultState::new(3, Faults::Hostile);
        for times in 0..4 {
            for target in targets.iter().rev() {
                assert_eq!(
                    first[&(target.as_str(), times)],
                    in_turns.disturb(target, false)
                );
            }
        }
        assert!(first.values().any(Option::is_some));
    }

    #[test]
    fn without_faults_nothing_is_counted() {
        let state = FaultState::new(3, Faults::None);
        assert!((0..100).all(|number| state.disturb(&number.to_string(), false).is_none()));
        assert!(locked(&state.times_asked).is_empty());
    }
}
