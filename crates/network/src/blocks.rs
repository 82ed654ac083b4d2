//! Pages that say in other words that one has asked too much: block pages, captchas, and log-ins that
//! were not asked for before. Pure.

use crate::charset;
use crate::network::Network;
use crate::web::dom::{Css, Dom};

/// How such a page is known. All that is given has to hold.
#[derive(Debug)]
pub(crate) struct BlockRule {
    /// Inclusive ranges of status codes; any when there are none.
    pub(crate) statuses: Vec<(u16, u16)>,
    /// One of these stands in the page, in whatever letters.
    pub(crate) texts: Vec<String>,
    /// This is on the page, and the text stands in it: what people write on a page is no word of the site.
    pub(crate) css: Option<Css>,
    /// The page leads there.
    pub(crate) redirect: Option<String>,
    pub(crate) reason: String,
}

/// No more of a page is searched.
const SEARCHED_BYTES_MAX: usize = 65_536;

impl BlockRule {
    fn fits(&self, status: u16, location: Option<&str>, page: &Page<'_>) -> bool {
        let is_status = |range: &(u16, u16)| (range.0..=range.1).contains(&status);
        let fits_status = self.statuses.is_empty() || self.statuses.iter().any(is_status);
        let leads_there = |there: &String| location.is_some_and(|place| place.contains(there));
        if !fits_status || !self.redirect.as_ref().is_none_or(leads_there) {
            return false;
        }
        let says =
            |text: &str| self.texts.is_empty() || self.texts.iter().any(|it| text.contains(it));
        match &self.css {
            None => says(&page.lowered()),
            Some(css) => page.has(css, says),
        }
    }
}

/// The beginning of a page.
struct Page<'b> {
    searched: &'b [u8],
    content_type: Option<&'b str>,
}

impl Page<'_> {
    fn lowered(&self) -> String {
        String::from_utf8_lossy(self.searched).to_lowercase()
    }

    /// Whether something on it fits, and says what it has to.
    fn has(&self, css: &Css, says: impl Fn(&str) -> bool) -> bool {
        let text = charset::decode_page(self.searched, self.content_type, &mut 0);
        let Ok(dom) = Dom::parse(&text) else {
            return false;
        };
        dom.all(css)
            .any(|element| says(&element.text().to_lowercase()))
    }
}

impl Network {
    /// What an answer says if it is one of the pages with which the network shuts somebody out.
    pub fn block_page(
        &self,
        status: u16,
        (location, content_type): (Option<&str>, Option<&str>),
        body: &[u8],
    ) -> Option<&str> {
        let page = Page {
            searched: &body[..body.len().min(SEARCHED_BYTES_MAX)],
            content_type,
        };
        let mut rules = self.blocks.iter();
        let rule = rules.find(|rule| rule.fits(status, location, &page))?;
        Some(&rule.reason)
    }
}
