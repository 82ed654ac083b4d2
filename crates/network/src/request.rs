//! From a question to the request that asks it.

use crate::body::{Carried, FORM};
use crate::condition;
use crate::network::{AuthNeed, BatchStyle, Decode, Network, Query, QueryCost};
use crate::page::{Page, PageStyle, asked_with};
use crate::shape::CANONICAL;
use crate::stubs::STUB;
use kittiwake_model::{Cost, Identity, Name};
use std::borrow::Cow;
use url::{Url, form_urlencoded};

/// A question: one page of one query about its subjects.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    pub query: &'a Query,
    pub base: &'a Url,
    /// The host whose ids are used.
    pub host: &'a str,
    pub subjects: &'a [&'a Identity],
    pub page: Page<'a>,
    /// Whether there is a credential.
    pub authenticated: bool,
}

/// What to send. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPlan {
    pub method: &'static str,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    /// What a POST carries; `headers` say what it is.
    pub body: Option<String>,
    /// How long the answer may be, where that is not the usual.
    pub bytes_max: Option<u32>,
    /// Whether `Authorization: Bearer` is to be added.
    pub send_credential: bool,
    /// Path and query, for the log.
    pub target: String,
    /// The page asked for; empty for the first.
    pub cursor: String,
    /// What the call takes of which budgets.
    pub costs: Vec<Cost>,
}

impl RequestPlan {
    /// The address with everything that a signature covers: a form counts as if it stood there.
    pub fn signed_url<'u>(&self, url: &'u Url) -> Cow<'u, Url> {
        let is_form = self.headers.iter().any(|(_, value)| value == FORM);
        let Some(form) = self.body.as_deref().filter(|_| is_form) else {
            return Cow::Borrowed(url);
        };
        let mut signed = url.clone();
        signed
            .query_pairs_mut()
            .extend_pairs(form_urlencoded::parse(form.as_bytes()));
        Cow::Owned(signed)
    }
}

impl Query {
    /// The size to ask for a page with if the one that was asked for with this address was too much; nothing if
    /// it cannot be smaller.
    pub fn smaller_page(&self, url: &Url) -> Option<u32> {
        let page = self.page.as_ref()?;
        let asked = page.asked_size(url);
        page.size_min
            .map(|size_min| (asked / 2).max(size_min))
            .filter(|size| *size < asked)
    }

    /// Asks for fewer items on the page.
    pub fn shrink(&self, plan: &mut RequestPlan, size: u32) {
        let parameter = self
            .page
            .as_ref()
            .and_then(|page| page.size_parameter.as_ref());
        let Some(parameter) = parameter else { return };
        let asked = plan.url.clone();
        let others = asked.query_pairs().filter(|(name, _)| name != parameter);
        plan.url
            .query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .append_pair(parameter, &size.to_string());
        plan.target = target_of(&plan.url);
        for cost in &mut plan.costs {
            cost.items_max = cost.items_max.min(u64::from(size));
        }
    }
}

/// Path and query, for the log.
fn target_of(url: &Url) -> String {
    match url.query() {
        Some(pairs) => format!("{}?{pairs}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Why a question cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the {kind} has no alias {alias:?} on this host")]
    MissingAlias { alias: String, kind: Name },
    #[error("{given} subjects were given, the query takes {max} at most")]
    TooManySubjects { given: usize, max: u32 },
    #[error("no subject was given")]
    NoSubject,
    #[error("the cursor is not one of this query")]
    BadCursor,
    #[error("the query is asked for what another answer left out, and nothing was")]
    NothingOpen,
    #[error("the query cannot begin at a mark")]
    NotIncremental,
    #[error("the query needs a credential")]
    AuthRequired,
    #[error("the alias {alias:?} cannot stand in an address")]
    BadAlias { alias: String },
}

impl Network {
    /// Builds the request for one page of one query.
    pub fn request(&self, ask: &Ask<'_>) -> Result<RequestPlan, RequestError> {
        let query = ask.query;
        let batch_max = query.batch_max;
        if ask.subjects.is_empty() {
            return Err(RequestError::NoSubject);
        }
        if ask.subjects.len() > batch_max as usize {
            return Err(RequestError::TooManySubjects {
                given: ask.subjects.len(),
                max: batch_max,
            });
        }
        if query.auth == AuthNeed::Required && !ask.authenticated {
            return Err(RequestError::AuthRequired);
        }
        for subject in ask.subjects {
            if let Some(alias) = query.lacks_proof(subject) {
                return Err(RequestError::MissingAlias {
                    alias: alias.to_owned(),
                    kind: subject.kind.clone(),
                });
            }
        }
        let send_credential = ask.authenticated && query.auth != AuthNeed::None;
        let mut parameters = fixed_parameters(ask)?;
        let cursor = page_parameters(ask, &mut parameters)?;
        let body = query.sending.body(&parameters);
        let url = match &body {
            Some(_) => address(ask, &[])?,
            None => address(ask, &parameters)?,
        };
        let target = target_of(&url);
        let costs = self.charged(ask, send_credential, &parameters);
        let mut headers = vec![("accept".to_owned(), accepted(query.decode).to_owned())];
        headers.extend(
            body.as_ref()
                .map(|(kind, _)| ("content-type".to_owned(), (*kind).to_owned())),
        );
        if let (true, Page::Since(mark)) = (query.is_conditional, ask.page) {
            headers.extend(condition::headers_of(mark));
        }
        Ok(RequestPlan {
            method: query.sending.method(),
            url,
            headers,
            body: body.map(|(_, body)| body),
            bytes_max: query.bytes_max,
            send_credential,
            target,
            cursor,
            costs,
        })
    }

