//! The documentation names every key, every function and every word, and its example works.

use crate::support::root;
use kittiwake_model::{OutcomeCode, Table};
use kittiwake_network::{Network, expression_functions, known_keys};

fn document() -> String {
    std::fs::read_to_string(root().join("docs/definition-format.md")).unwrap()
}

#[test]
fn every_key_is_documented_in_its_section() {
    let document = document();
    for (section, keys) in known_keys() {
        let heading = format!("<!-- keys of {section} -->");
        let (_, text) = document
            .split_once(&heading)
            .unwrap_or_else(|| panic!("no {heading}"));
        let text = text.split_once("<!-- keys of").map_or(text, |(own, _)| own);
        for key in *keys {
            assert!(text.contains(&format!("| `{key}` |")), "{section}: {key}");
        }
        let rows = text.matches("\n| `").count();
        assert_eq!(
            rows,
            keys.len(),
            "{section} documents a key that is not there"
        );
    }
}

#[test]
fn every_function_outcome_and_column_is_documented() {
    let document = document();
    for name in expression_functions() {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
    for code in OutcomeCode::ALL {
        assert!(document.contains(&format!("`{}`", code.code())), "{code}");
    }
    for table in Table::ALL {
        for column in table.columns() {
            assert!(
                document.contains(&format!("`{}`", column.name)),
                "{}",
                column.name
            );
        }
    }
}

#[test]
fn every_complete_example_is_a_sound_definition() {
    let document = document();
    let examples: Vec<&str> = document
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|example| example.starts_with("format = 1"))
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        let network =
            Network::parse("example.toml", example).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(network.queries().count() > 0);
    }
}
