//! `kittiwake demo`: the main job, without keys or services.

use crate::cli::{Arguments, Command, DemoArguments};
use crate::commands::crawl;
use crate::failure::Failure;
use crate::{console, environment, summary};
use clap::Parser;
use kittiwake_sim::{Limits, SimConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Instant;

/// The demo's world: small enough for seconds, large enough to meet its limits.
const USERS: u64 = 2_000;
/// Limits run this much quicker than real time, so that several windows pass in a short demo.
const LIMIT_SPEED: f64 = 150.0;
const WORLD_AT_US: i64 = 1_780_315_200_000_000;

pub(crate) async fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let server = kittiwake_sim::serve(SimConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        users: USERS,
        seed: 7,
        speed: 0.0,
        limit_speed: Some(LIMIT_SPEED),
        at_us: WORLD_AT_US,
        real_now_us: environment::real_now().micros(),
        limits: Limits::Strict,
        latency_ms: 0,
    })
    .await
    .map_err(|error| Failure::other(error.to_string()))?;
    let folder = std::env::temp_dir().join(format!("kittiwake-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::other(format!("cannot make {}: {error}", folder.display())))?;
    let file = folder.join("demo.db");
    let address = format!("http://{}", server.address());
    let mut words = vec!["kittiwake".to_owned(), "crawl".into(), "mastodon".into()];
    words.extend(server.seed_handles(3));
    words.extend(["--host", &address, "--clock-from", &address, "--depth", "1"].map(String::from));
    words.extend(["--for", "20s", "--until-idle", "--concurrency", "8"].map(String::from));
    words.extend(["--into".to_owned(), file.display().to_string()]);
    if !arguments.json {
        console::note(&format!(
            "A synthetic network of {USERS} users with a real server's limits, {LIMIT_SPEED:.0} times as quick."
        ));
        console::note(&format!("$ {}", words.join(" ")));
    }
    let parsed =
        Arguments::try_parse_from(&words).map_err(|error| Failure::other(error.to_string()))?;
    let Command::Crawl(crawl_arguments) = parsed.command else {
        return Err(Failure::other("the demo's command is no crawl"));
    };
    let started = Instant::now();
    let report = crawl::crawl(&crawl_arguments, &folder.join("budgets.db")).await?;
    let seconds = started.elapsed().as_secs_f64();
    server.shutdown().await;
    if arguments.json {
        console::output(&summary::crawled(&file, &report, seconds).to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let shown = file.display();
    console::output(&format!(
        "\n{}{}\nEverything is in {shown}. Look into it:\n  \
         sqlite3 {shown} \"SELECT handle, followers_count, statuses_count FROM users ORDER BY followers_count DESC LIMIT 5\"\n  \
         kittiwake status {shown}",
        summary::table(&report.summary),
        summary::ending(&report, seconds),
    ));
    Ok(ExitCode::SUCCESS)
}
