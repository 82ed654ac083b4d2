//! The checksum of a table: two tables have the same only if they hold the same rows.

use crate::cell::Cell;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Rows as they pass by, in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    digest: Sha256,
    pub count: u64,
}

impl Rows {
    pub(super) fn add(&mut self, row: &[Cell<'_>]) {
        self.count += 1;
        for cell in row {
            self.cell(cell);
        }
    }

    /// Every cell says what it is and how long it is, so that no two rows look the same.
    fn cell(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Null => self.digest.update([0]),
            Cell::Integer(number) => self.part(1, &number.to_le_bytes()),
            Cell::Real(number) => self.part(2, &number.to_bits().to_le_bytes()),
            Cell::Text(text) => self.part(3, text.as_bytes()),
            Cell::Bytes(bytes) => self.part(4, bytes),
        }
    }

    fn part(&mut self, kind: u8, bytes: &[u8]) {
        self.digest.update([kind]);
        self.digest.update((bytes.len() as u64).to_le_bytes());
        self.digest.update(bytes);
    }

    pub(super) fn checksum(&self) -> String {
        let mut text = String::from("sha256:");
        for byte in self.digest.clone().finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;

    fn checksum(rows: &[&[Cell<'_>]]) -> String {
        let mut all = Rows::default();
        for row in rows {
            all.add(row);
        }
        all.checksum()
    }

    #[test]
    fn whatever_differs_has_another_checksum() {
        let different: &[&[&[Cell<'_>]]] = &[
            &[],
            &[cells!["a", "b"]],
            &[cells!["ab", ""]],
            &[cells!["b", "a"]],
            &[cells!["a"], cells!["c"]],
            &[cells!["c"], cells!["a"]],
            &[cells![1_i64]],
            &[&[Cell::Real(1.0)]],
            &[&[Cell::Null]],
            &[cells!["1"]],
            &[cells![&b"1"[..]]],
        ];
        let all: std::collections::BTreeSet<String> =
            different.iter().map(|rows| checksum(rows)).collect();
        assert_eq!(all.len(), different.len());
        assert_eq!(checksum(different[1]), checksum(different[1]));
    }
}
