//! World data to entities, as seen at one time by one viewer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use super::answer::Problem;
use super::entities::{
    Account, Application, Approval, MediaAttachment, Mention, Status, Tag, ViewerPart,
};
use crate::fediverse::Instance;
use crate::world::time::{DAY_US, iso_day, iso_ms};
use crate::world::{Draft, Link, Moment, Post, Standing, World, tag_path};

/// Accounts kept ready, about 1.5 kB each.
const CACHED_ACCOUNTS_MAX: usize = 16_384;

/// What [`Moment::version`] gives.
type Version = (i64, usize);

/// Written-out accounts of one moment: in a frozen world every list shows the same ones again,
/// and their counts cost as much as their lists.
#[derive(Debug, Default)]
pub(crate) struct AccountCache {
    inner: Mutex<(Version, HashMap<u64, Arc<RawValue>>)>,
}

impl AccountCache {
    pub(crate) fn get(&self, user: u64, version: Version) -> Option<Arc<RawValue>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.0 == version {
            inner.1.get(&user).cloned()
        } else {
            None
        }
    }

    pub(crate) fn put(&self, user: u64, version: Version, account: Arc<RawValue>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.0 != version || inner.1.len() >= CACHED_ACCOUNTS_MAX {
            inner.0 = version;
            inner.1.clear();
        }
        inner.1.insert(user, account);
    }
}

/// Who looks, at what, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renderer<'a> {
    pub(crate) world: &'a World,
    pub(crate) accounts: &'a AccountCache,
    pub(crate) now: Moment<'a>,
    pub(crate) is_signed_in: bool,
    /// Whose view it is; none where everybody is on one server.
    pub(crate) instance: Option<&'a Instance>,
}

impl Renderer<'_> {
    pub(crate) fn account(&self, user: u64) -> Result<Arc<RawValue>, Problem> {
        if let Some(account) = self.accounts.get(user, self.now.version()) {
            return Ok(account);
        }
        let written = serde_json::value::to_raw_value(&self.account_entity(user))
            .map_err(|_| Problem::Broken)?;
        let account: Arc<RawValue> = Arc::from(written);
        self.accounts
            .put(user, self.now.version(), Arc::clone(&account));
        Ok(account)
    }

    fn account_entity(&self, user: u64) -> Account {
        let account_id = self.account_id(user);
        let origin = self.world.origin(user);
        // Of people elsewhere one knows what one has last heard.
        let heard = self.heard(user);
        let username = self.world.username(user, self.now.at_us);
        let traits = self.world.traits(user);
        let wishes = self.world.wishes(user);
        let counts = self.world.counts(user, heard);
        let is_banned = self.world.standing(user, self.now) != Standing::Active;
        let profile = (!is_banned).then(|| self.world.profile(user, heard.at_us));
        let picture = |folder: &str| {
            if traits.has_avatar && !is_banned {
                format!("{origin}/system/accounts/{folder}/{account_id}/original/file.png")
            } else {
                format!("{origin}/{folder}/original/missing.png")
            }
        };
        let is_open = traits.discoverable == Some(true) && !is_banned;
        let (display_name, note, fields) = profile.map_or_else(Default::default, |profile| {
            let fields = profile.fields.into_iter().map(Into::into).collect();
            (profile.display_name, profile.note_html, fields)
        });
        Account {
            id: account_id.clone(),
            acct: self.acct(user),
            display_name,
            locked: traits.is_locked && !is_banned,
            bot: traits.is_bot && !is_banned,
            discoverable: if is_banned {
                Some(false)
            } else {
                traits.discoverable
            },
            indexable: wishes.is_indexable && !is_banned,
            group: false,
            created_at: iso_ms(traits.created_day * DAY_US),
            note,
            url: self.world.account_url(user, self.now.at_us),
            uri: self.world.account_uri(user),
            avatar: picture("avatars"),
            avatar_static: picture("avatars"),
            avatar_description: "",
            header: picture("headers"),
            header_static: picture("headers"),
            header_description: "",
            followers_count: counts.followers,
            following_count: counts.following,
            statuses_count: counts.statuses,
            last_status_at: counts.last_post_day.map(iso_day),
            hide_collections: wishes.hide_collections,
            show_media: true,
            show_media_replies: true,
            show_featured: true,
            moved: self
                .world
                .moved_to(user, self.now)
                .and_then(|other| self.account(other).ok()),
            suspended: is_banned.then_some(true),
            noindex: wishes.is_noindex,
            feature_approval: if is_open {
                Approval::OPEN
            } else {
                Approval::CLOSED
            },
            emojis: [],
            roles: [],
            fields,
            username,
        }
    }

    pub(crate) fn status(&self, post: &Post) -> Result<Status, Problem> {
        let reblog = match post.link {
            Link::Repost(target) => {
                let original = self
                    .world
                    .post_with_id(target.id())
                    .ok_or(Problem::Broken)?;
                Some(Box::new(self.status(&original)?))
            }
            Link::None | Link::Reply(_) => None,
        };
        let heard = self.heard(post.user());
        let content = self.world.content(post, heard.at_us);
        let counts = self.world.reaction_counts(post, heard);
        let parent = self.world.parent(post, self.now);
        let is_known = |target: &Draft| self.is_own(post.user()) || self.shows_draft(target);
        let answered_user = match post.link {
            Link::Reply(target) if is_known(&target) => Some(target.user),
            _ => None,
        };
        Ok(Status {
            id: self.item_id(post.id()),
            created_at: iso_ms(post.draft.at_us),
            in_reply_to_id: parent
                .filter(is_known)
                .map(|parent| self.item_id(parent.id())),
            // The account stays named when the post that was answered is gone.
            in_reply_to_account_id: answered_user.map(|user| self.account_id(user)),
            sensitive: content.is_sensitive,
            spoiler_text: content.spoiler_text,
            visibility: content.visibility,
            language: content.language,
            uri: self.world.status_uri(post),
            url: self.world.status_url(post, self.now.at_us),
            replies_count: counts.replies,
            reblogs_count: counts.reposts,
            favourites_count: counts.likes,
            quotes_count: 0,
            edited_at: self.world.edited_us(post, heard.at_us).map(iso_ms),
            viewer: self.is_signed_in.then(ViewerPart::default),
            content: content.html,
            reblog,
            application: content
                .application
                .map(|(name, website)| Application { name, website }),
            account: self.account(post.user())?,
            media_attachments: content
                .media
                .into_iter()
                .map(MediaAttachment::from)
                .collect(),
            mentions: content
                .mentions
                .iter()
                .filter(|&&user| self.is_own(post.user()) || self.knows(user))
                .map(|&user| self.mention(user))
                .collect(),
            tags: content.tags.iter().map(|&name| self.tag(name)).collect(),
            emojis: [],
            tagged_collections: [],
            quote: None,
            card: None,
            poll: None,
            quote_approval: Approval::OPEN,
        })
    }

    pub(crate) fn statuses(&self, posts: &[Post]) -> Result<Vec<Status>, Problem> {
        posts.iter().map(|post| self.status(post)).collect()
    }

    fn mention(&self, user: u64) -> Mention {
        let username = self.world.username(user, self.now.at_us);
        Mention {
            id: self.account_id(user),
            url: self.world.account_url(user, self.now.at_us),
            acct: self.acct(user),
            username,
        }
    }

    fn tag(&self, name: &'static str) -> Tag {
        Tag {
            name,
            url: format!("{}/tags/{}", self.origin(), tag_path(name)),
        }
    }
}
