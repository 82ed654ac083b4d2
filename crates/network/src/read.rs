//! From an answer's bytes to what they mean.

use crate::believe::Teller;
use crate::charset;
use crate::condition;
use crate::decode::{Written, decode};
use crate::json;
use crate::network::{Decode, ErrorRule, Network, Query, Select};
use crate::page::{self, Page};
use crate::relate;
use crate::select::{NO_OBJECT, Taken, read_slices};
use crate::shape::{Element, Items, Notation, Reader, Slots, fill};
use crate::tariff::Thing;
use crate::web::dom::Dom;
use kittiwake_model::{Identity, Key, Link, Name, Object, OutcomeCode, WorldTime};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
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
    /// Subjects that are missing from a batch and have to be asked for one by one.
    pub absent: Vec<Key>,
    /// Ids that stubs name, each with the query that is to be asked for it.
    pub stubs: Vec<(Name, String)>,
    /// Items of the list, or objects that were asked for.
    pub items: u32,
    /// Those of the objects that somebody may charge for.
    pub charged: Vec<Thing>,
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
    /// The budget that a refusal means, where the definition knows which.
    pub exhausted: Option<Name>,
    /// How long a refusal holds where the server does not say.
    pub wait_us: Option<i64>,
    /// What the definition needs and a web page has nowhere, by name and selector: its layout has
    /// changed.
    pub unfound: Vec<String>,
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
            absent: Vec::new(),
            stubs: Vec::new(),
            items: 0,
            charged: Vec::new(),
            listed: 0,
            next: None,
            newest: None,
            oldest: None,
            latest: None,
            mended: 0,
            exhausted: None,
            wait_us: None,
            unfound: Vec::new(),
        }
    }
}

impl Query {
    /// How its answers are written.
    pub(crate) fn written<'a>(
        &'a self,
        address: &'a Url,
        content_type: Option<&'a str>,
    ) -> Written<'a> {
        Written {
            decode: self.decode,
            web: self.web.as_ref().map(|rule| (rule, address)),
            content_type,
        }
    }
}

/// The objects that one select found, by place.
pub(crate) struct Found {
    pub(crate) select: usize,
    pub(crate) taken: Taken,
}

impl Found {
    /// What the one select of a query found.
    fn alone(objects: Vec<u32>) -> Self {
        let times = Vec::new();
        Self {
            select: 0,
            taken: Taken { objects, times },
        }
    }
}

impl Network {
    /// Reads an answer of the one host that is asked about everything. Never fails: whatever a server
    /// sends has an outcome.
    pub fn read(&self, answer: &Answer<'_>) -> Reading {
        self.read_from(None, answer)
    }

    /// The same of a host that is not believed in everything.
    pub fn read_from(&self, teller: Option<&Teller<'_>>, answer: &Answer<'_>) -> Reading {
        if let Some(refused) = self.judge(answer) {
            return refused;
        }
        let mut mended = 0;
        let content_type = (answer.header)("content-type");
        let written = answer.query.written(answer.url, content_type.as_deref());
        let decoded = decode(written, answer.subjects, answer.body, &mut mended);
        let (text, notation) = match decoded {
            Ok(decoded) => decoded,
            Err(unreadable) => {
                return Reading {
                    unfound: unreadable.unfound,
                    ..Reading::of(unreadable.outcome, unreadable.reason)
                };
            }
        };
        if is_nobody(answer, &text) {
            return Reading::of(OutcomeCode::NotFound, "null instead of an object");
        }
        let (reader, found) = match self.read_body(answer, &text, notation) {
            Ok(read) => read,
            Err(reason) => return Reading::of(OutcomeCode::Malformed, reason),
        };
        let mut reading = Reading::of(OutcomeCode::Ok, "");
        reading.mended = mended.saturating_add(reader.mended);
        let is_full = reader.is_full;
        reading.objects = reader.objects;
        reading.links = reader.links;
        reading.stubs = reader.stubs;
        if let Some(teller) = teller {
            self.doubt(teller, &mut reading.objects);
        }
        relate::take_found(self, (answer, teller), &found, &mut reading);
        if self.has_tariffs() {
            reading.charged = charged(answer, &found);
        }
        finish(answer, &text, &found, &mut reading);
        if answer.query.is_conditional {
            reading.newest = condition::mark_of(answer);
        }
        if is_full {
            reading.outcome = OutcomeCode::TooMuchData;
            "more objects than one answer may hold".clone_into(&mut reading.reason);
            reading.next = None;
        }
        reading
    }

    /// What a redirect means that is not to be followed.
    pub fn read_redirect(&self, answer: &Answer<'_>) -> Option<Reading> {
        let mut rules = self.errors.iter().filter(|rule| rule.redirect.is_some());
        rules
            .any(|rule| rule.fits(answer))
            .then(|| self.judge(answer))?
    }

