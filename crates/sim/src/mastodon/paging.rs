//! Pages by id bounds, and the links between them.

use url::form_urlencoded;

use crate::params::Params;
use crate::spoil::{OVERLAP, Spoil};
use crate::world::World;
use crate::world::ids::as_number;

/// The parameters that choose a page; any of them makes a call count as paging.
pub(crate) const CURSOR_NAMES: [&str; 4] = ["page", "max_id", "since_id", "min_id"];

/// The parameters that chose a page, as the ledger has them. An offset chooses a page, too, but does
/// not count as paging.
pub(crate) fn cursor(params: &Params) -> String {
    params.only(&["page", "max_id", "since_id", "min_id", "offset"])
}

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
    pub(crate) fn read(
        params: &Params,
        limit_default: usize,
        read_id: impl Fn(&str) -> u64,
    ) -> Self {
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
                .map(&read_id)
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

impl Bounds {
    /// The items of a whole list, newest first, that a walk saw just before this page; those next to
    /// the page. None before a first page.
    pub(crate) fn before<T: Clone>(&self, list: &[T], id_of: impl Fn(&T) -> u64) -> Vec<T> {
        if let Some(min_id) = self.min_id {
            let older = list.iter().filter(|item| id_of(item) <= min_id);
            return older.take(OVERLAP).cloned().collect();
        }
        let Some(max_id) = self.max_id else {
            return Vec::new();
        };
        let newer: Vec<&T> = list.iter().filter(|item| id_of(item) >= max_id).collect();
        let first = newer.len().saturating_sub(OVERLAP);
        newer[first..].iter().map(|&item| item.clone()).collect()
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
    /// Whose ids the links hold.
    pub(crate) world: &'a World,
    pub(crate) home: usize,
}

impl LinkBase<'_> {
    /// The `Link` header: none for an empty page, no next page after one that is not full.
    pub(crate) fn header<T>(&self, page: &Page<T>) -> Option<String> {
        let (newest, oldest) = page.ends?;
        let newer = format!("<{}>; rel=\"prev\"", self.url_with(self.newer_name, newest));
        if !page.has_next {
            return Some(newer);
        }
        let older = if page.spoilt == Some(Spoil::RepeatedNext) {
            self.url_of_this_page()
        } else {
            self.url_with("max_id", oldest)
        };
        Some(format!("<{older}>; rel=\"next\", {newer}"))
    }

    fn url_of_this_page(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.params.all_pairs())
            .finish();
        format!("{}?{query}", self.url)
    }

    fn url_with(&self, name: &str, id: u64) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.params.without(&CURSOR_NAMES))
            .append_pair(name, &self.world.local_item_id(self.home, id))
            .finish();
        format!("{}?{query}", self.url)
    }
}

/// A page, newest first, and what its links are made from.
#[derive(Debug, Clone)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The ids between which the links lead on.
    ends: Option<(u64, u64)>,
    has_next: bool,
    pub(crate) spoilt: Option<Spoil>,
}

impl<T: Clone> Page<T> {
    /// A page of which the next one is told when it has at least so many items.
    pub(crate) fn new(items: Vec<T>, next_from_count: usize, id_of: impl Fn(&T) -> u64) -> Self {
        Self {
            ends: ends(&items, id_of),
            has_next: items.len() >= next_from_count,
            items,
            spoilt: None,
        }
    }

    /// Spoils the page as asked, or in another way if it does not lend itself to that, or not at
    /// all. `before` are the items that a walk saw just before.
    pub(crate) fn spoil(
        mut self,
        spoil: Option<Spoil>,
        bounds: Bounds,
        before: impl FnOnce() -> Vec<T>,
        id_of: impl Fn(&T) -> u64,
    ) -> Self {
        let Some(spoil) = spoil.filter(|_| !self.items.is_empty()) else {
            return self;
        };
        let is_upwards = bounds.min_id.is_some();
        let before = before();
        // What is pushed off a full page comes with the next one; off another it would be lost.
        let is_full = self.items.len() >= bounds.limit && self.items.len() > before.len();
        self.spoilt = Some(match spoil {
            Spoil::RepeatedNext if self.has_next => spoil,
            Spoil::Shuffled if self.items.len() > 1 => {
                self.items.reverse();
                spoil
            }
            Spoil::Shifted if is_full && !before.is_empty() => {
                let kept = self.items.len() - before.len();
                if is_upwards {
                    self.items.drain(..before.len());
                    self.items.extend(before);
                } else {
                    self.items.truncate(kept);
                    self.items.splice(..0, before);
                }
                self.ends = ends(&self.items, id_of);
                spoil
            }
            _ => {
                let repeated = if before.is_empty() {
                    self.items.iter().take(OVERLAP).cloned().collect()
                } else {
                    before
                };
                if is_upwards || bounds.max_id.is_none() {
                    self.items.extend(repeated);
                } else {
                    self.items.splice(..0, repeated);
                }
                Spoil::Duplicates
            }
        });
        self
    }
}

