//! What an operation may refuse with, as the description of the API tells it. Each is a [`Problem`] that says
//! in words what happened and what to do.

use crate::Problem;

macro_rules! refusals {
    ($($(#[$meaning:meta])* $name:ident = $status:literal;)*) => {$(
        $(#[$meaning])*
        #[derive(utoipa::IntoResponses)]
        #[response(status = $status, content_type = "application/problem+json")]
        pub(crate) struct $name(#[expect(dead_code, reason = "it describes, and is never made")] Problem);
    )*};
}

refusals! {
    /// What was asked makes no sense.
    Invalid = 400;
    /// Nobody is logged in.
    Unknown = 401;
    /// Whoever asks may not do that, or asks from another site.
    Forbidden = 403;
    /// There is no such thing.
    Missing = 404;
    /// Not as things stand.
    Conflict = 409;
    /// Too much was sent.
    TooLarge = 413;
    /// What was sent is not JSON.
    NotJson = 415;
    /// Too often, or a limit is used up.
    TooMany = 429;
}
