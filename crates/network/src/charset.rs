//! From bytes to text, whatever the charset. Only this file knows encoding_rs.
//!
//! A byte order mark says what the charset is; without one the `Content-Type` header does, then an
//! XML declaration; otherwise it is UTF-8.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// How far an XML declaration is looked for.
const DECLARATION_BYTES_MAX: usize = 512;

/// The body as text; what is no text in its charset becomes U+FFFD and is counted.
pub(crate) fn decode<'b>(
    body: &'b [u8],
    content_type: Option<&str>,
    mended: &mut u32,
) -> Cow<'b, str> {
    let (charset, body) = match Encoding::for_bom(body) {
        // A byte order mark is no part of the text.
        Some((charset, length)) => (charset, &body[length..]),
        None => (charset_of(body, content_type), body),
    };
    if charset == UTF_8 {
        return decode_utf8(body, mended);
    }
    let (text, is_broken) = charset.decode_without_bom_handling(body);
    if is_broken {
        let broken = text.matches(char::REPLACEMENT_CHARACTER).count();
        *mended = mended.saturating_add(broken as u32);
    }
    text
}

/// The same of a web page, which may name its charset in its head.
pub(crate) fn decode_page<'b>(
    body: &'b [u8],
    content_type: Option<&str>,
    mended: &mut u32,
) -> Cow<'b, str> {
    if content_type.and_then(header_charset).is_some() || Encoding::for_bom(body).is_some() {
        return decode(body, content_type, mended);
    }
    match meta_charset(body) {
        Some(charset) => {
            let told = format!("text/html; charset={}", charset.name());
            decode(body, Some(&told), mended)
        }
        None => decode(body, content_type, mended),
    }
}

/// `<meta charset="windows-1251">`, or the same within `content`, in the first 1024 bytes, as the HTML
/// standard has it.
fn meta_charset(body: &[u8]) -> Option<&'static Encoding> {
    const HEAD_BYTES_MAX: usize = 1_024;
    let head = String::from_utf8_lossy(&body[..body.len().min(HEAD_BYTES_MAX)]);
    let head = head.to_ascii_lowercase();
    let mut tags = head.split("<meta").skip(1);
    tags.find_map(|tag| {
        let (tag, _) = tag.split_once('>')?;
        let (_, value) = tag.split_once("charset")?;
        let value = value.trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let label = value.split(['"', '\'', ';', ' ', '/']).next()?;
        let charset = Encoding::for_label(label.as_bytes())?;
        // It could be read one byte at a time, so that it is none of two.
        let is_wide = charset == UTF_16LE || charset == UTF_16BE;
        Some(if is_wide { UTF_8 } else { charset })
    })
}

fn decode_utf8<'b>(body: &'b [u8], mended: &mut u32) -> Cow<'b, str> {
    if let Ok(text) = std::str::from_utf8(body) {
        return Cow::Borrowed(text);
    }
    let chunks = body.utf8_chunks();
    let broken = chunks.filter(|chunk| !chunk.invalid().is_empty());
    *mended = mended.saturating_add(broken.count() as u32);
    String::from_utf8_lossy(body)
}

fn charset_of(body: &[u8], content_type: Option<&str>) -> &'static Encoding {
    let told = content_type.and_then(header_charset);
    told.or_else(|| declared_charset(body)).unwrap_or(UTF_8)
}

/// `text/xml; charset="ISO-8859-1"`.
fn header_charset(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (name, label) = parameter.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("charset") {
            return None;
        }
        let label = label.trim().trim_matches(['"', '\'']);
        Encoding::for_label(label.as_bytes())
    })
}

