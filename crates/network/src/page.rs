//! Paging: where the next page is, as durable text that names no host.
//!
//! A token is the parameters that a page is asked for with beside those of the first, encoded as in
//! an address. Of a body of JSON, a name that ends in `:` stands for a number.

mod link;
mod rule;

pub(crate) use rule::{PageEnds, PageRule, PageStyle, Places, SinceRule, TimeRule};

use crate::body::{Carried, is_number};
use crate::json;
use crate::network::Query;
use crate::read::{Answer, Found, Reading};
use crate::request::id_named;
use kittiwake_model::{Identity, Object, OutcomeCode, Value, WorldTime};
use rule::Seen;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use url::{Url, form_urlencoded};

/// Which page of a list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page<'a> {
    First,
    /// The first page of an incremental walk: what is newer than this mark.
    Since(&'a str),
    /// A token that an earlier reading returned.
    Next(&'a str),
}

/// The longest token that is kept.
pub(crate) const TOKEN_BYTES_MAX: usize = 2_048;
/// The part of a token that tells what the page before showed. It is not sent.
const SEEN: &str = ".seen";
/// What OAuth 2 calls a token in an address: servers write it there even if it came in a header.
const ACCESS_TOKEN: &str = "access_token";

pub(crate) const ON_ANOTHER_HOST: &str = "next page on another host";
const ON_ANOTHER_PATH: &str = "next page on another path";
const THE_SAME: &str = "next page is the same page";
const UNREADABLE: &str = "next page cannot be read";
const NO_ID: &str = "no item has the id that the next page begins at";

/// The parameters of a token; `None` when it is none of ours.
pub(crate) fn token_parameters(token: &str) -> Option<Vec<(String, String)>> {
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || !token.is_ascii() {
        return None;
    }
    let parameters: Vec<(String, String)> = form_urlencoded::parse(token.as_bytes())
        .into_owned()
        .collect();
    let is_sound = parameters.iter().all(|(name, _)| !name.is_empty());
    (is_sound && !parameters.is_empty()).then_some(parameters)
}

/// What a page is asked for with beside the parameters of the first, and the cursor as it is
/// logged; `None` when the page is none of this query's.
pub(crate) fn asked_with(
    query: &Query,
    page: Page<'_>,
) -> Option<(Vec<(String, Carried)>, String)> {
    let pairs = match page {
        Page::First => Vec::new(),
        Page::Since(mark) => mark_pair(query, mark)?.into_iter().collect(),
        Page::Next(token) => {
            query.page.as_ref()?;
            let mut pairs = token_parameters(token)?;
            pairs.retain(|(name, _)| name != SEEN);
            pairs
        }
    };
    let cursor = encode(&pairs);
    let mut carried = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        match name.strip_suffix(':').filter(|_| query.sending.is_json()) {
            Some(name) if is_number(&value) => {
                carried.push((name.to_owned(), Carried::Json(value)));
            }
            Some(_) => return None,
            None => carried.push((name, Carried::Text(value))),
        }
    }
    Some((carried, cursor))
}

/// How a mark is sent: the outer `None` is a mark that is none, the inner one a walk that takes no
/// parameter.
#[expect(clippy::option_option, reason = "a bad mark and no parameter differ")]
fn mark_pair(query: &Query, mark: &str) -> Option<Option<(String, String)>> {
    if mark.is_empty() || mark.len() > TOKEN_BYTES_MAX {
        return None;
    }
    if query.is_conditional {
        return Some(None);
    }
    if let Some(since) = &query.since {
        return Some(Some((since.parameter.clone(), mark.to_owned())));
    }
    let times = query.times.as_ref()?;
    let begin = times.begin_of(mark)?;
    let Some(parameter) = &times.parameter else {
        return Some(None);
    };
    let name = if query.sending.is_json() && times.format.is_number() {
        format!("{parameter}:")
    } else {
        parameter.clone()
    };
    Some(Some((name, times.format.write(begin.micros())?)))
}

