//! Why there is no encrypted connection, and what to do.

use super::super::error;
use crate::{StoreError, StoreErrorKind};
use rustls::{CertificateError, Error as TlsError};
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Says what the failure of a connection that was to be encrypted means for the user.
pub(in crate::postgres) fn refused(error: Error) -> StoreError {
    if let Some(failure) = handshake_failure(&error) {
        return StoreError::new(
            StoreErrorKind::Denied,
            format!("{} ({failure})", advice(failure)),
        );
    }
    let cause = error.source().map(ToString::to_string);
    if cause.is_some_and(|cause| cause.contains("does not support TLS")) {
        return StoreError::new(
            StoreErrorKind::Denied,
            "the server does not encrypt, and sslmode asks for it; turn ssl on at the server, or \
             take sslmode=disable if nobody can listen on the way to it",
        );
    }
    error::refused(error)
}

/// Why both sides did not come to terms, if that was it.
fn handshake_failure(error: &Error) -> Option<&TlsError> {
    let cause = error.source()?.downcast_ref::<std::io::Error>()?;
    cause.get_ref()?.downcast_ref()
}

/// Says what the failure of a connection that was not to be encrypted means for the user.
pub(in crate::postgres) fn refused_plain(error: Error) -> StoreError {
    if error.code() != Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
        return error::refused(error);
    }
    let said = error.as_db_error().map_or("", DbError::message);
    StoreError::new(
        StoreErrorKind::Denied,
        format!(
            "the server refuses the user, or takes only encrypted connections; check the user, or \
             leave sslmode=disable out of the URL (the server says: {said})"
        ),
    )
}

/// Whether a server that refuses an encrypted connection may take one that is not.
pub(in crate::postgres) fn is_for_encryption(error: &Error) -> bool {
    handshake_failure(error).is_some()
        || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

fn advice(failure: &TlsError) -> &'static str {
    let TlsError::InvalidCertificate(reason) = failure else {
        return "the server and this program do not agree on how to encrypt; it has to know TLS 1.2 \
                or newer";
    };
    match reason {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is not for the host in the URL; name the host as the \
             certificate does (among its alternative names), or take sslmode=verify-ca, which does \
             not look at names"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is out of date; renew it, or set this machine's clock"
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate comes from none of the roots that are trusted; give its root \
             with sslrootcert=FILE, or take sslmode=require without sslrootcert, which encrypts and \
             trusts everybody"
        }
        _ => {
            "the server's certificate cannot be checked; make one of version 3 with alternative \
             names, or take sslmode=require without sslrootcert, which encrypts and trusts everybody"
        }
    }
}
