//! XML as the tree that JSON is. Only this file knows quick-xml.
//!
//! An element is an object; `@name` are its attributes, `#text` is its text; an element with text
//! alone is that text, one with nothing in it is null; children of one name are a list. Nothing is
//! ever expanded but the five entities and characters by number.

use crate::json;
use quick_xml::Reader;
use quick_xml::errors::{Error, SyntaxError};
use quick_xml::events::{BytesStart, Event};

/// Elements within elements. Each may be a list in an object, which is twice as deep in JSON.
const DEPTH_MAX: usize = json::DEPTH_MAX / 2;
/// Elements and attributes of one answer, since each takes many times its bytes.
const PARTS_MAX: usize = 500_000;
const BYTES_MAX: usize = 32 << 20;

/// Why a text cannot be read as XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    #[error("{0}")]
    Malformed(String),
    /// It may well be XML, but there is more of it than is read.
    #[error("{0}")]
    TooLarge(&'static str),
}

/// A document as JSON.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) json: String,
    /// Characters that no text can hold.
    pub(crate) mended: u32,
}

/// The JSON that stands for an XML document, as every answer in XML is read.
pub fn xml_to_json(text: &str) -> Result<String, XmlError> {
    convert(text).map(|converted| converted.json)
}

pub(crate) fn convert(text: &str) -> Result<Converted, XmlError> {
    if text.len() > BYTES_MAX {
        return Err(XmlError::TooLarge("more xml than is read of one answer"));
    }
    let mut parser = Parser::new(text);
    let root = parser.read()?;
    let mut json = String::with_capacity(text.len());
    json.push('{');
    parser.write_member(&parser.elements[root].name, &[root], &mut json);
    json.push('}');
    Ok(Converted {
        json,
        mended: parser.mended,
    })
}

/// An element, and where its children stand in the list of all.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<usize>,
}

