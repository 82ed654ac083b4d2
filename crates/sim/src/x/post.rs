//! Posts, with the fields that were asked for, and what is attached to them.

use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::identity::post_id;
use crate::dialect::{View, plain_text};
use crate::world::time::{SECOND_US, iso_ms};
use crate::world::{Link, Media, Post};

/// The text of a repost is cut off after so many letters.
const REPOST_LETTERS_MAX: usize = 140;
const EDITABLE_US: i64 = 3_600 * SECOND_US;
/// What the world adds to the words of an edited post.
const EDIT_MARK: &str = "(edited)";

/// The words of a post, and who is named in them.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) text: String,
    /// Addresses behind the short ones in the text.
    addresses: Vec<(String, String)>,
    pub(super) mentions: Vec<u64>,
    pub(super) language: &'static str,
    is_sensitive: bool,
    pub(super) media: Vec<Media>,
}

impl View<'_> {
    pub(super) fn words(&self, post: &Post) -> Words {
        if let Link::Repost(target) = post.link {
            let original = Post {
                draft: target,
                link: Link::None,
            };
            let original = self.world.post_with_id(target.id()).unwrap_or(original);
            let repeated = self.words(&original);
            let author = self.world.username(target.user, self.now.at_us);
            let mut mentions = vec![target.user];
            mentions.extend(repeated.mentions);
            return Words {
                text: cut(&format!("RT @{author}: {}", repeated.text)),
                addresses: repeated.addresses,
                mentions,
                language: repeated.language,
                is_sensitive: false,
                media: Vec::new(),
            };
        }
        let content = self.world.content(post, self.now.at_us);
        let plain = plain_text(&content.html);
        let plain = plain.strip_suffix(EDIT_MARK).unwrap_or(&plain).trim_end();
        let (text, addresses) = shorten(plain);
        Words {
            text: escape(&text),
            addresses,
            mentions: content.mentions,
            language: content.language.unwrap_or("und"),
            is_sensitive: content.is_sensitive,
            media: content.media,
        }
    }

    pub(super) fn post_object(&self, ask: &Ask<'_>, post: &Post) -> Value {
        let words = self.words(post);
        let mut object = Map::new();
        for &field in &ask.tweet_fields {
            if let Some(value) = self.post_field(field, post, &words) {
                object.insert(field.to_owned(), value);
            }
        }
        Value::Object(object)
    }

    fn post_field(&self, field: &str, post: &Post, words: &Words) -> Option<Value> {
        let id = post_id(&post.draft).to_string();
        Some(match field {
            "id" => json!(id),
            "text" => json!(words.text),
            "author_id" => json!(self.account_id(post.user())),
            // Whole seconds, as on the real network; the id tells the milliseconds.
            "created_at" => json!(iso_ms(post.draft.at_us.div_euclid(SECOND_US) * SECOND_US)),
            "edit_history_tweet_ids" => json!([id]),
            "edit_controls" => json!({
                "edits_remaining": 5,
                "is_edit_eligible": matches!(post.link, Link::None),
                "editable_until": iso_ms(post.draft.at_us + EDITABLE_US),
            }),
            "conversation_id" => {
                json!(post_id(&self.first_of_conversation(post)).to_string())
            }
            "in_reply_to_user_id" => match post.link {
                Link::Reply(target) => json!(self.account_id(target.user)),
                Link::None | Link::Repost(_) => return None,
            },
            "referenced_tweets" => {
                let (kind, target) = match post.link {
                    Link::Reply(target) => ("replied_to", target),
                    Link::Repost(target) => ("retweeted", target),
                    Link::None => return None,
                };
                json!([{ "type": kind, "id": post_id(&target).to_string() }])
            }
            "lang" => json!(words.language),
            "possibly_sensitive" => json!(words.is_sensitive),
            "paid_partnership" => json!(false),
            "reply_settings" => json!("everyone"),
            "display_text_range" => json!([0, words.text.chars().count()]),
            "public_metrics" => self.post_metrics(post),
            "entities" => return self.entities(words),
            "attachments" if !words.media.is_empty() => {
                let keys: Vec<String> = words.media.iter().map(media_key).collect();
                json!({ "media_keys": keys })
            }
            _ => return None,
        })
    }

    /// A repost has the number of reposts of what it repeats, and nothing else of it.
    fn post_metrics(&self, post: &Post) -> Value {
        let own = self.world.reaction_counts(post, self.now);
        let reposts = match post.link {
            Link::Repost(target) => {
                let original = self.world.post_with_id(target.id());
                original.map_or(0, |original| {
                    self.world.reaction_counts(&original, self.now).reposts
                })
            }
            Link::None | Link::Reply(_) => own.reposts,
        };
        json!({
            "retweet_count": reposts,
            "reply_count": own.replies,
            "like_count": own.likes,
            "quote_count": 0,
            "bookmark_count": 0,
            "impression_count": 40 * own.likes + 25 * own.replies + 60 * own.reposts,
        })
    }

    fn entities(&self, words: &Words) -> Option<Value> {
        let mut entities = Map::new();
        let mut put = |name: &str, list: Vec<Value>| {
            if !list.is_empty() {
                entities.insert(name.to_owned(), json!(list));
            }
        };
        put("hashtags", hashtags(&words.text));
        let mut mentions = Vec::new();
        for &user in &words.mentions {
            let username = self.world.username(user, self.now.at_us);
            if let Some((start, end)) = place(&words.text, &format!("@{username}")) {
                let id = self.account_id(user);
                mentions
                    .push(json!({ "start": start, "end": end, "username": username, "id": id }));
            }
        }
        put("mentions", mentions);
        let mut urls = Vec::new();
        for (short, expanded) in &words.addresses {
            if let Some((start, end)) = place(&words.text, short) {
                let display = expanded.trim_start_matches("https://");
                urls.push(json!({
                    "start": start, "end": end, "url": short,
                    "expanded_url": expanded, "display_url": display,
                }));
            }
        }
        put("urls", urls);
        (!entities.is_empty()).then_some(Value::Object(entities))
    }
}

