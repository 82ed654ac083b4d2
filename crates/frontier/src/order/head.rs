//! Where a lane begins: what lies before it has been taken out.
//!
//! What is taken out of a sorted file on disk leaves a mark there until the file is next rewritten,
//! and whoever reads from the lane's very beginning reads all of those marks. The **low-water mark**
//! says from where on to read: nothing before it is filed. It moves on behind what is taken out, and
//! moves back as soon as something is filed before it.

use super::Place;
use kittiwake_model::{Key, WorldTime};
use std::collections::BTreeSet;

/// So many places are taken out of a lane before its mark moves on: looking where to is a search.
const LOOK_EVERY: usize = if cfg!(test) { 4 } else { 16_384 };

/// So many subjects that were filed before the clear part's end are remembered one by one.
const EARLY_MAX: usize = if cfg!(test) { 3 } else { 16_384 };

/// What is known of one lane's beginning.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Before this place nothing is filed but `early`.
    clear_to: Option<Place>,
    /// Filed before `clear_to`, after that was found out. Without them one early subject would
    /// bring back the search through everything that was taken out.
    early: BTreeSet<Place>,
    removed: usize,
    removed_to: Option<Place>,
}

impl Head {
    /// A head as it was kept.
    pub(super) fn kept(low: Place) -> Self {
        Self {
            clear_to: Some(low),
            ..Self::default()
        }
    }

    /// The low-water mark, if there is one.
    pub(super) fn low(&self) -> Option<Place> {
        self.early.first().copied().or(self.clear_to)
    }

    /// The part, from and up to (both included), where nothing but early subjects is, and nothing is
    /// worth reading: between the last early subject and the end of what is clear.
    pub(super) fn gap(&self) -> Option<(Place, Place)> {
        Some((*self.early.last()?, self.clear_to?))
    }

    pub(super) fn filed(&mut self, place: Place) {
        if self.clear_to.is_none_or(|clear_to| place >= clear_to) {
            return;
        }
        self.early.insert(place);
        if self.early.len() > EARLY_MAX {
            self.clear_to = self.low();
            self.early.clear();
        }
    }

    pub(super) fn removed(&mut self, place: Place) {
        self.early.remove(&place);
        self.removed += 1;
        self.removed_to = self.removed_to.max(Some(place));
    }

    /// Where to look for the first subject, if enough was taken out: from and up to, both included.
    pub(super) fn look(&self) -> Option<(Option<Place>, Place)> {
        if self.removed < LOOK_EVERY {
            return None;
        }
        Some((self.clear_to, self.removed_to?))
    }

    /// Takes in what was found there.
    pub(super) fn found(&mut self, first: Option<Place>) {
        let end = first.or_else(|| self.removed_to.map(next));
        // Nothing was looked at when all of it lay in the clear part.
        self.clear_to = self.clear_to.max(end);
        self.removed = 0;
        self.removed_to = None;
    }
}

/// The place after a place, or the same if there is none.
fn next((due, Key(subject)): Place) -> Place {
    if let Some(subject) = subject.checked_add(1) {
        return (due, Key(subject));
    }
    match due.micros().checked_add(1) {
        Some(due) => (WorldTime(due), Key(i64::MIN)),
        None => (due, Key(subject)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(due: i64) -> Place {
        (WorldTime(due), Key(1))
    }

    #[test]
    fn the_mark_moves_on_behind_what_is_taken_and_back_for_what_is_early() {
        let mut head = Head::default();
        for due in 0..LOOK_EVERY as i64 {
            assert_eq!(head.look(), None);
            head.removed(place(due));
        }
        let last = place(LOOK_EVERY as i64 - 1);
        assert_eq!(head.look(), Some((None, last)));
        head.found(None);
        assert_eq!(head.low(), Some(next(last)));
        head.filed(place(-3));
        head.filed(place(-5));
        head.filed(place(i64::MAX));
        assert_eq!(head.low(), Some(place(-5)));
        assert_eq!(head.gap(), Some((place(-3), next(last))));
        head.removed(place(-5));
        head.removed(place(-3));
        assert_eq!((head.low(), head.gap()), (Some(next(last)), None));
    }

    #[test]
    fn too_many_early_ones_are_read_as_any_others() {
        let mut head = Head::kept(place(1_000_000));
        for due in 0..=EARLY_MAX as i64 {
            head.filed(place(due));
        }
        assert_eq!((head.low(), head.gap()), (Some(place(0)), None));
    }

    #[test]
    fn the_last_place_of_all_has_none_after_it() {
        let last = (WorldTime(i64::MAX), Key(i64::MAX));
        assert_eq!(next(last), last);
        let row_end = (WorldTime(4), Key(i64::MAX));
        assert_eq!(next(row_end), (WorldTime(5), Key(i64::MIN)));
    }
}
