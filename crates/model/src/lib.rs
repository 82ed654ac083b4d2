//! The words of Kittiwake, as plain data.
//!
//! Knows: what an object, a link, an identity, an outcome, a budget, a clock and a [`Commit`]
//! are, and how two observations of one thing are merged.
//! Does not know: files, sockets, SQL, HTTP, threads or the time of day. Nothing here does
//! anything; other crates pass these values to one another.

pub mod budget;
pub mod catalogue;
pub mod clock;
pub mod commit;
pub mod control;
pub mod identity;
pub mod imported;
pub mod link;
pub mod merge;
pub mod object;
pub mod outcome;
pub mod secret;
pub mod value;

use std::sync::Arc;

/// A short word from a definition: a network, a type, a query, a robot, a field.
pub type Name = Arc<str>;

pub use budget::{
    BudgetId, BudgetRule, Cost, Counter, MONEY_SCALE, Scope, Unit, Window, WindowKind,
};
pub use catalogue::{ColumnKind, Table};
pub use clock::{ClockRate, ClockSpec, LimitTime, RealTime, WorldTime};
pub use commit::{
    Commit, CommitReport, Cursor, CursorState, Discovery, Expansion, Filed, Follow, FrontierRow,
    Learnt, LogRow, RobotFiling, Role, RunEnd, RunRecord, RunUpdate, Sweep,
};
pub use control::{Control, ControlCommand};
pub use identity::{Alias, Identity, Key, Reference, Weight};
pub use imported::{
    ImportedCalls, ImportedHistory, ImportedId, ImportedLink, ImportedObject, ImportedRow,
    ImportedSpell, VanishedRelation,
};
pub use link::{Link, LinkTable, List, Walk};
pub use merge::{GroupState, Stamp};
pub use object::{Group, Object, Standing};
pub use outcome::{Outcome, OutcomeCode};
pub use secret::Secret;
pub use value::Value;
