//! Where exports go: a stream, a file, or a folder with a file for each table.
//!
//! A file is written under another name and gets its own when everything is in it, so that no half
//! file looks whole.

use super::tables::ExportColumn;
use super::{ExportError, ExportTable, Field, RowSink, csv, jsonl};
use flate2::write::GzEncoder;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How much is written at a time.
const BUFFER_BYTES: usize = 1 << 16;
/// What a file is called until it is complete.
const PARTIAL: &str = ".partial";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object a line.
    Jsonl,
    Csv,
}

impl ExportFormat {
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}

/// What is done to CSV for the sake of spreadsheets. All of it is off by default, because it
/// changes what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsvStyle {
    /// A byte order mark, CRLF, and ids as `="…"`, so that a spreadsheet leaves them alone.
    pub excel: bool,
    /// Puts an apostrophe before texts that a spreadsheet would run as formulas.
    pub guard_formulas: bool,
}

/// How files are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// What the end of a name asks for.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// Where an export goes.
pub enum Destination {
    Stream(Box<dyn Write + Send>),
    File(PathBuf),
    /// A file for each table.
    Folder(PathBuf),
}

impl fmt::Debug for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(_) => formatter.write_str("Stream"),
            Self::File(path) | Self::Folder(path) => path.fmt(formatter),
        }
    }
}

/// Writes rows as JSON lines or CSV.
#[derive(Debug)]
pub struct ExportWriter {
    format: ExportFormat,
    style: CsvStyle,
    compression: Compression,
    force: bool,
    folder: Option<PathBuf>,
    /// What is being written; nothing between the files of a folder.
    open: Option<Open>,
    /// Files that are complete and wait for their names.
    complete: Vec<Partial>,
    table: Option<Layout>,
}

/// The table that is being written.
#[derive(Debug)]
struct Layout {
    table: ExportTable,
    columns: Vec<ExportColumn>,
    /// The names as they stand in a line of JSON.
    names: Vec<String>,
}

impl ExportWriter {
    /// Checks that everything can be written before anything is read. `force` allows to replace
    /// files that exist.
    pub fn new(
        destination: Destination,
        format: ExportFormat,
        compression: Compression,
        style: CsvStyle,
        force: bool,
        tables: &[ExportTable],
    ) -> Result<Self, ExportError> {
        let is_folder = matches!(destination, Destination::Folder(_));
        if format == ExportFormat::Csv && tables.len() > 1 && !is_folder {
            return Err(ExportError::Refused(
                "a CSV file holds one table; name one with --table, or a folder with -o".to_owned(),
            ));
        }
        let mut writer = Self {
            format,
            style,
            compression,
            force,
            folder: None,
            open: None,
            complete: Vec::new(),
            table: None,
        };
        match destination {
            Destination::Stream(stream) => {
                writer.open = Some(Open::stream(stream, compression)?);
            }
            Destination::File(path) => writer.open = Some(Open::file(&path, compression, force)?),
            Destination::Folder(folder) => {
                std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
                writer.folder = Some(folder);
                for table in tables {
                    check_absent(&writer.path_of(*table), force)?;
                }
            }
        }
        Ok(writer)
    }

    fn path_of(&self, table: ExportTable) -> PathBuf {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        folder.join(format!(
            "{}.{}{}",
            table.name(),
            self.format.suffix(),
            self.compression.suffix()
        ))
    }

    /// Completes the file that is open.
    fn close(&mut self) -> Result<(), ExportError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.complete.extend(open.close()?);
        Ok(())
    }
}

impl RowSink for ExportWriter {
    fn begin(&mut self, table: ExportTable) -> Result<(), ExportError> {
        if self.folder.is_some() {
            self.close()?;
            let path = self.path_of(table);
            self.open = Some(Open::file(&path, self.compression, self.force)?);
        }
        self.table = Some(Layout {
            table,
            columns: table.columns(),
            names: jsonl::names(table),
        });
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if self.format == ExportFormat::Csv {
            open.begin_csv(table, self.style)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Field<'_>]) -> Result<(), ExportError> {
        let (Some(open), Some(layout)) = (&mut self.open, &self.table) else {
            return Ok(());
        };
        open.row(layout, row, self.style)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        self.close()?;
        for partial in &mut self.complete {
            partial.name(self.force)?;
        }
        Ok(())
    }

    fn hides_empty_text(&self) -> bool {
        self.format == ExportFormat::Csv
    }
}

/// A stream or a file that is being written.
#[derive(Debug)]
struct Open {
    rows: Rows,
    place: String,
    partial: Option<Partial>,
}

enum Rows {
    Lines(BufWriter<Packer>),
    Records(Box<::csv::Writer<BufWriter<Packer>>>),
    /// While one becomes the other.
    None,
}

impl fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Rows")
    }
}

impl Open {
    fn stream(
        stream: Box<dyn Write + Send>,
        compression: Compression,
    ) -> Result<Self, ExportError> {
        Self::new(
            Target::Stream(stream),
            "standard output".to_owned(),
            None,
            compression,
        )
    }