fn encode(pairs: &[(String, String)]) -> String {
    let mut token = form_urlencoded::Serializer::new(String::new());
    token.extend_pairs(pairs);
    token.finish()
}

impl Query {
    /// Whether a walk from a mark goes on towards the present; any other goes from the newest item
    /// back to the mark.
    pub fn goes_forward(&self) -> bool {
        let style = self.page.as_ref().map(|page| &page.style);
        self.since.is_some() && style == Some(&PageStyle::Link)
    }

    /// The parameter that takes a mark.
    pub(crate) fn mark_parameter(&self) -> Option<&str> {
        let since = self.since.as_ref().map(|since| since.parameter.as_str());
        since.or_else(|| self.times.as_ref()?.parameter.as_deref())
    }

    /// Items that the network shows of a list at the most.
    pub fn items_max(&self) -> Option<u32> {
        self.page.as_ref()?.items_max
    }

    /// Where a walk back from the newest item ends: everything older was collected before.
    pub fn ends_before(&self, mark: &str) -> Option<WorldTime> {
        let times = self.times.as_ref().filter(|it| it.parameter.is_none())?;
        times.begin_of(mark)
    }

    /// The mark after a page whose newest item is of this time, in lists whose marks are times. No
    /// mark lies behind the beginning of its walk: what came later is not on its pages, and dates
    /// can be forged.
    pub fn mark_after(
        &self,
        before: Option<&str>,
        latest: Option<WorldTime>,
        started: WorldTime,
    ) -> Option<String> {
        self.times.as_ref()?;
        let before = before.and_then(crate::time::read_rfc3339);
        let before = before.map(|(at_us, _)| WorldTime(at_us));
        let newest = before.max(latest.map(|latest| latest.min(started)))?;
        crate::time::write_rfc3339(newest.micros())
    }
}

/// The address of the next page in a `Link` header.
pub(crate) fn next_in_link(header: &str) -> Option<&str> {
    link::related(header, "next")
}

/// Whether a page goes towards newer items.
pub(crate) fn is_forward(query: &Query, page: Page<'_>) -> bool {
    let Some(since) = query.since.as_ref().filter(|_| query.goes_forward()) else {
        return false;
    };
    match page {
        Page::First => false,
        Page::Since(_) => true,
        Page::Next(token) => token_parameters(token)
            .is_some_and(|pairs| pairs.iter().any(|(name, _)| *name == since.parameter)),
    }
}

/// Whether an answer without a list is a page all the same: what the cursor stands in is there.
pub(crate) fn is_bare_page(query: &Query, text: &str) -> bool {
    let Some(page) = &query.page else {
        return false;
    };
    let around = page.places.look(text).around;
    around.is_some_and(json::is_object)
}

/// Takes from an answer what it tells of the pages around it.
pub(crate) fn take_page(answer: &Answer<'_>, text: &str, found: &[Found], reading: &mut Reading) {
    let query = answer.query;
    reading.listed = reading.items;
    let Some(rule) = &query.page else {
        return;
    };
    let lists = || found.iter().filter(|one| rule.lists.contains(&one.select));
    let listed: Vec<&Object> = lists()
        .flat_map(|one| &one.taken.objects)
        .map(|place| &reading.objects[*place as usize])
        .collect();
    let seen = rule.places.look(text);
    let items = seen.items();
    // Lists that page together go on as long as the longest of them does.
    let longest = if rule.places.looks_at_lists() {
        items.iter().map(Vec::len).max()
    } else {
        lists().map(|one| one.taken.objects.len()).max()
    };
    let count = longest.unwrap_or(0) as u32;
    if query.incremental {
        reading.oldest = listed.iter().filter_map(|object| created(object)).min();
    }
    if let Some(times) = &query.times {
        reading.latest = times.latest(&items.concat());
    }
    let is_forward = is_forward(query, answer.page);
    if let Some(since) = &query.since
        && (is_forward || !matches!(answer.page, Page::Next(_)))
    {
        reading.newest = ids(&listed, &since.alias, answer.host)
            .max_by(|left, right| order_of_ids(left, right))
            .map(str::to_owned);
    }
    let turn = Turn {
        answer,
        rule,
        seen,
        count,
        listed: &listed,
    };
    let next = turn.next();
    let listed = count.saturating_sub(turn.repeated());
    reading.listed = listed;
    match next {
        Ok(next) => reading.next = next.filter(|_| !is_walk_over(answer, is_forward, reading)),
        Err(reason) => {
            reading.outcome = OutcomeCode::Malformed;
            reason.clone_into(&mut reading.reason);
        }
    }
    if reading.next.is_some() && reading.outcome == OutcomeCode::Empty {
        reading.outcome = OutcomeCode::Ok;
    }
}

