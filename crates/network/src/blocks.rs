//! Pages that say in other words that one has asked too much: block pages, captchas, and log-ins that
//! were not asked for before. Pure.

use crate::network::Network;

/// How such a page is known. All that is given has to hold.
#[derive(Debug)]
pub(crate) struct BlockRule {
    /// Inclusive ranges of status codes; any when there are none.
    pub(crate) statuses: Vec<(u16, u16)>,
    /// One of these stands in the page, in whatever letters.
    pub(crate) texts: Vec<String>,
    /// The page leads there.
    pub(crate) redirect: Option<String>,
    pub(crate) reason: String,
}

/// No more of a page is searched.
const SEARCHED_BYTES_MAX: usize = 65_536;

impl BlockRule {
    fn fits(&self, status: u16, location: Option<&str>, page: &str) -> bool {
        let is_status = |range: &(u16, u16)| (range.0..=range.1).contains(&status);
        let fits_status = self.statuses.is_empty() || self.statuses.iter().any(is_status);
        let fits_text = self.texts.is_empty() || self.texts.iter().any(|text| page.contains(text));
        let leads_there = |there: &String| location.is_some_and(|place| place.contains(there));
        fits_status && fits_text && self.redirect.as_ref().is_none_or(leads_there)
    }
}

impl Network {
    /// What an answer says if it is one of the pages with which the network shuts somebody out.
    pub fn block_page(&self, status: u16, location: Option<&str>, body: &[u8]) -> Option<&str> {
        if self.blocks.is_empty() {
            return None;
        }
        let searched = &body[..body.len().min(SEARCHED_BYTES_MAX)];
        let page = String::from_utf8_lossy(searched).to_lowercase();
        let rule = self
            .blocks
            .iter()
            .find(|rule| rule.fits(status, location, &page))?;
        Some(&rule.reason)
    }
}
