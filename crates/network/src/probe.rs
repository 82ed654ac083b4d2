//! What hosts can do, found out by asking them: servers of other kinds and versions speak the same
//! API with parts missing.

use crate::expression::Expression;
use crate::json;
use crate::network::{Network, Query};
use kittiwake_model::{Name, Object, Value};

/// What is asked of every host before anything else.
#[derive(Debug)]
pub(crate) struct Probe {
    /// One after the other until one is answered.
    pub(crate) queries: Vec<Name>,
    /// How long the answer is believed.
    pub(crate) again_after_us: i64,
    /// Each by an expression on the fields of the host's object.
    pub(crate) capabilities: Vec<(Name, Expression)>,
}

/// A set of capabilities, by their places in the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u64);

impl Capabilities {
    pub(crate) const MOST: usize = 64;

    /// Of a host that says nothing of itself.
    pub const NONE: Self = Self(0);

    pub(crate) const fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn has(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

impl Query {
    /// Whether a host that can do this can be asked.
    pub const fn is_offered(&self, capabilities: Capabilities) -> bool {
        capabilities.has(self.needs)
    }
}

impl Network {
    /// The queries by which a host is asked what it is, one after the other until one is answered.
    pub fn probes(&self) -> &[Name] {
        self.probe.as_ref().map_or(&[], |probe| &probe.queries)
    }

    /// How long it is believed what a host said of itself, in microseconds.
    pub fn probed_again_after_us(&self) -> i64 {
        self.probe.as_ref().map_or(0, |probe| probe.again_after_us)
    }

    /// What a host can do, by the fields of its object, as a text of JSON. What cannot be told is
    /// taken for missing.
    pub fn capabilities(&self, facts: &str, host: &str) -> Capabilities {
        let mut found = Capabilities::default();
        let probe = self.probe.iter();
        let all = probe.flat_map(|probe| probe.capabilities.iter().enumerate());
        for (place, (_, expression)) in all {
            let told = expression.run(facts, host);
            if matches!(told, Ok(Some(answer)) if !json::is_falsy(&answer)) {
                found.add(place);
            }
        }
        found
    }
}

/// The fields of an object as a text of JSON, as a store would give them back.
pub fn facts_of(object: &Object) -> String {
    let fields = object.groups.iter().flat_map(|group| &group.fields);
    let mut facts = serde_json::Map::new();
    for (name, value) in fields {
        let value = match value {
            Value::Text(text) => text.as_str().into(),
            Value::Int(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Bool(truth) => (*truth).into(),
            Value::Time { at_us, .. } => (*at_us).into(),
            Value::Json(text) => serde_json::from_str(text).unwrap_or_default(),
            Value::Null | Value::Object(_) => serde_json::Value::Null,
        };
        facts.insert(name.to_string(), value);
    }
    serde_json::Value::Object(facts).to_string()
}
