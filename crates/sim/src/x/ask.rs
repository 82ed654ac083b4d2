//! Parameters: what is asked for, and the refusal of what is not valid.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::problem::{invalid, invalid_request};
use super::route::{Kind, Route};
use crate::answer::Answer;
use crate::dialect::Heard;
use crate::params::Params;
use crate::world::ids;

/// As many as one call may ask for.
const BATCH_MAX: usize = 100;
/// Names of the real network have 15 letters at most; those of the world are longer.
const NAME_LENGTH_MAX: usize = 40;

const USER_FIELDS: &[&str] = &[
    "affiliation",
    "connection_status",
    "created_at",
    "description",
    "entities",
    "id",
    "is_identity_verified",
    "location",
    "most_recent_tweet_id",
    "name",
    "parody",
    "pinned_tweet_id",
    "profile_banner_url",
    "profile_image_url",
    "protected",
    "public_metrics",
    "receives_your_dm",
    "subscription",
    "subscription_type",
    "url",
    "username",
    "verified",
    "verified_followers_count",
    "verified_type",
    "withheld",
];
const TWEET_FIELDS: &[&str] = &[
    "article",
    "attachments",
    "author_id",
    "card_uri",
    "community_id",
    "context_annotations",
    "conversation_id",
    "created_at",
    "display_text_range",
    "edit_controls",
    "edit_history_tweet_ids",
    "entities",
    "geo",
    "id",
    "in_reply_to_user_id",
    "lang",
    "media_metadata",
    "non_public_metrics",
    "note_tweet",
    "organic_metrics",
    "paid_partnership",
    "possibly_sensitive",
    "promoted_metrics",
    "public_metrics",
    "referenced_tweets",
    "reply_settings",
    "scopes",
    "source",
    "suggested_source_links",
    "text",
    "withheld",
];
const MEDIA_FIELDS: &[&str] = &[
    "alt_text",
    "duration_ms",
    "height",
    "media_key",
    "non_public_metrics",
    "organic_metrics",
    "preview_image_url",
    "promoted_metrics",
    "public_metrics",
    "type",
    "url",
    "variants",
    "width",
];
const POLL_FIELDS: &[&str] = &[
    "duration_minutes",
    "end_datetime",
    "id",
    "options",
    "voting_status",
];
const PLACE_FIELDS: &[&str] = &[
    "contained_within",
    "country",
    "country_code",
    "full_name",
    "geo",
    "id",
    "name",
    "place_type",
];
const USER_EXPANSIONS: &[&str] = &[
    "affiliation.user_id",
    "most_recent_tweet_id",
    "pinned_tweet_id",
];
const TWEET_EXPANSIONS: &[&str] = &[
    "article.cover_media",
    "article.media_entities",
    "attachments.media_keys",
    "attachments.media_source_tweet",
    "attachments.poll_ids",
    "author_id",
    "author_screen_name",
    "edit_history_tweet_ids",
    "entities.mentions.username",
    "entities.note.mentions.username",
    "geo.place_id",
    "in_reply_to_user_id",
    "referenced_tweets.id",
    "referenced_tweets.id.attachments.media_keys",
    "referenced_tweets.id.author_id",
];

/// A request whose parameters are valid.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    params: &'a Params,
    /// How many items a page has.
    pub(super) size: usize,
    /// What pages begin below; beyond every id for a first page.
    pub(super) below: u64,
    pub(super) is_first_page: bool,
    pub(super) user_fields: BTreeSet<&'a str>,
    pub(super) tweet_fields: BTreeSet<&'a str>,
    pub(super) media_fields: BTreeSet<&'a str>,
    expansions: BTreeSet<&'a str>,
}

/// Everything that is wrong with a request.
#[derive(Debug, Default)]
struct Wrong {
    errors: Vec<Value>,
}

impl Wrong {
    fn note(&mut self, parameter: &str, value: &str, message: &str) {
        self.errors.push(invalid(parameter, &[value], message));
    }

    fn value(&mut self, parameter: &str, value: &str) {
        let message = format!("The `{parameter}` query parameter value [{value}] is not valid");
        self.note(parameter, value, &message);
    }

    fn refusal(self) -> Result<(), Answer> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(invalid_request(&self.errors))
    }
}

impl<'a> Ask<'a> {
    pub(super) fn read(heard: &'a Heard, route: Route<'_>) -> Result<Self, Answer> {
        let params = &heard.params;
        let mut wrong = Wrong::default();
        if route != Route::Unknown {
            check_names(params, route, &mut wrong);
        }
        let listed = |name: &str, known: &[&str], usual: &[&'static str], wrong: &mut Wrong| {
            let mut chosen: BTreeSet<&'a str> = usual.iter().copied().collect();
            for value in params.get(name).unwrap_or_default().split(',') {
                if known.contains(&value) {
                    chosen.insert(value);
                } else if !value.is_empty() {
                    let known = known.join(",");
                    let message = format!(
                        "The `{name}` query parameter value [{value}] is not one of [{known}]"
                    );
                    wrong.note(name, value, &message);
                }
            }
            chosen
        };
        let expansions = if route.kind() == Kind::Posts {
            TWEET_EXPANSIONS
        } else {
            USER_EXPANSIONS
        };
        let usual_user = ["id", "name", "username"];
        let usual_tweet = ["id", "text", "edit_history_tweet_ids"];
        let user_fields = listed("user.fields", USER_FIELDS, &usual_user, &mut wrong);
        let tweet_fields = listed("tweet.fields", TWEET_FIELDS, &usual_tweet, &mut wrong);
        let usual_media = ["media_key", "type"];
        let media_fields = listed("media.fields", MEDIA_FIELDS, &usual_media, &mut wrong);
        listed("poll.fields", POLL_FIELDS, &[], &mut wrong);
        listed("place.fields", PLACE_FIELDS, &[], &mut wrong);
        let expansions = listed("expansions", expansions, &[], &mut wrong);
        let size = size(params, route, &mut wrong);
        let below = below(params, &mut wrong);
        wrong.refusal()?;
        Ok(Self {
            params,
            size,
            below: below.unwrap_or(u64::MAX),
            is_first_page: below.is_none(),
            user_fields,
            tweet_fields,
            media_fields,
            expansions,
        })
    }

