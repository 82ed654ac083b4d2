//! A search on the network itself: a crawl of one call, out of the ledger like any other, into a file that is
//! thrown away.

use super::definitions::Known;
use super::program::{missing, refused};
use super::runner::Runner;
use crate::cli::{Arguments, Command, CrawlArguments, VaultArguments};
use crate::commands::crawl::{self, Watched};
use crate::place::{self, Place};
use crate::{environment, machine};
use clap::Parser;
use kittiwake_engine::{End, Limits};
use kittiwake_network::Network;
use kittiwake_serve::desk::{OnlineAnswer, OnlineHit, OnlineQuestion};
use kittiwake_serve::{DeskError, DeskErrorKind};
use kittiwake_store::Location;
use kittiwake_store::browse::{Browser, PostsQuestion, UsersQuestion};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const CALLS_MAX: u64 = 1;
const PATIENCE: Duration = Duration::from_secs(20);
const WORDS_MAX: usize = 500;
const HITS_MAX: usize = 100;

/// Whom to ask, and how.
pub(super) struct Asking {
    place: Place,
    arguments: CrawlArguments,
    contact: Option<String>,
}

/// A folder that goes when nobody needs it any more.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Asking {
    pub(super) fn new(
        known: &Known,
        runner: Option<&Runner>,
        question: &OnlineQuestion,
    ) -> Result<Self, DeskError> {
        let is_own = question.network.is_none() && question.host.is_none();
        let (place, arguments) = match runner.filter(|_| is_own) {
            Some(runner) => (runner.place().map_err(refused)?, runner.arguments().clone()),
            None => Self::elsewhere(known, question)?,
        };
        let robots = robots(&place, question)?;
        let arguments = CrawlArguments {
            seeds: vec![seed(&question.words)],
            robots,
            without: Vec::new(),
            depth: 0,
            calls: Some(CALLS_MAX),
            time: Some(PATIENCE),
            spend: None,
            until_idle: true,
            again: false,
            raw: false,
            quiet: true,
            policies: vec!["adaptive".to_owned()],
            ..arguments
        };
        let contact = place::contact(arguments.contact.as_deref()).map_err(refused)?;
        Ok(Self {
            place,
            arguments,
            contact,
        })
    }

    /// The network that was named, or that of the last run.
    fn elsewhere(
        known: &Known,
        question: &OnlineQuestion,
    ) -> Result<(Place, CrawlArguments), DeskError> {
        let named = match (&question.network, known.run()) {
            (Some(named), _) => named.clone(),
            (None, Some(run)) if run.host.is_empty() => run.network.to_string(),
            (None, Some(run)) => format!("{}@{}", run.network, run.host),
            (None, None) => return Err(missing("no crawl was run yet; name a network")),
        };
        let place = known.place(&named, question.host.as_deref())?;
        let words = ["kittiwake", "crawl", "network", "--into", "scratch"];
        let parsed = Arguments::try_parse_from(words)
            .map_err(|error| DeskError::new(DeskErrorKind::Broken, error.to_string()))?;
        let Command::Crawl(command) = parsed.command else {
            return Err(DeskError::new(
                DeskErrorKind::Broken,
                "broken state: no crawl",
            ));
        };
        Ok((place, command.crawl))
    }

    /// Asks, and gives what was found.
    pub(super) async fn ask(
        self,
        question: &OnlineQuestion,
        vault: &VaultArguments,
        ledger: &Location,
    ) -> Result<OnlineAnswer, DeskError> {
        let network = self.place.network.name().to_string();
        let host = self.place.host.clone();
        let query = self.arguments.robots.join("+");
        let arguments = &self.arguments;
        let ready = crawl::ready_at(self.place, arguments, self.contact.as_deref(), vault).await;
        let mut ready = ready.map_err(refused)?;
        if let Limits::Keep { pace, .. } = &mut ready.settings.limits {
            // One call is not spread over anything.
            *pace = kittiwake_engine::Pace::Burst;
        }
        let scratch = scratch()?;
        let file = Location::File(scratch.0.join("search.db"));
        let (_held, stop) = watch::channel(false);
        let watched = Watched {
            stop,
            progress: Arc::default(),
            is_quiet: true,
        };
        let report = crawl::crawl_into(ready, &file, ledger, watched).await;
        let report = report.map_err(refused)?;
        match &report.end {
            End::AuthExpired(why) | End::HostDown(why) | End::ShutOut(why) => {
                return Err(DeskError::new(
                    DeskErrorKind::Network,
                    format!("the network does not answer ({why})"),
                ));
            }
            End::Time if report.calls == 0 => {
                return Err(DeskError::new(
                    DeskErrorKind::Exhausted,
                    "a limit of the network is used up for now, and nothing was asked; try again later",
                ));
            }
            _ => {}
        }
        let found = found(&file, &question.words).await;
        let found =
            found.map_err(|error| DeskError::new(DeskErrorKind::Broken, error.to_string()))?;
        Ok(OnlineAnswer {
            network,
            host,
            query,
            calls: u32::try_from(report.calls).unwrap_or(u32::MAX),
            found,
        })
    }
}

