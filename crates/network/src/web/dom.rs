//! A web page as a tree, and CSS selectors on it. Only this file knows scraper and html5ever.
//!
//! A page is read as browsers read it, so that anything is a page. Since it is untrusted, it is read
//! piece by piece and given up as soon as it is more than a page: too many parts, too many within one
//! another, too many beside one another.

use super::attributes::most_attributes;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName, parse_document};
use scraper::{ElementRef, Html, HtmlTreeSink, Selector};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Bytes of one page.
const BYTES_MAX: usize = 16 << 20;
/// Elements, texts and comments of one page: each takes many times its bytes.
const NODES_MAX: usize = 200_000;
/// Elements within elements. The parser looks through all that are open, for every tag.
const DEPTH_MAX: usize = 256;
/// Elements beside elements: selectors may look at all of them, for each.
const SIBLINGS_MAX: u32 = 10_000;
/// Attributes of one element. The parser compares each with all before it.
const ATTRIBUTES_MAX: u32 = 1_000;
/// How much is read before it is looked whether it is too much.
const PIECE_BYTES: usize = 1_024;

/// Why a page is not read to its end.
pub(crate) type TooLarge = &'static str;

/// A CSS selector, with the words that it was written in.
#[derive(Debug, Clone)]
pub struct Css {
    selector: Selector,
    pub(crate) text: String,
}

impl Css {
    /// Fails with what is wrong, in words.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const TEXT_MAX: usize = 500;
        if text.len() > TEXT_MAX {
            return Err(format!("it is longer than {TEXT_MAX} bytes"));
        }
        let selector = Selector::parse(text).map_err(|error| error.to_string())?;
        Ok(Self {
            selector,
            text: text.to_owned(),
        })
    }
}

/// A page.
pub(crate) struct Dom(Html);

/// An element of a page.
#[derive(Clone, Copy)]
pub(crate) struct Element<'d>(ElementRef<'d>);

impl Dom {
    pub(crate) fn parse(text: &str) -> Result<Self, TooLarge> {
        if text.len() > BYTES_MAX {
            return Err("more html than is read of one page");
        }
        if most_attributes(text) > ATTRIBUTES_MAX {
            return Err("more attributes than one element may have");
        }
        let mut parser = parse_document(Sink::new(), ParseOpts::default());
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            parser.process(StrTendril::from(piece));
            if let Some(reason) = parser.tokenizer.sink.sink.too_large.get() {
                return Err(reason);
            }
            rest = behind;
        }
        let sink = parser.finish();
        match sink.too_large.get() {
            Some(reason) => Err(reason),
            None => Ok(Self(sink.inner.finish())),
        }
    }

    pub(crate) fn root(&self) -> Element<'_> {
        Element(self.0.root_element())
    }

    /// Whether anything on the page fits.
    pub(crate) fn has(&self, css: &Css) -> bool {
        self.0.select(&css.selector).next().is_some()
    }

    /// Everything on the page that fits, in its order.
    pub(crate) fn all<'d>(&'d self, css: &'d Css) -> impl Iterator<Item = Element<'d>> {
        self.0.select(&css.selector).map(Element)
    }
}

impl<'d> Element<'d> {
    /// What fits within it, in the order of the page.
    pub(crate) fn find<'c>(self, css: &'c Css) -> impl Iterator<Item = Self> + use<'c, 'd> {
        self.0.select(&css.selector).map(Element)
    }

    /// Elements of a name within it.
    pub(crate) fn named(self, name: &str) -> Vec<Self> {
        let all = self.0.descendent_elements();
        let named = all.filter(|element| element.value().name() == name);
        named.map(Element).collect()
    }

    pub(crate) fn attribute(self, name: &str) -> Option<&'d str> {
        self.0.attr(name)
    }

    /// Everything in it, itself included.
    pub(crate) fn size(self) -> usize {
        self.0.descendants().count()
    }

    /// What stands in it, as it is written.
    pub(crate) fn markup(self) -> String {
        self.0.inner_html()
    }

    /// What a reader sees of it, on one line.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        for node in self.0.descendants() {
            if let Some(element) = node.value().as_element() {
                if is_apart(element.name()) {
                    text.push(' ');
                }
                continue;
            }
            let parent = node.parent().and_then(ElementRef::wrap);
            let is_shown = parent.is_none_or(|it| !is_unseen(it.value().name()));
            if let Some(piece) = node.value().as_text().filter(|_| is_shown) {
                text.push_str(piece);
            }
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }
}

/// Whether an element stands on a line of its own.
fn is_apart(name: &str) -> bool {
    const APART: &[&str] = &[
        "br", "p", "div", "li", "ul", "ol", "tr", "td", "th", "table", "section", "article", "h1",
        "h2", "h3", "h4", "h5", "h6", "dt", "dd", "pre", "hr", "option",
    ];
    APART.contains(&name)
}

fn is_unseen(name: &str) -> bool {
    matches!(name, "script" | "style" | "template" | "noscript")
}

/// The tree that scraper makes, as long as it is not too large.
struct Sink {
    inner: HtmlTreeSink,
    nodes: Cell<usize>,
    /// How many nodes were put into each, of those that have many.
    children: RefCell<HashMap<<HtmlTreeSink as TreeSink>::Handle, u32>>,
    too_large: Cell<Option<TooLarge>>,
}

impl Sink {
    fn new() -> Self {
        Self {
            inner: HtmlTreeSink::new(Html::new_document()),
            nodes: Cell::new(0),
            children: RefCell::default(),
            too_large: Cell::new(None),
        }
    }

    fn count(&self) {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > NODES_MAX {
            self.too_large
                .set(Some("more elements than one page may hold"));
        }
    }

