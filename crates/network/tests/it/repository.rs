//! Writes repositories of the AT Protocol as CAR files: by hand, as the specification has it, so that
//! what reads them is held against something else than itself.

#![allow(dead_code, reason = "whoever includes this file uses a part of it")]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

pub(crate) const DID: &str = "did:plc:kittiwake7kittiwake7kitt";
pub(crate) const REVISION: &str = "3lzkittiwak2e";

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Record,
    Node,
    Commit,
}

/// A block and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) cid: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Block {
    pub(crate) fn new(data: Vec<u8>) -> Self {
        let mut cid = vec![0x01, 0x71, 0x12, 0x20];
        cid.extend(Sha256::digest(&data));
        Self { cid, data }
    }
}

/// An account: records by their paths, `collection/rkey`.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) did: String,
    pub(crate) records: BTreeMap<String, Value>,
}

impl Repository {
    pub(crate) fn new<P: Into<String>>(records: impl IntoIterator<Item = (P, Value)>) -> Self {
        let records = records.into_iter();
        Self {
            did: DID.to_owned(),
            records: records.map(|(path, value)| (path.into(), value)).collect(),
        }
    }

    /// The file, with the commit in front.
    pub(crate) fn car(&self) -> Vec<u8> {
        self.damaged(&mut |_, _| {})
    }

    /// The same after something was done to the blocks before they got their names: whoever checks
    /// those finds nothing wrong.
    pub(crate) fn damaged(&self, damage: &mut dyn FnMut(Part, &mut Vec<u8>)) -> Vec<u8> {
        let (root, blocks) = self.blocks(damage);
        car(&root, &blocks)
    }

    /// The commit's name and all blocks, the commit first.
    pub(crate) fn blocks(
        &self,
        damage: &mut dyn FnMut(Part, &mut Vec<u8>),
    ) -> (Vec<u8>, Vec<Block>) {
        let mut blocks = Vec::new();
        let mut leaves = Vec::new();
        for (path, value) in &self.records {
            let record = finish(Part::Record, cbor(value), damage, &mut blocks);
            leaves.push((path.as_bytes().to_vec(), record));
        }
        let data = tree(&leaves, damage, &mut blocks);
        let commit = commit(&self.did, &data);
        let root = finish(Part::Commit, commit, damage, &mut blocks);
        blocks.rotate_right(1);
        (root, blocks)
    }
}

fn finish(
    part: Part,
    mut data: Vec<u8>,
    damage: &mut dyn FnMut(Part, &mut Vec<u8>),
    blocks: &mut Vec<Block>,
) -> Vec<u8> {
    damage(part, &mut data);
    let block = Block::new(data);
    let cid = block.cid.clone();
    blocks.push(block);
    cid
}

pub(crate) fn commit(did: &str, data: &[u8]) -> Vec<u8> {
    map(vec![
        ("did", text(did)),
        ("rev", text(REVISION)),
        ("sig", bytes(&[7; 64])),
        ("data", link(data)),
        ("prev", null()),
        ("version", number(3)),
    ])
}

/// A file of some blocks.
pub(crate) fn car(root: &[u8], blocks: &[Block]) -> Vec<u8> {
    let header = map(vec![("roots", list(&[link(root)])), ("version", number(1))]);
    let mut car = length(header.len());
    car.extend(header);
    for block in blocks {
        car.extend(length(block.cid.len() + block.data.len()));
        car.extend(&block.cid);
        car.extend(&block.data);
    }
    car
}

/// Seven bits to a byte, the lowest first.
pub(crate) fn length(mut length: usize) -> Vec<u8> {
    let mut written = Vec::new();
    while length > 0x7F {
        written.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    written.push(length as u8);
    written
}

/// Writes the tree over keys, which are in order; the name of its root.
pub(crate) fn tree(
    leaves: &[(Vec<u8>, Vec<u8>)],
    damage: &mut dyn FnMut(Part, &mut Vec<u8>),
    blocks: &mut Vec<Block>,
) -> Vec<u8> {
    let top = leaves.iter().map(|(key, _)| layer(key)).max();
    layer_node(leaves, top.unwrap_or(0), damage, blocks)
}

/// Pairs of zero bits that a key's hash begins with.
pub(crate) fn layer(key: &[u8]) -> u32 {
    let mut zeros = 0;
    for byte in Sha256::digest(key) {
        zeros += byte.leading_zeros();
        if byte != 0 {
            break;
        }
    }
    zeros / 2
}

fn layer_node(
    leaves: &[(Vec<u8>, Vec<u8>)],
    at: u32,
    damage: &mut dyn FnMut(Part, &mut Vec<u8>),
    blocks: &mut Vec<Block>,
) -> Vec<u8> {
    let mut below = |leaves: &[(Vec<u8>, Vec<u8>)], blocks: &mut Vec<Block>| {
        let is_empty = leaves.is_empty();
        (!is_empty).then(|| layer_node(leaves, at - 1, damage, blocks))
    };
    let own: Vec<usize> = (0..leaves.len())
        .filter(|place| layer(&leaves[*place].0) == at)
        .collect();
    let end_of_left = own.first().copied().unwrap_or(leaves.len());
    let left = below(&leaves[..end_of_left], blocks);
    let mut entries = Vec::new();
    let mut before: &[u8] = &[];
    for (number, place) in own.iter().enumerate() {
        let (key, value) = &leaves[*place];
        let end = own.get(number + 1).copied().unwrap_or(leaves.len());
        let right = below(&leaves[place + 1..end], blocks);
        let shared = before.iter().zip(key).take_while(|(a, b)| a == b).count();
        entries.push(entry(
            shared as u64,
            &key[shared..],
            value,
            right.as_deref(),
        ));
        before = key;
    }
    finish(Part::Node, node(left.as_deref(), &entries), damage, blocks)
}

pub(crate) fn node(left: Option<&[u8]>, entries: &[Vec<u8>]) -> Vec<u8> {
    map(vec![
        ("l", left.map_or_else(null, link)),
        ("e", list(entries)),
    ])
}

pub(crate) fn entry(shared: u64, rest: &[u8], value: &[u8], right: Option<&[u8]>) -> Vec<u8> {
    map(vec![
        ("p", number(shared)),
        ("k", bytes(rest)),
        ("v", link(value)),
        ("t", right.map_or_else(null, link)),
    ])
}

/// A value of JSON as DAG-CBOR.
pub(crate) fn cbor(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => null(),
        Value::Bool(value) => vec![0xF4 + u8::from(*value)],
        Value::String(value) => text(value),
        Value::Array(items) => list(&items.iter().map(cbor).collect::<Vec<_>>()),
        Value::Number(value) => match (value.as_u64(), value.as_i64(), value.as_f64()) {
            (Some(value), _, _) => number(value),
            (None, Some(value), _) => head(1, !value as u64),
            (None, None, value) => float(value.unwrap_or_default()),
        },
        Value::Object(members) => special(members).unwrap_or_else(|| {
            let members = members.iter();
            map(members
                .map(|(key, value)| (key.as_str(), cbor(value)))
                .collect())
        }),
    }
}