    pub(super) fn expands(&self, name: &str) -> bool {
        self.expansions.contains(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.params.get(name)
    }

    /// Up to 100 values; one that is not valid spoils the call.
    fn batch(
        &self,
        name: &str,
        is_sound: impl Fn(&str) -> bool,
        rule: &str,
    ) -> Result<Vec<&'a str>, Answer> {
        let mut wrong = Wrong::default();
        let Some(text) = self.get(name) else {
            let message = format!("The `{name}` query parameter can not be empty");
            wrong.note(name, "", &message);
            wrong.refusal()?;
            return Ok(Vec::new());
        };
        let mut values: Vec<&str> = Vec::new();
        for value in text.split(',') {
            if !is_sound(value) {
                let message = format!("The `{name}` query parameter value [{value}] {rule}");
                wrong.note(name, text, &message);
            }
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let count = text.split(',').count();
        if count > BATCH_MAX {
            let message = format!(
                "The number of values in the `{name}` query parameter list [{count}] is not \
                 between 1 and {BATCH_MAX}"
            );
            wrong.errors.push(invalid(name, &[text], &message));
        }
        wrong.refusal()?;
        Ok(values)
    }

    pub(super) fn ids(&self) -> Result<Vec<&'a str>, Answer> {
        self.batch("ids", is_id, "is not valid")
    }

    pub(super) fn usernames(&self) -> Result<Vec<&'a str>, Answer> {
        self.batch("usernames", is_name, "does not match ^[A-Za-z0-9_]{1,15}$")
    }

    /// An id within a list's bounds, if one is given.
    pub(super) fn id_bound(&self, name: &str) -> Result<Option<u64>, Answer> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        id(name, text).map(Some)
    }

    /// A time, if one is given.
    pub(super) fn time(&self, name: &str) -> Result<Option<i64>, Answer> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let Ok(time) = text.parse::<Timestamp>() else {
            let message = format!(
                "The `{name}` query parameter value [{text}] is not a valid RFC3339 date-time"
            );
            return Err(refused(name, text, &message));
        };
        Ok(Some(time.as_microsecond()))
    }
}

/// The refusal of one parameter.
pub(super) fn refused(parameter: &str, value: &str, message: &str) -> Answer {
    invalid_request(&[invalid(parameter, &[value], message)])
}

/// The number that a path or a bound names.
pub(super) fn id(parameter: &str, text: &str) -> Result<u64, Answer> {
    let found = if is_id(text) { ids::parse(text) } else { None };
    found.ok_or_else(|| {
        let message = format!("The `{parameter}` query parameter value [{text}] is not valid");
        refused(parameter, text, &message)
    })
}

pub(super) fn name(text: &str) -> Result<&str, Answer> {
    if is_name(text) {
        return Ok(text);
    }
    let message = format!(
        "The `username` query parameter value [{text}] does not match ^[A-Za-z0-9_]{{1,15}}$"
    );
    Err(refused("username", text, &message))
}

fn is_id(text: &str) -> bool {
    (1..=19).contains(&text.len()) && ids::parse(text).is_some()
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (1..=NAME_LENGTH_MAX).contains(&text.len()) && text.chars().all(is_letter)
}

fn check_names(params: &Params, route: Route<'_>, wrong: &mut Wrong) {
    let (own, shared) = route.parameters();
    for (name, value) in params.all_pairs() {
        if !own.contains(&name) && !shared.contains(&name) {
            let known = [own, shared].concat().join(",");
            let message = format!("The query parameter [{name}] is not one of [{known}]");
            wrong.note(name, value, &message);
        }
    }
}

fn size(params: &Params, route: Route<'_>, wrong: &mut Wrong) -> usize {
    let Some(sizes) = route.sizes() else {
        return 1;
    };
    let Some(text) = params.get("max_results") else {
        return sizes.usual as usize;
    };
    let found = text.parse::<u64>().ok();
    let found = found.filter(|size| (sizes.least..=sizes.most).contains(size));
    if found.is_none() {
        let message = format!(
            "The `max_results` query parameter value [{text}] is not between {} and {}",
            sizes.least, sizes.most
        );
        wrong.note("max_results", text, &message);
    }
    found.unwrap_or(sizes.usual) as usize
}

/// Tokens of pages look like nothing, and hold the id that the page begins below.
pub(super) fn token(below: u64) -> String {
    format!("b26v89c19zqg8o3f{below:016x}")
}

fn below(params: &Params, wrong: &mut Wrong) -> Option<u64> {
    let name = ["pagination_token", "next_token"]
        .into_iter()
        .find(|name| params.get(name).is_some())?;
    let text = params.get(name)?;
    let digits = text.strip_prefix("b26v89c19zqg8o3f");
    let found = digits
        .filter(|digits| digits.len() == 16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if found.is_none() {
        wrong.value(name, text);
    }
    found
}