struct Parser<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    elements: Vec<Element>,
    /// The elements that are open, outermost first.
    open: Vec<usize>,
    parts: usize,
    mended: u32,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        let mut reader = Reader::from_str(text);
        // Feeds are full of `&` that should be `&amp;`, and what is meant is plain.
        reader.config_mut().allow_dangling_amp = true;
        Self {
            text,
            reader,
            elements: Vec::new(),
            open: Vec::new(),
            parts: 0,
            mended: 0,
        }
    }

    /// Reads all of it; the place of the outermost element.
    fn read(&mut self) -> Result<usize, XmlError> {
        loop {
            match self.next()? {
                Event::Start(tag) => {
                    let place = self.begin(&tag)?;
                    if self.is_markup(place) {
                        self.elements[place].text = self.read_markup()?;
                    } else {
                        self.open.push(place);
                    }
                }
                Event::Empty(tag) => {
                    self.begin(&tag)?;
                }
                // The reader has compared the names.
                Event::End(_) => {
                    self.open.pop();
                }
                Event::Text(text) => self.push_text(&text.xml10_content())?,
                Event::CData(text) => self.push_text(&text.xml10_content())?,
                Event::GeneralRef(name) => {
                    let character = self.resolve(&name);
                    self.push_text(&character)?;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof if !self.open.is_empty() => return Err(ends_too_early()),
                Event::Eof if self.elements.is_empty() => {
                    return Err(XmlError::Malformed("no element in the xml".to_owned()));
                }
                Event::Eof => return Ok(0),
            }
        }
    }

    fn next(&mut self) -> Result<Event<'t>, XmlError> {
        self.reader.read_event().map_err(|error| match error {
            Error::Syntax(SyntaxError::InvalidBangMarkup) => self.broken(),
            // Every other fault of this kind is something that is not closed.
            Error::Syntax(_) => ends_too_early(),
            _ => self.broken(),
        })
    }

    fn broken(&self) -> XmlError {
        let place = usize::try_from(self.reader.error_position()).unwrap_or(self.text.len());
        let before = self.text.get(..place).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        XmlError::Malformed(format!("no xml at line {line}"))
    }

    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<usize, XmlError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(XmlError::TooLarge("xml nested too deeply"));
        }
        if self.open.is_empty() && !self.elements.is_empty() {
            return Err(XmlError::Malformed("xml with two beginnings".to_owned()));
        }
        let name = tag.name();
        let name: &str = name.as_ref();
        if self.elements.is_empty() && name.eq_ignore_ascii_case("html") {
            return Err(XmlError::Malformed("html instead of xml".to_owned()));
        }
        self.check_name(name)?;
        self.count_part()?;
        let mut element = Element {
            name: name.to_owned(),
            ..Element::default()
        };
        let mut attributes = tag.attributes();
        // Of repeated ones the last counts, as in JSON; the library's own check takes the square.
        for attribute in attributes.with_checks(false) {
            let attribute = attribute.map_err(|_| self.broken())?;
            let name: &str = attribute.key.as_ref();
            self.check_name(name)?;
            self.count_part()?;
            // Where a name space is declared is a matter of writing.
            if name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            let value = self.unescape(&attribute.value);
            element.attributes.push((name.to_owned(), value));
        }
        let place = self.elements.len();
        self.elements.push(element);
        if let Some(parent) = self.open.last() {
            self.elements[*parent].children.push(place);
        }
        Ok(place)
    }

    fn check_name(&self, name: &str) -> Result<(), XmlError> {
        let is_first =
            |it: char| it.is_ascii_alphabetic() || matches!(it, '_' | ':') || !it.is_ascii();
        let is_later = |it: char| is_first(it) || it.is_ascii_digit() || matches!(it, '-' | '.');
        if name.starts_with(is_first) && name.chars().all(is_later) {
            return Ok(());
        }
        Err(self.broken())
    }

    fn count_part(&mut self) -> Result<(), XmlError> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(XmlError::TooLarge("more elements than one answer may hold"));
        }
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<(), XmlError> {
        if let Some(place) = self.open.last() {
            self.elements[*place].text.push_str(text);
            return Ok(());
        }
        if trim(text).is_empty() {
            return Ok(());
        }
        let is_before = self.elements.is_empty();
        let place = if is_before { "before" } else { "after" };
        Err(XmlError::Malformed(format!("text {place} the xml")))
    }

    /// What a reference `&name;` stands for. One that nobody knows stays as it is.
    fn resolve(&mut self, name: &str) -> String {
        let character = match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => match character_by_number(name) {
                Some(character) => character,
                None => return format!("&{name};"),
            },
        };
        if character == char::REPLACEMENT_CHARACTER {
            self.mended = self.mended.saturating_add(1);
        }
        character.to_string()
    }

    fn unescape(&mut self, raw: &str) -> String {
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('&') {
            out.push_str(before);
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '#';
            let length = after.find(|it| !is_name(it)).unwrap_or(after.len());
            rest = after;
            match after[length..].strip_prefix(';') {
                Some(behind) => {
                    out.push_str(&self.resolve(&after[..length]));
                    rest = behind;
                }
                None => out.push('&'),
            }
        }
        out.push_str(rest);
        out
    }

    /// XHTML in a feed is no part of the tree but somebody's text.
    fn is_markup(&self, place: usize) -> bool {
        let mut attributes = self.elements[place].attributes.iter();
        attributes.any(|(name, value)| name == "type" && value == "xhtml")
    }

    /// What stands in an element, up to its end, as it is written.
    fn read_markup(&mut self) -> Result<String, XmlError> {
        let mut markup = String::new();
        let mut depth = 0_usize;
        loop {
            let from = self.reader.buffer_position() as usize;
            let event = self.next()?;
            let upto = self.reader.buffer_position() as usize;
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => return Ok(markup),
                Event::End(_) => depth -= 1,
                Event::CData(text) => {
                    markup.push_str(&escape(&text));
                    continue;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => continue,
                Event::Empty(_) | Event::Text(_) | Event::GeneralRef(_) => {}
                Event::Eof => return Err(ends_too_early()),
            }
            markup.push_str(self.text.get(from..upto).unwrap_or_default());
        }
    }

    /// Writes elements of one name: one as it is, several as a list.
    fn write_member(&self, name: &str, places: &[usize], out: &mut String) {
        out.push_str(&json::quote(name));
        out.push(':');
        if let [place] = places {
            self.write(*place, out);
            return;
        }
        for (number, place) in places.iter().enumerate() {
            out.push(if number == 0 { '[' } else { ',' });
            self.write(*place, out);
        }
        out.push(']');
    }

    fn write(&self, place: usize, out: &mut String) {
        let element = &self.elements[place];
        let text = trim(&element.text);
        if element.attributes.is_empty() && element.children.is_empty() {
            let value = (!text.is_empty()).then(|| json::quote(text));
            out.push_str(value.as_deref().unwrap_or("null"));
            return;
        }
        let mut mark = '{';
        for (name, value) in &element.attributes {
            out.push(std::mem::replace(&mut mark, ','));
            out.push_str(&json::quote(&format!("@{name}")));
            out.push(':');
            out.push_str(&json::quote(value));
        }
        for group in self.groups(&element.children) {
            out.push(std::mem::replace(&mut mark, ','));
            self.write_member(&self.elements[group[0]].name, &group, out);
        }
        if !text.is_empty() {
            out.push(mark);
            out.push_str("\"#text\":");
            out.push_str(&json::quote(text));
        }
        out.push('}');
    }

    /// Children by their names, each name where it stood first.
    fn groups(&self, children: &[usize]) -> Vec<Vec<usize>> {
        let mut sorted = children.to_vec();
        sorted.sort_by_key(|place| (&self.elements[*place].name, *place));
        let mut groups: Vec<Vec<usize>> = sorted
            .chunk_by(|left, right| self.elements[*left].name == self.elements[*right].name)
            .map(<[usize]>::to_vec)
            .collect();
        groups.sort_unstable();
        groups
    }
}