fn ids<'o>(
    objects: &'o [&'o Object],
    alias: &'o str,
    host: &'o str,
) -> impl Iterator<Item = &'o str> {
    let identities = objects.iter().map(|object| &object.identity);
    identities.filter_map(move |identity: &Identity| id_named(identity, alias, host))
}

fn created(object: &Object) -> Option<WorldTime> {
    let mut fields = object.groups.iter().flat_map(|group| &group.fields);
    fields.find_map(|(name, value)| match value {
        Value::Time { at_us, .. } if &**name == "created_us" => Some(WorldTime(*at_us)),
        _ => None,
    })
}

/// A walk towards the present always has a next page; it ends at an empty one, or, where the
/// definition says so, at a short one.
fn is_walk_over(answer: &Answer<'_>, is_forward: bool, reading: &Reading) -> bool {
    if !is_forward {
        return false;
    }
    let is_short = match (&answer.query.page, &answer.query.since) {
        (Some(page), Some(since)) => {
            since.is_ended_by_short_page && reading.items < page.asked_size(answer.url)
        }
        _ => false,
    };
    reading.mended == 0 && (reading.items == 0 || is_short)
}

/// Ids that are numbers written as text: the longer is the greater.
fn order_of_ids(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// A page that was read, at the turn to the next.
struct Turn<'a> {
    answer: &'a Answer<'a>,
    rule: &'a PageRule,
    seen: Seen<'a>,
    /// Items that came, whether or not they could be read.
    count: u32,
    listed: &'a [&'a Object],
}

