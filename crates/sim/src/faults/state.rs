//! What faults need to remember: how often each target was asked for, and what was taken away.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::plan::{Doom, List, Plan, target_number};
use super::{Faults, Kind};
use crate::mastodon::{Params, Renderer, Route, Spoil, is_paging};
use crate::world::Withdrawn;

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
    pub(crate) fn disturb(&self, target: &str, params: &Params) -> Option<Disturbance> {
        if self.is_off() {
            return None;
        }
        let number = target_number(target);
        let times_asked = self.count(number)?;
        match self.plan.transport(number, times_asked) {
            Some(kind) => Some(Disturbance::Transport(kind)),
            None => self
                .plan
                .page(number, times_asked, is_paging(params))
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
    pub(super) fn doom(
        &self,
        renderer: &Renderer<'_>,
        route: &Route,
        params: &Params,
    ) -> Option<(u64, Doom)> {
        if self.is_off() {
            return None;
        }
        let list = List::of(route)?;
        let user = renderer.user_with_id(&route.subject())?;
        let doom = self.plan.doom(renderer.world.place_by_fame(user))?;
        let struck = locked(&self.struck);
        let is_due = !struck.contains(&user) && struck.len() < STRUCK_MAX;
        (is_due && doom.strikes(list, is_paging(params))).then_some((user, doom))
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
        let params = Params::default();
        let one_by_one = FaultState::new(3, Faults::Hostile);
        let mut first: HashMap<(&str, u32), Option<Disturbance>> = HashMap::new();
        for target in &targets {
            for times in 0..4 {
                first.insert((target, times), one_by_one.disturb(target, &params));
            }
        }
        let in_turns = FaultState::new(3, Faults::Hostile);
        for times in 0..4 {
            for target in targets.iter().rev() {
                assert_eq!(
                    first[&(target.as_str(), times)],
                    in_turns.disturb(target, &params)
                );
            }
        }
        assert!(first.values().any(Option::is_some));
    }

    #[test]
    fn without_faults_nothing_is_counted() {
        let state = FaultState::new(3, Faults::None);
        let params = Params::default();
        assert!((0..100).all(|number| state.disturb(&number.to_string(), &params).is_none()));
        assert!(locked(&state.times_asked).is_empty());
    }
}
