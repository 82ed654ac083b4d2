//! `kittiwake sim serve`: the synthetic network.

use crate::cli::{SimArguments, SimFaults, SimLimits};
use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_sim::{Faults, Limits, SimConfig};
use std::process::ExitCode;

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
    let server = kittiwake_sim::serve(SimConfig {
        listen: arguments.listen,
        users: arguments.users,
        seed: arguments.seed,
        speed: arguments.speed,
        limit_speed: arguments.limit_speed,
        at_us: at.as_microsecond(),
        real_now_us: environment::real_now().micros(),
        limits: match arguments.limits {
            SimLimits::Strict => Limits::Strict,
            SimLimits::Off => Limits::Off,
        },
        latency_ms: arguments.latency_ms,
        faults: match arguments.faults {
            SimFaults::None => Faults::None,
            SimFaults::Mild => Faults::Mild,
            SimFaults::Hostile => Faults::Hostile,
        },
        stall_ms: arguments.stall_ms,
    })
    .await
    .map_err(|error| Failure::other(error.to_string()))?;
    console::output(&server.ready_line());
    crate::commands::crawl::stop_asked().await;
    server.shutdown().await;
    Ok(ExitCode::SUCCESS)
}
