//! Values of fields, as JSON.

use kittiwake_model::{Reference, Value};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ObjectBuilder, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Anything that JSON has.
#[derive(Debug)]
pub(crate) struct Any;

impl PartialSchema for Any {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue);
        RefOr::T(Schema::Object(any.build()))
    }
}

impl ToSchema for Any {}

/// The value as JSON has it.
pub(crate) fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) | Value::Time { at_us: value, .. } => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(value) => value.as_str().into(),
        Value::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Value::Object(Reference::Key(key)) => key.0.to_string().into(),
        // Only an answer that is not stored yet has such.
        Value::Object(Reference::Object(_)) => serde_json::Value::Null,
        Value::Object(Reference::Identity(identity)) => {
            let first = identity.aliases.first().map(|alias| alias.id.as_str());
            identity.canonical.as_deref().or(first).into()
        }
    }
}
