//! `kittiwake doctor`: what may stand in the way of a crawl, and what to do about it.

mod definitions;
mod files;
mod machine;
mod settings;

use crate::cli::DoctorArguments;
use crate::console;
use crate::failure::code;
use crate::settings::Settings;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// A crawl works, and something should be looked at.
    Warning,
    /// A crawl fails, or something is lost.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// `machine`, `settings`, `definitions`, or the name of a file.
    area: String,
    name: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// What to do; empty if nothing.
    advice: String,
}

impl Check {
    fn ok(area: &str, name: &'static str, found: impl Into<String>) -> Self {
        Self::new(area, name, State::Ok, found, "")
    }

    fn warning(area: &str, name: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self::new(area, name, State::Warning, found, advice)
    }

    fn problem(area: &str, name: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self::new(area, name, State::Problem, found, advice)
    }

    fn new(
        area: &str,
        name: &'static str,
        state: State,
        found: impl Into<String>,
        advice: &str,
    ) -> Self {
        Self {
            area: area.to_owned(),
            name,
            state,
            found: found.into(),
            advice: advice.to_owned(),
        }
    }
}

pub(crate) fn run(arguments: &DoctorArguments) -> ExitCode {
    let settings = Settings::load();
    let mut checks = machine::checks(settings.as_ref().ok(), &arguments.files);
    checks.extend(settings::checks(&settings));
    checks.extend(definitions::checks());
    for file in &arguments.files {
        checks.extend(files::checks(file));
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let problems = count(State::Problem);
    if arguments.json {
        let shown = json!({
            "checks": checks,
            "ok": count(State::Ok),
            "warnings": count(State::Warning),
            "problems": problems,
        });
        console::output(&shown.to_string());
    } else {
        let mut text = as_text(&checks);
        let _ = write!(
            text,
            "\nok: {}, warnings: {}, problems: {problems}",
            count(State::Ok),
            count(State::Warning)
        );
        console::output(&text);
    }
    ExitCode::from(if problems > 0 { code::OTHER } else { 0 })
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            let gap = if area.is_empty() { "" } else { "\n" };
            area = &check.area;
            let _ = writeln!(text, "{gap}{area}");
        }
        let state = match check.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        // Further lines of what was found stand below its first. A file may hold anything, which
        // is not for the terminal to obey.
        let found = check.found.replace('\n', "\n                            ");
        let found = found.replace(|letter: char| letter.is_control() && letter != '\n', "?");
        let _ = writeln!(text, "  {state:<8} {:<16} {found}", check.name);
        if !check.advice.is_empty() {
            let _ = writeln!(text, "{:27} → {}", "", check.advice);
        }
    }
    text
}

/// A number of bytes as people read it.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = bytes as f64;
    let mut unit = "bytes";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "bytes" {
        format!("{bytes} bytes")
    } else {
        format!("{amount:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_units_that_fit() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    }

    #[test]
    fn a_check_is_shown_with_what_to_do() {
        let text = as_text(&[
            Check::ok("machine", "clock", "fine"),
            Check::problem("machine", "disk", "full\nvery", "make room"),
            Check::ok("settings", "files", "no\u{1b}ne"),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "machine");
        assert_eq!(lines[1].trim_start(), "ok       clock            fine");
        assert!(lines[4].ends_with("→ make room"));
        assert_eq!(lines[5..7], ["", "settings"]);
        assert!(lines[7].ends_with("no?ne"));
    }
}
