//! Words of texts, cut the same way when they are filed and when they are asked for.
//!
//! Letters are compared without case and accents. Scripts that leave no spaces between words (Chinese,
//! Japanese, Thai, …) are cut into characters, and emoji are words, so that whatever was written can be
//! found as a row of words next to one another.

mod plan;

#[cfg(test)]
pub(crate) use plan::BEGINNINGS;
pub(crate) use plan::{Plan, Word};

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::decompose_canonical;

/// Words of one text that are filed.
const WORDS_MAX: usize = 10_000;
/// Letters of one word; what follows is not compared.
const LETTERS_MAX: usize = 64;
/// Bytes of a question that are read.
const QUERY_BYTES_MAX: usize = 1_000;
/// Phrases of one question.
const PHRASES_MAX: usize = 20;
/// Letters that the beginning of a word has at the least: shorter ones stand for whole words, because
/// too many begin with them.
const PREFIX_LETTERS_MIN: usize = 3;

/// Signs that no text has: they begin words of our own. Whoever asks for words cannot ask for these.
const HANDLE: char = '\u{E000}';
const ADDRESS: char = '\u{E001}';
const GAP: char = '\u{E002}';

/// The words of an object, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tokens(pub Vec<String>);

impl Tokens {
    /// Adds the words of a text. Nothing is found that begins in one text and ends in another.
    pub(crate) fn add(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push(GAP.to_string());
        }
        cut(text, WORDS_MAX.saturating_sub(self.0.len()), &mut |word| {
            self.0.push(word.to_owned());
        });
    }

    /// Adds a handle as a whole: with its host, and without.
    pub(crate) fn add_handle(&mut self, handle: &str) {
        let whole = handle_word(handle);
        let local = handle_word(
            handle
                .trim_start_matches('@')
                .split('@')
                .next()
                .unwrap_or_default(),
        );
        if local != whole {
            self.0.extend(local);
        }
        self.0.extend(whole);
    }

    pub(crate) fn add_address(&mut self, url: &str) {
        self.0.push(address_word(url));
    }
}

/// A handle as one word, `None` if there is nothing of it.
pub(crate) fn handle_word(handle: &str) -> Option<String> {
    let handle = handle.trim().trim_start_matches('@');
    one_word(HANDLE, handle)
}

/// An address as one word.
pub(crate) fn address_word(url: &str) -> String {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in url.trim().trim_end_matches('/').bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    format!("{ADDRESS}{hash:016x}")
}

fn one_word(sign: char, text: &str) -> Option<String> {
    let mut word = String::from(sign);
    for letter in text
        .chars()
        .take(4 * LETTERS_MAX)
        .flat_map(char::to_lowercase)
    {
        // What separates words elsewhere must not do so here.
        word.push(if letter.is_alphanumeric() {
            letter
        } else {
            sign
        });
    }
    (word.chars().count() > 1).then_some(word)
}

/// What a character is to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    /// Part of a word.
    Part,
    /// A word by itself.
    Whole,
    /// Not there at all.
    Nothing,
    Between,
}

fn letter(sign: char) -> Letter {
    match sign {
        // Accents; what joins; variants of signs, and colours of emoji.
        '\u{300}'..='\u{36F}'
        | '\u{AD}'
        | '\u{200C}'
        | '\u{200D}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{1F3FB}'..='\u{1F3FF}' => Letter::Nothing,
        // Thai, Lao, Tibetan, Burmese, Khmer; Chinese and Japanese; emoji.
        '\u{E00}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{2600}'..='\u{27BF}'
        | '\u{2E80}'..='\u{2FDF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{1F000}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Letter::Whole,
        '\u{E000}'..='\u{F8FF}' => Letter::Between,
        _ if sign.is_alphanumeric() => Letter::Part,
        _ if unicode_normalization::char::is_combining_mark(sign) => Letter::Part,
        _ => Letter::Between,
    }
}

/// A letter without its accent.
fn bare(letter: char) -> char {
    if letter.is_ascii() {
        return letter;
    }
    let (mut first, mut has_others) = (None, false);
    decompose_canonical(letter, |part| match (first, part) {
        (None, _) => first = Some(part),
        (Some(_), '\u{300}'..='\u{36F}') => {}
        (Some(_), _) => has_others = true,
    });
    first.filter(|_| !has_others).unwrap_or(letter)
}

/// Gives the words of a text one by one, so many at the most.
fn cut(text: &str, words_max: usize, each: &mut dyn FnMut(&str)) {
    if text.is_ascii() {
        // Nothing of it is written in several ways.
        return cut_signs(text.chars(), words_max, each);
    }
    cut_signs(text.nfkc(), words_max, each);
}

