//! Encrypted connections, asked for as libpq's users ask for them: `sslmode` and `sslrootcert`.

mod binding;
mod check;
mod failure;
mod roots;
mod stream;
mod wish;

pub(super) use failure::{is_for_encryption, refused, refused_plain};
pub(super) use stream::Connector;
pub(super) use wish::{TlsWish, take_wish};
