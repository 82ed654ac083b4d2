//! From an answer's bytes to the JSON that they stand for, in whatever they are written.

use crate::car::{self, CarError};
use crate::charset;
use crate::network::Decode;
use crate::shape::Notation;
use crate::xml::{self, XmlError};
use kittiwake_model::{Identity, Key, OutcomeCode};
use std::borrow::Cow;

type Unreadable = (OutcomeCode, String);

/// The body as JSON, and in what it was written.
pub(crate) fn decode<'b>(
    decode: Decode,
    content_type: Option<&str>,
    subjects: &[(Key, &Identity)],
    body: &'b [u8],
    mended: &mut u32,
) -> Result<(Cow<'b, str>, Notation), Unreadable> {
    if decode == Decode::Car {
        let json = decode_car(subjects, body, mended)?;
        return Ok((Cow::Owned(json), Notation::Car));
    }
    let text = charset::decode(body, content_type, mended);
    let is_xml = match text.trim_start().bytes().next() {
        None => return Err(malformed("empty body")),
        Some(first) => first == b'<',
    };
    if is_xml && decode == Decode::Json {
        return Err(malformed("html instead of json"));
    }
    if !is_xml && decode == Decode::Xml {
        return Err(malformed("no xml"));
    }
    if !is_xml {
        return Ok((text, Notation::Json));
    }
    match xml::convert(&text) {
        Ok(converted) => {
            *mended = mended.saturating_add(converted.mended);
            Ok((Cow::Owned(converted.json), Notation::Xml))
        }
        Err(XmlError::Malformed(reason)) => Err((OutcomeCode::Malformed, reason)),
        Err(XmlError::TooLarge(reason)) => Err((OutcomeCode::TooMuchData, reason.to_owned())),
    }
}

fn malformed(reason: &str) -> Unreadable {
    (OutcomeCode::Malformed, reason.to_owned())
}

fn decode_car(
    subjects: &[(Key, &Identity)],
    body: &[u8],
    mended: &mut u32,
) -> Result<String, Unreadable> {
    let converted = car::convert(body).map_err(|error| {
        let outcome = match error {
            CarError::Malformed(_) => OutcomeCode::Malformed,
            CarError::TooLarge(_) => OutcomeCode::TooMuchData,
        };
        (outcome, error.to_string())
    })?;
    if is_of_somebody_else(subjects, &converted.did) {
        return Err(malformed("the repository of somebody else"));
    }
    *mended = mended.saturating_add(converted.mended);
    Ok(converted.json)
}

/// Whether a repository is none of the subject's, where its DID is known.
fn is_of_somebody_else(subjects: &[(Key, &Identity)], did: &str) -> bool {
    let ids = subjects.iter().flat_map(|(_, subject)| {
        let aliases = subject.aliases.iter().map(|alias| &alias.id);
        subject.canonical.iter().chain(aliases)
    });
    let dids: Vec<&String> = ids.filter(|id| id.starts_with("did:")).collect();
    !dids.is_empty() && dids.iter().all(|id| *id != did)
}
