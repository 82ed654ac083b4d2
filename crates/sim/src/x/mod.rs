//! The X API v2 over the world: what is asked, and what is answered.
//!
//! Written by hand from the network's documentation. Pure: the time of the answer is an argument.

mod users;

use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Speech, View};
use crate::faults::Walked;
use crate::world::World;
use serde_json::json;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct X;

impl Speech for X {
    fn queries(&self) -> &'static [&'static str] {
        &["users", "unknown"]
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.bearer()
    }

    fn matter(&self, heard: &Heard, _world: &World) -> Matter {
        let (query, subject) = match heard.segments().as_slice() {
            ["2", "users"] => ("users", heard.params.get("ids").unwrap_or_default()),
            _ => ("unknown", ""),
        };
        Matter {
            query,
            subject: subject.to_owned(),
            cursor: String::new(),
            walk: None,
            is_free: false,
            is_wide: false,
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        if view.shown != Shown::Good && view.shown != Shown::Narrow {
            return unauthorized();
        }
        match heard.segments().as_slice() {
            ["2", "users"] => view.users_by_ids(heard.params.get("ids").unwrap_or_default()),
            _ => Answer::json_with(
                404,
                &json!({ "title": "Not Found", "type": "about:blank", "status": 404, "detail": "Not Found" }),
            ),
        }
    }

    fn walked(&self, _view: View<'_>, _heard: &Heard) -> Option<Walked> {
        None
    }
}

fn unauthorized() -> Answer {
    let body = json!({ "title": "Unauthorized", "type": "about:blank", "status": 401, "detail": "Unauthorized" });
    Answer::json_with(401, &body)
}
