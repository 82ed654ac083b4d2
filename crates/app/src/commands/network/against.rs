//! `kittiwake network check --against`: a definition held against a server, query by query.

use crate::cli::{CheckArguments, VaultArguments};
use crate::console::plain;
use crate::credentials::{self, Wanted};
use crate::failure::{Failure, code};
use crate::place::{self, Place, parse_base};
use crate::{console, crash, definitions, environment};
use kittiwake_engine::{Clock, Credential, Inspected, Inspection, QueryFit, inspect};
use kittiwake_fetch::{FetchConfig, Fetcher};
use kittiwake_model::{ClockSpec, Identity};
use kittiwake_network::{Further, Network};
use kittiwake_store::ledger::Ledger;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// Paths that are shown of one kind, to people and to machines.
const SHOWN_MAX: usize = 12;
const TOLD_MAX: usize = 200;

pub(super) async fn run(
    arguments: &CheckArguments,
    address: &str,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let network = definitions::find(&arguments.file.to_string_lossy())?;
    let base = parse_base("--against", address)?;
    let place = Place::at(network, base, None);
    let seeds = seeds(arguments, &place)?;
    let contact = place::contact(arguments.contact.as_deref())?;
    let fetcher = Fetcher::new(FetchConfig {
        user_agent: place.user_agent(contact.as_deref())?,
        ..FetchConfig::default()
    })
    .map_err(|error| Failure::other(error.to_string()))?;
    let credential = credential(arguments, &place, vault, &fetcher)?;
    let clock = Clock::new(ClockSpec::real(), environment::real_now);
    let inspection = Inspection {
        network: &place.network,
        base: &place.base,
        host: &place.host,
        credential: credential.as_ref(),
        fetcher: &fetcher,
        clock: &clock,
        ledger: Ledger::open(&place::ledger()?)?,
        limits: place.limits_of_single_calls(),
        node: environment::node_name(),
    };
    let inspected = inspect(inspection, seeds).await?;
    if arguments.json {
        console::output(&as_json(&place, &inspected).to_string());
    } else {
        console::output(as_text(&place, &inspected).trim_end());
    }
    // Whoever could ask nothing knows nothing.
    let fits = inspected.fits() && !inspected.asked.is_empty();
    Ok(ExitCode::from(if fits { 0 } else { code::OTHER }))
}

fn seeds(arguments: &CheckArguments, place: &Place) -> Result<Vec<Identity>, Failure> {
    let Place { network, host, .. } = place;
    if arguments.seeds.is_empty() && network.host_identity(host).is_none() {
        return Err(Failure::usage(
            "name with --seed whom or what to ask about, as in a crawl",
        ));
    }
    let seed = |text: &String| {
        let identity = network.seed(text, host);
        identity.map_err(|error| Failure::usage(error.to_string()))
    };
    arguments.seeds.iter().map(seed).collect()
}

/// The one credential that is used, if there is any.
fn credential(
    arguments: &CheckArguments,
    place: &Place,
    vault: &VaultArguments,
    fetcher: &Fetcher,
) -> Result<Option<Credential>, Failure> {
    let wanted = Wanted {
        anonymous: arguments.anonymous,
        names: arguments.credential.as_slice(),
        vault,
    };
    let mut found = credentials::find(place, wanted, fetcher, &crash::hook()?)?;
    if found.len() > 1 {
        return Err(Failure::usage(
            "there are several credentials; choose one with --as NAME",
        ));
    }
    Ok(found.pop())
}

/// What does not fit, in words; nothing if all does.
fn problems(asked: &QueryFit) -> Vec<String> {
    let mut problems = Vec::new();
    if !asked.outcome.is_success() {
        problems.push(match asked.reason.as_str() {
            "" => asked.outcome.to_string(),
            reason => format!("{}: {}", asked.outcome, plain(reason)),
        });
    }
    if asked.mended > 0 {
        let values = counted(u64::from(asked.mended), "value");
        let fields = asked.fit.as_ref().map(|fit| fit.unreadable.as_slice());
        problems.push(match fields.unwrap_or_default() {
            [] => format!("{values} cannot be read as the definition says"),
            fields => format!(
                "{values} cannot be read as the definition says: {}",
                listed(fields)
            ),
        });
    }
    if let Some(fit) = &asked.fit {
        if !fit.unread.is_empty() {
            problems.push(format!(
                "no rule reads {}; read it, or name it in `ignored`",
                listed(&fit.unread)
            ));
        }
        if let Further::Lost(reason) = &fit.further {
            problems.push(reason.clone());
        }
    }
    problems
}

/// What is worth knowing and may well be right.
fn remarks(asked: &QueryFit) -> Vec<String> {
    let Some(fit) = &asked.fit else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    if asked.items == 0 {
        remarks.push("nothing is in it, so that nothing could be compared".to_owned());
    }
    if !fit.absent.is_empty() {
        remarks.push(format!("nothing stands at {}", listed(&fit.absent)));
    }
    remarks
}

