//! Answers in the shape of each software: the newest Mastodon's entities with what the others leave
//! out taken away, and with what they add.

use serde_json::{Map, Value, json};

use super::{Instance, Software};
use crate::answer::Answer;
use crate::mastodon::Renderer;

/// What only Mastodon's newer versions say of an account.
const NEW_ACCOUNT_KEYS: [&str; 10] = [
    "uri",
    "indexable",
    "hide_collections",
    "show_media",
    "show_media_replies",
    "show_featured",
    "feature_approval",
    "avatar_description",
    "header_description",
    "noindex",
];
/// And of a post.
const NEW_STATUS_KEYS: [&str; 4] = [
    "quotes_count",
    "quote",
    "quote_approval",
    "tagged_collections",
];

impl Instance {
    pub(super) fn dressed(&self, renderer: &Renderer<'_>, mut answer: Answer) -> Answer {
        let Some(mut body) = entities(&answer) else {
            return answer;
        };
        each_object(&mut body, &mut |object| {
            if is_account(object) {
                self.dress_account(renderer, object);
            } else if is_status(object) {
                self.dress_status(object);
            }
        });
        answer.body = body.to_string().into_bytes();
        answer
    }

    fn dress_account(&self, renderer: &Renderer<'_>, account: &mut Map<String, Value>) {
        let is_own = account["acct"] == account["username"];
        let uri = account.get("uri").cloned().unwrap_or_default();
        if self.software == Software::Mastodon {
            if !is_own {
                account.remove("noindex");
            }
            return;
        }
        let is_hiding = account.get("hide_collections") == Some(&Value::Bool(true));
        for key in NEW_ACCOUNT_KEYS {
            account.remove(key);
        }
        match self.software {
            Software::OldMastodon => {
                account.remove("roles");
            }
            Software::GoToSocial => {
                account.remove("group");
                if !is_own {
                    account.remove("roles");
                }
                if account["discoverable"].is_null() {
                    account.insert("discoverable".to_owned(), Value::Bool(false));
                }
                if is_hiding {
                    account.insert("hide_collections".to_owned(), Value::Bool(true));
                }
            }
            Software::Akkoma => {
                let hides = account["id"]
                    .as_str()
                    .and_then(|id| renderer.user_with_id(id))
                    .is_some_and(|user| self.software.hides_lists(renderer.world, user));
                let hides = hides || is_hiding;
                account.remove("roles");
                let username = account["username"].as_str().unwrap_or_default();
                let acct = account["acct"].as_str().unwrap_or_default();
                let fqn = if is_own {
                    format!("{username}@{}", self.host())
                } else {
                    acct.to_owned()
                };
                account.insert("fqn".to_owned(), fqn.into());
                account.insert(
                    "pleroma".to_owned(),
                    json!({ "ap_id": uri, "hide_followers": hides, "hide_follows": hides }),
                );
            }
            Software::Pixelfed => {
                for key in ["roles", "group", "suspended"] {
                    account.remove(key);
                }
                account.insert("local".to_owned(), Value::Bool(is_own));
            }
            Software::Mastodon => {}
        }
    }

    fn dress_status(&self, status: &mut Map<String, Value>) {
        if self.software == Software::Mastodon {
            return;
        }
        for key in NEW_STATUS_KEYS {
            status.remove(key);
        }
        match self.software {
            Software::Pixelfed => {
                status.remove("edited_at");
            }
            Software::Akkoma => {
                let is_local = status["account"]["acct"] == status["account"]["username"];
                status.insert("pleroma".to_owned(), json!({ "local": is_local }));
            }
            Software::Mastodon | Software::OldMastodon | Software::GoToSocial => {}
        }
    }
}

/// The entities of an answer that has some.
pub(super) fn entities(answer: &Answer) -> Option<Value> {
    if answer.status != 200 {
        return None;
    }
    serde_json::from_slice(&answer.body).ok()
}

/// Calls for every object of a document, the inner ones first.
pub(super) fn each_object(value: &mut Value, call: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => {
            for item in items {
                each_object(item, call);
            }
        }
        Value::Object(object) => {
            for item in object.values_mut() {
                each_object(item, call);
            }
            call(object);
        }
        _ => {}
    }
}

/// A mention has a handle, too, but no counts.
pub(super) fn is_account(object: &Map<String, Value>) -> bool {
    object.contains_key("acct") && object.contains_key("followers_count")
}

pub(super) fn is_status(object: &Map<String, Value>) -> bool {
    object.contains_key("account") && object.contains_key("reblogs_count")
}
