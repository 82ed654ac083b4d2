//! The pages that are crawled, each computed from its number.
//!
//! Many users, each with a timeline of a few pages of 40 posts. All posts are new; who wrote them
//! follows Zipf's law, and so do tags. A page is written from byte templates in which only ids and
//! a few fields differ: that costs a server next to nothing and needs no memory.

pub(crate) const PAGES_PER_TIMELINE: u64 = 4;
pub(crate) const STATUSES_PER_PAGE: u64 = 40;
const AUTHORS: usize = 20_000;
const TAGS: usize = 2_000;
const FIRST_ACCOUNT: u64 = 109_400_000_000_000_000;
const FIRST_STATUS: u64 = 115_000_000_000_000_000;
/// Posts that are only seen as reposts.
const FIRST_INNER: u64 = 115_500_000_000_000_000;
/// Status ids that a timeline has to itself.
const IDS_PER_TIMELINE: u64 = 1_000;

/// The id of the user whose timeline has this number.
pub(crate) fn owner(timeline: u64) -> u64 {
    FIRST_ACCOUNT + timeline
}

/// One page of one timeline; page 0 is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    timeline: u64,
    page: u64,
}

impl Place {
    pub(crate) fn nth(timeline: u64, page: u64) -> Self {
        Self { timeline, page }
    }

    /// The page that a request asks for.
    pub(crate) fn find(account: u64, max_id: Option<u64>) -> Option<Self> {
        let timeline = account.checked_sub(FIRST_ACCOUNT)?;
        let page = match max_id {
            None => 0,
            Some(max_id) => {
                let number = max_id.checked_sub(FIRST_STATUS + timeline * IDS_PER_TIMELINE)?;
                PAGES_PER_TIMELINE.checked_sub(number / STATUSES_PER_PAGE)?
            }
        };
        (page < PAGES_PER_TIMELINE).then_some(Self { timeline, page })
    }

    /// The `max_id` of the next page, if there is one.
    pub(crate) fn next(self) -> Option<u64> {
        let has_next = self.page + 1 < PAGES_PER_TIMELINE;
        has_next.then(|| FIRST_STATUS + self.number(STATUSES_PER_PAGE - 1))
    }

    /// A number of its own for every post; newer ones have greater numbers.
    fn number(self, place: u64) -> u64 {
        let newer_first =
            (PAGES_PER_TIMELINE - self.page) * STATUSES_PER_PAGE - 1 - place % STATUSES_PER_PAGE;
        self.timeline * IDS_PER_TIMELINE + newer_first
    }
}

/// Ranks by Zipf's law, drawn by looking into the sums.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, random: u64) -> u64 {
        let total = self.0.last().copied().unwrap_or(1.0);
        let at = (random >> 11) as f64 / (1_u64 << 53) as f64 * total;
        self.0.partition_point(|sum| *sum < at) as u64
    }
}

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// What differs from post to post; in templates, the letter after a `§`.
struct Numbers {
    status: u64,
    inner: u64,
    author: u64,
    inner_author: u64,
    mentioned: u64,
    replied: u64,
    replied_author: u64,
    tag: u64,
    time: u64,
}

enum Piece {
    Text(String),
    Field(char),
}

struct Template(Vec<Piece>);

impl Template {
    fn new(text: &str) -> Self {
        let mut parts = text.split('§');
        let mut pieces = vec![Piece::Text(parts.next().unwrap_or_default().to_owned())];
        for part in parts {
            let mut letters = part.chars();
            pieces.extend(letters.next().map(Piece::Field));
            pieces.push(Piece::Text(letters.as_str().to_owned()));
        }
        Self(pieces)
    }

    fn write(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field('s') => digits(out, FIRST_STATUS + numbers.status, 18),
                Piece::Field('i') => digits(out, FIRST_INNER + numbers.inner, 18),
                Piece::Field('r') => digits(out, FIRST_STATUS + numbers.replied, 18),
                Piece::Field('R') => digits(out, FIRST_ACCOUNT + numbers.replied_author, 18),
                Piece::Field('A') => digits(out, FIRST_ACCOUNT + numbers.author, 18),
                Piece::Field('a') => digits(out, numbers.author, 6),
                Piece::Field('B') => digits(out, FIRST_ACCOUNT + numbers.inner_author, 18),
                Piece::Field('b') => digits(out, numbers.inner_author, 6),
                Piece::Field('M') => digits(out, FIRST_ACCOUNT + numbers.mentioned, 18),
                Piece::Field('m') => digits(out, numbers.mentioned, 6),
                Piece::Field('t') => digits(out, numbers.tag, 4),
                Piece::Field(_) => write_time(numbers.time, out),
            }
        }
    }
}

