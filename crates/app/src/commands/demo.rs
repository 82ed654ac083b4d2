//! `kittiwake demo`: the main job, without keys or services.

use crate::cli::{Arguments, Command, CrawlArguments, DemoArguments, VaultArguments};
use crate::commands::crawl;
use crate::failure::Failure;
use crate::{console, environment, serving, showcase, summary};
use clap::Parser;
use kittiwake_sim::{Limits, SimConfig};
use kittiwake_store::Location;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The demo's world: small enough for seconds, large enough to meet its limits.
const USERS: u64 = 2_000;
/// The world and its limits run this much quicker than real time, so that several windows pass, and
/// people go on posting, in a short demo.
const SPEED: f64 = 150.0;
const WORLD_AT_US: i64 = 1_780_315_200_000_000;
const SECONDS: u64 = 30;

pub(crate) async fn run(
    arguments: &DemoArguments,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let server = kittiwake_sim::serve(SimConfig {
        speed: SPEED,
        limits: Limits::Strict,
        ..SimConfig::frozen(USERS, 7, WORLD_AT_US, environment::real_now().micros())
    })
    .await
    .map_err(|error| Failure::other(error.to_string()))?;
    let folder = std::env::temp_dir().join(format!("kittiwake-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::other(format!("cannot make {}: {error}", folder.display())))?;
    let file = folder.join("demo.db");
    let words = command_words(
        &server.url(),
        server.seed_handles(3),
        &file.display().to_string(),
    );
    if !arguments.json {
        console::note(&format!(
            "A synthetic network of {USERS} users with a real server's limits; its time runs {SPEED:.0} times as quick. {SECONDS} seconds, all robots:"
        ));
        console::note(&format!("$ {}", words.join(" ")));
    }
    let parsed =
        Arguments::try_parse_from(&words).map_err(|error| Failure::other(error.to_string()))?;
    let Command::Crawl(command) = parsed.command else {
        return Err(Failure::other("the demo's command is no crawl"));
    };
    // No secret is of use here, and none is asked for.
    let crawl_arguments = CrawlArguments {
        anonymous: true,
        json: arguments.json,
        ..command.crawl
    };
    let started = Instant::now();
    let ledger = Location::File(folder.join("budgets.db"));
    if let Some(listen) = arguments.serving.serve {
        let crawl_arguments = CrawlArguments {
            // Whoever looks says when it is enough.
            time: None,
            ..crawl_arguments
        };
        let how = arguments.serving.at(listen);
        let ended = Box::pin(serving::crawl(crawl_arguments, vault, ledger, how)).await;
        server.shutdown().await;
        return ended;
    }
    let report = Box::pin(crawl::crawl(&crawl_arguments, &parsed.vault, &ledger)).await?;
    let elapsed = started.elapsed();
    let violations = server.violations();
    server.shutdown().await;
    if arguments.json {
        console::output(
            &summary::crawled(&crawl_arguments.into, &report, elapsed.as_secs_f64()).to_string(),
        );
    } else {
        console::output(showcase::table(&report, violations, elapsed, &file).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// The demo as a person would type it.
fn command_words(address: &str, seeds: Vec<String>, file: &str) -> Vec<String> {
    let time = format!("{}s", Duration::from_secs(SECONDS).as_secs());
    let mut words = vec!["kittiwake".to_owned(), "crawl".into(), "mastodon".into()];
    words.extend(seeds);
    let options = ["--host", address, "--clock-from", address, "--depth", "2"];
    words.extend(options.map(String::from));
    words.extend(["--robots", "all", "--max-time", &time, "--concurrency", "8"].map(String::from));
    words.extend(["--into", file].map(String::from));
    words
}
