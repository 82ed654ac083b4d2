//! Posts, comments, people and subreddits.

use serde_json::{Map, Value, json};

use super::names::{Subreddit, base36, fullname, is_comment, number};
use super::{Problem, Teller};
use crate::answer::Answer;
use crate::dialect::plain_text;
use crate::world::time::{DAY_S, SECOND_US};
use crate::world::{Link, Post, Standing};

const CARDS_MAX: usize = 300;
const TITLE_CHARS_MAX: usize = 300;
const DELETED: &str = "[deleted]";

/// Seconds since 1970, with a point.
fn seconds(at_us: i64) -> f64 {
    at_us.div_euclid(SECOND_US) as f64
}

impl Teller<'_> {
    /// A post or a comment, with what kind of thing it is.
    pub(super) fn thing(&self, post: &Post) -> Value {
        if is_comment(post) {
            let mut data = self.comment(post);
            data["replies"] = json!("");
            return json!({ "kind": "t1", "data": data });
        }
        json!({ "kind": "t3", "data": self.post(post) })
    }

    /// Who wrote something: nobody any more, once it is deleted.
    fn author(&self, post: &Post, data: &mut Value) {
        if !self.is_visible(post) {
            data["author"] = json!(DELETED);
            return;
        }
        let world = self.view.world;
        data["author"] = json!(world.username(post.user(), self.view.now.at_us));
        data["author_fullname"] = json!(account_name(world.account_id(post.user())));
        data["author_premium"] = json!(false);
    }

    fn words(&self, post: &Post) -> String {
        let content = self.view.world.content(post, self.view.now.at_us);
        plain_text(&content.html)
    }

    fn edited(&self, post: &Post) -> Value {
        let edited_us = self.view.world.edited_us(post, self.view.now.at_us);
        edited_us.map_or(json!(false), |edited_us| json!(seconds(edited_us)))
    }

    fn score(&self, post: &Post) -> usize {
        1 + self.view.world.likes_at(post, self.view.now).len()
    }

    fn place(&self, beginning: &Post, data: &mut Value) {
        let subreddit = Subreddit::of(self.view.world, beginning);
        let name = subreddit.name(self.view.world, self.view.now.at_us);
        data["subreddit_name_prefixed"] = match subreddit {
            Subreddit::Tag(_) => json!(format!("r/{name}")),
            Subreddit::Own(_) => json!(name.replacen("u_", "u/", 1)),
        };
        data["subreddit"] = json!(name);
        data["subreddit_id"] = json!(subreddit.fullname());
        data["subreddit_type"] = json!(subreddit.kind());
    }

    fn post(&self, post: &Post) -> Value {
        let is_there = self.is_visible(post);
        let words = self.words(post);
        let (title, text) = words.split_once('\n').unwrap_or((&words, ""));
        let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
        let below = self.view.world.all_below(post, self.view.now).len();
        let score = self.score(post);
        let mut data = json!({
            "approved_at_utc": null,
            "selftext": if is_there { text } else { DELETED },
            "saved": false,
            "mod_reason_title": null,
            "gilded": 0,
            "clicked": false,
            "title": title,
            "link_flair_richtext": [],
            "hidden": false,
            "pwls": 6,
            "link_flair_css_class": null,
            "downs": 0,
            "hide_score": false,
            "name": fullname(post),
            "quarantine": false,
            "upvote_ratio": 1.0,
            "ups": score,
            "score": score,
            "total_awards_received": 0,
            "is_original_content": false,
            "is_reddit_media_domain": false,
            "category": null,
            "link_flair_text": null,
            "edited": self.edited(post),
            "is_self": true,
            "created": seconds(post.draft.at_us),
            "created_utc": seconds(post.draft.at_us),
            "removed_by_category": if is_there { Value::Null } else { json!("deleted") },
            "over_18": self.view.world.content(post, self.view.now.at_us).is_sensitive,
            "locked": false,
            "archived": false,
            "stickied": false,
            "spoiler": false,
            "id": base36(post.id()),
            "num_comments": below,
            "num_crossposts": 0,
        });
        self.author(post, &mut data);
        self.place(post, &mut data);
        let permalink = self.permalink(post);
        data["url"] = json!(format!("https://www.reddit.com{permalink}"));
        data["permalink"] = json!(permalink);
        data["domain"] = json!(format!("self.{}", data["subreddit"].as_str().unwrap_or("")));
        data
    }

    fn permalink(&self, beginning: &Post) -> String {
        let subreddit = Subreddit::of(self.view.world, beginning);
        let name = subreddit.name(self.view.world, self.view.now.at_us);
        format!("/r/{name}/comments/{}/_/", base36(beginning.id()))
    }

    /// A comment without what answers it.
    pub(super) fn comment(&self, comment: &Post) -> Value {
        let world = self.view.world;
        let beginning = world.beginning(comment);
        let is_there = self.is_visible(comment);
        let parent = match comment.link {
            Link::Reply(target) => world.post_with_id(target.id()),
            Link::None | Link::Repost(_) => None,
        };
        let score = self.score(comment);
        let id = base36(comment.id());
        let mut data = json!({
            "approved_at_utc": null,
            "id": id,
            "name": fullname(comment),
            "body": if is_there { self.words(comment) } else { DELETED.to_owned() },
            "parent_id": fullname(&parent.unwrap_or(beginning)),
            "link_id": fullname(&beginning),
            "edited": self.edited(comment),
            "created": seconds(comment.draft.at_us),
            "created_utc": seconds(comment.draft.at_us),
            "ups": score,
            "downs": 0,
            "score": score,
            "score_hidden": false,
            "gilded": 0,
            "controversiality": 0,
            "distinguished": null,
            "stickied": false,
            "locked": false,
            "archived": false,
            "saved": false,
            "collapsed": false,
            "collapsed_reason": null,
            "is_submitter": is_there && comment.user() == beginning.user(),
            "permalink": format!("{}{id}/", self.permalink(&beginning)),
            "total_awards_received": 0,
        });
        self.author(comment, &mut data);
        self.place(&beginning, &mut data);
        data
    }

    pub(super) fn about(&self, name: &str) -> Result<Answer, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let user = world.user_named(name, now.at_us).ok_or(Problem::NotFound)?;
        match world.standing(user, now) {
            Standing::Active => Ok(Answer::json(
                &json!({ "kind": "t2", "data": self.account(user) }),
            )),
            Standing::Suspended => Ok(Answer::json(&json!({
                "kind": "t2",
                "data": { "name": world.username(user, now.at_us), "is_suspended": true,
                          "awardee_karma": 0, "awarder_karma": 0, "total_karma": 0 },
            }))),
            Standing::Gone => Err(Problem::NotFound),
        }
    }

    /// The account of whoever asks: nobody in particular.
    pub(super) fn own_account(&self) -> Value {
        let first = self.view.world.seed_users(self.view.now).next();
        self.account(first.unwrap_or(0))
    }

    /// What others gave for posts and for comments.
    fn karma(&self, user: u64) -> [usize; 2] {
        let (world, now) = (self.view.world, self.view.now);
        let mut karma = [0; 2];
        for post in world.timeline_down(user, now, i64::MAX as u64) {
            if !post.is_repost() {
                karma[usize::from(is_comment(&post))] += world.likes_at(&post, now).len();
            }
        }
        karma
    }

    fn account(&self, user: u64) -> Value {
        let world = self.view.world;
        let name = world.username(user, self.view.now.at_us);
        let profile = world.profile(user, self.view.now.at_us);
        let traits = world.traits(user);
        let created = (traits.created_day * DAY_S) as f64;
        let [link_karma, comment_karma] = self.karma(user);
        let own = Subreddit::Own(user);
        json!({
            "id": base36(world.account_id(user)),
            "name": name,
            "created": created,
            "created_utc": created,
            "link_karma": link_karma,
            "comment_karma": comment_karma,
            "total_karma": link_karma + comment_karma,
            "awardee_karma": 0,
            "awarder_karma": 0,
            "is_gold": false,
            "is_mod": false,
            "is_employee": false,
            "is_blocked": false,
            "verified": true,
            "has_verified_email": true,
            "hide_from_robots": world.wishes(user).is_noindex,
            "accept_followers": true,
            "has_subscribed": true,
            "icon_img": format!("https://www.redditstatic.com/avatars/{user}.png"),
            "snoovatar_img": "",
            "pref_show_snoovatar": false,
            "subreddit": {
                "name": own.fullname(),
                "display_name": format!("u_{name}"),
                "display_name_prefixed": format!("u/{name}"),
                "title": profile.display_name,
                "public_description": plain_text(&profile.note_html),
                "subreddit_type": "user",
                "url": format!("/user/{name}/"),
                "over_18": false,
                "subscribers": 0,
            },
        })
    }

    /// Cards of accounts by their numbers; who is gone has none, and where nobody has one nothing is found.
    pub(super) fn cards(&self) -> Result<Answer, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let names = self.heard.params.get("ids").unwrap_or_default();
        let mut cards = Map::new();
        for name in names.split(',').take(CARDS_MAX) {
            let id = name.strip_prefix("t2_").and_then(number);
            let user = id.and_then(|id| world.user_with_id(id));
            let Some(user) = user.filter(|&user| world.is_active(user, now)) else {
                continue;
            };
            let [link_karma, comment_karma] = self.karma(user);
            let card = json!({
                "name": world.username(user, now.at_us),
                "created_utc": (world.traits(user).created_day * DAY_S) as f64,
                "link_karma": link_karma,
                "comment_karma": comment_karma,
                "profile_img": format!("https://www.redditstatic.com/avatars/{user}.png"),
                "profile_color": "#FF4500",
                "profile_over_18": false,
            });
            cards.insert(name.to_owned(), card);
        }
        if cards.is_empty() {
            return Err(Problem::NotFound);
        }
        let items = cards.len() as u64;
        Ok(Answer {
            items: Some(items),
            ..Answer::json(&cards)
        })
    }

    pub(super) fn subreddit_about(&self, name: &str) -> Result<Answer, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let subreddit = Subreddit::named(world, name, now.at_us).ok_or(Problem::NotFound)?;
        let name = subreddit.name(world, now.at_us);
        Ok(Answer::json(&json!({
            "kind": "t5",
            "data": {
                "id": subreddit.fullname().trim_start_matches("t5_"),
                "name": subreddit.fullname(),
                "display_name": name,
                "display_name_prefixed": format!("r/{name}"),
                "title": name,
                "url": format!("/r/{name}/"),
                "subreddit_type": subreddit.kind(),
                "public_description": "",
                "description": "",
                "subscribers": 0,
                "created_utc": (world.history_start_day() * DAY_S) as f64,
                "over18": false,
                "quarantine": false,
                "lang": "en",
            },
        })))
    }
}

impl Teller<'_> {
    /// Everybody looks after what is their own; nobody looks after the others.
    pub(super) fn moderators(&self, name: &str) -> Result<Answer, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let subreddit = Subreddit::named(world, name, now.at_us).ok_or(Problem::NotFound)?;
        let moderators = match subreddit {
            Subreddit::Own(user) if world.is_active(user, now) => vec![json!({
                "name": world.username(user, now.at_us),
                "id": account_name(world.account_id(user)),
                "rel_id": format!("rb_{}", base36(user)),
                "date": (world.traits(user).created_day * DAY_S) as f64,
                "mod_permissions": ["all"],
                "author_flair_text": null,
                "author_flair_css_class": null,
            })],
            Subreddit::Own(_) | Subreddit::Tag(_) => Vec::new(),
        };
        Ok(Answer {
            items: Some(moderators.len() as u64),
            ..Answer::json(&json!({ "kind": "UserList", "data": { "children": moderators } }))
        })
    }
}

pub(super) fn account_name(id: u64) -> String {
    format!("t2_{}", base36(id))
}
