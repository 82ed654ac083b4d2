//! How one network speaks: definition → request; bytes → objects.
//!
//! Knows: the definition format, paths and expressions, paging, error signs, limits as a network
//! declares and reports them, how one logs in and signs. Pure: no sockets, no files, no clock; whatever time is needed is
//! passed in.
//! Does not know: how bytes travel, what is stored, what is visited next.
//!
//! [`Network::parse`] turns a definition's text into a checked, compiled [`Network`];
//! [`Network::request`] says what to send, [`Network::read`] what an answer means.

pub mod auth;
mod believe;
mod blocks;
mod body;
pub mod budget;
mod car;
mod charset;
mod condition;
mod coverage;
mod decode;
pub mod definition;
mod expression;
mod fit;
mod home;
mod html;
mod json;
mod limit_status;
mod network;
mod outlook;
mod page;
mod path;
mod politeness;
mod probe;
mod read;
mod relate;
mod request;
mod scan;
mod seed;
mod select;
mod shape;
mod stubs;
mod tariff;
mod time;
mod web;
mod xml;

pub use believe::Teller;
pub use budget::{LimitReport, Word};
pub use car::{CarError, car_to_json};
pub use definition::{DefinitionErrors, Problem, known_keys};
pub use expression::functions as expression_functions;
pub use fit::{Fit, Further, NeverSeen, Sightings};
pub use home::{Address, Whom};
pub use html::html_to_text;
pub use limit_status::LimitStatusRequest;
pub use network::{
    ANSWER_BYTES_MAX, AuthNeed, Backfill, HostError, Network, Proved, Query, Robot, Step,
};
pub use outlook::{Length, PagePlace};
pub use page::Page;
pub use politeness::{Bearing, Gait, Politeness};
pub use probe::{Capabilities, facts_of};
pub use read::{Answer, Reading};
pub use request::{Ask, RequestError, RequestPlan};
pub use seed::SeedError;
pub use stubs::Open;
pub use tariff::{Bill, Charged, Item, Thing};
pub use web::robots::{ROBOTS_BYTES_MAX, Robots, RobotsRule};
pub use xml::{XmlError, xml_to_json};
