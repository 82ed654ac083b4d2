//! The language of searches: words, operators, `OR`, `-` and brackets.

use super::identity::{post_id, time_of};
use crate::dialect::View;
use crate::world::{Link, Post};

/// Brackets within brackets.
const DEPTH_MAX: usize = 20;

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Query {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Word(String),
    Tag(String),
    From(String),
    To(String),
    Mention(String),
    Language(String),
    Conversation(u64),
    Answers(u64),
    Is(Trait),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    Repost,
    Reply,
    Quote,
    Media,
    Links,
    Tags,
    Mentions,
}

impl Query {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let tokens = tokens(text);
        let mut reader = Reader {
            tokens: &tokens,
            depth: 0,
        };
        let query = reader.any()?;
        if !reader.tokens.is_empty() {
            return Err("mismatched brackets".to_owned());
        }
        if !query.stands_alone() {
            return Err("Rules must contain at least one positive, non-stopword clause".to_owned());
        }
        Ok(query)
    }

    /// Whether something is asked for that does not need other words beside it.
    fn stands_alone(&self) -> bool {
        match self {
            Self::All(parts) => parts.iter().any(Self::stands_alone),
            Self::Any(parts) => parts.iter().all(Self::stands_alone),
            Self::Not(_) | Self::Language(_) | Self::Is(_) => false,
            _ => true,
        }
    }

    /// The conversations that hold everything that is asked for, if it is nothing else.
    pub(super) fn threads(&self) -> Option<Vec<u64>> {
        match self {
            Self::Conversation(id) | Self::Answers(id) => Some(vec![*id]),
            Self::Any(parts) => {
                let threads: Option<Vec<Vec<u64>>> = parts.iter().map(Self::threads).collect();
                Some(threads?.concat())
            }
            Self::All(parts) => parts.iter().find_map(Self::threads),
            _ => None,
        }
    }

    pub(super) fn is_true_of(&self, view: &View<'_>, post: &Post) -> bool {
        let name_of = |user| view.world.username(user, view.now.at_us);
        match self {
            Self::All(parts) => parts.iter().all(|part| part.is_true_of(view, post)),
            Self::Any(parts) => parts.iter().any(|part| part.is_true_of(view, post)),
            Self::Not(part) => !part.is_true_of(view, post),
            Self::Word(word) => {
                let text = view.words(post).text.to_lowercase();
                has_words(&text, word)
            }
            Self::Tag(tag) => {
                let tags = view.world.mentions_and_tags(&repeated(view, post)).1;
                tags.iter().any(|known| known.to_lowercase() == *tag)
            }
            Self::From(name) => name_of(post.user()).eq_ignore_ascii_case(name),
            Self::To(name) => match post.link {
                Link::Reply(target) => name_of(target.user).eq_ignore_ascii_case(name),
                Link::None | Link::Repost(_) => false,
            },
            Self::Mention(name) => {
                let mentions = view.words(post).mentions;
                let mut names = mentions.into_iter().map(name_of);
                names.any(|known| known.eq_ignore_ascii_case(name))
            }
            Self::Language(language) => view.words(post).language == language,
            Self::Conversation(id) => post_id(&view.first_of_conversation(post)) == *id,
            Self::Answers(id) => {
                matches!(post.link, Link::Reply(target) if post_id(&target) == *id)
            }
            Self::Is(asked) => asked.is_true_of(view, post),
        }
    }
}

/// What a repost repeats, or the post itself.
fn repeated(view: &View<'_>, post: &Post) -> Post {
    match post.link {
        Link::Repost(target) => view.world.post_with_id(target.id()).unwrap_or(*post),
        Link::None | Link::Reply(_) => *post,
    }
}

impl Trait {
    fn is_true_of(self, view: &View<'_>, post: &Post) -> bool {
        match self {
            Self::Repost => post.is_repost(),
            Self::Reply => matches!(post.link, Link::Reply(_)),
            Self::Quote => false,
            Self::Media => !view.words(&repeated(view, post)).media.is_empty(),
            Self::Links => view.words(post).text.contains("https://"),
            Self::Tags => view.words(post).text.contains('#'),
            Self::Mentions => !view.words(post).mentions.is_empty(),
        }
    }

    fn named(kind: &str, name: &str) -> Option<Self> {
        Some(match (kind, name) {
            ("is", "retweet") => Self::Repost,
            ("is", "reply") => Self::Reply,
            ("is", "quote") => Self::Quote,
            ("has", "media" | "images") => Self::Media,
            ("has", "links") => Self::Links,
            ("has", "hashtags") => Self::Tags,
            ("has", "mentions") => Self::Mentions,
            _ => return None,
        })
    }
}

/// Whether words stand in a text as whole words.
fn has_words(text: &str, words: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(place, _)| {
        let before = text[..place].chars().next_back();
        let behind = text[place + words.len()..].chars().next();
        !is_part(before) && !is_part(behind)
    })
}

