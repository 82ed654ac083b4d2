//! Where people live: which instance of a fediverse is whose home, and how it names them.
//!
//! A world without homes is one server that everybody is on.

use super::World;
use super::dice::{Dice, Purpose};
use super::feistel::Permutation;
use super::graph::Follow;
use super::ids::EPOCH_S;
use super::local_ids::{IdForm, LocalIds};
use super::moment::Moment;
use super::posts::Post;
use super::time::DAY_S;
use crate::HOST;

/// Edges are older than posts, and this is older than edges.
const OLDEST_DAYS: i64 = 1_101;
/// How many of a thousand have moved to an account elsewhere.
const MOVED_PERMILLE: u64 = 25;
const MOVE_TRIES: usize = 8;

/// How a home is named and names its people.
#[derive(Debug, Clone)]
pub(crate) struct HomePlan {
    /// Scheme, host and port, such as `http://i01.localhost:3000`.
    pub(crate) origin: String,
    pub(crate) id_form: IdForm,
    /// Whether URIs hold the name that somebody signed up with, and not an id.
    pub(crate) has_named_uris: bool,
    /// Whether posts can be edited.
    pub(crate) has_edits: bool,
    /// What stands before the name in the address of a profile.
    pub(crate) profile_path: &'static str,
    /// What stands between that and the id in the address of a post.
    pub(crate) status_path: &'static str,
}

#[derive(Debug)]
struct Home {
    plan: HomePlan,
    ids: LocalIds,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Homes {
    all: Vec<Home>,
    /// The first place of each home's people in the order of arrival, and the end of all.
    first_places: Vec<u64>,
    places: Permutation,
}

impl Homes {
    /// Deals everybody to homes so that the k-th has one k-th as many people as the first, as far as
    /// whole people allow.
    fn new(world: &World, plans: Vec<HomePlan>) -> Self {
        let spare_s = (world.anchor_day - OLDEST_DAYS) * DAY_S - EPOCH_S;
        let all: Vec<Home> = (0..)
            .zip(plans)
            .map(|(number, plan)| Home {
                ids: LocalIds::new(
                    world.seed,
                    number,
                    world.users,
                    plan.id_form,
                    spare_s.max(0) as u64,
                ),
                plan,
            })
            .collect();
        Self {
            first_places: shares(world.users, all.len()),
            all,
            places: Permutation::new(world.seed, 6, world.users),
        }
    }

    fn home(&self, user: u64) -> usize {
        let place = self.places.forward(user);
        self.first_places.partition_point(|&first| first <= place) - 1
    }
}

/// Where each part begins when so many are dealt out by Zipf's law, and where the last one ends.
fn shares(users: u64, parts: usize) -> Vec<u64> {
    const WHOLE: u128 = 1 << 40;
    let weights: Vec<u128> = (1..=parts as u128).map(|rank| WHOLE / rank).collect();
    let weight_sum: u128 = weights.iter().sum();
    let mut firsts = vec![0];
    let mut before = 0;
    for weight in weights {
        before += weight;
        firsts.push((u128::from(users) * before / weight_sum.max(1)) as u64);
    }
    firsts
}

impl World {
    /// Spreads everybody over homes.
    pub(crate) fn settle(&mut self, plans: Vec<HomePlan>) {
        self.homes = Some(Homes::new(self, plans));
    }

    pub(crate) const fn is_settled(&self) -> bool {
        self.homes.is_some()
    }

    /// The number of somebody's home; 0 where all are on one server.
    pub(crate) fn home(&self, user: u64) -> usize {
        self.homes.as_ref().map_or(0, |homes| homes.home(user))
    }

    /// How many people have a home there.
    pub(crate) fn people_of(&self, home: usize) -> u64 {
        self.homes.as_ref().map_or(self.users, |homes| {
            homes.first_places[home + 1] - homes.first_places[home]
        })
    }

    /// Scheme, host and port of a home.
    pub(crate) fn origin_of_home(&self, home: usize) -> &str {
        const ALONE: &str = "https://sim.example";
        debug_assert!(ALONE.ends_with(HOST));
        self.homes
            .as_ref()
            .map_or(ALONE, |homes| &homes.all[home].plan.origin)
    }

    pub(crate) fn origin(&self, user: u64) -> &str {
        self.origin_of_home(self.home(user))
    }

    /// Host and port of somebody's home.
    pub(crate) fn host(&self, user: u64) -> &str {
        let origin = self.origin(user);
        origin.split_once("://").map_or(origin, |(_, host)| host)
    }

    /// What an instance calls somebody.
    pub(crate) fn local_account_id(&self, home: usize, user: u64) -> String {
        match &self.homes {
            Some(homes) => homes.all[home].ids.account(user),
            None => self.account_id(user).to_string(),
        }
    }

    /// Whom an instance calls so.
    pub(crate) fn user_with_local_id(&self, home: usize, text: &str) -> Option<u64> {
        match &self.homes {
            Some(homes) => homes.all[home].ids.user(text),
            None => super::ids::parse(text).and_then(|id| self.user_with_id(id)),
        }
    }

