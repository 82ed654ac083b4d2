//! `kittiwake pause`, `resume` and `stop`: telling a running crawl what to do, through its file.

use crate::cli::ControlArguments;
use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_model::ControlCommand;
use kittiwake_serve::control::Known;
use kittiwake_store::{Location, OpenMode};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a running crawl may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn run(
    arguments: &ControlArguments,
    command: ControlCommand,
) -> Result<ExitCode, Failure> {
    let place = environment::with_password(&arguments.file);
    let shown = &place;
    let robot = arguments.robot.as_deref();
    let known = known_robots(&place).await?;
    if let Some(robot) = robot {
        check_robot(&known, robot)?;
    }
    let what = robot.map_or_else(
        || "the crawl".to_owned(),
        |robot| format!("the robot {robot}"),
    );
    let is_crawled = place.is_crawled()?;
    if !is_crawled && command == ControlCommand::Stop {
        console::note(&format!(
            "nobody crawls into {shown}; there is nothing to stop"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let id = known.ask(&place, command, robot)?;
    if !is_crawled {
        let then = match command {
            ControlCommand::Pause => "the next run begins with it paused",
            ControlCommand::Resume | ControlCommand::Stop => "the next run begins with it running",
        };
        console::note(&format!("nobody crawls into {shown}; {then}"));
        return Ok(ExitCode::SUCCESS);
    }
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if place.is_done(id)? {
            let done = match command {
                ControlCommand::Pause => "is paused",
                ControlCommand::Resume => "goes on",
                ControlCommand::Stop => "stops as soon as what is in flight is stored",
            };
            console::note(&format!("{what} {done}"));
            return Ok(ExitCode::SUCCESS);
        }
        if !place.is_crawled()? {
            console::note(&format!("the crawl into {shown} has ended"));
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(Failure::other(format!(
        "the crawl into {shown} has not taken notice within {} s; it still may, look with: kittiwake status {shown}",
        PATIENCE.as_secs()
    )))
}

async fn known_robots(place: &Location) -> Result<Known, Failure> {
    Ok(Known::of(&place.open(OpenMode::Read)?.detail().await?))
}

/// A robot that the last run did not have is a slip of the pen.
fn check_robot(known: &Known, robot: &str) -> Result<(), Failure> {
    if known.has(robot) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the crawl has no robot {robot:?}; it has {}",
        known.robots.join(", ")
    )))
}
