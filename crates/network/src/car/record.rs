//! A record's DAG-CBOR as JSON, in the way in which the AT Protocol writes it: links to blocks are
//! `{"$link": "bafy…"}`, bytes are `{"$bytes": "base64"}`.

use super::blocks::push_cid;
use crate::json;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ipld_core::cid::Cid;
use ipld_core::cid::serde::BytesToCidVisitor;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write};

/// Appends the JSON of a block; `None` when it is no DAG-CBOR, and then some of it may be there.
pub(super) fn push_json(block: &[u8], out: &mut String) -> Option<()> {
    let mut input = serde_ipld_dagcbor::de::Deserializer::from_slice(block);
    let value = Value { out, depth: 0 };
    value.deserialize(&mut input).ok()?;
    input.end().ok()
}

/// Writes one value.
struct Value<'o> {
    out: &'o mut String,
    /// The containers around it.
    depth: usize,
}

impl Value<'_> {
    /// One that stands in this one.
    fn inner(&mut self) -> Value<'_> {
        Value {
            out: self.out,
            depth: self.depth + 1,
        }
    }

    fn check_depth<E: Error>(&self) -> Result<(), E> {
        if self.depth >= json::DEPTH_MAX {
            return Err(E::custom("nested too deeply"));
        }
        Ok(())
    }

    fn push(self, scalar: impl fmt::Display) {
        // Nothing that is written to a text fails.
        let _written = write!(self.out, "{scalar}");
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        self.push("null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_i128<E>(self, value: i128) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let number = serde_json::Number::from_f64(value);
        self.push(number.ok_or_else(|| E::custom("no number"))?);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        json::push_quoted(text, self.out);
        Ok(())
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<(), E> {
        self.out.push_str("{\"$bytes\":\"");
        STANDARD_NO_PAD.encode_string(bytes, self.out);
        self.out.push_str("\"}");
        Ok(())
    }

    /// The name of a block: DAG-CBOR has nothing else of this kind.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        let cid: Cid = input.deserialize_bytes(BytesToCidVisitor)?;
        self.out.push_str("{\"$link\":\"");
        push_cid(&cid, self.out);
        self.out.push_str("\"}");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.out.push('[');
        let start = self.out.len();
        while items.next_element_seed(self.inner())?.is_some() {
            self.out.push(',');
        }
        close(self.out, start, ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.out.push('{');
        let start = self.out.len();
        while members.next_key_seed(self.inner())?.is_some() {
            self.out.push(':');
            members.next_value_seed(self.inner())?;
            self.out.push(',');
        }
        close(self.out, start, '}');
        Ok(())
    }
}

/// Puts the end of a container in the place of the last comma in it.
fn close(out: &mut String, start: usize, end: char) {
    if out.len() > start {
        out.pop();
    }
    out.push(end);
}
