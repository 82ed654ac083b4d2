//! Repositories that are made to take all memory there is.

use super::{OWNER, Told, all_at_home, pairs};
use crate::counterpart::reply;
use crate::repository::{Block, car, cbor, commit, entry, length, node, text};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;

/// What the server of an account sends in place of it.
pub(super) fn explode(stream: &mut TcpStream, did: &str, headers: &str) -> std::io::Result<()> {
    let body = match did {
        "did:plc:unfolds" => unfolds(did),
        "did:plc:doubles" => doubles(did),
        "did:plc:claims" => claims(did),
        "did:plc:inflates" => {
            let headers = format!("{headers}content-encoding: gzip\r\n");
            return reply(stream, "200 OK", &headers, &inflates());
        }
        _ => return never_ends(stream, headers),
    };
    reply(stream, "200 OK", headers, &body)
}

fn of_root(did: &str, root: &[u8], mut blocks: Vec<Block>) -> Vec<u8> {
    let commit = Block::new(commit(did, root));
    let name = commit.cid.clone();
    blocks.insert(0, commit);
    car(&name, &blocks)
}

/// One long record under thousands of keys: a gigabyte out of half a megabyte.
fn unfolds(did: &str) -> Vec<u8> {
    let words = json!({ "text": "x".repeat(200_000), "createdAt": "2026-01-01T00:00:00Z" });
    let record = Block::new(cbor(&words));
    let keys = (0..5_000).map(|number| format!("app.bsky.feed.post/{number:05}"));
    let entries: Vec<Vec<u8>> = keys
        .map(|key| entry(0, key.as_bytes(), &record.cid, None))
        .collect();
    let root = Block::new(node(None, &entries));
    of_root(did, &root.cid.clone(), vec![root, record])
}

/// Every node has the one below it twice.
fn doubles(did: &str) -> Vec<u8> {
    let record = Block::new(cbor(&json!({})));
    let mut blocks = vec![Block::new(node(None, &[]))];
    for number in 0..100 {
        let below = blocks[number].cid.clone();
        let key = format!("app.bsky.feed.post/{number:03}");
        let own = entry(0, key.as_bytes(), &record.cid, Some(&below));
        blocks.push(Block::new(node(Some(&below), &[own])));
    }
    let root = blocks[100].cid.clone();
    blocks.push(record);
    of_root(did, &root, blocks)
}

/// A block that says of itself that it is longer than any memory.
fn claims(did: &str) -> Vec<u8> {
    let root = Block::new(node(None, &[]));
    let mut body = of_root(did, &root.cid.clone(), vec![root]);
    body.extend(length(1 << 60));
    body
}

/// A gigabyte of nothing, packed.
fn inflates() -> Vec<u8> {
    let packed = std::process::Command::new("sh")
        .args(["-c", "head -c 1000000000 /dev/zero | gzip -1"])
        .output();
    packed.expect("gzip").stdout
}

/// Blocks without end, each of them right.
fn never_ends(stream: &mut TcpStream, headers: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let root = Block::new(node(None, &[]));
    stream.write_all(&of_root("did:plc:endless", &root.cid.clone(), vec![root]))?;
    let block = Block::new(text(&"x".repeat(60_000)));
    let mut bytes = length(block.cid.len() + block.data.len());
    bytes.extend(&block.cid);
    bytes.extend(&block.data);
    loop {
        stream.write_all(&bytes)?;
    }
}

#[test]
fn repositories_that_take_all_memory_cost_only_themselves() {
    let told = Told::crawl(
        all_at_home,
        "repositories",
        "SELF",
        &[
            "did:plc:claims",
            "did:plc:doubles",
            "did:plc:endless",
            "did:plc:inflates",
            "did:plc:unfolds",
            OWNER,
        ],
    );
    let expected = [
        ("did:plc:claims", "malformed"),
        ("did:plc:doubles", "malformed"),
        ("did:plc:endless", "too much data"),
        ("did:plc:inflates", "too much data"),
        ("did:plc:unfolds", "too much data"),
        (OWNER, "ok"),
    ];
    assert_eq!(told.outcomes("repository"), pairs(expected));
    let authors = told.rows(
        "SELECT DISTINCT a.id FROM statuses s JOIN ids a ON a.key = s.author AND a.canonical
         WHERE s.text IS NOT NULL",
    );
    assert_eq!(authors, [vec![OWNER.to_owned()]].into());
    println!("{} MiB at the most", told.peak_mib);
}
