//! The certificate of HTTPS: from files that are read again when they change, or one that its owner replaces.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use orkestra_ground::{
    chain,
    tasks::{self, Task},
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The interval at which the files are read: a mounted Secret is updated within about a minute.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file does not have the expected content.
    #[error("{path} does not hold {expected} in PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// Key and certificate do not match, or the type of the key is not supported.
    #[error("cannot use the key in {path} with its certificate")]
    Key {
        /// The file of the key.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
}

/// HTTPS with a certificate from files. Clones share it.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    /// Certificate and key; none if the owner replaces them.
    files: Option<(PathBuf, PathBuf)>,
}

/// The certificate that handshakes use.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.files).finish()
    }
}

impl Tls {
    /// Reads a certificate, with its chain, and its private key, both in PEM.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let files = (certificate.to_owned(), key.to_owned());
        Ok(Self::over(load(certificate, key)?, Some(files)))
    }

    /// HTTPS with a certificate that [`replace`](Self::replace) replaces.
    pub fn holding(certified: CertifiedKey) -> Self {
        Self::over(certified, None)
    }

    fn over(certified: CertifiedKey, files: Option<(PathBuf, PathBuf)>) -> Self {
        let current = Arc::new(Current(ArcSwap::from_pointee(certified)));
        Self {
            acceptor: acceptor(&current, &[HTTP1], None),
            current,
            files,
        }
    }

    /// The protocol name of HTTP/2.
    pub(crate) const HTTP2: &[u8] = b"h2";

    /// The same, and clients may speak HTTP/2; with `clients`, they may present certificates, which it verifies.
    #[must_use]
    pub fn with_http2(self, clients: Option<Arc<dyn ClientCertVerifier>>) -> Self {
        Self {
            acceptor: acceptor(&self.current, &[Self::HTTP2, HTTP1], clients),
            ..self
        }
    }

    /// Uses another certificate for handshakes from now on. Connections stay.
    pub fn replace(&self, certified: CertifiedKey) {
        self.current.0.store(Arc::new(certified));
    }

    /// The certificate of the server, in DER.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.current.0.load().cert.first().cloned()
    }

    /// Reads the files periodically. Errors are logged, and the previous certificate stays.
    pub async fn follow(self) {
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            let tls = self.clone();
            let named = tasks::named(Task::HttpCertificate, "");
            let read = named.start_blocking(move || tls.renew());
            if let Ok(Err(error)) = read.await {
                tracing::warn!(error = chain(&error), "cannot reload the certificate");
            }
        }
    }

    /// Reads the files; returns whether the certificate has changed.
    fn renew(&self) -> Result<bool, Error> {
        let Some((certificate, key)) = &self.files else {
            return Ok(false);
        };
        let loaded = load(certificate, key)?;
        let is_other = self.current.0.load().cert != loaded.cert;
        if is_other {
            self.replace(loaded);
            tracing::info!(file = %certificate.display(), "reloaded the certificate");
        }
        Ok(is_other)
    }

    /// Performs a TLS handshake.
    pub(crate) async fn accept<I: AsyncRead + AsyncWrite + Unpin>(
        &self,
        io: I,
    ) -> io::Result<TlsStream<I>> {
        self.acceptor.accept(io).await
    }
}

/// The protocol name of HTTP/1.1.
const HTTP1: &[u8] = b"http/1.1";

fn acceptor(
    current: &Arc<Current>,
    protocols: &[&[u8]],
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> TlsAcceptor {
    let builder = ServerConfig::builder();
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(current.clone());
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Reads the authorities in PEM whose client certificates are verified; clients without a certificate are served, too.
///
/// # Errors
/// [`Error`].
pub fn client_authorities(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let content = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let unusable = || Error::Pem {
        path: path.to_owned(),
        expected: "certificates of authorities",
    };
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&content) {
        let authority = authority.map_err(|_| unusable())?;
        roots.add(authority).map_err(|_| unusable())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|_| unusable())
}

fn load(certificate: &Path, key: &Path) -> Result<CertifiedKey, Error> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })
    };
    certified((certificate, &read(certificate)?), (key, &read(key)?))
}

/// Reads a certificate with its chain, and its key, each with the path or name that errors name.
///
/// # Errors
/// [`Error`].
pub fn certified(
    (certificate, chain): (&Path, &[u8]),
    (key, private): (&Path, &[u8]),
) -> Result<CertifiedKey, Error> {
    let pem = |path: &Path, expected| Error::Pem {
        path: path.to_owned(),
        expected,
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| pem(certificate, "certificates"))?;
    if chain.is_empty() {
        return Err(pem(certificate, "certificates"));
    }
    let private = PrivateKeyDer::from_pem_slice(private).map_err(|_| pem(key, "a private key"))?;
    let unusable = |source| Error::Key {
        path: key.to_owned(),
        source,
    };
    let signer = rustls::crypto::ring::sign::any_supported_type(&private).map_err(unusable)?;
    let certified = CertifiedKey::new(chain, signer);
    certified.keys_match().map_err(unusable)?;
    Ok(certified)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey as Made, generate_simple_self_signed};

    use super::*;

    fn make() -> Made<rcgen::KeyPair> {
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
    }

    #[test]
    fn files_are_checked_and_a_renewed_pair_is_taken() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let absent = Tls::read(&certificate, &key).unwrap_err();
        assert!(absent.to_string().contains("tls.crt"), "{absent}");
        let (first, second) = (make(), make());
        let write = |certificate_of: &Made<rcgen::KeyPair>, key_of: &Made<rcgen::KeyPair>| {
            std::fs::write(&certificate, certificate_of.cert.pem()).unwrap();
            std::fs::write(&key, key_of.signing_key.serialize_pem()).unwrap();
        };
        write(&first, &second);
        let other = Tls::read(&certificate, &key).unwrap_err();
        assert!(matches!(other, Error::Key { .. }), "{other}");
        write(&first, &first);
        let tls = Tls::read(&certificate, &key).unwrap();
        assert!(!tls.renew().unwrap(), "the files are equal");
        // Only one of the two files has changed, so they do not match: the previous certificate stays in use.
        write(&second, &first);
        assert!(tls.renew().is_err());
        assert_eq!(tls.current.0.load().cert[0], *first.cert.der());
        write(&second, &second);
        assert!(tls.renew().unwrap());
        assert_eq!(tls.current.0.load().cert[0], *second.cert.der());
        for junk in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nx"] {
            std::fs::write(&certificate, junk).unwrap();
            assert!(matches!(tls.renew(), Err(Error::Pem { .. })), "{junk}");
        }
    }
}
