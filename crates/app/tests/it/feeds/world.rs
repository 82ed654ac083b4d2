//! Feeds as their authors mean them, and the four ways to write them down.

use std::fmt::Write as _;

/// One item, as its author means it.
#[derive(Clone, Default)]
pub(super) struct Item {
    /// `guid`, `id`, `rdf:about`: whatever the format calls it.
    pub(super) id: Option<&'static str>,
    pub(super) title: &'static str,
    pub(super) html: &'static str,
    /// The same without markup.
    pub(super) text: &'static str,
    pub(super) link: Option<&'static str>,
    /// As RFC 3339 and as RFC 2822 write it, and in microseconds since 1970.
    pub(super) made: Option<(&'static str, &'static str, i64)>,
    pub(super) by: &'static str,
    pub(super) tags: &'static [&'static str],
    pub(super) enclosed: Option<&'static str>,
}

#[derive(Clone)]
pub(super) struct Feed {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) page: &'static str,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Rss,
    Rdf,
    Atom,
    Json,
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// An element with text, if there is any.
fn element(name: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<{name}>{}</{name}>\n", escape(text))
}

pub(super) fn rss(feed: &Feed, encoding: &str) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"{encoding}\"?>\n<rss version=\"2.0\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"><channel>\n{}{}{}",
        element("title", feed.title),
        element("link", feed.page),
        element("description", feed.about),
    );
    for item in &feed.items {
        out.push_str("<item>");
        out.push_str(&element("title", item.title));
        out.push_str(&element("link", item.link.unwrap_or_default()));
        if let Some(id) = item.id {
            let is_link = item.link == Some(id);
            let _ = writeln!(out, "<guid isPermaLink=\"{is_link}\">{}</guid>", escape(id));
        }
        out.push_str(&element("dc:creator", item.by));
        out.push_str(&element(
            "pubDate",
            item.made.map_or("", |(_, rfc2822, _)| rfc2822),
        ));
        for tag in item.tags {
            out.push_str(&element("category", tag));
        }
        let _ = writeln!(
            out,
            "<content:encoded><![CDATA[{}]]></content:encoded>",
            item.html
        );
        if let Some(url) = item.enclosed {
            let _ = writeln!(
                out,
                "<enclosure url=\"{url}\" length=\"5\" type=\"audio/ogg\"/>"
            );
        }
        out.push_str("</item>\n");
    }
    out + "</channel></rss>"
}

pub(super) fn rdf(feed: &Feed, encoding: &str) -> String {
    let mut out = format!(
        "<?xml version='1.0' encoding='{encoding}'?><rdf:RDF \
         xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel rdf:about=\"{}\">{}{}{}</channel>",
        feed.page,
        element("title", feed.title),
        element("link", feed.page),
        element("description", feed.about),
    );
    for item in &feed.items {
        let _ = write!(
            out,
            "<item rdf:about=\"{}\">",
            escape(item.id.unwrap_or_default())
        );
        out.push_str(&element("title", item.title));
        out.push_str(&element("link", item.link.unwrap_or_default()));
        out.push_str(&element("description", item.html));
        out.push_str(&element("dc:creator", item.by));
        out.push_str(&element(
            "dc:date",
            item.made.map_or("", |(rfc3339, ..)| rfc3339),
        ));
        for tag in item.tags {
            out.push_str(&element("dc:subject", tag));
        }
        out.push_str("</item>");
    }
    out + "</rdf:RDF>"
}

pub(super) fn atom(feed: &Feed, encoding: &str) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"{encoding}\"?><feed xmlns=\"http://www.w3.org/2005/Atom\">\
         {}{}<link href=\"{}\"/><id>urn:feed</id><updated>2026-11-14T00:00:00Z</updated>",
        element("title", feed.title),
        element("subtitle", feed.about),
        feed.page,
    );
    for item in &feed.items {
        out.push_str("<entry>");
        out.push_str(&element("title", item.title));
        out.push_str(&element("id", item.id.unwrap_or_default()));
        if let Some(link) = item.link {
            let _ = write!(out, "<link rel=\"alternate\" href=\"{link}\"/>");
        }
        if let Some(url) = item.enclosed {
            let _ = write!(
                out,
                "<link rel='enclosure' href='{url}' length='5' type='audio/ogg'/>"
            );
        }
        let _ = write!(out, "<author>{}</author>", element("name", item.by));
        if let Some((rfc3339, ..)) = item.made {
            out.push_str(&element("published", rfc3339));
            out.push_str(&element("updated", rfc3339));
        }
        for tag in item.tags {
            let _ = write!(out, "<category term=\"{}\"/>", escape(tag));
        }
        let _ = write!(
            out,
            "<content type=\"html\">{}</content></entry>",
            escape(item.html)
        );
    }
    out + "</feed>"
}

pub(super) fn json(feed: &Feed) -> String {
    let items: Vec<_> = feed
        .items
        .iter()
        .map(|item| {
            let mut out = serde_json::json!({ "id": item.id, "title": item.title,
                "content_html": item.html, "authors": [{ "name": item.by }], "tags": item.tags });
            if let Some(link) = item.link {
                out["url"] = link.into();
            }
            if let Some((rfc3339, ..)) = item.made {
                out["date_published"] = rfc3339.into();
            }
            if let Some(url) = item.enclosed {
                out["attachments"] =
                    serde_json::json!([{ "url": url, "mime_type": "audio/ogg", "size_in_bytes": 5 }]);
            }
            out
        })
        .collect();
    serde_json::json!({ "version": "https://jsonfeed.org/version/1.1", "title": feed.title,
        "description": feed.about, "home_page_url": feed.page, "items": items })
    .to_string()
}

/// Everything in UTF-16, little end first, with its mark.
pub(super) fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

pub(super) fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|it| u8::try_from(u32::from(it)).unwrap_or(b'?'))
        .collect()
}

/// Letters of the Cyrillic alphabet as Windows writes them.
pub(super) fn windows1251(text: &str) -> Vec<u8> {
    let byte = |it: char| match u32::from(it) {
        ascii @ 0..=127 => ascii as u8,
        letter @ 0x410..=0x44F => (letter - 0x410 + 0xC0) as u8,
        _ => b'?',
    };
    text.chars().map(byte).collect()
}

const MADE: (&str, &str, i64) = (
    "2026-11-13T08:30:00+01:00",
    "Fri, 13 Nov 2026 08:30:00 +0100",
    1_794_555_000_000_000,
);

pub(super) fn sample(title: &'static str, id: &'static str) -> Item {
    Item {
        id: Some(id),
        title,
        html: "<p>Some <b>words</b> &amp; more</p>",
        text: "Some words & more",
        link: Some("https://blog.example/some"),
        made: Some(MADE),
        by: "Ann",
        tags: &["Eggs", "Gulls"],
        enclosed: Some("https://blog.example/some.ogg"),
    }
}

pub(super) fn feed(title: &'static str, items: Vec<Item>) -> Feed {
    Feed {
        title,
        about: "All about it",
        page: "https://blog.example/",
        items,
    }
}
