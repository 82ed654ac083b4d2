//! `[host]`, `[hosts.…]` and `[probe]`: who can be asked, who is asked what, and what hosts can do.

use super::limits::read_span;
use super::source::{Placed, Section};
use super::types::{Types, report_expression};
use super::{keys, named_sections};
use crate::expression::Expression;
use crate::home::{HomeRule, Whom};
use crate::network::{HostRule, Query};
use crate::probe::{Capabilities, Probe};
use crate::shape::CANONICAL;
use kittiwake_model::Name;
use url::Url;

/// The hosts that a definition declares.
pub(super) struct Declared {
    pub(super) rule: HostRule,
    /// Further hosts, by name.
    pub(super) named: Vec<(Name, Url)>,
    /// Those of them that take the credential of the network.
    pub(super) own: Vec<Name>,
    /// Hosts that a crawl asks besides, unless it is told otherwise.
    pub(super) others: Vec<String>,
    pub(super) user_agent: Option<String>,
}

pub(super) fn read_hosts(top: &Section<'_, '_>) -> Declared {
    if let Some(host) = top.table("host") {
        host.expect_keys(keys::HOST);
    } else {
        top.missing("host", "[host]\\nkind = \"instance\"");
    }
    Declared {
        rule: read_rule(top).unwrap_or(HostRule::Instance),
        named: read_named(top),
        own: read_own(top),
        others: read_others(top),
        user_agent: read_user_agent(top),
    }
}

/// `[hosts.NAME]`: hosts beside the one of the crawl.
fn read_named(top: &Section<'_, '_>) -> Vec<(Name, Url)> {
    let mut named = Vec::new();
    for (name, placed, section) in named_sections(top, "hosts") {
        section.expect_keys(keys::NAMED_HOST);
        if WORDS.contains(&&*name) {
            let message = format!("`{name}` is no name for a host");
            let help = "choose another: it has a meaning in `host` of a query";
            section.report(&placed.span, message, help);
        }
        named.extend(address_at(&section).map(|address| (name, address)));
    }
    named
}

/// The named hosts that take the same credential as the network's one address. One that was issued by one of many
/// servers is for that server alone.
fn read_own(top: &Section<'_, '_>) -> Vec<Name> {
    let is_fixed = matches!(read_rule(top), Some(HostRule::Fixed(_)));
    let mut own = Vec::new();
    for (name, _, section) in named_sections(top, "hosts") {
        if section.boolean("credential") != Some(true) {
            continue;
        }
        if !is_fixed {
            let message =
                "a credential is for the host that it was issued by, and here there are many";
            let help = "leave `credential` out: only a network with one address (`kind = \"fixed\"`) has hosts that share one";
            section.report(&section.span_of("credential"), message, help);
            continue;
        }
        own.push(name);
    }
    own
}

/// The hosts that are asked unless `--hosts` says otherwise. What a pattern is, the engine says.
fn read_others(top: &Section<'_, '_>) -> Vec<String> {
    let texts = top.table("host").and_then(|host| host.texts("others"));
    let texts = texts.unwrap_or_default().into_iter();
    texts.map(|text| text.value).collect()
}

const WORDS: [&str; 3] = ["home", "own", "crawl"];

/// Who is asked a query: `host = "home"`, the name of a host, or `{ alias = "handle" }`.
pub(super) fn read_whom(
    section: &Section<'_, '_>,
    types: &Types,
    kind: &str,
    (rule, hosts): (&HostRule, &[(Name, Url)]),
) -> Whom {
    let has_home = *rule != HostRule::Subject;
    if !section.has("host") {
        return if has_home { Whom::Home } else { Whom::Own };
    }
    if section.is_table("host") {
        let by_alias = section.table("host").and_then(|host| {
            host.expect_keys(keys::QUERY_HOST);
            if !host.has("alias") {
                host.missing("alias", "alias = \"handle\"");
            }
            types.alias_at(&host, "alias", kind)
        });
        return by_alias.map_or(Whom::Home, |alias| Whom::Alias(alias.name));
    }
    let Some(word) = section.text("host") else {
        return Whom::Home;
    };
    match word.value.as_str() {
        "home" | "crawl" if !has_home => {
            let message = "there is no host that could be asked for all";
            let help = "leave out `host`: everything is asked for where it lives";
            section.report(&word.span, message, help);
            Whom::Own
        }
        "home" => Whom::Home,
        "own" => Whom::Own,
        "crawl" => Whom::Crawl,
        name => {
            if let Some((name, _)) = hosts.iter().find(|(known, _)| **known == *name) {
                return Whom::Named(name.clone());
            }
            let mut known: Vec<&str> = WORDS.to_vec();
            known.extend(hosts.iter().map(|(name, _)| &**name));
            section.unknown_word(&word, "the `host`", &known);
            Whom::Home
        }
    }
}

