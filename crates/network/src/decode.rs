//! From an answer's bytes to the JSON that they stand for, in whatever they are written.

use crate::car::{self, CarError};
use crate::charset;
use crate::network::Decode;
use crate::shape::Notation;
use crate::web::{WebError, WebRule, unfound_words};
use crate::xml::{self, XmlError};
use kittiwake_model::{Identity, Key, OutcomeCode};
use std::borrow::Cow;
use url::Url;

/// In what an answer is written, as far as that is known before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) decode: Decode,
    /// What is taken of a web page, and the page's address.
    pub(crate) web: Option<(&'a WebRule, &'a Url)>,
    pub(crate) content_type: Option<&'a str>,
}

/// Why an answer cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) outcome: OutcomeCode,
    pub(crate) reason: String,
    /// What the definition needs and a web page has nowhere.
    pub(crate) unfound: Vec<String>,
}

impl Unreadable {
    fn new(outcome: OutcomeCode, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            unfound: Vec::new(),
        }
    }
}

/// The body as JSON, and in what it was written.
pub(crate) fn decode<'b>(
    written: Written<'_>,
    subjects: &[(Key, &Identity)],
    body: &'b [u8],
    mended: &mut u32,
) -> Result<(Cow<'b, str>, Notation), Unreadable> {
    let Written {
        decode,
        web,
        content_type,
    } = written;
    if decode == Decode::Car {
        let json = decode_car(subjects, body, mended)?;
        return Ok((Cow::Owned(json), Notation::Car));
    }
    if let Some((rule, address)) = web {
        let subject = match subjects {
            [(_, one)] => one.canonical.as_deref(),
            _ => None,
        };
        let page = (rule, address, subject);
        let json = decode_page(page, content_type, body, mended)?;
        return Ok((Cow::Owned(json), Notation::Html));
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
        Err(XmlError::Malformed(reason)) => Err(Unreadable::new(OutcomeCode::Malformed, reason)),
        Err(XmlError::TooLarge(reason)) => Err(Unreadable::new(OutcomeCode::TooMuchData, reason)),
    }
}

fn malformed(reason: &str) -> Unreadable {
    Unreadable::new(OutcomeCode::Malformed, reason)
}

fn decode_page(
    (rule, address, subject): (&WebRule, &Url, Option<&str>),
    content_type: Option<&str>,
    body: &[u8],
    mended: &mut u32,
) -> Result<String, Unreadable> {
    if content_type.is_some_and(|kind| !is_markup(kind)) {
        return Err(malformed("no html"));
    }
    let text = charset::decode_page(body, content_type, mended);
    if text.trim_start().is_empty() {
        return Err(malformed("empty body"));
    }
    match rule.convert(&text, address, subject) {
        Ok(converted) => {
            *mended = mended.saturating_add(converted.mended);
            Ok(converted.json)
        }
        Err(WebError::TooLarge(reason)) => Err(Unreadable::new(OutcomeCode::TooMuchData, reason)),
        Err(WebError::Unfound(unfound)) => Err(Unreadable {
            unfound: unfound.clone(),
            ..Unreadable::new(OutcomeCode::Malformed, unfound_words(&unfound))
        }),
    }
}

/// Whether a type of content is one that pages are sent with.
fn is_markup(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let kinds = [
        "text/html",
        "application/xhtml+xml",
        "text/plain",
        "text/xml",
        "",
    ];
    kinds.iter().any(|known| kind.eq_ignore_ascii_case(known))
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
        Unreadable::new(outcome, error.to_string())
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
