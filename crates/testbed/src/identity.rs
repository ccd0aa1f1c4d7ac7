//! Users of the control plane: each is a client certificate, told in a kubeconfig and in a client.

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::pki::{Authority, Pair};

/// The group whose members may do everything, whatever RBAC says.
pub const SYSTEM_MASTERS: &str = "system:masters";

/// A user of a control plane: a client certificate, a kubeconfig that carries it and a [`kube::Client`] that shows it.
#[derive(Debug, Clone)]
pub struct Identity {
    user: String,
    server: String,
    kubeconfig: String,
    /// `NAME.kubeconfig`, with `NAME.crt` and `NAME.key` beside it.
    kubeconfig_path: PathBuf,
    authority: CertificateDer<'static>,
}

impl Identity {
    /// Issues a certificate and writes its files to `folder`, named `name`.
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

    /// The same user at another address, such as that of a proxy; its files lie beside the others.
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

    /// The user's name, as RBAC and the audit log have it.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The kubeconfig's text; it needs no other file.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A file with the kubeconfig, for `KUBECONFIG` or `--kubeconfig`.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// The configuration of a client with this identity.
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

    /// A client with this identity. It belongs to the runtime that makes it: a `#[tokio::test]` makes its own.
    pub fn client(&self) -> Result<kube::Client> {
        Self::client_of(self.config()?)
    }

    pub(crate) fn client_of(config: kube::Config) -> Result<kube::Client> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that the process has one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        Ok(kube::Client::try_from(config)?)
    }
}

/// A kubeconfig for `user` with `groups` of the control plane that runs in the data folder `folder`, started by whatever process.
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