fn ends<T>(items: &[T], id_of: impl Fn(&T) -> u64) -> Option<(u64, u64)> {
    Some((id_of(items.first()?), id_of(items.last()?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(query: &str) -> Bounds {
        Bounds::read(&Params::read(query), 40, as_number)
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
        let world = World::new(1, 1, 1_790_000_000_000_000).unwrap();
        let base = LinkBase {
            world: &world,
            home: 0,
            url: "http://h/p",
            params: &params,
            newer_name: "min_id",
        };
        let page = |ids: &[u64]| Page::new(ids.to_vec(), 2, |&id| id);
        let full = base.header(&page(&[6, 5])).unwrap();
        assert_eq!(
            full,
            "<http://h/p?limit=2&max_id=5>; rel=\"next\", <http://h/p?limit=2&min_id=6>; rel=\"prev\""
        );
        let short = base.header(&page(&[6])).unwrap();
        assert_eq!(short, "<http://h/p?limit=2&min_id=6>; rel=\"prev\"");
        assert_eq!(base.header(&page(&[])), None);
    }

    /// Walks a list of which every page is spoilt in turn, down or up.
    fn walk_spoilt(
        count: u64,
        limit: usize,
        is_upwards: bool,
        spoils: &[Option<Spoil>],
    ) -> Vec<u64> {
        let whole: Vec<u64> = (1..=count).rev().map(|number| number * 3).collect();
        let mut bounds = Bounds {
            limit,
            max_id: None,
            since_id: None,
            min_id: is_upwards.then_some(0),
        };
        let mut walked = Vec::new();
        for spoil in spoils.iter().cycle().take(4 * count as usize + 4) {
            let page = Page::new(bounds.cut(whole.clone(), |&id| id), limit, |&id| id);
            let before = || bounds.before(&whole, |&id| id);
            let page = page.spoil(*spoil, bounds, before, |&id| id);
            walked.extend(&page.items);
            let Some((newest, oldest)) = page.ends.filter(|_| page.has_next) else {
                break;
            };
            if page.spoilt == Some(Spoil::RepeatedNext) {
                continue;
            }
            if is_upwards {
                bounds.min_id = Some(newest);
            } else {
                bounds.max_id = Some(oldest);
            }
        }
        walked.sort_unstable();
        walked.dedup();
        walked
    }

    #[test]
    fn each_way_of_spoiling_shows() {
        let list: Vec<u64> = (1..=20).rev().collect();
        let spoilt = |query: &str, spoil| {
            let bounds = bounds(query);
            let page = Page::new(bounds.cut(list.clone(), |&id| id), bounds.limit, |&id| id);
            let before = || bounds.before(&list, |&id| id);
            let page = page.spoil(Some(spoil), bounds, before, |&id| id);
            (page.items, page.spoilt.unwrap())
        };
        let second = "limit=5&max_id=16";
        assert_eq!(
            spoilt(second, Spoil::Duplicates),
            (vec![18, 17, 16, 15, 14, 13, 12, 11], Spoil::Duplicates)
        );
        assert_eq!(
            spoilt(second, Spoil::Shifted),
            (vec![18, 17, 16, 15, 14], Spoil::Shifted)
        );
        assert_eq!(
            spoilt(second, Spoil::Shuffled),
            (vec![11, 12, 13, 14, 15], Spoil::Shuffled)
        );
        assert_eq!(
            spoilt("limit=5&min_id=4", Spoil::Shifted),
            (vec![6, 5, 4, 3, 2], Spoil::Shifted)
        );
        // A first page has none before it, and a short one nowhere to go on.
        assert_eq!(
            spoilt("limit=2", Spoil::Shifted),
            (vec![20, 19, 20, 19], Spoil::Duplicates)
        );
        assert_eq!(
            spoilt("limit=5&max_id=3", Spoil::Shifted),
            (vec![5, 4, 3, 2, 1], Spoil::Duplicates)
        );
        assert_eq!(spoilt("limit=50", Spoil::RepeatedNext).1, Spoil::Duplicates);
    }

    proptest! {
        #[test]
        fn a_walk_over_spoilt_pages_misses_nothing(
            count in 0_u64..60,
            limit in 4_usize..20,
            is_upwards: bool,
            places in prop::collection::vec(0_usize..5, 1..9),
        ) {
            let mut spoils: Vec<Option<Spoil>> =
                places.iter().map(|&place| Spoil::ALL.get(place).copied()).collect();
            spoils.push(None);
            let walked = walk_spoilt(count, limit, is_upwards, &spoils);
            let whole: Vec<u64> = (1..=count).map(|number| number * 3).collect();
            prop_assert_eq!(walked, whole);
        }

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
