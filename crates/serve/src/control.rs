//! Telling a crawl what to do, whoever runs it.

use crate::desk::Started;
use crate::standing::RobotState;
use crate::{Problem, Shared};
use kittiwake_model::ControlCommand;
use kittiwake_store::{Detail, Location, StoreError};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// How long a running crawl may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What can be asked of a crawl or of one robot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Begins the crawl again, or goes on with what is paused.
    Start,
    Pause,
    Resume,
    Stop,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Controlled {
    /// Whether the crawl has carried it out.
    pub done: bool,
    /// What happens now, in words.
    pub detail: String,
}

/// The robots of the last run, and whether all of them were told to pause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    pub robots: Vec<String>,
    pub all_paused: bool,
}

impl Known {
    pub fn of(detail: &Detail) -> Self {
        let settings = detail.last_run.as_ref().map(|run| run.settings.as_str());
        let settings: serde_json::Value =
            serde_json::from_str(settings.unwrap_or_default()).unwrap_or_default();
        let robots = settings["robots"].as_array().into_iter().flatten();
        Self {
            robots: robots
                .filter_map(serde_json::Value::as_str)
                .map(str::to_owned)
                .collect(),
            all_paused: detail.paused.contains(&None),
        }
    }

    /// Whether the last run had the robot; of a crawl without a record nobody knows.
    pub fn has(&self, robot: &str) -> bool {
        self.robots.is_empty() || self.robots.iter().any(|name| name == robot)
    }

    /// Leaves the command for the crawl; gives the number of the one to wait for. Where all are paused, one
    /// can go on only if the others are paused one by one.
    pub fn ask(
        &self,
        place: &Location,
        command: ControlCommand,
        robot: Option<&str>,
    ) -> Result<i64, StoreError> {
        let (ControlCommand::Resume, Some(robot), true) = (command, robot, self.all_paused) else {
            return place.ask(command, robot);
        };
        let mut id = place.ask(ControlCommand::Resume, None)?;
        for other in self.robots.iter().filter(|name| *name != robot) {
            id = place.ask(ControlCommand::Pause, Some(other))?;
        }
        Ok(id)
    }
}

impl Shared {
    /// Does something with the crawl, or with one robot of the last run.
    pub async fn control(
        &self,
        action: Action,
        robot: Option<&str>,
    ) -> Result<Controlled, Problem> {
        let known = Known::of(&self.store.detail().await?);
        if let Some(robot) = robot
            && !known.has(robot)
        {
            return Err(Problem::missing(format!(
                "the crawl has no robot of that name; it has {}",
                known.robots.join(", ")
            )));
        }
        let place = self.location.clone();
        let is_crawled = blocking(move || place.is_crawled()).await?;
        let command = match (action, is_crawled) {
            (Action::Start, false) => return self.start(known, robot).await,
            (Action::Start | Action::Resume, _) => ControlCommand::Resume,
            (Action::Pause, _) => ControlCommand::Pause,
            (Action::Stop, true) => ControlCommand::Stop,
            (Action::Stop, false) => {
                return Err(Problem::conflict("nobody crawls; there is nothing to stop"));
            }
        };
        let standing = self.standing();
        let is_off = |name: &str| {
            let found = standing.robots.iter().find(|robot| robot.name == name);
            found.is_some_and(|robot| robot.state == RobotState::Stopped)
        };
        if let (ControlCommand::Resume, Some(robot)) = (command, robot)
            && is_off(robot)
        {
            return Err(Problem::conflict(
                "the robot was switched off for this run; stop the crawl and start it again to have it back",
            ));
        }
        let id = self.leave(known, command, robot).await?;
        let answer = self.wait_for(id, command, is_crawled).await?;
        self.look_soon();
        Ok(answer)
    }

    /// Begins the crawl again. A robot that is named goes on with it, if it was paused.
    async fn start(&self, known: Known, robot: Option<&str>) -> Result<Controlled, Problem> {
        if robot.is_some() {
            self.leave(known, ControlCommand::Resume, robot).await?;
        }
        let Started { detail } = self.desk.start().await?;
        self.look_soon();
        Ok(Controlled { done: true, detail })
    }

    async fn leave(
        &self,
        known: Known,
        command: ControlCommand,
        robot: Option<&str>,
    ) -> Result<i64, Problem> {
        let (place, robot) = (self.location.clone(), robot.map(str::to_owned));
        blocking(move || known.ask(&place, command, robot.as_deref())).await
    }

    async fn wait_for(
        &self,
        id: i64,
        command: ControlCommand,
        is_crawled: bool,
    ) -> Result<Controlled, Problem> {
        let told = |done: bool, detail: &str| Controlled {
            done,
            detail: detail.to_owned(),
        };
        if !is_crawled {
            let then = match command {
                ControlCommand::Pause => "nobody crawls; the next run begins with it paused",
                _ => "nobody crawls; the next run begins with it running",
            };
            return Ok(told(false, then));
        }
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let place = self.location.clone();
            let (is_done, is_crawled) =
                blocking(move || Ok((place.is_done(id)?, place.is_crawled()?))).await?;
            if is_done {
                return Ok(match command {
                    ControlCommand::Pause => told(true, "it is paused"),
                    ControlCommand::Resume => told(true, "it goes on"),
                    ControlCommand::Stop => {
                        told(true, "it stops as soon as what is in flight is stored")
                    }
                });
            }
            if !is_crawled {
                return Ok(told(true, "the crawl has ended"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(told(
            false,
            "the crawl has not taken notice yet; it still may, look again in a moment",
        ))
    }
}

/// Does what waits for a disk, without holding up others.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "broken state: a look at the crawl did not end; please report this",
        )),
    }
}
