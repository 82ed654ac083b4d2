//! Rows as CSV (RFC 4180): a header, then one record for each row.

use super::tables::{ExportColumn, Form};
use super::{CsvStyle, ExportTable, Field};
use ::csv::{ErrorKind, Terminator, Writer, WriterBuilder};
use std::borrow::Cow;
use std::io::{self, Write};

/// By this a spreadsheet takes a file for UTF-8.
pub(super) const BYTE_ORDER_MARK: &str = "\u{FEFF}";
/// A spreadsheet takes no longer text in a formula.
const FORMULA_TEXT_MAX: usize = 255;

/// A writer that has written the header.
pub(super) fn begin<W: Write>(
    mut out: W,
    table: ExportTable,
    style: CsvStyle,
) -> io::Result<Writer<W>> {
    if style.excel {
        out.write_all(BYTE_ORDER_MARK.as_bytes())?;
    }
    let terminator = if style.excel {
        Terminator::CRLF
    } else {
        Terminator::Any(b'\n')
    };
    let mut writer = WriterBuilder::new().terminator(terminator).from_writer(out);
    let header = table.columns();
    let header = header.iter().map(|column| column.name);
    writer.write_record(header).map_err(io_error)?;
    Ok(writer)
}

pub(super) fn write_row<W: Write>(
    writer: &mut Writer<W>,
    columns: &[ExportColumn],
    row: &[Field<'_>],
    style: CsvStyle,
) -> io::Result<()> {
    for (column, field) in columns.iter().zip(row) {
        let cell = cell(*column, field, style);
        writer.write_field(cell.as_bytes()).map_err(io_error)?;
    }
    // An empty record ends the row.
    writer.write_record(None::<&[u8]>).map_err(io_error)
}

/// The failure itself, so that a pipe that was closed can be told from a disk that is full.
fn io_error(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn cell<'a>(column: ExportColumn, field: &'a Field<'_>, style: CsvStyle) -> Cow<'a, str> {
    match field {
        Field::Null => Cow::Borrowed(""),
        Field::Boolean(flag) => flag.to_string().into(),
        Field::Integer(number) => number.to_string().into(),
        Field::Real(number) => serde_json::to_string(number).unwrap_or_default().into(),
        Field::Text(text) if style.excel && column.form == Form::Id => kept_text(text),
        Field::Text(text) | Field::Json(text) if style.guard_formulas => guarded(text),
        Field::Text(text) | Field::Json(text) => Cow::Borrowed(text),
    }
}

/// A text that a spreadsheet must not read as a number: `="…"`.
fn kept_text(text: &str) -> Cow<'_, str> {
    if text.chars().count() > FORMULA_TEXT_MAX && unwrapped(text).is_none() {
        return Cow::Borrowed(text);
    }
    format!("=\"{}\"", text.replace('"', "\"\"")).into()
}

/// What [`kept_text`] wrapped.
pub(super) fn unwrapped(text: &str) -> Option<String> {
    let inner = text.strip_prefix("=\"")?.strip_suffix('"')?;
    Some(inner.replace("\"\"", "\""))
}

/// A text that a spreadsheet must not run.
fn guarded(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("'{text}").into();
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: CsvStyle = CsvStyle {
        excel: false,
        guard_formulas: false,
    };

    fn written(style: CsvStyle, text: &str) -> String {
        let columns = [
            ExportColumn {
                name: "id",
                form: Form::Id,
            },
            ExportColumn {
                name: "text",
                form: Form::Text,
            },
        ];
        let row = [Field::text("0123"), Field::text(text)];
        let mut writer = WriterBuilder::new().from_writer(Vec::new());
        write_row(&mut writer, &columns, &row, style).unwrap();
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    }

    #[test]
    fn quotes_commas_and_line_breaks_are_quoted() {
        assert_eq!(
            written(STYLE, "a \"b\", c\r\nd"),
            "0123,\"a \"\"b\"\", c\r\nd\"\n"
        );
        assert_eq!(written(STYLE, "=1+1"), "0123,=1+1\n");
    }

    #[test]
    fn a_spreadsheet_keeps_ids_and_runs_nothing_if_it_is_asked_to() {
        let excel = CsvStyle {
            excel: true,
            guard_formulas: true,
        };
        assert_eq!(written(excel, "=1+1"), "\"=\"\"0123\"\"\",'=1+1\n");
        assert_eq!(kept_text(&"x".repeat(256)), "x".repeat(256));
    }

    #[test]
    fn what_was_kept_for_a_spreadsheet_can_be_had_back() {
        let long = format!("=\"{}\"", "x".repeat(300));
        for id in ["12", "a\"b", "=\"x\"", "\"", &long] {
            assert_eq!(unwrapped(&kept_text(id)).as_deref(), Some(id));
        }
    }

    #[test]
    fn a_closed_pipe_is_told_from_other_failures() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = begin(Closed, ExportTable::Ids, STYLE).unwrap();
        let columns = ExportTable::Ids.columns();
        let row = vec![Field::text("x".repeat(10_000)); columns.len()];
        let error = write_row(&mut writer, &columns, &row, STYLE).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn the_header_comes_first_and_only_once() {
        let writer = begin(Vec::new(), ExportTable::UserTags, STYLE).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        assert_eq!(
            text,
            "user_network,user_type,user,tag_network,tag_type,tag,first_seen,last_seen\n"
        );
    }
}