/// `{"$link": …}` and `{"$bytes": …}`.
fn special(members: &Map<String, Value>) -> Option<Vec<u8>> {
    if members.len() != 1 {
        return None;
    }
    let (key, value) = members.iter().next()?;
    let value = value.as_str()?;
    match key.as_str() {
        "$link" => Some(link(&cid_bytes(value)?)),
        "$bytes" => Some(bytes(&STANDARD_NO_PAD.decode(value).ok()?)),
        _ => None,
    }
}

/// The first byte of a value and what it counts, as short as can be.
pub(crate) fn head(major: u8, count: u64) -> Vec<u8> {
    let major = major << 5;
    match count {
        0..=23 => vec![major | count as u8],
        24..=0xFF => vec![major | 0x18, count as u8],
        0x100..=0xFFFF => [&[major | 0x19][..], &(count as u16).to_be_bytes()].concat(),
        0x1_0000..=0xFFFF_FFFF => [&[major | 0x1A][..], &(count as u32).to_be_bytes()].concat(),
        _ => [&[major | 0x1B][..], &count.to_be_bytes()].concat(),
    }
}

pub(crate) fn null() -> Vec<u8> {
    vec![0xF6]
}

pub(crate) fn number(value: u64) -> Vec<u8> {
    head(0, value)
}

pub(crate) fn float(value: f64) -> Vec<u8> {
    [&[0xFB][..], &value.to_be_bytes()].concat()
}

pub(crate) fn bytes(value: &[u8]) -> Vec<u8> {
    [head(2, value.len() as u64), value.to_vec()].concat()
}

pub(crate) fn text(value: &str) -> Vec<u8> {
    [head(3, value.len() as u64), value.as_bytes().to_vec()].concat()
}

pub(crate) fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let head = head(4, items.len() as u64);
    [head, items.concat()].concat()
}

/// Keys are in order: the shorter first.
pub(crate) fn map(mut members: Vec<(&str, Vec<u8>)>) -> Vec<u8> {
    members.sort_by_key(|(key, _)| (key.len(), key.as_bytes().to_vec()));
    let mut all = head(5, members.len() as u64);
    for (key, value) in members {
        all.extend(text(key));
        all.extend(value);
    }
    all
}

pub(crate) fn link(cid: &[u8]) -> Vec<u8> {
    [vec![0xD8, 42], bytes(&[&[0], cid].concat())].concat()
}

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A name as people write it.
pub(crate) fn cid_text(cid: &[u8]) -> String {
    let mut text = String::from("b");
    let (mut bits, mut count) = (0_u32, 0);
    for byte in cid {
        bits = (bits << 8 | u32::from(*byte)) & 0xFFFF;
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(LETTERS[(bits >> count & 31) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(LETTERS[(bits << (5 - count) & 31) as usize]));
    }
    text
}

pub(crate) fn cid_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.strip_prefix('b')?.bytes() {
        let place = LETTERS.iter().position(|known| *known == letter)?;
        bits = (bits << 5 | place as u32) & 0xFFFF;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Bytes as the AT Protocol writes them in JSON.
pub(crate) fn base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).trim_end_matches('=').to_owned()
}

/// The tree that a repository stands for.
pub(crate) fn expected(repository: &Repository) -> Value {
    let (root, _) = repository.blocks(&mut |_, _| {});
    let mut collections = Map::new();
    for (path, value) in &repository.records {
        let (collection, rkey) = path.split_once('/').unwrap_or_default();
        let cid = Block::new(cbor(value)).cid;
        let record = serde_json::json!({
            "uri": format!("at://{}/{path}", repository.did),
            "rkey": rkey,
            "cid": cid_text(&cid),
            "value": value,
        });
        let list = collections
            .entry(collection)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(record);
        }
    }
    serde_json::json!({
        "did": repository.did,
        "rev": REVISION,
        "commit": cid_text(&root),
        "collections": collections,
    })
}
