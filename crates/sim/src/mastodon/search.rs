//! Searching: accounts by the beginning of their names, posts by their words, tags by their
//! beginning. Which users and posts can be found at all: `world/sample.rs`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::Problem;
use super::entities::Status;
use super::render::Renderer;
use crate::answer::Answer;
use crate::params::Params;
use crate::world::time::{DAY_S, day_of};
use crate::world::{Post, TAGS, tag_path, tag_place};

const RESULTS_PER_TYPE: usize = 20;
/// A tag's use is told for so many days.
const HISTORY_DAYS: i64 = 7;

#[derive(Debug, Default, Serialize)]
struct Results {
    accounts: Vec<Arc<RawValue>>,
    statuses: Vec<Status>,
    hashtags: Vec<TagEntity>,
    collections: [(); 0],
}

#[derive(Debug, Serialize)]
struct TagEntity {
    id: String,
    name: &'static str,
    url: String,
    history: Vec<TagDay>,
    #[serde(flatten)]
    viewer: Option<TagViewer>,
}

#[derive(Debug, Serialize)]
struct TagDay {
    day: String,
    accounts: String,
    uses: String,
}

/// What only those who are signed in are told.
#[derive(Debug, Default, Serialize)]
struct TagViewer {
    following: bool,
    featuring: bool,
}

/// What is searched for.
#[derive(Debug, Clone, Copy)]
struct Search<'a> {
    query: &'a str,
    limit: usize,
    offset: usize,
}

impl Renderer<'_> {
    pub(super) fn search(&self, query: &str, params: &Params) -> Result<Answer, Problem> {
        if query.trim().is_empty() {
            return Err(Problem::NoQuery);
        }
        if !self.is_signed_in {
            // As on the real server any offset is one too many, 0 too.
            if params
                .get("offset")
                .is_some_and(|offset| !offset.is_empty())
            {
                return Err(Problem::SearchPaging);
            }
            if params.is_true("resolve") {
                return Err(Problem::SearchResolving);
            }
        }
        let is_negative = |name| params.get(name).is_some_and(|text| text.starts_with('-'));
        if is_negative("offset") || is_negative("limit") {
            return Err(Problem::NegativePaging);
        }
        let kind = params.get("type").filter(|kind| !kind.is_empty());
        let search = Search {
            query: query.trim(),
            limit: self.bounds(params, RESULTS_PER_TYPE).limit,
            // Without a type there are three lists, which one offset cannot page.
            offset: kind.map_or(0, |_| params.number("offset").unwrap_or(0) as usize),
        };
        let is_asked = |name| kind.is_none_or(|kind| kind == name);
        let mut results = Results::default();
        if is_asked("accounts") {
            results.accounts = self.accounts_found(search)?;
        }
        if is_asked("statuses") && self.is_signed_in {
            results.statuses = self.statuses_found(search)?;
        }
        if is_asked("hashtags") {
            results.hashtags = self.tags_found(search);
        }
        Ok(Answer::json(&results))
    }

    /// The account of that very handle first, then others, the most followed first.
    fn accounts_found(&self, search: Search<'_>) -> Result<Vec<Arc<RawValue>>, Problem> {
        if search.query.starts_with('#') {
            return Ok(Vec::new());
        }
        let exact = self
            .user_by_handle(search.query)
            .filter(|&user| self.world.is_active(user, self.now));
        let beginning = self.local_name(search.query).map(str::to_lowercase);
        let others = beginning
            .iter()
            .flat_map(|beginning| self.world.users_named_like(beginning, self.now))
            .filter(|&user| Some(user) != exact && self.knows(user));
        exact
            .into_iter()
            .chain(others)
            .skip(search.offset)
            .take(search.limit)
            .map(|user| self.account(user))
            .collect()
    }

    /// Posts that contain every word, newest first.
    fn statuses_found(&self, search: Search<'_>) -> Result<Vec<Status>, Problem> {
        let words: Vec<String> = search
            .query
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        let found: Vec<Post> = self
            .world
            .searchable_posts(self.now)
            .filter(|post| self.shows(post))
            .filter(|post| {
                let content = self.world.content(post, self.now.at_us);
                let text = plain_text(&content.html).to_lowercase();
                words.iter().all(|word| text.contains(word))
            })
            .skip(search.offset)
            .take(search.limit)
            .collect();
        self.statuses(&found)
    }

    fn tags_found(&self, search: Search<'_>) -> Vec<TagEntity> {
        if search.query.contains('@') {
            return Vec::new();
        }
        let beginning = search.query.trim_start_matches('#').to_lowercase();
        let used = self.world.used_tags(self.now);
        TAGS.iter()
            .filter(|tag| tag.starts_with(&beginning) && used.contains(tag))
            .skip(search.offset)
            .take(search.limit)
            .map(|name| self.tag_entity(name))
            .collect()
    }

    fn tag_entity(&self, name: &'static str) -> TagEntity {
        let place = tag_place(name).unwrap_or_default();
        TagEntity {
            id: (place + 1).to_string(),
            name,
            url: format!("{}/tags/{}", self.origin(), tag_path(name)),
            history: self.tag_history(place),
            viewer: self.is_signed_in.then(TagViewer::default),
        }
    }

    /// Today first. Counts what the tag's timeline shows.
    fn tag_history(&self, place: usize) -> Vec<TagDay> {
        let today = day_of(self.now.at_us);
        let mut days: Vec<(u64, Vec<u64>)> = vec![(0, Vec::new()); HISTORY_DAYS as usize];
        let newest_first = self
            .world
            .tagged_down(vec![place], self.now, i64::MAX as u64);
        for post in newest_first.take_while(|post| post.draft.day > today - HISTORY_DAYS) {
            let (uses, authors) = &mut days[(today - post.draft.day) as usize];
            *uses += 1;
            if !authors.contains(&post.user()) {
                authors.push(post.user());
            }
        }
        (0..)
            .zip(days)
            .map(|(age, (uses, authors))| TagDay {
                day: ((today - age) * DAY_S).to_string(),
                accounts: authors.len().to_string(),
                uses: uses.to_string(),
            })
            .collect()
    }
}

/// The words of a text in the network's HTML.
fn plain_text(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut is_in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => is_in_tag = true,
            '>' => is_in_tag = false,
            _ if !is_in_tag => text.push(letter),
            _ => {}
        }
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_without_marks() {
        assert_eq!(
            plain_text("<p>I can&#39;t <a href=\"x\">#<span>birds</span></a> &amp;lt;</p>"),
            "I can't #birds &lt;"
        );
    }
}
