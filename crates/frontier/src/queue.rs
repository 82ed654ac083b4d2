//! Lanes and leases: the frontier as the engine uses it.
//!
//! A lane is a circular queue of which only the beginning is in memory: the store has all of it.
//! Everything up to the lane's **horizon** is in memory or leased; what lies beyond is fetched in
//! batches when memory runs low ([`Frontier::wanted`], [`Frontier::refill`]) and never all at
//! once. A visited subject was written back to the store with its visit; it comes to memory again
//! only when the horizon reaches it.

use crate::order::{OrderError, Place, SortedIndex};
use crate::policy::{Policy, State};
use crate::ranked::{Judge, Ranked};
use kittiwake_model::{Key, Name, WorldTime};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Subjects of one lane that memory holds at most, besides those that are leased.
const NEAR_MAX: usize = 2_048;

/// A subject that a visit works on. Leases live in memory: a crash gives them all back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub lane: Name,
    pub subject: Key,
}

/// Where a subject goes when its lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// To its place in the queue; the store has the same time.
    To(WorldTime),
    /// To be tried again: the store does not know of it and still has the old time.
    Again(WorldTime),
    /// It has had its turn, which came to nothing: the next comes as if it had been visited.
    Passed(WorldTime),
    /// Nowhere: this crawl is done with it.
    Out,
}

/// What a lane needs from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Everything up to this place is here.
    pub after: Option<Place>,
    pub limit: usize,
    pub by: ReadBy,
}

/// In which order a lane is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadBy {
    /// Who is due first comes first.
    #[default]
    Due,
    /// As the store has them, whoever is due when: rows that are read one after the other are read many
    /// times as quickly as rows all over a large file. Of `after` only the subject counts.
    Subject,
}

/// How far memory reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Horizon {
    /// Nothing was fetched yet.
    Nothing,
    /// Every place up to this one is in memory or leased.
    UpTo(Place),
    /// Everything there is.
    All,
}

/// All lanes of a crawl. A lane that has to wait blocks no other.
#[derive(Debug)]
pub struct Frontier {
    lanes: BTreeMap<Name, Lane>,
    /// Lanes in which each call goes to whoever it is worth most for.
    ranked: BTreeMap<Name, RankedLane>,
    near_max: usize,
    spill: Option<Spill>,
}

/// Where those go whom memory does not hold.
#[derive(Debug, Clone)]
pub struct Spill {
    /// The due orders of lanes are made anew within it.
    pub folder: PathBuf,
    /// So many subjects of a ranked lane are all held in memory; of more, a part.
    pub ranked_max: usize,
}

/// Of more subjects than memory holds, this part of what it may hold is in it.
const NEAR_PART: usize = 4;

#[derive(Debug, Default)]
struct RankedLane {
    subjects: Ranked,
    /// Who plans whole rounds has to have everybody in memory.
    may_spill: bool,
    /// How far it was read, in which order, and how many.
    horizon: Option<Horizon>,
    by: ReadBy,
    read: usize,
}

/// Subjects of a ranked lane that are read at once.
const RANKED_STEP: usize = 10_000;
/// A lane that has more is read as the store has it, from the beginning: to pass over rows of other lanes
/// takes less than to look for its own.
const BY_DUE_MAX: usize = 200_000;

#[derive(Debug)]
struct Lane {
    near: SortedIndex,
    /// Those to be tried again, apart from the order of the store.
    again: SortedIndex,
    leased: HashSet<Key>,
    horizon: Horizon,
}

impl Lane {
    fn new() -> Self {
        Self {
            near: SortedIndex::default(),
            again: SortedIndex::default(),
            leased: HashSet::new(),
            horizon: Horizon::Nothing,
        }
    }

    fn is_near(&self, place: Place) -> bool {
        match self.horizon {
            Horizon::Nothing => false,
            Horizon::UpTo(last) => place <= last,
            Horizon::All => true,
        }
    }