fn as_text(place: &Place, inspected: &Inspected) -> String {
    let network = &place.network;
    let mut text = format!(
        "{} against {}: {} of {} asked\n",
        network.name(),
        place.base,
        inspected.asked.len(),
        counted(network.queries().count() as u64, "query"),
    );
    let names = network.queries().map(|query| query.name.len());
    let width = names.max().unwrap_or(0);
    for asked in &inspected.asked {
        let name = &*asked.query;
        let _ = writeln!(text, "  {name:width$}  {}", headline(asked));
        let problems = problems(asked);
        let remarks = remarks(asked).into_iter().map(|it| format!("({it})"));
        for line in problems.into_iter().chain(remarks) {
            let _ = writeln!(text, "  {:width$}    {line}", "");
        }
    }
    for (name, reason) in &inspected.unasked {
        let name = &**name;
        let _ = writeln!(text, "  {name:width$}  not asked: {reason}");
    }
    limits_text(inspected, &mut text);
    for never in &inspected.never_seen {
        let _ = writeln!(
            text,
            "never seen in {} of the type {}: {}",
            counted(never.objects, "object"),
            never.kind,
            listed(&never.paths)
        );
    }
    text.push_str(&verdict(inspected));
    text
}

fn headline(asked: &QueryFit) -> String {
    let fits = if asked.fits() { "fits" } else { "does not fit" };
    let status = match asked.status {
        Some(status) => format!("http {status}"),
        None => "no answer".to_owned(),
    };
    let items = counted(u64::from(asked.items), "item");
    let further = match asked.fit.as_ref().map(|fit| &fit.further) {
        Some(Further::Found) => ", next page found",
        Some(Further::Last) => ", no next page",
        _ => "",
    };
    format!("{fits}: {status}, {}, {items}{further}", asked.outcome)
}

fn limits_text(inspected: &Inspected, text: &mut String) {
    let limits = &inspected.limits;
    if limits.headers.is_empty() {
        return;
    }
    let missing: Vec<String> = limits.missing().map(str::to_owned).collect();
    let _ = if !missing.is_empty() {
        writeln!(text, "limit headers: no answer has {}", listed(&missing))
    } else if limits.is_unreadable() {
        writeln!(text, "limit headers: they are there and cannot be read")
    } else {
        writeln!(text, "limit headers: found")
    };
}

fn verdict(inspected: &Inspected) -> String {
    if inspected.asked.is_empty() {
        return "nothing could be asked".to_owned();
    }
    if inspected.fits() {
        return "everything that was asked fits".to_owned();
    }
    let misfits = inspected.asked.iter().filter(|asked| !asked.fits());
    match (misfits.count(), inspected.limits.fits()) {
        (0, _) => "the limit headers do not fit".to_owned(),
        (1, true) => "1 query does not fit".to_owned(),
        (1, false) => "1 query and the limit headers do not fit".to_owned(),
        (many, true) => format!("{many} queries do not fit"),
        (many, false) => format!("{many} queries and the limit headers do not fit"),
    }
}

fn as_json(place: &Place, inspected: &Inspected) -> Value {
    let unasked = inspected.unasked.iter();
    let never = inspected.never_seen.iter();
    let network: &Network = &place.network;
    let limits = &inspected.limits;
    json!({
        "network": network.name(),
        "definition": network.digest(),
        "against": place.base.as_str(),
        "fits": inspected.fits() && !inspected.asked.is_empty(),
        "queries": inspected.asked.iter().map(query_json).collect::<Vec<_>>(),
        "not_asked": unasked
            .map(|(query, reason)| json!({ "query": query, "reason": reason }))
            .collect::<Vec<_>>(),
        "never_seen": never
            .map(|it| json!({ "type": it.kind, "objects": it.objects, "paths": told(&it.paths) }))
            .collect::<Vec<_>>(),
        "limit_headers": limits.headers,
        "limit_headers_readable": limits.is_readable,
    })
}

fn query_json(asked: &QueryFit) -> Value {
    let fit = asked.fit.as_ref();
    let further = fit.map(|fit| match fit.further {
        Further::Unpaged => "unpaged",
        Further::Found => "found",
        Further::Last => "last",
        Further::Lost(_) => "lost",
    });
    json!({
        "query": asked.query,
        "fits": asked.fits(),
        "target": asked.target,
        "status": asked.status,
        "outcome": asked.outcome.code(),
        "reason": plain(&asked.reason),
        "items": asked.items,
        "mended": asked.mended,
        "next_page": further,
        "unread": fit.map(|fit| told(&fit.unread)),
        "unreadable": fit.map(|fit| told(&fit.unreadable)),
        "absent": fit.map(|fit| told(&fit.absent)),
        "problems": problems(asked),
    })
}

/// Paths for a person: the first of them.
fn listed(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN_MAX).map(|it| plain(it)).collect();
    let shown = shown.join(", ");
    match paths.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn told(paths: &[String]) -> Vec<String> {
    paths.iter().take(TOLD_MAX).map(|it| plain(it)).collect()
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_wrote_is_shown_within_bounds_and_commands_no_terminal() {
        assert_eq!(plain(".a[\"\u{1b}[2J\"]"), ".a[\"?[2J\"]");
        assert_eq!(plain(&"x".repeat(1_000)).len(), 160);
        let paths: Vec<String> = (0..300).map(|number| format!(".k{number}")).collect();
        assert!(listed(&paths).ends_with(".k11 and 288 more"));
        assert_eq!(listed(&paths[..1]), ".k0");
        assert_eq!(told(&paths).len(), TOLD_MAX);
        assert_eq!(counted(2, "query") + &counted(1, "item"), "2 queries1 item");
    }
}
