//! What ties a password to an encrypted connection (RFC 5929, `tls-server-end-point`): whoever sits in
//! between with a certificate of their own learns nothing, and gets nowhere.

use super::check::is_readable;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// RSA (1.2.840.113549.1.1): MD5 and SHA-1, which SHA-256 stands in for, and the others.
const RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01];
/// ECDSA (1.2.840.10045.4).
const ECDSA: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04];

/// The hash of a certificate by the algorithm of its own signature; none if there is not just one.
pub(super) fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    // The server has proved that it has the key only if its certificate could be read.
    if !is_readable(certificate) {
        return None;
    }
    let algorithm = signature_algorithm(certificate)?;
    let rsa = algorithm.strip_prefix(RSA);
    let ecdsa = algorithm.strip_prefix(ECDSA);
    match (rsa, ecdsa) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => {
            Some(Sha256::digest(certificate).to_vec())
        }
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The object identifier of the algorithm that a certificate is signed with.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_signed, after) = element(whole, SEQUENCE)?;
    let (algorithm, _signature) = element(after, SEQUENCE)?;
    let (identifier, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    Some(identifier)
}

/// The content of a DER element of this kind, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        // A length of up to three bytes; no certificate is longer.
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            let length = length
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn elements_are_read_whole_or_not_at_all() {
        let none: Option<(&[u8], &[u8])> = None;
        assert_eq!(
            element(&[0x30, 1, 7, 8], SEQUENCE),
            Some((&[7][..], &[8][..]))
        );
        assert_eq!(
            element(&[0x30, 0x82, 0, 1, 7], SEQUENCE),
            Some((&[7][..], &[][..]))
        );
        assert_eq!(element(&[0x30, 0], SEQUENCE), Some((&[][..], &[][..])));
        for bytes in [
            &[][..],
            &[0x30],
            &[0x31, 0],
            &[0x30, 2, 7],
            &[0x30, 0x80],
            &[0x30, 0x82, 1],
            &[0x30, 0x83, 0xFF, 0xFF, 0xFF, 0],
            &[0x30, 0x88, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        ] {
            assert_eq!(element(bytes, SEQUENCE), none, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_bring_it_down(bytes in prop::collection::vec(
            prop_oneof![Just(0x30), Just(0x06), Just(0x82), Just(2), any::<u8>()], 0..40,
        )) {
            let _ = signature_algorithm(&bytes);
            prop_assert_eq!(end_point(&CertificateDer::from(bytes)), None);
        }
    }
}
