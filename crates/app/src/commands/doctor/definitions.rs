//! The definitions: those that are shipped and those of the project.

use super::Check;
use crate::definitions::{self, SHIPPED};
use std::path::{Path, PathBuf};

const AREA: &str = "definitions";
/// Where a project keeps definitions of its own.
const FOLDER: &str = "networks";
const FILES_MAX: usize = 200;

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = SHIPPED.iter().map(|(name, _)| shipped(name)).collect();
    let own = own_files();
    if own.len() > FILES_MAX {
        checks.push(Check::warning(
            AREA,
            "own",
            format!("{} definitions; only {FILES_MAX} were read", own.len()),
            "check the others with kittiwake network check",
        ));
    }
    checks.extend(own.iter().take(FILES_MAX).map(|path| own_check(path)));
    checks
}

/// The definition files of the project, sorted.
pub(super) fn own_files() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(FOLDER) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

fn shipped(name: &str) -> Check {
    match definitions::find(name) {
        Ok(network) => Check::ok(
            AREA,
            "shipped",
            format!("{name}, verified on {}", network.verified_on()),
        ),
        Err(failure) => Check::problem(
            AREA,
            "shipped",
            failure.message,
            "this is a fault of ours; take another version",
        ),
    }
}

fn own_check(path: &Path) -> Check {
    match definitions::read(path) {
        Ok(_) => Check::ok(AREA, "own", path.display().to_string()),
        Err(failure) => Check::problem(
            AREA,
            "own",
            failure.message,
            "mend what is named; docs/definition-format.md documents every key",
        ),
    }
}
