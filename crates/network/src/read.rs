//! From an answer's bytes to what they mean.

use crate::json;
use crate::network::{ErrorRule, Network, Query, Select};
use crate::page::{self, Page};
use crate::relate;
use crate::shape::{Element, Reader, Slots, fill};
use kittiwake_model::{Identity, Key, Link, Object, OutcomeCode, WorldTime};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use url::Url;

/// An answer, with the question that it answers.
pub struct Answer<'a> {
    pub query: &'a Query,
    pub base: &'a Url,
    pub host: &'a str,
    pub subjects: &'a [(Key, &'a Identity)],
    pub page: Page<'a>,
    /// The address that was asked.
    pub url: &'a Url,
    pub status: u16,
    /// The value of a header, by its name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<String>,
    pub body: &'a [u8],
    /// The number of the walk that this page belongs to.
    pub walk: Option<u32>,
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Answer")
            .field("query", &self.query.name)
            .field("url", &self.url.as_str())
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What an answer means. Links and references point into `objects`.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub outcome: OutcomeCode,
    pub reason: String,
    pub objects: Vec<Object>,
    pub links: Vec<Link>,
    /// Outcomes of single subjects that differ from the whole answer's: the absent ones of a
    /// batch, those that are suspended.
    pub subject_outcomes: Vec<(Key, OutcomeCode, String)>,
    /// Items of the list, or objects that were asked for.
    pub items: u32,
    /// Items of the list that pages, whether or not they could be read.
    pub listed: u32,
    /// The token of the next page.
    pub next: Option<String>,
    /// The newest item's id, on pages that can hold the newest item of their walk: the first
    /// page, and every page of an incremental walk. The last one seen in a walk is the mark.
    pub newest: Option<String>,
    /// When the oldest item was made, in lists that can be walked from a mark.
    pub oldest: Option<WorldTime>,
    /// The time of the newest item, in lists whose marks are times.
    pub latest: Option<WorldTime>,
    /// Values that were dropped or mended.
    pub mended: u32,
}

impl Reading {
    /// A reading that brought nothing but its outcome.
    pub fn of(outcome: OutcomeCode, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            objects: Vec::new(),
            links: Vec::new(),
            subject_outcomes: Vec::new(),
            items: 0,
            listed: 0,
            next: None,
            newest: None,
            oldest: None,
            latest: None,
            mended: 0,
        }
    }
}

/// The objects that one select found, by place.
pub(crate) struct Found {
    pub(crate) select: usize,
    pub(crate) objects: Vec<u32>,
}

impl Network {
    /// Reads an answer. Never fails: whatever a server sends has an outcome.
    pub fn read(&self, answer: &Answer<'_>) -> Reading {
        if let Some((outcome, reason)) = self.judge(answer) {
            return Reading::of(outcome, reason);
        }
        let mut mended = 0;
        let text = decode(answer.body, &mut mended);
        let (reader, found) = match self.read_body(answer, &text) {
            Ok(read) => read,
            Err(reason) => return Reading::of(OutcomeCode::Malformed, reason),
        };
        let mut reading = Reading::of(OutcomeCode::Ok, "");
        reading.mended = mended.saturating_add(reader.mended);
        let is_full = reader.is_full;
        reading.objects = reader.objects;
        reading.links = reader.links;
        for one in &found {
            relate::take_found(answer, one, &mut reading);
        }
        finish(answer, &text, &found, &mut reading);
        if is_full {
            reading.outcome = OutcomeCode::TooMuchData;
            "more objects than one answer may hold".clone_into(&mut reading.reason);
            reading.next = None;
        }
        reading
    }

    /// The outcome of an answer that is not to be read.
    fn judge(&self, answer: &Answer<'_>) -> Option<(OutcomeCode, String)> {
        for rule in &self.errors {
            if rule.fits(answer) {
                let reason = rule.reason.clone();
                let reason = reason.unwrap_or_else(|| format!("http {}", answer.status));
                return Some((rule.outcome, reason));
            }
        }
        let outcome = match answer.status {
            200..=299 => return None,
            304 => OutcomeCode::NotModified,
            404 => OutcomeCode::NotFound,
            410 => OutcomeCode::Gone,
            401 => OutcomeCode::AuthExpired,
            403 => OutcomeCode::Forbidden,
            429 => OutcomeCode::RateLimited,
            408 | 425 | 500..=599 => OutcomeCode::Transient,
            400..=499 => OutcomeCode::BadRequest,
            _ => OutcomeCode::Malformed,
        };
        Some((outcome, format!("http {}", answer.status)))
    }

    fn read_body<'n, 'de>(
        &'n self,
        answer: &Answer<'n>,
        text: &'de str,
    ) -> Result<(Reader<'n, 'de>, Vec<Found>), String> {
        match text.trim_start().as_bytes().first() {
            None => return Err("empty body".to_owned()),
            Some(b'<') => return Err("html instead of json".to_owned()),
            Some(_) => {}
        }
        let subject = answer.subjects.first().map(|(_, identity)| *identity);
        let reader = || Reader::new(&self.name, &self.shapes, answer.host, subject);
        if let [select] = answer.query.selects.as_slice()
            && select.is_top
        {
            let mut straight = reader();
            if let Ok(found) = read_top(&mut straight, select, text, false) {
                return Ok((straight, vec![found?]));
            }
            // Either it is no JSON, or something in it cannot be represented: read item by item.
            let whole = well_formed(text)?;
            let mut careful = reader();
            let found =
                read_top(&mut careful, select, whole, true).map_err(|error| describe(&error))?;
            return Ok((careful, vec![found?]));
        }
        let whole = well_formed(text)?;
        let mut careful = reader();
        let found = read_places(&mut careful, answer.query, whole)?;
        Ok((careful, found))
    }
}

