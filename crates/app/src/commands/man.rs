//! `kittiwake man`: manual pages, from the same definitions as `--help`.

use crate::cli::{self, ManArguments};
use crate::console;
use crate::failure::Failure;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    // Pages of `kittiwake help …` would say nothing.
    let mut line = cli::command().disable_help_subcommand(true);
    line.build();
    match &arguments.output {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
            let count = write_pages(&line, folder)?;
            let shown = folder.display();
            console::note(&format!("{count} pages in {shown}"));
        }
        None => console::output(page(find(&line, &arguments.command)?)?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format!("cannot write {}: {error}", path.display()))
}

/// The command of that name, step by step down the tree.
fn find<'l>(line: &'l Command, names: &[String]) -> Result<&'l Command, Failure> {
    let mut command = line;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            let within = command.get_bin_name().unwrap_or("kittiwake");
            Failure::usage(format!("{within} has no command {name:?}; {known}"))
        })?;
    }
    Ok(command)
}

/// Writes the pages of a command and of all below it; says how many.
fn write_pages(command: &Command, folder: &Path) -> Result<usize, Failure> {
    let path = folder.join(format!("{}.1", name_of(command)));
    std::fs::write(&path, page(command)?).map_err(|error| cannot(&path, &error))?;
    let mut count = 1;
    for below in command.get_subcommands() {
        count += write_pages(below, folder)?;
    }
    Ok(count)
}

/// The name of a page: `kittiwake-network-check`.
fn name_of(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> Result<String, Failure> {
    let fault = |error: std::io::Error| Failure::other(format!("cannot write a page: {error}"));
    let man = Man::new(command.clone())
        .source(format!("kittiwake {}", env!("CARGO_PKG_VERSION")))
        .manual("Kittiwake");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes).map_err(fault)?;
    man.render_name_section(&mut bytes).map_err(fault)?;
    man.render_synopsis_section(&mut bytes).map_err(fault)?;
    man.render_description_section(&mut bytes).map_err(fault)?;
    man.render_options_section(&mut bytes).map_err(fault)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes).map_err(fault)?;
    }
    if let Some(notes) = command.get_after_help() {
        notes_section(&notes.to_string())
            .to_writer(&mut bytes)
            .map_err(fault)?;
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::other("the page is no text; this is a fault of ours"))?;
    Ok(in_ascii(&text))
}

/// Not every troff reads UTF-8; every one of ours reads this.
fn in_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            plain.push(letter);
        } else {
            let _ = write!(plain, "\\[u{:04X}]", u32::from(letter));
        }
    }
    plain
}

/// What stands below the options in `--help`: examples keep their lines, all else is filled.
fn notes_section(notes: &str) -> Roff {
    let mut roff = Roff::new();
    let mut lines = notes.lines().peekable();
    let heading = match lines.peek() {
        Some(first) if first.starts_with("Example") => {
            lines.next();
            "EXAMPLES"
        }
        _ => "NOTES",
    };
    roff.control("SH", [heading]);
    let mut as_it_stands = false;
    for line in lines {
        let indented = line.starts_with(' ');
        if indented != as_it_stands {
            roff.control(if indented { "nf" } else { "fi" }, []);
            as_it_stands = indented;
        }
        match (line.is_empty(), indented) {
            (true, _) => roff.control("PP", []),
            (false, true) => roff.text([bold(line)]),
            (false, false) => roff.text([roman(line)]),
        };
    }
    if as_it_stands {
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_the_rest_is_filled() {
        let roff = notes_section("Examples:\n  one\n  two\n\nSome\nwords.").render();
        let examples = roff.find(".SH EXAMPLES").unwrap();
        let unfilled = roff.find(".nf").unwrap();
        let filled = roff.find(".fi").unwrap();
        assert!(examples < unfilled && unfilled < filled, "{roff}");
        assert!(filled < roff.find("Some").unwrap(), "{roff}");
        assert_eq!(in_ascii("id:…"), "id:\\[u2026]");
        assert!(notes_section("Words").render().contains(".SH NOTES"));
    }
}