    /// What an instance calls a post, a follow or a like.
    pub(crate) fn local_item_id(&self, home: usize, id: u64) -> String {
        match &self.homes {
            Some(homes) => homes.all[home].ids.item(id),
            None => id.to_string(),
        }
    }

    pub(crate) fn item_with_local_id(&self, home: usize, text: &str) -> Option<u64> {
        match &self.homes {
            Some(homes) => homes.all[home].ids.read_item(text),
            None => super::ids::parse(text),
        }
    }

    /// Where a page begins or ends that an instance is told to bound by a text.
    pub(crate) fn local_bound(&self, home: usize, text: &str) -> u64 {
        match &self.homes {
            Some(homes) => homes.all[home].ids.bound(text),
            None => super::ids::as_number(text),
        }
    }

    /// The canonical id of somebody.
    pub(crate) fn account_uri(&self, user: u64) -> String {
        let origin = self.origin(user);
        match self.plan_of(user) {
            // Nobody's URI changes when they take another name.
            Some(plan) if plan.has_named_uris => {
                format!("{origin}/users/{}", self.username(user, i64::MIN))
            }
            _ => format!(
                "{origin}/ap/users/{}",
                self.local_account_id(self.home(user), user)
            ),
        }
    }

    /// The address of somebody's profile.
    pub(crate) fn account_url(&self, user: u64, at_us: i64) -> String {
        let path = self.plan_of(user).map_or("/@", |plan| plan.profile_path);
        format!("{}{path}{}", self.origin(user), self.username(user, at_us))
    }

    /// The canonical id of a post.
    pub(crate) fn status_uri(&self, post: &Post) -> String {
        let activity = if post.is_repost() { "/activity" } else { "" };
        let id = self.local_item_id(self.home(post.user()), post.id());
        format!("{}/statuses/{id}{activity}", self.account_uri(post.user()))
    }

    pub(crate) fn status_url(&self, post: &Post, at_us: i64) -> String {
        let user = post.user();
        let id = self.local_item_id(self.home(user), post.id());
        if post.is_repost() {
            let (origin, name) = (self.origin(user), self.username(user, at_us));
            return format!("{origin}/users/{name}/statuses/{id}/activity");
        }
        let path = self.plan_of(user).map_or("/", |plan| plan.status_path);
        format!("{}{path}{id}", self.account_url(user, at_us))
    }

    pub(super) fn can_edit(&self, user: u64) -> bool {
        self.plan_of(user).is_none_or(|plan| plan.has_edits)
    }

    /// The account elsewhere that somebody has moved to.
    pub(crate) fn moved_to(&self, user: u64, now: Moment<'_>) -> Option<u64> {
        self.homes.as_ref()?;
        let mut dice = Dice::new(self.seed, Purpose::Move, user, 0);
        if !dice.chance(MOVED_PERMILLE) || !self.is_active(user, now) {
            return None;
        }
        (0..MOVE_TRIES)
            .map(|_| dice.below(self.users))
            // Nobody who has moved on is moved to, so that moves never lead in a circle.
            .find(|&other| self.home(other) != self.home(user) && !self.has_moved(other))
            .filter(|&other| self.is_active(other, now))
    }

    fn has_moved(&self, user: u64) -> bool {
        Dice::new(self.seed, Purpose::Move, user, 0).chance(MOVED_PERMILLE)
    }

    /// Every follow between somebody and a home's people that had begun by a time, whether or not it
    /// still holds.
    pub(crate) fn ties_with_home(
        &self,
        user: u64,
        home: usize,
        now: Moment<'_>,
    ) -> impl Iterator<Item = Follow> {
        let followers = self.graph.followers(user).into_iter();
        let following = self.graph.following(user).into_iter();
        followers.chain(following).filter(move |edge| {
            let other = if edge.source == user {
                edge.target
            } else {
                edge.source
            };
            edge.has_begun(now.at_us) && self.home(other) == home
        })
    }

    fn plan_of(&self, user: u64) -> Option<&HomePlan> {
        let homes = self.homes.as_ref()?;
        Some(&homes.all[homes.home(user)].plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_homes_follow_zipfs_law_and_leave_nobody_out() {
        let firsts = shares(1_000, 5);
        let sizes: Vec<u64> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(sizes.iter().sum::<u64>(), 1_000);
        assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
        assert!((435..440).contains(&sizes[0]) && (216..220).contains(&sizes[1]));
        assert_eq!(shares(2, 4).last(), Some(&2));
    }

    #[test]
    fn homes_have_as_many_people_as_they_say() {
        let mut world = World::new(3, 200, 1_790_000_000_000_000).unwrap();
        let plan = |number: usize| HomePlan {
            origin: format!("http://{number}"),
            id_form: IdForm::Ulid,
            has_named_uris: number == 1,
            has_edits: true,
            profile_path: "/@",
            status_path: "/",
        };
        world.settle((0..4).map(plan).collect());
        for home in 0..4 {
            let people = (0..200).filter(|&user| world.home(user) == home);
            assert_eq!(people.count() as u64, world.people_of(home));
        }
    }
}
