//! What an instance says about itself, and how it is found out who has a handle.

use serde_json::{Value, json};

use super::{Instance, Lie};
use crate::answer::Answer;
use crate::mastodon::{Problem, Renderer, Route};
use crate::world::Standing;

const JRD: &str = "application/jrd+json; charset=utf-8";
const PROFILE_PAGE: &str = "http://webfinger.net/rel/profile-page";
const NODEINFO_SCHEMA: &str = "http://nodeinfo.diaspora.software/ns/schema/2.0";

impl Instance {
    pub(crate) fn about_itself(
        &self,
        renderer: &Renderer<'_>,
        route: &Route,
    ) -> Result<Answer, Problem> {
        match route {
            Route::WebFinger { resource } => self.web_finger(renderer, resource),
            Route::NodeInfoLinks => Ok(Answer::json(&json!({ "links": [{
                "rel": NODEINFO_SCHEMA,
                "href": format!("{}{}", renderer.origin(), self.software.nodeinfo_path()),
            }] }))),
            Route::NodeInfo { .. } => Ok(Answer::json(&self.node_info(renderer))),
            Route::Peers => Ok(Answer::json(&self.peers())),
            _ => Err(Problem::NoSuchRoute),
        }
    }

    fn node_info(&self, renderer: &Renderer<'_>) -> Value {
        let people = renderer.world.people_of(self.number);
        json!({
            "version": "2.0",
            "software": { "name": self.software.name(), "version": self.software.own_version() },
            "protocols": ["activitypub"],
            "services": { "outbound": [], "inbound": [] },
            "usage": { "users": { "total": people, "activeMonth": people }, "localPosts": people },
            "openRegistrations": false,
            "metadata": {},
        })
    }

    /// Whoever has people from everywhere has heard of every host, of those that are out of order,
    /// too.
    fn peers(&self) -> Vec<String> {
        let others = self.hosts.iter().filter(|host| *host != self.host());
        let mut peers: Vec<String> = others.cloned().collect();
        if self.is_lying() {
            peers.extend(self.private_hosts());
        }
        peers
    }

    fn web_finger(&self, renderer: &Renderer<'_>, resource: &str) -> Result<Answer, Problem> {
        if resource.is_empty() {
            return Err(Problem::NoResource);
        }
        let named = self.named_by(renderer, resource);
        let (user, subject) = named.ok_or(Problem::NoSuchRecord)?;
        let world = renderer.world;
        if world.standing(user, renderer.now) == Standing::Gone {
            return Err(Problem::Gone);
        }
        let profile = world.account_url(user, renderer.now.at_us);
        let uri = self
            .false_link(renderer, user)
            .unwrap_or_else(|| world.account_uri(user));
        let mut answer = Answer::json(&json!({
            "subject": subject,
            "aliases": [profile, uri],
            "links": [
                { "rel": PROFILE_PAGE, "type": "text/html", "href": profile },
                { "rel": "self", "type": "application/activity+json", "href": uri },
            ],
        }));
        answer.content_type = JRD;
        Ok(answer)
    }

    /// Whom a resource names, and who that is said to be.
    fn named_by(&self, renderer: &Renderer<'_>, resource: &str) -> Option<(u64, String)> {
        let world = renderer.world;
        let Some(handle) = resource.strip_prefix("acct:") else {
            let name = resource
                .strip_prefix(renderer.origin())?
                .rsplit('/')
                .next()?;
            let name = name.strip_prefix('@').unwrap_or(name);
            let user = renderer
                .user_with_id(name)
                .or_else(|| renderer.user_by_handle(name))
                .filter(|&user| self.is_own(world, user))?;
            let username = world.username(user, renderer.now.at_us);
            return Some((user, format!("acct:{username}@{}", self.host())));
        };
        let (name, host) = handle.split_once('@')?;
        if !host.eq_ignore_ascii_case(self.host()) {
            return None;
        }
        let subject = |name: &str| format!("acct:{name}@{}", self.host());
        if let Some(name) = name.strip_prefix("again_") {
            let user = renderer.user_by_handle(name)?;
            let is_looping = self.lie_of(world, user) == Some(Lie::HandleLoop);
            return is_looping.then(|| (user, subject(name)));
        }
        let user = renderer.user_by_handle(name)?;
        let username = world.username(user, renderer.now.at_us);
        if self.lie_of(world, user) == Some(Lie::HandleLoop) {
            return Some((user, subject(&format!("again_{username}"))));
        }
        Some((user, subject(&username)))
    }
}
