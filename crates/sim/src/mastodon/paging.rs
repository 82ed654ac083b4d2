//! Pages by id bounds, and the links between them.

use url::form_urlencoded;

use super::route::Params;

/// The parameters that choose a page; any of them makes a call count as paging.
pub(crate) const CURSOR_NAMES: [&str; 4] = ["page", "max_id", "since_id", "min_id"];

pub(crate) fn is_paging(params: &Params) -> bool {
    CURSOR_NAMES
        .iter()
        .any(|name| params.get(name).is_some_and(|value| !value.is_empty()))
}

/// Which part of a list, newest first, is asked for. Bounds are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) limit: usize,
    pub(crate) max_id: Option<u64>,
    pub(crate) since_id: Option<u64>,
    /// The page that follows this id directly, instead of the newest one.
    pub(crate) min_id: Option<u64>,
}

impl Bounds {
    /// A limit above twice the default is quietly lowered to that.
    pub(crate) fn read(params: &Params, limit_default: usize) -> Self {
        let limit = params.get("limit").map_or(limit_default, |asked| {
            let asked = as_number(asked.strip_prefix('-').unwrap_or(asked));
            usize::try_from(asked)
                .unwrap_or(usize::MAX)
                .min(limit_default * 2)
        });
        let id = |name| {
            params
                .get(name)
                .filter(|value| !value.is_empty())
                .map(as_number)
        };
        Self {
            limit,
            max_id: id("max_id"),
            since_id: id("since_id"),
            min_id: id("min_id"),
        }
    }

    /// Cuts the page out of a whole list that is sorted newest first.
    pub(crate) fn cut<T>(&self, list: Vec<T>, id_of: impl Fn(&T) -> u64) -> Vec<T> {
        let above = self.min_id.or(self.since_id);
        let mut kept: Vec<T> = list
            .into_iter()
            .filter(|item| {
                let id = id_of(item);
                self.max_id.is_none_or(|max_id| id < max_id) && above.is_none_or(|bound| id > bound)
            })
            .collect();
        if self.min_id.is_some() {
            let surplus = kept.len().saturating_sub(self.limit);
            kept.drain(..surplus);
        } else {
            kept.truncate(self.limit);
        }
        kept
    }
}

/// As the real server's database reads a number: what does not start with one is 0.
fn as_number(text: &str) -> u64 {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    match &text[..digits] {
        "" => 0,
        number => number
            .parse()
            .unwrap_or(i64::MAX as u64)
            .min(i64::MAX as u64),
    }
}

/// What the links of a list are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkBase<'a> {
    /// Scheme, host and path.
    pub(crate) url: &'a str,
    pub(crate) params: &'a Params,
    /// Timelines go back to newer pages by `min_id`, other lists by `since_id`.
    pub(crate) newer_name: &'static str,
}

impl LinkBase<'_> {
    /// The `Link` header: none for an empty page, no next page after one that is not full.
    pub(crate) fn header(&self, page: PageEnds, limit: usize) -> Option<String> {
        let PageEnds {
            newest,
            oldest,
            count,
        } = page;
        let newest = newest?;
        let newer = format!("<{}>; rel=\"prev\"", self.url_with(self.newer_name, newest));
        match oldest {
            Some(oldest) if count >= limit => {
                let older = self.url_with("max_id", oldest);
                Some(format!("<{older}>; rel=\"next\", {newer}"))
            }
            _ => Some(newer),
        }
    }

    fn url_with(&self, name: &str, id: u64) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.params.without_cursor())
            .append_pair(name, &id.to_string())
            .finish();
        format!("{}?{query}", self.url)
    }
}

/// The ends of a page, newest first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageEnds {
    newest: Option<u64>,
    oldest: Option<u64>,
    count: usize,
}

impl PageEnds {
    pub(crate) fn of<T>(page: &[T], id_of: impl Fn(&T) -> u64) -> Self {
        Self {
            newest: page.first().map(&id_of),
            oldest: page.last().map(&id_of),
            count: page.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(query: &str) -> Bounds {
        Bounds::read(&Params::read(query), 40)
    }

    fn cut(query: &str) -> Vec<u64> {
        bounds(query).cut((1..=10).rev().collect(), |&id| id)
    }

    #[test]
    fn bounds_are_exclusive_and_min_id_takes_the_page_next_to_it() {
        assert_eq!(cut("limit=3"), [10, 9, 8]);
        assert_eq!(cut("limit=3&max_id=8"), [7, 6, 5]);
        assert_eq!(cut("limit=3&since_id=4"), [10, 9, 8]);
        assert_eq!(cut("limit=3&since_id=8"), [10, 9]);
        assert_eq!(cut("limit=3&min_id=4"), [7, 6, 5]);
        assert_eq!(cut("limit=3&min_id=4&max_id=7"), [6, 5]);
        assert!(cut("max_id=nonsense").is_empty());
        assert_eq!(cut("max_id=").len(), 10);
    }

    #[test]
    fn limits_above_the_maximum_are_lowered() {
        assert_eq!(bounds("").limit, 40);
        assert_eq!(bounds("limit=1000").limit, 80);
        assert_eq!(bounds("limit=99999999999999999999").limit, 80);
        assert_eq!(bounds("limit=-7").limit, 7);
        assert_eq!(bounds("limit=x").limit, 0);
    }

    #[test]
    fn links_keep_other_parameters_and_full_pages_only_have_a_next_one() {
        let params = Params::read("limit=2&max_id=7");
        let base = LinkBase {
            url: "http://h/p",
            params: &params,
            newer_name: "min_id",
        };
        let full = base.header(PageEnds::of(&[6_u64, 5], |&id| id), 2).unwrap();
        assert_eq!(
            full,
            "<http://h/p?limit=2&max_id=5>; rel=\"next\", <http://h/p?limit=2&min_id=6>; rel=\"prev\""
        );
        let short = base.header(PageEnds::of(&[6_u64], |&id| id), 2).unwrap();
        assert_eq!(short, "<http://h/p?limit=2&min_id=6>; rel=\"prev\"");
        assert_eq!(base.header(PageEnds::of(&[], |&id: &u64| id), 2), None);
    }

    proptest! {
        #[test]
        fn walking_by_max_id_sees_everything_once(count in 0_u64..300, limit in 1_usize..90) {
            let whole: Vec<u64> = (1..=count).rev().map(|number| number * 3).collect();
            let mut walked = Vec::new();
            let mut bounds = Bounds { limit, max_id: None, since_id: None, min_id: None };
            loop {
                let page = bounds.cut(whole.clone(), |&id| id);
                let Some(&last) = page.last() else { break };
                bounds.max_id = Some(last);
                walked.extend(page);
            }
            prop_assert_eq!(walked, whole);
        }
    }
}
