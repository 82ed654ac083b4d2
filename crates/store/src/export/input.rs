//! Reading exports: untrusted, in bounded pieces, with line numbers for whoever has to mend them.

use super::csv::{BYTE_ORDER_MARK, unwrapped};
use super::reference::{self, shown};
use super::tables::{ExportColumn, Form};
use super::time::parse_stored;
use super::{ExportFormat, ExportTable, json};
use crate::StoreError;
use kittiwake_model::{Identity, WorldTime};
use serde::Deserialize as _;
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No row is longer: answers are bounded, and a row holds a part of one.
pub(super) const ROW_BYTES_MAX: usize = 64 << 20;

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{name}: {message}")]
    Input { name: String, message: String },
    /// A line that cannot be taken; whatever was committed before it stays.
    #[error("{name}: line {line}: {message}; {}", kept(*.committed))]
    Line {
        name: String,
        line: u64,
        message: String,
        /// The last line that was committed.
        committed: u64,
    },
}

fn kept(committed: u64) -> String {
    if committed == 0 {
        return "nothing of it was imported".to_owned();
    }
    format!("it was imported up to line {committed}, and can be imported again as a whole")
}

/// Something to import. What it is, and how it was packed, shows in its first bytes.
pub struct Input {
    pub(super) name: String,
    rows: Rows,
}

impl fmt::Debug for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Input")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

enum Rows {
    Lines(Lines),
    Records(Box<Records>),
}

type Source = Box<dyn Read + Send>;

impl Input {
    /// `name` is for messages. `table` is what a CSV file holds if its header does not tell.
    pub fn new(
        name: impl Into<String>,
        table: Option<ExportTable>,
        source: Box<dyn Read + Send>,
    ) -> Result<Self, ImportError> {
        let name = name.into();
        match open(source, table) {
            Ok(rows) => Ok(Self { name, rows }),
            Err(message) => Err(ImportError::Input { name, message }),
        }
    }

    pub fn format(&self) -> ExportFormat {
        match self.rows {
            Rows::Lines(_) => ExportFormat::Jsonl,
            Rows::Records(_) => ExportFormat::Csv,
        }
    }

    /// The next row, with its line and its size; an error comes with the line that it is in.
    pub(super) fn next(&mut self) -> Result<Option<(Place, InputRow<'_>)>, (u64, String)> {
        match &mut self.rows {
            Rows::Lines(lines) => lines.next(),
            Rows::Records(records) => records.next(),
        }
    }
}

fn open(source: Source, table: Option<ExportTable>) -> Result<Rows, String> {
    let (packed, source) = peek(source, ZSTD.len())?;
    let source: Source = if packed.starts_with(GZIP) {
        Box::new(flate2::read::MultiGzDecoder::new(source))
    } else if packed.starts_with(ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(source).map_err(|error| unreadable(&error))?)
    } else {
        source
    };
    let (first, mut source) = peek(source, BYTE_ORDER_MARK.len())?;
    let has_mark = first == BYTE_ORDER_MARK.as_bytes();
    if has_mark {
        let mut mark = [0; BYTE_ORDER_MARK.len()];
        source
            .read_exact(&mut mark)
            .map_err(|error| unreadable(&error))?;
    }
    if matches!(first.first(), None | Some(b'{')) {
        return Ok(Rows::Lines(Lines::new(source)));
    }
    Records::new(source, table, has_mark).map(|records| Rows::Records(Box::new(records)))
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

/// The first bytes, and a source that still has them.
fn peek(mut source: Source, bytes: usize) -> Result<(Vec<u8>, Source), String> {
    let mut first = Vec::with_capacity(bytes);
    let taken = source.by_ref().take(bytes as u64).read_to_end(&mut first);
    taken.map_err(|error| unreadable(&error))?;
    let rest = Cursor::new(first.clone()).chain(source);
    Ok((first, Box::new(rest)))
}

/// Where a row was and how much of the input it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub line: u64,
    pub bytes: usize,
}

/// Lines of JSON.
struct Lines {
    source: BufReader<Source>,
    layouts: BTreeMap<ExportTable, Vec<ExportColumn>>,
    line: u64,
    text: Vec<u8>,
}

impl Lines {
    fn new(source: Source) -> Self {
        let tables = ExportTable::ALL.iter();
        Self {
            source: BufReader::with_capacity(1 << 16, source),
            layouts: tables.map(|table| (*table, table.columns())).collect(),
            line: 0,
            text: Vec::new(),
        }
    }

