//! Time to map one page of 40 posts: the compiled definition against structs written by hand.
//!
//! `cargo bench -p kittiwake-network`. The two are measured in turns, so that whatever else the
//! machine does meets both; printed are the medians.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use kittiwake_model::{Identity, Key};
use kittiwake_network::{Answer, Network, Page, html_to_text};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::hint::black_box;
use std::time::Instant;
use url::Url;

const HOST: &str = "sea.example";
const ROUNDS: usize = 400;

fn main() {
    let text = include_str!("../../../networks/mastodon.toml");
    let network = match Network::parse("mastodon.toml", text) {
        Ok(network) => network,
        Err(errors) => {
            println!("{errors}");
            return;
        }
    };
    for (title, authors) in [("one author", 1), ("40 authors", 40)] {
        let page = page(authors);
        measure(&network, title, &page);
    }
}

fn measure(network: &Network, title: &str, page: &str) {
    let (mut compiled, mut written) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        let objects = by_definition(network, page);
        let middle = Instant::now();
        let posts = by_hand(page);
        let end = Instant::now();
        assert!(objects >= 80 && posts == 40);
        // The first rounds warm the caches up.
        if round >= ROUNDS / 10 {
            compiled.push((middle - start).as_nanos());
            written.push((end - middle).as_nanos());
        }
    }
    let (compiled_us, written_us) = (median_us(compiled), median_us(written));
    println!(
        "mapping, 40 posts, {title}, {} KB: definition {compiled_us:.0} µs/page, \
         hand-written {written_us:.0} µs/page, ratio {:.2}",
        page.len() / 1_000,
        compiled_us / written_us
    );
}

fn median_us(mut samples_ns: Vec<u128>) -> f64 {
    samples_ns.sort_unstable();
    samples_ns[samples_ns.len() / 2] as f64 / 1_000.0
}

fn by_definition(network: &Network, page: &str) -> usize {
    let (Ok(base), Some(query)) = (network.base(HOST), network.query("timeline")) else {
        return 0;
    };
    let url: &Url = &base;
    let subject = Identity {
        network: network.name().clone(),
        kind: "user".into(),
        canonical: None,
        aliases: Vec::new(),
    };
    let reading = network.read(&Answer {
        query,
        base: &base,
        host: HOST,
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url,
        status: 200,
        header: &|_| None,
        body: page.as_bytes(),
        walk: None,
    });
    assert!(reading.items == 40 && reading.mended == 0);
    let total = reading.objects.len() + reading.links.len();
    black_box(reading);
    total
}

// What a careful person would write for this one network: the same fields, the same conversions.

#[derive(Deserialize)]
#[expect(dead_code, reason = "made to be measured, not to be used")]
struct RawUser {
    id: String,
    acct: String,
    uri: Option<String>,
    url: Option<String>,
    display_name: Option<String>,
    avatar: Option<String>,
    avatar_description: Option<String>,
    header: Option<String>,
    header_description: Option<String>,
    note: Option<String>,
    created_at: Option<String>,
    last_status_at: Option<String>,
    bot: Option<bool>,
    locked: Option<bool>,
    group: Option<bool>,
    discoverable: Option<bool>,
    indexable: Option<bool>,
    hide_collections: Option<bool>,
    suspended: Option<bool>,
    followers_count: Option<i64>,
    following_count: Option<i64>,
    statuses_count: Option<i64>,
    fields: Option<Box<RawValue>>,
    roles: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "made to be measured, not to be used")]
struct RawMention {
    id: String,
    acct: String,
    url: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "made to be measured, not to be used")]
struct RawTag {
    name: String,
    url: Option<String>,
}

#[derive(Deserialize)]
struct RawApplication {
    name: Option<String>,
}

