//! The classes of people, and the colours that they have on every page.

/// CUVIM's classes, in the order of their colours.
const CLASSES: [&str; 4] = ["authority", "regular", "unstable", "inactive"];
/// Grey.
const NO_CLASS: usize = 7;

pub(super) fn class_colour(class: &str) -> usize {
    let place = CLASSES.iter().position(|it| *it == class);
    place.unwrap_or(NO_CLASS)
}

pub(super) fn class_name(class: &str) -> &str {
    if class.is_empty() {
        "no class yet"
    } else {
        class
    }
}
