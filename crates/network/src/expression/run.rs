//! Compiling and running.

use super::{FUNCTIONS, HOST_VARIABLE, LENGTH_MAX, NESTING_MAX, check, uses};
use crate::json;
use crate::path::Keys;
use jaq_core::data::JustLut;
use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Lexer, Loader, Parser};
use jaq_core::native::{bome, run as native, v};
use jaq_core::{Compiler, Ctx, Error, Filter, RunPtr, Vars, unwrap_valr};
use jaq_json::{Val, read};
use std::fmt;

type Data = JustLut<Val>;

/// The largest input, in bytes.
const INPUT_BYTES_MAX: usize = 1 << 20;
/// The largest result, in bytes.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// A checked and compiled expression.
pub(crate) struct Expression {
    text: String,
    filter: Filter<Data>,
    uses: Vec<Keys>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Expression")
            .field(&self.text)
            .finish()
    }
}

/// Why an expression gave no result for one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpressionFault {
    /// The input is too large or too deep.
    Input,
    /// It failed on this input.
    Failed,
    /// The result is too large, or no JSON.
    Output,
}

impl Expression {
    /// Compiles an expression; the error says what is wrong with it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("the expression is longer than {LENGTH_MAX} bytes"));
        }
        if nesting(text) > NESTING_MAX {
            return Err(format!("brackets are nested more than {NESTING_MAX} deep"));
        }
        let uses = with_term(text, |term| {
            check::check(term)?;
            Ok(uses::uses_of(term))
        })?;
        let arena = Arena::default();
        let file = File {
            code: text,
            path: (),
        };
        let modules = Loader::new(definitions())
            .load(&arena, file)
            .map_err(|_| "it is no valid jq".to_owned())?;
        let filter = Compiler::default()
            .with_funs(functions())
            .with_global_vars([HOST_VARIABLE])
            .compile(modules)
            .map_err(|errors| {
                let names = errors.iter().flat_map(|(_, faults)| faults);
                let names: Vec<&str> = names.map(|(name, _)| *name).collect();
                format!("it names something that is not there: {}", names.join(", "))
            })?;
        Ok(Self {
            text: text.to_owned(),
            filter,
            uses,
        })
    }

    /// The paths of the object that the expression looks at.
    pub(crate) fn uses(&self) -> &[Keys] {
        &self.uses
    }

    /// The first result, as JSON text; `None` when there is none.
    pub(crate) fn run(&self, input: &str, host: &str) -> Result<Option<String>, ExpressionFault> {
        if input.len() > INPUT_BYTES_MAX || json::depth(input) > json::DEPTH_MAX {
            return Err(ExpressionFault::Input);
        }
        let input = read::parse_single(input.as_bytes()).map_err(|_| ExpressionFault::Input)?;
        let host = Val::from(host.to_owned());
        let context = Ctx::<Data>::new(&self.filter.lut, Vars::new([host]));
        let Some(result) = self.filter.id.run((context, input)).map(unwrap_valr).next() else {
            return Ok(None);
        };
        let output = result.map_err(|_| ExpressionFault::Failed)?.to_string();
        let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&output).is_ok();
        if output.len() > OUTPUT_BYTES_MAX || !is_json {
            return Err(ExpressionFault::Output);
        }
        Ok(Some(output))
    }
}

fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn with_term<T>(
    text: &str,
    then: impl FnOnce(&Term<&str>) -> Result<T, String>,
) -> Result<T, String> {
    let tokens = Lexer::new(text)
        .lex()
        .map_err(|errors| match errors.first() {
            Some((expected, at)) => {
                format!("expected {} before {}", expected.as_str(), excerpt(at))
            }
            None => "it cannot be read".to_owned(),
        })?;
    let term = Parser::new(&tokens)
        .parse(Parser::term)
        .map_err(|errors| match errors.first() {
            Some((expected, Some(found))) => {
                format!("expected {} before {}", expected.as_str(), excerpt(found.0))
            }
            Some((expected, None)) => format!("expected {} at the end", expected.as_str()),
            None => "it cannot be read".to_owned(),
        })?;
    then(&term)
}

fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(20).collect();
    if short.is_empty() {
        "the end".to_owned()
    } else {
        format!("{short:?}")
    }
}

