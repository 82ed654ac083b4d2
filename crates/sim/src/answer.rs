//! Answers before they become HTTP.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::IgnoredAny;

use crate::bill::Thing;
use crate::limits::Header;
use crate::spoil::Spoil;

pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// What a call is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Headers of this answer beside those that every answer has.
    pub(crate) headers: Vec<Header>,
    /// How many things limits count that count things; what the body tells if nobody says.
    pub(crate) items: Option<u64>,
    /// What it costs in money, where the network bills things.
    pub(crate) billed: Vec<Thing>,
    /// How the page was spoilt.
    pub(crate) spoilt: Option<Spoil>,
}

impl Answer {
    pub(crate) const fn with_body(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            body,
            headers: Vec::new(),
            items: None,
            billed: Vec::new(),
            spoilt: None,
        }
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::json_with(200, value)
    }

    pub(crate) fn json_with(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::with_body(status, JSON, body),
            // A body of our own that cannot be written is an error that every caller understands.
            Err(_) => Self::with_body(500, JSON, b"{}".to_vec()),
        }
    }

    pub(crate) fn redirect(location: String) -> Self {
        Self {
            headers: vec![("location".into(), location)],
            ..Self::with_body(302, JSON, Vec::new())
        }
    }

    /// The number of things in it: the items of a list, or of all lists together; anything else is
    /// one thing, and an error none.
    pub(crate) fn items(&self) -> u64 {
        if self.status != 200 {
            return 0;
        }
        if let Some(items) = self.items {
            return items;
        }
        if let Ok(list) = serde_json::from_slice::<Vec<IgnoredAny>>(&self.body) {
            return list.len() as u64;
        }
        let lists = serde_json::from_slice::<BTreeMap<&str, Vec<IgnoredAny>>>(&self.body);
        lists.map_or(1, |lists| {
            lists.values().map(|list| list.len() as u64).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_in_lists_and_in_lists_of_lists() {
        let items = |value: serde_json::Value| Answer::json(&value).items();
        assert_eq!(items(serde_json::json!([])), 0);
        assert_eq!(items(serde_json::json!([{ "id": "1" }, { "id": "2" }])), 2);
        assert_eq!(items(serde_json::json!({ "id": "1", "tags": [1, 2] })), 1);
        let context = serde_json::json!({ "ancestors": [{}], "descendants": [{}, {}] });
        assert_eq!(items(context), 3);
        assert_eq!(Answer::json_with(410, &[1, 2]).items(), 0);
    }
}