#[derive(Deserialize)]
struct RawStatus {
    id: String,
    uri: Option<String>,
    url: Option<String>,
    account: RawUser,
    created_at: Option<String>,
    edited_at: Option<String>,
    content: Option<String>,
    language: Option<String>,
    visibility: Option<String>,
    sensitive: Option<bool>,
    spoiler_text: Option<String>,
    in_reply_to_id: Option<String>,
    in_reply_to_account_id: Option<String>,
    reblog: Option<Box<Self>>,
    application: Option<RawApplication>,
    media_attachments: Option<Box<RawValue>>,
    card: Option<Box<RawValue>>,
    poll: Option<Box<RawValue>>,
    pinned: Option<bool>,
    replies_count: Option<i64>,
    reblogs_count: Option<i64>,
    favourites_count: Option<i64>,
    quotes_count: Option<i64>,
    tags: Vec<RawTag>,
    mentions: Vec<RawMention>,
}

#[expect(dead_code, reason = "made to be measured, not to be used")]
struct User {
    raw: RawUser,
    canonical: Option<String>,
    handle: String,
    description: Option<String>,
    created_us: Option<i64>,
    last_posted_us: Option<i64>,
}

#[expect(dead_code, reason = "made to be measured, not to be used")]
struct Status {
    author: User,
    canonical: Option<String>,
    created_us: Option<i64>,
    edited_us: Option<i64>,
    text: Option<String>,
    mentions: Vec<(RawMention, String)>,
    reblog: Option<Box<Self>>,
    tags: Vec<(RawTag, String)>,
    rest: Rest,
}

#[expect(dead_code, reason = "made to be measured, not to be used")]
struct Rest {
    id: String,
    url: Option<String>,
    html: Option<String>,
    texts: [Option<String>; 6],
    json: [Option<String>; 3],
    counts: [Option<i64>; 4],
    flags: [Option<bool>; 2],
}

fn by_hand(page: &str) -> usize {
    let Ok(raw) = serde_json::from_str::<Vec<RawStatus>>(page) else {
        return 0;
    };
    let posts: Vec<Status> = raw.into_iter().map(status_of).collect();
    let count = posts.len();
    black_box(posts);
    count
}

fn qualify(acct: &str) -> String {
    if acct.contains('@') {
        acct.to_owned()
    } else {
        format!("{acct}@{HOST}")
    }
}

fn time_of(text: Option<&str>) -> Option<i64> {
    let time: jiff::Timestamp = text?.parse().ok()?;
    Some(time.as_microsecond())
}

fn user_of(raw: RawUser) -> User {
    User {
        canonical: raw.uri.clone().or_else(|| raw.url.clone()),
        handle: qualify(&raw.acct),
        description: raw.note.as_deref().map(html_to_text),
        created_us: time_of(raw.created_at.as_deref()),
        last_posted_us: time_of(raw.last_status_at.as_deref()),
        raw,
    }
}

fn status_of(raw: RawStatus) -> Status {
    let json = |value: Option<Box<RawValue>>| value.map(|raw| raw.get().to_owned());
    Status {
        author: user_of(raw.account),
        canonical: raw.uri.or_else(|| raw.url.clone()),
        created_us: time_of(raw.created_at.as_deref()),
        edited_us: time_of(raw.edited_at.as_deref()),
        text: raw.content.as_deref().map(html_to_text),
        mentions: raw
            .mentions
            .into_iter()
            .map(|mention| {
                let handle = qualify(&mention.acct);
                (mention, handle)
            })
            .collect(),
        reblog: raw.reblog.map(|inner| Box::new(status_of(*inner))),
        tags: raw
            .tags
            .into_iter()
            .map(|tag| {
                let name = tag.name.to_lowercase();
                (tag, name)
            })
            .collect(),
        rest: Rest {
            id: raw.id,
            url: raw.url,
            html: raw.content,
            texts: [
                raw.language,
                raw.visibility,
                raw.spoiler_text,
                raw.in_reply_to_id,
                raw.in_reply_to_account_id,
                raw.application.and_then(|application| application.name),
            ],
            json: [json(raw.media_attachments), json(raw.card), json(raw.poll)],
            counts: [
                raw.replies_count,
                raw.reblogs_count,
                raw.favourites_count,
                raw.quotes_count,
            ],
            flags: [raw.sensitive, raw.pinned],
        },
    }
}