    /// Takes in a place of the store, unless it lies beyond the horizon or is being worked on.
    fn insert(&mut self, (due, subject): Place, near_max: usize) {
        if self.leased.contains(&subject) || self.again.contains(subject) {
            return;
        }
        if !self.is_near((due, subject)) {
            // It may have moved from a place that was near.
            self.near.remove(subject);
            return;
        }
        self.near.insert(subject, due);
        while self.near.len() > near_max {
            if let Some((due, Key(subject))) = self.near.pop_last() {
                // Places are whole numbers: nothing lies between this one and the one before.
                self.horizon = Horizon::UpTo((due, Key(subject.saturating_sub(1))));
            }
        }
    }
}

impl Default for Frontier {
    fn default() -> Self {
        Self::holding(NEAR_MAX)
    }
}

impl Frontier {
    /// A frontier that holds so many subjects of every lane in memory.
    pub fn holding(near_max: usize) -> Self {
        Self {
            lanes: BTreeMap::new(),
            ranked: BTreeMap::new(),
            near_max: near_max.max(1),
            spill: None,
        }
    }

    /// Lets lanes spill when they outgrow memory.
    pub fn spill_into(&mut self, spill: Spill) {
        self.spill = Some(spill);
    }

    /// Moves subjects of a ranked lane between memory and disk, where they are more than memory holds.
    pub fn tend(&mut self, lane: &Name, now: WorldTime) -> Result<(), OrderError> {
        let Some(ranked) = self.ranked.get_mut(lane) else {
            return Ok(());
        };
        if let Some(spill) = &self.spill
            && ranked.may_spill
            && ranked.subjects.len() > spill.ranked_max
        {
            // Names of lanes have slashes and colons in them.
            let name: String = lane
                .chars()
                .map(|it| if it.is_ascii_alphanumeric() { it } else { '_' })
                .collect();
            let near_max = spill.ranked_max / NEAR_PART;
            ranked
                .subjects
                .spill(&spill.folder.join(name), lane, near_max)?;
        }
        ranked.subjects.tend()?;
        if ranked.horizon != Some(Horizon::All) {
            return Ok(());
        }
        ranked.subjects.finish_reading()?;
        ranked.subjects.bring_near(now)
    }

    /// Makes a lane a ranked one, at the price that calls had when they were last counted.
    pub fn rank(&mut self, lane: &Name, price: f64, policy: &dyn Policy) {
        let ranked = self.ranked.entry(lane.clone()).or_default();
        ranked.subjects.begin_at(price);
        ranked.may_spill = !policy.plans_rounds();
    }

    pub fn is_ranked(&self, lane: &Name) -> bool {
        self.ranked.contains_key(lane)
    }

    /// Whether a subject of a ranked lane was never visited.
    pub fn is_unvisited(&self, lane: &Name, subject: Key) -> bool {
        let ranked = self.ranked.get(lane);
        ranked.is_some_and(|it| it.subjects.is_unvisited(subject))
    }

    /// How many subjects of a ranked lane are not leased.
    pub fn ranked_count(&self, lane: &Name) -> usize {
        self.ranked.get(lane).map_or(0, |it| it.subjects.len())
    }

    /// Takes note of a subject of a ranked lane that the store has filed or moved.
    pub fn file_ranked(
        &mut self,
        lane: &Name,
        subject: Key,
        due: WorldTime,
        state: State,
        now: WorldTime,
    ) {
        if let Some(ranked) = self.ranked.get_mut(lane) {
            ranked.subjects.file(subject, due, state, now);
        }
    }