impl Turn<'_> {
    /// The token of the page after this one; an error says why there is one that cannot be used.
    fn next(&self) -> Result<Option<String>, &'static str> {
        if self.is_last() {
            return Ok(None);
        }
        match &self.rule.style {
            PageStyle::Link => {
                let header = (self.answer.header)("link").unwrap_or_default();
                let relation = if is_forward(self.answer.query, self.answer.page) {
                    "prev"
                } else {
                    "next"
                };
                let address = link::related(&header, relation);
                address.map(|it| self.by_address(it)).transpose()
            }
            PageStyle::Next => {
                let address = self.value()?.filter(|value| !value.is_number);
                address.map(|it| self.by_address(&it.text)).transpose()
            }
            PageStyle::Cursor { parameter, last } => {
                let value = self.value()?.filter(|value| !last.contains(&value.text));
                value
                    .map(|value| self.by_value(parameter, &value))
                    .transpose()
            }
            PageStyle::Number { parameter, first } => {
                let current = self.asked_number(parameter, u64::from(*first))?;
                self.by_count(parameter, current.saturating_add(1))
            }
            PageStyle::Offset { parameter } => {
                let current = self.asked_number(parameter, 0)?;
                self.by_count(parameter, current.saturating_add(u64::from(self.count)))
            }
            PageStyle::Ids {
                parameter,
                alias,
                is_inclusive,
            } => self.by_oldest(parameter, alias, *is_inclusive),
        }
    }

    /// Whether the page itself says that none follows.
    fn is_last(&self) -> bool {
        let is_over = match self.rule.ends {
            PageEnds::Token => false,
            PageEnds::Empty => self.count == 0,
            PageEnds::Short => self.count < self.rule.asked_size(self.answer.url),
        };
        is_over || self.seen.more.is_some_and(json::is_falsy)
    }

    /// The value that leads to the next page.
    fn value(&self) -> Result<Option<Token>, &'static str> {
        let Some(raw) = self.seen.at.filter(|raw| !json::is_falsy(raw)) else {
            return Ok(None);
        };
        let is_number = json::is_number(raw);
        let text = if is_number {
            raw.to_owned()
        } else {
            json::id_text(raw, &mut 0).ok_or(UNREADABLE)?
        };
        let token = Token { text, is_number };
        Ok(Some(token).filter(|token| !token.text.is_empty()))
    }

    fn by_value(&self, parameter: &str, value: &Token) -> Result<String, &'static str> {
        let is_typed = value.is_number && self.answer.query.sending.is_json();
        let name = if is_typed {
            format!("{parameter}:")
        } else {
            parameter.to_owned()
        };
        self.token(vec![(name, value.text.clone())])
    }

    /// A page by its number. A server that answers any number with the same page would be asked
    /// for ever; so a page that shows what the one before showed leads back to itself.
    fn by_count(&self, parameter: &str, number: u64) -> Result<Option<String>, &'static str> {
        let seen = digest_of(self.listed);
        if self.asked(SEEN).is_some_and(|before| before == seen)
            && let Page::Next(token) = self.answer.page
        {
            return Ok(Some(token.to_owned()));
        }
        let name = if self.answer.query.sending.is_json() {
            format!("{parameter}:")
        } else {
            parameter.to_owned()
        };
        let pairs = vec![(name, number.to_string()), (SEEN.to_owned(), seen)];
        self.token(pairs).map(Some)
    }

    fn by_oldest(
        &self,
        parameter: &str,
        alias: &str,
        is_inclusive: bool,
    ) -> Result<Option<String>, &'static str> {
        if self.count == 0 {
            return Ok(None);
        }
        let host = self.answer.host;
        let oldest = ids(self.listed, alias, host).min_by(|left, right| order_of_ids(left, right));
        let oldest = oldest.ok_or(NO_ID)?;
        let bound = self.asked(parameter).filter(|_| is_inclusive);
        if bound.is_some_and(|bound| ids(self.listed, alias, host).all(|id| id == bound)) {
            return Ok(None);
        }
        let pairs = vec![(parameter.to_owned(), oldest.to_owned())];
        self.token(pairs).map(Some)
    }

    /// Items that only came again, since they are the bound.
    fn repeated(&self) -> u32 {
        let PageStyle::Ids {
            parameter,
            alias,
            is_inclusive: true,
        } = &self.rule.style
        else {
            return 0;
        };
        let bound = self.asked(parameter);
        let again =
            ids(self.listed, alias, self.answer.host).filter(|id| Some(*id) == bound.as_deref());
        again.count() as u32
    }

    /// What the page was asked for with, beside the parameters of the first.
    fn own(&self) -> Vec<(String, String)> {
        match self.answer.page {
            Page::First => Vec::new(),
            Page::Since(mark) => mark_pair(self.answer.query, mark)
                .flatten()
                .into_iter()
                .collect(),
            Page::Next(token) => token_parameters(token).unwrap_or_default(),
        }
    }

    fn asked(&self, parameter: &str) -> Option<String> {
        let mut own = self.own().into_iter();
        own.find(|(name, _)| plain(name) == parameter)
            .map(|(_, value)| value)
    }

    fn asked_number(&self, parameter: &str, first: u64) -> Result<u64, &'static str> {
        match self.asked(parameter) {
            Some(number) => number.parse().map_err(|_| UNREADABLE),
            None => Ok(first),
        }
    }

    /// A token of what leads to the next page, and of the mark that the walk began at.
    fn token(&self, pairs: Vec<(String, String)>) -> Result<String, &'static str> {
        let query = self.answer.query;
        let marked = query.mark_parameter();
        let mut all: Vec<(String, String)> = self.own();
        all.retain(|(name, _)| marked.is_some_and(|marked| plain(name) == marked));
        all.retain(|(name, _)| pairs.iter().all(|(new, _)| new != name));
        all.extend(pairs);
        let token = encode(&all);
        (token.len() <= TOKEN_BYTES_MAX)
            .then_some(token)
            .ok_or(UNREADABLE)
    }

    /// The parameters of the next page's address that the first page does not have.
    fn by_address(&self, address: &str) -> Result<String, &'static str> {
        let (base, asked) = (self.answer.base, self.answer.url);
        let target = asked.join(address).map_err(|_| UNREADABLE)?;
        if !is_same_place(&target, base) {
            return Err(ON_ANOTHER_HOST);
        }
        if target.path() != asked.path() && !self.rule.takes_other_paths {
            return Err(ON_ANOTHER_PATH);
        }
        let token = self.differing_parameters(&target);
        if token.is_empty() {
            return Err(THE_SAME);
        }
        if token.len() > TOKEN_BYTES_MAX {
            return Err(UNREADABLE);
        }
        Ok(token)
    }

    fn differing_parameters(&self, target: &Url) -> String {
        let own = self.own();
        let first: Vec<_> = self
            .answer
            .url
            .query_pairs()
            .filter(|(name, _)| !own.iter().any(|(known, _)| known == name))
            .collect();
        let mut token = form_urlencoded::Serializer::new(String::new());
        for (name, value) in target.query_pairs() {
            let is_first = first
                .iter()
                .any(|(known, same)| *known == name && *same == value);
            // Servers repeat the key that they were asked with; a cursor is stored and logged.
            let secrets = &self.answer.query.secret_parameters;
            let is_secret = name == ACCESS_TOKEN || secrets.iter().any(|key| *key == name);
            if !is_first && !is_secret && !name.is_empty() {
                token.append_pair(&name, &value);
            }
        }
        token.finish()
    }
}

