//! The path from a certificate to an authority of the trusted root, at the time of the signature.

use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{
    ALGORITHMS, Evidence,
    evidence::MOST_CERTIFICATES,
    root::{Authority, TrustedRoot},
};

/// The purpose "code signing", 1.3.6.1.5.5.7.3.3, in DER. Source: RFC 5280, section 4.2.1.12.
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

/// Checks that an authority issued the certificate, for code signing, and that all certificates are valid at `time`.
pub(crate) fn check(
    leaf: &CertificateDer<'_>,
    evidence: &Evidence,
    root: &TrustedRoot,
    time: UnixTime,
) -> Result<(), String> {
    // Authorities may leave the purpose out, the signer may not.
    if !is_for_code_signing(leaf) {
        return Err("its certificate is not for code signing (extended key usage)".to_owned());
    }
    let mut why = "the trusted root has no certificate authority".to_owned();
    for authority in &root.authorities {
        if !authority.valid.contains(time) {
            why = format!(
                "no certificate authority of the trusted root is valid at the time of the signature, {}",
                shown(time)
            );
            continue;
        }
        match by(authority, leaf, evidence, time) {
            Ok(()) => return Ok(()),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

fn by(
    authority: &Authority,
    leaf: &CertificateDer<'_>,
    evidence: &Evidence,
    time: UnixTime,
) -> Result<(), String> {
    let certificate =
        EndEntityCert::try_from(leaf).map_err(|error| sentence(&error, "certificate"))?;
    let given = evidence.chain.iter();
    let given = given.map(|der| CertificateDer::from(&der[..]));
    let listed = authority.intermediates.iter();
    let listed = listed.map(|der| CertificateDer::from(&der[..]));
    let intermediates: Vec<CertificateDer<'_>> = listed.chain(given).collect();
    let roots: Vec<CertificateDer<'_>> = authority
        .anchors
        .iter()
        .filter(|der| is_valid(der, time))
        .map(|der| CertificateDer::from(&der[..]))
        .collect();
    if roots.is_empty() {
        return Err(format!(
            "the certificate authority is not valid at the time of the signature, {}",
            shown(time)
        ));
    }
    let anchors: Vec<_> = roots
        .iter()
        .filter_map(|root| anchor_from_trusted_cert(root).ok())
        .collect();
    let path = certificate
        .verify_for_usage(
            ALGORITHMS,
            &anchors,
            &intermediates,
            time,
            KeyUsage::required_if_present(CODE_SIGNING),
            None,
            None,
        )
        .map_err(|error| sentence(&error, "certificate"))?;
    // The signer's and the authority's certificates are not intermediates.
    let length = path.intermediate_certificates().count() + 2;
    if length > MOST_CERTIFICATES {
        return Err(format!(
            "the chain of its certificate has {length} certificates, more than {MOST_CERTIFICATES}"
        ));
    }
    Ok(())
}

fn is_for_code_signing(leaf: &[u8]) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
        return false;
    };
    let usage = certificate.extended_key_usage();
    usage.is_ok_and(|usage| usage.is_some_and(|usage| usage.value.code_signing))
}

/// True if a certificate is valid at a time.
fn is_valid(der: &[u8], time: UnixTime) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return false;
    };
    let validity = certificate.validity();
    i64::try_from(time.as_secs()).is_ok_and(|seconds| {
        validity.not_before.timestamp() <= seconds && seconds <= validity.not_after.timestamp()
    })
}

fn sentence(error: &Error, what: &str) -> String {
    match error {
        Error::UnknownIssuer => {
            format!("no certificate authority of the trusted root issued its {what}")
        }
        Error::CertExpired { time, not_after } => format!(
            "its {what} expired at {}, before the time of the signature, {}",
            shown(*not_after),
            shown(*time)
        ),
        Error::CertNotValidYet { time, not_before } => format!(
            "its {what} is valid from {}, after the time of the signature, {}",
            shown(*not_before),
            shown(*time)
        ),
        Error::RequiredEkuNotFoundContext(_) => {
            format!("the chain of its {what} is not for code signing (extended key usage)")
        }
        Error::InvalidSignatureForPublicKey => {
            format!("no certificate authority of the trusted root signed its {what}")
        }
        other => format!("its {what} or its chain is not valid: {other:?}"),
    }
}

/// Returns a time for a message.
fn shown(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}
