//! Comments: what answers a video, in threads of two levels.

use serde_json::{Map, Value, json};

use super::Call;
use super::ids::{ChannelId, CommentId, VideoId};
use super::listing::{End, Listed, OF_COMMENTS, Page, listed, resource};
use super::refusal::Refused;
use super::videos::WHOLE_THREAD;
use crate::dialect::{View, plain_text};
use crate::world::time::iso_s;
use crate::world::{Link, Post};

const THREAD_PARTS: [&str; 2] = ["snippet", "replies"];
const COMMENT_PARTS: [&str; 1] = ["snippet"];
/// So many answers come with a thread.
const REPLIES_INLINE: usize = 5;

/// A comment and where it stands.
#[derive(Debug, Clone, Copy)]
struct Comment {
    post: Post,
    /// What begins the thread; the comment itself, perhaps.
    thread: Post,
    video: Post,
}

impl Comment {
    fn id(&self) -> String {
        if self.post.id() == self.thread.id() {
            CommentId::of_thread(self.thread.id())
        } else {
            CommentId::of_reply(self.thread.id(), self.post.id())
        }
    }
}

fn newest_first(posts: &mut [Post]) {
    posts.sort_unstable_by_key(|post| std::cmp::Reverse(post.id()));
}

impl View<'_> {
    /// The latest thread first.
    pub(super) fn threads(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&THREAD_PARTS)?;
        let mut threads: Vec<Post> = if let Some(id) = call.params.get("videoId") {
            let video = self.video_with_id(id).ok_or(Refused::VideoNotFound)?;
            if !self.has_comments(&video) {
                return Err(Refused::CommentsDisabled);
            }
            self.world.replies(&video, self.now)
        } else if let Some(id) = call.params.get("allThreadsRelatedToChannelId") {
            let user = ChannelId::user(self.world, id);
            let user = user.filter(|&user| self.world.is_active(user, self.now));
            let videos = self.videos_of(user.ok_or(Refused::ChannelNotFound)?);
            let open = videos.iter().filter(|video| self.has_comments(video));
            open.flat_map(|video| self.world.replies(video, self.now))
                .collect()
        } else if let Some(ids) = call.ids()? {
            let found = ids.into_iter().filter_map(|id| self.comment_with_id(id));
            let threads: Vec<Post> = found.map(|comment| comment.thread).collect();
            let total = threads.len();
            let items = threads.iter().filter_map(|post| self.thread(post, call));
            return Ok(listed("commentThread", Page::whole(items.collect()), total));
        } else {
            return Err(Refused::NoFilter(
                "allThreadsRelatedToChannelId, id, videoId",
            ));
        };
        if let Some(words) = call.params.get("searchTerms") {
            let words = words.to_lowercase();
            threads.retain(|post| self.said(post).to_lowercase().contains(&words));
        }
        newest_first(&mut threads);
        let page = call.page(
            &threads,
            OF_COMMENTS,
            End::FoundOut,
            self.spoil,
            Post::id,
            |post, after| post.id() >= after,
        )?;
        let page = page.map(|post| self.thread(&post, call).unwrap_or_default());
        let total = page.items.len();
        Ok(listed("commentThread", page, total))
    }

    pub(super) fn comments(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&COMMENT_PARTS)?;
        if let Some(ids) = call.ids()? {
            let found = ids.into_iter().filter_map(|id| self.comment_with_id(id));
            let items: Vec<Value> = found
                .map(|comment| self.comment(&comment, call, false))
                .collect();
            let total = items.len();
            return Ok(listed("comment", Page::whole(items), total));
        }
        let Some(id) = call.params.get("parentId") else {
            return Err(Refused::NoFilter("id, parentId"));
        };
        let parent = self.comment_with_id(id).ok_or(Refused::CommentNotFound)?;
        let replies = if parent.post.id() == parent.thread.id() {
            self.below(&parent.thread)
        } else {
            Vec::new()
        };
        let page = call.page(
            &replies,
            OF_COMMENTS,
            End::FoundOut,
            self.spoil,
            Post::id,
            |post, after| post.id() >= after,
        )?;
        let page = page.map(|post| self.comment(&Comment { post, ..parent }, call, false));
        let total = page.items.len();
        Ok(listed("comment", page, total))
    }

    /// Everything below the first comment of a thread, newest first.
    fn below(&self, thread: &Post) -> Vec<Post> {
        let mut replies = self.world.descendants(thread, self.now, WHOLE_THREAD);
        newest_first(&mut replies);
        replies
    }

    /// A comment goes with the video and with every comment that it answers.
    fn placed(&self, post: &Post) -> Option<Comment> {
        let above = self.world.ancestors(post, self.now, usize::MAX);
        let video = *above.first()?;
        if !Self::is_video(&video) || !self.has_comments(&video) {
            return None;
        }
        Some(Comment {
            post: *post,
            thread: above.get(1).copied().unwrap_or(*post),
            video,
        })
    }

    fn comment_with_id(&self, id: &str) -> Option<Comment> {
        let (post_id, thread_id) = CommentId::post(id)?;
        let post = self.world.visible_post(post_id, self.now)?;
        let is_reply = matches!(post.link, Link::Reply(_));
        let comment = is_reply.then(|| self.placed(&post)).flatten()?;
        let is_in_place = comment.thread.id() == thread_id.unwrap_or(post_id);
        is_in_place.then_some(comment)
    }

    fn said(&self, post: &Post) -> String {
        plain_text(&self.world.content(post, self.now.at_us).html)
    }

    fn thread(&self, post: &Post, call: Call<'_>) -> Option<Value> {
        let first = self.placed(post)?;
        let replies = self.below(post);
        let mut parts = Map::new();
        if call.parts.has("snippet") {
            let snippet = json!({
                "channelId": ChannelId::of(self.world, first.video.user()),
                "videoId": VideoId::of(first.video.id()),
                "topLevelComment": self.comment(&first, call, true),
                "canReply": true,
                "totalReplyCount": replies.len(),
                "isPublic": true,
            });
            parts.insert("snippet".to_owned(), snippet);
        }
        if call.parts.has("replies") && !replies.is_empty() {
            let inline = replies.iter().take(REPLIES_INLINE);
            let inline: Vec<Value> = inline
                .map(|reply| {
                    self.comment(
                        &Comment {
                            post: *reply,
                            ..first
                        },
                        call,
                        true,
                    )
                })
                .collect();
            parts.insert("replies".to_owned(), json!({ "comments": inline }));
        }
        Some(resource("commentThread", json!(first.id()), parts))
    }

    /// Which video it is about is told in threads only.
    fn comment(&self, comment: &Comment, call: Call<'_>, is_in_thread: bool) -> Value {
        let post = &comment.post;
        let text = self.said(post);
        let author = ChannelId::of(self.world, post.user());
        let edited_us = self.world.edited_us(post, self.now.at_us);
        let is_plain = call.params.get("textFormat") == Some("plainText");
        let mut snippet = json!({
            "channelId": ChannelId::of(self.world, comment.video.user()),
            "textDisplay": if is_plain { text.clone() } else { marked_up(&text) },
            "textOriginal": text,
            "authorDisplayName": format!("@{}", self.world.username(post.user(), self.now.at_us)),
            "authorProfileImageUrl": format!("https://yt3.sim.example/{author}=s48"),
            "authorChannelUrl": format!("http://www.youtube.com/channel/{author}"),
            "authorChannelId": { "value": author },
            "canRate": true,
            "viewerRating": "none",
            "likeCount": self.world.likes_at(post, self.now).len(),
            "publishedAt": iso_s(post.draft.at_us),
            "updatedAt": iso_s(edited_us.unwrap_or(post.draft.at_us)),
        });
        if is_in_thread {
            snippet["videoId"] = json!(VideoId::of(comment.video.id()));
        }
        if post.id() != comment.thread.id() {
            snippet["parentId"] = json!(CommentId::of_thread(comment.thread.id()));
        }
        let mut parts = Map::new();
        parts.insert("snippet".to_owned(), snippet);
        resource("comment", json!(comment.id()), parts)
    }
}

/// Text as it stands on a page.
pub(super) fn marked_up(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\'', "&#39;").replace('\n', "<br>")
}
