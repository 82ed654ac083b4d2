//! What a column holds, in terms that every database has.

use crate::{StoreError, StoreErrorKind};
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// The cells that go with a statement, in order.
macro_rules! cells {
    ($($value:expr),* $(,)?) => {
        &[$($crate::cell::Cell::from($value)),*]
    };
}
pub(crate) use cells;

impl Cell<'_> {
    /// The cell with all of its data.
    pub(crate) fn into_owned(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(number) => Cell::Integer(number),
            Self::Real(number) => Cell::Real(number),
            Self::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Cell::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }

    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        const FIXED: usize = 32;
        match self {
            Self::Text(text) => FIXED + text.len(),
            Self::Bytes(bytes) => FIXED + bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => FIXED,
        }
    }

    /// As text; bytes that are none are shown as well as can be. Nothing is no text.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Integer(number) => Some(number.to_string()),
            Self::Real(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.into_owned()),
            Self::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u16> for Cell<'_> {
    fn from(number: u16) -> Self {
        Self::Integer(number.into())
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Integer(flag.into())
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a cell can be read as.
pub(crate) trait FromCell: Sized {
    /// `None` if the cell holds something else.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

impl FromCell for i64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl FromCell for u32 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).and_then(|number| number.try_into().ok())
    }
}

impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

/// One row of an answer.
pub(crate) trait Row {
    fn cell(&self, place: usize) -> Result<Cell<'_>, StoreError>;
}

impl dyn Row + '_ {
    /// So many cells, with all of their data.
    pub(crate) fn cells(&self, columns: usize) -> Result<Vec<Cell<'static>>, StoreError> {
        (0..columns)
            .map(|place| Ok(self.cell(place)?.into_owned()))
            .collect()
    }

    pub(crate) fn get<T: FromCell>(&self, place: usize) -> Result<T, StoreError> {
        let cell = self.cell(place)?;
        let what = what_is(&cell);
        T::from_cell(cell).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                format!("column {place} of a row holds {what}, which does not belong there; restore a copy"),
            )
        })
    }

    /// A text that has to be there.
    pub(crate) fn text(&self, place: usize) -> Result<Cow<'_, str>, StoreError> {
        match self.cell(place)? {
            Cell::Text(text) => Ok(text),
            other => Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "column {place} of a row holds {} in place of a text; restore a copy",
                    what_is(&other)
                ),
            )),
        }
    }
}

const fn what_is(cell: &Cell<'_>) -> &'static str {
    match cell {
        Cell::Null => "nothing",
        Cell::Integer(_) => "a whole number",
        Cell::Real(_) => "a real number",
        Cell::Text(_) => "a text",
        Cell::Bytes(_) => "bytes",
    }
}
