//! How PostgreSQL says what views need.

use crate::rules::views::{Told, Words, views};
use std::fmt::Write as _;

const WORDS: Words = Words { iso, of_each_key };

/// Microseconds as ISO text. PostgreSQL's own times end before ours do, so what is beyond them is
/// shown as nothing; the fraction is put behind whole seconds, because a sum of floats would be off.
fn iso(expression: &str) -> String {
    format!(
        "CASE WHEN {expression} BETWEEN -62135596800000000 AND 253402300799999999 THEN \
         to_char(timestamp '1970-01-01' + (({expression} - mod(mod({expression}, 1000000) + 1000000, \
         1000000)) / 1000000) * interval '1 second', 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || \
         lpad(mod(mod({expression}, 1000000) + 1000000, 1000000)::text, 6, '0') || 'Z' END"
    )
}

fn of_each_key(column: &str, told: Told) -> String {
    format!(
        "(SELECT string_agg({}, ' ' ORDER BY listed.place) FROM \
         jsonb_array_elements_text({column}::jsonb) WITH ORDINALITY AS listed(key, place))",
        told("listed.key::bigint")
    )
}

/// What makes all views anew. How the server has kept their text cannot be compared with ours, so
/// this is remembered as a whole.
pub(super) fn refresh() -> String {
    let mut sql = String::new();
    for (name, query) in views(WORDS) {
        let _ = writeln!(
            sql,
            "DROP VIEW IF EXISTS {name};\nCREATE VIEW {name} AS {query};"
        );
    }
    sql
}
