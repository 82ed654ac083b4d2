//! What every answer tells browsers.

use crate::Settings;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Nothing but what this server itself sends; no inline script, no inline style, no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
                      report-uri /api/reports";

const FIXED: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Nobody else is told anything. With `no-referrer`, browsers would send our own forms without saying
    // that they are ours (`Origin: null`).
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
];
/// A year.
const STRICT_TRANSPORT: &str = "max-age=31536000";

pub(super) fn add(headers: &mut HeaderMap, settings: &Settings) {
    for (name, value) in FIXED {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if settings.is_encrypted() {
        let value = HeaderValue::from_static(STRICT_TRANSPORT);
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        let value = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, value);
    }
}
