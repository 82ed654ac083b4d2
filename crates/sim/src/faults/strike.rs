//! Faults that change the world: bans, posts and relations withdrawn while they are walked.

use serde::Serialize;
use serde_json::{Value, json};

use super::plan::Doom;
use super::{FaultState, Kind, List};
use crate::world::{Follow, Moment, Post, Standing, World};

/// A call that walks one of a user's lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) user: u64,
    pub(crate) list: List,
    pub(crate) is_later_page: bool,
}

/// What a walk of a user's list shows with a page, and what it showed just before.
#[derive(Debug)]
pub(crate) enum Walked {
    Follows {
        page: Vec<Follow>,
        before: Vec<Follow>,
    },
    Posts {
        page: Vec<Post>,
        before: Vec<Post>,
    },
}

/// What was taken away, with ids as in the ground truth.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Withdrew {
    table: &'static str,
    /// Ids; of relations pairs of source and target.
    ids: Vec<Value>,
    /// Whether the walk had shown or shows it once; else it is gone before it was seen here.
    shown: bool,
    /// How a banned user stands from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<&'static str>,
}

impl Withdrew {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.ids.len() * 200
    }
}

/// A change of the world that a call brought about.
#[derive(Debug)]
pub(crate) struct Strike {
    pub(crate) kind: Kind,
    pub(crate) withdrew: Withdrew,
    change: Change,
    /// Whether the answer to this call still shows the world before it.
    pub(crate) is_after_answer: bool,
}

#[derive(Debug)]
enum Change {
    Ban(u64, Standing),
    Posts(Vec<u64>),
    Follows(Vec<u64>),
}

impl FaultState {
    /// The change that a call brings about, if any. It holds once it is applied.
    pub(crate) fn strike(
        &self,
        world: &World,
        now: Moment<'_>,
        walk: Walk,
        walked: impl FnOnce() -> Option<Walked>,
    ) -> Option<Strike> {
        let doom = self.doom(world, walk)?;
        if !world.is_active(walk.user, now) {
            return None;
        }
        let strike = if doom.kind == Kind::Ban {
            ban(world, walk.user, doom)
        } else {
            withdrawal(world, walked()?, doom)?
        };
        self.mark_struck(walk.user).then_some(strike)
    }

    pub(crate) fn apply(&self, strike: &Strike, from_us: i64) {
        self.withdraw(|withdrawn| match &strike.change {
            Change::Ban(user, standing) => withdrawn.ban(*user, *standing, from_us),
            Change::Posts(ids) => {
                for &id in ids {
                    withdrawn.withdraw_post(id, from_us);
                }
            }
            Change::Follows(ids) => {
                for &id in ids {
                    withdrawn.withdraw_follow(id, from_us);
                }
            }
        });
    }
}

fn ban(world: &World, user: u64, doom: Doom) -> Strike {
    let (standing, name) = if doom.is_gone {
        (Standing::Gone, "gone")
    } else {
        (Standing::Suspended, "suspended")
    };
    Strike {
        kind: doom.kind,
        withdrew: Withdrew {
            table: "users",
            ids: vec![json!(world.account_uri(user))],
            shown: false,
            standing: Some(name),
        },
        change: Change::Ban(user, standing),
        is_after_answer: false,
    }
}

/// Some of what the walk has just shown, or of what it is about to show.
fn withdrawal(world: &World, walked: Walked, doom: Doom) -> Option<Strike> {
    match walked {
        Walked::Posts { page, before } => {
            let (posts, shown, is_after_answer) = chosen(page, before, doom)?;
            let uri = |post: &Post| json!(world.status_uri(post));
            Some(Strike {
                kind: doom.kind,
                withdrew: Withdrew {
                    table: "statuses",
                    ids: posts.iter().map(uri).collect(),
                    shown,
                    standing: None,
                },
                change: Change::Posts(posts.iter().map(Post::id).collect()),
                is_after_answer,
            })
        }
        Walked::Follows { page, before } => {
            let (follows, shown, is_after_answer) = chosen(page, before, doom)?;
            let uri = |user: u64| world.account_uri(user);
            let pair = |follow: &Follow| json!([uri(follow.source), uri(follow.target)]);
            Some(Strike {
                kind: doom.kind,
                withdrew: Withdrew {
                    table: "user_relations",
                    ids: follows.iter().map(pair).collect(),
                    shown,
                    standing: None,
                },
                change: Change::Follows(follows.iter().map(|follow| follow.id).collect()),
                is_after_answer,
            })
        }
    }
}

/// What is taken, whether the walk shows it, and whether this answer still has to.
fn chosen<T>(page: Vec<T>, before: Vec<T>, doom: Doom) -> Option<(Vec<T>, bool, bool)> {
    let is_seen_already = !before.is_empty();
    let source = if is_seen_already { before } else { page };
    let taken: Vec<T> = source.into_iter().take(doom.count).collect();
    let is_after_answer = !is_seen_already && doom.is_shown;
    (!taken.is_empty()).then_some((taken, is_seen_already || is_after_answer, is_after_answer))
}
