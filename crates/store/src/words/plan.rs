//! What of a question an index of single words can find by itself, and what only the text can tell.

use super::{Phrase, Query, Tokens};

/// Letters of beginnings that an index files beside whole words. Longer ones are looked for by the
/// letters that are filed; the text tells the rest.
pub(crate) const BEGINNINGS: [usize; 5] = [3, 4, 5, 6, 8];
/// Words of a question that are looked for at once, and as many that must not be there: the text tells
/// the rest.
const WORDS_MAX: usize = 8;

/// A word as an index of words has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word {
    pub letters: String,
    /// Whether it may go on; it has as many letters as one of [`BEGINNINGS`] then.
    pub is_beginning: bool,
}

/// A question as a walk along an index of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Whatever is asked for has all of these.
    pub all: Vec<Word>,
    /// Nothing that is asked for has one of these.
    pub none: Vec<Word>,
    /// Whether something with all of the one and none of the other may still not be what is asked for.
    pub needs_text: bool,
}

impl Plan {
    pub(crate) fn of(query: &Query) -> Self {
        let (mut all, mut none, mut needs_text) = (Vec::new(), Vec::new(), false);
        for phrase in &query.all {
            let is_exact = words_of(phrase, &mut all);
            needs_text |= !is_exact;
        }
        for phrase in &query.none {
            let mut words = Vec::new();
            // What has the words of a phrase need not have the phrase.
            if words_of(phrase, &mut words) {
                none.append(&mut words);
            } else {
                needs_text = true;
            }
        }
        for words in [&mut all, &mut none] {
            // Long words are seldom: the first ones are those that say the most.
            words
                .sort_unstable_by_key(|word| (std::cmp::Reverse(word.letters.len()), word.clone()));
            words.dedup();
            needs_text |= words.len() > WORDS_MAX;
            words.truncate(WORDS_MAX);
        }
        Self {
            all,
            none,
            needs_text,
        }
    }
}

/// Adds the words that every text with the phrase has; says whether every text with these has the phrase.
fn words_of(phrase: &Phrase, words: &mut Vec<Word>) -> bool {
    let mut is_exact = phrase.words.len() == 1;
    for (place, letters) in phrase.words.iter().enumerate() {
        let is_last = place + 1 == phrase.words.len();
        if !(is_last && phrase.is_beginning) {
            words.push(Word {
                letters: letters.clone(),
                is_beginning: false,
            });
            continue;
        }
        let length = letters.chars().count();
        let Some(filed) = BEGINNINGS.into_iter().rfind(|filed| *filed <= length) else {
            is_exact = false;
            continue;
        };
        is_exact &= filed == length;
        words.push(Word {
            letters: letters.chars().take(filed).collect(),
            is_beginning: true,
        });
    }
    is_exact
}

impl Query {
    /// Whether these words are what is asked for.
    pub(crate) fn is_met_by(&self, tokens: &Tokens) -> bool {
        let has = |phrase: &Phrase| phrase.is_in(&tokens.0);
        !self.all.is_empty() && self.all.iter().all(has) && !self.none.iter().any(has)
    }
}

impl Phrase {
    fn is_in(&self, words: &[String]) -> bool {
        let Some((last, before)) = self.words.split_last() else {
            return false;
        };
        words.windows(self.words.len()).any(|stretch| {
            let (end, begin) = (&stretch[before.len()], &stretch[..before.len()]);
            let ends = if self.is_beginning {
                end.starts_with(last.as_str())
            } else {
                end == last
            };
            ends && begin == before
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn has(tokens: &Tokens, word: &Word) -> bool {
        let is_there = |token: &String| {
            if word.is_beginning {
                token.starts_with(&word.letters)
            } else {
                *token == word.letters
            }
        };
        tokens.0.iter().any(is_there)
    }

    fn shown(words: &[Word]) -> Vec<String> {
        let star = |word: &Word| if word.is_beginning { "*" } else { "" };
        let shown = words.iter().map(|word| word.letters.clone() + star(word));
        shown.collect()
    }

    #[test]
    fn the_text_is_asked_only_where_words_do_not_tell() {
        for (text, all, none, needs_text) in [
            ("rust", &["rust"][..], &[][..], false),
            ("rust Rust -spam", &["rust"], &["spam"], false),
            ("\"a long phrase\"", &["phrase", "long", "a"], &[], true),
            ("topic*", &["topic*"], &[], false),
            ("topic17*", &["topic1*"], &[], true),
            ("beginning*", &["beginnin*"], &[], true),
            ("ok -\"a phrase\"", &["ok"], &[], true),
            ("ok -beg* -beginning*", &["ok"], &["beg*"], true),
            ("東京", &["京", "東"], &[], true),
        ] {
            let plan = Plan::of(&Query::typed(text));
            assert_eq!(shown(&plan.all), all, "{text}");
            assert_eq!(shown(&plan.none), none, "{text}");
            assert_eq!(plan.needs_text, needs_text, "{text}");
        }
        let many: Vec<String> = (0..20).map(|number| format!("word{number}")).collect();
        let plan = Plan::of(&Query::typed(&many.join(" ")));
        assert_eq!((plan.all.len(), plan.needs_text), (WORDS_MAX, true));
    }

    proptest! {
        /// A plan leaves nothing out, and without the text it lets nothing in.
        #[test]
        fn plans_mean_what_was_asked(
            text in "[ab]{1,10}( [ab]{1,10}){0,12}",
            asked in "(-?[ab]{1,10}\\*? |-?\"[ab]{1,10} [ab]{1,10}\" ){1,12}",
        ) {
            let mut tokens = Tokens::default();
            tokens.add(&text);
            let query = Query::typed(&asked);
            let plan = Plan::of(&query);
            let is_candidate = !plan.all.is_empty()
                && plan.all.iter().all(|word| has(&tokens, word))
                && !plan.none.iter().any(|word| has(&tokens, word));
            prop_assert!(is_candidate || !query.is_met_by(&tokens), "{:?}", plan);
            if !plan.needs_text {
                prop_assert_eq!(is_candidate, query.is_met_by(&tokens), "{:?}", plan);
            }
        }
    }
}