pub(super) fn media_key(media: &Media) -> String {
    let kind = if media.is_video { 7 } else { 3 };
    format!("{kind}_{}", media.id)
}

pub(super) fn media_object(ask: &Ask<'_>, media: &Media) -> Value {
    let mut whole = Map::new();
    let mut put = |name: &str, value: Value| {
        if ask.media_fields.contains(name) {
            whole.insert(name.to_owned(), value);
        }
    };
    put("media_key", json!(media_key(media)));
    let address = format!("https://pbs.twimg.example/media/{}.jpg", media.id);
    put(
        "type",
        json!(if media.is_video { "video" } else { "photo" }),
    );
    put("width", json!(media.width));
    put("height", json!(media.height));
    if let Some(text) = media.description {
        put("alt_text", json!(text));
    }
    if media.is_video {
        put("preview_image_url", json!(address));
        put("duration_ms", json!(media.width * 10));
        put("public_metrics", json!({ "view_count": media.id % 1_000 }));
        let variant = json!({
            "bit_rate": 832_000, "content_type": "video/mp4",
            "url": format!("https://video.twimg.example/{}.mp4", media.id),
        });
        put("variants", json!([variant]));
    } else {
        put("url", json!(address));
    }
    Value::Object(whole)
}

/// The three signs that the network never sends as they are.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Tags in a text, with their places in letters.
pub(super) fn hashtags(text: &str) -> Vec<Value> {
    let letters: Vec<char> = text.chars().collect();
    let mut tags = Vec::new();
    for (start, letter) in letters.iter().enumerate() {
        if *letter != '#' {
            continue;
        }
        let rest = letters[start + 1..].iter();
        let tag: String = rest
            .take_while(|letter| letter.is_alphanumeric() || **letter == '_')
            .collect();
        if tag.chars().any(char::is_alphabetic) {
            let end = start + 1 + tag.chars().count();
            tags.push(json!({ "start": start, "end": end, "tag": tag }));
        }
    }
    tags
}

/// Where some words stand in a text, in letters, if nothing goes on behind them.
fn place(text: &str, words: &str) -> Option<(usize, usize)> {
    let (before, behind) = text.split_once(words)?;
    let goes_on = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '…';
    if behind.starts_with(goes_on) {
        return None;
    }
    let start = before.chars().count();
    Some((start, start + words.chars().count()))
}

/// A text with its addresses shortened, and which stands for which.
fn shorten(text: &str) -> (String, Vec<(String, String)>) {
    let mut short_text = String::with_capacity(text.len());
    let mut addresses = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find("https://") {
        let length = rest[begin..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - begin);
        let long = &rest[begin..begin + length];
        let mark = long
            .bytes()
            .fold(7_u64, |mark, byte| mark * 31 % (1 << 40) + u64::from(byte));
        let short = format!("https://t.co/{mark:010x}");
        short_text.push_str(&rest[..begin]);
        short_text.push_str(&short);
        addresses.push((short, long.to_owned()));
        rest = &rest[begin + length..];
    }
    short_text.push_str(rest);
    (short_text, addresses)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= REPOST_LETTERS_MAX {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(REPOST_LETTERS_MAX - 1).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_addresses_have_their_places_in_letters() {
        let (text, addresses) = shorten("é https://news.example/1f?a=1&b=2 #birds, a#1 #2");
        assert!(text.starts_with("é https://t.co/"), "{text}");
        assert_eq!(addresses[0].1, "https://news.example/1f?a=1&b=2");
        let tags = hashtags(&text);
        assert_eq!(tags.len(), 1, "{tags:?}");
        assert_eq!(tags[0]["tag"], "birds");
        assert_eq!(tags[0]["start"], 26);
        assert_eq!(place(&text, &addresses[0].0), Some((2, 25)));
        assert_eq!(place("@ann_b", "@ann"), None);
        assert_eq!(escape("a & <b>"), "a &amp; &lt;b&gt;");
        assert_eq!(cut(&"é".repeat(200)).chars().count(), 140);
    }
}
