//! Reading a crawl for people: lists in pages, single objects with where each part of them comes
//! from, figures over bounded stretches, words, and what the crawl finds as it goes.
//!
//! Everything is read by an index or within a bound, so that ten million rows are as quick to look
//! through as a thousand. The questions are answered by threads and connections of their own: a slow
//! look holds up nobody's crawl. The SQL is in [`crate::rules::browse`].

mod crawl;
mod feed;
mod objects;
mod page;
mod search;

pub use crawl::*;
pub use feed::{Event, EventId, EventKind, Feed};
pub use objects::*;
pub use page::{LIMIT_MAX, Page};
pub use search::{Hit, Indexed, SearchIn, SearchQuestion};

use crate::detail::RunDetail;
use crate::{Location, StoreError};
use kittiwake_model::Key;
use std::sync::Arc;

/// A crawl that is looked through. Cheap to clone; all clones share a few threads.
#[derive(Debug, Clone)]
pub struct Browser {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    location: Location,
}

/// Not written yet.
fn soon<T>() -> Result<T, StoreError> {
    Err(StoreError::invalid("not written yet"))
}

#[expect(clippy::unused_async, reason = "bodies come next")]
impl Browser {
    /// Opens what is kept there, also while it is being crawled into. `threads` is how many questions are
    /// answered at once, between 1 and 16.
    pub fn open(location: &Location, threads: usize) -> Result<Self, StoreError> {
        let _ = threads;
        let inner = Inner {
            location: location.clone(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    pub async fn users(&self, _question: UsersQuestion) -> Result<Page<UserRow>, StoreError> {
        soon()
    }

    pub async fn posts(&self, _question: PostsQuestion) -> Result<Page<PostRow>, StoreError> {
        soon()
    }

    pub async fn comments_of(
        &self,
        _question: CommentsQuestion,
    ) -> Result<Page<PostRow>, StoreError> {
        soon()
    }

    pub async fn relations(
        &self,
        _question: RelationsQuestion,
    ) -> Result<Page<RelationRow>, StoreError> {
        soon()
    }

    pub async fn links(&self, _question: LinksQuestion) -> Result<Page<LinkRow>, StoreError> {
        soon()
    }

    /// One object; `None` if there is no such key. A key that was merged away leads to the object that it
    /// belongs to now.
    pub async fn object(&self, _key: Key) -> Result<Option<ObjectView>, StoreError> {
        soon()
    }

    /// How these objects are called, those that are there, in the order asked for; at most 1 000.
    pub async fn labels(&self, _keys: Vec<Key>) -> Result<Vec<Label>, StoreError> {
        soon()
    }

    /// Whoever or whatever is called by an id, a handle (with its host or without) or an address, a few at
    /// the most. Knows what the index has reached ([`Self::indexed`]).
    pub async fn find(&self, _text: String) -> Result<Vec<Label>, StoreError> {
        soon()
    }

    /// The counts of an object over time, the newest first, those of now included.
    pub async fn counts(&self, _key: Key, _limit: usize) -> Result<Vec<CountsRow>, StoreError> {
        soon()
    }

    pub async fn versions(
        &self,
        _question: VersionsQuestion,
    ) -> Result<Page<VersionRow>, StoreError> {
        soon()
    }

    pub async fn calls(&self, _question: CallsQuestion) -> Result<Page<CallRow>, StoreError> {
        soon()
    }

    pub async fn call(&self, _id: i64) -> Result<Option<CallView>, StoreError> {
        soon()
    }

    pub async fn runs(&self, _question: RunsQuestion) -> Result<Page<RunDetail>, StoreError> {
        soon()
    }

    pub async fn outcomes(
        &self,
        _question: OutcomesQuestion,
    ) -> Result<Page<OutcomeRow>, StoreError> {
        soon()
    }

    /// Outcomes by class among the newest calls, at most 20 000 of them.
    pub async fn errors(&self, _last_calls: usize) -> Result<Errors, StoreError> {
        soon()
    }

    pub async fn activity(&self, _question: ActivityQuestion) -> Result<Activity, StoreError> {
        soon()
    }

    pub async fn graph(&self, _question: GraphQuestion) -> Result<Graph, StoreError> {
        soon()
    }

    /// The lanes that have subjects, at most 1 000.
    pub async fn lanes(&self) -> Result<Vec<String>, StoreError> {
        soon()
    }

    pub async fn ages(&self, _question: AgesQuestion) -> Result<Ages, StoreError> {
        soon()
    }

    /// Over the posts that were met last, at most 20 000 of them.
    pub async fn hours(&self, _sample_max: usize) -> Result<Hours, StoreError> {
        soon()
    }

    pub async fn search(&self, _question: SearchQuestion) -> Result<Page<Hit>, StoreError> {
        soon()
    }

    /// Keeps an index of words, names and followers up to date from now on, until the last clone of this
    /// browser is dropped. Gentle: it reads a little at a time and rests. Without it, [`Self::search`],
    /// [`Self::find`] and [`UsersOrder::Followers`] know what was indexed before.
    pub fn keep_indexed(&self) -> Result<(), StoreError> {
        soon()
    }

    /// How far the index has come.
    pub async fn indexed(&self) -> Result<Indexed, StoreError> {
        soon()
    }

    /// Events after one, in their order; at most 1 000 at a time.
    pub async fn feed(&self, _after: EventId, _limit: usize) -> Result<Feed, StoreError> {
        soon()
    }

    /// Where to begin for whoever wants only what comes from now on.
    pub async fn newest_event(&self) -> Result<EventId, StoreError> {
        soon()
    }

    /// Rows by table. What is counted is counted beside, a tenth of the time at the most; until
    /// then this is what was counted last, or nothing.
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        soon()
    }
}
