//! What robots did last: so many messages of each, the newest first.

use crate::standing::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Messages of one robot.
const OF_ONE_MAX: usize = 100;
/// Robots that messages are kept of: a definition has a dozen.
const ROBOTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Messages(Mutex<BTreeMap<String, VecDeque<Message>>>);

impl Messages {
    /// Takes messages in, the oldest first.
    pub(crate) fn add(&self, messages: impl IntoIterator<Item = Message>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            if kept.len() >= ROBOTS_MAX && !kept.contains_key(&message.robot) {
                continue;
            }
            let ring = kept.entry(message.robot.clone()).or_default();
            if ring.len() == OF_ONE_MAX {
                ring.pop_back();
            }
            ring.push_front(message);
        }
    }

    pub(crate) fn last(&self, robot: &str) -> Option<Message> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(robot).and_then(|ring| ring.front()).cloned()
    }

    /// The newest first, of one robot or of all.
    pub(crate) fn newest(&self, robot: Option<&str>, limit: usize) -> Vec<Message> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rings = kept
            .iter()
            .filter(|(name, _)| robot.is_none_or(|robot| robot == name.as_str()));
        let mut found: Vec<Message> = rings.flat_map(|(_, ring)| ring).cloned().collect();
        found.sort_by(|a, b| b.at_us.cmp(&a.at_us).then_with(|| b.log.cmp(&a.log)));
        found.truncate(limit);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(robot: &str, at_us: i64) -> Message {
        Message {
            robot: robot.to_owned(),
            at_us,
            ..Message::default()
        }
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let messages = Messages::default();
        messages.add((0..200).map(|at_us| message("statuses", at_us)));
        messages.add([message("profiles", 150)]);
        let all = messages.newest(None, 1_000);
        assert_eq!(all.len(), OF_ONE_MAX + 1);
        assert_eq!((all[0].at_us, all[100].at_us), (199, 100));
        assert_eq!(messages.newest(Some("profiles"), 5).len(), 1);
        assert_eq!(messages.last("statuses").unwrap().at_us, 199);
    }
}