    /// Notes how far a ranked lane was read: up to the last of the places that were asked for.
    pub fn read_ranked(&mut self, lane: &Name, wanted: Wanted, last: Option<Place>, count: usize) {
        if let Some(ranked) = self.ranked.get_mut(lane) {
            ranked.read += count;
            let is_long = wanted.by == ReadBy::Due && ranked.read >= BY_DUE_MAX;
            ranked.horizon = Some(match last {
                Some(_) if count >= wanted.limit && is_long => {
                    ranked.by = ReadBy::Subject;
                    Horizon::Nothing
                }
                Some(last) if count >= wanted.limit => Horizon::UpTo(last),
                _ => Horizon::All,
            });
        }
    }

    /// Leases the worthiest subjects of a ranked lane, at most `count`; and at which price subjects are
    /// to be filed from now on.
    pub fn lease_ranked(
        &mut self,
        lane: &Name,
        now: WorldTime,
        count: usize,
        judge: Judge<'_>,
    ) -> (Vec<Lease>, f64) {
        let Some(ranked) = self.ranked.get_mut(lane) else {
            return (Vec::new(), 0.0);
        };
        let subjects = ranked.subjects.lease(now, count, judge);
        let lease = |subject| Lease {
            lane: lane.clone(),
            subject,
        };
        let leases = subjects.into_iter().map(lease).collect();
        (leases, ranked.subjects.market().filing_price())
    }

    fn lane(&mut self, lane: &Name) -> &mut Lane {
        self.lanes.entry(lane.clone()).or_insert_with(Lane::new)
    }

    /// Takes note of a subject that the store has filed or moved. A subject that is leased stays
    /// out: whoever holds the lease decides when it is due again.
    pub fn file(&mut self, lane: &Name, subject: Key, due: WorldTime) {
        let near_max = self.near_max;
        self.lane(lane).insert((due, subject), near_max);
    }

    /// What the lane needs from the store, if it runs low.
    pub fn wanted(&mut self, lane: &Name) -> Option<Wanted> {
        if let Some(ranked) = self.ranked.get(lane) {
            let after = match ranked.horizon {
                Some(Horizon::All) => return None,
                Some(Horizon::UpTo(last)) => Some(last),
                Some(Horizon::Nothing) | None => None,
            };
            return Some(Wanted {
                after,
                limit: RANKED_STEP,
                by: ranked.by,
            });
        }
        let near_max = self.near_max;
        let lane = self.lane(lane);
        if lane.horizon == Horizon::All || lane.near.len() > near_max / 4 {
            return None;
        }
        Some(Wanted {
            after: match lane.horizon {
                Horizon::UpTo(last) => Some(last),
                Horizon::Nothing | Horizon::All => None,
            },
            limit: near_max - lane.near.len(),
            by: ReadBy::Due,
        })
    }

    /// Takes in what the store gave for [`Self::wanted`]: fewer than were asked for are the last.
    pub fn refill(&mut self, lane: &Name, wanted: Wanted, places: &[Place]) {
        let near_max = self.near_max;
        let lane = self.lane(lane);
        lane.horizon = match places.last() {
            Some(last) if places.len() >= wanted.limit => Horizon::UpTo(*last),
            _ => Horizon::All,
        };
        for place in places {
            lane.insert(*place, near_max);
        }
    }

    /// Leases up to `count` subjects of one lane that are due.
    pub fn lease(&mut self, lane: &Name, now: WorldTime, count: usize) -> Vec<Lease> {
        let Some(entry) = self.lanes.get_mut(lane) else {
            return Vec::new();
        };
        let mut leases = Vec::new();
        while leases.len() < count {
            let again = entry.again.first();
            let is_again =
                again.is_some_and(|place| entry.near.first().is_none_or(|near| place < near));
            let index = if is_again {
                &mut entry.again
            } else {
                &mut entry.near
            };
            let Some(subject) = index.pop_due(now) else {
                break;
            };
            entry.leased.insert(subject);
            leases.push(Lease {
                lane: lane.clone(),
                subject,
            });
        }
        leases
    }

