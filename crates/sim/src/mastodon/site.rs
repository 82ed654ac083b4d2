//! Where the viewer stands: on the one server that everybody is on, or on one instance of many.

use super::answer::Problem;
use super::lists::{ACCOUNTS_PER_PAGE, Asking};
use super::paging::{Bounds, LinkBase};
use super::render::Renderer;
use super::route::Route;
use crate::answer::Answer;
use crate::fediverse::{Instance, Reception, Software};
use crate::params::Params;
use crate::world::{Draft, Link, Moment, Post};

impl<'a> Renderer<'a> {
    /// The number of the instance whose view this is.
    pub(crate) fn home(&self) -> usize {
        self.instance.map_or(0, |instance| instance.number)
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> &'a str {
        self.world.origin_of_home(self.home())
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &'a str {
        let origin = self.origin();
        origin.split_once("://").map_or(origin, |(_, host)| host)
    }

    pub(crate) fn is_own(&self, user: u64) -> bool {
        self.instance.is_none() || self.world.home(user) == self.home()
    }

    /// Whether a user is found here by name.
    pub(crate) fn knows(&self, user: u64) -> bool {
        self.instance
            .is_none_or(|instance| instance.knows(self.world, user, self.now))
    }

    /// Whether something between two people is shown here: of strangers an instance knows only what
    /// they have to do with its own people.
    pub(super) fn is_involved(&self, one: u64, other: u64) -> bool {
        self.is_own(one) || self.is_own(other)
    }

    pub(super) fn hides_lists(&self, user: u64) -> bool {
        self.world.hides_lists(user)
            || self
                .instance
                .is_some_and(|instance| instance.software.hides_lists(self.world, user))
    }

    /// What is known of a user's posts here.
    pub(super) fn reception(&self, user: u64) -> Reception {
        self.instance.map_or(Reception::ALL, |instance| {
            instance.reception(self.world, user, self.now)
        })
    }

    /// Whether a post is here, if its author's posts are received like that. A repost is only where
    /// the post that it repeats is, unless it is of one's own people.
    pub(super) fn is_received(&self, post: &Post, reception: Reception) -> bool {
        let Some(instance) = self.instance else {
            return true;
        };
        if self.is_own(post.user()) {
            return true;
        }
        instance.takes(self.world, &post.draft, reception)
            && match post.link {
                Link::Repost(target) => self.shows_draft(&target),
                Link::None | Link::Reply(_) => true,
            }
    }

    pub(super) fn shows(&self, post: &Post) -> bool {
        self.is_own(post.user()) || self.is_received(post, self.reception(post.user()))
    }

    /// The same for a post that is no repost.
    pub(super) fn shows_draft(&self, draft: &Draft) -> bool {
        self.is_own(draft.user)
            || self.instance.is_none_or(|instance| {
                instance.takes(self.world, draft, self.reception(draft.user))
            })
    }

    /// The moment as of which something is known of a user.
    pub(super) fn heard(&self, user: u64) -> Moment<'a> {
        match self.instance {
            Some(instance) if !self.is_own(user) => {
                self.now.earlier(instance.hearsay_us(self.world, user))
            }
            _ => self.now,
        }
    }

    pub(crate) fn account_id(&self, user: u64) -> String {
        self.world.local_account_id(self.home(), user)
    }

    pub(crate) fn user_with_id(&self, id: &str) -> Option<u64> {
        self.world.user_with_local_id(self.home(), id)
    }

    /// The id of a post here.
    pub(super) fn item_id(&self, id: u64) -> String {
        self.world.local_item_id(self.home(), id)
    }

    /// Whether this server shows deleted accounts as suspended ones.
    pub(super) fn names_the_deleted(&self) -> bool {
        self.instance
            .is_some_and(|instance| instance.software == Software::GoToSocial)
    }

    /// The handle as it is written here.
    pub(super) fn acct(&self, user: u64) -> String {
        let username = self.world.username(user, self.now.at_us);
        if self.is_own(user) {
            return username;
        }
        format!("{username}@{}", self.world.host(user))
    }

    /// Somebody who is known here, by a handle with or without a host.
    pub(crate) fn user_by_handle(&self, handle: &str) -> Option<u64> {
        let (name, host) = parts_of(handle);
        let user = self.world.user_named(name, self.now.at_us)?;
        let is_meant = match host {
            Some(host) => host.eq_ignore_ascii_case(self.world.host(user)),
            None => self.is_own(user) || self.is_lying(),
        };
        (is_meant && (self.knows(user) || self.is_lying())).then_some(user)
    }

    /// The name in a handle of this host; none in a handle of another.
    pub(super) fn local_name<'b>(&self, handle: &'b str) -> Option<&'b str> {
        let (name, host) = parts_of(handle);
        host.is_none_or(|host| host.eq_ignore_ascii_case(self.host()))
            .then_some(name)
    }

    fn is_lying(&self) -> bool {
        self.instance.is_some_and(Instance::is_lying)
    }

    /// Which page is asked for, with the bounds of this server.
    pub(super) fn bounds(&self, params: &Params, limit_default: usize) -> Bounds {
        let limit_default = match self.instance {
            Some(instance) if limit_default == ACCOUNTS_PER_PAGE => {
                instance.software.accounts_per_page()
            }
            _ => limit_default,
        };
        let read_id = |text: &str| self.world.local_bound(self.home(), text);
        Bounds::read(params, limit_default, read_id)
    }

    /// From how many items on a page says that there is a next one.
    pub(super) fn next_from_count(&self, bounds: Bounds) -> usize {
        match self.instance {
            Some(instance) if instance.software.ends_with_empty_page() => 1,
            _ => bounds.limit,
        }
    }

    /// What the links to other pages are made from, the newer one with a parameter of that name.
    pub(super) fn links(&self, asking: Asking<'a>, newer_name: &'static str) -> LinkBase<'a> {
        LinkBase {
            url: asking.url,
            params: asking.params,
            newer_name,
            world: self.world,
            home: self.home(),
        }
    }

    /// The answer to what this server's software does not have or does not tell everybody.
    pub(super) fn refused(&self, route: &Route) -> Option<Answer> {
        let software = self.instance?.software;
        if !software.has(route) {
            return Some(software.no_such_route());
        }
        (!self.is_signed_in && software.needs_token(route)).then(|| Problem::NoToken.into())
    }
}

/// The name in a handle, and its host if it has one.
fn parts_of(handle: &str) -> (&str, Option<&str>) {
    let handle = handle.strip_prefix('@').unwrap_or(handle);
    match handle.split_once('@') {
        Some((name, host)) => (name, Some(host)),
        None => (handle, None),
    }
}