fn cut_signs(signs: impl Iterator<Item = char>, words_max: usize, each: &mut dyn FnMut(&str)) {
    let mut left = words_max;
    let mut word = String::new();
    let mut letters = 0;
    for sign in signs.flat_map(char::to_lowercase) {
        let sign = bare(sign);
        let kind = letter(sign);
        if matches!(kind, Letter::Whole | Letter::Between) && !word.is_empty() {
            if left == 0 {
                return;
            }
            left -= 1;
            each(&word);
            word.clear();
            letters = 0;
        }
        match kind {
            Letter::Part if letters < LETTERS_MAX => {
                word.push(sign);
                letters += 1;
            }
            Letter::Whole => {
                if left == 0 {
                    return;
                }
                left -= 1;
                each(sign.encode_utf8(&mut [0; 4]));
            }
            Letter::Part | Letter::Nothing | Letter::Between => {}
        }
    }
    if !word.is_empty() && left > 0 {
        each(&word);
    }
}

/// Words next to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub is_beginning: bool,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Query {
    /// All of these.
    pub all: Vec<Phrase>,
    /// None of these.
    pub none: Vec<Phrase>,
}

impl Query {
    /// What somebody has typed: there is nothing that cannot be asked.
    pub(crate) fn typed(text: &str) -> Self {
        let mut rest = &text[..text.floor_char_boundary(QUERY_BYTES_MAX)];
        let mut query = Self::default();
        while query.all.len() + query.none.len() < PHRASES_MAX {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let is_excluded = rest.starts_with('-');
            rest = rest.strip_prefix('-').unwrap_or(rest);
            let item;
            let is_quoted = rest.starts_with('"');
            (item, rest) = next_item(rest);
            let mut words = Vec::new();
            cut(item, QUERY_BYTES_MAX, &mut |word| {
                words.push(word.to_owned());
            });
            let last = words.last().map_or(0, |word| word.chars().count());
            let phrase = Phrase {
                is_beginning: !is_quoted && item.ends_with('*') && last >= PREFIX_LETTERS_MIN,
                words,
            };
            match (phrase.words.is_empty(), is_excluded) {
                (true, _) => {}
                (false, true) => query.none.push(phrase),
                (false, false) => query.all.push(phrase),
            }
        }
        query
    }

    /// One word of our own.
    pub(crate) fn exactly(word: String) -> Self {
        let phrase = Phrase {
            words: vec![word],
            is_beginning: false,
        };
        Self {
            all: vec![phrase],
            none: Vec::new(),
        }
    }
}

/// What stands between quotes, or up to the next space or quote; and the rest.
fn next_item(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"').unwrap_or((quoted, ""));
    }
    let end = text.find(|sign: char| sign.is_whitespace() || sign == '"');
    text.split_at(end.unwrap_or(text.len()))
}

/// As SQLite's FTS5 takes them. Words hold letters only, so nothing in them has a meaning there.
pub(crate) mod fts5 {
    use super::{Tokens, Word};

    pub(crate) fn words(tokens: &Tokens) -> String {
        tokens.0.join(" ")
    }

    pub(crate) fn word(word: &Word) -> String {
        let star = if word.is_beginning { " *" } else { "" };
        format!("\"{}\"{star}", word.letters)
    }
}

/// As PostgreSQL's text search takes them.
pub(crate) mod tsearch {
    use super::{Phrase, Query, Tokens};
    use std::fmt::Write as _;

    /// Beyond this place all words have the same.
    const PLACES_MAX: usize = 16_383;

    pub(crate) fn words(tokens: &Tokens) -> String {
        let mut text = String::new();
        for (place, word) in tokens.0.iter().enumerate() {
            let _ = write!(text, "'{word}':{} ", (place + 1).min(PLACES_MAX));
        }
        text
    }

    pub(crate) fn query(query: &Query) -> String {
        let all = query.all.iter().map(phrase);
        let none = query
            .none
            .iter()
            .map(|excluded| format!("!{}", phrase(excluded)));
        all.chain(none).collect::<Vec<_>>().join(" & ")
    }

