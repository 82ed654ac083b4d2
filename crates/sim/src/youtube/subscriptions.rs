//! Whom a channel subscribes to, in the order of their titles.

use serde_json::{Map, Value, json};

use super::ids::{ChannelId, letters};
use super::listing::{End, Listed, OF_RESOURCES, Page, listed, resource};
use super::refusal::Refused;
use super::{Call, Parts};
use crate::dialect::{View, plain_text};
use crate::faults::Walked;
use crate::params::Params;
use crate::spoil::{OVERLAP, Spoil};
use crate::world::Follow;
use crate::world::time::iso_s;

const PARTS: [&str; 3] = ["snippet", "contentDetails", "subscriberSnippet"];

/// A subscription with its place in the order.
#[derive(Debug, Clone)]
struct Subscription {
    follow: Follow,
    key: (String, u64),
}

impl View<'_> {
    pub(super) fn subscriptions(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&PARTS)?;
        let list = self.subscribed(call.params)?;
        let page = self.subscriptions_page(call, &list, self.spoil)?;
        let page = page.map(|subscription| self.subscription(&subscription.follow, call));
        Ok(listed("subscription", page, list.len()))
    }

    fn subscribed(&self, params: &Params) -> Result<Vec<Subscription>, Refused> {
        let Some(id) = params.get("channelId") else {
            return Err(Refused::NoFilter(
                "channelId, id, mine, myRecentSubscribers, mySubscribers",
            ));
        };
        let user = self.present(id, Refused::SubscriberNotFound)?;
        if self.world.hides_lists(user) {
            return Err(Refused::SubscriptionsForbidden);
        }
        let follows = self.world.following_at(user, self.now).into_iter();
        let mut list: Vec<Subscription> = follows
            .map(|follow| Subscription {
                follow,
                key: self.order_of(follow.target),
            })
            .collect();
        list.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(list)
    }

    fn order_of(&self, user: u64) -> (String, u64) {
        let title = self.channel_title(user).to_lowercase();
        (title, self.world.account_id(user))
    }

    fn subscriptions_page(
        &self,
        call: Call<'_>,
        list: &[Subscription],
        spoil: Option<Spoil>,
    ) -> Result<Page<Subscription>, Refused> {
        let after = call.after()?.and_then(|id| self.world.user_with_id(id));
        let after = after.map(|user| self.order_of(user));
        call.page(
            list,
            OF_RESOURCES,
            End::Known,
            spoil,
            |subscription| self.world.account_id(subscription.follow.target),
            |subscription, _| {
                after
                    .as_ref()
                    .is_some_and(|after| subscription.key <= *after)
            },
        )
    }

    pub(super) fn subscriptions_walked(&self, params: &Params) -> Option<Walked> {
        let call = Call {
            params,
            parts: Parts(""),
        };
        let list = self.subscribed(params).ok()?;
        let page = self.subscriptions_page(call, &list, None).ok()?.items;
        let start = list.partition_point(|subscription| {
            page.first()
                .is_none_or(|first| subscription.key < first.key)
        });
        let before = &list[start.saturating_sub(OVERLAP)..start];
        let follows = |part: &[Subscription]| part.iter().map(|one| one.follow).collect();
        Some(Walked::Follows {
            before: follows(before),
            page: follows(&page),
        })
    }

    fn subscription(&self, follow: &Follow, call: Call<'_>) -> Value {
        let note = self.world.profile(follow.target, self.now.at_us).note_html;
        let mut parts = Map::new();
        if call.parts.has("snippet") {
            let snippet = json!({
                "publishedAt": iso_s(follow.begun_us()),
                "title": self.channel_title(follow.target),
                "description": plain_text(&note),
                "resourceId": {
                    "kind": "youtube#channel",
                    "channelId": ChannelId::of(self.world, follow.target),
                },
                "channelId": ChannelId::of(self.world, follow.source),
                "thumbnails": self.avatar(follow.target),
            });
            parts.insert("snippet".to_owned(), snippet);
        }
        if call.parts.has("contentDetails") {
            let details = json!({
                "totalItemCount": self.videos_of(follow.target).len(),
                "newItemCount": 0,
                "activityType": "all",
            });
            parts.insert("contentDetails".to_owned(), details);
        }
        resource("subscription", json!(letters(follow.id)), parts)
    }
}
