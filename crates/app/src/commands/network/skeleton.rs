//! `kittiwake network new`: a definition to begin with.

use crate::failure::Failure;
use crate::{console, environment};
use kittiwake_network::Network;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("skeleton.toml");

pub(super) fn run(name: &str, output: Option<PathBuf>) -> Result<(), Failure> {
    let today = jiff::Timestamp::from_microsecond(environment::real_now().micros())
        .map_err(|error| Failure::other(format!("what day is it? {error}")))?
        .strftime("%Y-%m-%d")
        .to_string();
    let text = skeleton(name, &today)?;
    let path = output.unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    write_new(&path, &text)?;
    console::output(&format!(
        "{0}: made; its comments explain every part. Check it with kittiwake network check {0}",
        path.display()
    ));
    Ok(())
}

/// The definition of a network of that name that does not exist.
fn skeleton(name: &str, today: &str) -> Result<String, Failure> {
    let text = TEMPLATE
        .replace("@NAME@", name)
        .replace("@VARIABLE@", &environment::token_variable(name))
        .replace("@TODAY@", today);
    // Whatever is wrong with it is the name, for the rest is correct.
    if Network::parse("skeleton", &text).is_err() {
        return Err(Failure::usage(format!(
            "{name:?} is no name of a network: use lower-case letters, digits, _ and -, 64 at most"
        )));
    }
    Ok(text)
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = path.display();
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "{shown} is there already and is left alone; name another file with -o"
        )),
        _ => Failure::usage(format!("cannot make {shown}: {error}")),
    };
    let mut file = std::fs::File::create_new(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_name_has_a_skeleton() {
        for name in ["gulls", "a", "my-net_2"] {
            let text = skeleton(name, "2026-11-16").expect("a definition");
            let network = Network::parse("it", &text).expect("it is correct");
            assert_eq!(
                (&**network.name(), network.verified_on()),
                (name, "2026-11-16")
            );
            assert!(
                !text.contains("@NAME@") && !text.contains("@VARIABLE@"),
                "{text}"
            );
        }
        for name in ["", "Gulls", "a b", "a\"\nformat = 2", "../x", "möwe"] {
            assert!(skeleton(name, "2026-11-16").is_err(), "{name:?}");
        }
    }
}