    /// What an answer means that is not to be read.
    fn judge(&self, answer: &Answer<'_>) -> Option<Reading> {
        if let Some(rule) = self.errors.iter().find(|rule| rule.fits(answer)) {
            let reason = rule.reason.clone();
            let reason = reason.unwrap_or_else(|| format!("http {}", answer.status));
            return Some(Reading {
                exhausted: rule.budget.clone(),
                wait_us: rule.wait_us,
                ..Reading::of(rule.outcome, reason)
            });
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
        Some(Reading::of(outcome, format!("http {}", answer.status)))
    }

    fn read_body<'n, 'de>(
        &'n self,
        answer: &Answer<'n>,
        text: &'de str,
        notation: Notation,
    ) -> Result<(Reader<'n, 'de>, Vec<Found>), String> {
        let subject = match answer.subjects {
            [one] => Some(*one),
            _ => None,
        };
        let place = (answer.host, answer.url);
        let reader = || Reader::new(&self.name, &self.shapes, place, subject, notation);
        if let [select] = answer.query.selects.as_slice()
            && select.is_top
        {
            let mut straight = reader();
            if select.is_straight()
                && let Ok(found) = read_top(&mut straight, select, text)
            {
                return Ok((straight, vec![found?]));
            }
            // Either it is no JSON, or something in it cannot be represented: read item by item,
            // so that a fault in one stays in it.
            let whole = well_formed(text)?;
            let mut careful = reader();
            let taken = read_slices(&mut careful, select, whole)?;
            return Ok((careful, vec![Found { select: 0, taken }]));
        }
        let whole = well_formed(text)?;
        let mut careful = reader();
        let found = read_places(&mut careful, answer.query, whole)?;
        Ok((careful, found))
    }
}

impl ErrorRule {
    /// Whether it speaks of this query at all.
    pub(crate) fn concerns(&self, query: &Query) -> bool {
        let is_subject = self.subject.as_ref().is_none_or(|kind| *kind == query.kind);
        is_subject && self.query.as_ref().is_none_or(|name| *name == query.name)
    }

    /// Whether it looks at answers whose status says that all is well.
    pub(crate) fn may_fit_success(&self) -> bool {
        self.statuses
            .iter()
            .any(|(from, to)| *from <= 299 && *to >= 200)
    }

    fn fits(&self, answer: &Answer<'_>) -> bool {
        const BODY_BYTES_MAX: usize = 65_536;
        let is_status = self
            .statuses
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&answer.status));
        let fits_around = is_status && self.concerns(answer.query) && self.fits_headers(answer);
        if !(fits_around && self.leads_there(answer) && self.fits_page(answer)) {
            return false;
        }
        let Some(matcher) = &self.matcher else {
            return true;
        };
        let body = &answer.body[..answer.body.len().min(BODY_BYTES_MAX)];
        let decode_as = match answer.query.decode {
            // What a server has to say against sending a repository it says in JSON.
            Decode::Json | Decode::Car => Decode::Json,
            // Errors come from other parts of a server than feeds do.
            Decode::Xml | Decode::Any | Decode::Html => Decode::Any,
        };
        let content_type = (answer.header)("content-type");
        let written = Written {
            decode: decode_as,
            web: None,
            content_type: content_type.as_deref(),
        };
        let Ok((text, _)) = decode(written, &[], body, &mut 0) else {
            return false;
        };
        matches!(matcher.run(text.trim(), answer.host), Ok(Some(result)) if !json::is_falsy(&result))
    }
}

impl ErrorRule {
    fn leads_there(&self, answer: &Answer<'_>) -> bool {
        let location = || (answer.header)("location");
        let leads = |there: &String| location().is_some_and(|it| it.contains(there));
        self.redirect.as_ref().is_none_or(leads)
    }

    /// Whether what it looks for stands on the page, if it looks for anything.
    fn fits_page(&self, answer: &Answer<'_>) -> bool {
        const PAGE_BYTES_MAX: usize = 1 << 20;
        let Some(css) = &self.css else {
            return true;
        };
        if answer.query.decode != Decode::Html {
            return false;
        }
        let body = &answer.body[..answer.body.len().min(PAGE_BYTES_MAX)];
        let content_type = (answer.header)("content-type");
        let page = charset::decode_page(body, content_type.as_deref(), &mut 0);
        Dom::parse(&page).is_ok_and(|dom| dom.has(css))
    }

