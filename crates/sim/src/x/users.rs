//! Accounts.

use crate::answer::Answer;
use crate::dialect::View;
use crate::world::ids;
use serde_json::{Value, json};

impl View<'_> {
    pub(super) fn users_by_ids(&self, ids: &str) -> Answer {
        let mut data: Vec<Value> = Vec::new();
        let mut errors: Vec<Value> = Vec::new();
        for id in ids.split(',') {
            let user = ids::parse(id).and_then(|id| self.world.user_with_id(id));
            match user.filter(|&user| self.world.is_active(user, self.now)) {
                Some(user) => data.push(json!({
                    "id": id,
                    "username": self.world.username(user, self.now.at_us),
                })),
                None => errors.push(json!({
                    "value": id,
                    "detail": format!("Could not find user with ids: [{id}]."),
                    "title": "Not Found Error",
                    "resource_type": "user",
                    "parameter": "ids",
                    "resource_id": id,
                    "type": "https://api.twitter.com/2/problems/resource-not-found",
                })),
            }
        }
        let mut body = json!({});
        if !data.is_empty() {
            body["data"] = json!(data);
        }
        if !errors.is_empty() {
            body["errors"] = json!(errors);
        }
        Answer {
            items: Some(data.len() as u64),
            ..Answer::json(&body)
        }
    }
}