    /// Ends a lease.
    pub fn release(&mut self, lane: &Name, subject: Key, back: Back) {
        if let Some(ranked) = self.ranked.get_mut(lane) {
            match back {
                Back::To(due) | Back::Again(due) => ranked.subjects.again(subject, due),
                Back::Passed(now) => ranked.subjects.pass(subject, now),
                Back::Out => ranked.subjects.forget(subject),
            }
            return;
        }
        let near_max = self.near_max;
        let Some(entry) = self.lanes.get_mut(lane) else {
            return;
        };
        entry.leased.remove(&subject);
        match back {
            Back::To(due) => entry.insert((due, subject), near_max),
            Back::Again(due) | Back::Passed(due) => entry.again.insert(subject, due),
            Back::Out => {}
        }
    }

    /// Forgets a subject that became part of another.
    pub fn forget(&mut self, subject: Key) {
        for lane in self.lanes.values_mut() {
            lane.near.remove(subject);
            lane.again.remove(subject);
        }
        for lane in self.ranked.values_mut() {
            lane.subjects.forget(subject);
        }
    }

    /// When the next subject of a lane is due, as far as memory knows.
    pub fn next_due(&self, lane: &Name) -> Option<WorldTime> {
        if let Some(ranked) = self.ranked.get(lane) {
            return ranked.subjects.next_due();
        }
        let lane = self.lanes.get(lane)?;
        let places = [lane.near.first(), lane.again.first()];
        places.into_iter().flatten().map(|(due, _)| due).min()
    }

    /// How many subjects of a lane are due, as far as memory knows, counted up to `max`.
    pub fn due(&self, lane: &Name, now: WorldTime, max: usize) -> usize {
        if let Some(ranked) = self.ranked.get(lane) {
            return ranked.subjects.len().min(max);
        }
        let count = |lane: &Lane| lane.near.due(now, max) + lane.again.due(now, max);
        self.lanes.get(lane).map_or(0, count).min(max)
    }

    /// Whether a lane has nobody left to lease, in memory or in the store.
    pub fn is_empty(&self, lane: &Name) -> bool {
        self.lanes.get(lane).is_some_and(|lane| {
            lane.near.is_empty() && lane.again.is_empty() && lane.horizon == Horizon::All
        })
    }

