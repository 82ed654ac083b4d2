//! What a definition tells of calls before they are made: how long a list will be, and what its
//! pages cost.

use crate::network::{AuthNeed, Network, Query, QueryCost};
use crate::page::PageStyle;
use crate::shape::Items;
use kittiwake_model::{Cost, LinkTable, List, Table};

/// Which column of a subject tells how long a list of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Length {
    Following,
    Followers,
    Posts,
    Reposts,
    Likes,
}

impl Length {
    /// The column that holds it.
    pub const fn column(self) -> &'static str {
        match self {
            Self::Following => "following_count",
            Self::Followers => "followers_count",
            Self::Posts => "statuses_count",
            Self::Reposts => "reposts_count",
            Self::Likes => "likes_count",
        }
    }
}

/// Where in a walk a page stands, as far as its price is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PagePlace {
    First,
    /// The first page behind a mark.
    Since,
    Further,
}

impl Query {
    /// Items on a full page; nothing for a query that has no pages.
    pub fn page_size(&self) -> Option<u32> {
        self.page.as_ref().map(|page| page.size.max(1))
    }
}

impl Network {
    /// The count of its subject by which the length of a query's list is known beforehand.
    pub fn length_of(&self, query: &Query) -> Option<Length> {
        query.page.as_ref()?;
        match query.list {
            Some(List::Following) => return Some(Length::Following),
            Some(List::Followers) => return Some(Length::Followers),
            None => {}
        }
        let subject = self.table_of(&query.kind)?;
        let mut items = query
            .selects
            .iter()
            .filter(|select| select.items != Items::One);
        let select = items.next()?;
        let item = self.shapes.get(select.shape)?.table;
        match (&select.link, subject, item) {
            (None, Table::Users, Table::Statuses) => Some(Length::Posts),
            (Some(link), Table::Statuses, Table::Users) if link.table == LinkTable::Links => {
                match &*link.kind {
                    "repost" => Some(Length::Reposts),
                    "like" => Some(Length::Likes),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The table in which objects of a type are kept.
    pub fn table_of(&self, kind: &str) -> Option<Table> {
        let shape = self.find_type(kind)?.shape;
        Some(self.shapes.get(shape)?.table)
    }

    /// What a call will take of which budgets, before it is known whom it asks for. Whatever a
    /// server puts into the address of a further page is taken for what a budget looks for.
    pub fn costs_of(
        &self,
        query: &Query,
        place: PagePlace,
        is_authenticated: bool,
        subjects: u64,
    ) -> Vec<Cost> {
        let is_authenticated = is_authenticated && query.auth != AuthNeed::None;
        let size = query.page_size().map_or(1, u64::from);
        let items_max = size.max(subjects);
        let applies = |cost: &&QueryCost| {
            let condition = &self.conditions[cost.budget];
            let wanted = &condition.any_parameter;
            condition
                .authenticated
                .is_none_or(|it| it == is_authenticated)
                && (wanted.is_empty()
                    || place == PagePlace::Further
                    || wanted.iter().any(|name| query.has_parameter(name, place)))
        };
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

impl Query {
    /// Whether a first page is asked for with a parameter of this name.
    fn has_parameter(&self, name: &str, place: PagePlace) -> bool {
        let is_fixed = self.parameters.iter().any(|(known, _)| known == name);
        let is_size = self
            .page
            .as_ref()
            .is_some_and(|page| page.size_parameter.as_deref() == Some(name));
        let is_mark = place == PagePlace::Since && self.mark_parameter() == Some(name);
        let style = self.page.as_ref().map(|page| &page.style);
        let is_number =
            matches!(style, Some(PageStyle::Number { parameter, .. }) if parameter == name);
        is_fixed || is_size || is_mark || is_number
    }
}
