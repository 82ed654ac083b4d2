//! What a lying instance says.
//!
//! Of others' people it claims to be the home, and what it says about them is made up; the word
//! `forged` is in all of it, so that a crawler that believed it can be found out. Each of its own
//! people comes with one of the other lies.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Instance;
use super::dress::{each_object, entities, is_account, is_status};
use crate::answer::Answer;
use crate::mastodon::{Renderer, Route};
use crate::world::World;
use crate::world::dice::{Dice, Purpose};

const BIO_BYTES: usize = 1 << 20;
const FORGED_COUNT: u64 = 987_654_321;
const FORGED: &str = "forged";
const VICTIM_TRIES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lie {
    /// A bio of a megabyte, on the account itself.
    MegabyteBio,
    /// The account's `uri` and `url` are those of somebody with another home.
    Impostor,
    /// The next page of every list is at a private address.
    PrivateNextPage,
    /// Every list redirects to a private address.
    PrivateRedirect,
    /// The handle stands for another, which stands for the first.
    HandleLoop,
    /// The handle leads to a private address.
    PrivateHandle,
}

const LIES: [Lie; 6] = [
    Lie::MegabyteBio,
    Lie::Impostor,
    Lie::PrivateNextPage,
    Lie::PrivateRedirect,
    Lie::HandleLoop,
    Lie::PrivateHandle,
];

impl Instance {
    /// The lie that comes with somebody; none if the instance does not lie or is not their home.
    pub(crate) fn lie_of(&self, world: &World, user: u64) -> Option<Lie> {
        let dice = || Dice::new(world.seed(), Purpose::Lie, user, 0).pick(&LIES);
        (self.is_lying() && self.is_own(world, user)).then(dice)
    }

    /// An answer with all that is untrue in it.
    pub(super) fn twisted(
        &self,
        renderer: &Renderer<'_>,
        route: &Route,
        mut answer: Answer,
    ) -> Answer {
        let is_list = matches!(
            route,
            Route::Following { .. } | Route::Followers { .. } | Route::Timeline { .. }
        );
        let subject = renderer.user_with_id(&route.subject());
        let lie = subject.and_then(|user| self.lie_of(renderer.world, user));
        if is_list && answer.status == 200 {
            let place = subject.map_or_else(String::new, |user| self.private_place(renderer, user));
            match lie {
                Some(Lie::PrivateRedirect) => return Answer::redirect(place),
                Some(Lie::PrivateNextPage) => {
                    let link = format!("<{place}?max_id=1>; rel=\"next\"");
                    answer.headers.retain(|(name, _)| name != "link");
                    answer.headers.push(("link".into(), link));
                }
                _ => {}
            }
        }
        let is_single = matches!(route, Route::Account { .. } | Route::Lookup { .. });
        let Some(mut body) = entities(&answer) else {
            return answer;
        };
        each_object(&mut body, &mut |object| {
            if is_account(object) {
                self.twist_account(renderer, object, is_single);
            } else if is_status(object) {
                twist_status(object);
            }
        });
        answer.body = body.to_string().into_bytes();
        answer
    }

    fn twist_account(
        &self,
        renderer: &Renderer<'_>,
        account: &mut Map<String, Value>,
        is_single: bool,
    ) {
        let world = renderer.world;
        let user = account["id"]
            .as_str()
            .and_then(|id| renderer.user_with_id(id));
        let Some(user) = user else {
            return;
        };
        if !self.is_own(world, user) {
            for key in ["display_name", "note"] {
                account.insert(key.to_owned(), FORGED.into());
            }
            for key in ["followers_count", "following_count", "statuses_count"] {
                account.insert(key.to_owned(), FORGED_COUNT.into());
            }
            let username = account["username"].clone();
            account.insert("acct".to_owned(), username);
            return;
        }
        match self.lie_of(world, user) {
            Some(Lie::MegabyteBio) if is_single => {
                account.insert("note".to_owned(), "a".repeat(BIO_BYTES).into());
            }
            Some(Lie::Impostor) => {
                if let Some(victim) = self.victim(world, user) {
                    let url = world.account_url(victim, renderer.now.at_us);
                    account.insert("uri".to_owned(), world.account_uri(victim).into());
                    account.insert("url".to_owned(), url.into());
                    account.insert("display_name".to_owned(), FORGED.into());
                }
            }
            _ => {}
        }
    }

    /// Whom an impostor claims to be.
    fn victim(&self, world: &World, user: u64) -> Option<u64> {
        let mut dice = Dice::new(world.seed(), Purpose::Lie, user, 1);
        (0..VICTIM_TRIES)
            .map(|_| dice.below(world.users()))
            .find(|&other| !self.is_own(world, other))
    }

    /// Where a handle is said to lead, if that is a lie.
    pub(super) fn false_link(&self, renderer: &Renderer<'_>, user: u64) -> Option<String> {
        match self.lie_of(renderer.world, user)? {
            Lie::PrivateHandle => Some(self.private_place(renderer, user)),
            Lie::Impostor => self
                .victim(renderer.world, user)
                .map(|victim| renderer.world.account_uri(victim)),
            _ => None,
        }
    }

    /// Hosts that nobody outside may reach; the first two would be noticed here.
    pub(super) fn private_hosts(&self) -> [String; 6] {
        let port = self.canary.port();
        [
            format!("127.0.0.1:{port}"),
            format!("localhost:{port}"),
            "169.254.169.254".to_owned(),
            "[::1]:1".to_owned(),
            "10.0.0.1".to_owned(),
            "127.0.0.1:1".to_owned(),
        ]
    }

    fn private_place(&self, renderer: &Renderer<'_>, user: u64) -> String {
        let hosts = self.private_hosts();
        let mut dice = Dice::new(renderer.world.seed(), Purpose::Lie, user, 2);
        // Half of them where it would be noticed.
        let place = dice.below(hosts.len() as u64 + 2) as usize % hosts.len();
        format!("http://{}/latest", hosts[place])
    }
}

/// The account in it has been twisted before.
fn twist_status(status: &mut Map<String, Value>) {
    let is_of_others = status["account"]["note"] == FORGED;
    if is_of_others {
        status.insert("content".to_owned(), FORGED.into());
        status.insert("favourites_count".to_owned(), FORGED_COUNT.into());
    }
}
