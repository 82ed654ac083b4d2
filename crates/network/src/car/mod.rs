//! CAR files of the AT Protocol as the tree that JSON is. Only this folder knows serde_ipld_dagcbor
//! and ipld-core.
//!
//! A CAR holds one account whole: blocks that are named by their hashes (`blocks.rs`), of which one is
//! the commit, some are the nodes of a tree of keys (`tree.rs`), and the others are records
//! (`record.rs`). Whoever sends it may lie: every block is held against its name, every node is looked
//! at once, and what comes out is bounded by what went in. Signatures are not checked.

mod blocks;
mod record;
#[cfg(test)]
mod tests;
mod tree;

use crate::json;
use crate::network::ANSWER_BYTES_MAX;
use blocks::{Blocks, Link};
use serde::Deserialize;

const BYTES_MAX: usize = ANSWER_BYTES_MAX as usize;
/// An honest repository becomes a fifth to a half longer. Many keys may name one long record, though,
/// and a key that begins like the one before it is written in a few bytes.
const JSON_TIMES_MAX: usize = 3;
/// So that small repositories need not reckon.
const JSON_BYTES_MORE: usize = 64 << 10;
const DID_BYTES_MAX: usize = 2_048;
const REVISION_BYTES_MAX: usize = 128;

/// Why bytes cannot be read as a CAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CarError {
    #[error("{0}")]
    Malformed(&'static str),
    /// It may well be a CAR, but there is more in it than is read.
    #[error("{0}")]
    TooLarge(&'static str),
}

/// A repository as JSON.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) json: String,
    /// Whose it is.
    pub(crate) did: String,
    /// Blocks, keys and records that were left out.
    pub(crate) mended: u32,
}

/// The JSON that stands for a CAR file, as every answer in CAR is read.
pub fn car_to_json(body: &[u8]) -> Result<String, CarError> {
    convert(body).map(|converted| converted.json)
}

pub(crate) fn convert(body: &[u8]) -> Result<Converted, CarError> {
    if body.len() > BYTES_MAX {
        return Err(CarError::TooLarge("a longer car than is read"));
    }
    let (blocks, root) = Blocks::read(body)?;
    let commit = read_commit(&blocks, root)?;
    let mut writer = Writer::new(&blocks, commit.did, body.len());
    writer.begin(&commit, root);
    let missing = tree::walk(&blocks, commit.data, |key, link| writer.record(key, link))?;
    writer.end();
    let left_out = [blocks.dropped(), missing, writer.dropped];
    Ok(Converted {
        json: writer.json,
        did: commit.did.to_owned(),
        mended: left_out.into_iter().fold(0, u32::saturating_add),
    })
}

/// What a repository's owner has signed. Whether it is their signature is not looked at.
#[derive(Debug, Deserialize)]
struct Commit<'b> {
    did: &'b str,
    rev: Option<&'b str>,
    data: Link,
}

fn read_commit<'b>(blocks: &Blocks<'b>, root: Link) -> Result<Commit<'b>, CarError> {
    let place = blocks.find(root);
    let place = place.ok_or(CarError::Malformed("the commit is not in the car"))?;
    let unreadable = CarError::Malformed("a commit that cannot be read");
    let commit: Commit<'b> =
        serde_ipld_dagcbor::from_slice(blocks.data(place)).map_err(|_| unreadable)?;
    let is_revision = |rev: &str| rev.len() <= REVISION_BYTES_MAX;
    if !is_did(commit.did) || !commit.rev.is_none_or(is_revision) {
        return Err(unreadable);
    }
    Ok(commit)
}

fn is_did(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'%' | b'-');
    let name = text.strip_prefix("did:").unwrap_or_default();
    !name.is_empty() && text.len() <= DID_BYTES_MAX && name.bytes().all(is_plain)
}

/// The collection and the record's own key, if a key of the tree is made of them.
fn path_of(key: &[u8]) -> Option<(&str, &str)> {
    let (collection, rkey) = std::str::from_utf8(key).ok()?.split_once('/')?;
    (is_collection(collection) && is_record_key(rkey)).then_some((collection, rkey))
}

/// `app.bsky.feed.post`.
fn is_collection(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let mut parts = text.split('.');
    text.contains('.') && parts.all(|part| !part.is_empty() && part.bytes().all(is_plain))
}

fn is_record_key(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'~' | b'-');
    !matches!(text, "" | "." | "..") && text.bytes().all(is_plain)
}

/// Writes the tree. Keys come in order, so that those of one collection follow one another.
struct Writer<'c, 'b> {
    blocks: &'c Blocks<'b>,
    did: &'b str,
    json: String,
    json_bytes_max: usize,
    /// The collection whose list is open.
    collection: String,
    dropped: u32,
}

impl<'c, 'b> Writer<'c, 'b> {
    fn new(blocks: &'c Blocks<'b>, did: &'b str, body_bytes: usize) -> Self {
        Self {
            blocks,
            did,
            json: String::with_capacity(body_bytes + body_bytes / 2),
            json_bytes_max: JSON_BYTES_MORE + body_bytes * JSON_TIMES_MAX,
            collection: String::new(),
            dropped: 0,
        }
    }

    fn begin(&mut self, commit: &Commit<'_>, root: Link) {
        self.json.push_str("{\"did\":");
        json::push_quoted(self.did, &mut self.json);
        self.json.push_str(",\"rev\":");
        match commit.rev {
            Some(rev) => json::push_quoted(rev, &mut self.json),
            None => self.json.push_str("null"),
        }
        self.json.push_str(",\"commit\":\"");
        root.push_text(&mut self.json);
        self.json.push_str("\",\"collections\":{");
    }

    fn end(&mut self) {
        let open = if self.collection.is_empty() { "" } else { "]" };
        self.json.push_str(open);
        self.json.push_str("}}");
    }

    /// Writes one record, or counts what cannot be one.
    fn record(&mut self, key: &[u8], link: Link) -> Result<(), CarError> {
        let before = self.json.len();
        if self.try_record(key, link).is_none() {
            self.json.truncate(before);
            self.dropped = self.dropped.saturating_add(1);
        }
        if self.json.len() > self.json_bytes_max {
            return Err(CarError::TooLarge(
                "more in the car than its bytes can hold",
            ));
        }
        Ok(())
    }

    fn try_record(&mut self, key: &[u8], link: Link) -> Option<()> {
        let (collection, rkey) = path_of(key)?;
        let block = self.blocks.data(self.blocks.find(link)?);
        let is_new = self.collection != collection;
        if is_new {
            let mark = if self.collection.is_empty() {
                "\""
            } else {
                "],\""
            };
            self.extend([mark, collection, "\":["]);
        } else {
            self.json.push(',');
        }
        // None of these holds anything that JSON writes in another way.
        let did = self.did;
        self.extend(["{\"uri\":\"at://", did, "/", collection, "/", rkey]);
        self.extend(["\",\"rkey\":\"", rkey, "\",\"cid\":\""]);
        link.push_text(&mut self.json);
        self.json.push_str("\",\"value\":");
        record::push_json(block, &mut self.json)?;
        self.json.push('}');
        if is_new {
            collection.clone_into(&mut self.collection);
        }
        Some(())
    }

    fn extend<const COUNT: usize>(&mut self, parts: [&str; COUNT]) {
        self.json.extend(parts);
    }
}
