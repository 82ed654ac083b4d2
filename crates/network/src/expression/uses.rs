//! Which parts of its object an expression looks at, so that only those are captured.

use crate::path::Keys;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::Part;

/// The paths that an expression uses, seen from its object. A path stands for all below it.
pub(super) fn uses_of(term: &Term<&str>) -> Vec<Keys> {
    let mut finder = Finder { used: Vec::new() };
    let result = finder.visit(term, Some(&Keys::new()));
    finder.keep(result);
    let mut used = finder.used;
    used.sort();
    used.dedup();
    used
}

struct Finder {
    used: Vec<Keys>,
}

impl Finder {
    fn keep(&mut self, place: Option<Keys>) {
        self.used.extend(place);
    }

    /// Visits a term whose input is what stands at `place` (`None`: something computed, whose
    /// origins are kept already). Returns where its own result stands.
    fn visit(&mut self, term: &Term<&str>, place: Option<&Keys>) -> Option<Keys> {
        match term {
            Term::Id => place.cloned(),
            Term::Path(base, path) => {
                let mut place = self.visit(base, place);
                for (part, _) in &path.0 {
                    match part {
                        Part::Index(Term::Str(None, parts)) if place.is_some() => {
                            let key: Option<String> = parts.iter().map(literal).collect();
                            match (key, &mut place) {
                                (Some(key), Some(place)) => place.push(key),
                                _ => self.keep(place.take()),
                            }
                        }
                        _ => self.keep(place.take()),
                    }
                }
                place
            }
            Term::BinOp(left, BinaryOp::Pipe(_), right) => {
                let between = self.visit(left, place);
                self.visit(right, between.as_ref())
            }
            Term::Call(name, arguments) => self.visit_call(name, arguments, place),
            _ => {
                for part in parts_of(term) {
                    let result = self.visit(part, place);
                    self.keep(result);
                }
                // `if` without `else` and `{name}` hand on their input.
                if matches!(term, Term::IfThenElse(_, None)) || has_short_key(term) {
                    self.keep(place.cloned());
                }
                None
            }
        }
    }

    fn visit_call(
        &mut self,
        name: &str,
        arguments: &[Term<&str>],
        place: Option<&Keys>,
    ) -> Option<Keys> {
        if matches!(name, "true" | "false" | "null" | "empty") {
            return None;
        }
        if name == "select" {
            for argument in arguments {
                let result = self.visit(argument, place);
                self.keep(result);
            }
            return place.cloned();
        }
        self.keep(place.cloned());
        for argument in arguments {
            let result = self.visit(argument, None);
            self.keep(result);
        }
        None
    }
}

fn literal(part: &StrPart<&str, Term<&str>>) -> Option<String> {
    match part {
        StrPart::Str(text) => Some((*text).to_owned()),
        StrPart::Char(character) => Some(character.to_string()),
        StrPart::Term(_) => None,
    }
}

fn has_short_key(term: &Term<&str>) -> bool {
    matches!(term, Term::Obj(entries) if entries.iter().any(|(_, value)| value.is_none()))
}

/// The terms directly within a term, all of which see its input.
fn parts_of<'t, 's>(term: &'t Term<&'s str>) -> Vec<&'t Term<&'s str>> {
    match term {
        Term::Str(_, parts) => parts
            .iter()
            .filter_map(|part| match part {
                StrPart::Term(term) => Some(term),
                _ => None,
            })
            .collect(),
        Term::Arr(Some(inner)) | Term::Neg(inner) => vec![inner],
        Term::Obj(entries) => entries
            .iter()
            .flat_map(|(key, value)| std::iter::once(key).chain(value))
            .collect(),
        Term::BinOp(left, _, right) => vec![left, right],
        Term::TryCatch(inner, handler) => std::iter::once(&**inner)
            .chain(handler.as_deref())
            .collect(),
        Term::IfThenElse(branches, otherwise) => branches
            .iter()
            .flat_map(|(condition, branch)| [condition, branch])
            .chain(otherwise.as_deref())
            .collect(),
        _ => Vec::new(),
    }
}
