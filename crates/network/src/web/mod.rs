//! Web pages as the tree that JSON is: a definition says by CSS selectors what stands where.
//!
//! What a definition needs and a page has nowhere is told by name: a layout that has changed is no
//! page with nothing on it.

mod attributes;
pub(crate) mod dom;
pub(crate) mod robots;

use crate::json;
use dom::{Css, Dom, Element};
use url::{Url, form_urlencoded};

/// How long the tree of one page may be.
const JSON_BYTES_MAX: usize = 32 << 20;
/// Elements that selectors look at, all items and all that stands in them counted.
const LOOKS_MAX: usize = 20_000_000;
/// The longest address that is taken off a page.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// What is taken of a page, by name.
#[derive(Debug)]
pub(crate) struct WebRule {
    pub(crate) parts: Vec<Part>,
}

/// One thing on a page, or in an item of a list.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Where it is; none means what it is a part of.
    pub(crate) css: Option<Css>,
    /// What it has to stand in. If that is there, a list with nothing in it is empty.
    pub(crate) within: Option<Css>,
    pub(crate) is_optional: bool,
    pub(crate) taking: Taking,
}

#[derive(Debug)]
pub(crate) enum Taking {
    /// Of the first that fits.
    One(Piece),
    /// Of all that fit.
    All(Piece),
    /// All that fit, each with parts of its own.
    Each(Vec<Part>),
    /// Nothing of the page, but the canonical id of what was asked about: pages do not say who they are.
    Subject,
}

/// What is taken of an element.
#[derive(Debug)]
pub(crate) enum Piece {
    Text,
    Markup,
    Attribute(String),
    Address(AddressRule),
}

/// An attribute that is an address, and how it is written so that one page has one.
#[derive(Debug)]
pub(crate) struct AddressRule {
    pub(crate) attribute: String,
    /// Parameters that say nothing of which page it is; `*` means all.
    pub(crate) without: Vec<String>,
    /// The order of the parameters says nothing either.
    pub(crate) is_sorted: bool,
    /// Only the site of the page itself has what is looked for.
    pub(crate) is_here: bool,
}

/// Where a page is.
struct Whereabouts<'p> {
    address: &'p Url,
    /// What its addresses are completed by: pages may name another than their own.
    base: Url,
}

/// A page as JSON.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) json: String,
    /// What was missing in some items, but not in all.
    pub(crate) mended: u32,
}

/// Why a page cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WebError {
    TooLarge(&'static str),
    /// What the definition needs is nowhere: by name and selector, in the order of the definition.
    Unfound(Vec<String>),
}

impl WebRule {
    /// The tree of a page about a subject. Addresses on it are completed by its own.
    pub(crate) fn convert(
        &self,
        text: &str,
        address: &Url,
        subject: Option<&str>,
    ) -> Result<Converted, WebError> {
        let dom = Dom::parse(text).map_err(WebError::TooLarge)?;
        let page = Whereabouts {
            address,
            base: base_of(&dom, address),
        };
        let mut writer = Writer {
            page: &page,
            subject,
            json: String::new(),
            looks: 0,
        };
        let mut tally = Tally::of(&self.parts);
        writer.write_parts(&self.parts, dom.root(), &mut tally)?;
        let mut unfound = Vec::new();
        tally.name_unfound(&self.parts, "", &mut unfound);
        if !unfound.is_empty() {
            return Err(WebError::Unfound(unfound));
        }
        Ok(Converted {
            json: writer.json,
            mended: tally.missing(&self.parts),
        })
    }
}

/// What a page's addresses are completed by.
fn base_of(dom: &Dom, address: &Url) -> Url {
    let Ok(css) = Css::parse("base[href]") else {
        return address.clone();
    };
    let told = dom.all(&css).next().and_then(|it| it.attribute("href"));
    let told = told.and_then(|href| address.join(href).ok());
    told.unwrap_or_else(|| address.clone())
}

/// How often parts were looked for and found, in the order of the definition.
struct Tally(Vec<Count>);

struct Count {
    looked: u32,
    found: u32,
    inner: Tally,
}

impl Tally {
    fn of(parts: &[Part]) -> Self {
        let count = |part: &Part| Count {
            looked: 0,
            found: 0,
            inner: match &part.taking {
                Taking::Each(parts) => Self::of(parts),
                _ => Self(Vec::new()),
            },
        };
        Self(parts.iter().map(count).collect())
    }

    fn name_unfound(&self, parts: &[Part], before: &str, unfound: &mut Vec<String>) {
        for (part, count) in parts.iter().zip(&self.0) {
            let name = format!("{before}{}", part.name);
            if !part.is_optional && count.looked > 0 && count.found == 0 {
                unfound.push(format!("{name} ({})", part.words()));
            }
            if let Taking::Each(inner) = &part.taking {
                count
                    .inner
                    .name_unfound(inner, &format!("{name}."), unfound);
            }
        }
    }

    fn missing(&self, parts: &[Part]) -> u32 {
        let each = parts.iter().zip(&self.0).map(|(part, count)| {
            let own = if part.is_optional {
                0
            } else {
                count.looked - count.found
            };
            match &part.taking {
                Taking::Each(inner) => own.saturating_add(count.inner.missing(inner)),
                _ => own,
            }
        });
        each.fold(0, u32::saturating_add)
    }
}

impl Part {
    /// What it is looked for by, in the words of the definition.
    fn words(&self) -> String {
        let css = self.css.as_ref().map(|css| css.text.as_str());
        match (&self.within, css) {
            (Some(within), _) => within.text.clone(),
            (None, Some(css)) => css.to_owned(),
            (None, None) => match &self.taking {
                Taking::One(piece) | Taking::All(piece) => piece.words().to_owned(),
                Taking::Each(_) | Taking::Subject => String::new(),
            },
        }
    }
}

