//! The loop that joins the others.
//!
//! Knows: how a lease becomes a grant, a request, an answer, a commit and a new due time, and when
//! a crawl is over. [`crawl`] tells the story on one page.
//! Does not know: SQL, sockets, the definition format, the terminal or the environment; those are
//! behind `store`, `fetch`, `network` and the program that calls this crate.

mod backfill;
mod caps;
mod clock;
mod control;
mod crashpoint;
pub mod crawl;
mod credential;
mod error;
mod exchange;
pub mod forecast;
mod found;
pub mod freshness;
mod grant;
mod hosts;
mod inspect;
mod introduce;
mod lanes;
mod limit_status;
mod lookup;
mod manners;
mod open;
mod parking;
mod permits;
mod places;
mod plan;
mod population;
mod prepare;
mod probe;
mod progress;
mod reading;
mod scheduler;
mod settings;
mod settle;
mod site;
mod smaller;
mod timetable;
mod trouble;
mod unnamed;
mod used_up;
mod walk;
mod whom;
mod work;

pub use caps::SpendCap;
pub use clock::Clock;
pub use crashpoint::{CrashHook, CrashPoint};
pub use crawl::crawl;
pub use credential::{Credential, FixedKeeper, Held, Keeper, Keeping, bearer_secrets};
pub use error::{EngineError, EngineErrorKind};
pub use forecast::{Basis, Estimate, Forecast, forecast};
pub use freshness::{Freshness, RobotFreshness, Why, freshness, why};
pub use hosts::{HostPatterns, PatternError};
pub use inspect::{Inspected, Inspection, LimitsFit, QueryFit, inspect};
pub use permits::{BudgetSpent, Pace};
pub use population::Guide;
pub use probe::{Probe, ProbeAnswer, probe};
pub use progress::{BudgetProgress, Progress, RobotProgress, Snapshot};
pub use settings::{CrawlReport, CrawlSettings, End, History, Limits, Parts, Rounds};
