//! The CNCF distribution registry.

use std::{fmt::Write as _, fs, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
};
use tempfile::TempDir;
use testbed::{Guarded, eventually, free_port, spawn_guarded};

use crate::{process::tools, token::TokenServer};

/// The bcrypt hash of `pass:word`.
const PASSWORD_HASH: &str = "$2a$05$CEhzsdnQxNjrvY0WJocnQe.c3TC1J.cI6GrVpsfAkZWh4/I.0g1Ei";

/// The access control of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anonymous access over plain HTTP.
    Anonymous,
    /// The user `u` with the password `pass:word`, over TLS.
    Password,
    /// Tokens from a token server, over plain HTTP: all users get a token to pull, only `u` gets one to push.
    Token,
}

/// A running registry.
#[derive(Debug)]
pub struct Registry {
    /// Host and port.
    pub host: String,
    folder: TempDir,
    _process: Guarded,
    token: Option<TokenServer>,
}

impl Registry {
    /// Starts a registry and waits until it responds.
    ///
    /// # Errors
    /// The registry does not respond.
    pub async fn start(access: Access) -> Result<Self> {
        let folder = TempDir::new()?;
        let port = free_port()?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut config = format!(
            "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n",
            at("data")
        );
        let mut token = None;
        match access {
            Access::Anonymous => writeln!(config, "http: {{addr: '127.0.0.1:{port}'}}")?,
            Access::Password => {
                fs::write(at("htpasswd"), format!("u:{PASSWORD_HASH}\n"))?;
                certificates(&folder)?;
                writeln!(
                    config,
                    "http: {{addr: '127.0.0.1:{port}', tls: {{certificate: {}, key: {}}}}}",
                    at("server.crt"),
                    at("server.key")
                )?;
                writeln!(
                    config,
                    "auth: {{htpasswd: {{realm: r, path: {}}}}}",
                    at("htpasswd")
                )?;
            }
            Access::Token => {
                let server = TokenServer::start(&folder.path().join("token.crt")).await?;
                writeln!(config, "http: {{addr: '127.0.0.1:{port}'}}")?;
                writeln!(
                    config,
                    "auth: {{token: {{realm: 'http://{}/token', service: reg, issuer: tok, rootcertbundle: {}, signingalgorithms: [ES256]}}}}",
                    server.address,
                    at("token.crt")
                )?;
                token = Some(server);
            }
        }
        fs::write(at("config.yaml"), config)?;
        let mut command = Command::new(tools()?.join("registry"));
        command
            .args(["serve", &at("config.yaml")])
            .env("OTEL_TRACES_EXPORTER", "none");
        let process = spawn_guarded(&command, &folder.path().join("log"))?;
        eventually("the registry listens", Duration::from_mins(1), async || {
            Ok(tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok())
        })
        .await
        .with_context(|| process.log())?;
        Ok(Self {
            host: format!("127.0.0.1:{port}"),
            folder,
            _process: process,
            token,
        })
    }

    /// Returns the path of the certificate to trust, for a registry with TLS.
    pub fn authority(&self) -> String {
        self.folder.path().join("ca.crt").display().to_string()
    }

    /// Returns the number of issued tokens.
    pub fn tokens(&self) -> usize {
        self.token.as_ref().map_or(0, TokenServer::given)
    }
}

/// Creates a certificate authority, and a server certificate for the loopback address.
fn certificates(folder: &TempDir) -> Result<()> {
    let mut authority = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "registry tests");
    authority.distinguished_name = name;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    fs::write(
        folder.path().join("ca.crt"),
        authority.self_signed(&key)?.pem(),
    )?;
    let issuer = Issuer::new(authority, key);
    let mut server = CertificateParams::default();
    server.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
    let key = KeyPair::generate()?;
    fs::write(
        folder.path().join("server.crt"),
        server.signed_by(&key, &issuer)?.pem(),
    )?;
    fs::write(folder.path().join("server.key"), key.serialize_pem())?;
    Ok(())
}
