//! Definitions: those that are shipped, and the commands around them.

use crate::support::{Folder, text};
use serde_json::Value;
use std::path::PathBuf;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of the files in `networks/`.
fn files() -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("networks")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .map(|path| {
            let stem = path.file_stem().expect("a name");
            stem.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

fn listed(folder: &Folder) -> Vec<Value> {
    let list = folder.run(&["network", "list", "--json"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    let lines = text(&list.stdout);
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn every_definition_is_shipped_once_in_order_of_names() {
    let folder = Folder::new();
    let names: Vec<String> = listed(&folder)
        .iter()
        .map(|line| line["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names, files(), "crates/app/src/definitions.rs lists them");
    for name in names {
        let file = repository().join("networks").join(format!("{name}.toml"));
        let file = std::fs::read_to_string(file).expect("the file is there");
        let shown = folder.run(&["network", "show", &name]);
        assert_eq!(text(&shown.stdout).trim_end(), file.trim_end(), "{name}");
        std::fs::write(folder.path("mine.toml"), &shown.stdout).expect("a file");
        let checked = folder.run(&["network", "check", "mine.toml"]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    }
}

#[test]
fn the_list_says_how_far_each_is_proved_and_what_access_needs() {
    let folder = Folder::new();
    let shown = text(&folder.run(&["network", "list"]).stdout);
    for line in listed(&folder) {
        let told = |key: &str| line[key].as_str().expect("it is said").to_owned();
        let begins = format!("{}: {}", told("name"), told("title"));
        assert!(shown.contains(&begins), "{begins} is not in {shown}");
        let proved = format!("proved    {} ({})", told("proved"), told("proof"));
        for part in [proved, told("access"), told("verified_on")] {
            assert!(shown.contains(&part), "{part} is not in {shown}");
        }
    }
}