    fn next(&mut self) -> Result<Option<(Place, InputRow<'_>)>, (u64, String)> {
        loop {
            self.line += 1;
            self.text.clear();
            let mut bounded = self.source.by_ref().take(ROW_BYTES_MAX as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.text);
            let bytes = read.map_err(|error| (self.line, unreadable(&error)))?;
            if bytes == 0 {
                return Ok(None);
            }
            if bytes > ROW_BYTES_MAX {
                return Err((self.line, too_long()));
            }
            if !self.text.trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.line;
        let place = Place {
            line,
            bytes: self.text.len(),
        };
        let text = std::str::from_utf8(&self.text)
            .map_err(|error| (line, format!("it is no UTF-8: {error}")))?;
        let row = json_row(text, &self.layouts).map_err(|message| (line, message))?;
        Ok(Some((place, row)))
    }
}

fn too_long() -> String {
    format!("a row of more than {} MiB", ROW_BYTES_MAX >> 20)
}

fn json_row<'a>(
    text: &'a str,
    layouts: &'a BTreeMap<ExportTable, Vec<ExportColumn>>,
) -> Result<InputRow<'a>, String> {
    let Entries(entries) = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let (_, table) = entries
        .iter()
        .find(|(name, _)| name == "table")
        .ok_or("it does not say its table")?;
    let table: String =
        serde_json::from_str(table.get()).map_err(|_| "its table is no text".to_owned())?;
    let (table, columns) = layouts
        .iter()
        .find(|(known, _)| known.name() == table)
        .ok_or_else(|| format!("there is no table {}", shown(&table)))?;
    let mut cells = vec![Cell::Null; columns.len()];
    for (name, raw) in entries {
        if name == "table" {
            continue;
        }
        let place = place_of(columns, *table, &name)?;
        if raw.get() != "null" {
            cells[place] = Cell::Json(raw.get());
        }
    }
    Ok(InputRow {
        table: *table,
        columns,
        cells,
    })
}

fn place_of(columns: &[ExportColumn], table: ExportTable, name: &str) -> Result<usize, String> {
    let place = columns.iter().position(|column| column.name == name);
    place.ok_or_else(|| {
        format!(
            "{} has no column {}; a newer version may have written it",
            table.name(),
            shown(name)
        )
    })
}

/// The entries of one JSON object, unread, none twice.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> de::Deserialize<'de> for Entries<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one JSON object a line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(String, &RawValue)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            // No table has more columns: what is longer is no row, and never compared with itself.
            const ENTRIES_MAX: usize = 256;
            if entries.len() == ENTRIES_MAX || entries.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom(format_args!("{} twice", shown(&name))));
            }
            entries.push((name, map.next_value()?));
        }
        Ok(Entries(entries))
    }
}

/// Records of CSV.
struct Records {
    reader: ::csv::Reader<Bounded>,
    left: Arc<AtomicUsize>,
    table: ExportTable,
    columns: Vec<ExportColumn>,
    /// For each place of the header, the place of the column.
    places: Vec<usize>,
    /// Made for a spreadsheet: ids are wrapped.
    excel: bool,
    record: ::csv::StringRecord,
}

/// A source that gives out so many bytes until it is allowed more.
struct Bounded {
    source: Source,
    left: Arc<AtomicUsize>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::Error::other(too_long()));
        }
        let read = self.source.read(buffer)?;
        self.left
            .store(left.saturating_sub(read), Ordering::Relaxed);
        Ok(read)
    }
}

impl Records {
    fn new(source: Source, table: Option<ExportTable>, excel: bool) -> Result<Self, String> {
        let left = Arc::new(AtomicUsize::new(ROW_BYTES_MAX));
        let bounded = Bounded {
            source,
            left: left.clone(),
        };
        let mut reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .buffer_capacity(1 << 16)
            .from_reader(bounded);
        let mut header = ::csv::StringRecord::new();
        let read = reader.read_record(&mut header);
        read.map_err(|error| format!("the header cannot be read: {error}"))?;
        let exact = ExportTable::ALL.iter().copied().find(|table| {
            let columns = table.columns();
            columns.iter().map(|column| column.name).eq(header.iter())
        });
        let table = exact.or(table).ok_or(
            "the header is not that of an exported table; if it is an older one, say which with \
             --table",
        )?;
        let columns = table.columns();
        let mut places = Vec::with_capacity(header.len());
        for name in &header {
            let place = place_of(&columns, table, name)?;
            if places.contains(&place) {
                return Err(format!("the header has {} twice", shown(name)));
            }
            places.push(place);
        }
        Ok(Self {
            reader,
            left,
            table,
            columns,
            places,
            excel,
            record: ::csv::StringRecord::new(),
        })
    }