/// Definitions written in jq, cut down to those that allowed functions need.
fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    // What the allowed functions are made of.
    const PARTS: &[&str] = &[
        "error",
        "group_by",
        "isempty",
        "isboolean",
        "isstring",
        "isarray",
        "isobject",
        "unique_by",
        "key_values",
        "tostring",
        "add",
        "any",
        "all",
    ];
    let is_needed = |definition: &Def<&'static str>| {
        let name = definition.name;
        // The other `split` is one of regular expressions.
        if name == "split" && definition.args.len() > 1 {
            return false;
        }
        PARTS.contains(&name) || FUNCTIONS.iter().any(|(known, _)| *known == name)
    };
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        // The library's `tonumber` parses any JSON, without a bound on its depth.
        .filter(move |definition| is_needed(definition) && definition.name != "tonumber")
}

fn functions() -> impl Iterator<Item = jaq_core::native::Fun<Data>> {
    let to_number: (&'static str, _, RunPtr<Data>) = ("tonumber", v(0), |cv| {
        bome(match cv.1 {
            number @ Val::Num(_) => Ok(number),
            Val::TStr(digits) => match read::parse_single_num(&digits) {
                Some(number) => Ok(Val::Num(number)),
                None => Err(Error::str("no number")),
            },
            _ => Err(Error::str("no number")),
        })
    });
    // jq itself knows only the letters of ASCII.
    let down_case: (&'static str, _, RunPtr<Data>) = ("downcase", v(0), |cv| {
        bome(match cv.1 {
            Val::TStr(text) => Ok(Val::from(String::from_utf8_lossy(&text).to_lowercase())),
            _ => Err(Error::str("no text")),
        })
    });
    // XML writes one child and many differently.
    let list: (&'static str, _, RunPtr<Data>) = ("list", v(0), |cv| {
        bome(Ok(match cv.1 {
            items @ Val::Arr(_) => items,
            Val::Null => std::iter::empty().collect(),
            one => std::iter::once(one).collect(),
        }))
    });
    jaq_core::funs::<Data>()
        .chain(jaq_std::base_funs::<Data>())
        .chain(jaq_json::funs::<Data>())
        .chain([to_number, down_case, list].map(native::<Data>))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn evaluate(text: &str, input: &str) -> Option<String> {
        Expression::compile(text)
            .unwrap()
            .run(input, "example.org")
            .unwrap()
    }

    #[test]
    fn expressions_compute() {
        for (text, input, expected) in [
            (".a + 1", r#"{"a":2}"#, "3"),
            (
                "if .acct | contains(\"@\") then .acct else \"\\(.acct)@\\($host)\" end",
                r#"{"acct":"me"}"#,
                r#""me@example.org""#,
            ),
            (
                "[.tags[] | .name | ascii_downcase]",
                r#"{"tags":[{"name":"Sea"}]}"#,
                r#"["sea"]"#,
            ),
            (".a.b // .c // \"none\"", "{}", r#""none""#),
            (
                "{id, n: (.list | length)}",
                r#"{"id":9007199254740993,"list":[1,2]}"#,
                r#"{"id":9007199254740993,"n":2}"#,
            ),
            ("(.ms | tonumber) * 1000", r#"{"ms":"12"}"#, "12000"),
            (
                "[.a[] | select(.ok) | .v] | join(\", \")",
                r#"{"a":[{"ok":true,"v":"x"},{"v":"y"}]}"#,
                r#""x""#,
            ),
            (
                "[.a[] | downcase]",
                r#"{"a":["ÄB","Птицы","İ"]}"#,
                r#"["äb","птицы","i̇"]"#,
            ),
            (
                "[.a, .b, .c, .d | list | length]",
                r#"{"a":[1,2],"b":"x","c":{"k":1}}"#,
                "[2,1,1,0]",
            ),
            (
                ".link | list | map(select(.[\"@rel\"] == \"self\") | .[\"@href\"]) | first",
                r#"{"link":{"@rel":"self","@href":"x"}}"#,
                r#""x""#,
            ),
            (".a | split(\"/\") | last", r#"{"a":"x/y"}"#, r#""y""#),
            (".a | unique | reverse | first", r#"{"a":[1,3,3,2]}"#, "3"),
            (
                "[.a[] | type]",
                r#"{"a":[1,"x",null,{},[],true]}"#,
                r#"["number","string","null","object","array","boolean"]"#,
            ),
            (".a[1:3]", r#"{"a":"hello"}"#, r#""el""#),
            ("any(.[]; .)", "[false]", ""),
        ] {
            if expected.is_empty() {
                assert!(Expression::compile(text).is_err(), "{text}");
                continue;
            }
            assert_eq!(evaluate(text, input).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(evaluate("empty", "{}"), None);
    }

    #[test]
    fn whole_numbers_are_exact_at_any_length() {
        let input = r#"{"id":123456789012345678901234567890,"text":"9007199254740993","big":9007199254740993}"#;
        for (text, expected) in [
            (".id", "123456789012345678901234567890"),
            (".id | tostring", r#""123456789012345678901234567890""#),
            ("\"p\\(.id)\"", r#""p123456789012345678901234567890""#),
            (".id + 1", "123456789012345678901234567891"),
            (".id - 1", "123456789012345678901234567889"),
            (".id % 1000", "890"),
            ("(.text | tonumber) * 1000", "9007199254740993000"),
            ("(.text | tonumber) * 100000", "900719925474099300000"),
            (".big + 0", "9007199254740993"),
            ("[.big, .id] | sort | first", "9007199254740993"),
            (".big == 9007199254740992", "false"),
            (
                "{id} | tojson",
                r#""{\"id\":123456789012345678901234567890}""#,
            ),
            (".id | floor", "123456789012345678901234567890"),
            (".big | round", "9007199254740993"),
        ] {
            assert_eq!(evaluate(text, input).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn every_listed_function_exists() {
        for (name, arguments) in FUNCTIONS {
            let call = match arguments {
                0 => (*name).to_owned(),
                _ => format!("{name}(\"x\")"),
            };
            Expression::compile(&call).unwrap_or_else(|error| panic!("{call}: {error}"));
        }
    }

    #[test]
    fn what_may_not_end_or_may_grow_is_refused() {
        for (text, word) in [
            ("def f: f; f", "def"),
            ("reduce .[] as $x (0; . + 1)", "reduce"),
            ("foreach .[] as $x (0; . + 1)", "foreach"),
            ("..", ".."),
            ("[range(1e12)]", "range"),
            ("repeat(.)", "repeat"),
            ("env", "env"),
            ("$ENV", "$ENV"),
            ("input", "input"),
            ("[limit(3; .[])]", "limit"),
            ("recurse", "recurse"),
            (". as $x | $x", "variable"),
            (".a = 1", "assignment"),
            ("\"x\" * 1000000000", "numbers only"),
            (".x * 1000", "numbers only"),
            ("[.[] + .[]]", "square"),
            (
                "\"\\(.)\\(.)\" | \"\\(.)\\(.)\" | \"\\(.)\\(.)\" | \"\\(.)\\(.)\" | \"\\(.)\\(.)\"",
                "times",
            ),
            ("@base64", "base64"),
            ("halt", "halt"),
            ("fromjson", "fromjson"),
            ("label $x | .", "label"),
            ("$__loc__", "variable"),
            (".a.", "expected"),
            ("(", "expected"),
            ("", "expected"),
        ] {
            let error = Expression::compile(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(Expression::compile(&"(".repeat(900)).is_err());
        assert!(Expression::compile(&".a+".repeat(400)).is_err());
    }

    #[test]
    fn an_expression_names_the_parts_it_looks_at() {
        let uses = |text| {
            let expression = Expression::compile(text).unwrap();
            expression
                .uses()
                .iter()
                .map(|keys| keys.join("/"))
                .collect::<Vec<_>>()
        };
        assert_eq!(uses(".a.b + .c"), ["a/b", "c"]);
        assert_eq!(uses(".a | .b | length"), ["a/b"]);
        assert_eq!(uses("[.a[] | .b]"), ["a"]);
        assert_eq!(uses("if .x then .y else $host end"), ["x", "y"]);
        assert_eq!(uses("length"), [""]);
        assert_eq!(uses(". + 1"), [""]);
        assert_eq!(uses("{a: .b}"), ["b"]);
    }

    #[test]
    fn deep_and_failing_inputs_are_faults() {
        let expression = Expression::compile(".a | length").unwrap();
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(expression.run(&deep, ""), Err(ExpressionFault::Input));
        assert_eq!(
            expression.run("{\"a\":true}", ""),
            Err(ExpressionFault::Failed)
        );
        let to_number = Expression::compile(".a | tonumber").unwrap();
        let nested = json::quote(&"[".repeat(100_000));
        let input = format!("{{\"a\":{nested}}}");
        assert_eq!(to_number.run(&input, ""), Err(ExpressionFault::Failed));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[-.a$@()\\[\\]{}|,:;+*/<>=!?\"\\\\ 0-9]{0,40}") {
            if let Ok(expression) = Expression::compile(&text) {
                let _ = expression.run(r#"{"a":[1,"x",{"a":null}]}"#, "h");
            }
        }
    }
}
