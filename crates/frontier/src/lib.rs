//! What to visit next, and when.
//!
//! Knows: lanes, due times, leases, and the policies that turn what a visit found into the time of
//! the next one; the market in which calls are spent where they bring most; how a policy would have
//! done on a trace; how subjects are divided among machines. Synchronous and deterministic: clock and randomness are arguments.
//! Does not know: stores, sockets, networks or threads. The frontier here is the near future of the
//! store's table, and the due order on disk is derived from it; both may be thrown away at any time.

pub mod classify;
pub mod market;
pub mod order;
pub mod partition;
pub mod policy;
mod queue;
pub mod random;
pub mod ranked;
pub mod replay;

pub use classify::Class;
pub use order::{Place, SortedIndex};
pub use policy::{Policy, RoundRobin, Shared, State, Visit};
pub use queue::{Back, Frontier, Lease, ReadBy, Spill, Wanted};
pub use random::Random;
pub use ranked::{Judge, Ranked};
