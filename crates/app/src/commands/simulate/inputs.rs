//! What a simulation reads: traces, crawls, weights, holidays.

use crate::cli::SimulateArguments;
use crate::failure::Failure;
use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use kittiwake_frontier::policy::Holidays;
use kittiwake_frontier::replay::{Trace, TraceError};
use kittiwake_model::WorldTime;
use kittiwake_store::export::{ExportError, ExportTable, Field, RowSink, Selection};
use kittiwake_store::sqlite::{OpenMode, SqliteStore};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A list that a person gives is never longer.
const LIST_BYTES_MAX: u64 = 100_000_000;

pub(super) async fn trace(arguments: &SimulateArguments) -> Result<Trace, Failure> {
    let mut trace = match (&arguments.trace, &arguments.from) {
        (_, Some(file)) => collected(file).await?,
        (Some(path), None) => read(path)?,
        (None, None) => return Err(Failure::usage("name a trace, or a crawl with --from")),
    };
    if !arguments.facets.is_empty() {
        keep_facets(arguments, &mut trace)?;
    }
    Ok(trace)
}

fn read(path: &Path) -> Result<Trace, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let trace = if path == Path::new("-") {
        Trace::read(std::io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| wrong(&error))?;
        Trace::read(file)
    };
    trace.map_err(|error| wrong(&error))
}

fn keep_facets(arguments: &SimulateArguments, trace: &mut Trace) -> Result<(), Failure> {
    for (name, _) in &arguments.facets {
        if !trace.facets.contains(name) {
            return Err(Failure::usage(format!(
                "the trace has no facet {name:?}; it has {}",
                trace.facets.join(", ")
            )));
        }
    }
    let is_wanted = |facet: &str| arguments.facets.iter().any(|(name, _)| name == facet);
    let facets = trace.facets.clone();
    trace
        .subjects
        .retain(|subject| is_wanted(&facets[usize::from(subject.facet)]));
    Ok(())
}

/// The posts that a crawl has collected, by author.
async fn collected(file: &Path) -> Result<Trace, Failure> {
    let store = SqliteStore::open(file, OpenMode::Read)?;
    let posts = Arc::new(Mutex::new(Vec::new()));
    let selection = Selection {
        tables: vec![ExportTable::Statuses],
        since: None,
    };
    let sink = Posts::new(Arc::clone(&posts));
    store
        .export(selection, Box::new(sink))
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    let posts = std::mem::take(&mut *posts.lock().unwrap_or_else(PoisonError::into_inner));
    Trace::of(posts).map_err(|error| match error {
        TraceError::NoPosts => Failure::usage(format!(
            "{} has no posts with an author and a time; crawl timelines first",
            file.display()
        )),
        error => Failure::usage(error.to_string()),
    })
}

type Collected = Arc<Mutex<Vec<(String, WorldTime)>>>;

/// Takes author and time out of every post.
#[derive(Debug)]
struct Posts {
    author: usize,
    created: usize,
    collected: Collected,
}

impl Posts {
    fn new(collected: Collected) -> Self {
        let columns = ExportTable::Statuses.columns();
        let place = |name: &str| {
            let mut columns = columns.iter();
            columns.position(|column| column.name == name)
        };
        Self {
            author: place("author").unwrap_or(usize::MAX),
            created: place("created").unwrap_or(usize::MAX),
            collected,
        }
    }
}

impl RowSink for Posts {
    fn begin(&mut self, _table: ExportTable) -> Result<(), ExportError> {
        Ok(())
    }

