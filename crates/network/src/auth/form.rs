//! Forms: the bodies of OAuth 2.

use super::AuthCall;
use kittiwake_model::Secret;
use url::{Url, form_urlencoded};

/// A form that is posted.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, Secret)>);

impl Form {
    pub(super) fn with(mut self, name: &str, value: impl Into<Secret>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn with_all(self, pairs: &[(&str, &str)]) -> Self {
        pairs
            .iter()
            .fold(self, |form, (name, value)| form.with(name, *value))
    }

    pub(super) fn post(self, url: Url) -> AuthCall {
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.0 {
            body.append_pair(name, value.expose_secret());
        }
        AuthCall {
            is_post: true,
            url,
            headers: vec![
                (
                    "content-type".to_owned(),
                    "application/x-www-form-urlencoded".to_owned(),
                ),
                ("accept".to_owned(), "application/json".to_owned()),
            ],
            secret_headers: Vec::new(),
            body: Some(Secret::new(body.finish())),
        }
    }
}
