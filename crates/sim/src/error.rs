//! What can go wrong when the network is started.

use std::net::SocketAddr;

use thiserror::Error;

use crate::world::WorldError;

/// Why the synthetic network could not be started.
#[derive(Debug, Error)]
pub enum SimError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error("speeds must be numbers from 0 to 1e9, and the speed of limits above 0")]
    Speed,
    #[error("the server's clock cannot be off by more than ten years")]
    Skew,
    #[error(
        "a fediverse has 1 to {max} instances, and the first of them is always in order: {instances} with {troubled} \
         troubled ones cannot be",
        max = crate::fediverse::INSTANCES_MAX
    )]
    Instances { instances: usize, troubled: usize },
    #[error(
        "only the Mastodon dialect has several instances; leave out the instances or the dialect"
    )]
    DialectOfInstances,
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
}
