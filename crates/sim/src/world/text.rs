//! What posts say, as the network's HTML, and what goes with it.

use super::World;
use super::dice::{Dice, Purpose};
use super::ids;
use super::posts::{Link, Post};
use super::vocabulary::{APPLICATIONS, MEDIA_TEXTS, SENTENCES, SPOILERS, TAGS};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Media {
    pub(crate) id: u64,
    pub(crate) is_video: bool,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) description: Option<&'static str>,
}

/// The words of a post and all that is taken from them.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) html: String,
    pub(crate) language: Option<&'static str>,
    pub(crate) spoiler_text: &'static str,
    pub(crate) is_sensitive: bool,
    pub(crate) visibility: &'static str,
    pub(crate) tags: Vec<&'static str>,
    /// Users, in the order of the text.
    pub(crate) mentions: Vec<u64>,
    pub(crate) media: Vec<Media>,
    pub(crate) application: Option<(&'static str, Option<&'static str>)>,
}

impl World {
    /// Whether a post is public or unlisted; a repost is as open as what it repeats.
    fn visibility(&self, post_id: u64) -> &'static str {
        let is_unlisted = Dice::new(self.seed, Purpose::Text, post_id, 1).chance(120);
        if is_unlisted { "unlisted" } else { "public" }
    }

    /// Whether everybody finds a post that is no repost, not only those who look at its author.
    pub(crate) fn is_public(&self, post: &Post) -> bool {
        self.visibility(post.id()) == "public"
    }

    pub(crate) fn content(&self, post: &Post, at_us: i64) -> Content {
        if let Link::Repost(target) = post.link {
            return repost_content(self.visibility(target.id()));
        }
        let (mentions, tags, mut dice) = self.mentions_and_tags(post);
        let (language, first) = dice.pick(SENTENCES);
        let mut html = String::from("<p>");
        for &user in &mentions {
            html.push_str(&mention_html(
                self.origin(user),
                &self.username(user, at_us),
            ));
            html.push(' ');
        }
        html.push_str(first);
        if dice.chance(300) {
            html.push_str("<br />");
            html.push_str(dice.pick(SENTENCES).1);
        }
        if dice.chance(150) {
            html.push_str("</p><p>");
            html.push_str(&link_html(dice.below(1 << 40)));
        }
        for tag in &tags {
            html.push(' ');
            html.push_str(&hashtag_html(self.origin(post.user()), tag));
        }
        if self.edited_us(post, at_us).is_some() {
            html.push_str("<br />(edited)");
        }
        html.push_str("</p>");
        let has_spoiler = dice.chance(40);
        let media = media(&mut dice, post.id());
        Content {
            html,
            language: (!dice.chance(30)).then_some(language),
            spoiler_text: if has_spoiler { dice.pick(SPOILERS) } else { "" },
            is_sensitive: has_spoiler || (!media.is_empty() && dice.chance(100)),
            visibility: self.visibility(post.id()),
            tags,
            mentions,
            media,
            application: dice.chance(900).then(|| dice.pick(APPLICATIONS)),
        }
    }

    /// Whom a post mentions, which tags it has, and the dice that go on with the rest of its text.
    pub(crate) fn mentions_and_tags(&self, post: &Post) -> (Vec<u64>, Vec<&'static str>, Dice) {
        let mut dice = Dice::new(self.seed, Purpose::Text, post.id(), 0);
        let mentions = self.mentions(post, &mut dice);
        let tags = tags(&mut dice);
        (mentions, tags, dice)
    }

    fn mentions(&self, post: &Post, dice: &mut Dice) -> Vec<u64> {
        let mut mentions = Vec::new();
        if let Link::Reply(target) = post.link {
            mentions.push(target.user);
        }
        if dice.chance(80) {
            let other = dice.below(self.users);
            if other != post.user() && !mentions.contains(&other) {
                mentions.push(other);
            }
        }
        mentions
    }
}

fn repost_content(visibility: &'static str) -> Content {
    Content {
        html: String::new(),
        language: None,
        spoiler_text: "",
        is_sensitive: false,
        visibility,
        tags: Vec::new(),
        mentions: Vec::new(),
        media: Vec::new(),
        application: None,
    }
}

fn tags(dice: &mut Dice) -> Vec<&'static str> {
    let mut tags: Vec<&'static str> = Vec::new();
    if dice.chance(350) {
        for _ in 0..=dice.below(3) {
            let tag = dice.pick_early(TAGS);
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    tags
}

fn media(dice: &mut Dice, post_id: u64) -> Vec<Media> {
    if !dice.chance(180) {
        return Vec::new();
    }
    (0..=dice.below(3))
        .map(|place| Media {
            id: ids::media_id(post_id, place),
            is_video: dice.chance(100),
            width: dice.pick(&[600, 1_200, 1_920]),
            height: dice.pick(&[400, 800, 1_080]),
            description: dice.pick(MEDIA_TEXTS),
        })
        .collect()
}

pub(crate) fn hashtag_html(origin: &str, tag: &str) -> String {
    format!(
        "<a href=\"{origin}/tags/{path}\" class=\"mention hashtag\" rel=\"tag\">#<span>{tag}\
         </span></a>",
        path = tag_path(tag)
    )
}

/// A tag as it stands in a URL.
pub(crate) fn tag_path(tag: &str) -> String {
    url::form_urlencoded::byte_serialize(tag.as_bytes()).collect()
}

fn mention_html(origin: &str, username: &str) -> String {
    format!(
        "<span class=\"h-card\" translate=\"no\"><a href=\"{origin}/@{username}\" \
         class=\"u-url mention\">@<span>{username}</span></a></span>"
    )
}

fn link_html(page: u64) -> String {
    format!(
        "<a href=\"https://news.example/{page:x}?a=1&amp;b=2\" target=\"_blank\" \
         rel=\"nofollow noopener\" translate=\"no\"><span class=\"invisible\">https://</span>\
         <span class=\"ellipsis\">news.example/{page:x}</span><span class=\"invisible\">?a=1&amp;b=2\
         </span></a>"
    )
}

#[cfg(test)]
mod tests {
    use super::super::moment::Moment;
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;

    #[test]
    fn a_reply_mentions_whom_it_answers() {
        let world = World::new(4, 1_000, AT_US).unwrap();
        let posts = (0..200).flat_map(|user| {
            world.timeline_down(user, Moment::undisturbed(AT_US), i64::MAX as u64)
        });
        let mut replies = 0;
        for post in posts {
            let content = world.content(&post, AT_US);
            if let Link::Reply(target) = post.link {
                replies += 1;
                assert_eq!(content.mentions.first(), Some(&target.user));
                assert!(content.html.contains(&world.username(target.user, AT_US)));
            }
            for tag in &content.tags {
                assert!(content.html.contains(&format!("#<span>{tag}</span>")));
            }
            assert_eq!(content.html.is_empty(), post.is_repost());
        }
        assert!(replies > 50, "{replies}");
    }
}
