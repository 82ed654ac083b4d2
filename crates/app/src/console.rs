//! The terminal: the only file that prints.
#![expect(clippy::print_stderr, reason = "this is where printing lives")]

use kittiwake_engine::{Clock, Progress};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Results go to standard output. A reader that has gone away is no failure of ours.
pub(crate) fn output(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}");
    let _ = stdout.flush();
}

/// Everything that is not a result goes to standard error.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn error(text: &str) {
    eprintln!("kittiwake: {text}");
}

/// Help and version are results; a wrong argument is a usage error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(crate::failure::code::USAGE))
}

/// Shows progress until it is dropped: one line that is rewritten on a terminal, plain lines now
/// and then elsewhere.
#[derive(Debug)]
pub(crate) struct ProgressLine(tokio::task::JoinHandle<()>);

impl ProgressLine {
    pub(crate) fn start(progress: Arc<Progress>, clock: Clock) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let pause = Duration::from_secs(if terminal { 1 } else { 10 });
        Self(tokio::spawn(async move {
            let started = Instant::now();
            loop {
                tokio::time::sleep(pause).await;
                let line = line(&progress, &clock, started.elapsed());
                if terminal {
                    eprint!("\r\x1b[2K{line}");
                } else {
                    eprintln!("{line}");
                }
            }
        }))
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.abort();
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }
}

fn line(progress: &Progress, clock: &Clock, elapsed: Duration) -> String {
    let shown = progress.snapshot();
    let seconds = elapsed.as_secs_f64().max(0.001);
    let visits: Vec<String> = shown
        .visits
        .iter()
        .map(|(robot, count)| format!("{robot} {count}"))
        .collect();
    let pause = shown
        .paused_until
        .map_or_else(String::new, |(until, budget)| {
            format!(
                " · waiting {:.0} s for {budget}",
                clock.until_limit(until).as_secs_f64()
            )
        });
    format!(
        "{:.0} s · {} calls ({:.1}/s) · {} rows new, {} changed · visited: {} · {} waiting, {} in flight{pause}",
        seconds,
        shown.calls,
        shown.calls as f64 / seconds,
        shown.rows_new,
        shown.rows_changed,
        if visits.is_empty() {
            "nobody yet".to_owned()
        } else {
            visits.join(", ")
        },
        shown.waiting,
        shown.in_flight,
    )
}