impl ErrorRule {
    fn fits(&self, answer: &Answer<'_>) -> bool {
        const BODY_BYTES_MAX: usize = 65_536;
        let is_status = self
            .statuses
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&answer.status));
        let is_subject = self
            .subject
            .as_ref()
            .is_none_or(|kind| *kind == answer.query.kind);
        let is_query = self
            .query
            .as_ref()
            .is_none_or(|name| *name == answer.query.name);
        if !(is_status && is_subject && is_query) {
            return false;
        }
        let Some(matcher) = &self.matcher else {
            return true;
        };
        let Some(text) = answer
            .body
            .get(..answer.body.len().min(BODY_BYTES_MAX))
            .and_then(|body| std::str::from_utf8(body).ok())
        else {
            return false;
        };
        matches!(matcher.run(text.trim(), answer.host), Ok(Some(result)) if !json::is_falsy(&result))
    }
}

/// The body as text; what is no UTF-8 becomes U+FFFD and is counted.
fn decode<'b>(body: &'b [u8], mended: &mut u32) -> Cow<'b, str> {
    // A byte order mark is no part of the text.
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if let Ok(text) = std::str::from_utf8(body) {
        return Cow::Borrowed(text);
    }
    let chunks = body.utf8_chunks();
    let broken = chunks.filter(|chunk| !chunk.invalid().is_empty());
    *mended += broken.count() as u32;
    String::from_utf8_lossy(body)
}

fn well_formed(text: &str) -> Result<&str, String> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| describe(&error))?;
    Ok(raw.get())
}

fn describe(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "json ends too early".to_owned();
    }
    format!("no json at line {} column {}", error.line(), error.column())
}

/// Reads the one select that stands at the top. The outer error is bad JSON, the inner one a
/// value of another kind.
fn read_top<'de>(
    reader: &mut Reader<'_, 'de>,
    select: &Select,
    text: &'de str,
    by_slice: bool,
) -> Result<Result<Found, String>, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_str(text);
    let found = if select.is_each {
        let seed = List {
            reader,
            select,
            by_slice,
        };
        match seed.deserialize(&mut input)? {
            Some(objects) => Ok(Found { select: 0, objects }),
            None => Err("no list where one is expected".to_owned()),
        }
    } else if json::is_null(text.trim()) {
        return Ok(Ok(Found {
            select: 0,
            objects: Vec::new(),
        }));
    } else {
        let seed = Element {
            reader,
            shape: select.shape,
            by_slice,
        };
        match seed.deserialize(&mut input)? {
            Some(place) => Ok(Found {
                select: 0,
                objects: vec![place],
            }),
            None => Err("no object that can be named".to_owned()),
        }
    };
    input.end()?;
    Ok(found)
}

/// Reads several selects, or selects deeper in the answer.
fn read_places<'de>(
    reader: &mut Reader<'_, 'de>,
    query: &Query,
    whole: &'de str,
) -> Result<Vec<Found>, String> {
    let mut slots: Slots<'de> = vec![None; query.slots];
    fill(&query.tree, whole, &mut slots, &mut reader.mended);
    // Some networks leave a list out that has nothing in it.
    if slots.iter().all(Option::is_none) && !page::is_bare_page(query, whole) {
        return Err("nothing stands where the definition looks".to_owned());
    }
    let mut all = Vec::new();
    for (place, select) in query.selects.iter().enumerate() {
        let mut objects = Vec::new();
        if let Some(raw) = slots[select.slot as usize].filter(|raw| !json::is_null(raw)) {
            match read_top(reader, select, raw, true).map_err(|error| describe(&error))? {
                Ok(read) => objects = read.objects,
                // Without what was asked for there is no answer; anything else is extra.
                Err(reason) if select.is_subject => return Err(reason),
                Err(_) => reader.mended += 1,
            }
        }
        all.push(Found {
            select: place,
            objects,
        });
    }
    Ok(all)
}

/// Reads the items of a list; `None` when it is no list.
struct List<'a, 'n, 'de> {
    reader: &'a mut Reader<'n, 'de>,
    select: &'a Select,
    by_slice: bool,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_, 'de> {
    type Value = Option<Vec<u32>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_, 'de> {
    type Value = Option<Vec<u32>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut places = Vec::new();
        loop {
            let element = Element {
                reader: &mut *self.reader,
                shape: self.select.shape,
                by_slice: self.by_slice,
            };
            match items.next_element_seed(element)? {
                Some(place) => places.extend(place),
                None => return Ok(Some(places)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Counts, paging and the final outcome.
fn finish(answer: &Answer<'_>, text: &str, found: &[Found], reading: &mut Reading) {
    let query = answer.query;
    reading.items = found.iter().map(|one| one.objects.len() as u32).sum();
    let is_list = query.selects.iter().any(|select| select.is_each);
    if reading.items == 0
        && reading.mended == 0
        && answer.page == Page::First
        && is_list
        && query.batch_max == 1
    {
        reading.outcome = OutcomeCode::Empty;
    }
    page::take_page(answer, text, found, reading);
}
