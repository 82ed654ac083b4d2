//! Whose certificate is accepted.

use super::roots::Roots;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// What a certificate has to be.
#[derive(Debug)]
pub(super) enum Check {
    Nothing,
    /// It comes from a root.
    Root(Roots),
    /// And it is that of the host.
    RootAndName(Roots),
}

#[derive(Debug)]
pub(super) struct Verifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(check: Check) -> Self {
        let provider = rustls::crypto::ring::default_provider();
        let algorithms = provider.signature_verification_algorithms;
        Self { check, algorithms }
    }

    pub(super) fn looks_at_names(&self) -> bool {
        matches!(self.check, Check::RootAndName(_))
    }

    /// Certificates of the first version, which some recipes still make, cannot be read. Where nothing
    /// is checked, anybody could be the server: then they are as good as any.
    fn lets_pass(&self, certificate: &CertificateDer<'_>) -> bool {
        matches!(self.check, Check::Nothing) && !is_readable(certificate)
    }

    fn check_root(
        &self,
        roots: &Roots,
        server: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(server)?;
        let algorithms = self.algorithms.all;
        let store = &roots.store;
        match verify_server_cert_signed_by_trust_anchor(&parsed, store, others, now, algorithms) {
            // A certificate that signs itself says that it is a root, and roots are no servers; but
            // the user has given this very one. That it is out of date is another failure.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if roots.given.iter().any(|given| given == server) =>
            {
                Ok(())
            }
            answer => answer,
        }
    }
}

/// Whether the signature of a server with this certificate can be checked.
pub(super) fn is_readable(certificate: &CertificateDer<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.check {
            Check::Nothing => {}
            Check::Root(roots) => self.check_root(roots, end_entity, intermediates, now)?,
            Check::RootAndName(roots) => {
                self.check_root(roots, end_entity, intermediates, now)?;
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.lets_pass(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.lets_pass(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
