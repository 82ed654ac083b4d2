//! The blocks of a CAR: found by their names, and held against them.

use super::CarError;
use ipld_core::cid::Cid;
use ipld_core::cid::multihash::Multihash;
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const DAG_CBOR: u64 = 0x71;
const SHA2_256: u64 = 0x12;
/// How a name begins that means DAG-CBOR and SHA-256, as all do that a repository needs.
const NAME_START: [u8; 4] = [0x01, DAG_CBOR as u8, SHA2_256 as u8, 32];
/// The AT Protocol allows half of it to a record.
const BLOCK_BYTES_MAX: usize = 2 << 20;
/// A length in front of what has that length takes five bytes at the most, since no body is longer.
const LENGTH_BYTES_MAX: usize = 5;

const NO_CAR: CarError = CarError::Malformed("no car");
const ENDS_TOO_EARLY: CarError = CarError::Malformed("car ends too early");

type Hash = [u8; 32];

/// The name of a block: its hash. Nothing, where it is a name that no block here has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(Option<Hash>);

impl Link {
    /// The name as people write it, `bafy…`.
    pub(super) fn push_text(self, out: &mut String) {
        let hash = self
            .0
            .and_then(|hash| Multihash::wrap(SHA2_256, &hash).ok());
        if let Some(hash) = hash {
            push_cid(&Cid::new_v1(DAG_CBOR, hash), out);
        }
    }
}

pub(super) fn push_cid(cid: &Cid, out: &mut String) {
    // Nothing that is written to a text fails.
    let _written = write!(out, "{cid}");
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let cid = Cid::deserialize(input)?;
        let is_named = cid.codec() == DAG_CBOR && cid.hash().code() == SHA2_256;
        let hash = cid.hash().digest().try_into().ok();
        Ok(Self(hash.filter(|_| is_named)))
    }
}

/// What stands in front of all blocks.
#[derive(Debug, Deserialize)]
struct Header {
    roots: Vec<Link>,
    version: u64,
}

/// Where the block of a hash lies.
#[derive(Debug)]
struct Place {
    hash: Hash,
    start: u32,
    length: u32,
}

/// All blocks that are what their names say.
#[derive(Debug)]
pub(super) struct Blocks<'b> {
    body: &'b [u8],
    /// In the order of their hashes.
    places: Vec<Place>,
    dropped: u32,
}

impl<'b> Blocks<'b> {
    /// Finds all blocks, and the name of the first root.
    pub(super) fn read(body: &'b [u8]) -> Result<(Self, Link), CarError> {
        if body.is_empty() {
            return Err(CarError::Malformed("empty body"));
        }
        let mut rest = body;
        let header = take_section(&mut rest).ok_or(NO_CAR)?;
        let header: Header = serde_ipld_dagcbor::from_slice(header).map_err(|_| NO_CAR)?;
        if header.version != 1 {
            return Err(CarError::Malformed("a car of another version than 1"));
        }
        let root = header.roots.first().copied();
        let root = root.ok_or(CarError::Malformed("a car without a root"))?;
        let mut blocks = Self {
            body,
            places: Vec::new(),
            dropped: 0,
        };
        while !rest.is_empty() {
            let section = take_section(&mut rest).ok_or(ENDS_TOO_EARLY)?;
            let end = body.len() - rest.len();
            match checked(section) {
                Some((hash, data)) => blocks.places.push(Place {
                    hash,
                    start: (end - data.len()) as u32,
                    length: data.len() as u32,
                }),
                None => blocks.dropped = blocks.dropped.saturating_add(1),
            }
        }
        blocks.places.sort_unstable_by_key(|place| place.hash);
        blocks.places.dedup_by_key(|place| place.hash);
        Ok((blocks, root))
    }

    /// Blocks that are not what their names say, or whose names say nothing.
    pub(super) fn dropped(&self) -> u32 {
        self.dropped
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of a block among all.
    pub(super) fn find(&self, link: Link) -> Option<usize> {
        let hash = link.0?;
        self.places.binary_search_by(|it| it.hash.cmp(&hash)).ok()
    }

    pub(super) fn data(&self, place: usize) -> &'b [u8] {
        let Place { start, length, .. } = self.places[place];
        &self.body[start as usize..][..length as usize]
    }
}

/// The hash and the content of a block that is what its name says.
fn checked(section: &[u8]) -> Option<(Hash, &[u8])> {
    let (hash, data) = section
        .strip_prefix(&NAME_START)?
        .split_first_chunk::<32>()?;
    let is_sound = data.len() <= BLOCK_BYTES_MAX && Sha256::digest(data)[..] == hash[..];
    is_sound.then_some((*hash, data))
}

/// The next bytes that have their length in front of them; `None` when they are not there.
fn take_section<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = take_length(rest)?;
    let (section, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(section)
}

/// Seven bits to a byte, the lowest first; every byte but the last has the eighth.
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let mut length = 0_u64;
    for place in 0..LENGTH_BYTES_MAX {
        let byte = *rest.get(place)?;
        length |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return usize::try_from(length).ok();
        }
    }
    None
}
