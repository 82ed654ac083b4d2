//! What is derived from a crawl so that people find things in it: words, names, and who has the most
//! followers. It may be thrown away at any time, and is made anew.
//!
//! A file's index lies beside it in a file of its own (`FILE.search`), because a crawl has one writer; on
//! a server it is a few tables of the crawl's schema. What goes in and how it is asked for is decided in
//! [`crate::rules::browse`]; this is what that asks of a back end.

use crate::StoreError;
use crate::database::{Database, Reader};
use crate::words::{Query, Tokens, Word};

/// Two lists of words: those of users, and those of posts and comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Users,
    Posts,
}

/// How a back end says what other databases say otherwise: everything about words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordsDialect {
    /// Changes when what is filed, or how, does: an index of another version is made anew.
    pub version: &'static str,
    /// Makes the tables, one statement each.
    pub create: &'static [&'static str],
    /// Key and words of an object, in place of those that are there.
    pub put: fn(Words) -> &'static str,
    pub remove: fn(Words) -> &'static str,
    /// Keys of objects that have what is asked for (see `asks`), below another, in falling order; so many at
    /// the most.
    pub find: fn(Words) -> &'static str,
    pub asks: Asks,
    /// Words as the database takes them.
    pub words: fn(&Tokens) -> String,
}

/// What a database is asked for at once, as it takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asks {
    /// One word: it gives some of them quickly, however many there are, and would look for several
    /// together, or for words next to one another, to the very end.
    Word(fn(&Word) -> String),
    /// All of a question: it has ways of its own to find it.
    Question(fn(&Query) -> String),
}

/// Somebody who looks into the index.
pub(crate) trait IndexReader {
    /// Lets somebody look, if there is an index that can be read.
    fn look(&self, look: &mut Look<'_>) -> Result<(), StoreError>;
}

pub(crate) type Look<'l> = dyn FnMut(&dyn Database, &WordsDialect) -> Result<(), StoreError> + 'l;

/// Somebody who keeps the index. Whatever is written between `begin` and `commit` counts as a whole, or
/// not at all.
pub(crate) trait IndexKeeper {
    fn crawl(&self) -> &dyn Database;

    fn index(&self) -> &dyn Database;

    fn dialect(&self) -> &WordsDialect;

    /// From now on the crawl is seen as it is at one moment, and nobody else writes to the index.
    fn begin(&self) -> Result<(), StoreError>;

    fn commit(&self) -> Result<(), StoreError>;

    fn roll_back(&self);

    /// Makes the index anew and empty, as part of what was begun.
    fn clear(&self) -> Result<(), StoreError>;
}

/// A crawl, and what was derived from it.
pub(crate) struct Sources<'s> {
    pub crawl: &'s dyn Reader,
    pub index: &'s dyn IndexReader,
    /// Whether what was opened is still what the place names: a file may be deleted, or replaced.
    pub is_current: &'s dyn Fn() -> bool,
}
