//! TOML → checked, compiled [`Network`].
//!
//! All problems are collected, each with its place and what to write instead; a network exists
//! only when there is none.

mod auth;
mod fields;
mod hosts;
mod keys;
mod limit_status;
mod limits;
mod paging;
mod queries;
mod sending;
mod source;
mod types;
mod visits;
mod web;

pub use keys::known_keys;
pub use source::{DefinitionErrors, Problem};

use crate::network::{Network, Proved, Query};
use crate::time::TimeFormat;
use kittiwake_model::Name;
use sha2::{Digest, Sha256};
use source::{Placed, Section, Source};
use toml::de::DeTable;

/// The largest definition, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The only format there is.
const FORMAT: u32 = 1;
/// Types, queries and the like, each.
const NAMES_MAX: usize = 500;

impl Network {
    /// Reads a definition.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, DefinitionErrors> {
        let source = Source::new(text);
        let network = parse(&source, text);
        match network {
            Some(network) if source.is_clean() => Ok(network),
            _ => Err(DefinitionErrors {
                file: file_name.to_owned(),
                problems: source.into_problems(),
            }),
        }
    }
}

fn parse(source: &Source<'_>, text: &str) -> Option<Network> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a definition has {TEXT_BYTES_MAX} bytes at most");
        source.report(&(0..0), message, "split the network, or leave out comments");
        return None;
    }
    let (document, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        for fault in faults {
            let message = fault.message().replace('\n', ", ");
            let help = "see https://toml.io for how TOML is written";
            source.report(&fault.span().unwrap_or(0..0), message, help);
        }
        return None;
    }
    let top = Section::root(source, &document);
    if !check_format(&top) {
        return None;
    }
    top.expect_keys(keys::TOP);
    let name = checked_name(&top, top.need_text("name", "name = \"mastodon\"")?)?;
    let title = top
        .text("title")
        .map_or_else(|| name.to_string(), |title| title.value);
    let hosts::Declared {
        rule: host,
        named: hosts,
        own: own_hosts,
        others,
        user_agent,
    } = hosts::read_hosts(&top);
    let auth = auth::read_auth(&top);
    let budgets = limits::read_budgets(&top);
    let query_names = names_in(&top, "queries");
    let types = types::read_types(&top, &query_names);
    let capabilities = names_in_probe(&top);
    let declared = queries::Declared {
        types: &types,
        budgets: &budgets,
        host: &host,
        hosts: &hosts,
        capabilities: &capabilities,
    };
    let mut queries = queries::read_queries(&top, &declared);
    let digest = hex_of(&Sha256::digest(text.as_bytes()));
    complete(&mut queries, &auth.secret_parameters(), &digest);
    let robots_txt = limits::read_robots_txt(&top, &queries);
    let robots = visits::read_robots(&top, &types, &queries);
    let host_kind = hosts::read_host_kind(&top, &types);
    let probe = hosts::read_probe(&top, &queries, host_kind.as_ref());
    let seeds = visits::read_seeds(&top, &types);
    let errors = visits::read_errors(&top, &types, &queries, &budgets);
    check(&top, &types, &queries);
    limits::check_prices(&top, &types, &queries, &budgets);
    let limit_status = limit_status::read_limit_status(&top, &budgets);
    let parts = limits::taken_apart(budgets);
    Some(Network {
        name,
        title,
        description: top
            .text("description")
            .map_or_else(String::new, |text| text.value),
        verified_on: read_verified_on(&top),
        proved: top.word("proved", &Proved::ALL.map(|proved| (proved.word(), proved))),
        proof: top.text("proof").map(|text| text.value),
        access: top.text("access").map(|text| text.value),
        sources: top
            .texts("sources")
            .unwrap_or_default()
            .into_iter()
            .map(|source| source.value)
            .collect(),
        digest,
        text: text.to_owned(),
        host,
        hosts,
        own_hosts,
        others,
        probe,
        user_agent,
        auth,
        host_kind,
        types: types.kinds,
        shapes: types.shapes,
        queries,
        robots,
        budgets: parts.rules,
        conditions: parts.conditions,
        budget_headers: parts.headers,
        tariffs: parts.tariffs,
        limit_headers: limits::read_headers(&top),
        politeness: limits::read_politeness(&top),
        blocks: limits::read_blocks(&top),
        robots_txt,
        limit_status,
        seeds,
        errors,
    })
}

