//! What answers and the status page say about declared limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::Header;
use super::declared::CounterKey;
use super::rule::{ResetForm, RetryAfter, Rule, UsageForm};
use crate::world::time::{SECOND_US, iso_us};

/// How a bucket stood when a call had been counted.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) key: CounterKey,
    pub(super) rules: Arc<[Rule]>,
    pub(super) used: u64,
    pub(super) now_us: i64,
    pub(super) reset_us: Option<i64>,
    /// Set when this bucket refused the call: when such a call could pass.
    pub(super) refused_until_us: Option<i64>,
    pub(super) has_refused: bool,
}

impl Note {
    pub(super) fn rule(&self) -> &Rule {
        &self.rules[self.key.rule]
    }

    fn remaining(&self) -> u64 {
        self.rule().limit.saturating_sub(self.used)
    }
}

/// The headers of an answer. Of several buckets with the same names for their headers, the one that
/// refused speaks, or else the one that has least left.
pub(super) fn headers(notes: &[Note]) -> Vec<Header> {
    let mut speakers: BTreeMap<&str, &Note> = BTreeMap::new();
    for note in notes {
        let Some(rule) = &note.rule().headers else {
            continue;
        };
        let speaker = speakers.entry(&rule.prefix).or_insert(note);
        let rank = |note: &Note| (!note.has_refused, note.remaining());
        if rank(note) < rank(speaker) {
            *speaker = note;
        }
    }
    let mut headers = Vec::new();
    for (prefix, note) in speakers {
        let named = |name: &str| format!("{prefix}-{name}").into();
        let rule = note.rule().headers.as_ref();
        if rule.is_some_and(|rule| rule.tells_used) {
            headers.push((named("used"), note.used.to_string()));
            headers.push((named("remaining"), format!("{}.0", note.remaining())));
        } else {
            headers.push((named("limit"), note.rule().limit.to_string()));
            headers.push((named("remaining"), note.remaining().to_string()));
        }
        let form = rule.and_then(|rule| rule.reset);
        if let (Some(form), Some(reset_us)) = (form, note.reset_us) {
            headers.push((named("reset"), reset(form, reset_us, note.now_us)));
        }
    }
    headers.extend(usage_headers(notes));
    headers.extend(retry_after(notes));
    headers
}

fn reset(form: ResetForm, reset_us: i64, now_us: i64) -> String {
    match form {
        ResetForm::Iso8601 => iso_us(reset_us),
        ResetForm::EpochSeconds => seconds_up(reset_us).to_string(),
        ResetForm::SecondsLeft => seconds_up(reset_us - now_us).max(0).to_string(),
    }
}

/// Whole percents, and nothing below one. Of several buckets with one header the one speaks of which most is used.
fn usage_headers(notes: &[Note]) -> impl Iterator<Item = Header> {
    let mut speakers: BTreeMap<&str, (u64, UsageForm, &Note)> = BTreeMap::new();
    for note in notes {
        let Some(usage) = &note.rule().usage else {
            continue;
        };
        let percent = (u128::from(note.used) * 100 / u128::from(note.rule().limit)) as u64;
        let told = (percent, usage.form, note);
        let speaker = speakers.entry(&usage.header).or_insert(told);
        if percent > speaker.0 {
            *speaker = told;
        }
    }
    speakers.retain(|_, (percent, ..)| *percent >= 1);
    speakers.into_iter().map(|(name, (percent, form, note))| {
        (
            name.to_owned().into(),
            usage(percent, form, note).to_string(),
        )
    })
}

fn usage(percent: u64, form: UsageForm, note: &Note) -> Value {
    let mut told = json!({ "call_count": percent });
    if form == UsageForm::Calls {
        return told;
    }
    // Here a call takes less of the time than of the calls that there are.
    told["total_cputime"] = json!(percent / 2);
    told["total_time"] = json!(percent * 3 / 4);
    if form == UsageForm::App {
        return told;
    }
    let until_us = note.refused_until_us.unwrap_or(note.now_us);
    let minutes = seconds_up(until_us - note.now_us).max(0) + 59;
    told["type"] = json!(note.rule().name);
    told["estimated_time_to_regain_access"] = json!(minutes / 60);
    json!({ "1": [told] })
}

fn retry_after(notes: &[Note]) -> Option<Header> {
    let (note, retry_after) = notes
        .iter()
        .filter(|note| note.has_refused)
        .find_map(|note| Some((note, note.rule().refusal.retry_after?)))?;
    let wait_s = match retry_after {
        RetryAfter::Seconds(seconds) => i64::from(seconds),
        RetryAfter::WhenItCanPass => {
            // Nobody knows when a call that is under way will end: a second is as good as any other
            // word.
            let until_us = note.refused_until_us.unwrap_or(note.now_us);
            seconds_up(until_us - note.now_us).max(1)
        }
    };
    Some(("retry-after".into(), wait_s.to_string()))
}

/// Rounded up, so that nobody comes too early who takes it at its word.
const fn seconds_up(span_us: i64) -> i64 {
    -(-span_us).div_euclid(SECOND_US)
}

/// How a caller stands in a bucket, for networks that word their status page themselves.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    pub(crate) bucket: String,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset_us: i64,
}

impl From<Note> for Allowance {
    fn from(note: Note) -> Self {
        Self {
            bucket: note.rule().name.clone(),
            limit: note.rule().limit,
            remaining: note.remaining(),
            reset_us: note.reset_us.unwrap_or(note.now_us),
        }
    }
}

/// What the status page says.
#[derive(Debug, Serialize)]
pub(crate) struct StatusAnswer {
    resources: BTreeMap<String, Resource>,
}

#[derive(Debug, Serialize)]
pub(super) struct Resource {
    limit: u64,
    remaining: u64,
    /// In whole seconds since 1970.
    reset: i64,
}

impl StatusAnswer {
    /// How much a bucket allows, and how much of that is used.
    pub(crate) fn used(&self, bucket: &str) -> Option<(u64, u64)> {
        let found = self.resources.get(bucket)?;
        Some((found.limit, found.limit.saturating_sub(found.remaining)))
    }

    pub(super) fn new(notes: impl Iterator<Item = Note>) -> Self {
        let resources = notes.map(|note| {
            let name = match note.key.query {
                Some(query) => format!("{}/{query}", note.rule().name),
                None => note.rule().name.clone(),
            };
            let resource = Resource {
                limit: note.rule().limit,
                remaining: note.remaining(),
                reset: seconds_up(note.reset_us.unwrap_or(note.now_us)),
            };
            (name, resource)
        });
        Self {
            resources: resources.collect(),
        }
    }
}
