//! One row on its way out.

use super::{ExportError, ExportTable};
use std::borrow::Cow;

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Field<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Always finite.
    Real(f64),
    Text(Cow<'a, str>),
    /// JSON on one line.
    Json(Cow<'a, str>),
}

impl<'a> Field<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }
}

/// Where rows go, one by one. Nobody behind it may keep more than a row.
pub trait RowSink: std::fmt::Debug + Send {
    /// A table begins.
    fn begin(&mut self, table: ExportTable) -> Result<(), ExportError>;

    /// The next row of the table that began last, in the order of its columns.
    fn row(&mut self, row: &[Field<'_>]) -> Result<(), ExportError>;

    /// All tables are through. Without this call nothing counts as written.
    fn finish(&mut self) -> Result<(), ExportError>;

    /// Whether an empty text looks like nothing at all, so that it has to be told apart.
    fn hides_empty_text(&self) -> bool;

    /// Whether calls are wanted by the numbers that the store keeps them under, which tells its own
    /// from those of others; only another store can read those.
    fn keeps_calls(&self) -> bool {
        false
    }
}
