//! TLS with client certificates that kube does not accept.
//!
//! `openssl x509 -req` writes X.509 version 1 certificates unless it is given extensions. The API server and `kubectl` accept
//! them. rustls parses the certificate that a client presents only once, at configuration, to compare its public key with the
//! private key; that parser supports version 3 only. So for version 1 the comparison is made here.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{Config, client::ConfigExt as _};
use rustls::{
    ClientConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::{CertifiedKey, SingleCertAndKey},
};
use serde_json::Value;

use super::Error;

/// Why a client certificate of version 1 cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key cannot be parsed.
    #[error("cannot read the client key")]
    Key(#[source] rustls::Error),
    /// The key belongs to another certificate.
    #[error(
        "the client key does not match the client certificate: use the key that signed its certificate request"
    )]
    Mismatch,
}

/// Builds kube's TLS for the server of `config`, which supports rotated authorities and client certificates.
///
/// # Errors
/// [`Error::Build`] and [`Error::Certificate`].
pub(crate) fn tls(config: &Config) -> Result<ClientConfig, Error> {
    let refused = match config.rustls_client_config() {
        Ok(tls) => return Ok(tls),
        Err(refused) => refused,
    };
    let Some((chain, key)) = version_1(config) else {
        return Err(Error::Build(refused));
    };
    let certified = certified(chain, key).map_err(Error::Certificate)?;
    let mut without = config.clone();
    let auth = &mut without.auth_info;
    (auth.client_certificate, auth.client_certificate_data) = (None, None);
    (auth.client_key, auth.client_key_data) = (None, None);
    let mut tls = without.rustls_client_config().map_err(Error::Build)?;
    tls.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(certified));
    Ok(tls)
}

/// Returns the client certificate with its chain, if it is of version 1, and its key.
fn version_1(config: &Config) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    // Its secrets are not readable in any other way.
    let auth = serde_json::to_value(&config.auth_info).ok()?;
    let certificate = file(&auth, "client-certificate")?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.ok()?;
    if !chain
        .first()
        .is_some_and(|certificate| is_version_1(certificate))
    {
        return None;
    }
    let key = PrivateKeyDer::from_pem_slice(&file(&auth, "client-key")?).ok()?;
    Some((chain, key))
}

/// Returns the data of a kubeconfig's field, or of the file that another field names.
fn file(auth: &Value, field: &str) -> Option<Vec<u8>> {
    if let Some(data) = auth[format!("{field}-data")].as_str() {
        return STANDARD.decode(data).ok();
    }
    std::fs::read(auth[field].as_str()?).ok()
}

/// True if a certificate begins like version 1: without the version field, which is tagged `[0]`.
///
/// Source: RFC 5280, section 4.1.
fn is_version_1(certificate: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let inside = |der: &'_ [u8]| -> Option<usize> {
        let (tag, length) = (der.first()?, der.get(1)?);
        (*tag == SEQUENCE).then_some(())?;
        // The long form of a length says how many bytes the length takes.
        let more = if *length & 0x80 == 0 {
            0
        } else {
            length & 0x7f
        };
        Some(2 + usize::from(more))
    };
    let first = || {
        let to_be_signed = certificate.get(inside(certificate)?..)?;
        to_be_signed.get(inside(to_be_signed)?).copied()
    };
    first().is_some_and(|tag| tag != VERSION)
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, CertificateError> {
    let ring = || Arc::new(rustls::crypto::ring::default_provider());
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(ring);
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(CertificateError::Key)?;
    let public = key.public_key();
    let holds = |certificate: &CertificateDer<'_>| {
        // The certificate contains the public key unchanged.
        let public = public.as_ref().map(AsRef::as_ref).unwrap_or_default();
        memchr::memmem::find(certificate, public).is_some()
    };
    if !chain.first().is_some_and(holds) {
        return Err(CertificateError::Mismatch);
    }
    Ok(CertifiedKey::new(chain, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that `openssl x509 -req` wrote, and its key.
    const CERTIFICATE: &str = include_str!("../../tests/inputs/client/version-1.crt");
    const KEY: &str = include_str!("../../tests/inputs/client/version-1.key");

    fn config(certificate: &str, key: &str) -> Config {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        config.root_cert = Some(Vec::new());
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        config
    }

    fn version_3() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["clerk".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_of_version_1_is_presented() {
        let config = config(CERTIFICATE, KEY);
        assert!(config.rustls_client_config().is_err(), "kube accepts it");
        let tls = tls(&config).unwrap();
        let schemes = [rustls::SignatureScheme::ECDSA_NISTP256_SHA256];
        let presented = tls
            .client_auth_cert_resolver
            .resolve(&[], &schemes)
            .unwrap();
        let expected = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        assert_eq!(presented.cert, [expected]);
    }

    #[test]
    fn a_certificate_of_version_3_is_kube_s() {
        let (certificate, key) = version_3();
        assert!(tls(&config(&certificate, &key)).is_ok());
        assert!(version_1(&config(&certificate, &key)).is_none());
    }

    #[test]
    fn another_s_key_is_reported_as_such() {
        let (certificate, key) = version_3();
        let error = tls(&config(CERTIFICATE, &key)).unwrap_err();
        assert!(
            matches!(error, Error::Certificate(CertificateError::Mismatch)),
            "{error:?}"
        );
        assert!(matches!(
            tls(&config(&certificate, KEY)),
            Err(Error::Build(_))
        ));
        assert!(matches!(
            tls(&config("nonsense", KEY)),
            Err(Error::Build(_))
        ));
    }
}
