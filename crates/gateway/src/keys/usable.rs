//! Whether a certificate can be used: a damaged one is as good as none.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use rustls::{
    CertificateError, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::{CERTIFICATE, KEY, Pair};
use orkestra_http_api::tls;

impl Pair {
    /// True if the key belongs to the certificate, and clients that trust the authority accept it for all hosts. One that has expired,
    /// or is not valid yet by this machine's clock, is not damaged.
    pub(crate) fn is_usable(&self, now: Timestamp) -> bool {
        let parts = (self.certificate.as_bytes(), self.key.as_bytes());
        let Ok(certified) =
            tls::certified((Path::new(CERTIFICATE), parts.0), (Path::new(KEY), parts.1))
        else {
            return false;
        };
        let Some(verifier) = roots(&self.authority).and_then(|roots| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.build().ok()
        }) else {
            return false;
        };
        let Some((end, between)) = certified.cert.split_first() else {
            return false;
        };
        let seconds = now.as_second().try_into().unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.hosts.iter().all(|host| {
            let Ok(name) = ServerName::try_from(host.as_str()) else {
                return false;
            };
            match verifier.verify_server_cert(end, between, &name, &[], now) {
                Ok(_) => true,
                Err(rustls::Error::InvalidCertificate(why)) => matches!(
                    why,
                    CertificateError::Expired
                        | CertificateError::ExpiredContext { .. }
                        | CertificateError::NotValidYet
                        | CertificateError::NotValidYetContext { .. }
                ),
                Err(_) => false,
            }
        })
    }
}

/// Returns the authorities in a PEM text; none if there are none, or if one cannot be used.
pub(crate) fn roots(authorities: &str) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.ok()?).ok()?;
    }
    (!roots.is_empty()).then_some(roots)
}
