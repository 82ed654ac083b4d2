//! Posts, comments and likes.

use serde_json::{Value, json};

use super::lists::Cut;
use super::{Problem, Teller};
use crate::answer::Answer;
use crate::dialect::plain_text;
use crate::world::time::in_beijing;
use crate::world::{Like, Link, Post, ids, tag_place};

const STATUSES_PER_BATCH_MAX: usize = 50;
const COUNTS_PER_BATCH_MAX: usize = 100;
const TOPIC_POSTS_MAX: usize = 1_000;
const NEWEST: u64 = i64::MAX as u64;
const PROGRAM: &str =
    "<a href=\"http://app.weibo.com/t/feed/6vtZb0\" rel=\"nofollow\">微博 weibo.com</a>";

/// `Tue May 31 17:46:55 +0800 2011`
pub(super) fn date(at_us: i64) -> String {
    in_beijing(at_us, "%a %b %d %H:%M:%S %z %Y")
}

impl Teller<'_> {
    /// What a user posted, newest first.
    pub(super) fn own_posts(&self, user: u64) -> Vec<Post> {
        let posts = self.view.world.timeline_down(user, self.view.now, NEWEST);
        posts.filter(|post| self.is_status(post)).collect()
    }

    pub(super) fn cut_timeline(&self) -> Result<Cut<Post>, Problem> {
        let posts = self.own_posts(self.present_user()?);
        let max = match super::route(self.heard).0 {
            super::Route::TimelineOther => 25,
            _ => 100,
        };
        Ok(self.by_ids(posts, 20, max))
    }

    pub(super) fn timeline(&self) -> Result<Answer, Problem> {
        Ok(self.answer_posts("statuses", &self.cut_timeline()?))
    }

    pub(super) fn timeline_ids(&self) -> Result<Answer, Problem> {
        Ok(Self::answer_ids(&self.cut_timeline()?))
    }

    /// What those posted whom the owner of the token follows.
    pub(super) fn home(&self) -> Answer {
        let owner = self.owner();
        let following = self.view.world.following_at(owner, self.view.now);
        let authors = std::iter::once(owner).chain(following.iter().map(|edge| edge.target));
        let mut posts: Vec<Post> = authors.flat_map(|user| self.own_posts(user)).collect();
        posts.sort_unstable_by_key(|post| std::cmp::Reverse(post.id()));
        self.answer_posts("statuses", &self.by_ids(posts, 20, 100))
    }

    pub(super) fn topic(&self) -> Result<Answer, Problem> {
        let topic = self
            .heard
            .params
            .get("q")
            .ok_or(Problem::MissingParameter)?;
        let places = tag_place(topic).into_iter().collect();
        let posts = self.view.world.tagged_down(places, self.view.now, NEWEST);
        let posts: Vec<Post> = posts
            .filter(|post| self.is_status(post))
            .take(TOPIC_POSTS_MAX)
            .collect();
        Ok(self.answer_posts("statuses", &self.by_page(&posts, 10, 50)))
    }

    fn answer_posts(&self, name: &str, cut: &Cut<Post>) -> Answer {
        let posts = cut.items.iter().map(|post| self.post(post)).collect();
        cut.answer(name, posts, Post::id)
    }

    fn answer_ids(cut: &Cut<Post>) -> Answer {
        let ids = cut.items.iter();
        let ids = ids.map(|post| json!(post.id().to_string())).collect();
        cut.answer("statuses", ids, Post::id)
    }

    /// The post that a call is about.
    fn asked_post(&self) -> Result<Post, Problem> {
        let id = self.heard.params.get("id").ok_or(Problem::Parameters)?;
        let id = ids::parse(id).ok_or(Problem::Parameters)?;
        self.visible(id).ok_or(Problem::NoSuchStatus)
    }

    fn visible(&self, id: u64) -> Option<Post> {
        let post = self.view.world.visible_post(id, self.view.now);
        post.filter(|post| self.is_status(post))
    }

    pub(super) fn status(&self) -> Result<Answer, Problem> {
        Ok(Answer::json(&self.post(&self.asked_post()?)))
    }

    /// Those that were deleted keep their number and a sentence; what never was is left out.
    pub(super) fn statuses_batch(&self) -> Result<Answer, Problem> {
        let world = self.view.world;
        let ids = self.batch("ids", STATUSES_PER_BATCH_MAX)?;
        let told: Vec<Value> = ids
            .into_iter()
            .filter_map(|id| match self.visible(id) {
                Some(post) => Some(self.post(&post)),
                None => world
                    .post_with_id(id)
                    .filter(|post| self.is_status(post) && post.draft.at_us <= self.view.now.at_us)
                    .map(|post| tombstone(&post)),
            })
            .collect();
        let (count, total) = (told.len() as u64, told.len());
        Ok(Answer {
            items: Some(count),
            ..Answer::json(&json!({ "statuses": told, "total_number": total }))
        })
    }

    pub(super) fn counts(&self) -> Result<Answer, Problem> {
        let ids = self.batch("ids", COUNTS_PER_BATCH_MAX)?.into_iter();
        let posts = ids.filter_map(|id| self.visible(id));
        let told: Vec<Value> = posts
            .map(|post| {
                let [reposts, comments, likes] = self.numbers(&post);
                json!({
                    "id": post.id().to_string(),
                    "comments": comments,
                    "reposts": reposts,
                    "attitudes": likes,
                })
            })
            .collect();
        Ok(Answer::json(&told))
    }

    /// How often a post was repeated, commented on and liked.
    fn numbers(&self, post: &Post) -> [usize; 3] {
        let (world, now) = (self.view.world, self.view.now);
        if post.is_repost() {
            return [0; 3];
        }
        [
            world.reposts(post, now).len(),
            world.all_below(post, now).len(),
            world.likes_at(post, now).len(),
        ]
    }

    fn cut_reposts(&self) -> Result<Cut<Post>, Problem> {
        let post = self.asked_post()?;
        // Whoever repeats a repost repeats what it repeats.
        let reposts = if post.is_repost() {
            Vec::new()
        } else {
            self.view.world.reposts(&post, self.view.now)
        };
        Ok(self.by_ids(reposts, 20, 200))
    }

    pub(super) fn reposts(&self) -> Result<Answer, Problem> {
        Ok(self.answer_posts("reposts", &self.cut_reposts()?))
    }

    pub(super) fn repost_ids(&self) -> Result<Answer, Problem> {
        Ok(Self::answer_ids(&self.cut_reposts()?))
    }

    pub(super) fn comments(&self) -> Result<Answer, Problem> {
        let post = self.asked_post()?;
        let mut comments = self.view.world.all_below(&post, self.view.now);
        comments.reverse();
        let cut = self.by_ids(comments, 50, 200);
        let status = self.post(&post);
        let told = cut.items.iter().map(|comment| {
            let mut told = self.comment(comment);
            told["status"] = status.clone();
            if let Some(answered) = self.answered_comment(comment) {
                told["reply_comment"] = self.comment(&answered);
            }
            told
        });
        let told = told.collect();
        Ok(cut.answer("comments", told, Post::id))
    }

    /// The comment that a comment answers, if it answers one that is there.
    fn answered_comment(&self, comment: &Post) -> Option<Post> {
        let parent = self.view.world.parent(comment, self.view.now)?;
        let parent = self.view.world.post_with_id(parent.id())?;
        (!self.is_status(&parent)).then_some(parent)
    }

    /// A comment by itself. Its `mid` is a number of its own.
    fn comment(&self, comment: &Post) -> Value {
        let id = comment.id();
        json!({
            "created_at": date(comment.draft.at_us),
            "id": id,
            "rootid": id,
            "floor_number": 0,
            "text": self.text(comment),
            "disable_reply": 0,
            "source_allowclick": 0,
            "source_type": 1,
            "source": PROGRAM,
            "user": self.account(comment.user()),
            "mid": format!("20{id}"),
            "idstr": id.to_string(),
        })
    }

    pub(super) fn likes(&self) -> Result<Answer, Problem> {
        let post = self.asked_post()?;
        let likes = if post.is_repost() {
            Vec::new()
        } else {
            self.view.world.likes_at(&post, self.view.now)
        };
        let cut = self.by_page(&likes, 50, 200);
        let told = cut.items.iter().map(|like| {
            json!({
                "id": like.id(),
                "idstr": like.id().to_string(),
                "created_at": date(like.at_us),
                "attitude": "heart",
                "attitude_type": 1,
                "last_attitude": "",
                "source_allowclick": 0,
                "source_type": 1,
                "source": PROGRAM,
                "user": self.account(like.user),
            })
        });
        let told = told.collect();
        Ok(cut.answer("attitudes", told, Like::id))
    }

    fn post(&self, post: &Post) -> Value {
        let mut value = self.post_without_author(post);
        value["user"] = self.account(post.user());
        value
    }

    pub(super) fn post_without_author(&self, post: &Post) -> Value {
        let id = post.id();
        let [reposts, comments, likes] = self.numbers(post);
        let text = self.text(post);
        let mut value = json!({
            "created_at": date(post.draft.at_us),
            "id": id,
            "idstr": id.to_string(),
            "mid": id.to_string(),
            "can_edit": false,
            "textLength": text.chars().count() * 2,
            "text": text,
            "source_allowclick": 0,
            "source_type": 1,
            "source": PROGRAM,
            "favorited": false,
            "truncated": false,
            "in_reply_to_status_id": "",
            "in_reply_to_user_id": "",
            "in_reply_to_screen_name": "",
            "geo": null,
            "is_paid": false,
            "mblog_vip_type": 0,
            "reposts_count": reposts,
            "comments_count": comments,
            "attitudes_count": likes,
            "pending_approval_count": 0,
            "isLongText": false,
            "mlevel": 0,
            "visible": { "type": 0, "list_id": 0 },
            "biz_feature": 0,
            "hasActionTypeCard": 0,
            "darwin_tags": [],
            "hot_weibo_tags": [],
            "text_tag_tips": [],
            "userType": 0,
            "more_info_type": 0,
            "positive_recom_flag": 0,
            "gif_ids": "",
            "is_show_bulletin": 2,
            "comment_manage_info": { "comment_permission_type": -1, "approval_comment_type": 0 },
        });
        self.add_pictures(post, &mut value);
        if let Some(edited_us) = self.view.world.edited_us(post, self.view.now.at_us) {
            value["edit_count"] = json!(1);
            value["edit_at"] = json!(date(edited_us));
        }
        if let Link::Repost(target) = post.link
            && let Some(original) = self.view.world.post_with_id(target.id())
        {
            value["retweeted_status"] = self.post(&original);
        }
        value
    }

    fn add_pictures(&self, post: &Post, value: &mut Value) {
        let media = self.view.world.content(post, self.view.now.at_us).media;
        let name = |size: &str, id: u64| format!("http://ww1.sinaimg.cn/{size}/{id:x}.jpg");
        let pictures: Vec<Value> = media
            .iter()
            .map(|picture| json!({ "thumbnail_pic": name("thumbnail", picture.id) }))
            .collect();
        value["pic_urls"] = json!(pictures);
        if let Some(first) = media.first() {
            value["thumbnail_pic"] = json!(name("thumbnail", first.id));
            value["bmiddle_pic"] = json!(name("bmiddle", first.id));
            value["original_pic"] = json!(name("large", first.id));
        }
    }

    /// Words, with a second number sign behind every topic.
    fn text(&self, post: &Post) -> String {
        if post.is_repost() {
            return "转发微博".to_owned();
        }
        let content = self.view.world.content(post, self.view.now.at_us);
        let text = plain_text(&content.html);
        let words = text.split_inclusive(char::is_whitespace);
        words
            .map(|word| {
                let bare = word.trim_end();
                let tag = bare.strip_prefix('#').unwrap_or_default();
                if content.tags.contains(&tag) {
                    format!("{bare}#{}", &word[bare.len()..])
                } else {
                    word.to_owned()
                }
            })
            .collect()
    }
}

fn tombstone(post: &Post) -> Value {
    let id = post.id();
    json!({
        "created_at": date(post.draft.at_us),
        "id": id,
        "mid": id.to_string(),
        "idstr": id.to_string(),
        "text": "抱歉，此微博已被删除。查看帮助：http://t.cn/Rfd3rQV",
        "deleted": "1",
        "geo": null,
        "reposts_count": 0,
        "comments_count": 0,
        "attitudes_count": 0,
    })
}
