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
mod threads;

pub use crawl::*;
pub use feed::{Event, EventId, EventKind, Feed};
pub use objects::*;
pub(crate) use page::{Cursor, clamped};
pub use page::{LIMIT_MAX, Page};
pub use search::{Hit, Indexed, SearchIn, SearchQuestion};

use crate::database::Database;
use crate::detail::RunDetail;
use crate::index::Sources;
use crate::rules::browse::{
    self, crawl as crawl_rules, feed as feed_rules, figures, find, graph, history, indexing, lists,
    object,
};
use crate::{Location, StoreError};
use kittiwake_model::Key;
use std::sync::Arc;
use threads::{Answering, Counting, Indexing};

/// A crawl that is looked through. Cheap to clone; all clones share a few threads.
#[derive(Debug, Clone)]
pub struct Browser {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    location: Location,
    answering: Answering,
    counting: Counting,
    indexing: Indexing,
}

/// Labels that are given at once.
const LABELS_MAX: usize = 1_000;

impl Browser {
    /// Opens what is kept there, also while it is being crawled into. `threads` is how many questions are
    /// answered at once, between 1 and 16.
    pub fn open(location: &Location, threads: usize) -> Result<Self, StoreError> {
        let inner = Inner {
            answering: Answering::start(location, threads)?,
            counting: Counting::new(),
            indexing: Indexing::default(),
            location: location.clone(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&dyn Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let asked = move |sources: &Sources<'_>| question(sources.crawl);
        self.inner.answering.ask(asked).await
    }

    pub async fn users(&self, question: UsersQuestion) -> Result<Page<UserRow>, StoreError> {
        let asked = move |sources: &Sources<'_>| find::users(sources, &question);
        self.inner.answering.ask(asked).await
    }

    pub async fn posts(&self, question: PostsQuestion) -> Result<Page<PostRow>, StoreError> {
        self.ask(move |database| lists::posts(database, &question))
            .await
    }

    /// The conversation under a post; where the post stands within one, what answers it.
    pub async fn comments_of(
        &self,
        question: CommentsQuestion,
    ) -> Result<Page<PostRow>, StoreError> {
        self.ask(move |database| lists::comments_of(database, &question))
            .await
    }

    pub async fn relations(
        &self,
        question: RelationsQuestion,
    ) -> Result<Page<RelationRow>, StoreError> {
        self.ask(move |database| lists::relations(database, &question))
            .await
    }

    pub async fn links(&self, question: LinksQuestion) -> Result<Page<LinkRow>, StoreError> {
        self.ask(move |database| lists::links(database, &question))
            .await
    }

    /// One object; `None` if there is no such key. A key that was merged away leads to the object that it
    /// belongs to now.
    pub async fn object(&self, key: Key) -> Result<Option<ObjectView>, StoreError> {
        self.ask(move |database| object::object(database, key))
            .await
    }

    /// How these objects are called, those that are there, in the order asked for; at most 1 000.
    pub async fn labels(&self, keys: Vec<Key>) -> Result<Vec<Label>, StoreError> {
        self.ask(move |database| {
            let keys = keys.iter().take(LABELS_MAX);
            let mut known = browse::labels(database, &keys.clone().map(|key| key.0).collect())?;
            Ok(keys.filter_map(|key| known.remove(&key.0)).collect())
        })
        .await
    }

    /// Whoever or whatever is called by an id, a handle (with its host or without) or an address, a few at
    /// the most. Handles without their host, and addresses of profiles that are no ids, are known as far as
    /// the index has come ([`Self::indexed`]).
    pub async fn find(&self, text: String) -> Result<Vec<Label>, StoreError> {
        let asked = move |sources: &Sources<'_>| find::find(sources, &text);
        self.inner.answering.ask(asked).await
    }

    /// The counts of an object over time, the newest first, those of now included; at most 2 000.
    pub async fn counts(&self, key: Key, limit: usize) -> Result<Vec<CountsRow>, StoreError> {
        self.ask(move |database| history::counts(database, key, limit))
            .await
    }

    pub async fn versions(
        &self,
        question: VersionsQuestion,
    ) -> Result<Page<VersionRow>, StoreError> {
        self.ask(move |database| history::versions(database, &question))
            .await
    }

    pub async fn calls(&self, question: CallsQuestion) -> Result<Page<CallRow>, StoreError> {
        self.ask(move |database| crawl_rules::calls(database, &question))
            .await
    }

    pub async fn call(&self, id: i64) -> Result<Option<CallView>, StoreError> {
        self.ask(move |database| crawl_rules::call(database, id))
            .await
    }

    pub async fn runs(&self, question: RunsQuestion) -> Result<Page<RunDetail>, StoreError> {
        self.ask(move |database| crawl_rules::runs(database, &question))
            .await
    }

    pub async fn outcomes(
        &self,
        question: OutcomesQuestion,
    ) -> Result<Page<OutcomeRow>, StoreError> {
        self.ask(move |database| crawl_rules::outcomes(database, &question))
            .await
    }

    /// Outcomes by class among the newest calls, at most 20 000 of them.
    pub async fn errors(&self, last_calls: usize) -> Result<Errors, StoreError> {
        self.ask(move |database| figures::errors(database, last_calls))
            .await
    }

    pub async fn activity(&self, question: ActivityQuestion) -> Result<Activity, StoreError> {
        self.ask(move |database| figures::activity(database, question))
            .await
    }

    pub async fn graph(&self, question: GraphQuestion) -> Result<Graph, StoreError> {
        self.ask(move |database| graph::graph(database, question))
            .await
    }

    /// The lanes that have subjects, at most 1 000.
    pub async fn lanes(&self) -> Result<Vec<String>, StoreError> {
        self.ask(figures::lanes).await
    }

    pub async fn ages(&self, question: AgesQuestion) -> Result<Ages, StoreError> {
        self.ask(move |database| figures::ages(database, &question))
            .await
    }

    /// Over the posts that were met last, at most 20 000 of them.
    pub async fn hours(&self, sample_max: usize) -> Result<Hours, StoreError> {
        self.ask(move |database| figures::hours(database, sample_max))
            .await
    }

    pub async fn search(&self, question: SearchQuestion) -> Result<Page<Hit>, StoreError> {
        let asked = move |sources: &Sources<'_>| find::search(sources, &question);
        self.inner.answering.ask(asked).await
    }

    /// Keeps an index of words, names and followers up to date from now on, until the last clone of this
    /// browser is dropped. Gentle: it reads a little at a time and rests. Without it, [`Self::search`],
    /// [`Self::find`] and [`UsersOrder::Followers`] know what was indexed before.
    pub fn keep_indexed(&self) -> Result<(), StoreError> {
        self.inner.indexing.start(&self.inner.location)
    }

    /// How far the index has come.
    pub async fn indexed(&self) -> Result<Indexed, StoreError> {
        let asked = |sources: &Sources<'_>| {
            let mut indexed = Indexed::default();
            sources.index.look(&mut |index, dialect| {
                indexed = indexing::indexed(sources.crawl, index, dialect)?;
                Ok(())
            })?;
            Ok(indexed)
        };
        self.inner.answering.ask(asked).await
    }

    /// Events after one, in their order; at most 1 000 at a time.
    pub async fn feed(&self, after: EventId, limit: usize) -> Result<Feed, StoreError> {
        self.ask(move |database| feed_rules::feed(database, after, limit))
            .await
    }

    /// Where to begin for whoever wants only what comes from now on.
    pub async fn newest_event(&self) -> Result<EventId, StoreError> {
        self.ask(feed_rules::newest_event).await
    }

    /// Rows by table. What is counted is counted beside, a tenth of the time at the most; until
    /// then this is what was counted last, or nothing.
    #[expect(clippy::unused_async, reason = "all questions are asked the same way")]
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        self.inner.counting.extent(&self.inner.location)
    }
}
