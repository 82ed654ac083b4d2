//! The proof that an expression ends, and how large its result can be.
//!
//! There is no recursion in the subset, so that every expression ends; what is left to bound is
//! growth, for a pipe of doublings is exponential in its length. For every term we compute
//! *degree* and *factor*: for an input of n bytes, all its results together have at most
//! factor · n^degree bytes. Only degree 1 and a bounded factor are let through.

use super::{FUNCTIONS, GROWTH_MAX, HOST_VARIABLE};
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::ops::Math;
use jaq_core::path::Part;

/// An upper bound of the size of all results of a term.
#[derive(Debug, Clone, Copy)]
struct Growth {
    /// Whether there can be more than one result.
    is_many: bool,
    factor: f64,
    degree: u32,
}

impl Growth {
    const INPUT: Self = Self::single(1.0, 1);

    const fn single(factor: f64, degree: u32) -> Self {
        Self {
            is_many: false,
            factor,
            degree,
        }
    }

    const fn constant(factor: f64) -> Self {
        Self::single(factor, 0)
    }

    fn many(self) -> Self {
        Self {
            is_many: true,
            ..self
        }
    }

    /// Both results beside one another.
    fn either(self, other: Self) -> Self {
        Self {
            is_many: self.is_many || other.is_many,
            factor: self.factor + other.factor,
            degree: self.degree.max(other.degree),
        }
    }

    /// Every result of one combined with every result of the other.
    fn combined(self, other: Self) -> Self {
        if !self.is_many && !other.is_many {
            return self.either(other);
        }
        Self {
            is_many: true,
            factor: 2.0 * self.factor * other.factor,
            degree: self.degree + other.degree,
        }
    }

    /// Every result of this one as the input of `next`.
    fn piped(self, next: Self) -> Self {
        let degree_least = if self.is_many { self.degree } else { 0 };
        Self {
            is_many: self.is_many || next.is_many,
            factor: next.factor * self.factor.powi(next.degree.max(1) as i32).max(1.0),
            degree: (self.degree * next.degree).max(degree_least),
        }
    }

    fn scaled(self, factor: f64) -> Self {
        Self {
            factor: self.factor * factor,
            ..self
        }
    }
}

/// Checks the whole expression; the error says what is not allowed.
pub(super) fn check(term: &Term<&str>) -> Result<(), String> {
    let growth = growth_of(term)?;
    if growth.degree > 1 {
        return Err("its result could grow with the square of its input".to_owned());
    }
    if growth.factor > GROWTH_MAX {
        return Err(format!(
            "its result could be {:.0} times as large as its input",
            growth.factor
        ));
    }
    Ok(())
}

fn refuse<T>(what: &str) -> Result<T, String> {
    Err(format!("{what} is not allowed in an expression"))
}

fn growth_of(term: &Term<&str>) -> Result<Growth, String> {
    match term {
        Term::Id => Ok(Growth::INPUT),
        Term::Num(digits) => Ok(Growth::constant(digits.len() as f64)),
        Term::Str(format, parts) => string_growth(*format, parts),
        Term::Arr(None) => Ok(Growth::constant(2.0)),
        Term::Arr(Some(inner)) => {
            let inner = growth_of(inner)?;
            Ok(Growth::single(inner.factor + 2.0, inner.degree))
        }
        Term::Obj(entries) => object_growth(entries),
        Term::Neg(inner) => growth_of(inner),
        Term::BinOp(left, operation, right) => operation_growth(left, operation, right),
        Term::TryCatch(inner, handler) => {
            let inner = growth_of(inner)?.many();
            match handler {
                Some(handler) => Ok(inner.either(growth_of(handler)?)),
                None => Ok(inner),
            }
        }
        Term::IfThenElse(branches, otherwise) => {
            let mut whole = match otherwise {
                Some(otherwise) => growth_of(otherwise)?,
                None => Growth::INPUT,
            };
            for (condition, branch) in branches {
                let condition = growth_of(condition)?;
                if condition.is_many {
                    return refuse("a condition with several results");
                }
                whole = whole.either(growth_of(branch)?);
            }
            Ok(whole)
        }
        Term::Call(name, arguments) => call_growth(name, arguments),
        Term::Var(name) if *name == HOST_VARIABLE => Ok(Growth::constant(64.0)),
        Term::Var(name) => refuse(&format!("the variable {name}")),
        Term::Path(base, path) => {
            let mut growth = growth_of(base)?;
            for (part, _) in &path.0 {
                match part {
                    Part::Range(None, None) => growth = growth.many(),
                    Part::Index(index) => constant_index(Some(index))?,
                    Part::Range(from, upto) => {
                        constant_index(from.as_ref())?;
                        constant_index(upto.as_ref())?;
                    }
                }
            }
            // A missing key and `?` can both lead to other than one result.
            Ok(growth)
        }
        Term::Recurse => refuse("`..`"),
        Term::Label(..) | Term::Break(_) => refuse("`label`"),
        Term::Fold(word, ..) => refuse(&format!("`{word}`")),
        Term::Def(..) => refuse("`def`"),
    }
}

