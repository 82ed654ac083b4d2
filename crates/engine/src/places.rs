//! Places in lists whose network wants them not to be kept: they live as long as the process, and no
//! file ever holds one. A walk whose place is lost begins anew.

use crate::exchange::Shop;
use crate::walk::StepPage;
use crate::work::Work;
use kittiwake_model::{Cursor, CursorState, Key, Name};
use kittiwake_network::Query;
use kittiwake_store::TaskRecord;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What the log says in the place of a cursor that is not kept.
const NOT_KEPT: &str = "not kept";

/// Cursors of walks that are under way. There are no more than such visits that were begun and are
/// not over, which are held in memory, too.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<(Key, Name), Cursor>>);

impl Places {
    /// The cursor as it may be written.
    fn written(&self, cursor: &Cursor) -> Cursor {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (cursor.subject, cursor.query.clone());
        let CursorState::Next(_) = cursor.state else {
            known.remove(&place);
            return cursor.clone();
        };
        known.insert(place, cursor.clone());
        Cursor {
            state: CursorState::NotKept,
            checkpoint: None,
            ..cursor.clone()
        }
    }

    /// Puts in what was left out of a cursor of the same walk.
    fn recall(&self, cursor: &mut Cursor) {
        if cursor.state != CursorState::NotKept {
            return;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = known.get(&(cursor.subject, cursor.query.clone())) else {
            return;
        };
        if (place.walk, place.pages) == (cursor.walk, cursor.pages) {
            *cursor = place.clone();
        }
    }

    fn forget(&self, subject: Key, query: &Name) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(subject, query.clone()));
    }
}

impl Shop {
    pub(crate) fn written_cursor(&self, query: Option<&Query>, cursor: &Cursor) -> Cursor {
        if query.is_none_or(Query::is_durable) {
            return cursor.clone();
        }
        self.places.written(cursor)
    }

    pub(crate) fn recall_places(&self, records: &mut [Option<TaskRecord>]) {
        let records = records.iter_mut().flatten();
        for cursor in records.flat_map(|record| &mut record.cursors) {
            self.places.recall(cursor);
        }
    }

    /// What was asked for, and which page of it, as far as the log may have it.
    pub(crate) fn logged_place<'w>(&self, work: &'w Work) -> (&'w str, String) {
        let (step, plan) = (&work.call.step, &work.call.plan);
        let query = self.settings.network.query(&step.query);
        let is_kept = query.is_none_or(Query::is_durable);
        if is_kept || !matches!(step.page, StepPage::Next(_)) {
            return (&plan.target, plan.cursor.clone());
        }
        let path = plan.target.split('?').next().unwrap_or_default();
        (path, NOT_KEPT.to_owned())
    }

    /// A visit that is over, or given up, goes on nowhere.
    pub(crate) fn forget_places(&self, tasks: &[TaskRecord]) {
        for task in tasks {
            for cursor in &task.cursors {
                self.places.forget(task.row.subject, &cursor.query);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::WorldTime;

    fn cursor(pages: u32, state: CursorState) -> Cursor {
        Cursor {
            subject: Key(1),
            query: "posts".into(),
            walk: 2,
            digest: "d".into(),
            pages,
            items: 100 * pages,
            state,
            checkpoint: Some("first".into()),
            mark_next: Some("new".into()),
            mark: Some("old".into()),
            started: WorldTime(5),
        }
    }

    #[test]
    fn what_is_written_tells_no_place_and_this_process_knows_it() {
        let places = Places::default();
        let whole = cursor(1, CursorState::Next("after=x".into()));
        let mut written = places.written(&whole);
        assert!(!format!("{written:?}").contains("after=x") && written.checkpoint.is_none());
        assert_eq!(written.mark.as_deref(), Some("old"));
        let unknown = written.clone();
        places.recall(&mut written);
        assert_eq!(written, whole);
        // Another process, and one whose list has moved on since, know nothing.
        let mut elsewhere = unknown.clone();
        Places::default().recall(&mut elsewhere);
        assert_eq!(elsewhere, unknown);
        places.written(&cursor(2, CursorState::Next("after=y".into())));
        let mut earlier = unknown.clone();
        places.recall(&mut earlier);
        assert_eq!(earlier, unknown);
    }

    #[test]
    fn a_walk_that_is_over_leaves_nothing() {
        let places = Places::default();
        places.written(&cursor(1, CursorState::Next("after=x".into())));
        let complete = cursor(2, CursorState::Complete);
        assert_eq!(places.written(&complete), complete);
        assert!(places.0.lock().expect("a lock").is_empty());
        places.written(&cursor(1, CursorState::Next("after=x".into())));
        places.forget(Key(1), &"posts".into());
        assert!(places.0.lock().expect("a lock").is_empty());
    }
}