fn ends_too_early() -> XmlError {
    XmlError::Malformed("xml ends too early".to_owned())
}

/// `#65` and `#x41`. A number that is no character, or NUL, is U+FFFD.
fn character_by_number(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok();
    let character = code.filter(|code| *code != 0).and_then(char::from_u32);
    Some(character.unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::fmt::Write;

    fn tree(text: &str) -> Value {
        serde_json::from_str(&xml_to_json(text).unwrap()).unwrap()
    }

    fn fault(text: &str) -> String {
        xml_to_json(text).unwrap_err().to_string()
    }

    #[test]
    fn elements_attributes_text_and_lists_become_a_tree() {
        assert_eq!(
            tree(
                "<?xml version='1.0'?><!DOCTYPE rss [<!ENTITY x 'y'>]><!-- a -->\n\
                 <rss version=\"2.0\" xmlns:dc='urn:dc' xmlns='urn:x'><channel>\n\
                 <title> Gulls\r\n &amp; terns </title><empty/><also></also><?php no ?>\n\
                 <item><dc:creator>Ann</dc:creator></item>\n\
                 <item n='1'>two<!-- not --> words<b/></item><link href='?a=1&amp;b=2&c'/>\n\
                 </channel></rss>\n"
            ),
            json!({"rss": {"@version": "2.0", "channel": {
                "title": "Gulls\n & terns",
                "empty": null,
                "also": null,
                "item": [{"dc:creator": "Ann"}, {"@n": "1", "b": null, "#text": "two words"}],
                "link": {"@href": "?a=1&b=2&c"},
            }}})
        );
    }

    #[test]
    fn nothing_is_expanded_but_the_five_entities_and_numbers() {
        let text = "<!DOCTYPE a [<!ENTITY x 'boom'><!ENTITY y SYSTEM 'file:///etc/passwd'>]>\
                    <a>&lt;&gt;&quot;&apos;&amp;amp; &#65;&#x1F426; &x;&y;&nbsp; & &; a&b;c</a>";
        assert_eq!(
            tree(text),
            json!({"a": "<>\"'&amp; A🐦 &x;&y;&nbsp; & &; a&b;c"})
        );
        let broken = convert("<a b='&#0;'>&#xD800;&#99999999999;&#x;</a>").unwrap();
        assert_eq!(
            (broken.json.as_str(), broken.mended),
            (
                "{\"a\":{\"@b\":\"\u{FFFD}\",\"#text\":\"\u{FFFD}\u{FFFD}&#x;\"}}",
                3
            )
        );
    }

    #[test]
    fn marked_sections_are_text_and_xhtml_is_its_markup() {
        assert_eq!(
            tree("<a><![CDATA[<p>1 < 2 & &amp;</p>]]> and <![CDATA[]]]]><![CDATA[>]]></a>"),
            json!({"a": "<p>1 < 2 & &amp;</p> and ]]>"})
        );
        assert_eq!(
            tree(
                "<e><content type='xhtml'> <div xmlns='x'>a &amp; <b>b</b><br/><!-- no -->\
                 <![CDATA[1<2]]></div> </content><content type='html'>&lt;p></content></e>"
            ),
            json!({"e": {"content": [
                {"@type": "xhtml", "#text": "<div xmlns='x'>a &amp; <b>b</b><br/>1&lt;2</div>"},
                {"@type": "html", "#text": "<p>"},
            ]}})
        );
        assert_eq!(tree("<e type='xhtml'/>"), json!({"e": {"@type": "xhtml"}}));
    }

    #[test]
    fn what_is_broken_says_so() {
        for (text, reason) in [
            ("", "no element in the xml"),
            ("  <!-- nobody -->", "no element in the xml"),
            ("<a>", "xml ends too early"),
            ("<a><b></b>", "xml ends too early"),
            ("<a", "xml ends too early"),
            ("<a b='", "xml ends too early"),
            ("<a><![CDATA[", "xml ends too early"),
            ("<a><!-- ", "xml ends too early"),
            ("<a type='xhtml'><b>", "xml ends too early"),
            ("<a>\n<b></a></b>", "no xml at line 2"),
            ("<a></a></a>", "no xml at line 1"),
            ("<a b=c/>", "no xml at line"),
            ("<a b/>", "no xml at line"),
            ("<1/>", "no xml at line"),
            ("< a/>", "no xml at line"),
            ("<a><=/></a>", "no xml at line"),
            ("<a/><b/>", "xml with two beginnings"),
            ("<a/>tail", "text after the xml"),
            ("head<a/>", "text before the xml"),
            ("<!DOCTYPE html><HTML><body/></HTML>", "html instead of xml"),
        ] {
            let found = fault(text);
            assert!(found.starts_with(reason), "{text}: {found}");
        }
    }

    #[test]
    fn every_cut_and_no_whole_is_refused() {
        let whole = "<?xml version='1.0'?><r a='1'><i>é<b/></i><i><![CDATA[x]]>&amp;</i></r>";
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(xml_to_json(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
        assert!(xml_to_json(whole).is_ok());
    }

    #[test]
    fn depth_count_and_size_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        let deepest = xml_to_json(&nested(DEPTH_MAX)).unwrap();
        assert!(json::depth(&deepest) <= json::DEPTH_MAX);
        let twins = "<a><b/>".repeat(DEPTH_MAX - 1) + &"<b/></a>".repeat(DEPTH_MAX - 1);
        assert!(json::depth(&xml_to_json(&twins).unwrap()) <= json::DEPTH_MAX);
        assert_eq!(fault(&nested(DEPTH_MAX + 1)), "xml nested too deeply");
        assert_eq!(fault(&"<a>".repeat(1_000_000)), "xml nested too deeply");
        let many = format!("<a>{}</a>", "<b/>".repeat(PARTS_MAX));
        assert_eq!(fault(&many), "more elements than one answer may hold");
        let attributes: Vec<String> = (0..PARTS_MAX).map(|it| format!("a{it}=''")).collect();
        let many = format!("<a {}/>", attributes.join(" "));
        assert_eq!(fault(&many), "more elements than one answer may hold");
        let long = format!("<a>{}</a>", "x".repeat(BYTES_MAX));
        assert_eq!(fault(&long), "more xml than is read of one answer");
        // In XHTML nothing is nested, however deep it is.
        let markup = format!("<a type='xhtml'>{}</a>", nested(1_000));
        assert_eq!(tree(&markup)["a"]["#text"], nested(1_000));
    }

    #[test]
    fn many_names_in_one_element_take_no_square() {
        let children: Vec<String> = (0..100_000).map(|it| format!("<c{it}/>")).collect();
        let read = tree(&format!("<a>{}<c0/></a>", children.concat()));
        assert_eq!(read["a"].as_object().unwrap().len(), 100_000);
        assert_eq!(read["a"]["c0"], json!([null, null]));
    }

    /// A tree as XML can hold it.
    fn node() -> impl Strategy<Value = Value> {
        let text = "[a-z<>&\"' é\\]]{1,8}".prop_filter_map("trimmed", |text| {
            let text = trim(&text).to_owned();
            (!text.is_empty()).then_some(Value::from(text))
        });
        let leaf = prop_oneof![Just(Value::Null), text.clone()];
        leaf.prop_recursive(4, 40, 4, move |inner| {
            let many = prop::collection::vec(inner.clone(), 2..4).prop_map(Value::from);
            let members =
                prop::collection::btree_map("[a-c]:?[a-z]{1,2}", prop_oneof![inner, many], 0..4);
            let attributes = prop::collection::btree_map("@[a-c]{1,3}", "[a-z<>&\"' é]{0,6}", 0..3);
            (members, attributes, prop::option::of(text.clone())).prop_map(
                |(members, attributes, text)| {
                    let mut object: serde_json::Map<String, Value> = members.into_iter().collect();
                    object.extend(
                        attributes
                            .into_iter()
                            .map(|(name, value)| (name, Value::from(value))),
                    );
                    // A text alone is no object.
                    if let Some(text) = text.filter(|_| !object.is_empty()) {
                        object.insert("#text".to_owned(), text);
                    }
                    if object.is_empty() {
                        Value::Null
                    } else {
                        Value::Object(object)
                    }
                },
            )
        })
    }

    fn quoted(text: &str) -> String {
        escape(text).replace('"', "&#34;").replace('\'', "&#x27;")
    }

    fn write_xml(name: &str, value: &Value, out: &mut String) {
        let Value::Object(members) = value else {
            let text = value.as_str().unwrap_or_default();
            write!(out, "<{name}>{}</{name}>", quoted(text)).unwrap();
            return;
        };
        write!(out, "<{name}").unwrap();
        for (key, value) in members {
            if let (Some(attribute), Value::String(value)) = (key.strip_prefix('@'), value) {
                write!(out, " {attribute}=\"{}\"", quoted(value)).unwrap();
            }
        }
        out.push('>');
        for (key, value) in members
            .iter()
            .filter(|(key, _)| !key.starts_with(['@', '#']))
        {
            match value {
                Value::Array(items) => items.iter().for_each(|item| write_xml(key, item, out)),
                one => write_xml(key, one, out),
            }
        }
        if let Some(text) = members.get("#text").and_then(Value::as_str) {
            write!(
                out,
                "<![CDATA[{}]]>",
                text.replace("]]>", "]]]]><![CDATA[>")
            )
            .unwrap();
        }
        write!(out, "</{name}>").unwrap();
    }

    proptest! {
        #[test]
        fn a_tree_written_as_xml_reads_back(value in node()) {
            let mut text = String::new();
            write_xml("root", &value, &mut text);
            prop_assert_eq!(tree(&text), json!({"root": value}), "{}", text);
        }

        #[test]
        fn any_text_is_survived_and_what_is_read_is_json(text in "[<>/!?\\[\\]A-D'\"=& ;#x0-9:é-]{0,60}") {
            for text in [text.clone(), format!("<a>{text}</a>"), format!("<a type='xhtml'>{text}</a>")] {
                if let Ok(json) = xml_to_json(&text) {
                    prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
                }
            }
        }
    }
}
