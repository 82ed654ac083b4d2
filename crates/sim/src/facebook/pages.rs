//! Pages: every user is one.

use serde_json::{Value, json};

use super::Graph;
use super::fields::Field;
use super::nodes::Found;
use crate::dialect::plain_text;

const CATEGORIES: [(&str, &str); 4] = [
    ("2256", "Internet Company"),
    ("2202", "Website"),
    ("1400", "TV Show"),
    ("180164648685982", "Musician/Band"),
];
/// Fields that pages have and in which there is nothing here.
const EMPTY: [&str; 20] = [
    "bio",
    "checkins",
    "contact_address",
    "cover",
    "current_location",
    "description",
    "display_subtext",
    "founded",
    "general_info",
    "global_brand_page_name",
    "global_brand_root_id",
    "hours",
    "location",
    "mission",
    "overall_star_rating",
    "phone",
    "rating_count",
    "single_line_address",
    "start_info",
    "website",
];
const TASKS: [&str; 6] = [
    "ANALYZE",
    "ADVERTISE",
    "MESSAGING",
    "MODERATE",
    "CREATE_CONTENT",
    "MANAGE",
];

impl Graph<'_> {
    pub(super) fn page_name(&self, user: u64) -> String {
        let name = self.view.world.profile(user, self.view.now.at_us);
        if name.display_name.is_empty() {
            self.view.world.username(user, self.view.now.at_us)
        } else {
            name.display_name
        }
    }

    /// Who wrote something.
    pub(super) fn author(&self, user: u64) -> Value {
        json!({ "id": self.page_id(user), "name": self.page_name(user) })
    }

    /// Pages of which everything takes long.
    pub(super) fn is_slow(&self, user: u64) -> bool {
        self.view.world.account_id(user) % 8 == 3
    }

    fn is_verified(&self, user: u64) -> bool {
        self.view.world.account_id(user).is_multiple_of(10)
    }

    fn category(&self, user: u64) -> (&'static str, &'static str) {
        CATEGORIES[(self.view.world.account_id(user) % 4) as usize]
    }

    pub(super) fn page_field(&self, user: u64, field: &Field<'_>) -> Found {
        let world = self.view.world;
        let now_us = self.view.now.at_us;
        let followers = || world.followers_at(user, self.view.now).len();
        let id = || self.page_id(user);
        let (category_id, category) = self.category(user);
        let value = match field.name {
            "name" => json!(self.page_name(user)),
            "username" => json!(world.username(user, now_us)),
            "about" => {
                let about = plain_text(&world.profile(user, now_us).note_html);
                return Some((!about.is_empty()).then(|| json!(about)));
            }
            "category" => json!(category),
            "category_list" => json!([{ "id": category_id, "name": category }]),
            "fan_count" | "followers_count" => json!(followers()),
            "engagement" => {
                let count = followers();
                json!({ "count": count, "social_sentence": format!("{count} people like this.") })
            }
            "link" => json!(format!("https://www.facebook.com/{}", id())),
            "is_permanently_closed" => json!(false),
            "is_published" => json!(true),
            "verification_status" => json!(if self.is_verified(user) {
                "blue_verified"
            } else {
                "not_verified"
            }),
            "talking_about_count" | "were_here_count" => json!(0),
            "picture" => json!({ "data": {
                "height": 50,
                "is_silhouette": !world.traits(user).has_avatar,
                "url": format!("https://scontent.sim.example/p50x50/{}.png", id()),
                "width": 50,
            } }),
            // Only of pages that one looks after oneself.
            "tasks" => return Some((self.owner() == Some(user)).then(|| json!(TASKS))),
            "access_token" => {
                let own = || json!(format!("{}-of-{}", self.token(), id()));
                return Some((self.owner() == Some(user)).then(own));
            }
            name => return EMPTY.contains(&name).then_some(None),
        };
        Some(Some(value))
    }
}
