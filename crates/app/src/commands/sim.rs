//! `kittiwake sim serve`: the synthetic network.

use crate::cli::{SimArguments, SimDialect, SimFaults, SimLimits};
use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_sim::{DeclaredLimits, Dialect, Faults, Limits, SimConfig};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

/// Ten years.
const SKEW_SECONDS_MAX: f64 = 315_576_000.0;
/// More than anybody writes by hand.
const LIMITS_FILE_BYTES_MAX: u64 = 1 << 20;

pub(crate) async fn run(arguments: &SimArguments) -> Result<ExitCode, Failure> {
    let at: jiff::Timestamp = arguments.at.parse().map_err(|_| {
        Failure::usage(format!(
            "--at {:?} is no time; write for example 2026-06-01T12:00:00Z",
            arguments.at
        ))
    })?;
    let rates = [Some(arguments.speed), arguments.limit_speed];
    if rates
        .into_iter()
        .flatten()
        .any(|rate| !rate.is_finite() || !(0.0..=1e6).contains(&rate))
        || arguments.limit_speed == Some(0.0)
    {
        return Err(Failure::usage(
            "speeds run from 0 to 1000000, and limits cannot stand still",
        ));
    }
    if arguments.bad_instances >= arguments.instances && arguments.bad_instances > 0 {
        return Err(Failure::usage(
            "--bad-instances has to be less than --instances: the first one is always in order",
        ));
    }
    let server = kittiwake_sim::serve(SimConfig {
        listen: arguments.listen,
        dialect: dialect(arguments.dialect),
        users: arguments.users,
        seed: arguments.seed,
        speed: arguments.speed,
        limit_speed: arguments.limit_speed,
        at_us: at.as_microsecond(),
        real_now_us: environment::real_now().micros(),
        limits: limits(arguments)?,
        clock_skew_us: clock_skew_us(arguments)?,
        latency_ms: arguments.latency_ms,
        faults: match arguments.faults {
            SimFaults::None => Faults::None,
            SimFaults::Mild => Faults::Mild,
            SimFaults::Hostile => Faults::Hostile,
        },
        stall_ms: arguments.stall_ms,
        instances: usize::from(arguments.instances),
        troubled_instances: usize::from(arguments.bad_instances),
        habits_day: arguments.habits,
    })
    .await
    .map_err(|error| Failure::other(error.to_string()))?;
    console::output(&server.ready_line());
    crate::commands::crawl::stop_asked().await;
    server.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

const fn dialect(named: SimDialect) -> Dialect {
    match named {
        SimDialect::Mastodon => Dialect::Mastodon,
        SimDialect::Bluesky => Dialect::Bluesky,
        SimDialect::X => Dialect::X,
        SimDialect::Weibo => Dialect::Weibo,
        SimDialect::Youtube => Dialect::YouTube,
        SimDialect::Reddit => Dialect::Reddit,
        SimDialect::Facebook => Dialect::Facebook,
    }
}

fn limits(arguments: &SimArguments) -> Result<Limits, Failure> {
    let Some(path) = &arguments.limits_file else {
        return Ok(match arguments.limits {
            SimLimits::Strict => Limits::Strict,
            SimLimits::Off => Limits::Off,
        });
    };
    if arguments.limits == SimLimits::Off {
        return Err(Failure::usage(
            "--limits off takes away what --limits-file declares; leave out one of them",
        ));
    }
    let refused = |reason: &dyn std::fmt::Display| {
        Failure::usage(format!("--limits-file {}: {reason}", path.display()))
    };
    let text = read_text(path).map_err(|error| refused(&error))?;
    let dialect = dialect(arguments.dialect);
    let limits = DeclaredLimits::parse_for(&text, dialect).map_err(|error| refused(&error))?;
    Ok(Limits::Declared(limits))
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    // What is named may be no plain file and have no end.
    let mut file = File::open(path)?.take(LIMITS_FILE_BYTES_MAX + 1);
    let length = file.read_to_string(&mut text)?;
    if length as u64 > LIMITS_FILE_BYTES_MAX {
        return Err(std::io::Error::other(
            "it is longer than any file of limits",
        ));
    }
    Ok(text)
}

fn clock_skew_us(arguments: &SimArguments) -> Result<i64, Failure> {
    let seconds = arguments.clock_skew;
    if !(-SKEW_SECONDS_MAX..=SKEW_SECONDS_MAX).contains(&seconds) {
        return Err(Failure::usage(
            "--clock-skew takes seconds, at most ten years in either direction",
        ));
    }
    Ok((seconds * 1e6).round() as i64)
}