    /// Subjects in memory that are not leased.
    pub fn near(&self, lane: &Name) -> usize {
        self.lanes
            .get(lane)
            .map_or(0, |lane| lane.near.len() + lane.again.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LANE: &str = "net/host/profiles";

    fn lane() -> Name {
        LANE.into()
    }

    /// A frontier that has everything there is.
    fn whole() -> Frontier {
        let mut frontier = Frontier::default();
        for lane in [lane(), "a".into(), "b".into()] {
            let wanted = frontier.wanted(&lane).unwrap();
            frontier.refill(&lane, wanted, &[]);
        }
        frontier
    }

    #[test]
    fn a_long_lane_is_read_as_the_store_has_it() {
        let mut frontier = Frontier::default();
        frontier.rank(&lane(), 0.0, &crate::RoundRobin);
        let mut read = Vec::new();
        while let Some(wanted) = frontier.wanted(&lane()) {
            let start = wanted.after.map_or(0, |(_, subject)| subject.0);
            let last = (WorldTime(0), Key(start + 10_000));
            let is_last = wanted.by == ReadBy::Subject && start >= 300_000;
            let count = if is_last { 1 } else { wanted.limit };
            frontier.read_ranked(&lane(), wanted, Some(last), count);
            read.push((wanted.by, start));
        }
        assert_eq!(read[19], (ReadBy::Due, 190_000));
        assert_eq!(read[20], (ReadBy::Subject, 0), "from the beginning");
        assert_eq!(read[51..], []);
        assert_eq!(read[50], (ReadBy::Subject, 300_000));
    }

    #[test]
    fn a_leased_subject_is_not_handed_out_twice() {
        let mut frontier = whole();
        frontier.file(&lane(), Key(1), WorldTime(5));
        frontier.file(&lane(), Key(2), WorldTime(9));
        let leases = frontier.lease(&lane(), WorldTime(5), 10);
        let subjects: Vec<_> = leases.iter().map(|lease| lease.subject).collect();
        assert_eq!(subjects, [Key(1)]);
        frontier.file(&lane(), Key(1), WorldTime(0));
        assert!(frontier.lease(&lane(), WorldTime(5), 10).is_empty());
        frontier.release(&lane(), Key(1), Back::To(WorldTime(7)));
        assert_eq!(frontier.next_due(&lane()), Some(WorldTime(7)));
        assert_eq!(frontier.near(&lane()), 2);
    }

    #[test]
    fn an_empty_lane_blocks_no_other() {
        let mut frontier = whole();
        frontier.file(&"a".into(), Key(1), WorldTime(100));
        frontier.file(&"b".into(), Key(1), WorldTime(0));
        assert!(frontier.lease(&"a".into(), WorldTime(1), 1).is_empty());
        assert_eq!(frontier.lease(&"b".into(), WorldTime(1), 1).len(), 1);
    }

    #[test]
    fn what_is_tried_again_is_not_lost_beyond_the_horizon() {
        let mut frontier = Frontier::holding(2);
        let wanted = frontier.wanted(&lane()).unwrap();
        let places = [(WorldTime(1), Key(1)), (WorldTime(2), Key(2))];
        frontier.refill(&lane(), wanted, &places);
        frontier.lease(&lane(), WorldTime(9), 1);
        frontier.release(&lane(), Key(1), Back::Again(WorldTime(50)));
        // The store still has it at 1, which lies before the horizon and is not read again.
        assert_eq!(frontier.lease(&lane(), WorldTime(60), 5).len(), 2);
    }

    /// A store of one lane, and a crawl that visits everybody once.
    fn visit_all(
        near_max: usize,
        stored: &mut BTreeMap<Key, WorldTime>,
        late: &[(i64, i64)],
    ) -> Vec<Key> {
        let mut frontier = Frontier::holding(near_max);
        let mut visited = Vec::new();
        let mut late = late.iter();
        for _ in 0..10_000 {
            if let Some(wanted) = frontier.wanted(&lane()) {
                let mut places: Vec<Place> = stored.iter().map(|(key, due)| (*due, *key)).collect();
                places.sort_unstable();
                places.retain(|place| {
                    !visited.contains(&place.1) && wanted.after.is_none_or(|after| *place > after)
                });
                places.truncate(wanted.limit);
                frontier.refill(&lane(), wanted, &places);
            }
            // Others are filed while it runs, anywhere in the order.
            if let Some((key, due)) = late.next() {
                stored.entry(Key(*key)).or_insert(WorldTime(*due));
                let due = stored[&Key(*key)];
                if !visited.contains(&Key(*key)) {
                    frontier.file(&lane(), Key(*key), due);
                }
            } else if frontier.is_empty(&lane()) {
                break;
            }
            for lease in frontier.lease(&lane(), WorldTime(i64::MAX), 2) {
                visited.push(lease.subject);
                frontier.release(&lane(), lease.subject, Back::Out);
            }
            assert!(frontier.near(&lane()) <= near_max);
        }
        visited
    }

    proptest! {
        #[test]
        fn a_small_memory_visits_everybody_once(
            near_max in 1_usize..9,
            stored in prop::collection::btree_map(0_i64..60, 0_i64..20, 0..40),
            late in prop::collection::vec((0_i64..60, 0_i64..20), 0..30),
        ) {
            let mut stored: BTreeMap<Key, WorldTime> = stored
                .into_iter()
                .map(|(key, due)| (Key(key), WorldTime(due)))
                .collect();
            let mut visited = visit_all(near_max, &mut stored, &late);
            visited.sort_unstable();
            prop_assert_eq!(visited, stored.into_keys().collect::<Vec<_>>());
        }
    }
}
