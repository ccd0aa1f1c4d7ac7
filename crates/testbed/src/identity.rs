//! Users of the control plane. Each has a client certificate, a kubeconfig and a client.

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::pki::{Authority, Pair};

/// The group whose members have all permissions, independent of RBAC.
pub const SYSTEM_MASTERS: &str = "system:masters";

/// A user of a control plane: a client certificate, a kubeconfig that contains it and a [`kube::Client`] that uses it.
#[derive(Debug, Clone)]
pub struct Identity {
    user: String,
    server: String,
    kubeconfig: String,
    /// `NAME.kubeconfig`, with `NAME.crt` and `NAME.key` in the same folder.
    kubeconfig_path: PathBuf,
    authority: CertificateDer<'static>,
}

impl Identity {
    /// Issues a certificate and writes its files to `folder` under the name `name`.
    pub(crate) fn create(
        authority: &Authority,
        folder: &Path,
        name: &str,
        server: &str,
        (user, groups): (&str, &[&str]),
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let pair = authority.client(user, groups)?;
        let path = folder.join(format!("{name}.kubeconfig"));
        let kubeconfig = kubeconfig(server, user, authority.certificate(), &pair);
        std::fs::write(&path, &kubeconfig)?;
        std::fs::write(path.with_extension("crt"), &pair.certificate)?;
        std::fs::write(path.with_extension("key"), &pair.key)?;
        Ok(Self {
            user: user.to_owned(),
            server: server.to_owned(),
            kubeconfig,
            kubeconfig_path: path,
            authority: CertificateDer::from_pem_slice(authority.certificate().as_bytes())?,
        })
    }

    /// Returns the same user with another server address, such as that of a proxy. Its files are in the same folder.
    pub(crate) fn at(&self, server: &str) -> Result<Self> {
        let authority = server.rsplit('/').next().unwrap_or_default();
        let suffix = authority.replace([':', '.'], "-");
        let stem = self.kubeconfig_path.file_stem().unwrap_or_default();
        let name = format!("{}-at-{suffix}.kubeconfig", stem.to_string_lossy());
        let path = self.kubeconfig_path.with_file_name(name);
        for extension in ["crt", "key"] {
            let from = self.kubeconfig_path.with_extension(extension);
            std::fs::copy(from, path.with_extension(extension))?;
        }
        let kubeconfig = self.kubeconfig.replace(&self.server, server);
        std::fs::write(&path, &kubeconfig)?;
        Ok(Self {
            server: server.to_owned(),
            kubeconfig,
            kubeconfig_path: path,
            ..self.clone()
        })
    }

    /// Returns the user's name, as RBAC and the audit log have it.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the kubeconfig's text. It refers to no other file.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns the kubeconfig file, for `KUBECONFIG` or `--kubeconfig`.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// Returns a client configuration with this identity.
    pub fn config(&self) -> Result<kube::Config> {
        let mut config = kube::Config::new(self.server.parse::<http::Uri>()?);
        config.root_cert = Some(vec![self.authority.to_vec()]);
        let file = |extension: &str| -> Result<String> {
            let path = self.kubeconfig_path.with_extension(extension);
            Ok(path.to_str().context("a path is not text")?.to_owned())
        };
        config.auth_info.client_certificate = Some(file("crt")?);
        config.auth_info.client_key = Some(file("key")?);
        Ok(config)
    }

    /// Returns a client with this identity. It belongs to the runtime in which it is created: each `#[tokio::test]` needs its
    /// own.
    pub fn client(&self) -> Result<kube::Client> {
        Self::client_of(self.config()?)
    }

    pub(crate) fn client_of(config: kube::Config) -> Result<kube::Client> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that the process already has a default provider.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        Ok(kube::Client::try_from(config)?)
    }
}

/// Returns a kubeconfig for `user` with `groups` of the control plane that runs in the data folder `folder`. Any process may have
/// started it.
pub fn issue(folder: &Path, user: &str, groups: &[&str]) -> Result<String> {
    let authority = Authority::open(&folder.join("pki"))?;
    let server = std::fs::read_to_string(folder.join("server"))
        .with_context(|| format!("no control plane runs in {}", folder.display()))?;
    let pair = authority.client(user, groups)?;
    Ok(kubeconfig(
        server.trim(),
        user,
        authority.certificate(),
        &pair,
    ))
}

fn kubeconfig(server: &str, user: &str, authority: &str, pair: &Pair) -> String {
    let data = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
current-context: testbed
clusters:
- name: testbed
  cluster:
    server: {server}
    certificate-authority-data: {}
contexts:
- name: testbed
  context:
    cluster: testbed
    user: {user:?}
users:
- name: {user:?}
  user:
    client-certificate-data: {}
    client-key-data: {}
",
        data(authority),
        data(&pair.certificate),
        data(&pair.key)
    )
}