impl Piece {
    fn words(&self) -> &str {
        match self {
            Self::Text => "text",
            Self::Markup => "html",
            Self::Attribute(name)
            | Self::Address(AddressRule {
                attribute: name, ..
            }) => name,
        }
    }

    /// What an element has of it, if it has it.
    fn of(&self, element: Element<'_>, page: &Whereabouts<'_>) -> Option<String> {
        match self {
            Self::Text => Some(element.text()),
            Self::Markup => Some(element.markup()),
            Self::Attribute(name) => element.attribute(name).map(str::to_owned),
            Self::Address(rule) => rule.read(element.attribute(&rule.attribute)?, page),
        }
    }
}

impl AddressRule {
    /// An address as one page has one: complete, without what leads to a place on it, and without
    /// what the definition says is of no matter.
    fn read(&self, href: &str, page: &Whereabouts<'_>) -> Option<String> {
        let mut url = page.base.join(href.trim()).ok()?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        if self.is_here && url.origin() != page.address.origin() {
            return None;
        }
        url.set_fragment(None);
        // A name or a password on a page is nobody's to send.
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        self.order(&mut url);
        (url.as_str().len() <= ADDRESS_BYTES_MAX).then(|| url.into())
    }

    fn order(&self, url: &mut Url) {
        if url.query().is_none() || (self.without.is_empty() && !self.is_sorted) {
            return;
        }
        let is_kept = |name: &str| !self.without.iter().any(|it| it == name || it == "*");
        let mut pairs: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| is_kept(name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        if self.is_sorted {
            pairs.sort();
        }
        if pairs.is_empty() {
            url.set_query(None);
            return;
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        url.set_query(Some(&query.extend_pairs(pairs).finish()));
    }
}

struct Writer<'b> {
    page: &'b Whereabouts<'b>,
    subject: Option<&'b str>,
    json: String,
    looks: usize,
}

impl Writer<'_> {
    fn write_parts(
        &mut self,
        parts: &[Part],
        scope: Element<'_>,
        tally: &mut Tally,
    ) -> Result<(), WebError> {
        // Items within items are looked through once for each.
        self.looks += scope.size().saturating_mul(parts.len());
        if self.looks > LOOKS_MAX {
            return Err(WebError::TooLarge(
                "more to look through than one page may hold",
            ));
        }
        let mut mark = '{';
        for (part, count) in parts.iter().zip(&mut tally.0) {
            count.looked += 1;
            let Some(found) = Found::of(part, scope) else {
                continue;
            };
            let before = self.json.len();
            self.json.push(mark);
            json::push_quoted(&part.name, &mut self.json);
            self.json.push(':');
            if self.write(part, found, &mut count.inner)? {
                count.found += 1;
                mark = ',';
            } else {
                self.json.truncate(before);
            }
            if self.json.len() > JSON_BYTES_MAX {
                return Err(WebError::TooLarge("more than is taken of one page"));
            }
        }
        self.json.push_str(if mark == '{' { "{}" } else { "}" });
        Ok(())
    }

    /// Writes what a part is; says whether it is anything.
    fn write(
        &mut self,
        part: &Part,
        found: Found<'_>,
        inner: &mut Tally,
    ) -> Result<bool, WebError> {
        let mut is_any = part.is_optional || part.within.is_some();
        let mut mark = '[';
        for element in found.elements {
            match &part.taking {
                Taking::One(piece) => {
                    let Some(value) = piece.of(element, self.page) else {
                        continue;
                    };
                    json::push_quoted(&value, &mut self.json);
                    return Ok(true);
                }
                Taking::All(piece) => {
                    let Some(value) = piece.of(element, self.page) else {
                        continue;
                    };
                    self.json.push(std::mem::replace(&mut mark, ','));
                    json::push_quoted(&value, &mut self.json);
                }
                Taking::Subject => {
                    let Some(subject) = self.subject else {
                        continue;
                    };
                    json::push_quoted(subject, &mut self.json);
                    return Ok(true);
                }
                Taking::Each(parts) => {
                    self.json.push(std::mem::replace(&mut mark, ','));
                    self.write_parts(parts, element, inner)?;
                }
            }
            is_any = true;
        }
        if matches!(part.taking, Taking::One(_) | Taking::Subject) {
            return Ok(false);
        }
        self.json.push_str(if mark == '[' { "[]" } else { "]" });
        Ok(is_any)
    }
}

/// The elements that a part is taken of.
struct Found<'d> {
    elements: Vec<Element<'d>>,
}

impl<'d> Found<'d> {
    /// `None` where what they have to stand in is missing.
    fn of(part: &Part, scope: Element<'d>) -> Option<Self> {
        let scope = match &part.within {
            Some(within) => scope.find(within).next()?,
            None => scope,
        };
        let elements = match &part.css {
            None => vec![scope],
            Some(css) if matches!(part.taking, Taking::One(_)) => scope.find(css).take(1).collect(),
            Some(css) => scope.find(css).collect(),
        };
        Some(Self { elements })
    }
}

/// What was not found, in one line for the log.
pub(crate) fn unfound_words(unfound: &[String]) -> String {
    const NAMED_MAX: usize = 5;
    const WORDS_MAX: usize = 80;
    let named: Vec<String> = unfound
        .iter()
        .take(NAMED_MAX)
        .map(|it| it.chars().take(WORDS_MAX).collect())
        .collect();
    let more = unfound.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("nothing on the page fits {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests;
