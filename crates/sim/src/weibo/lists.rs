//! How lists are cut into pages.
//!
//! Posts and comments go by `max_id`, which is part of the page, and `since_id`, which is not; or by the
//! number of the page. Relations go by a cursor. The real one counts places; here it is the number of
//! the relation that the next page begins with, so that nobody is passed over when others leave.

use serde_json::{Value, json};

use super::{Problem, Teller};
use crate::answer::Answer;
use crate::dialect::{Slice, slice};
use crate::faults::{List, Walked};
use crate::spoil::{OVERLAP, Spoil};
use crate::world::{Follow, Post};

/// A page of a list, and how long the list is.
#[derive(Debug)]
pub(super) struct Cut<T> {
    pub(super) items: Vec<T>,
    /// What the page before showed last.
    before: Vec<T>,
    /// What the next page begins with.
    next: Option<T>,
    total: usize,
    spoilt: Option<Spoil>,
}

impl<T: Clone> Cut<T> {
    fn new(list: &[T], start: usize, size: usize, spoil: Option<Spoil>) -> Self {
        let start = start.min(list.len());
        let Slice {
            items,
            next,
            spoilt,
        } = slice(list, start, size, spoil);
        Self {
            items,
            before: list[start.saturating_sub(OVERLAP)..start].to_vec(),
            next: next.and_then(|next| list.get(next).cloned()),
            total: list.len(),
            spoilt,
        }
    }

    /// The answer: a list under its name, and what stands around every list.
    pub(super) fn answer(&self, name: &str, items: Vec<Value>, id: impl Fn(&T) -> u64) -> Answer {
        let next = self.next.as_ref().map_or(0, &id);
        let previous = if self.before.is_empty() {
            0
        } else {
            self.items.first().map_or(0, &id)
        };
        let count = items.len() as u64;
        let mut body = json!({
            "hasvisible": false,
            "previous_cursor": previous,
            "next_cursor": next,
            "total_number": self.total,
        });
        body[name] = Value::Array(items);
        Answer {
            items: Some(count),
            spoilt: self.spoilt,
            ..Answer::json(&body)
        }
    }
}

/// A spoilt page from which one goes on by number: nothing may move to the next.
const fn in_place(spoil: Spoil) -> Spoil {
    match spoil {
        Spoil::Shifted | Spoil::RepeatedNext => Spoil::Duplicates,
        Spoil::Duplicates | Spoil::Shuffled => spoil,
    }
}

impl Teller<'_> {
    /// `count`, up to a maximum: more is taken for the maximum.
    fn count(&self, default: usize, max: usize) -> usize {
        let count = self.heard.params.number("count").unwrap_or(0) as usize;
        if count == 0 { default } else { count.min(max) }
    }

    fn page_number(&self) -> usize {
        let page = self.heard.params.number("page").unwrap_or(1);
        page.clamp(1, 1_000_000) as usize
    }

    /// A list that goes by numbers of pages.
    pub(super) fn by_page<T: Clone>(&self, list: &[T], default: usize, max: usize) -> Cut<T> {
        let count = self.count(default, max);
        let start = (self.page_number() - 1).saturating_mul(count);
        Cut::new(list, start, count, self.view.spoil.map(in_place))
    }

    /// A list of posts, newest first, that goes by ids, and by numbers of pages from there.
    pub(super) fn by_ids(&self, mut list: Vec<Post>, default: usize, max: usize) -> Cut<Post> {
        let bound = |name| self.heard.params.number(name).filter(|&id| id > 0);
        if let Some(since_id) = bound("since_id") {
            list.retain(|post| post.id() > since_id);
        }
        let max_id = bound("max_id").unwrap_or(u64::MAX);
        let first = list.partition_point(|post| post.id() > max_id);
        let count = self.count(default, max);
        let page = self.page_number();
        let spoil = match page {
            1 => self.view.spoil,
            _ => self.view.spoil.map(in_place),
        };
        let start = first.saturating_add((page - 1).saturating_mul(count));
        Cut::new(&list, start, count, spoil)
    }

    /// A list of relations, newest first, that goes by a cursor.
    fn by_cursor(&self, list: &[Follow], default: usize, max: usize, cursor: &str) -> Cut<Follow> {
        let cursor = self.heard.params.number(cursor).filter(|&id| id > 0);
        let cursor = cursor.unwrap_or(u64::MAX);
        let start = list.partition_point(|edge| edge.id > cursor);
        Cut::new(list, start, self.count(default, max), self.view.spoil)
    }

    /// The relations of the one who is asked about.
    fn edges(&self, list: List) -> Result<Vec<Follow>, Problem> {
        let user = self.present_user()?;
        Ok(match list {
            List::Followers => self.view.world.followers_at(user, self.view.now),
            List::Following | List::Timeline => self.view.world.following_at(user, self.view.now),
        })
    }

    fn asked_list(&self) -> List {
        let list = super::route(self.heard).0.list();
        list.unwrap_or(List::Following)
    }

    fn cut_edges(&self) -> Result<Cut<Follow>, Problem> {
        let edges = self.edges(self.asked_list())?;
        Ok(match super::route(self.heard).0 {
            super::Route::FriendIds | super::Route::FollowerIds => {
                self.by_cursor(&edges, 500, 5_000, "cursor")
            }
            super::Route::FriendsOther => self.by_page(&edges, 500, 2_000),
            super::Route::FollowersOther => self.by_cursor(&edges, 50, 50, "max_time"),
            _ => self.by_cursor(&edges, 5, super::FRIENDS_PER_PAGE_MAX, "cursor"),
        })
    }

    const fn other_end(list: List, edge: &Follow) -> u64 {
        match list {
            List::Followers => edge.source,
            List::Following | List::Timeline => edge.target,
        }
    }

    pub(super) fn contact_ids(&self) -> Result<Answer, Problem> {
        let (list, cut) = (self.asked_list(), self.cut_edges()?);
        let world = self.view.world;
        let ids = cut.items.iter();
        let ids = ids.map(|edge| json!(world.account_id(Self::other_end(list, edge))));
        Ok(cut.answer("ids", ids.collect(), |edge| edge.id))
    }

    pub(super) fn contacts(&self) -> Result<Answer, Problem> {
        let (list, cut) = (self.asked_list(), self.cut_edges()?);
        let users = cut.items.iter();
        let users = users.map(|edge| self.contact(Self::other_end(list, edge)));
        Ok(cut.answer("users", users.collect(), |edge| edge.id))
    }

    pub(super) fn mutual_ids(&self) -> Result<Answer, Problem> {
        let following = self.edges(List::Following)?;
        let followers = self.edges(List::Followers)?;
        let is_mutual = |edge: &&Follow| followers.iter().any(|other| other.source == edge.target);
        let mutual: Vec<u64> = following
            .iter()
            .filter(is_mutual)
            .map(|edge| self.view.world.account_id(edge.target))
            .collect();
        let cut = self.by_page(&mutual, 50, 2_000);
        let ids = cut.items.iter().map(|id| json!(id)).collect();
        Ok(cut.answer("ids", ids, |&id| id))
    }

    /// See [`crate::dialect::Speech::walked`].
    pub(super) fn walked(&self) -> Option<Walked> {
        match super::route(self.heard).0.list()? {
            List::Timeline => {
                let cut = self.cut_timeline().ok()?;
                Some(Walked::Posts {
                    page: cut.items,
                    before: cut.before,
                })
            }
            List::Following | List::Followers => {
                let cut = self.cut_edges().ok()?;
                Some(Walked::Follows {
                    page: cut.items,
                    before: cut.before,
                })
            }
        }
    }
}