fn seed(words: &str) -> String {
    format!("search:{}", words.trim())
}

/// The robots that look for words.
fn robots(place: &Place, question: &OnlineQuestion) -> Result<Vec<String>, DeskError> {
    let words = question.words.trim();
    let is_plain = !words.is_empty() && !words.chars().any(char::is_control);
    if !is_plain || words.chars().count() > WORDS_MAX {
        return Err(DeskError::new(
            DeskErrorKind::Invalid,
            format!("words to look for are text of at most {WORDS_MAX} characters"),
        ));
    }
    let network: &Network = &place.network;
    let identity = network.seed(&seed(words), &place.host);
    let kind = identity.map(|identity| identity.kind).ok();
    let can = network
        .robots()
        .iter()
        .filter(|robot| Some(&robot.kind) == kind.as_ref());
    let names: Vec<String> = can.map(|robot| robot.name.to_string()).collect();
    match &question.query {
        _ if names.is_empty() => Err(missing(format!("{} has no search", network.name()))),
        None => Ok(names.into_iter().take(1).collect()),
        Some(wanted) if names.contains(wanted) => Ok(vec![wanted.clone()]),
        Some(_) => Err(missing(format!(
            "{} has no search of that name; it has {}",
            network.name(),
            names.join(", ")
        ))),
    }
}

fn scratch() -> Result<Scratch, DeskError> {
    let name = format!("kittiwake-search-{}", machine::random_word());
    let folder = environment::temporary_path(&name);
    match std::fs::create_dir(&folder) {
        Ok(()) => Ok(Scratch(folder)),
        Err(error) => Err(DeskError::new(
            DeskErrorKind::Broken,
            format!("cannot make {}: {error}", folder.display()),
        )),
    }
}

async fn found(
    file: &Location,
    words: &str,
) -> Result<Vec<OnlineHit>, kittiwake_store::StoreError> {
    let browser = Browser::open(file, 1)?;
    let users = UsersQuestion {
        limit: HITS_MAX,
        ..UsersQuestion::default()
    };
    let posts = PostsQuestion {
        limit: HITS_MAX,
        ..PostsQuestion::default()
    };
    let mut hits = Vec::new();
    for user in browser.users(users).await?.rows {
        hits.push(OnlineHit {
            table: "users".to_owned(),
            id: user.label.id,
            name: user.label.name,
            text: user.description.map(|it| it.text),
            url: user.url,
        });
    }
    for post in browser.posts(posts).await?.rows {
        hits.push(OnlineHit {
            table: post.table.name().to_owned(),
            id: post.label.id,
            name: post.author.and_then(|author| author.name),
            text: post.text.map(|it| it.text),
            url: post.url,
        });
    }
    // The words themselves are filed as what was asked for.
    hits.retain(|hit| hit.id != words);
    Ok(hits)
}
