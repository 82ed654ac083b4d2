//! Crash points for tests: says that a point was reached and stands still, waiting to be killed.

use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_engine::{CrashHook, CrashPoint};
use std::sync::atomic::{AtomicU64, Ordering};

/// The hook that `KITTIWAKE_CRASH_POINT=NAME:COUNT` asks for: the COUNT-th time the point is
/// reached, the process announces it and never passes. With `:panic` behind it, it panics instead.
pub(crate) fn hook() -> Result<CrashHook, Failure> {
    let Some(wanted) = environment::variable("KITTIWAKE_CRASH_POINT") else {
        return Ok(CrashHook::default());
    };
    let wrong = || {
        Failure::usage(format!(
            "KITTIWAKE_CRASH_POINT={wanted}: expected NAME:COUNT"
        ))
    };
    let (wanted, panics) = match wanted.strip_suffix(":panic") {
        Some(point) => (point, true),
        None => (wanted.as_str(), false),
    };
    let (name, count) = wanted.split_once(':').ok_or_else(wrong)?;
    let point: CrashPoint = name.parse().map_err(Failure::usage)?;
    let count: u64 = count.parse().map_err(|_| wrong())?;
    let reached = AtomicU64::new(0);
    Ok(CrashHook::new(move |at| {
        if at != point || reached.fetch_add(1, Ordering::Relaxed) + 1 != count {
            return;
        }
        assert!(!panics, "crash point {} reached", at.name());
        console::output(&format!("crash point {} reached", at.name()));
        loop {
            std::thread::park();
        }
    }))
}
