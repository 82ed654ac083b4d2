//! Cells on their way to and from the server.

use crate::StoreError;
use crate::cell::{Cell, Row};
use bytes::BytesMut;
use std::borrow::Cow;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

type Refused = Box<dyn Error + Sync + Send>;

/// The type under which a cell is handed over; what is empty has the type of its place.
pub(super) fn type_of(cell: &Cell<'_>) -> Type {
    match cell {
        Cell::Null => Type::UNKNOWN,
        Cell::Integer(_) => Type::INT8,
        Cell::Real(_) => Type::FLOAT8,
        Cell::Text(_) => Type::TEXT,
        Cell::Bytes(_) => Type::BYTEA,
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self, place: &Type, out: &mut BytesMut) -> Result<IsNull, Refused> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => match *place {
                Type::INT8 => number.to_sql(place, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(place, out),
                Type::FLOAT8 => (*number as f64).to_sql(place, out),
                _ => Err(misplaced(self, place)),
            },
            Self::Real(number) if *place == Type::FLOAT8 => number.to_sql(place, out),
            Self::Text(text) if <&str as ToSql>::accepts(place) => {
                without_nul(text).to_sql(place, out)
            }
            Self::Bytes(bytes) if *place == Type::BYTEA => bytes.to_sql(place, out),
            _ => Err(misplaced(self, place)),
        }
    }

    fn accepts(_place: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, place: &Type, out: &mut BytesMut) -> Result<IsNull, Refused> {
        self.to_sql(place, out)
    }
}

/// PostgreSQL's texts cannot hold NUL. What networks say was cleaned of it before; this is for what
/// we say ourselves.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        Cow::Owned(text.replace('\0', "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn misplaced(cell: &Cell<'_>, place: &Type) -> Refused {
    format!("{cell:?} cannot be put where a {place} belongs").into()
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Refused> {
        Ok(match *of {
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(of, raw)?.into()),
            Type::BOOL => Self::Integer(bool::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(of, raw)?),
            Type::BYTEA => Self::Bytes(Cow::Borrowed(raw)),
            _ if <&str as FromSql<'_>>::accepts(of) => {
                Self::Text(Cow::Borrowed(<&str>::from_sql(of, raw)?))
            }
            _ => return Err(format!("a value of the type {of} is not expected").into()),
        })
    }

    fn from_sql_null(_of: &Type) -> Result<Self, Refused> {
        Ok(Self::Null)
    }

    fn accepts(_of: &Type) -> bool {
        true
    }
}

pub(super) struct PostgresRow<'r>(pub &'r tokio_postgres::Row);

impl Row for PostgresRow<'_> {
    fn cell(&self, place: usize) -> Result<Cell<'_>, StoreError> {
        self.0.try_get(place).map_err(super::error::refused)
    }
}
