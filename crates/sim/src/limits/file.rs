//! A file of limits: TOML, read into rules. Every error names the bucket and what to write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use serde::Deserialize;
use thiserror::Error;

use super::period::Period;
use super::rule::{
    HeaderRule, Kind, RefusalRule, ResetForm, RetryAfter, Rule, Scope, UsageForm, UsageRule,
};
use crate::world::time::SECOND_US;

const BUCKETS_MAX: usize = 100;
const NAME_LENGTH_MAX: usize = 64;
const BODY_LENGTH_MAX: usize = 65_536;
const LIMIT_MAX: u64 = 1_000_000_000_000;
/// Sliding windows keep their calls one by one.
const SLIDING_LIMIT_MAX: u64 = 1_000_000;
/// Ten years.
const WINDOW_SECONDS_MAX: u64 = 315_576_000;
const USAGE_HEADER: &str = "x-app-usage";

/// Why a file of limits cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LimitsError {
    #[error("the limits are not TOML: {0}")]
    Syntax(String),
    #[error("the limits hold {0}; write one [[bucket]] for every limit, and nothing else")]
    Form(String),
    #[error("bucket {bucket}: {problem}")]
    Bucket { bucket: String, problem: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BucketText {
    name: String,
    scope: ScopeText,
    each: Option<EachText>,
    queries: Option<Vec<String>>,
    #[serde(default)]
    paging: bool,
    authenticated: Option<bool>,
    tokens: Option<TokensText>,
    kind: KindText,
    limit: u64,
    window_seconds: Option<u64>,
    time_zone: Option<String>,
    #[serde(default)]
    cost: BTreeMap<String, u64>,
    item_cost: Option<u64>,
    headers: Option<String>,
    reset: Option<ResetText>,
    tells: Option<TellsText>,
    usage_header: Option<String>,
    usage_form: Option<UsageText>,
    #[serde(default)]
    refusal: RefusalText,
}

/// Whose tokens a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TokensText {
    App,
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeText {
    Ip,
    App,
    User,
    Token,
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EachText {
    Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindText {
    Aligned,
    FromFirst,
    Sliding,
    Daily,
    Monthly,
    Concurrency,
    Points,
    Percent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum ResetText {
    #[serde(rename = "iso8601")]
    Iso8601,
    #[serde(rename = "epoch_s")]
    EpochSeconds,
    #[serde(rename = "seconds_left")]
    SecondsLeft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TellsText {
    Limit,
    Used,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UsageText {
    Calls,
    App,
    Business,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalText {
    status: Option<u16>,
    retry_after: Option<RetryAfterText>,
    body: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`retry_after` is neither true, false nor a whole number of seconds"
)]
enum RetryAfterText {
    IsSent(bool),
    Seconds(u32),
}

pub(super) fn read(
    text: &str,
    all_queries: &'static [&'static str],
) -> Result<Vec<Rule>, LimitsError> {
    let mut table: toml::Table = toml::from_str(text)
        .map_err(|error| LimitsError::Syntax(error.to_string().trim_end().to_owned()))?;
    let buckets = table.remove("bucket");
    if let Some(key) = table.keys().next() {
        return Err(LimitsError::Form(format!("a key `{key}`")));
    }
    let Some(toml::Value::Array(buckets)) = buckets else {
        return Err(LimitsError::Form("no list of buckets".to_owned()));
    };
    if buckets.is_empty() || buckets.len() > BUCKETS_MAX {
        let held = format!(
            "{} buckets, and 1 to {BUCKETS_MAX} are possible",
            buckets.len()
        );
        return Err(LimitsError::Form(held));
    }
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for (place, bucket) in buckets.into_iter().enumerate() {
        let label = label(&bucket, place + 1);
        let refused = |problem| LimitsError::Bucket {
            bucket: label.clone(),
            problem,
        };
        let bucket: BucketText = bucket
            .try_into()
            .map_err(|error: toml::de::Error| refused(one_line(&error)))?;
        let rule = bucket.rule(all_queries).map_err(refused)?;
        if !names.insert(rule.name.clone()) {
            return Err(refused(
                "another bucket has this name; choose a different one".to_owned(),
            ));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// An error with the key that it is about, which stands on a line of its own.
fn one_line(error: &toml::de::Error) -> String {
    let told = error.to_string();
    let lines: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// What a bucket is called in errors: its name, or else its place.
fn label(bucket: &toml::Value, place: usize) -> String {
    let name = bucket.get("name").and_then(toml::Value::as_str);
    name.map_or_else(
        || format!("number {place}"),
        |name| {
            format!(
                "{:?}",
                name.chars().take(NAME_LENGTH_MAX).collect::<String>()
            )
        },
    )
}

impl BucketText {
    fn rule(self, all_queries: &'static [&'static str]) -> Result<Rule, String> {
        self.check_name()?;
        self.check_limit()?;
        self.check_who()?;
        let queries = self.known_queries(all_queries)?;
        let cost = self.known_costs(&queries, all_queries)?;
        Ok(Rule {
            kind: self.rule_kind()?,
            headers: self.header_rule()?,
            usage: self.usage()?,
            item_cost: self.item_cost.unwrap_or(0),
            is_each_query: self.each == Some(EachText::Query),
            is_paging_only: self.paging,
            authenticated: self.authenticated,
            of_users: self.tokens.map(|tokens| tokens == TokensText::User),
            limit: self.limit,
            scope: match self.scope {
                ScopeText::Ip => Scope::Ip,
                ScopeText::App => Scope::App,
                ScopeText::User => Scope::User,
                ScopeText::Token => Scope::Token,
                ScopeText::Host => Scope::Host,
            },
            refusal: self.refusal.rule()?,
            name: self.name,
            queries,
            cost,
        })
    }

    fn check_name(&self) -> Result<(), String> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let is_sound =
            (1..=NAME_LENGTH_MAX).contains(&self.name.len()) && self.name.chars().all(is_plain);
        is_sound.then_some(()).ok_or_else(|| {
            format!(
                "`name` has 1 to {NAME_LENGTH_MAX} letters, digits, dots, dashes and underscores; \
                 write for example name = \"lookup\""
            )
        })
    }

    fn check_limit(&self) -> Result<(), String> {
        let is_logged = matches!(self.kind, KindText::Sliding | KindText::Percent);
        let most = if is_logged {
            SLIDING_LIMIT_MAX
        } else {
            LIMIT_MAX
        };
        if (1..=most).contains(&self.limit) {
            return Ok(());
        }
        Err(format!(
            "`limit` is {}; write a number from 1 to {most}",
            self.limit
        ))
    }

    fn check_who(&self) -> Result<(), String> {
        let needs_token = matches!(
            self.scope,
            ScopeText::App | ScopeText::User | ScopeText::Token
        );
        if needs_token && self.authenticated == Some(false) {
            return Err(
                "calls without a token have neither app, user nor token; write scope = \"ip\" or \
                 leave out `authenticated`"
                    .to_owned(),
            );
        }
        if !needs_token && self.tokens.is_some() {
            return Err(
                "`tokens` is for limits of those who have one; write scope = \"app\" or \"user\""
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn known_queries(&self, all: &'static [&'static str]) -> Result<Vec<&'static str>, String> {
        let Some(queries) = &self.queries else {
            return Ok(Vec::new());
        };
        if queries.is_empty() {
            return Err("`queries` is empty; name some, or leave it out for all".to_owned());
        }
        queries
            .iter()
            .map(|query| known_query(query, all))
            .collect()
    }

    fn known_costs(
        &self,
        queries: &[&'static str],
        all: &'static [&'static str],
    ) -> Result<BTreeMap<&'static str, u64>, String> {
        let has_cost = !self.cost.is_empty() || self.item_cost.is_some();
        if has_cost && self.kind == KindText::Concurrency {
            return Err(
                "calls that are under way have no cost; leave out `cost` and `item_cost`"
                    .to_owned(),
            );
        }
        if self
            .item_cost
            .is_some_and(|cost| !(1..=LIMIT_MAX).contains(&cost))
        {
            return Err(format!("`item_cost` is a number from 1 to {LIMIT_MAX}"));
        }
        let mut costs = BTreeMap::new();
        for (query, cost) in &self.cost {
            let query = known_query(query, all)?;
            if !queries.is_empty() && !queries.contains(&query) {
                return Err(format!(
                    "`cost` names {query:?}, which is not among its `queries`; add it there or \
                     leave it out here"
                ));
            }
            if *cost > self.limit {
                return Err(format!(
                    "a call of {query:?} costs {cost} of {}, so it could never pass; write a \
                     greater `limit` or a smaller cost",
                    self.limit
                ));
            }
            costs.insert(query, *cost);
        }
        Ok(costs)
    }

    fn rule_kind(&self) -> Result<Kind, String> {
        if self.time_zone.is_some() && !self.is_calendar() {
            return Err(
                "`time_zone` is for kind = \"daily\" and \"monthly\" only; leave it out".to_owned(),
            );
        }
        if self.window_seconds.is_some() && !self.has_window() {
            return Err(
                format!("{:?} has no `window_seconds`; leave it out", self.kind).to_lowercase(),
            );
        }
        Ok(match self.kind {
            KindText::Aligned | KindText::Points => Kind::Windows(Period::Aligned {
                window_us: self.window_us()?,
            }),
            KindText::FromFirst => Kind::Windows(Period::FromFirst {
                window_us: self.window_us()?,
            }),
            KindText::Sliding | KindText::Percent => Kind::Sliding {
                window_us: self.window_us()?,
            },
            KindText::Daily => Kind::Windows(Period::Day(self.zone()?)),
            KindText::Monthly => Kind::Windows(Period::Month(self.zone()?)),
            KindText::Concurrency => Kind::Concurrency,
        })
    }

    const fn is_calendar(&self) -> bool {
        matches!(self.kind, KindText::Daily | KindText::Monthly)
    }

    const fn has_window(&self) -> bool {
        !self.is_calendar() && !matches!(self.kind, KindText::Concurrency)
    }

    fn window_us(&self) -> Result<i64, String> {
        match self.window_seconds {
            Some(seconds @ 1..=WINDOW_SECONDS_MAX) => Ok(seconds as i64 * SECOND_US),
            Some(_) => Err(format!(
                "`window_seconds` is a number from 1 to {WINDOW_SECONDS_MAX}"
            )),
            None => Err(
                "`window_seconds` is missing; write for example window_seconds = 900".to_owned(),
            ),
        }
    }

    fn zone(&self) -> Result<TimeZone, String> {
        let advice = "write time_zone = \"UTC\", a name such as \"America/Los_Angeles\", or an \
                      offset such as \"+05:30\"";
        let Some(name) = &self.time_zone else {
            return Err(format!("`time_zone` is missing; {advice}"));
        };
        DateTimeParser::new()
            .parse_time_zone(name)
            .map_err(|_| format!("there is no time zone {name:?}; {advice}"))
    }

    fn header_rule(&self) -> Result<Option<HeaderRule>, String> {
        let is_timed = self.kind != KindText::Concurrency;
        match (&self.headers, self.reset) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(
                "`reset` is the form of a header; write headers = \"x-rate-limit\" as well, or \
                 leave it out"
                    .to_owned(),
            ),
            (Some(_), None) if is_timed => Err(
                "`headers` need a form for the time; write reset = \"epoch_s\", \"iso8601\" or \
                 \"seconds_left\""
                    .to_owned(),
            ),
            (Some(_), Some(_)) if !is_timed => Err(
                "nobody knows when a call that is under way will end; leave out `reset`".to_owned(),
            ),
            (Some(prefix), reset) => Ok(Some(HeaderRule {
                prefix: header_name("headers", prefix)?,
                tells_used: self.tells == Some(TellsText::Used),
                reset: reset.map(|reset| match reset {
                    ResetText::Iso8601 => ResetForm::Iso8601,
                    ResetText::EpochSeconds => ResetForm::EpochSeconds,
                    ResetText::SecondsLeft => ResetForm::SecondsLeft,
                }),
            })),
        }
    }

    fn usage(&self) -> Result<Option<UsageRule>, String> {
        if self.kind == KindText::Percent {
            let name = self.usage_header.as_deref().unwrap_or(USAGE_HEADER);
            let form = match self.usage_form {
                None | Some(UsageText::Calls) => UsageForm::Calls,
                Some(UsageText::App) => UsageForm::App,
                Some(UsageText::Business) => UsageForm::Business,
            };
            let header = header_name("usage_header", name)?;
            return Ok(Some(UsageRule { header, form }));
        }
        for (key, is_given) in [
            ("usage_header", self.usage_header.is_some()),
            ("usage_form", self.usage_form.is_some()),
        ] {
            if is_given {
                return Err(format!(
                    "`{key}` is for kind = \"percent\" only; leave it out"
                ));
            }
        }
        Ok(None)
    }
}

impl RefusalText {
    fn rule(self) -> Result<RefusalRule, String> {
        let status = self.status.unwrap_or(429);
        if status != 200 && !(400..=599).contains(&status) {
            return Err(format!(
                "`refusal` has the status {status}; write one from 400 to 599, or 200 with a body"
            ));
        }
        if status == 200 && self.body.is_none() {
            return Err(
                "a refusal with status 200 is known by its body alone; write body = \"…\""
                    .to_owned(),
            );
        }
        if self
            .body
            .as_ref()
            .is_some_and(|body| body.len() > BODY_LENGTH_MAX)
        {
            return Err(format!(
                "the body of a refusal is longer than {BODY_LENGTH_MAX} bytes; write a shorter one"
            ));
        }
        Ok(RefusalRule {
            status,
            retry_after: match self.retry_after {
                None | Some(RetryAfterText::IsSent(false)) => None,
                Some(RetryAfterText::IsSent(true)) => Some(RetryAfter::WhenItCanPass),
                Some(RetryAfterText::Seconds(seconds)) => Some(RetryAfter::Seconds(seconds)),
            },
            body: self.body,
        })
    }
}

fn known_query(name: &str, all: &'static [&'static str]) -> Result<&'static str, String> {
    let known = all.iter().copied().find(|query| *query == name);
    known.ok_or_else(|| {
        format!(
            "there is no query {name:?}; write one of {}",
            all.join(", ")
        )
    })
}

fn header_name(key: &str, name: &str) -> Result<String, String> {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let is_sound = (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.chars().all(is_plain);
    is_sound.then(|| name.to_owned()).ok_or_else(|| {
        format!(
            "`{key}` = {name:?} is no name of a header; write small letters, digits and dashes, \
             such as \"x-rate-limit\""
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mastodon::QUERIES;

    fn read(text: &str) -> Result<Vec<Rule>, LimitsError> {
        super::read(text, &QUERIES)
    }

    const SOUND: &str = "name = \"a\"\nscope = \"token\"\nkind = \"aligned\"\nlimit = 5\n\
                         window_seconds = 60\n";

    /// The error of one bucket in which a line was replaced or added.
    fn error(line: &str) -> String {
        let key = line.split(" = ").next().unwrap();
        let kept = SOUND
            .lines()
            .filter(|kept| !kept.starts_with(&format!("{key} ")));
        let lines: Vec<&str> = kept.chain([line]).collect();
        let text = format!("[[bucket]]\n{}\n", lines.join("\n"));
        read(&text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_bucket_what_is_wrong_and_what_to_write() {
        for (line, words) in [
            ("limt = 5", "unknown field `limt`"),
            (
                "kind = \"alined\"",
                "unknown variant `alined`, expected one of `aligned`",
            ),
            (
                "scope = \"planet\"",
                "unknown variant `planet`, expected one of `ip`",
            ),
            (
                "each = \"caller\"",
                "unknown variant `caller`, expected `query`",
            ),
            ("limit = 0", "`limit` is 0; write a number from 1 to"),
            ("limit = -1", "invalid value: integer `-1`"),
            (
                "limit = \"many\"",
                "invalid type: string \"many\", expected u64 in `limit`",
            ),
            (
                "window_seconds = 0",
                "`window_seconds` is a number from 1 to",
            ),
            (
                "kind = \"daily\"",
                "daily has no `window_seconds`; leave it out",
            ),
            (
                "time_zone = \"UTC\"",
                "`time_zone` is for kind = \"daily\" and \"monthly\" only",
            ),
            ("queries = []", "`queries` is empty; name some"),
            (
                "queries = [\"friends\"]",
                "there is no query \"friends\"; write one of lookup, ",
            ),
            (
                "cost = { status = 6 }",
                "costs 6 of 5, so it could never pass",
            ),
            ("item_cost = 0", "`item_cost` is a number from 1"),
            ("headers = \"x-rate-limit\"", "write reset = \"epoch_s\""),
            (
                "reset = \"epoch_s\"",
                "write headers = \"x-rate-limit\" as well",
            ),
            ("usage_header = \"x\"", "is for kind = \"percent\" only"),
            ("usage_form = \"app\"", "is for kind = \"percent\" only"),
            ("authenticated = false", "write scope = \"ip\""),
            (
                "tokens = \"bot\"",
                "unknown variant `bot`, expected `app` or `user`",
            ),
            (
                "refusal = { status = 302 }",
                "the status 302; write one from 400 to 599",
            ),
            ("refusal = { status = 200 }", "known by its body alone"),
        ] {
            let told = error(line);
            assert!(
                told.starts_with("bucket \"a\": ") && told.contains(words),
                "{line}: {told}"
            );
        }
        let everybody =
            format!("[[bucket]]\n{SOUND}tokens = \"app\"\n").replace("token\"", "host\"");
        let told = read(&everybody).unwrap_err().to_string();
        assert!(told.contains("for limits of those who have one"), "{told}");
        assert!(error("name = \"\"").contains("write for example name = \"lookup\""));
        assert!(error("name = \"a\\nb\"").starts_with("bucket \"a\\nb\": `name` has"));
    }

    #[test]
    fn a_file_without_buckets_or_with_something_else_is_refused() {
        for (text, words) in [
            ("", "no list of buckets"),
            ("bucket = 5", "no list of buckets"),
            ("bucket = []", "0 buckets"),
            ("limits = 5\n[[bucket]]\n", "a key `limits`"),
            ("[[bucket]\n", "not TOML: "),
            (
                "[[bucket]]\nscope = \"ip\"\n",
                "bucket number 1: missing field `name`",
            ),
        ] {
            let told = read(text).unwrap_err().to_string();
            assert!(told.contains(words), "{text:?}: {told}");
        }
        let twice = format!("[[bucket]]\n{SOUND}[[bucket]]\n{SOUND}");
        assert!(
            read(&twice)
                .unwrap_err()
                .to_string()
                .contains("another bucket has this name")
        );
        let many: Vec<String> = (0..=BUCKETS_MAX)
            .map(|number| SOUND.replace("\"a\"", &format!("\"{number}\"")))
            .collect();
        let many = format!("[[bucket]]\n{}", many.join("[[bucket]]\n"));
        assert!(read(&many).unwrap_err().to_string().contains("101 buckets"));
    }

    #[test]
    fn what_a_kind_needs_is_asked_for() {
        let bucket = |kind: &str, rest: &str| {
            read(&format!(
                "[[bucket]]\nname = \"a\"\nscope = \"host\"\nlimit = 5\nkind = \"{kind}\"\n{rest}"
            ))
        };
        for kind in ["aligned", "from_first", "sliding", "points", "percent"] {
            let told = bucket(kind, "").unwrap_err().to_string();
            assert!(
                told.ends_with("write for example window_seconds = 900"),
                "{kind}: {told}"
            );
            assert!(bucket(kind, "window_seconds = 9").is_ok(), "{kind}");
        }
        for kind in ["daily", "monthly"] {
            let told = bucket(kind, "").unwrap_err().to_string();
            assert!(
                told.contains("`time_zone` is missing; write time_zone = \"UTC\""),
                "{told}"
            );
            for zone in ["UTC", "America/Los_Angeles", "+05:30"] {
                assert!(
                    bucket(kind, &format!("time_zone = {zone:?}")).is_ok(),
                    "{zone}"
                );
            }
            for zone in ["", "Mars/Olympus", "25:00", "../../etc/passwd"] {
                let told = bucket(kind, &format!("time_zone = {zone:?}"))
                    .unwrap_err()
                    .to_string();
                assert!(told.contains("there is no time zone"), "{told}");
            }
        }
        assert!(bucket("concurrency", "").is_ok());
        assert!(bucket("concurrency", "headers = \"x\"").is_ok());
        assert!(bucket("concurrency", "headers = \"x\"\nreset = \"epoch_s\"").is_err());
        assert!(bucket("concurrency", "cost = { status = 2 }").is_err());
        assert!(bucket("concurrency", "window_seconds = 5").is_err());
        assert!(bucket("concurrency", "headers = \"x\\r\\ny\"").is_err());
        let percent = bucket("percent", "window_seconds = 9").unwrap();
        let usage = percent[0].usage.as_ref().unwrap();
        assert_eq!(usage.header, USAGE_HEADER);
        assert_eq!(usage.form, UsageForm::Calls);
    }
}