/// Brackets, words and quoted phrases.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for letter in text.chars() {
        if letter == '"' {
            is_quoted = !is_quoted;
        }
        let is_bracket = !is_quoted && matches!(letter, '(' | ')');
        if is_bracket || (!is_quoted && letter.is_whitespace()) {
            // `-(a b)`: the sign stays with its bracket.
            let sign = (letter == '(' && word == "-").then(|| std::mem::take(&mut word));
            if !word.is_empty() {
                tokens.push(std::mem::take(&mut word));
            }
            if is_bracket {
                tokens.push(format!("{}{letter}", sign.unwrap_or_default()));
            }
        } else {
            word.push(letter);
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

struct Reader<'a> {
    tokens: &'a [String],
    depth: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn any(&mut self) -> Result<Query, String> {
        let mut parts = vec![self.all()?];
        while self.tokens.first().is_some_and(|token| token == "OR") {
            self.next();
            parts.push(self.all()?);
        }
        Ok(one_of(parts, Query::Any))
    }

    fn all(&mut self) -> Result<Query, String> {
        let mut parts = Vec::new();
        while let Some(token) = self.tokens.first() {
            if token == "OR" || token == ")" {
                break;
            }
            self.next();
            parts.push(self.part(token)?);
        }
        if parts.is_empty() {
            return Err("missing operand".to_owned());
        }
        Ok(one_of(parts, Query::All))
    }

    fn part(&mut self, token: &str) -> Result<Query, String> {
        if let Some(rest) = token.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            return Ok(Query::Not(Box::new(self.part(rest)?)));
        }
        if token != "(" {
            return term(token);
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("too many brackets".to_owned());
        }
        let inside = self.any()?;
        self.depth -= 1;
        match self.next() {
            Some(")") => Ok(inside),
            _ => Err("mismatched brackets".to_owned()),
        }
    }
}

fn one_of(mut parts: Vec<Query>, several: fn(Vec<Query>) -> Query) -> Query {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            several(parts)
        }
    }
}

fn term(token: &str) -> Result<Query, String> {
    if let Some(phrase) = token.strip_prefix('"') {
        return Ok(Query::Word(phrase.trim_end_matches('"').to_lowercase()));
    }
    if let Some(tag) = token.strip_prefix('#') {
        return Ok(Query::Tag(tag.to_lowercase()));
    }
    if let Some(name) = token.strip_prefix('@') {
        return Ok(Query::Mention(name.to_owned()));
    }
    let Some((operator, value)) = token.split_once(':') else {
        return Ok(Query::Word(token.to_lowercase()));
    };
    let number = || {
        let number = value.parse::<u64>();
        let number = number.map_err(|_| format!("Invalid {operator} '{value}'"))?;
        if time_of(number) < 0 {
            return Err(format!("Invalid {operator} '{value}'"));
        }
        Ok(number)
    };
    Ok(match operator {
        "from" => Query::From(value.to_owned()),
        "to" => Query::To(value.to_owned()),
        "lang" => Query::Language(value.to_owned()),
        "conversation_id" => Query::Conversation(number()?),
        "in_reply_to_tweet_id" => Query::Answers(number()?),
        "is" | "has" => Query::Is(
            Trait::named(operator, value)
                .ok_or_else(|| format!("Reference to invalid operator '{token}'"))?,
        ),
        _ => return Err(format!("Reference to invalid operator '{operator}'")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Query {
        Query::Word(text.to_owned())
    }

    #[test]
    fn a_query_is_read_with_or_below_and() {
        let read = |text| Query::read(text).unwrap();
        assert_eq!(
            read("conversation_id:12 OR in_reply_to_tweet_id:12").threads(),
            Some(vec![12, 12])
        );
        let parts = vec![word("a"), word("b c")];
        assert_eq!(
            read("A \"b c\" OR #D"),
            Query::Any(vec![Query::All(parts), Query::Tag("d".to_owned())])
        );
        let not = Query::Not(Box::new(Query::Is(Trait::Repost)));
        assert_eq!(
            read("(a OR b) -is:retweet"),
            Query::All(vec![Query::Any(vec![word("a"), word("b")]), not])
        );
        assert_eq!(read("a").threads(), None);
        assert_eq!(read("a OR conversation_id:1").threads(), None);
    }

    #[test]
    fn what_is_no_query_is_refused() {
        for text in [
            "is:retweet",
            "-a",
            "a OR",
            "OR",
            "(a",
            "a)",
            "a OR -b",
            "colour:red",
            "conversation_id:x",
            "is:tall a",
            "-",
            &"(".repeat(500),
        ] {
            let found = Query::read(text);
            assert!(
                found.is_err() || text == "-",
                "{text} was read as {found:?}"
            );
        }
    }

    #[test]
    fn words_are_found_as_whole_words() {
        assert!(has_words("two birds, #birds", "birds"));
        assert!(!has_words("twobirds", "birds"));
        assert!(has_words("ä birds", "birds"));
    }
}
