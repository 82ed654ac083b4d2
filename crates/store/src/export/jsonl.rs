//! Rows as lines of JSON.

use super::json::quoted;
use super::{ExportTable, Field};
use std::io::{self, Write};

/// Writes one row as one line: `{"table":"users","network":…}`.
pub(super) fn write_row(
    out: &mut impl Write,
    table: ExportTable,
    names: &[String],
    row: &[Field<'_>],
) -> io::Result<()> {
    write!(out, "{{\"table\":\"{}\"", table.name())?;
    for (name, field) in names.iter().zip(row) {
        out.write_all(b",")?;
        out.write_all(name.as_bytes())?;
        out.write_all(b":")?;
        match field {
            Field::Null => out.write_all(b"null")?,
            Field::Boolean(flag) => write!(out, "{flag}")?,
            Field::Integer(number) => write!(out, "{number}")?,
            Field::Real(number) => serde_json::to_writer(&mut *out, number)?,
            Field::Text(text) => serde_json::to_writer(&mut *out, text)?,
            Field::Json(json) => out.write_all(json.as_bytes())?,
        }
    }
    out.write_all(b"}\n")
}

/// The names of a table's columns as they stand in a line.
pub(super) fn names(table: ExportTable) -> Vec<String> {
    let columns = table.columns();
    columns.iter().map(|column| quoted(column.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_whatever_is_in_it() {
        let row = [
            Field::text("net"),
            Field::Null,
            Field::text("a \"quoted\"\r\nline\u{2028}🐦"),
            Field::Json("{\"a\":[1,2]}".into()),
            Field::Integer(i64::MIN),
            Field::Real(0.1),
            Field::Boolean(true),
        ];
        let names: Vec<String> = ["a", "b", "c", "d", "e", "f", "g"].map(quoted).into();
        let mut out = Vec::new();
        write_row(&mut out, ExportTable::Users, &names, &row).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert_eq!(
            line,
            "{\"table\":\"users\",\"a\":\"net\",\"b\":null,\
             \"c\":\"a \\\"quoted\\\"\\r\\nline\u{2028}🐦\",\"d\":{\"a\":[1,2]},\
             \"e\":-9223372036854775808,\"f\":0.1,\"g\":true}\n"
        );
    }
}