/// `<?xml version="1.0" encoding="windows-1251"?>`. JSON never begins like that.
fn declared_charset(body: &[u8]) -> Option<&'static Encoding> {
    match body {
        [b'<', 0, b'?', 0, ..] => return Some(UTF_16LE),
        [0, b'<', 0, b'?', ..] => return Some(UTF_16BE),
        _ => {}
    }
    let body = body.trim_ascii_start();
    let body = body.strip_prefix(b"<?xml")?;
    let start = &body[..body.len().min(DECLARATION_BYTES_MAX)];
    let text = String::from_utf8_lossy(start);
    let (declaration, _) = text.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let label = value[1..].split(quote).next()?;
    let charset = Encoding::for_label(label.as_bytes())?;
    // It could be read one byte at a time, so that it is none of two.
    let is_wide = charset == UTF_16LE || charset == UTF_16BE;
    (!is_wide).then_some(charset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &[u8], content_type: Option<&str>) -> (String, u32) {
        let mut mended = 0;
        let text = decode(body, content_type, &mut mended).into_owned();
        (text, mended)
    }

    fn wide(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn a_mark_wins_over_the_header_and_the_header_over_the_declaration() {
        let declared = b"<?xml version='1.0' encoding='windows-1251'?><a>\xEF</a>";
        assert!(read(declared, None).0.ends_with("<a>п</a>"));
        let header = Some("text/xml; Charset=\"iso-8859-1\"; x=y");
        assert!(read(declared, header).0.ends_with("<a>ï</a>"));
        let mut marked = b"\xEF\xBB\xBF".to_vec();
        marked.extend("<?xml version='1.0' encoding='windows-1251'?><a>ï</a>".bytes());
        assert!(read(&marked, header).0.starts_with("<?xml"));
        assert!(read(&marked, header).0.ends_with("<a>ï</a>"));
    }

    #[test]
    fn a_page_may_name_its_charset_in_its_head() {
        let page = |head: &str, content_type| {
            let mut body = head.as_bytes().to_vec();
            body.push(0xEF);
            decode_page(&body, content_type, &mut 0).chars().last()
        };
        for head in [
            "<meta charset=windows-1251>",
            "<title>a</title><META Charset = 'windows-1251' />",
            "<meta http-equiv=content-type content=\"text/html; charset=windows-1251\">",
        ] {
            assert_eq!(page(head, Some("text/html")), Some('п'), "{head}");
        }
        let header = Some("text/html; charset=iso-8859-1");
        assert_eq!(page("<meta charset=windows-1251>", header), Some('ï'));
        for head in [
            "",
            "<meta charset=utf-16>",
            "<meta charset=klingon>",
            "<meta charset",
        ] {
            assert_eq!(
                page(head, None),
                Some(char::REPLACEMENT_CHARACTER),
                "{head}"
            );
        }
    }

    #[test]
    fn without_a_word_it_is_utf_8() {
        assert_eq!(read("ï".as_bytes(), None), ("ï".to_owned(), 0));
        let unknown = Some("application/json; charset=klingon");
        assert_eq!(read("ï".as_bytes(), unknown), ("ï".to_owned(), 0));
        assert_eq!(
            read(b"\"\xEF\"", Some("application/json; charset=latin1")),
            ("\"ï\"".to_owned(), 0)
        );
        let broken = read(b"a\xE9b\xFFc", None);
        assert_eq!(broken, ("a\u{FFFD}b\u{FFFD}c".to_owned(), 2));
    }

    #[test]
    fn wide_text_is_known_by_its_mark_or_by_its_first_bytes() {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>🐦</a>";
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes = wide(text, to_bytes);
            assert_eq!(read(&bytes, None), (text.to_owned(), 0));
            let mut marked = to_bytes(0xFEFF).to_vec();
            marked.extend(&bytes);
            assert_eq!(read(&marked, None), (text.to_owned(), 0));
        }
        // It says so, but it is not.
        assert_eq!(read(text.as_bytes(), None), (text.to_owned(), 0));
        let half = wide("a\u{FFFF}", u16::to_le_bytes);
        let header = Some("text/plain; charset=utf-16le");
        assert_eq!(read(&half[..3], header), ("a\u{FFFD}".to_owned(), 1));
    }

    #[test]
    fn what_two_bytes_of_another_charset_cannot_be_is_counted() {
        let header = Some("text/xml; charset=shift_jis");
        assert_eq!(read(b"\x83J\x83\x82\x83\x81", header).0, "カモメ");
        let (text, mended) = read(b"\x83J\xFF!", header);
        assert_eq!((text.as_str(), mended), ("カ\u{FFFD}!", 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            body in prop::collection::vec(any::<u8>(), 0..200),
            start in prop::sample::select(vec!["", "<?xml encoding=", "<?xml encoding='utf-7'?>", "\u{FEFF}"]),
            label in "[a-z0-9-]{0,12}",
        ) {
            let whole = [start.as_bytes(), &body].concat();
            let content_type = format!("text/xml; charset={label}");
            read(&whole, None);
            read(&whole, Some(&content_type));
        }

        #[test]
        fn text_reads_back_from_every_charset_that_can_write_it(
            text in any::<String>(),
            label in prop::sample::select(vec!["utf-8", "windows-1252", "shift_jis", "gb18030", "big5", "euc-kr", "koi8-r"]),
        ) {
            prop_assume!(!text.starts_with('\u{FEFF}') && !text.contains('\u{FFFD}'));
            let charset = Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, _, is_lost) = charset.encode(&text);
            let (expected, is_broken) = charset.decode_without_bom_handling(&bytes);
            prop_assume!(!is_lost && !is_broken && expected == text);
            let content_type = format!("text/plain;charset={label}");
            prop_assume!(Encoding::for_bom(&bytes).is_none());
            prop_assert_eq!(read(&bytes, Some(&content_type)), (text, 0));
        }
    }
}
