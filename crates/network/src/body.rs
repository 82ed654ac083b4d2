//! What a request carries: in its address, in a form, or as JSON.

use crate::json;
use serde_json::value::RawValue;
use url::form_urlencoded;

/// How a question is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sending {
    /// GET: everything is in the address.
    Address,
    /// POST of a form.
    Form,
    /// POST of a JSON object.
    Json,
    /// POST of this GraphQL document; the parameters are its variables.
    GraphQl(String),
}

impl Sending {
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Address => "GET",
            Self::Form | Self::Json | Self::GraphQl(_) => "POST",
        }
    }

    /// Whether values keep their types.
    pub(crate) const fn is_json(&self) -> bool {
        matches!(self, Self::Json | Self::GraphQl(_))
    }

    /// What the body is and what is in it; none where everything is in the address.
    pub(crate) fn body(&self, parameters: &[(String, Carried)]) -> Option<(&'static str, String)> {
        match self {
            Self::Address => None,
            Self::Form => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                form.extend_pairs(parameters.iter().map(|(name, value)| (name, value.text())));
                Some((FORM, form.finish()))
            }
            Self::Json => Some((JSON, object(parameters))),
            Self::GraphQl(document) => {
                let query = json::quote(document);
                let variables = object(parameters);
                Some((
                    JSON,
                    format!("{{\"query\":{query},\"variables\":{variables}}}"),
                ))
            }
        }
    }
}

pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// A parameter as a definition writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Literal {
    /// Perhaps with placeholders.
    Text(String),
    /// A number, true or false.
    Plain(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Literal {
    /// The value with its texts filled in.
    pub(crate) fn fill<E>(
        &self,
        expand: &mut impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Carried, E> {
        Ok(match self {
            Self::Text(template) => Carried::Text(expand(template)?),
            Self::Plain(value) => Carried::Json(value.clone()),
            Self::List(items) => {
                let items: Vec<Carried> = items
                    .iter()
                    .map(|item| item.fill(expand))
                    .collect::<Result<_, E>>()?;
                Carried::list(&items)
            }
            Self::Table(entries) => {
                let mut filled = Vec::with_capacity(entries.len());
                for (name, value) in entries {
                    filled.push((name.clone(), value.fill(expand)?));
                }
                Carried::Json(object(&filled))
            }
        })
    }
}

/// A parameter's value, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carried {
    Text(String),
    /// JSON as it is; in an address or a form, it stands there as written.
    Json(String),
}

impl Carried {
    pub(crate) fn list(items: &[Self]) -> Self {
        let items: Vec<String> = items.iter().map(Self::json).collect();
        Self::Json(format!("[{}]", items.join(",")))
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Text(text) => json::quote(text),
            Self::Json(json) => json.clone(),
        }
    }
}

fn object(entries: &[(String, Carried)]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(name, value)| format!("{}:{}", json::quote(name), value.json()))
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// Whether a text is a JSON number, of whatever size.
pub(crate) fn is_number(text: &str) -> bool {
    let raw: Result<&RawValue, _> = serde_json::from_str(text);
    raw.is_ok_and(|raw| raw.get() == text && json::is_number(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn parameters() -> Vec<(String, Carried)> {
        vec![
            ("q".to_owned(), Carried::Text("a \"b\" & {c}".to_owned())),
            (
                "after".to_owned(),
                Carried::Json("123456789012345678901234567890".to_owned()),
            ),
            (
                "ids".to_owned(),
                Carried::list(&[Carried::Text("1".into()), Carried::Text("2".into())]),
            ),
        ]
    }

    #[test]
    fn bodies_are_written_as_networks_read_them() {
        assert_eq!(Sending::Address.body(&parameters()), None);
        let (kind, form) = Sending::Form.body(&parameters()[..2]).unwrap();
        assert_eq!(kind, FORM);
        assert_eq!(
            form,
            "q=a+%22b%22+%26+%7Bc%7D&after=123456789012345678901234567890"
        );
        let (_, body) = Sending::Json.body(&parameters()).unwrap();
        assert_eq!(
            body,
            "{\"q\":\"a \\\"b\\\" & {c}\",\"after\":123456789012345678901234567890,\"ids\":[\"1\",\"2\"]}"
        );
        let document = "query($q: String!) { find(q: $q) }".to_owned();
        let (_, body) = Sending::GraphQl(document.clone())
            .body(&parameters()[..1])
            .unwrap();
        let read: Value = serde_json::from_str(&body).unwrap();
        let variables = json!({ "q": "a \"b\" & {c}" });
        assert_eq!(read, json!({ "query": document, "variables": variables }));
    }

    #[test]
    fn only_numbers_are_numbers() {
        for text in ["0", "-1", "1.5e9", "123456789012345678901234567890"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "01", "1 ", " 1", "1,2", "\"1\"", "null", "1}", "NaN"] {
            assert!(!is_number(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_reads_back_from_a_body(name in any::<String>(), text in any::<String>()) {
            let parameters = [(name.clone(), Carried::Text(text.clone()))];
            let (_, body) = Sending::Json.body(&parameters).unwrap();
            let read: Value = serde_json::from_str(&body).unwrap();
            prop_assert_eq!(read, json!({ name: text }));
        }
    }
}
