//! The tree of keys (a Merkle search tree): which record stands under which key.
//!
//! A node has a list of entries, and beside each of them perhaps a further node, whose keys lie between
//! that entry and the next. A key is written as what differs from the one before in its node.

use super::CarError;
use super::blocks::{Blocks, Link};
use serde::Deserialize;

/// A key's layer is counted in its SHA-256, two bits to a layer.
const DEPTH_MAX: usize = 128;
/// Longer than any collection and record key together.
const KEY_BYTES_MAX: usize = 1_024;

#[derive(Debug, Deserialize)]
struct Node<'b> {
    #[serde(rename = "l")]
    left: Option<Link>,
    #[serde(rename = "e", borrow)]
    entries: Vec<Entry<'b>>,
}

#[derive(Debug, Deserialize)]
struct Entry<'b> {
    /// How much of the key before it a key begins with.
    #[serde(rename = "p")]
    shared: u32,
    #[serde(rename = "k")]
    rest: &'b [u8],
    #[serde(rename = "v")]
    value: Link,
    #[serde(rename = "t")]
    right: Option<Link>,
}

/// A node whose entries are being looked at.
struct Open<'b> {
    entries: std::vec::IntoIter<Entry<'b>>,
    key: Vec<u8>,
}

/// Shows every key, in order, with the name of its record; how many nodes were not there.
pub(super) fn walk(
    blocks: &Blocks<'_>,
    root: Link,
    mut show: impl FnMut(&[u8], Link) -> Result<(), CarError>,
) -> Result<u32, CarError> {
    let mut walk = Walk {
        blocks,
        open: Vec::new(),
        is_seen: vec![false; blocks.len()],
        missing: 0,
    };
    walk.enter(root)?;
    if walk.open.is_empty() {
        return Err(CarError::Malformed("the tree is not in the car"));
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(node) = walk.open.last_mut() {
        let Some(entry) = node.entries.next() else {
            walk.open.pop();
            continue;
        };
        node.take_key(&entry)?;
        let is_ascending = last.as_ref().is_none_or(|last| *last < node.key);
        if !is_ascending {
            return Err(CarError::Malformed("keys of the tree out of order"));
        }
        show(&node.key, entry.value)?;
        last.get_or_insert_default().clone_from(&node.key);
        if let Some(right) = entry.right {
            walk.enter(right)?;
        }
    }
    Ok(walk.missing)
}

impl Open<'_> {
    fn take_key(&mut self, entry: &Entry<'_>) -> Result<(), CarError> {
        let shared = entry.shared as usize;
        if shared > self.key.len() {
            return Err(CarError::Malformed("a key that begins like none before it"));
        }
        if shared + entry.rest.len() > KEY_BYTES_MAX {
            return Err(CarError::Malformed("a key that is too long"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(entry.rest);
        Ok(())
    }
}

struct Walk<'c, 'b> {
    blocks: &'c Blocks<'b>,
    /// From the root to the node that is being looked at.
    open: Vec<Open<'b>>,
    is_seen: Vec<bool>,
    missing: u32,
}

impl Walk<'_, '_> {
    /// Opens a node and all that lies to the left in it. One that is not there has nothing in it.
    fn enter(&mut self, link: Link) -> Result<(), CarError> {
        let mut next = Some(link);
        while let Some(link) = next {
            let Some(place) = self.blocks.find(link) else {
                self.missing = self.missing.saturating_add(1);
                return Ok(());
            };
            // No two nodes have a key in common, so that none is ever like another.
            if std::mem::replace(&mut self.is_seen[place], true) {
                return Err(CarError::Malformed("one node of the tree in two places"));
            }
            if self.open.len() >= DEPTH_MAX {
                return Err(CarError::Malformed("a tree with too many layers"));
            }
            let node: Node<'_> = serde_ipld_dagcbor::from_slice(self.blocks.data(place))
                .map_err(|_| CarError::Malformed("a node of the tree that cannot be read"))?;
            self.open.push(Open {
                entries: node.entries.into_iter(),
                key: Vec::new(),
            });
            next = node.left;
        }
        Ok(())
    }
}
