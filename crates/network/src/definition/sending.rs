//! `method`, `body`, `graphql` and `parameters` of a query: how it is sent.

use super::queries::check_template;
use super::source::Section;
use super::types::Types;
use crate::body::{Literal, Sending};
use crate::request::LOCAL;

/// How the question is sent.
pub(super) fn read_sending(section: &Section<'_, '_>) -> Sending {
    let is_post = section.word("method", &[("GET", false), ("POST", true)]) == Some(true);
    let document = section.text("graphql");
    let bodies = [("json", Sending::Json), ("form", Sending::Form)];
    let words: Vec<(&str, usize)> = bodies.iter().map(|(word, _)| *word).zip(0..).collect();
    let body = section.word("body", &words);
    if !is_post {
        for key in ["body", "graphql"] {
            if section.has(key) {
                let message = format!("`{key}` is for `method = \"POST\"`");
                let help = "write `method = \"POST\"`, if the network reads it so";
                section.report(&section.span_of(key), message, help);
            }
        }
        return Sending::Address;
    }
    if let Some(document) = document {
        if body == Some(1) {
            let message = "a GraphQL query is sent as JSON";
            section.report(&section.span_of("body"), message, "leave out `body`");
        }
        return Sending::GraphQl(document.value);
    }
    if !section.has("body") {
        section.missing("body", "body = \"json\"");
    }
    body.and_then(|place| bodies.into_iter().nth(place))
        .map_or(Sending::Json, |(_, sending)| sending)
}

pub(super) fn read_parameters(
    section: &Section<'_, '_>,
    types: &Types,
    kind: &str,
    sending: &Sending,
) -> Vec<(String, Literal)> {
    let Some(table) = section.table("parameters") else {
        return Vec::new();
    };
    let mut parameters = Vec::new();
    for entry in table.entries() {
        if sending.is_json() {
            if entry.name.ends_with(':') {
                let message = format!("`{}` is no name for a parameter", entry.name);
                table.report(&entry.span, message, "leave out the `:` at its end");
            }
            let mut texts = Vec::new();
            if let Some(literal) = table.literal(&entry.name, &mut texts) {
                for text in &texts {
                    check_template(&table, text, types, kind, &[LOCAL]);
                }
                parameters.push((entry.name, literal));
            }
        } else if let Some([value]) = table.numbers_or_texts(&entry.name).as_deref() {
            check_template(&table, value, types, kind, &[LOCAL]);
            parameters.push((entry.name, Literal::Text(value.value.clone())));
        } else {
            let message = format!("the parameter `{}` must be one text", entry.name);
            let help = format!("write `{} = \"…\"`", entry.name);
            table.report(&entry.span, message, help);
        }
    }
    parameters
}