/// A parameter's name without what says that it is a number.
fn plain(name: &str) -> &str {
    name.strip_suffix(':').unwrap_or(name)
}

/// A value that leads to the next page, as it is written.
struct Token {
    text: String,
    is_number: bool,
}

/// Same host and port. A server behind a proxy may write `http` for `https`; since the address
/// itself is never followed, that does no harm.
fn is_same_place(target: &Url, base: &Url) -> bool {
    let is_web = matches!(target.scheme(), "http" | "https");
    let has_default_ports = target.port().is_none() && base.port().is_none();
    is_web
        && target.host_str() == base.host_str()
        && (has_default_ports || target.port_or_known_default() == base.port_or_known_default())
}

/// Which objects a page shows, in short.
fn digest_of(objects: &[&Object]) -> String {
    let mut hasher = Sha256::new();
    for object in objects {
        let identity = &object.identity;
        let aliases = identity.aliases.iter().map(|alias| &alias.id);
        for id in identity.canonical.iter().chain(aliases) {
            hasher.update((id.len() as u64).to_le_bytes());
            hasher.update(id.as_bytes());
        }
    }
    let digest = hasher.finalize();
    digest
        .iter()
        .take(8)
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_read_back() {
        assert_eq!(
            token_parameters("max_id=1&a%5B%5D=%F0%9F%90%A6"),
            Some(vec![
                ("max_id".into(), "1".into()),
                ("a[]".into(), "🐦".into())
            ])
        );
        assert_eq!(token_parameters(""), None);
        assert_eq!(token_parameters("=x"), None);
        assert_eq!(token_parameters(&"a".repeat(5_000)), None);
    }

    proptest! {
        #[test]
        fn any_pairs_read_back(name in "[a-z:.\\[\\]]{1,9}", value in any::<String>()) {
            let pairs = vec![(name, value)];
            let token = encode(&pairs);
            prop_assume!(token.len() <= TOKEN_BYTES_MAX);
            prop_assert_eq!(token_parameters(&token), Some(pairs));
        }

        #[test]
        fn any_token_is_survived(token in any::<String>()) {
            token_parameters(&token);
        }
    }
}