fn digits(out: &mut Vec<u8>, number: u64, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    let mut rest = number;
    for place in (start..start + width).rev() {
        out[place] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Some instant of November 2026.
fn write_time(time: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"2026-11-");
    for (separator, number, width) in [
        ("T", 1 + time / 86_400_000 % 28, 2),
        (":", time / 3_600_000 % 24, 2),
        (":", time / 60_000 % 60, 2),
        (".", time / 1_000 % 60, 2),
        ("Z", time % 1_000, 3),
    ] {
        digits(out, number, width);
        out.extend_from_slice(separator.as_bytes());
    }
}

/// Everything that pages are written from.
pub(crate) struct Pages {
    authors: Zipf,
    tags: Zipf,
    /// Kinds of posts, by their place on the page.
    posts: [Template; 8],
}

impl Pages {
    pub(crate) fn new() -> Self {
        let tagged = post(TAG, "[]", MEDIA, "null");
        let plain = post("[]", "[]", "[]", "null");
        let mentioning = post(TAG, MENTION, "[]", "null");
        let reply = plain
            .replace(r#""in_reply_to_id":null"#, r#""in_reply_to_id":"§r""#)
            .replace(
                r#""in_reply_to_account_id":null"#,
                r#""in_reply_to_account_id":"§R""#,
            );
        let inner = post(TAG, "[]", "[]", "null")
            .replace("§s", "§i")
            .replace("§a", "§b")
            .replace("§A", "§B");
        let repost = post("[]", "[]", "[]", &inner);
        let kinds = [
            &tagged,
            &plain,
            &mentioning,
            &reply,
            &tagged,
            &plain,
            &mentioning,
            &repost,
        ];
        Self {
            authors: Zipf::new(AUTHORS),
            tags: Zipf::new(TAGS),
            posts: kinds.map(|text| Template::new(text)),
        }
    }

    /// Whoever a timeline belongs to wrote the first post of each of its pages.
    fn author(&self, page: Place, place: u64) -> u64 {
        if place == 0 {
            return page.timeline;
        }
        self.authors.draw(mix(8 * page.number(place)))
    }

    pub(crate) fn render(&self, page: Place) -> Vec<u8> {
        let mut out = Vec::with_capacity(100_000);
        out.push(b'[');
        for place in 0..STATUSES_PER_PAGE {
            if place > 0 {
                out.push(b',');
            }
            let number = page.number(place);
            let older = (place + 1).min(STATUSES_PER_PAGE - 1);
            let numbers = Numbers {
                status: number,
                inner: number,
                author: self.author(page, place),
                inner_author: self.authors.draw(mix(8 * number + 1)),
                mentioned: self.authors.draw(mix(8 * number + 2)),
                replied: page.number(older),
                replied_author: self.author(page, older),
                tag: self.tags.draw(mix(8 * number + 3)),
                time: mix(8 * number + 4) % (28 * 86_400_000),
            };
            self.posts[place as usize % self.posts.len()].write(&numbers, &mut out);
        }
        out.push(b']');
        out
    }
}

const TAG: &str = r#"[{"name":"tag§t","url":"https://sea.example/tags/tag§t"}]"#;
const MENTION: &str =
    r#"[{"id":"§M","username":"user§m","url":"https://sea.example/@user§m","acct":"user§m"}]"#;
const MEDIA: &str = r#"[{"id":"§s","type":"image","url":"https://files.sea.example/media_attachments/files/original/§s.jpg","preview_url":"https://files.sea.example/media_attachments/files/small/§s.jpg","remote_url":null,"preview_remote_url":null,"text_url":null,"meta":{"original":{"width":1200,"height":800,"size":"1200x800","aspect":1.5},"small":{"width":588,"height":392,"size":"588x392","aspect":1.5}},"description":"a gull on a ledge, seen from below","blurhash":"UGC~-xMx0JfkNFofRxMxIURjxMt7E0oMxMRj"}]"#;

const ACCOUNT: &str = r#"{"id":"§A","username":"user§a","acct":"user§a","display_name":"User No §a","locked":false,"bot":false,"discoverable":true,"indexable":true,"group":false,"created_at":"2022-11-05T00:00:00.000Z","note":"<p>Writes about birds, cliffs &amp; the sea. <a href=\"https://sea.example/tags/birds\" class=\"mention hashtag\" rel=\"tag\">#<span>birds</span></a></p>","url":"https://sea.example/@user§a","uri":"https://sea.example/users/user§a","avatar":"https://files.sea.example/accounts/avatars/109/400/original/§a.png","avatar_static":"https://files.sea.example/accounts/avatars/109/400/original/§a.png","header":"https://files.sea.example/accounts/headers/109/400/original/§a.png","header_static":"https://files.sea.example/accounts/headers/109/400/original/§a.png","followers_count":1234,"following_count":345,"statuses_count":6789,"last_status_at":"2026-11-14","hide_collections":false,"noindex":false,"emojis":[],"roles":[],"fields":[{"name":"Web","value":"<a href=\"https://birds.example\" rel=\"nofollow noopener me\">birds.example</a>","verified_at":"2024-01-02T03:04:05.000+00:00"}]}"#;

fn post(tags: &str, mentions: &str, media: &str, reblog: &str) -> String {
    format!(
        r#"{{"id":"§s","created_at":"§d","in_reply_to_id":null,"in_reply_to_account_id":null,"sensitive":false,"spoiler_text":"","visibility":"public","language":"en","uri":"https://sea.example/users/user§a/statuses/§s","url":"https://sea.example/@user§a/§s","replies_count":1,"reblogs_count":2,"favourites_count":7,"quotes_count":0,"edited_at":null,"content":"<p>Kittiwakes nest on narrow ledges &amp; call their own name; post §s, seen from the north stack at low tide.</p><p>More tomorrow, <a href=\"https://sea.example/tags/birds\" class=\"mention hashtag\" rel=\"tag\">#<span>birds</span></a></p>","filtered":[],"reblog":{reblog},"application":{{"name":"Web","website":null}},"account":{ACCOUNT},"media_attachments":{media},"mentions":{mentions},"tags":{tags},"emojis":[],"card":null,"poll":null,"quote":null}}"#
    )
}
