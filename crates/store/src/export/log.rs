//! Numbers of calls, as files and exports have them.
//!
//! A call's number means something in the file whose query log has it. A stamp that was imported
//! keeps its number below zero, where no call of the own file is, in its order: what another file
//! observed later stays later, and an export shows the same number as the one it came from.

/// Beyond what any log counts to, and still exact for readers to whom numbers are floats.
const OTHER_FILES: i64 = 1 << 52;

/// The number that an export shows for one that a file keeps.
pub(crate) const fn log_in_export(log: i64) -> i64 {
    if log < 0 {
        log.saturating_add(OTHER_FILES)
    } else {
        log
    }
}

/// The number that a file keeps for one that an export shows.
pub(crate) const fn log_from_file(log: i64) -> i64 {
    log.saturating_sub(OTHER_FILES)
}

/// Whether a log can have counted to it.
pub(crate) fn is_log(log: i64) -> bool {
    (0..OTHER_FILES).contains(&log)
}

/// How the numbers of calls that are read become those that the store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallNumbers {
    /// They are those of an export: the store tells them apart from its own.
    #[default]
    Exported,
    /// They are those that another store keeps, whose own calls come so much further on in ours.
    Joined { after: i64 },
}

impl CallNumbers {
    pub(crate) fn taken(self, log: i64) -> Result<i64, String> {
        match self {
            Self::Exported if !is_log(log) => Err(format!("{log} is no number of a call")),
            Self::Joined { after } if log > 0 => Ok(log.saturating_add(after)),
            // Joined, it is no call, or one of a third file.
            Self::Exported | Self::Joined { .. } => Ok(log),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imported_number_is_below_zero_in_order_and_shown_as_it_came() {
        let numbers = [0, 1, 17, OTHER_FILES - 1];
        let kept = numbers.map(log_from_file);
        assert!(kept.is_sorted() && kept.iter().all(|log| *log < 0));
        assert_eq!(kept.map(log_in_export), numbers);
        assert!(numbers.into_iter().all(is_log) && !is_log(-1) && !is_log(OTHER_FILES));
    }

    #[test]
    fn calls_of_a_log_that_was_joined_come_behind_our_own() {
        let joined = CallNumbers::Joined { after: 100 };
        assert_eq!(joined.taken(1), Ok(101));
        assert_eq!(joined.taken(0), Ok(0));
        assert_eq!(joined.taken(log_from_file(7)), Ok(log_from_file(7)));
        assert!(CallNumbers::Exported.taken(-1).is_err());
        assert_eq!(CallNumbers::Exported.taken(7), Ok(7));
    }
}