    fn file(path: &Path, compression: Compression, force: bool) -> Result<Self, ExportError> {
        let place = path.display().to_string();
        // Pipes and devices are written to as they are: nothing else may take their place.
        let is_special =
            std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_special {
            let file = OpenOptions::new().write(true).open(path);
            let file = file.map_err(|error| failed(path, error))?;
            return Self::new(Target::Stream(Box::new(file)), place, None, compression);
        }
        check_absent(path, force)?;
        let (partial, file) = Partial::new(path)?;
        Self::new(Target::File(file), place, Some(partial), compression)
    }

    fn new(
        target: Target,
        place: String,
        partial: Option<Partial>,
        compression: Compression,
    ) -> Result<Self, ExportError> {
        match Packer::new(target, compression) {
            Ok(packer) => Ok(Self {
                rows: Rows::Lines(BufWriter::with_capacity(BUFFER_BYTES, packer)),
                place,
                partial,
            }),
            Err(error) => Err(ExportError::Write { place, error }),
        }
    }

    fn begin_csv(&mut self, table: ExportTable, style: CsvStyle) -> Result<(), ExportError> {
        let Rows::Lines(out) = std::mem::replace(&mut self.rows, Rows::None) else {
            return Err(ExportError::Refused(
                "a CSV file holds one table".to_owned(),
            ));
        };
        match csv::begin(out, table, style) {
            Ok(writer) => {
                self.rows = Rows::Records(Box::new(writer));
                Ok(())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn row(
        &mut self,
        layout: &Layout,
        row: &[Field<'_>],
        style: CsvStyle,
    ) -> Result<(), ExportError> {
        let written = match &mut self.rows {
            Rows::Lines(out) => jsonl::write_row(out, layout.table, &layout.names, row),
            Rows::Records(writer) => csv::write_row(writer, &layout.columns, row, style),
            Rows::None => Ok(()),
        };
        written.map_err(|error| self.failed(error))
    }

    /// Everything is written: what is still in memory, the end of the packing, the disk.
    fn close(mut self) -> Result<Option<Partial>, ExportError> {
        let rows = std::mem::replace(&mut self.rows, Rows::None);
        match close_rows(rows) {
            Ok(()) => Ok(self.partial.take()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> ExportError {
        ExportError::Write {
            place: self.place.clone(),
            error,
        }
    }
}

fn close_rows(rows: Rows) -> io::Result<()> {
    let buffered = match rows {
        Rows::Lines(out) => out,
        Rows::Records(writer) => writer
            .into_inner()
            .map_err(::csv::IntoInnerError::into_error)?,
        Rows::None => return Ok(()),
    };
    let packer = buffered
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    packer.finish()?.close()
}

/// What bytes are written to in the end.
enum Target {
    Stream(Box<dyn Write + Send>),
    File(File),
}

impl Target {
    fn close(mut self) -> io::Result<()> {
        match &mut self {
            Self::Stream(stream) => stream.flush(),
            Self::File(file) => file.sync_all(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

enum Packer {
    None(Target),
    Gzip(GzEncoder<Target>),
    Zstd(zstd::stream::write::Encoder<'static, Target>),
}

impl Packer {
    fn new(target: Target, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(target),
            Compression::Gzip => Self::Gzip(GzEncoder::new(target, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(
                target,
                zstd::DEFAULT_COMPRESSION_LEVEL,
            )?),
        })
    }

    fn finish(self) -> io::Result<Target> {
        match self {
            Self::None(target) => Ok(target),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(target) => target.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(target) => target.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// A file that has not got its name yet; it goes away if it never does.
#[derive(Debug)]
struct Partial {
    path: PathBuf,
    final_path: PathBuf,
    is_named: bool,
}

impl Partial {
    fn new(path: &Path) -> Result<(Self, File), ExportError> {
        // A link stays a link to the file that is replaced.
        let final_path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name: OsString = final_path.clone().into_os_string();
        name.push(PARTIAL);
        let partial_path = PathBuf::from(name);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&partial_path)
            .map_err(|error| failed(&partial_path, error))?;
        // What an export that was killed has left is written over; one that runs is let alone.
        if file.try_lock().is_err() {
            return Err(ExportError::Refused(format!(
                "{}: another export is writing it",
                partial_path.display()
            )));
        }
        file.set_len(0)
            .map_err(|error| failed(&partial_path, error))?;
        let partial = Self {
            path: partial_path,
            final_path,
            is_named: false,
        };
        Ok((partial, file))
    }

    fn name(&mut self, force: bool) -> Result<(), ExportError> {
        check_absent(&self.final_path, force)?;
        std::fs::rename(&self.path, &self.final_path)
            .map_err(|error| failed(&self.final_path, error))?;
        self.is_named = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn check_absent(path: &Path, force: bool) -> Result<(), ExportError> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    if metadata.is_dir() {
        return Err(ExportError::Refused(format!(
            "{} is a folder",
            path.display()
        )));
    }
    if metadata.is_file() && !force {
        return Err(ExportError::Refused(format!(
            "{} exists; name another file, or replace it with --force",
            path.display()
        )));
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> ExportError {
    ExportError::Write {
        place: path.display().to_string(),
        error,
    }
}
