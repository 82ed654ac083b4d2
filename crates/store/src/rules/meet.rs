//! Two rows that say how far a crawl is with one subject become one: the ends of statements that write
//! such rows into a table that is called `known`.

/// The newest outcome is kept; every one is counted.
macro_rules! outcomes_meet {
    () => {
        "ON CONFLICT (key, query) DO UPDATE SET
           times = known.times + excluded.times,
           outcome = CASE WHEN (excluded.at_us, excluded.log) > (known.at_us, known.log)
                          THEN excluded.outcome ELSE known.outcome END,
           reason = CASE WHEN (excluded.at_us, excluded.log) > (known.at_us, known.log)
                         THEN excluded.reason ELSE known.reason END,
           log = CASE WHEN (excluded.at_us, excluded.log) > (known.at_us, known.log)
                      THEN excluded.log ELSE known.log END,
           at_us = max(known.at_us, excluded.at_us)"
    };
}
pub(super) use outcomes_meet;

/// The robot that has been there more often knows more; nobody waits longer than before.
macro_rules! tasks_meet {
    () => {
        "ON CONFLICT (subject, robot) DO UPDATE SET
           visited_us = max(coalesce(known.visited_us, excluded.visited_us),
                            coalesce(excluded.visited_us, known.visited_us)),
           state = CASE WHEN excluded.visits > known.visits THEN excluded.state ELSE known.state END,
           lane = CASE WHEN excluded.visits > known.visits THEN excluded.lane ELSE known.lane END,
           due_us = CASE WHEN excluded.visits > known.visits THEN excluded.due_us
                         WHEN excluded.visits < known.visits THEN known.due_us
                         ELSE min(known.due_us, excluded.due_us) END,
           visits = max(known.visits, excluded.visits)"
    };
}
pub(super) use tasks_meet;

/// The walk that has come furthest goes on.
macro_rules! cursors_meet {
    () => {
        "ON CONFLICT (subject, query) DO UPDATE SET
           walk = excluded.walk, digest = excluded.digest, pages = excluded.pages,
           next = excluded.next, checkpoint = excluded.checkpoint, mark_next = excluded.mark_next,
           mark = excluded.mark, started_us = excluded.started_us, items = excluded.items
         WHERE (excluded.walk, excluded.pages, excluded.started_us)
             > (known.walk, known.pages, known.started_us)"
    };
}
pub(super) use cursors_meet;

/// What was seen last holds.
macro_rules! sights_meet {
    () => {
        "ON CONFLICT (viewer, key) DO UPDATE SET level = excluded.level,
           observed_us = excluded.observed_us
         WHERE excluded.observed_us > known.observed_us"
    };
}
pub(super) use sights_meet;