/// Where objects of a type live, by the first of these ids that is known: `home = ["canonical", "url"]`.
pub(super) fn read_home(section: &Section<'_, '_>, types: &Types, kind: &str) -> Vec<HomeRule> {
    let mut rules = Vec::new();
    for text in section.texts("home").unwrap_or_default() {
        let rule = if text.value == CANONICAL && types.has_canonical(kind) {
            Some(HomeRule::Canonical)
        } else {
            let mut aliases = types.aliases(kind).iter();
            let alias = aliases.find(|alias| *alias.name == *text.value);
            alias.map(|alias| {
                let name = alias.name.clone();
                if alias.is_host_scoped {
                    HomeRule::Account(name)
                } else {
                    HomeRule::Address(name)
                }
            })
        };
        if rule.is_none() {
            let mut known: Vec<&str> = types.aliases(kind).iter().map(|it| &*it.name).collect();
            known.push(CANONICAL);
            section.unknown_word(&text, "the id at `home`", &known);
        }
        rules.extend(rule);
    }
    rules
}

/// The names of what a query needs of a host, as capabilities.
pub(super) fn read_needs(section: &Section<'_, '_>, known: &[String]) -> Capabilities {
    let mut needs = Capabilities::default();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for word in section.texts("needs").unwrap_or_default() {
        match known.iter().position(|name| *name == word.value) {
            Some(place) => needs.add(place),
            None => section.unknown_word(&word, "a capability", &known),
        }
    }
    needs
}

pub(super) fn read_probe(
    top: &Section<'_, '_>,
    queries: &[Query],
    host_kind: Option<&Name>,
) -> Option<Probe> {
    let section = top.table("probe")?;
    section.expect_keys(keys::PROBE);
    if !section.has("queries") {
        section.missing("queries", "queries = [\"instance\"]");
    }
    if host_kind.is_none() {
        let message = "nothing says of which type a host is";
        section.report(
            &section.span,
            message,
            "write `type = \"instance\"` in [host]",
        );
    }
    let again_after = section.text("again_after");
    let again_after_us = again_after.and_then(|text| read_span(&section, &text));
    Some(Probe {
        queries: read_probe_queries(&section, queries, host_kind),
        again_after_us: again_after_us.unwrap_or(AGAIN_AFTER_US),
        capabilities: read_capabilities(&section),
    })
}

/// How long it is believed what a host said of itself.
const AGAIN_AFTER_US: i64 = 24 * 3_600 * 1_000_000;

fn read_probe_queries(
    section: &Section<'_, '_>,
    queries: &[Query],
    host_kind: Option<&Name>,
) -> Vec<Name> {
    let mut names = Vec::new();
    for text in section.texts("queries").unwrap_or_default() {
        let Some(query) = queries.iter().find(|query| *query.name == *text.value) else {
            let known: Vec<&str> = queries.iter().map(|query| &*query.name).collect();
            section.unknown_word(&text, "the query of `probe`", &known);
            continue;
        };
        let is_plain = query.page.is_none() && query.selects.iter().all(|it| it.link.is_none());
        let is_about_host = host_kind.is_none_or(|kind| *kind == query.kind);
        if !(is_plain && is_about_host && query.needs.is_empty()) {
            let message = format!("the query `{}` cannot be a probe", query.name);
            let help = "it has to be about the host, without `page`, `link` and `needs`";
            section.report(&text.span, message, help);
        }
        names.push(query.name.clone());
    }
    names
}

