//! Pages that are not what a walk expects.

/// Two pages that overlap do so by this many items.
pub(crate) const OVERLAP: usize = 3;

/// How a page can be spoilt. Whoever follows the links still sees everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoil {
    Duplicates,
    Shifted,
    Shuffled,
    RepeatedNext,
}

impl Spoil {
    pub(crate) const ALL: [Self; 4] = [
        Self::Duplicates,
        Self::Shifted,
        Self::Shuffled,
        Self::RepeatedNext,
    ];
}
