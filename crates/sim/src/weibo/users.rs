//! Accounts, and what people call themselves.

use serde_json::{Value, json};

use super::statuses::date;
use super::{Problem, Teller};
use crate::answer::Answer;
use crate::dialect::plain_text;
use crate::world::time::DAY_US;
use crate::world::{TAGS, ids, tag_place};

const USERS_PER_BATCH_MAX: usize = 50;
const TAGGED_PER_BATCH_MAX: usize = 20;
/// Numbers of tags have 18 digits and begin like this.
const TAG_BASE: u64 = 221_012_100_000_000_000;

impl Teller<'_> {
    /// The one whom a call is about, by id or by name.
    pub(super) fn present_user(&self) -> Result<u64, Problem> {
        let world = self.view.world;
        let user = match (
            self.heard.params.get("uid"),
            self.heard.params.get("screen_name"),
        ) {
            (Some(_), Some(_)) => return Err(Problem::Parameters),
            (Some(uid), None) => {
                let id = ids::parse(uid).ok_or(Problem::Parameters)?;
                world.user_with_id(id)
            }
            (None, Some(name)) => world.user_named(name, self.view.now.at_us),
            (None, None) => return Err(Problem::MissingParameter),
        };
        user.filter(|&user| world.is_active(user, self.view.now))
            .ok_or(Problem::NoSuchUser)
    }

    /// Numbers with commas between them. What is none spoils them all.
    pub(super) fn batch(&self, name: &str, ids_max: usize) -> Result<Vec<u64>, Problem> {
        let text = self.heard.params.get(name).unwrap_or_default();
        let texts: Vec<&str> = text.split(',').collect();
        if texts.len() > ids_max {
            return Err(Problem::TooManyIds);
        }
        let numbers = texts.into_iter().map(ids::parse);
        numbers.collect::<Option<_>>().ok_or(Problem::Parameters)
    }

    /// Those of a batch who are there.
    fn present_users(&self, name: &str, ids_max: usize) -> Result<Vec<u64>, Problem> {
        let world = self.view.world;
        let ids = self.batch(name, ids_max)?.into_iter();
        let users = ids.filter_map(|id| world.user_with_id(id));
        Ok(users
            .filter(|&user| world.is_active(user, self.view.now))
            .collect())
    }

    pub(super) fn user(&self) -> Result<Answer, Problem> {
        Ok(Answer::json(&self.contact(self.present_user()?)))
    }

    pub(super) fn users_batch(&self) -> Result<Answer, Problem> {
        let users = self.present_users("uids", USERS_PER_BATCH_MAX)?.into_iter();
        let users: Vec<Value> = users.map(|user| self.contact(user)).collect();
        Ok(Answer {
            items: Some(users.len() as u64),
            ..Answer::json(&json!({ "users": users }))
        })
    }

    /// An account with its newest post, as it is shown by itself and in lists of people.
    pub(super) fn contact(&self, user: u64) -> Value {
        let mut value = self.account(user);
        let newest = self.own_posts(user).into_iter().next();
        if let Some(newest) = newest {
            value["status"] = self.post_without_author(&newest);
        }
        value
    }

    /// An account as it stands in posts and comments.
    pub(super) fn account(&self, user: u64) -> Value {
        if let Some(written) = self.users.borrow().get(&user) {
            return written.clone();
        }
        let written = self.written_account(user);
        self.users.borrow_mut().insert(user, written.clone());
        written
    }

    fn written_account(&self, user: u64) -> Value {
        let (world, now) = (self.view.world, self.view.now);
        let id = world.account_id(user);
        let name = world.username(user, now.at_us);
        let profile = world.profile(user, now.at_us);
        let traits = world.traits(user);
        let following = world.following_at(user, now);
        let followers = world.followers_at(user, now);
        let mutual = following
            .iter()
            .filter(|edge| followers.iter().any(|other| other.source == edge.target));
        let picture = |size: u32| format!("http://tp1.sinaimg.cn/{id}/{size}/0/1");
        let is_known = followers.len() >= 60;
        let mut account = json!({
            "id": id,
            "idstr": id.to_string(),
            "screen_name": name,
            "name": name,
            "province": "11",
            "city": "5",
            "location": "北京 朝阳区",
            "description": plain_text(&profile.note_html),
            "url": "",
            "profile_image_url": picture(50),
            "profile_url": format!("u/{id}"),
            "domain": "",
            "weihao": "",
            "gender": if user.is_multiple_of(2) { "m" } else { "f" },
            "followers_count": followers.len(),
            "friends_count": following.len(),
            "pagefriends_count": 0,
            "statuses_count": self.own_posts(user).len(),
            "favourites_count": 0,
            "created_at": date(traits.created_day * DAY_US),
            "verified": is_known,
            "verified_type": if is_known { 0 } else { -1 },
            "avatar_large": picture(180),
            "avatar_hd": picture(1024),
            "bi_followers_count": mutual.count(),
        });
        if let (Value::Object(account), Value::Object(settings)) = (&mut account, settings()) {
            account.extend(settings);
        }
        account
    }

    pub(super) fn tags(&self) -> Result<Answer, Problem> {
        let user = self.present_user()?;
        let tags = self.tags_of(user);
        let cut = self.by_page(&tags, 20, 20);
        Ok(Answer::json(&cut.items))
    }

    pub(super) fn tags_batch(&self) -> Result<Answer, Problem> {
        let users = self.present_users("uids", TAGGED_PER_BATCH_MAX)?;
        let told: Vec<Value> = users
            .into_iter()
            .map(|user| json!({ "id": self.view.world.account_id(user), "tags": self.tags_of(user) }))
            .collect();
        Ok(Answer::json(&told))
    }

    /// A tag is an object whose one odd key is its number.
    fn tags_of(&self, user: u64) -> Vec<Value> {
        let tags = self.view.world.featured_tags(user, self.view.now);
        let weights = self
            .view
            .world
            .tag_uses(user, self.view.now, &tags)
            .into_iter();
        tags.iter()
            .zip(weights)
            .map(|(tag, weight)| {
                let number = TAG_BASE + tag_place(tag.name).unwrap_or(TAGS.len()) as u64;
                let mut value = json!({ "weight": weight.statuses });
                value[number.to_string()] = json!(tag.name);
                value
            })
            .collect()
    }
}

/// What is the same for all: settings, and what concerns whoever looks.
fn settings() -> Value {
    json!({
        "class": 1,
        "following": false,
        "allow_all_act_msg": false,
        "geo_enabled": true,
        "remark": "",
        "insecurity": { "sexual_content": false },
        "ptype": 0,
        "allow_all_comment": true,
        "verified_reason": "",
        "verified_trade": "",
        "verified_reason_url": "",
        "verified_source": "",
        "verified_source_url": "",
        "follow_me": false,
        "like": false,
        "like_me": false,
        "online_status": 0,
        "lang": "zh-cn",
        "star": 0,
        "mbtype": 0,
        "mbrank": 0,
        "block_word": 0,
        "block_app": 0,
        "credit_score": 80,
        "user_ability": 0,
        "urank": 9,
        "story_read_state": -1,
        "vclub_member": 0,
    })
}