/// A page like a real one: about 2.9 KB per post, every eighth a repost.
fn page(authors: usize) -> String {
    let posts: Vec<String> = (0..40)
        .map(|number| {
            let author = number % authors;
            if number % 8 == 7 {
                let inner = post(900_000 + number, 500 + number, "null");
                post(number, author, &inner)
            } else {
                post(number, author, "null")
            }
        })
        .collect();
    format!("[{}]", posts.join(","))
}

fn account(number: usize) -> String {
    format!(
        r#"{{"id":"1094000000000{number:05}","username":"user{number}","acct":"user{number}","display_name":"User No {number} \ud83d\udc26","locked":false,"bot":false,"discoverable":true,"indexable":false,"group":false,"created_at":"2022-11-0{day}T00:00:00.000Z","note":"<p>Writes about birds, cliffs &amp; the sea. <a href=\"https://{HOST}/tags/birds\" class=\"mention hashtag\" rel=\"tag\">#<span>birds</span></a></p><p>Number {number}, they/them, opinions are those of the gulls.</p>","url":"https://{HOST}/@user{number}","uri":"https://{HOST}/users/user{number}","avatar":"https://files.{HOST}/accounts/avatars/109/400/000/original/{number:016x}.png","avatar_static":"https://files.{HOST}/accounts/avatars/109/400/000/original/{number:016x}.png","header":"https://files.{HOST}/accounts/headers/109/400/000/original/{number:016x}.png","header_static":"https://files.{HOST}/accounts/headers/109/400/000/original/{number:016x}.png","followers_count":1{number},"following_count":345,"statuses_count":6789,"last_status_at":"2026-11-14","hide_collections":false,"noindex":false,"emojis":[],"roles":[],"fields":[{{"name":"Web","value":"<a href=\"https://birds.example\" rel=\"nofollow noopener me\">birds.example</a>","verified_at":"2024-01-02T03:04:05.000+00:00"}},{{"name":"Where","value":"a cliff","verified_at":null}}]}}"#,
        day = number % 9 + 1,
    )
}

fn post(number: usize, author: usize, reblog: &str) -> String {
    let account = account(author);
    format!(
        r#"{{"id":"1150000000000{number:06}","created_at":"2026-11-14T1{hour}:22:33.{number:03}Z","in_reply_to_id":null,"in_reply_to_account_id":null,"sensitive":false,"spoiler_text":"","visibility":"public","language":"en","uri":"https://{HOST}/users/user{author}/statuses/1150000000000{number:06}","url":"https://{HOST}/@user{author}/1150000000000{number:06}","replies_count":1,"reblogs_count":{number},"favourites_count":7,"quotes_count":0,"edited_at":null,"content":"<p>Kittiwakes nest on narrow ledges &amp; call their own name; post {number} of the day, seen from the north stack at low tide.</p><p><a href=\"https://{HOST}/tags/birds\" class=\"mention hashtag\" rel=\"tag\">#<span>birds</span></a> <span class=\"h-card\"><a href=\"https://sky.example/@bob\" class=\"u-url mention\">@<span>bob</span></a></span></p>","filtered":[],"reblog":{reblog},"application":{{"name":"Web","website":null}},"account":{account},"media_attachments":[{{"id":"1150000000001{number:06}","type":"image","url":"https://files.{HOST}/media/original/{number:016x}.jpg","preview_url":"https://files.{HOST}/media/small/{number:016x}.jpg","remote_url":null,"preview_remote_url":null,"text_url":null,"meta":{{"original":{{"width":600,"height":600,"size":"600x600","aspect":1.0}},"small":{{"width":480,"height":480,"size":"480x480","aspect":1.0}}}},"description":"a gull on a ledge","blurhash":"UGC~-#M{{0JfkNFofR%M{{IURj%Mt7E0oM%MR*"}}],"mentions":[{{"id":"109400000000099999","username":"bob","url":"https://sky.example/@bob","acct":"bob@sky.example"}}],"tags":[{{"name":"birds","url":"https://{HOST}/tags/birds"}}],"emojis":[],"card":null,"poll":null,"quote":null,"quote_approval":{{"automatic":["public"],"manual":[],"current_user":"automatic"}}}}"#,
        hour = number % 10,
    )
}
