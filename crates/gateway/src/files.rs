//! The certificate from files, such as a Secret of cert-manager that is mounted: read again when they change.
//!
//! ```text
//!  files ── changed ──► next one read, both authorities trusted ── configurations have both ──► next one serves
//! ```
//!
//! Each replica sees a change at another time, since kubelets update mounted Secrets by themselves.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use orkestra_ground::chain;
use x509_parser::pem::parse_x509_pem;

use super::{
    Gateway,
    keys::{Pair, Rotation, ServingKeys},
};
use orkestra_http_api::tls;

/// The interval at which the files are read.
const READ_AGAIN: Duration = Duration::from_secs(10);
/// How long a replica that does not write configurations waits before it uses a certificate of another authority: the leader
/// may notice the change later, and writes the configurations then.
const SETTLE: Duration = Duration::from_mins(3);

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, with its chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The certificates of the authorities that the API server trusts for it.
    pub authorities: PathBuf,
}

/// Why files have no certificate.
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
    /// The authorities changed while the files were read.
    #[error("{0} changes")]
    Changing(PathBuf),
    /// A file has another content.
    #[error("{path} does not hold {expected} in PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// Certificate and key cannot be used.
    #[error(transparent)]
    Use(#[from] tls::Error),
}

impl CertificateFiles {
    /// Reads and checks the files.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn read(&self) -> Result<Pair, Error> {
        let authority = text(&self.authorities).await?;
        let certificate = text(&self.certificate).await?;
        let key = text(&self.key).await?;
        // A change in between would join a certificate with the authorities of another one.
        if text(&self.authorities).await? != authority {
            return Err(Error::Changing(self.authorities.clone()));
        }
        tls::certified(
            (&self.certificate, certificate.as_bytes()),
            (&self.key, key.as_bytes()),
        )?;
        validity(&authority).ok_or_else(|| Error::Pem {
            path: self.authorities.clone(),
            expected: "certificates",
        })?;
        let (issued, expires) = validity(&certificate).ok_or_else(|| Error::Pem {
            path: self.certificate.clone(),
            expected: "certificates",
        })?;
        Ok(Pair {
            certificate,
            key,
            authority,
            hosts: Vec::new(),
            issued,
            expires,
        })
    }

    /// Checks the files.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn check(&self) -> Result<(), Error> {
        self.read().await.map(drop)
    }
}

/// Reads a file; its text ends with a line break, so that texts can be joined.
async fn text(path: &Path) -> Result<String, Error> {
    let read = tokio::fs::read_to_string(path).await;
    let mut text = read.map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Returns the validity of the first certificate.
fn validity(pem: &str) -> Option<(Timestamp, Timestamp)> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = block.parse_x509().ok()?;
    let validity = certificate.validity();
    let at = |second| Timestamp::from_second(second).ok();
    Some((
        at(validity.not_before.timestamp())?,
        at(validity.not_after.timestamp())?,
    ))
}

/// Returns the certificates after the files have been read again, and whether they differ.
fn after(keys: ServingKeys, read: Pair, now: Timestamp) -> (ServingKeys, bool) {
    let is_known = |pair: &Pair| {
        (&pair.certificate, &pair.key, &pair.authority)
            == (&read.certificate, &read.key, &read.authority)
    };
    if keys
        .next
        .as_ref()
        .map_or_else(|| is_known(&keys.serving), is_known)
    {
        return (keys, false);
    }
    (keys.with_next(read, now), true)
}

/// Returns whether the next certificate is to serve. `noticed` is when it was read, `trusted` when this process had written its
/// authorities to all configurations.
fn is_due(
    keys: &ServingKeys,
    now: Timestamp,
    noticed: Timestamp,
    trusted: Option<Timestamp>,
) -> bool {
    let Some(next) = &keys.next else { return false };
    if next.authority == keys.serving.authority {
        return true;
    }
    let settled = noticed.checked_add(SETTLE).is_ok_and(|at| now >= at);
    settled
        || matches!(
            keys.rotation(&[], now, trusted),
            Rotation::Promote | Rotation::Replace
        )
}