fn constant_index(index: Option<&Term<&str>>) -> Result<(), String> {
    match index {
        None | Some(Term::Num(_)) => Ok(()),
        Some(Term::Neg(inner)) if matches!(**inner, Term::Num(_)) => Ok(()),
        Some(Term::Str(None, parts))
            if parts.iter().all(|part| !matches!(part, StrPart::Term(_))) =>
        {
            Ok(())
        }
        Some(_) => refuse("an index that is not a constant"),
    }
}

fn string_growth(
    format: Option<&str>,
    parts: &[StrPart<&str, Term<&str>>],
) -> Result<Growth, String> {
    if let Some(format) = format {
        return refuse(&format!("the format {format}"));
    }
    let mut whole = Growth::constant(2.0);
    for part in parts {
        let part = match part {
            StrPart::Str(text) => Growth::constant(text.len() as f64),
            StrPart::Char(_) => Growth::constant(4.0),
            // A container inside a string is written with escapes.
            StrPart::Term(term) => growth_of(term)?.scaled(2.0),
        };
        whole = whole.combined(part);
    }
    Ok(whole)
}

fn object_growth(entries: &[(Term<&str>, Option<Term<&str>>)]) -> Result<Growth, String> {
    let mut whole = Growth::constant(2.0);
    for (key, value) in entries {
        let key_growth = growth_of(key)?;
        let value_growth = match value {
            Some(value) => growth_of(value)?,
            None => Growth::INPUT,
        };
        whole = whole.combined(key_growth).combined(value_growth);
    }
    Ok(whole)
}

fn operation_growth(
    left: &Term<&str>,
    operation: &BinaryOp<&str>,
    right: &Term<&str>,
) -> Result<Growth, String> {
    let (left_growth, right_growth) = (growth_of(left)?, growth_of(right)?);
    match operation {
        BinaryOp::Pipe(None) => Ok(left_growth.piped(right_growth)),
        BinaryOp::Pipe(Some(_)) => refuse("a variable (`as $name`)"),
        BinaryOp::Comma => Ok(left_growth.either(right_growth).many()),
        BinaryOp::Alt => Ok(left_growth.either(right_growth)),
        // A text times a number repeats the text, so that both sides have to be numbers.
        BinaryOp::Math(Math::Mul) if !(is_number(left) && is_number(right)) => {
            Err("`*` is allowed between numbers only: write `(.x | tonumber) * 1000`".to_owned())
        }
        BinaryOp::Or | BinaryOp::And | BinaryOp::Cmp(_) | BinaryOp::Math(_) => {
            Ok(left_growth.combined(right_growth))
        }
        BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
            refuse("an assignment")
        }
    }
}

/// Whether a term can only give numbers.
fn is_number(term: &Term<&str>) -> bool {
    match term {
        Term::Num(_) => true,
        Term::Neg(inner) => is_number(inner),
        Term::BinOp(_, BinaryOp::Pipe(None), right) => is_number(right),
        Term::BinOp(left, BinaryOp::Math(_), right) => is_number(left) && is_number(right),
        Term::Call(name, _) => matches!(*name, "tonumber" | "length" | "floor" | "round" | "ceil"),
        _ => false,
    }
}

fn call_growth(name: &str, arguments: &[Term<&str>]) -> Result<Growth, String> {
    if !FUNCTIONS.contains(&(name, arguments.len())) {
        let known = FUNCTIONS.iter().any(|(known, _)| *known == name);
        let how = if known { "with so many arguments" } else { "" };
        return refuse(format!("the function `{name}` {how}").trim());
    }
    let argument = match arguments.first() {
        Some(argument) => growth_of(argument)?,
        None => Growth::constant(0.0),
    };
    let constant_argument = || {
        if argument.degree == 0 && !argument.is_many {
            Ok(())
        } else {
            refuse(&format!("an argument of `{name}` that is not a constant"))
        }
    };
    match name {
        "map" => {
            let each = Growth::INPUT.many().piped(argument);
            Ok(Growth::single(each.factor + 2.0, each.degree))
        }
        "select" | "any" | "all" => {
            if argument.is_many {
                return refuse(&format!("a condition of `{name}` with several results"));
            }
            Ok(Growth {
                is_many: name == "select",
                ..Growth::INPUT
            })
        }
        "empty" => Ok(Growth::constant(0.0).many()),
        "true" | "false" | "null" => Ok(Growth::constant(5.0)),
        "join" => {
            constant_argument()?;
            Ok(Growth::single(2.0 + argument.factor, 1))
        }
        "contains" | "endswith" | "has" | "ltrimstr" | "rtrimstr" | "split" | "startswith" => {
            constant_argument()?;
            Ok(Growth::single(4.0, 1))
        }
        "list" => Ok(Growth::single(3.0, 1)),
        "to_entries" => Ok(Growth::single(24.0, 1)),
        "tojson" | "tostring" => Ok(Growth::single(2.0, 1)),
        _ => Ok(Growth::single(1.5, 1)),
    }
}
