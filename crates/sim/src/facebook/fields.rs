//! `fields=`: what of a node is to be sent, with modifiers and fields of what is nested in it.
//!
//! `id,from{id,name},comments.limit(2).summary(true){message},reactions.type(LOVE).limit(0).as(love)`

use crate::params::Params;

/// Fields within fields within fields.
const DEPTH_MAX: usize = 4;
/// What an edge weighs beside a plain field: it is looked up for every node of a page.
const EDGE_WEIGHT: usize = 5;

/// A field that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    /// `limit(0)` and the like, in their order.
    modifiers: Vec<(&'a str, &'a str)>,
    pub(super) fields: Vec<Self>,
}

impl<'a> Field<'a> {
    pub(super) const fn plain(name: &'a str) -> Self {
        Self {
            name,
            modifiers: Vec::new(),
            fields: Vec::new(),
        }
    }

    pub(super) fn modifier(&self, name: &str) -> Option<&'a str> {
        let mut found = self.modifiers.iter().filter(|(key, _)| *key == name);
        found.next_back().map(|(_, value)| *value)
    }

    /// The name under which it is sent.
    pub(super) fn label(&self) -> &'a str {
        self.modifier("as").unwrap_or(self.name)
    }

    pub(super) fn modifiers(&self) -> Vec<(&'a str, &'a str)> {
        let modifiers = self.modifiers.iter().copied();
        modifiers.filter(|(name, _)| *name != "as").collect()
    }
}

/// How much it is to send these fields of one node.
pub(super) fn weight(fields: &[Field<'_>]) -> usize {
    let of = |field: &Field<'_>| {
        let own = if field.modifiers.is_empty() {
            1
        } else {
            EDGE_WEIGHT
        };
        own + weight(&field.fields)
    };
    fields.iter().map(of).sum()
}

/// Reads fields; none if they are not written as fields are.
pub(super) fn read(text: &str) -> Option<Vec<Field<'_>>> {
    let mut reader = Reader { rest: text };
    let fields = reader.fields(0)?;
    reader.rest.is_empty().then_some(fields)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn fields(&mut self, depth: usize) -> Option<Vec<Field<'a>>> {
        let mut fields = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with('}') {
            fields.push(self.field(depth)?);
            if !self.takes(',') {
                break;
            }
        }
        Some(fields)
    }

    fn field(&mut self, depth: usize) -> Option<Field<'a>> {
        let mut field = Field::plain(self.name()?);
        loop {
            if self.takes('.') {
                let name = self.name()?;
                if !self.takes('(') {
                    return None;
                }
                let (value, rest) = self.rest.split_once(')')?;
                self.rest = rest;
                field.modifiers.push((name, value));
            } else if depth < DEPTH_MAX && self.takes('{') {
                field.fields = self.fields(depth + 1)?;
                if !self.takes('}') {
                    return None;
                }
            } else {
                return Some(field);
            }
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let text = self.rest.trim_start();
        let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn takes(&mut self, letter: char) -> bool {
        let rest = self.rest.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// What is asked of a list: by the parameters of a call, or by the modifiers of a field.
#[derive(Debug, Clone)]
pub(super) struct Asked<'a> {
    pub(super) parameters: Vec<(&'a str, &'a str)>,
    pub(super) fields: Vec<Field<'a>>,
}

impl<'a> Asked<'a> {
    pub(super) fn of_call(params: &'a Params, fields: Vec<Field<'a>>) -> Self {
        Self {
            parameters: params.all_pairs().collect(),
            fields,
        }
    }

    pub(super) fn of_field(field: &Field<'a>) -> Self {
        Self {
            parameters: field.modifiers(),
            fields: field.fields.clone(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut found = self.parameters.iter().filter(|(key, _)| *key == name);
        found.next_back().map(|(_, value)| *value)
    }

    pub(super) fn has_summary(&self) -> bool {
        !matches!(self.get("summary"), None | Some("" | "0" | "false"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_modifiers_and_fields_of_their_own() {
        let text = "id,from{id,name},reactions.type(LOVE).limit(0).summary(total_count).as(love)";
        let fields = read(text).unwrap();
        let names: Vec<&str> = fields.iter().map(Field::label).collect();
        assert_eq!(names, ["id", "from", "love"]);
        assert_eq!(fields[1].fields.len(), 2);
        assert_eq!(fields[2].modifier("type"), Some("LOVE"));
        assert_eq!(weight(&fields), 1 + 3 + 5);
    }

    #[test]
    fn what_is_not_closed_is_no_list_of_fields() {
        for text in ["from{id", "comments.limit(3", "id}", "a..b", "id,,name"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(""), Some(Vec::new()));
    }
}