/// Reads the files again when they change, and uses their certificate once it is trusted; never returns.
pub(crate) async fn keep(gateway: &Gateway, files: &CertificateFiles) {
    let mut trusted = gateway.trusted.subscribe();
    let (mut noticed, mut problem) = (gateway.context.clock.now(), None);
    loop {
        let now = gateway.context.clock.now();
        match files.read().await {
            Ok(pair) => {
                problem = None;
                let keys = gateway
                    .read_keys()
                    .unwrap_or_else(|| ServingKeys::first(pair.clone()));
                let (mut keys, differs) = after(keys, pair, now);
                if differs {
                    noticed = now;
                    tracing::info!("the files contain a new certificate for the webhooks");
                }
                let known = trusted.borrow_and_update().clone();
                let known = known.filter(|known| known.authorities == keys.authorities());
                if is_due(&keys, now, noticed, known.map(|known| known.since)) {
                    keys = keys.promoted();
                }
                gateway.keep_read(keys.clone());
                gateway.use_keys(&keys);
            }
            Err(error) => {
                let text = chain(&error);
                if problem.as_ref() != Some(&text) {
                    tracing::warn!(
                        error = text,
                        "cannot reload the certificate of the webhooks"
                    );
                }
                problem = Some(text);
            }
        }
        tokio::select! {
            Ok(()) = trusted.changed() => {}
            () = tokio::time::sleep(READ_AGAIN) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::keys::issue, *};

    const LIFE: Duration = Duration::from_mins(50);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_770_000_000 + second).unwrap()
    }

    fn pair(second: i64) -> Pair {
        issue(&["a.b.svc".to_owned()], at(second), LIFE).unwrap()
    }

    #[test]
    fn a_certificate_of_another_authority_waits_until_that_is_trusted() {
        let (first, second) = (pair(0), pair(1000));
        let (keys, differs) = after(ServingKeys::first(first.clone()), first.clone(), at(10));
        assert!(!differs && keys.next.is_none());
        let (keys, differs) = after(keys, second.clone(), at(1000));
        assert!(differs && keys.authorities().contains(&first.authority));
        assert!(keys.authorities().contains(&second.authority));
        // The same files are read again, and nothing has changed.
        let (keys, differs) = after(keys, second.clone(), at(1010));
        assert!(!differs);
        assert!(!is_due(&keys, at(1010), at(1000), None));
        // The leader switches 30 s after it has written the configurations, other replicas after three minutes.
        assert!(!is_due(&keys, at(1029), at(1000), Some(at(1000))));
        assert!(is_due(&keys, at(1030), at(1000), Some(at(1000))));
        assert!(!is_due(&keys, at(1179), at(1000), None));
        assert!(is_due(&keys, at(1180), at(1000), None));
        // An expired certificate is replaced without delay.
        assert!(is_due(&keys, at(3000), at(2999), None));
        let keys = keys.promoted();
        assert!(!is_due(&keys, at(9000), at(1000), None));
        // Other replicas may still serve the first certificate, so its authority stays trusted.
        assert!(keys.authorities().contains(&first.authority));
    }

    #[test]
    fn a_renewed_certificate_of_the_same_authority_serves_at_once() {
        let first = pair(0);
        let renewed = Pair {
            authority: first.authority.clone(),
            ..pair(1000)
        };
        let (keys, differs) = after(ServingKeys::first(first.clone()), renewed, at(1000));
        assert!(differs && is_due(&keys, at(1000), at(1000), None));
        assert_eq!(keys.authorities(), first.authority);
        assert_eq!(keys.promoted().authorities(), first.authority);
    }

    #[tokio::test]
    async fn files_are_checked_and_their_validity_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let files = CertificateFiles {
            certificate: path("tls.crt"),
            key: path("tls.key"),
            authorities: path("ca.crt"),
        };
        let missing = files.read().await.unwrap_err();
        assert!(missing.to_string().contains("ca.crt"), "{missing}");
        let (one, other) = (pair(0), pair(10));
        std::fs::write(path("ca.crt"), one.authority.trim_end()).unwrap();
        std::fs::write(path("tls.crt"), &one.certificate).unwrap();
        std::fs::write(path("tls.key"), &other.key).unwrap();
        assert!(matches!(files.read().await, Err(Error::Use(_))));
        std::fs::write(path("tls.key"), &one.key).unwrap();
        let read = files.read().await.unwrap();
        assert_eq!(
            (read.expires, &read.authority),
            (one.expires, &one.authority)
        );
        std::fs::write(path("ca.crt"), "nothing").unwrap();
        assert!(matches!(files.read().await, Err(Error::Pem { .. })));
    }
}
