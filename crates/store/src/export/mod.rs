//! A crawl as files for other programs: JSON lines or CSV, out and in again.
//!
//! Rows come one by one out of one view of the store ([`crate::Store::export`]) and go into a
//! [`RowSink`]; nothing ever holds a table. What [`ExportWriter`] writes, [`Importer`] reads and
//! hands to a store in commits. `docs/export.md` describes every column.

mod csv;
mod import;
mod input;
mod json;
mod jsonl;
mod log;
mod object;
mod output;
mod reference;
mod row;
mod tables;
mod time;

pub use import::{ImportReport, Importer};
pub use input::{ImportError, Input};
pub use output::{Compression, CsvStyle, Destination, ExportFormat, ExportWriter};
pub use row::{Field, RowSink};
pub use tables::{ExportColumn, ExportTable, Form};

pub(crate) use json::on_one_line;
pub(crate) use log::{log_from_file, log_in_export};
pub(crate) use object::{
    Iso, Kind, KindObject, KindWord, Observed, ObservedGroup, observed_json, usual_kind,
};
pub(crate) use reference::{
    Named, only_alias, parse as parse_reference, to_text as reference_text,
};
pub(crate) use tables::{Part, PartForm};
pub(crate) use time::iso;

use crate::StoreError;
use kittiwake_model::WorldTime;
use std::collections::BTreeMap;

/// What is to be exported.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// In this order.
    pub tables: Vec<ExportTable>,
    /// Only rows that were observed or seen at this time or later.
    pub since: Option<WorldTime>,
}

/// What was exported: rows by table.
pub type Exported = BTreeMap<ExportTable, u64>;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was asked for cannot be: several tables in one CSV file, a file that exists.
    #[error("{0}")]
    Refused(String),
    #[error("{place}: cannot be written: {error}")]
    Write {
        place: String,
        error: std::io::Error,
    },
}

impl ExportError {
    /// Whether the reader of a pipe has gone away, as `head` does when it has seen enough.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { error, .. } if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}