/// Another format may mean anything by its keys, so that nothing else is looked at.
fn check_format(top: &Section<'_, '_>) -> bool {
    if !top.has("format") {
        let message = "the definition has no `format`";
        top.report(
            &(0..0),
            message,
            format!("write `format = {FORMAT}` on the first line"),
        );
        return false;
    }
    match top.number("format", 0..=u32::MAX) {
        Some(FORMAT) => true,
        Some(other) => {
            let message = format!("format {other} is not known to this version of Kittiwake");
            let help = format!("write `format = {FORMAT}`, or use a newer Kittiwake");
            top.report(&top.span_of("format"), message, help);
            false
        }
        None => false,
    }
}

fn read_verified_on(top: &Section<'_, '_>) -> String {
    let Some(day) = top.need_text("verified_on", "verified_on = \"2026-11-15\"") else {
        return String::new();
    };
    if TimeFormat::Date.read_text(&day.value).is_none() {
        let message = format!("`verified_on` is no day: `{}`", day.value);
        top.report(
            &day.span,
            message,
            "write for example `verified_on = \"2026-11-15\"`",
        );
    }
    day.value
}

/// A short word: lower-case letters, digits, `_` and `-`.
fn checked_name(section: &Section<'_, '_>, name: Placed<String>) -> Option<Name> {
    const NAME_MAX: usize = 64;
    let is_plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || "_-".contains(character)
    };
    if !name.value.is_empty() && name.value.len() <= NAME_MAX && name.value.chars().all(is_plain) {
        return Some(name.value.into());
    }
    let message = format!("`{}` is no name", name.value.escape_debug());
    section.report(
        &name.span,
        message,
        "use lower-case letters, digits, `_` and `-`, 64 at most",
    );
    None
}

/// The named tables of a section, with their names checked.
fn named_sections<'s, 't>(
    top: &Section<'s, 't>,
    key: &str,
) -> Vec<(Name, Placed<String>, Section<'s, 't>)> {
    let Some(section) = top.table(key) else {
        return Vec::new();
    };
    let sections = section.sections();
    if sections.len() > NAMES_MAX {
        let message = format!("`{key}` has more than {NAMES_MAX} entries");
        section.report(&section.span, message, "split the network");
        return Vec::new();
    }
    sections
        .into_iter()
        .filter_map(|(name, inner)| {
            let checked = checked_name(&section, name.clone())?;
            Some((checked, name, inner))
        })
        .collect()
}

/// What hosts may be able to do, by name.
fn names_in_probe(top: &Section<'_, '_>) -> Vec<String> {
    let probe = top.table("probe");
    probe.map_or_else(Vec::new, |probe| names_in(&probe, "capabilities"))
}

fn names_in(top: &Section<'_, '_>, key: &str) -> Vec<String> {
    let names = top.table(key).map(|section| section.entries());
    names
        .unwrap_or_default()
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

/// Gives queries what the definition as a whole says.
fn complete(queries: &mut [Query], secret_parameters: &[String], digest: &Name) {
    for query in queries {
        query.secret_parameters = secret_parameters.to_vec();
        // Another definition may read more of an answer that is still the same.
        if query.is_conditional {
            query.paging_digest.clone_from(digest);
        }
    }
}

/// Whether the parts fit one another.
fn check(top: &Section<'_, '_>, types: &types::Types, queries: &[Query]) {
    types::check_resolve(top, types, queries);
    hosts::check_homes(top, types, queries);
    queries::check_missing(top, queries);
    queries::check_stubs(top, queries);
}

/// The first 16 hexadecimal digits of the SHA-256 of some texts.
fn digest_of(parts: &[&str]) -> Name {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex_of(&hasher.finalize())
}

fn hex_of(digest: &[u8]) -> Name {
    use std::fmt::Write as _;
    digest
        .iter()
        .take(8)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
        .into()
}