/// What hosts can do, each by an expression on what is known of them.
fn read_capabilities(section: &Section<'_, '_>) -> Vec<(Name, Expression)> {
    let Some(table) = section.table("capabilities") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for entry in table.entries() {
        if all.len() >= Capabilities::MOST {
            let message = format!("a host has {} capabilities at most", Capabilities::MOST);
            table.report(&entry.span, message, "leave out those that no query needs");
            break;
        }
        let Some(Placed { value, span }) = &entry.text else {
            let message = format!("the capability `{}` must be an expression", entry.name);
            table.report(
                &entry.span,
                message,
                "write for example `new = \".version >= 4\"`",
            );
            continue;
        };
        match Expression::compile(value) {
            Ok(expression) => all.push((entry.name.as_str().into(), expression)),
            Err(fault) => report_expression(&table, span, value, &fault),
        }
    }
    all
}

fn read_rule(top: &Section<'_, '_>) -> Option<HostRule> {
    let host = top.table("host")?;
    if !host.has("kind") {
        host.missing("kind", "kind = \"instance\"");
    }
    let kinds = ["instance", "subject", "fixed"].map(|kind| (kind, kind));
    let rule = match host.word("kind", &kinds)? {
        "instance" => Some(HostRule::Instance),
        "subject" => Some(HostRule::Subject),
        _ => None,
    };
    if let Some(rule) = rule {
        if host.has("address") {
            let message = "`address` has no meaning where every instance has its own";
            host.report(
                &host.span_of("address"),
                message,
                "leave it out, or write `kind = \"fixed\"`",
            );
        }
        return Some(rule);
    }
    address_at(&host).map(HostRule::Fixed)
}

/// Whoever is asked for on their own host has to say where that is; and where an id is the address
/// that is asked, it has to be the id that says so.
pub(super) fn check_homes(top: &Section<'_, '_>, types: &Types, queries: &[Query]) {
    let section = |query: &Query| top.table("queries").and_then(|it| it.table(&query.name));
    for query in queries {
        let mut kinds = types.kinds.iter();
        let home = kinds.find(|it| it.name == query.kind).map(|it| &it.home);
        let first = home.and_then(|rules| rules.first()).map(HomeRule::id);
        let Some(section) = section(query) else {
            continue;
        };
        if query.whom == Whom::Own && first.is_none() {
            let message = format!("nothing says where a `{}` lives", query.kind);
            let help = format!("write `home = \"canonical\"` in [types.{}]", query.kind);
            section.report(&section.span_of("subject"), message, help);
        } else if let Some(id) = query.address_id()
            && (query.whom != Whom::Own || first != Some(id))
        {
            let message = "an address can be asked only where it leads to";
            let help = format!(
                "write `host = \"own\"`, and `home = \"{id}\"` in [types.{}]",
                query.kind
            );
            section.report(&section.span_of("path"), message, help);
        }
    }
}

/// The address that a section gives.
fn address_at(section: &Section<'_, '_>) -> Option<Url> {
    let address = section.need_text("address", "address = \"https://api.example.org\"")?;
    match Url::parse(&address.value) {
        Ok(url) if url.scheme() == "https" && url.query().is_none() => Some(url),
        _ => {
            let message = format!("`{}` is no address", address.value);
            let help = "write for example `https://api.example.org`";
            section.report(&address.span, message, help);
            None
        }
    }
}

/// How programs have to call themselves.
fn read_user_agent(top: &Section<'_, '_>) -> Option<String> {
    const PLACEHOLDERS: [&str; 3] = ["{version}", "{contact}", "{platform}"];
    let host = top.table("host")?;
    let template = host.text("user_agent")?;
    let mut rest = template.value.clone();
    for placeholder in PLACEHOLDERS {
        rest = rest.replace(placeholder, "");
    }
    let is_line = rest.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if rest.contains(['{', '}']) || !is_line {
        let message = "`user_agent` has a placeholder or a letter that cannot be sent";
        let help = format!("placeholders are {}", PLACEHOLDERS.join(", "));
        host.report(&template.span, message, help);
    } else if !template.value.contains("{contact}") {
        let message = "`user_agent` does not say who asks";
        host.report(&template.span, message, "put `{contact}` into it");
    }
    Some(template.value)
}

/// The type of the host itself.
pub(super) fn read_host_kind(top: &Section<'_, '_>, types: &Types) -> Option<Name> {
    let host = top.table("host")?;
    if !host.has("type") {
        return None;
    }
    let kind = types.kind_at(&host, "type")?;
    if types.is_named(&kind) {
        let message = format!("a host is named by its address, and a `{kind}` by what it answers");
        let help = format!("leave out `canonical` and `aliases` in [types.{kind}]");
        host.report(&host.span_of("type"), message, help);
    }
    Some(kind)
}