    fn next(&mut self) -> Result<Option<(Place, InputRow<'_>)>, (u64, String)> {
        self.left.store(ROW_BYTES_MAX, Ordering::Relaxed);
        let line = self.reader.position().line();
        match self.reader.read_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err((line, message_of(&error))),
        }
        let line = self.record.position().map_or(line, ::csv::Position::line);
        let mut cells = vec![Cell::Null; self.columns.len()];
        for (text, place) in self.record.iter().zip(&self.places) {
            let is_wrapped = self.excel && self.columns[*place].form == Form::Id;
            let text = match is_wrapped.then(|| unwrapped(text)).flatten() {
                Some(text) => Cow::Owned(text),
                None => Cow::Borrowed(text),
            };
            if !text.is_empty() {
                cells[*place] = Cell::Plain(text);
            }
        }
        let place = Place {
            line,
            bytes: self.record.as_slice().len(),
        };
        let row = InputRow {
            table: self.table,
            columns: &self.columns,
            cells,
        };
        Ok(Some((place, row)))
    }
}

/// What is wrong with a record, without the place, which is told anyway.
fn message_of(error: &::csv::Error) -> String {
    match error.kind() {
        ::csv::ErrorKind::Io(error) => unreadable(error),
        ::csv::ErrorKind::Utf8 { err, .. } => format!("it is no UTF-8: {err}"),
        ::csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("{len} fields where the header has {expected_len}"),
        _ => error.to_string(),
    }
}

/// One cell as it was read.
#[derive(Debug, Clone, PartialEq)]
enum Cell<'a> {
    Null,
    /// As it stands in JSON.
    Json(&'a str),
    /// As it stands in CSV.
    Plain(Cow<'a, str>),
}

/// One row as it was read.
#[derive(Debug)]
pub(super) struct InputRow<'a> {
    pub table: ExportTable,
    columns: &'a [ExportColumn],
    cells: Vec<Cell<'a>>,
}

impl InputRow<'_> {
    fn cell(&self, name: &str) -> &Cell<'_> {
        let place = self.columns.iter().position(|column| column.name == name);
        place
            .and_then(|place| self.cells.get(place))
            .unwrap_or(&Cell::Null)
    }

    pub(super) fn is_null(&self, name: &str) -> bool {
        *self.cell(name) == Cell::Null
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        match self.cell(name) {
            Cell::Null => Ok(None),
            Cell::Plain(text) => Ok(Some(Cow::Borrowed(text))),
            Cell::Json(raw) => {
                let mut deserializer = serde_json::Deserializer::from_str(raw);
                let text = String::deserialize(&mut deserializer)
                    .map_err(|_| format!("{name}: {} is no text", shown(raw)))?;
                Ok(Some(Cow::Owned(text)))
            }
        }
    }

    /// The cell as JSON and CSV write it alike: a number, `true`, `false`.
    fn scalar<T: std::str::FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, String> {
        let text = match self.cell(name) {
            Cell::Null => return Ok(None),
            Cell::Json(text) => text,
            Cell::Plain(text) => &**text,
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(format!("{name}: {} is {what}", shown(text))),
        }
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.scalar(name, "no integer of 64 bits")
    }

    pub(super) fn real(&self, name: &str) -> Result<Option<f64>, String> {
        let number: Option<f64> = self.scalar(name, "no number")?;
        match number {
            Some(number) if !number.is_finite() => Err(format!("{name}: {number} is no number")),
            other => Ok(other),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, String> {
        self.scalar(name, "neither true nor false")
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<WorldTime>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let at_us = parse_stored(&text).ok_or_else(|| {
            format!(
                "{name}: {} is no time such as 2026-11-15T20:30:00.000000Z",
                shown(&text)
            )
        })?;
        Ok(Some(WorldTime(at_us)))
    }

    pub(super) fn json(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        let text: &str = match self.cell(name) {
            Cell::Null => return Ok(None),
            Cell::Json(raw) => raw,
            Cell::Plain(text) => text,
        };
        let is_json =
            serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().len() == text.len());
        if !is_json {
            return Err(format!("{name}: {} is no JSON", shown(text)));
        }
        if !json::is_shallow(text) {
            return Err(format!("{name}: JSON that is nested too deeply"));
        }
        Ok(Some(Cow::Borrowed(text)))
    }

    /// A text that has to be there; an empty one will do.
    pub(super) fn some_text(&self, name: &str) -> Result<String, String> {
        Ok(self.text(name)?.unwrap_or_default().into_owned())
    }

    pub(super) fn some_time(&self, name: &str) -> Result<WorldTime, String> {
        self.time(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    /// The object in the columns `network`, `type` and `id`, or in others that mean the same.
    pub(super) fn object(&self, network: &str, kind: &str, id: &str) -> Result<Identity, String> {
        let mut texts = [network, kind, id].into_iter().map(|name| {
            let text = self.text(name)?;
            text.ok_or_else(|| format!("{name} is missing"))
        });
        let mut next = || texts.next().unwrap_or(Ok(Cow::Borrowed("")));
        let (network, kind, text) = (next()?, next()?, next()?);
        reference::parse(&network, &kind, &text).map_err(|message| format!("{id}: {message}"))
    }

    /// The object that the row is about.
    pub(super) fn own(&self) -> Result<Identity, String> {
        self.object("network", "type", "id")
    }
}
