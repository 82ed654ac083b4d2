//! What PostgreSQL says in other words than the rules do.

/// Puts a statement of the rules into PostgreSQL's words: `$1` for `?1`, `least(a, b)` for
/// `min(a, b)`, `greatest(a, b)` for `max(a, b)`. What stands in quotes stays as it is.
pub(super) fn translated(sql: &str) -> String {
    let mut translated = String::with_capacity(sql.len() + 16);
    let mut rest = sql;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '\'' | '"' => {
                let quoted = quoted(rest, next);
                translated.push_str(&rest[..quoted]);
                quoted
            }
            '?' => {
                translated.push('$');
                1
            }
            _ if next.is_ascii_alphanumeric() || next == '_' => {
                let end =
                    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let end = end.unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                translated.push_str(match word {
                    "min" if has_several_arguments(after) => "least",
                    "max" if has_several_arguments(after) => "greatest",
                    word => word,
                });
                end
            }
            _ => {
                translated.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    translated
}

/// The length of what begins with a quote, up to and with the quote that ends it.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Whether a call begins here whose arguments are several.
fn has_several_arguments(text: &str) -> bool {
    if !text.starts_with('(') {
        return false;
    }
    let mut depth = 0;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let mut taken = next.len_utf8();
        match next {
            '\'' | '"' => taken = quoted(rest, next),
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return false;
                }
            }
            ',' if depth == 1 => return true,
            _ => {}
        }
        rest = &rest[taken..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_their_sign() {
        assert_eq!(
            translated("SELECT a FROM b WHERE c = ?1 AND d > ?12"),
            "SELECT a FROM b WHERE c = $1 AND d > $12"
        );
    }

    #[test]
    fn the_lesser_of_two_is_told_from_the_least_of_a_column() {
        for (sql, wanted) in [
            ("min(a)", "min(a)"),
            ("min(a, ?1)", "least(a, $1)"),
            ("sum(max(a - b, 0))", "sum(greatest(a - b, 0))"),
            (
                "max(coalesce(a, b), coalesce(b, a))",
                "greatest(coalesce(a, b), coalesce(b, a))",
            ),
            ("max(coalesce(a, b))", "max(coalesce(a, b))"),
            (
                "1 + max((SELECT max(key) FROM ids), 0)",
                "1 + greatest((SELECT max(key) FROM ids), 0)",
            ),
            ("depth_min(a, b)", "depth_min(a, b)"),
            ("min", "min"),
        ] {
            assert_eq!(translated(sql), wanted);
        }
    }

    #[test]
    fn what_is_quoted_stays_as_it_is() {
        for sql in [
            "'?1 min(a, b)'",
            "\"min(a, b)\"",
            "min(')', 'a')",
            "'o''hara ?1'",
            "'never ended ?1",
            "é ⁂",
        ] {
            let wanted = sql.replace("min(')', 'a')", "least(')', 'a')");
            assert_eq!(translated(sql), wanted);
        }
    }
}