    fn charged(
        &self,
        ask: &Ask<'_>,
        authenticated: bool,
        parameters: &[(String, Carried)],
    ) -> Vec<Cost> {
        let query = ask.query;
        let applies = |cost: &&QueryCost| {
            let condition = &self.conditions[cost.budget];
            let is_present = |wanted: &String| parameters.iter().any(|(name, _)| name == wanted);
            condition
                .authenticated
                .is_none_or(|wanted| wanted == authenticated)
                && (condition.any_parameter.is_empty()
                    || condition.any_parameter.iter().any(is_present))
        };
        let page_size = query.page_size().map_or(1, u64::from);
        let items_max = page_size.max(ask.subjects.len() as u64);
        let cost = |cost: &QueryCost| Cost {
            budget: self.budgets[cost.budget].name.clone(),
            call: cost.call,
            item: cost.item,
            beside: cost.beside,
            items_max,
        };
        query.costs.iter().filter(applies).map(cost).collect()
    }
}

/// What the `Accept` header asks for.
const fn accepted(decode: Decode) -> &'static str {
    match decode {
        Decode::Json => "application/json",
        Decode::Xml => {
            "application/atom+xml, application/rss+xml, application/rdf+xml, \
             application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
        }
        Decode::Any => {
            "application/atom+xml, application/rss+xml, application/rdf+xml, \
             application/feed+json, application/json;q=0.9, application/xml;q=0.9, \
             text/xml;q=0.9, */*;q=0.1"
        }
        Decode::Car => "application/vnd.ipld.car",
        Decode::Html => "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
    }
}

/// The parameters of every page: constants, the subject's aliases, the batch, the page size.
fn fixed_parameters(ask: &Ask<'_>) -> Result<Vec<(String, Carried)>, RequestError> {
    let query = ask.query;
    let mut parameters = Vec::new();
    for (name, literal) in &query.parameters {
        let mut expand = |template: &str| expand(template, ask, |value, _| value.to_owned());
        parameters.push((name.clone(), literal.fill(&mut expand)?));
    }
    batch_parameters(ask, &mut parameters)?;
    let Some(page) = &query.page else {
        return Ok(parameters);
    };
    let number = |name: &str, number: u32| (name.to_owned(), Carried::Json(number.to_string()));
    if let Some(name) = &page.size_parameter {
        parameters.push(number(name, page.size));
    }
    if let PageStyle::Number { parameter, first } = &page.style {
        parameters.push(number(parameter, *first));
    }
    Ok(parameters)
}

fn batch_parameters(
    ask: &Ask<'_>,
    parameters: &mut Vec<(String, Carried)>,
) -> Result<(), RequestError> {
    let Some(batch) = &ask.query.batch else {
        return Ok(());
    };
    let ids: Vec<String> = ask
        .subjects
        .iter()
        .map(|subject| alias_of(subject, &batch.alias, ask.host))
        .collect::<Result<_, _>>()?;
    parameters.extend(listed(&batch.parameter, batch.style, ids));
    Ok(())
}

/// Several ids as parameters.
fn listed(name: &str, style: BatchStyle, ids: Vec<String>) -> Vec<(String, Carried)> {
    let each = |name: String, ids: Vec<String>| {
        let ids = ids.into_iter();
        ids.map(|id| (name.clone(), Carried::Text(id))).collect()
    };
    match style {
        BatchStyle::Comma => vec![(name.to_owned(), Carried::Text(ids.join(",")))],
        BatchStyle::Repeated => each(name.to_owned(), ids),
        BatchStyle::Brackets => each(format!("{name}[]"), ids),
        BatchStyle::List => {
            let ids: Vec<Carried> = ids.into_iter().map(Carried::Text).collect();
            vec![(name.to_owned(), Carried::list(&ids))]
        }
    }
}

