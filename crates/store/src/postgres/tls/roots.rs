//! The certificates of those whose word is taken for a server's.

use crate::{StoreError, StoreErrorKind};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Some ten times what the roots of a whole system take.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where roots are to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootsWish {
    File(PathBuf),
    System,
}

#[derive(Debug)]
pub(super) struct Roots {
    pub(super) store: RootCertStore,
    /// Those that the user has given: one of them may be the server's own.
    pub(super) given: Vec<CertificateDer<'static>>,
}

/// Reads what is wished for, or else the roots of the system.
pub(super) fn read(wish: Option<&RootsWish>) -> Result<Roots, StoreError> {
    match wish {
        Some(RootsWish::File(path)) => read_file(path),
        Some(RootsWish::System) | None => read_system(),
    }
}

fn read_file(path: &Path) -> Result<Roots, StoreError> {
    let cannot = |why: String| {
        StoreError::new(
            StoreErrorKind::Missing,
            format!(
                "the roots in {} (sslrootcert) cannot be read: {why}; it has to be a file of \
                 certificates in PEM",
                path.display()
            ),
        )
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| cannot(error.to_string()))?;
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| cannot(error.to_string()))?;
    let mut store = RootCertStore::empty();
    let mut given = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| cannot(error.to_string()))?;
        let added = store.add(certificate.clone());
        added.map_err(|error| cannot(error.to_string()))?;
        given.push(certificate);
    }
    if given.is_empty() {
        return Err(cannot("there is no certificate in it".to_owned()));
    }
    Ok(Roots { store, given })
}

fn read_system() -> Result<Roots, StoreError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        return Err(StoreError::new(
            StoreErrorKind::Missing,
            "this system has no roots to check the server's certificate against; install them \
             (package ca-certificates), or give the server's root with sslrootcert=FILE",
        ));
    }
    let given = Vec::new();
    Ok(Roots { store, given })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_roots_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        for (text, words) in [
            ("", "no certificate"),
            ("hello\0", "no certificate"),
            (broken, "PEM"),
            (cut, "PEM"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read_file(&path).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Missing);
            assert!(error.to_string().contains(words), "{error}");
        }
        let error = read_file(folder.path()).unwrap_err();
        assert!(error.to_string().contains("sslrootcert"), "{error}");
        let error = read_file(&folder.path().join("nowhere")).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
