//! The parameters of a request.

use url::form_urlencoded;

/// The parameters of a request, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
}

impl Params {
    pub(crate) fn read(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        Self { pairs }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        // As on the real server the last of several wins.
        self.pairs
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        // As the real server reads it: whatever does not say no says yes.
        self.get(name).is_some_and(|value| {
            !matches!(
                value,
                "" | "0" | "f" | "F" | "false" | "FALSE" | "off" | "OFF"
            )
        })
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| value.parse().ok())
    }

    /// Those of some parameters that were sent, in the order of their names here.
    pub(crate) fn only(&self, names: &[&str]) -> String {
        let mut written = form_urlencoded::Serializer::new(String::new());
        for name in names {
            if let Some(value) = self.get(name) {
                written.append_pair(name, value);
            }
        }
        written.finish()
    }

    pub(crate) fn all_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// All parameters but some, such as those that choose a page.
    pub(crate) fn without<'a>(
        &'a self,
        names: &'a [&str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all_pairs().filter(|(key, _)| !names.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_written_in_a_fixed_order() {
        let params = Params::read("since_id=3&limit=5&max_id=9");
        let names = ["max_id", "since_id"];
        assert_eq!(params.only(&names), "max_id=9&since_id=3");
        assert_eq!(params.without(&names).collect::<Vec<_>>(), [("limit", "5")]);
    }
}
