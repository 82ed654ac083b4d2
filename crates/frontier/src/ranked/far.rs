//! What a ranked lane does not hold in memory: everybody beyond its horizon, in the order on disk.
//!
//! Memory and disk complement each other: whoever comes to memory leaves the disk. All of it is derived
//! from the store's rows and made anew from them when a run begins, so that nothing is lost with it.

use crate::order::{Change, DiskOrder, Entry, LaneNumber, OrderError, Place};
use crate::policy::State;
use kittiwake_model::{Key, WorldTime};
use std::path::Path;

/// Memory of the files of one lane.
const MEMORY_MAX_BYTES: u64 = 256 * 1_024 * 1_024;
/// Changes that are gathered before they are written.
const CHANGES_MAX: usize = 4_096;

/// Everybody of a lane who is due later than the horizon.
#[derive(Debug)]
pub(super) struct Far {
    order: DiskOrder,
    lane: LaneNumber,
    sequence: u64,
    /// Whoever is due later is here. `None`: nobody is.
    horizon: Option<WorldTime>,
    changes: Vec<Change>,
    /// While a lane is read from the store, entries are gathered and sorted.
    is_building: bool,
}

impl Far {
    /// Makes an empty one in a folder, whatever is there.
    pub(super) fn make(folder: &Path, lane: &str) -> Result<Self, OrderError> {
        let (mut order, _) = DiskOrder::open(folder, lane, MEMORY_MAX_BYTES)?;
        order.begin_building()?;
        let lane = order.lane(lane)?;
        Ok(Self {
            order,
            lane,
            sequence: 0,
            horizon: None,
            changes: Vec::new(),
            is_building: true,
        })
    }

    pub(super) fn is_beyond(&self, due: WorldTime) -> bool {
        self.horizon.is_some_and(|horizon| due > horizon)
    }

    /// Nobody who is due later than this is held in memory from now on.
    pub(super) fn draw_horizon(&mut self, horizon: WorldTime) {
        self.horizon = Some(self.horizon.map_or(horizon, |known| known.min(horizon)));
    }

    pub(super) const fn has_any(&self) -> bool {
        self.horizon.is_some()
    }

    /// Takes over somebody who is due beyond the horizon.
    pub(super) fn file(&mut self, subject: Key, due: WorldTime, state: State) {
        self.changes.push(Change::File {
            lane: self.lane,
            before: None,
            entry: Entry {
                place: (due, subject),
                state,
            },
        });
    }

    /// Writes what has changed, once there is enough of it, or anyway.
    pub(super) fn write(&mut self, is_final: bool) -> Result<(), OrderError> {
        if self.changes.is_empty() || !is_final && self.changes.len() < CHANGES_MAX {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        if self.is_building {
            let entries = changes.into_iter().filter_map(|change| match change {
                Change::File { entry, .. } => Some(entry),
                Change::Remove { .. } => None,
            });
            return self.order.build(self.lane, entries);
        }
        self.sequence += 1;
        self.order.apply(&changes, self.sequence)
    }

    /// All that the store has was given.
    pub(super) fn finish_building(&mut self) -> Result<(), OrderError> {
        if !self.is_building {
            return Ok(());
        }
        self.write(true)?;
        self.order.finish(self.sequence)?;
        self.is_building = false;
        Ok(())
    }

    /// The next ones in order; they are no longer here.
    pub(super) fn take_next(&mut self, limit: usize) -> Result<Vec<Entry>, OrderError> {
        self.finish_building()?;
        self.write(true)?;
        let entries = self.order.after(self.lane, None, limit)?;
        let remove = |place: Place| Change::Remove {
            lane: self.lane,
            place,
        };
        self.changes
            .extend(entries.iter().map(|entry| remove(entry.place)));
        self.write(true)?;
        let last = entries.last().map(|entry| entry.place.0);
        // Those of the same moment who did not fit come with the next.
        self.horizon = last.filter(|_| entries.len() == limit);
        Ok(entries)
    }
}
