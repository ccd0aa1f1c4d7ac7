//! The control plane's own certificate authority.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The authority that the API server trusts, for its own certificate and for its users' certificates.
#[derive(Debug)]
pub(crate) struct Authority {
    folder: PathBuf,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority and writes `ca.crt` and `ca.key` to `folder`.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let key = KeyPair::generate()?;
        let params = authority_params();
        let certificate = params.self_signed(&key)?.pem();
        std::fs::write(folder.join("ca.crt"), &certificate)?;
        std::fs::write(folder.join("ca.key"), key.serialize_pem())?;
        Ok(Self::of(folder, certificate, key))
    }

    /// Loads the authority that [`create`](Self::create) wrote to `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("no control plane here: cannot read {}", path.display()))
        };
        let key = KeyPair::from_pem(&read("ca.key")?)?;
        Ok(Self::of(folder, read("ca.crt")?, key))
    }

    fn of(folder: &Path, certificate: String, key: KeyPair) -> Self {
        Self {
            folder: folder.to_owned(),
            certificate,
            issuer: Issuer::new(authority_params(), key),
        }
    }

    /// Returns the authority's certificate, in PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Issues a client certificate: `user` is the common name, `groups` (at most two) are the organisations.
    ///
    /// Source: Kubernetes, "X509 client certificates" under Authenticating.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Pair> {
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, user);
        // rcgen keeps one value of each type, so a second organisation needs a second spelling of the same attribute.
        let spellings = [
            DnType::OrganizationName,
            DnType::CustomDnType(vec![2, 5, 4, 10]),
        ];
        if groups.len() > spellings.len() {
            bail!("a testbed identity has at most two groups, but {user} has {groups:?}");
        }
        for (spelling, group) in spellings.into_iter().zip(groups) {
            name.push(spelling, *group);
        }
        self.sign(name, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Writes the files that the API server needs: `server.crt`, `server.key` and the pair that signs service account tokens,
    /// `accounts.key` and `accounts.pub`.
    pub(crate) fn write_server_files(&self) -> Result<()> {
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "kube-apiserver");
        let names = vec![
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::DnsName("localhost".try_into()?),
        ];
        let pair = self.sign(name, names, ExtendedKeyUsagePurpose::ServerAuth)?;
        std::fs::write(self.folder.join("server.crt"), pair.certificate)?;
        std::fs::write(self.folder.join("server.key"), pair.key)?;
        // ECDSA, because ring creates no RSA keys. Kubernetes signs tokens with either.
        let accounts = KeyPair::generate()?;
        std::fs::write(self.folder.join("accounts.key"), accounts.serialize_pem())?;
        let public = self.folder.join("accounts.pub");
        std::fs::write(public, accounts.public_key_pem())?;
        Ok(())
    }

    fn sign(
        &self,
        name: DistinguishedName,
        subject_alt_names: Vec<SanType>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.subject_alt_names = subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        Ok(Pair {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "orkestra testbed");
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
