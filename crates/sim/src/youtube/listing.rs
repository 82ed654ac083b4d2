//! Pages of resources, and the marks by which an unchanged answer is told.

use serde_json::{Map, Value, json};

use super::Call;
use super::ids::{BEGINNING, mark, page_token, read_page_token};
use super::refusal::Refused;
use crate::answer::{Answer, JSON};
use crate::dialect::slice;
use crate::spoil::Spoil;

/// So many ids are taken in one call.
const IDS_MAX: usize = 50;

impl<T> Page<T> {
    /// The same page with something else for each item.
    pub(super) fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(change).collect(),
            next: self.next,
            size: self.size,
            spoilt: self.spoilt,
        }
    }

    /// Everything on one page.
    pub(super) fn whole(items: Vec<T>) -> Self {
        Self {
            size: items.len(),
            items,
            next: None,
            spoilt: None,
        }
    }
}

/// How many results a page may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) default: usize,
    pub(super) min: usize,
    pub(super) max: usize,
}

pub(super) const OF_RESOURCES: Sizes = Sizes {
    default: 5,
    min: 0,
    max: 50,
};
pub(super) const OF_COMMENTS: Sizes = Sizes {
    default: 20,
    min: 1,
    max: 100,
};

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
    pub(super) size: usize,
    pub(super) spoilt: Option<Spoil>,
}

/// A list that does not say where it ends: the last page that is full leads to an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Known,
    FoundOut,
}

impl Call<'_> {
    /// How many results were asked for. More than there may be is an error, not a smaller page.
    pub(super) fn size(&self, sizes: Sizes) -> Result<usize, Refused> {
        let Some(asked) = self.params.get("maxResults") else {
            return Ok(sizes.default);
        };
        let (min, max) = (sizes.min, sizes.max);
        let size = asked.parse().ok();
        let size = size.filter(|size| (min..=max).contains(size));
        let invalid = || {
            let message =
                format!("Invalid value '{asked}'. Values must be within the range: [{min}, {max}]");
            Refused::Invalid("maxResults", message)
        };
        size.ok_or_else(invalid)
    }

    /// After which number the page begins.
    pub(super) fn after(&self) -> Result<Option<u64>, Refused> {
        let Some(token) = self.params.get("pageToken").filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let after = read_page_token(token).ok_or(Refused::InvalidPageToken)?;
        Ok(Some(after).filter(|after| *after != BEGINNING))
    }

    /// The ids that were asked for, each once.
    pub(super) fn ids(&self) -> Result<Option<Vec<&str>>, Refused> {
        let Some(ids) = self.params.get("id") else {
            return Ok(None);
        };
        let mut asked: Vec<&str> = Vec::new();
        for id in ids.split(',').filter(|id| !id.is_empty()) {
            if !asked.contains(&id) {
                asked.push(id);
            }
        }
        if asked.len() > IDS_MAX {
            return Err(Refused::TooManyIds);
        }
        Ok(Some(asked))
    }

    /// The page of a list that was asked for. Items are in the order of `is_before`: whether an item stands before
    /// the place after the item with a number, or at it.
    pub(super) fn page<T: Clone>(
        &self,
        list: &[T],
        sizes: Sizes,
        end: End,
        spoil: Option<Spoil>,
        number_of: impl Fn(&T) -> u64,
        is_before: impl Fn(&T, u64) -> bool,
    ) -> Result<Page<T>, Refused> {
        let size = self.size(sizes)?;
        let start = match self.after()? {
            Some(after) => list.partition_point(|item| is_before(item, after)),
            None => 0,
        };
        let cut = slice(list, start, size, spoil);
        let is_full = size > 0 && cut.items.len() >= size;
        let ends_unseen = end == End::FoundOut && cut.next.is_none() && is_full;
        let next = cut.next.or_else(|| ends_unseen.then_some(list.len()));
        let after = |place: usize| {
            let item = place.checked_sub(1).and_then(|place| list.get(place));
            page_token(item.map_or(BEGINNING, &number_of))
        };
        Ok(Page {
            items: cut.items,
            next: next.map(after),
            size,
            spoilt: cut.spoilt,
        })
    }
}

/// A resource as lists have it: what it is, its mark, its id, and the parts of it.
pub(super) fn resource(kind: &str, id: Value, parts: Map<String, Value>) -> Value {
    let mut resource = Map::new();
    resource.insert("kind".to_owned(), json!(format!("youtube#{kind}")));
    resource.insert("etag".to_owned(), json!(""));
    resource.insert("id".to_owned(), id);
    resource.extend(parts);
    let mut resource = Value::Object(resource);
    resource["etag"] = json!(mark(resource.to_string().as_bytes()));
    resource
}

/// A list of resources as it is sent, but for its mark.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) body: Value,
    spoilt: Option<Spoil>,
}

/// A list of resources.
pub(super) fn listed(kind: &str, page: Page<Value>, total: usize) -> Listed {
    let mut body = json!({
        "kind": format!("youtube#{kind}ListResponse"),
        "etag": "",
        "items": page.items,
        "pageInfo": { "totalResults": total, "resultsPerPage": page.size },
    });
    if let Some(next) = page.next {
        body["nextPageToken"] = json!(next);
    }
    Listed {
        body,
        spoilt: page.spoilt,
    }
}

impl Listed {
    /// The answer with its mark, or only that nothing has changed.
    pub(super) fn answer(mut self, if_none_match: Option<&str>) -> Answer {
        let etag = mark(self.body.to_string().as_bytes());
        self.body["etag"] = json!(etag);
        let is_known = if_none_match.is_some_and(|known| {
            let mut marks = known.split(',').map(|mark| mark.trim().trim_matches('"'));
            marks.any(|mark| mark == etag)
        });
        let items = self.body["items"].as_array().map_or(0, Vec::len);
        let answer = if is_known {
            Answer::with_body(304, JSON, Vec::new())
        } else {
            Answer::json(&self.body)
        };
        Answer {
            headers: vec![("etag".into(), etag)],
            items: Some(items as u64),
            spoilt: self.spoilt,
            ..answer
        }
    }
}

/// Pictures of one thing in several sizes.
pub(super) fn thumbnails(sizes: &[(&str, &str, u32, u32)]) -> Value {
    let mut pictures = Map::new();
    for (name, url, width, height) in sizes {
        let picture = json!({ "url": url, "width": width, "height": height });
        pictures.insert((*name).to_owned(), picture);
    }
    Value::Object(pictures)
}
