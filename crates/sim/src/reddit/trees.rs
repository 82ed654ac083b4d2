//! Conversations as trees, with stubs for what is left out.
//!
//! A comment that is gone keeps its place as long as something visible stands below it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::listings::listing;
use super::names::{base36, fullname, is_comment, number};
use super::{Problem, Teller};
use crate::answer::Answer;
use crate::world::{Link, Post};

const COMMENTS: usize = 200;
const COMMENTS_MAX: usize = 500;
const DEPTH_MAX: usize = 10;
const CHILDREN_MAX: usize = 100;

/// All that is to be shown of a conversation: what answers what, newest first.
struct Conversation {
    answers: BTreeMap<u64, Vec<Post>>,
}

impl Conversation {
    fn below(&self, id: u64) -> &[Post] {
        self.answers.get(&id).map_or(&[], Vec::as_slice)
    }

    /// How many stand below, in all.
    fn count(&self, id: u64) -> usize {
        let mut open = vec![id];
        let mut count = 0;
        while let Some(id) = open.pop() {
            count += self.below(id).len();
            open.extend(self.below(id).iter().map(Post::id));
        }
        count
    }

    /// Those that fit into an answer, level by level.
    fn chosen(&self, from: &[Post], comments_max: usize, depth_max: usize) -> Vec<u64> {
        let mut open: VecDeque<(Post, usize)> = from.iter().map(|post| (*post, 1)).collect();
        let mut chosen = Vec::new();
        while let Some((post, depth)) = open.pop_front() {
            if chosen.len() == comments_max {
                break;
            }
            chosen.push(post.id());
            if depth < depth_max {
                let below = self.below(post.id()).iter();
                open.extend(below.map(|answer| (*answer, depth + 1)));
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

/// One answer of a tree.
struct Tree<'a> {
    conversation: &'a Conversation,
    chosen: Vec<u64>,
    depth_max: usize,
}

impl Teller<'_> {
    fn conversation(&self, beginning: &Post) -> Conversation {
        let mut answers: BTreeMap<u64, Vec<Post>> = BTreeMap::new();
        let mut placed = std::collections::BTreeSet::new();
        for post in self.view.world.all_below(beginning, self.view.now) {
            let mut current = post;
            // Whatever stands above is shown, too, if only as a place.
            while placed.insert(current.id())
                && let Link::Reply(target) = current.link
            {
                answers.entry(target.id()).or_default().push(current);
                let Some(parent) = self.view.world.post_with_id(target.id()) else {
                    break;
                };
                if !is_comment(&parent) {
                    break;
                }
                current = parent;
            }
        }
        for list in answers.values_mut() {
            list.sort_unstable_by_key(|post| std::cmp::Reverse(post.id()));
        }
        Conversation { answers }
    }

    /// A post that was there once, if only to be deleted.
    fn known_post(&self, id: &str) -> Result<Post, Problem> {
        let post = number(id).and_then(|id| self.view.world.post_with_id(id));
        post.filter(|post| !post.is_repost() && post.draft.at_us <= self.view.now.at_us)
            .ok_or(Problem::NotFound)
    }

    fn bounds(&self) -> (usize, usize) {
        let asked = |name| self.heard.params.number(name).unwrap_or(0) as usize;
        let comments = match asked("limit") {
            0 => COMMENTS,
            limit => limit.min(COMMENTS_MAX),
        };
        let depth = match asked("depth") {
            0 => DEPTH_MAX,
            depth => depth.min(DEPTH_MAX),
        };
        (comments, depth)
    }

    /// A post and what answers it, or one comment and what stands below that; of a comment that is
    /// not there the whole tree comes.
    pub(super) fn tree(&self, post: &str, comment: Option<&str>) -> Result<Answer, Problem> {
        let post = self.known_post(post)?;
        if is_comment(&post) {
            return Err(Problem::NotFound);
        }
        let conversation = self.conversation(&post);
        let comment = comment.and_then(number);
        let focus = comment.and_then(|id| {
            let mut lists = conversation.answers.values().flatten();
            lists.find(|answer| answer.id() == id).copied()
        });
        let focus = focus.map(|comment| vec![comment]);
        let from = focus.as_deref().unwrap_or(conversation.below(post.id()));
        let (comments_max, depth_max) = self.bounds();
        let tree = Tree {
            conversation: &conversation,
            chosen: conversation.chosen(from, comments_max, depth_max),
            depth_max,
        };
        let comments = self.branch(&tree, &fullname(&post), from, 0);
        let count = 1 + tree.chosen.len() as u64;
        let body = json!([
            listing(&[self.thing(&post)], None),
            listing(&comments, None)
        ]);
        Ok(Answer {
            items: Some(count),
            ..Answer::json(&body)
        })
    }

    /// The answers to one thing. The recursion ends with the depth.
    fn branch(&self, tree: &Tree<'_>, parent: &str, answers: &[Post], depth: usize) -> Vec<Value> {
        if depth == tree.depth_max {
            let stub = json!({ "count": 0, "name": "t1__", "id": "_", "parent_id": parent,
                               "depth": depth, "children": [] });
            let is_needed = !answers.is_empty();
            let stub = is_needed.then(|| json!({ "kind": "more", "data": stub }));
            return stub.into_iter().collect();
        }
        let is_chosen = |post: &&Post| tree.chosen.binary_search(&post.id()).is_ok();
        let mut told: Vec<Value> = answers
            .iter()
            .filter(is_chosen)
            .map(|post| {
                let below = tree.conversation.below(post.id());
                let below = self.branch(tree, &fullname(post), below, depth + 1);
                let mut data = self.comment(post);
                data["depth"] = json!(depth);
                data["replies"] = if below.is_empty() {
                    json!("")
                } else {
                    listing(&below, None)
                };
                json!({ "kind": "t1", "data": data })
            })
            .collect();
        let left: Vec<&Post> = answers.iter().filter(|post| !is_chosen(post)).collect();
        if let Some(first) = left.first() {
            let below = left
                .iter()
                .map(|post| 1 + tree.conversation.count(post.id()));
            let children: Vec<String> = left.iter().map(|post| base36(post.id())).collect();
            let stub = json!({
                "count": below.sum::<usize>(),
                "name": fullname(first),
                "id": base36(first.id()),
                "parent_id": parent,
                "depth": depth,
                "children": children,
            });
            told.push(json!({ "kind": "more", "data": stub }));
        }
        told
    }

    /// What stubs stand for: up to a hundred comments and what stands below them, in one flat list
    /// that has stubs of its own.
    pub(super) fn more_children(&self) -> Result<Answer, Problem> {
        let post = self.heard.params.get("link_id").unwrap_or_default();
        let post = self.known_post(post.strip_prefix("t3_").ok_or(Problem::NotFound)?)?;
        let conversation = self.conversation(&post);
        let children = self.heard.params.get("children").unwrap_or_default();
        let wanted: Vec<u64> = children
            .split(',')
            .take(CHILDREN_MAX)
            .filter_map(number)
            .collect();
        let mut from: Vec<Post> = conversation
            .answers
            .values()
            .flatten()
            .filter(|answer| wanted.contains(&answer.id()))
            .copied()
            .collect();
        // Where one stands below another, it comes with that.
        let is_below = |answer: &Post| {
            let mut above = self.view.world.above(answer).into_iter();
            above.any(|above| wanted.contains(&above.id()))
        };
        from.retain(|answer| !is_below(answer));
        let (_, depth_max) = self.bounds();
        let tree = Tree {
            conversation: &conversation,
            chosen: conversation.chosen(&from, CHILDREN_MAX, depth_max),
            depth_max,
        };
        let mut things: Vec<Value> = Vec::new();
        for answer in &from {
            let parent = self.view.world.above(answer).first().map(fullname);
            let one = std::slice::from_ref(answer);
            flatten(
                self.branch(&tree, &parent.unwrap_or_default(), one, 0),
                &mut things,
            );
        }
        let items = things.len() as u64;
        let body = json!({ "json": { "errors": [], "data": { "things": things } } });
        Ok(Answer {
            items: Some(items),
            ..Answer::json(&body)
        })
    }
}

/// Things of a tree one after the other. The recursion ends with the depth of the tree.
fn flatten(branch: Vec<Value>, things: &mut Vec<Value>) {
    for mut thing in branch {
        let below = thing.pointer_mut("/data/replies/data/children");
        let below = below.map_or(Value::Null, Value::take);
        if thing["kind"] == "t1" {
            thing["data"]["replies"] = json!("");
        }
        things.push(thing);
        if let Value::Array(below) = below {
            flatten(below, things);
        }
    }
}