/// The ids of stubs that a call is for.
fn stubs_of(ask: &Ask<'_>) -> Result<Vec<String>, RequestError> {
    let Page::Next(open) = ask.page else {
        return Err(RequestError::NothingOpen);
    };
    let ids = ask.query.asked_ids(open);
    if ids.is_empty() {
        return Err(RequestError::BadCursor);
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}

/// Adds what the page needs; the cursor as it is logged.
fn page_parameters(
    ask: &Ask<'_>,
    parameters: &mut Vec<(String, Carried)>,
) -> Result<String, RequestError> {
    if let Some(expand) = &ask.query.expand {
        let ids = stubs_of(ask)?;
        let cursor = ids.join(",");
        if let Some((parameter, style)) = &expand.list {
            parameters.extend(listed(parameter, *style, ids));
        }
        return Ok(cursor);
    }
    if matches!(ask.page, Page::Since(_)) && !ask.query.incremental {
        return Err(RequestError::NotIncremental);
    }
    let (own, cursor) = asked_with(ask.query, ask.page).ok_or(RequestError::BadCursor)?;
    parameters.retain(|(name, _)| !own.iter().any(|(other, _)| other == name));
    parameters.extend(own);
    Ok(cursor)
}

fn address(ask: &Ask<'_>, parameters: &[(String, Carried)]) -> Result<Url, RequestError> {
    let mut url = match ask.query.address_id() {
        Some(id) => address_of(ask, id)?,
        None => address_on_host(ask)?,
    };
    if !parameters.is_empty() {
        let pairs = parameters.iter().map(|(name, value)| (name, value.text()));
        url.query_pairs_mut().extend_pairs(pairs);
    }
    Ok(url)
}

/// The subject's own address, with what follows `?` in it.
fn address_of(ask: &Ask<'_>, id: &str) -> Result<Url, RequestError> {
    let address = placeholder_value(id, ask)?;
    let url = Url::parse(&address).ok().filter(Url::has_host);
    let mut url = url.ok_or_else(|| RequestError::BadAlias {
        alias: address.chars().take(80).collect(),
    })?;
    url.set_fragment(None);
    Ok(url)
}

fn address_on_host(ask: &Ask<'_>) -> Result<Url, RequestError> {
    let path = expand(&ask.query.path, ask, |value, is_path| {
        if is_path {
            encode_path(value)
        } else {
            encode_segment(value)
        }
    })?;
    let whole = format!("{}{path}", ask.base.path().trim_end_matches('/'));
    let mut url = ask.base.clone();
    url.set_path(&whole);
    url.set_query(None);
    url.set_fragment(None);
    // `.` and `..` as ids would make it another path, however they are written; so would nothing
    // between two slashes.
    if url.path() != whole || path.contains("//") {
        return Err(RequestError::BadAlias {
            alias: path.chars().take(80).collect(),
        });
    }
    Ok(url)
}

/// What a placeholder ends in that leaves out `@host` where that is the host asked.
pub(crate) const LOCAL: &str = ":local";
/// What a placeholder ends in whose value is several parts of a path: its slashes stay.
pub(crate) const PATH: &str = ":path";

/// Fills the placeholders of a template: `{id}`, `{handle}`, `{handle:local}`, `{name:path}`,
/// `{canonical}`, `{host}`. Templates were checked when the definition was loaded. `encode` is told
/// whether a value may be several parts of a path.
fn expand(
    template: &str,
    ask: &Ask<'_>,
    encode: impl Fn(&str, bool) -> String,
) -> Result<String, RequestError> {
    let mut out = String::with_capacity(template.len() + 24);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (placeholder, after) = after.split_once('}').unwrap_or((after, ""));
        let part = placeholder.strip_suffix(PATH);
        let value = placeholder_value(part.unwrap_or(placeholder), ask)?;
        out.push_str(&encode(&value, part.is_some()));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn placeholder_value(placeholder: &str, ask: &Ask<'_>) -> Result<String, RequestError> {
    if placeholder == "host" {
        return Ok(ask.host.to_owned());
    }
    if placeholder == STUB && ask.query.expands() {
        return Ok(stubs_of(ask)?.swap_remove(0));
    }
    let subject = ask.subjects.first().ok_or(RequestError::NoSubject)?;
    let Some(name) = placeholder.strip_suffix(LOCAL) else {
        return alias_of(subject, placeholder, ask.host);
    };
    // A name on the host that is asked goes without that host.
    let value = alias_of(subject, name, ask.host)?;
    Ok(match value.rsplit_once('@') {
        Some((local, host)) if host.eq_ignore_ascii_case(ask.host) => local.to_owned(),
        _ => value,
    })
}

fn alias_of(subject: &Identity, name: &str, host: &str) -> Result<String, RequestError> {
    id_named(subject, name, host)
        .map(str::to_owned)
        .ok_or_else(|| RequestError::MissingAlias {
            alias: name.to_owned(),
            kind: subject.kind.clone(),
        })
}

/// The alias of this name, or the canonical id.
pub(crate) fn id_named<'i>(identity: &'i Identity, name: &str, host: &str) -> Option<&'i str> {
    if name == CANONICAL {
        identity.canonical.as_deref()
    } else {
        identity.alias(name, host)
    }
}

/// The same part by part: slashes stay.
fn encode_path(text: &str) -> String {
    let parts: Vec<String> = text.split('/').map(encode_segment).collect();
    parts.join("/")
}

/// Percent-encodes everything that could mean something in a path.
fn encode_segment(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    out
}