    fn count_in(&self, parent: <HtmlTreeSink as TreeSink>::Handle) {
        self.count();
        let mut children = self.children.borrow_mut();
        let own = children.entry(parent).or_default();
        *own += 1;
        if *own > SIBLINGS_MAX {
            self.too_large.set(Some("too many elements in one element"));
        }
        let html = self.inner.0.borrow();
        let node = html.tree.get(parent);
        if node.is_some_and(|node| node.ancestors().take(DEPTH_MAX).count() >= DEPTH_MAX) {
            self.too_large.set(Some("html nested too deeply"));
        }
    }
}

/// Everything goes on to scraper's own; what adds to the tree is counted.
impl TreeSink for Sink {
    type Output = Self;
    type Handle = <HtmlTreeSink as TreeSink>::Handle;
    type ElemName<'a> = <HtmlTreeSink as TreeSink>::ElemName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, message: Cow<'static, str>) {
        self.inner.parse_error(message);
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.inner.set_quirks_mode(mode);
    }

    fn get_document(&self) -> Self::Handle {
        self.inner.get_document()
    }

    fn same_node(&self, one: &Self::Handle, other: &Self::Handle) -> bool {
        self.inner.same_node(one, other)
    }

    fn elem_name<'a>(&'a self, target: &'a Self::Handle) -> Self::ElemName<'a> {
        self.inner.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Self::Handle {
        self.inner.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Self::Handle {
        self.inner.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Self::Handle {
        self.inner.create_pi(target, data)
    }

    fn append_doctype_to_document(
        &self,
        name: StrTendril,
        public_id: StrTendril,
        system_id: StrTendril,
    ) {
        self.inner
            .append_doctype_to_document(name, public_id, system_id);
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.count_in(*parent);
        self.inner.append(parent, child);
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, node: NodeOrText<Self::Handle>) {
        self.count_in(*sibling);
        self.inner.append_before_sibling(sibling, node);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        previous: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.count_in(*previous);
        self.inner
            .append_based_on_parent_node(element, previous, child);
    }

    fn remove_from_parent(&self, target: &Self::Handle) {
        self.inner.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Self::Handle, parent: &Self::Handle) {
        self.inner.reparent_children(node, parent);
    }

    fn add_attrs_if_missing(&self, target: &Self::Handle, attributes: Vec<Attribute>) {
        self.inner.add_attrs_if_missing(target, attributes);
    }

    fn get_template_contents(&self, target: &Self::Handle) -> Self::Handle {
        self.inner.get_template_contents(target)
    }

    fn mark_script_already_started(&self, node: &Self::Handle) {
        self.inner.mark_script_already_started(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn refusal(text: &str) -> Option<TooLarge> {
        Dom::parse(text).err()
    }

    fn texts(page: &str, css: &str) -> Vec<String> {
        let css = Css::parse(css).unwrap();
        let dom = Dom::parse(page).unwrap();
        dom.all(&css).map(Element::text).collect()
    }

    #[test]
    fn a_page_is_read_as_browsers_read_it() {
        let page = "<ul><li class=a>one<li class=a>two &amp; <b>three</b><br>four</ul>\
                    <script>var a = '<li class=a>no';</script>";
        assert_eq!(texts(page, "li.a"), ["one", "two & three four"]);
        assert_eq!(texts("<p>a<script>b</script><p>c", "body"), ["a c"]);
        assert_eq!(texts("", "p"), Vec::<String>::new());
    }

    #[test]
    fn a_selector_that_is_none_says_why() {
        for text in ["", "a[", "p::before", ":frobnicate", "a >", "a,,b"] {
            assert!(Css::parse(text).is_err(), "{text}");
        }
        assert!(Css::parse(&"a ".repeat(300)).is_err());
        for text in [
            "ul > li:first-child a[href^='/u/']",
            ":has(a)",
            "h1 ~ p, dt + dd",
        ] {
            assert!(Css::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_hostile_page_is_given_up() {
        let many = |piece: &str, count: usize| piece.repeat(count);
        for (page, reason) in [
            (many("<div>", 100_000), "html nested too deeply"),
            (many("<br>", 100_000), "too many elements in one element"),
            (
                many(&format!("<div>{}</div>", many("<i></i>", 2_000)), 200),
                "more elements than one page may hold",
            ),
            (many("a", 17 << 20), "more html than is read of one page"),
        ] {
            assert_eq!(refusal(&page), Some(reason), "{}", &page[..20]);
        }
        for piece in [
            "<b><p>",
            "<table><tr><td>",
            "<svg><g>",
            "<template>",
            "<a><table>",
            "<select>",
        ] {
            assert!(refusal(&many(piece, 100_000)).is_some(), "{piece}");
        }
        // Formatting that is opened anew in every paragraph takes the square.
        let mut misnested = String::new();
        for number in 0..50_000 {
            let _ = write!(misnested, "<p><b id={number}></p>");
        }
        assert!(refusal(&misnested).is_some());
    }

    #[test]
    fn a_tag_of_a_million_attributes_is_given_up_before_it_is_read() {
        let mut tag = "<a ".to_owned();
        for number in 0..1_000_000 {
            let _ = write!(tag, "a{number} ");
        }
        tag.push('>');
        for before in [
            "",
            "<!-- ",
            "<script>var a = \"<b c='\";</script>",
            "<p x=\"<!--\">",
        ] {
            let reason = refusal(&format!("{before}{tag}"));
            assert_eq!(
                reason,
                Some("more attributes than one element may have"),
                "{before}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(page in "([<>/!='\"a-d -]|<!--|-->|<b>|<p>|<table>|<td>|</b>|<svg>|<select>){0,200}") {
            if let Ok(dom) = Dom::parse(&page) {
                dom.root().text();
                dom.root().markup();
            }
        }
    }
}
