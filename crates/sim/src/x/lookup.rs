//! Accounts and posts that are asked for by their ids or names.

use super::ask::{self, Ask};
use super::includes::Draft;
use super::problem::{Hidden, Named};
use crate::answer::Answer;
use crate::dialect::View;
use crate::world::ids;

impl View<'_> {
    pub(super) fn users(&self, ask: &Ask<'_>) -> Result<Answer, Answer> {
        let ids = ask.ids()?;
        Ok(self.users_found(ask, "ids", &ids, |id| self.user_with_id(id)))
    }

    pub(super) fn users_by(&self, ask: &Ask<'_>) -> Result<Answer, Answer> {
        let names = ask.usernames()?;
        let find = |name: &str| self.world.user_named(name, self.now.at_us);
        Ok(self.users_found(ask, "usernames", &names, find))
    }

    fn users_found(
        &self,
        ask: &Ask<'_>,
        parameter: &str,
        values: &[&str],
        find: impl Fn(&str) -> Option<u64>,
    ) -> Answer {
        let mut draft = Draft::new(*self, ask);
        let mut found = Vec::new();
        for value in values {
            match self.shown_user(find(value)) {
                Ok(user) => found.push(user),
                Err(hidden) => draft
                    .errors
                    .push(user_named(parameter, value).error(hidden)),
            }
        }
        draft.users(&found, None)
    }

    pub(super) fn user(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let user = self.path_user(id)?;
        Ok(Draft::new(*self, ask).user(user))
    }

    pub(super) fn user_by_name(&self, ask: &Ask<'_>, name: &str) -> Result<Answer, Answer> {
        let name = ask::name(name)?;
        let found = self.world.user_named(name, self.now.at_us);
        match self.shown_user(found) {
            Ok(user) => Ok(Draft::new(*self, ask).user(user)),
            Err(hidden) => Err(user_named("username", name).answer(hidden)),
        }
    }

    /// Whose token it is; somebody who is shown, if the world has nobody of that name.
    pub(super) fn me(&self, ask: &Ask<'_>) -> Answer {
        let owner = self.owner_account();
        let user = owner.or_else(|| self.world.seed_users(self.now).next());
        Draft::new(*self, ask).user(user.unwrap_or(0))
    }

    /// The account that the token speaks for.
    pub(super) fn owner_account(&self) -> Option<u64> {
        self.world.user_named(self.owner?, self.now.at_us)
    }

    pub(super) fn posts(&self, ask: &Ask<'_>) -> Result<Answer, Answer> {
        let mut draft = Draft::new(*self, ask);
        let mut found = Vec::new();
        for id in ask.ids()? {
            let number = ids::parse(id).unwrap_or(0);
            match self.shown_post(number) {
                Ok(post) => found.push(post),
                Err(hidden) => draft.errors.push(post_named("ids", id).error(hidden)),
            }
        }
        Ok(draft.posts(&found, None, None))
    }

    pub(super) fn post(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let number = ask::id("id", id)?;
        match self.shown_post(number) {
            Ok(post) => Ok(Draft::new(*self, ask).post(&post)),
            Err(hidden) => Err(post_named("id", id).answer(hidden)),
        }
    }

    fn shown_user(&self, user: Option<u64>) -> Result<u64, Hidden> {
        let user = user.ok_or(Hidden::NotFound)?;
        match self.hidden_user(user) {
            Some(hidden) => Err(hidden),
            None => Ok(user),
        }
    }

    /// The account that a path names.
    pub(super) fn path_user(&self, id: &str) -> Result<u64, Answer> {
        let number = ask::id("id", id)?;
        let found = self.shown_user(self.world.user_with_id(number));
        found.map_err(|hidden| user_named("id", id).answer(hidden))
    }

    /// The same, if its posts and lists are shown as well.
    pub(super) fn open_user(&self, id: &str) -> Result<u64, Answer> {
        let user = self.path_user(id)?;
        if self.is_protected(user) {
            return Err(user_named("id", id).answer(Hidden::NotAuthorized));
        }
        Ok(user)
    }
}

fn user_named<'a>(parameter: &'a str, value: &'a str) -> Named<'a> {
    Named {
        resource: "user",
        parameter,
        value,
    }
}

pub(super) fn post_named<'a>(parameter: &'a str, value: &'a str) -> Named<'a> {
    Named {
        resource: "tweet",
        parameter,
        value,
    }
}
