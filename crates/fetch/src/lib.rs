//! The only outbound sockets of Kittiwake: one HTTP exchange per call.
//!
//! Knows: how to send a request and read its answer within bounds (time, bytes, connections per
//! host), which addresses may be dialled for a host that nobody vouched for, how to keep a secret
//! out of every text it makes, and how to read `Retry-After`.
//!
//! Does not know: networks, definitions, credentials, budgets, stores or clocks. It never tries
//! again and never follows a redirect: each try and each hop is a call that somebody has to pay
//! for, so the caller loops.
//!
//! | file | what it knows |
//! |---|---|
//! | `http.rs` | reqwest and hyper, alone in the project; the exchange itself |
//! | `address.rs` | which addresses are public, which hosts are loopback |
//! | `resolve.rs` | host names to addresses, and the check of what a learnt host resolves to |
//! | `bodies.rs` | one byte budget for all bodies in flight, and why it cannot deadlock |
//! | `hosts.rs` | how many exchanges one host may have at once |
//! | `request.rs`, `response.rs` | what goes out and what comes back, as plain data |
//! | `error.rs` | texts that are safe to print |
//! | `retry_after.rs` | how long a server asks to be left alone |

mod address;
mod bodies;
mod config;
mod error;
mod hosts;
mod http;
mod request;
mod resolve;
mod response;
mod retry_after;

pub use address::{is_loopback_host, is_public};
pub use bodies::BodyPermit;
pub use config::FetchConfig;
pub use error::{FetchError, FetchErrorKind, SafeUrl, TimeoutPhase};
pub use http::{FetchSlot, Fetcher, install_tls_provider};
pub use kittiwake_model::Secret;
pub use request::{HostTrust, Method, Request};
pub use resolve::{HostResolver, Resolving, SystemResolver};
pub use response::{Headers, Response};
pub use retry_after::{http_date_us, retry_after};
