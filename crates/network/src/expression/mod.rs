//! Expressions: a total subset of jq.
//!
//! Only this folder knows jaq. An expression is checked when a definition is loaded (see
//! `check.rs`): no loops, no recursion, no environment, and its result is at most a fixed factor
//! larger than its input. It sees the slice of its own object and nothing else.

mod check;
mod run;
mod uses;

pub(crate) use run::Expression;

/// The functions that expressions may call, with how many arguments. `docs/definition-format.md`
/// lists them.
pub(crate) const FUNCTIONS: &[(&str, usize)] = &[
    ("add", 0),
    ("all", 0),
    ("all", 1),
    ("any", 0),
    ("any", 1),
    ("ascii_downcase", 0),
    ("ascii_upcase", 0),
    ("ceil", 0),
    ("contains", 1),
    ("downcase", 0),
    ("empty", 0),
    ("endswith", 1),
    ("false", 0),
    ("first", 0),
    ("floor", 0),
    ("has", 1),
    ("join", 1),
    ("keys", 0),
    ("last", 0),
    ("length", 0),
    ("list", 0),
    ("ltrimstr", 1),
    ("map", 1),
    ("not", 0),
    ("null", 0),
    ("reverse", 0),
    ("round", 0),
    ("rtrimstr", 1),
    ("select", 1),
    ("sort", 0),
    ("split", 1),
    ("startswith", 1),
    ("to_entries", 0),
    ("tojson", 0),
    ("tonumber", 0),
    ("tostring", 0),
    ("trim", 0),
    ("true", 0),
    ("type", 0),
    ("unique", 0),
];

/// The one variable: the host that was asked.
pub(crate) const HOST_VARIABLE: &str = "$host";

/// The longest expression, in bytes. Bounds the depth of its syntax tree as well.
pub(crate) const LENGTH_MAX: usize = 1_000;
/// Brackets within brackets.
const NESTING_MAX: usize = 24;
/// How many times larger than its input a result may be.
const GROWTH_MAX: f64 = 256.0;

/// The names of the functions that expressions may call.
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}
