//! The terminal: the only file that prints.
#![expect(clippy::print_stderr, reason = "this is where printing lives")]

use crate::failure::Failure;
use crate::{machine, progress};
use kittiwake_engine::{Clock, Progress};
use kittiwake_fetch::Secret;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Lines are cut to this where a terminal does not tell its width.
const COLUMNS: usize = 80;

/// Results go to standard output. A reader that has gone away is no failure of ours.
pub(crate) fn output(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}");
    let _ = stdout.flush();
}

/// Results that are too many to be held; whoever writes them hears of a reader that has gone away.
pub(crate) fn output_stream() -> Box<dyn Write + Send> {
    Box::new(std::io::stdout())
}

/// What a server wrote, as it may stand on a terminal.
pub(crate) fn plain(text: &str) -> String {
    const LETTERS_MAX: usize = 160;
    let letters = text.chars().take(LETTERS_MAX);
    letters
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}

/// Whether a person looks at the results.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Everything that is not a result goes to standard error.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn error(text: &str) {
    eprintln!("kittiwake: {text}");
}

/// Whether a person is there to be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks for a secret: it is not shown while it is typed. Where nobody is there, it is the next line of
/// standard input.
pub(crate) fn ask_secret(prompt: &str) -> Result<Secret, Failure> {
    if !can_ask() {
        return read_line();
    }
    eprint!("{prompt}");
    let typed = machine::without_echo(std::io::stdin(), read_line)
        .map_err(|error| Failure::other(format!("cannot ask: {error}")))?;
    eprintln!();
    typed
}

/// Asks for something that everybody may see, and that is kept like a secret all the same.
pub(crate) fn ask_line(prompt: &str) -> Result<Secret, Failure> {
    if can_ask() {
        eprint!("{prompt}");
    }
    read_line()
}

fn read_line() -> Result<Secret, Failure> {
    const LINE_BYTES_MAX: u64 = 65_536;
    let mut line = String::new();
    let read = std::io::stdin()
        .lock()
        .take(LINE_BYTES_MAX)
        .read_line(&mut line);
    read.map_err(|_| Failure::usage("standard input holds no text"))?;
    let secret = Secret::new(line.trim_end_matches(['\r', '\n']));
    zeroize::Zeroize::zeroize(&mut line);
    Ok(secret)
}

/// Help and version are results; a wrong argument is a usage error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(crate::failure::code::USAGE))
}

/// Shows progress until it is dropped: a block of lines that is rewritten on a terminal, plain
/// lines now and then elsewhere.
#[derive(Debug)]
pub(crate) struct ProgressLines(tokio::task::JoinHandle<()>, Arc<AtomicUsize>);

impl ProgressLines {
    pub(crate) fn start(progress: Arc<Progress>, clock: Clock) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let pause = Duration::from_secs(if is_terminal { 1 } else { 10 });
        let drawn = Arc::new(AtomicUsize::new(0));
        let lines = Arc::clone(&drawn);
        let task = tokio::spawn(async move {
            let started = Instant::now();
            loop {
                tokio::time::sleep(pause).await;
                let shown = progress.snapshot();
                if is_terminal {
                    redraw(&lines, &progress::block(&shown, &clock, started.elapsed()));
                } else {
                    eprintln!("{}", progress::line(&shown, &clock, started.elapsed()));
                }
            }
        });
        Self(task, drawn)
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        self.0.abort();
        redraw(&self.1, &[]);
    }
}

/// A text that is shown again and again: rewritten in place on a terminal, one after the other
/// elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    lines: usize,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn show(&mut self, text: &str) {
        if !std::io::stdout().is_terminal() {
            output(text);
            return;
        }
        let mut shown = String::new();
        if self.lines > 0 {
            let _ = write!(shown, "\x1b[{}A\r\x1b[J", self.lines);
        }
        // A line that wraps would not be overwritten.
        let columns = machine::terminal_columns(std::io::stdout()).unwrap_or(COLUMNS);
        for line in text.lines() {
            shown.extend(line.chars().take(columns));
            shown.push('\n');
        }
        self.lines = text.lines().count();
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(shown.as_bytes());
        let _ = stdout.flush();
    }
}

/// Puts new lines in the place of those that were drawn before.
fn redraw(drawn: &AtomicUsize, lines: &[String]) {
    let before = drawn.swap(lines.len(), Ordering::Relaxed);
    let mut text = String::new();
    if before > 0 {
        let _ = write!(text, "\x1b[{before}A\r\x1b[J");
    }
    // A line that wraps would not be overwritten.
    let columns = machine::terminal_columns(std::io::stderr()).unwrap_or(COLUMNS);
    for line in lines {
        text.extend(line.chars().take(columns));
        text.push('\n');
    }
    eprint!("{text}");
}

/// One line that counts, for a person at a terminal; it goes away when it is dropped.
#[derive(Debug)]
pub(crate) struct CountLine {
    /// When it was last shown; `None` if nobody looks.
    shown: Option<Instant>,
    is_dirty: bool,
}

impl CountLine {
    pub(crate) fn new(is_wanted: bool) -> Self {
        let is_seen = is_wanted && std::io::stderr().is_terminal();
        Self {
            shown: is_seen.then(Instant::now),
            is_dirty: false,
        }
    }

    /// Shows how far it is, now and then.
    pub(crate) fn show(&mut self, what: &str, rows: u64) {
        self.tell(&format!("{what}: {rows} rows"));
    }

    /// Shows a line of any kind, now and then.
    pub(crate) fn tell(&mut self, text: &str) {
        const PAUSE: Duration = Duration::from_secs(1);
        if let Some(shown) = &mut self.shown
            && shown.elapsed() >= PAUSE
        {
            *shown = Instant::now();
            self.is_dirty = true;
            eprint!("\r\x1b[2K{text}");
        }
    }
}

impl Drop for CountLine {
    fn drop(&mut self) {
        if self.is_dirty {
            eprint!("\r\x1b[2K");
        }
    }
}
