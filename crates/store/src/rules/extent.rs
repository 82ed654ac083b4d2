//! What the rules of a crawl ask of every row that is written.

use super::brings::is_writing;
use super::steps::Along;
use kittiwake_model::{Expansion, Name, Role, Table};
use std::collections::HashMap;

/// The part of the rules that decides what has to be looked at beside the row itself. Worked out
/// once, because most rows are written under rules that want nothing of it.
#[derive(Debug, Default)]
pub(super) struct Extent {
    files_posts: bool,
    roles: Vec<Role>,
    /// The most steps that any robot takes along reposts, and along replies.
    steps_max: [u32; 2],
    /// Types of which a robot leaves out those that have nothing to ask for.
    counted_kinds: Vec<Name>,
}

impl Extent {
    pub(super) fn of(rules: Option<&Expansion>, types: &HashMap<(Name, Name), Table>) -> Self {
        // Without rules nothing matters yet: the first ones make everybody be looked at.
        let Some(rules) = rules else {
            return Self::default();
        };
        let is_post = |kind: &Name| {
            let known = types.iter().filter(|((_, known), _)| known == kind);
            known
                .map(|(_, table)| *table)
                .chain([guessed_table(kind)])
                .any(is_writing)
        };
        let robots = rules.robots.iter();
        Self {
            files_posts: robots.clone().any(|filing| is_post(&filing.kind)),
            roles: rules.brings.clone(),
            steps_max: Along::ALL.map(|along| {
                let steps = robots.clone().map(|filing| along.steps_of(filing));
                steps.max().unwrap_or_default()
            }),
            counted_kinds: robots
                .filter(|filing| filing.unless_zero.is_some())
                .map(|filing| filing.kind.clone())
                .collect(),
        }
    }

    pub(super) fn brings(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The most steps that any robot takes.
    pub(super) const fn steps_max(&self, along: Along) -> u32 {
        match along {
            Along::Reposts => self.steps_max[0],
            Along::Replies => self.steps_max[1],
        }
    }

    /// Whether a link means anything to the crawl beside its own row.
    pub(super) fn looks_at_links(&self) -> bool {
        self.steps_max(Along::Reposts) > 0
            || self.roles.iter().any(|role| *role != Role::Commenters)
    }

    /// Whether a post means anything to the crawl beside its own row.
    pub(super) fn looks_at_posts(&self) -> bool {
        self.files_posts || self.brings_by_posts()
    }

    /// Whether posts have to be gone through one by one when their author comes nearer, rather
    /// than only filed.
    pub(super) fn looks_behind_posts(&self) -> bool {
        self.steps_max.iter().any(|steps| *steps > 0) || self.brings_by_posts()
    }

    /// Whether posts bring anybody in.
    fn brings_by_posts(&self) -> bool {
        let mut roles = self.roles.iter();
        roles.any(|role| !matches!(role, Role::Authors | Role::Posts))
    }

    pub(super) fn counts_any(&self) -> bool {
        !self.counted_kinds.is_empty()
    }

    pub(super) fn counts(&self, kind: &Name) -> bool {
        self.counted_kinds.contains(kind)
    }
}

/// The table of a type of which no object was described yet: its name is all there is to go by.
pub(super) fn guessed_table(kind: &str) -> Table {
    match kind {
        "user" => Table::Users,
        "status" => Table::Statuses,
        "comment" => Table::Comments,
        "tag" => Table::Tags,
        _ => Table::Objects,
    }
}
