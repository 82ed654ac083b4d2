//! Lists: cut into pages first, and only then is left out what the caller may not see. So a page may be short or empty
//! though others follow; a list ends where no `next` is.

use serde_json::{Value, json};
use url::form_urlencoded;

use super::Graph;
use super::fields::{Asked, weight};
use super::refusal::Refused;
use crate::dialect::slice;
use crate::spoil::{OVERLAP, Spoil};

const SIZE_DEFAULT: usize = 25;
const SIZE_MAX: usize = 100;
/// So much may be sent at once: items times what their fields weigh.
const AMOUNT_MAX: usize = 6_400;
/// How much less that is for pages of which everything takes long.
const SLOW_DIVISOR: usize = 4;
/// Cursors begin and end like this.
const CURSOR_BEGIN: &str = "QVFIU";
const CURSOR_END: &str = "ZDZD";

/// An item of a list and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Row<T> {
    /// Rises or falls along the list, never twice the same.
    pub(super) number: u64,
    /// Whether the caller may see it; it takes its place all the same.
    pub(super) is_shown: bool,
    pub(super) item: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Rising,
    Falling,
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// Items that are shown just before it.
    pub(super) before: Vec<T>,
    paging: Option<Value>,
    spoilt: Option<Spoil>,
}

/// A page as it is sent.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) body: Value,
    pub(super) spoilt: Option<Spoil>,
}

/// Where a list lies: `/ID/EDGE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) node: &'a str,
    pub(super) edge: &'a str,
    /// Whether everything of this page takes long.
    pub(super) is_slow: bool,
}

impl<T> Page<T> {
    pub(super) fn listed(
        self,
        render: impl Fn(&T) -> Result<Value, Refused>,
    ) -> Result<Listed, Refused> {
        let data: Result<Vec<Value>, Refused> = self.items.iter().map(render).collect();
        let mut body = json!({ "data": data? });
        if let Some(paging) = self.paging {
            body["paging"] = paging;
        }
        Ok(Listed {
            body,
            spoilt: self.spoilt,
        })
    }
}

impl Listed {
    pub(super) fn with_summary(mut self, asked: &Asked<'_>, summary: Value) -> Self {
        if asked.has_summary() {
            self.body["summary"] = summary;
        }
        self
    }
}

pub(super) fn cursor(number: u64) -> String {
    format!("{CURSOR_BEGIN}{number:x}{CURSOR_END}")
}

fn read_cursor(text: &str) -> Option<u64> {
    let number = text.strip_prefix(CURSOR_BEGIN)?.strip_suffix(CURSOR_END)?;
    u64::from_str_radix(number, 16).ok()
}

impl Graph<'_> {
    /// The page of a list that was asked for.
    pub(super) fn page<T: Clone>(
        &self,
        rows: &[Row<T>],
        order: Order,
        place: Place<'_>,
        asked: &Asked<'_>,
    ) -> Result<Page<T>, Refused> {
        let size = match asked.get("limit") {
            None => SIZE_DEFAULT,
            Some(text) => text
                .parse::<usize>()
                .map_err(|_| Refused::InvalidParameter("limit"))?
                .min(SIZE_MAX),
        };
        let start = match asked.get("after").filter(|text| !text.is_empty()) {
            None => 0,
            Some(text) => {
                let after = read_cursor(text).ok_or(Refused::InvalidParameter("after"))?;
                rows.partition_point(|row| match order {
                    Order::Rising => row.number <= after,
                    Order::Falling => row.number >= after,
                })
            }
        };
        if size == 0 {
            return Ok(Page {
                items: Vec::new(),
                before: Vec::new(),
                paging: None,
                spoilt: None,
            });
        }
        let cut = slice(rows, start, size, self.view.spoil);
        let most = AMOUNT_MAX / if place.is_slow { SLOW_DIVISOR } else { 1 };
        if cut.items.len() * weight(&asked.fields) > most {
            return Err(Refused::TooMuchData);
        }
        let paging = (!cut.items.is_empty()).then(|| {
            let at = |place: usize| rows.get(place).map(|row| cursor(row.number));
            let end = start.saturating_add(size).min(rows.len());
            let mut paging = json!({ "cursors": { "before": at(start), "after": at(end - 1) } });
            if let Some(next) = cut.next {
                let after = at(next.saturating_sub(1)).unwrap_or_default();
                paging["next"] = json!(self.address(place, asked, size, ("after", &after)));
            }
            if start > 0 {
                let before = at(start).unwrap_or_default();
                paging["previous"] = json!(self.address(place, asked, size, ("before", &before)));
            }
            paging
        });
        let shown = |row: Row<T>| row.is_shown.then_some(row.item);
        let before = rows[..start].iter().rev().filter(|row| row.is_shown);
        Ok(Page {
            items: cut.items.into_iter().filter_map(shown).collect(),
            before: before.take(OVERLAP).map(|row| row.item.clone()).collect(),
            paging,
            spoilt: cut.spoilt,
        })
    }

    /// The address of another page, with the token in it.
    fn address(
        &self,
        place: Place<'_>,
        asked: &Asked<'_>,
        size: usize,
        cursor: (&str, &str),
    ) -> String {
        let chosen = ["access_token", "pretty", "limit", "after", "before"];
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("access_token", self.token());
        query.append_pair("pretty", "0");
        for (name, value) in &asked.parameters {
            if !chosen.contains(name) {
                query.append_pair(name, value);
            }
        }
        query.append_pair("limit", &size.to_string());
        query.append_pair(cursor.0, cursor.1);
        format!(
            "http://{}/{}/{}/{}?{}",
            self.heard.host,
            self.version(),
            place.node,
            place.edge,
            query.finish()
        )
    }
}