    fn phrase(phrase: &Phrase) -> String {
        let words: Vec<String> = phrase
            .words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect();
        let star = if phrase.is_beginning { ":*" } else { "" };
        format!("({}{star})", words.join(" <-> "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut_up(text: &str) -> Vec<String> {
        let mut tokens = Tokens::default();
        tokens.add(text);
        tokens.0
    }

    #[test]
    fn texts_are_cut_into_words() {
        for (text, words) in [
            ("Hello, World!", &["hello", "world"][..]),
            ("don't", &["don", "t"]),
            ("Café ÉCOLE cafe\u{301}", &["cafe", "ecole", "cafe"]),
            (
                "#Rust @alice@example.org",
                &["rust", "alice", "example", "org"],
            ),
            ("東京に行く", &["東", "京", "に", "行", "く"]),
            ("ｶﾞ ガ", &["ガ", "ガ"]),
            ("สวัสดี", &["ส", "ว", "ั", "ส", "ด", "ี"]),
            ("안녕 하세요", &["안녕", "하세요"]),
            ("हिन्दी", &["हिन्दी"]),
            ("good🐦bird👍🏽", &["good", "🐦", "bird", "👍"]),
            ("Ёлка ß ﬁn", &["елка", "ß", "fin"]),
            ("a\0b\u{E000}c", &["a", "b", "c"]),
            ("", &[]),
        ] {
            assert_eq!(cut_up(text), words, "{text}");
        }
    }

    #[test]
    fn a_text_without_end_is_cut_short() {
        assert_eq!(cut_up(&"ab ".repeat(100_000)).len(), WORDS_MAX);
        assert_eq!(cut_up(&"a".repeat(100_000)), ["a".repeat(LETTERS_MAX)]);
        assert_eq!(cut_up(&"\u{301}".repeat(100_000)).len(), 0);
    }

    fn phrases(phrases: &[Phrase]) -> Vec<String> {
        let shown = phrases.iter().map(|phrase| {
            let star = if phrase.is_beginning { "*" } else { "" };
            phrase.words.join(" ") + star
        });
        shown.collect()
    }

    #[test]
    fn questions_mean_what_people_expect() {
        for (text, all, none) in [
            ("Rust  crawler", &["rust", "crawler"][..], &[][..]),
            ("\"social network\" -spam", &["social network"], &["spam"]),
            ("craw* ab*", &["craw*", "ab"], &[]),
            ("-\"two words\" ok", &["ok"], &["two words"]),
            ("\"never closed", &["never closed"], &[]),
            ("東京*", &["東 京"], &[]),
            (
                "NEAR(a b) col:x ^y a AND b OR NOT c",
                &[
                    "near a", "b", "col x", "y", "a", "and", "b", "or", "not", "c",
                ],
                &[],
            ),
            ("* - \" \" '' ; -- ()", &[], &[]),
            ("well-known", &["well known"], &[]),
        ] {
            let query = Query::typed(text);
            assert_eq!(phrases(&query.all), all, "{text}");
            assert_eq!(phrases(&query.none), none, "{text}");
        }
    }

    #[test]
    fn a_long_question_is_cut_short() {
        for text in [
            "a ".repeat(50_000),
            "\"".repeat(100_000),
            "é-".repeat(50_000),
        ] {
            let query = Query::typed(&text);
            assert!(query.all.len() + query.none.len() <= PHRASES_MAX);
        }
    }

    #[test]
    fn handles_are_words_that_nobody_can_type() {
        let mut tokens = Tokens::default();
        tokens.add_handle("@Alice.B@Example.org");
        assert_eq!(tokens.0[1], handle_word("alice.b@example.org").unwrap());
        assert_eq!(tokens.0[0], handle_word("@ALICE.b").unwrap());
        assert_eq!(Query::typed(&tokens.0[0]).all[0].words, ["alice", "b"]);
        assert_eq!(handle_word("@"), None);
        assert_eq!(
            address_word("https://a.example/@x/"),
            address_word("https://a.example/@x")
        );
    }

    proptest! {
        #[test]
        fn words_hold_nothing_that_means_something(text in "\\PC{0,60}|[\"'*:^(){}\\\\\0 a-c-]{0,40}") {
            for word in cut_up(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(!word.contains(|sign: char| sign.is_ascii() && !sign.is_ascii_alphanumeric()), "{:?}", word);
                prop_assert!(!word.contains(char::is_whitespace));
            }
            let query = Query::typed(&text);
            prop_assert!(query.all.iter().chain(&query.none).all(|phrase| !phrase.words.is_empty()));
        }

        #[test]
        fn what_was_cut_is_cut_no_further(text in "\\PC{0,60}") {
            let words = cut_up(&text);
            prop_assert_eq!(cut_up(&words.join(" ")), words);
        }
    }
}
