//! The dashboard's pages.

use crate::Shared;
use axum::Router;
use std::sync::Arc;

/// Every page, and what pages load.
pub fn routes() -> Router<Arc<Shared>> {
    Router::new()
}