    fn fits_headers(&self, answer: &Answer<'_>) -> bool {
        self.headers.iter().all(|(name, wanted)| {
            let told = (answer.header)(name);
            told.is_some_and(|told| wanted.as_ref().is_none_or(|wanted| told.trim() == wanted))
        })
    }
}

/// Whether null stands in place of the object that would hold everything. Where a whole list or map
/// was asked for, or the subject itself, that is told from what is found; and a later page says
/// nothing of the subject.
fn is_nobody(answer: &Answer<'_>, text: &str) -> bool {
    let mut selects = answer.query.selects.iter();
    json::is_null(text.trim())
        && answer.page == Page::First
        && selects.all(|select| !select.is_top && !select.is_subject)
}

const NO_LIST: &str = "no list where one is expected";

impl Select {
    /// Whether its objects can be read without being cut out first: neither keys nor bare ids have
    /// to be kept, and nothing around them matters.
    fn is_straight(&self) -> bool {
        self.items != Items::Map && self.alias.is_none() && self.around.is_none()
    }
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
) -> Result<Result<Found, String>, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_str(text);
    let found = if select.items == Items::List {
        let seed = List { reader, select };
        match seed.deserialize(&mut input)? {
            Some(objects) => Ok(Found::alone(objects)),
            None => Err(NO_LIST.to_owned()),
        }
    } else if json::is_null(text.trim()) {
        return Ok(Ok(Found::alone(Vec::new())));
    } else {
        let seed = Element {
            reader,
            shape: select.shape,
        };
        match seed.deserialize(&mut input)? {
            Some(place) => Ok(Found::alone(vec![place])),
            None => Err(NO_OBJECT.to_owned()),
        }
    };
    input.end()?;
    Ok(found)
}

const NOTHING: &str = "nothing stands where the definition looks";

/// Reads several selects, or selects deeper in the answer.
fn read_places<'n, 'de>(
    reader: &mut Reader<'n, 'de>,
    query: &'n Query,
    whole: &'de str,
) -> Result<Vec<Found>, String> {
    let mut slots: Slots<'de> = vec![None; query.slots];
    fill(&query.tree, whole, &mut slots, &mut reader.mended);
    let is_there = |slot: u32| slots[slot as usize].is_some();
    let is_expected = |select: &Select| {
        let parent = select
            .parent_slot
            .filter(|_| reader.notation.omits_empty_lists());
        is_there(select.slot) || parent.is_some_and(is_there)
    };
    // Some networks leave a list out that has nothing in it.
    if !query.selects.iter().any(is_expected) && !page::is_bare_page(query, whole) {
        return Err(NOTHING.to_owned());
    }
    let mut all: Vec<Found> = Vec::new();
    let mut has_null = false;
    for (place, select) in query.selects.iter().enumerate() {
        let mut taken = Taken::default();
        let raw = slots[select.slot as usize];
        has_null |= select.is_subject && raw.is_some_and(json::is_null);
        if let Some(raw) = raw.filter(|raw| !json::is_null(raw)) {
            match read_slices(reader, select, raw) {
                Ok(read) => taken = read,
                // Without what was asked for there is no answer; anything else is extra.
                Err(reason) if select.is_subject => return Err(reason.to_owned()),
                Err(_) => reader.mended += 1,
            }
        }
        all.push(Found {
            select: place,
            taken,
        });
    }
    // Of several forms in which the subject may be written one has to fit.
    let is_subject = |found: &&Found| query.selects[found.select].is_subject;
    let mut forms = all.iter().filter(is_subject);
    let has_forms = forms.clone().count() > 1 && !has_null;
    if has_forms && forms.all(|form| form.taken.objects.is_empty()) {
        return Err(NOTHING.to_owned());
    }
    Ok(all)
}

/// Reads the items of a list; `None` when it is no list.
struct List<'a, 'n, 'de> {
    reader: &'a mut Reader<'n, 'de>,
    select: &'a Select,
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

/// What stands where a query looks, as far as somebody may charge for it.
fn charged(answer: &Answer<'_>, found: &[Found]) -> Vec<Thing> {
    let each = found.iter().flat_map(|one| {
        let select = &answer.query.selects[one.select];
        let list = match answer.subjects {
            [(subject, _)] if select.charges_relation => Some(*subject),
            _ => None,
        };
        let objects = one.taken.objects.iter();
        objects.map(move |object| Thing {
            object: *object,
            price: select.price.clone(),
            list,
        })
    });
    each.collect()
}

/// Counts, paging and the final outcome.
fn finish(answer: &Answer<'_>, text: &str, found: &[Found], reading: &mut Reading) {
    let query = answer.query;
    reading.items = found.iter().map(|one| one.taken.objects.len() as u32).sum();
    let is_list = query
        .selects
        .iter()
        .any(|select| select.items != Items::One);
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