    fn row(&mut self, row: &[Field<'_>]) -> Result<(), ExportError> {
        if let (Some(Field::Text(author)), Some(Field::Text(created))) =
            (row.get(self.author), row.get(self.created))
            && let Ok(at) = created.parse::<Timestamp>()
        {
            let mut posts = self
                .collected
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            posts.push((author.clone().into_owned(), WorldTime(at.as_microsecond())));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    fn hides_empty_text(&self) -> bool {
        false
    }
}

/// What each subject of the trace weighs: its facet times its user; empty if all weigh alike.
pub(super) fn weights(arguments: &SimulateArguments, trace: &Trace) -> Result<Vec<f64>, Failure> {
    if arguments.weights.is_none() && arguments.facets.is_empty() {
        return Ok(Vec::new());
    }
    let users = match &arguments.weights {
        Some(path) => user_weights(path)?,
        None => HashMap::new(),
    };
    let facets: HashMap<&str, f64> = arguments
        .facets
        .iter()
        .map(|(name, weight)| (name.as_str(), *weight))
        .collect();
    let subjects = trace.subjects.iter();
    Ok(subjects
        .map(|subject| {
            let facet = trace.facets[usize::from(subject.facet)].as_str();
            let user = trace.users[subject.user as usize].as_str();
            facets.get(facet).copied().unwrap_or(1.0) * users.get(user).copied().unwrap_or(1.0)
        })
        .collect())
}

fn user_weights(path: &Path) -> Result<HashMap<String, f64>, Failure> {
    let text = list(path)?;
    let lines = text.lines().enumerate();
    let mut weights = HashMap::new();
    for (place, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields = line.rsplit_once(',');
        let parsed = fields.map(|(user, weight)| (user.trim(), weight.trim().parse::<f64>()));
        match parsed {
            Some((user, Ok(weight))) if weight.is_finite() && weight > 0.0 => {
                weights.insert(user.trim_matches('"').to_owned(), weight);
            }
            Some((_, Err(_))) if place == 0 => {}
            _ => {
                return Err(Failure::usage(format!(
                    "{}: line {} is no user,weight with a weight above 0",
                    path.display(),
                    place + 1
                )));
            }
        }
    }
    Ok(weights)
}

fn list(path: &Path) -> Result<String, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read {}: {error}", path.display()))
    };
    let length = std::fs::metadata(path)
        .map_err(|error| wrong(&error))?
        .len();
    if length > LIST_BYTES_MAX {
        return Err(wrong(&"it is too large to be a list"));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(&error))
}

/// Holidays from dates, one a line, or from the days of a calendar's events.
pub(super) fn holidays(arguments: &SimulateArguments) -> Result<Holidays, Failure> {
    let Some(path) = &arguments.holidays else {
        return Ok(Holidays::default());
    };
    let text = list(path)?;
    let is_calendar = text.trim_start().starts_with("BEGIN:VCALENDAR");
    let days: Vec<i64> = if is_calendar {
        let starts = text.lines().filter(|line| line.starts_with("DTSTART"));
        let values = starts.filter_map(|line| line.rsplit_once(':'));
        values
            .filter_map(|(_, value)| calendar_day(value))
            .collect()
    } else {
        let lines = text.lines().map(str::trim);
        let dates = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        dates
            .map(|line| line.parse::<Date>().ok().and_then(day_of))
            .collect::<Option<_>>()
            .unwrap_or_default()
    };
    if days.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no dates; write one a line, such as 2026-12-25, or give a calendar (.ics)",
            path.display()
        )));
    }
    Ok(days.into_iter().collect())
}

/// `20261225` or `20261225T…`.
fn calendar_day(value: &str) -> Option<i64> {
    let digits = value.trim().get(..8)?;
    day_of(Date::strptime("%Y%m%d", digits).ok()?)
}

fn day_of(day: Date) -> Option<i64> {
    let days = day.since((jiff::Unit::Day, date(1970, 1, 1))).ok()?;
    Some(i64::from(days.get_days()))
}

/// The beginnings of all months of a trace.
pub(super) fn months(trace: &Trace) -> Vec<WorldTime> {
    let Ok(start) = Timestamp::from_microsecond(trace.start.micros()) else {
        return vec![trace.start];
    };
    let mut month = start.to_zoned(TimeZone::UTC).date().first_of_month();
    let mut months = Vec::new();
    while let Ok(at) = month.to_zoned(TimeZone::UTC) {
        let at = WorldTime(at.timestamp().as_microsecond());
        if at > trace.end {
            break;
        }
        months.push(at);
        let Ok(next) = month.checked_add(jiff::Span::new().months(1)) else {
            break;
        };
        month = next;
    }
    months
}
