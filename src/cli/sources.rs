//! Flags for the sources of Komposers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use orkestra_core::compose::{LOCK_FILE, Lock};
use orkestra_guard::{Allow, Guard, Variables};
use orkestra_registry::{DEFAULT_KATALOGS, DEFAULT_MOTIFS, Keychain, artifact::Kind};
use orkestra_sources::{Fetcher, Options, Policy};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{options::CommaSeparated, output};
use crate::compose::{Fetch, Remote};

/// Flags that limit which sources are fetched.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sources")]
pub(super) struct Fetching {
    /// Host, subdomains of a host (*.example.org) or network that sources may be fetched from: in a cluster no others, for files
    /// in addition to public hosts over HTTPS and this machine; prefix `http://` permits plain HTTP; may be repeated
    #[arg(
        id = "source_allow",
        long = "source-allow",
        value_name = "HOST|CIDR",
        env = "ORK_SOURCE_ALLOW",
        hide_env_values = true
    )]
    allow: Vec<CommaSeparated<Allow>>,
    /// Environment variable that sources may use, in URLs and as `fromEnv`; may be repeated
    #[arg(
        id = "source_env",
        long = "source-env",
        value_name = "NAME",
        env = "ORK_SOURCE_ENV",
        hide_env_values = true
    )]
    env: Vec<CommaSeparated<String>>,
    /// File with the signatures that artifacts must have, by host
    #[arg(
        id = "source_policy",
        long = "source-policy",
        value_name = "FILE",
        env = "ORK_SOURCE_POLICY",
        hide_env_values = true
    )]
    policy: Option<PathBuf>,
    /// CA certificates in PEM to trust for sources, in addition to those of the machine
    #[arg(
        id = "source_ca_file",
        long = "source-ca-file",
        value_name = "FILE",
        env = "ORK_SOURCE_CA_FILE",
        hide_env_values = true
    )]
    ca_file: Option<PathBuf>,
}

/// The sources that Komposers in files may name.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sources")]
pub(super) struct SourceOptions {
    #[command(flatten)]
    fetching: Fetching,
    /// Require the revisions in komposer.lock, which `ork lock` writes
    #[arg(long)]
    locked: bool,
}

/// The options for sources that the user of this machine names, with the user's credentials.
pub(super) fn at_desk(allowed: Vec<Allow>) -> Options {
    let mut options = Options::new(Guard::at_desk(allowed));
    options.local = true;
    // Most documents have no sources: a broken configuration is no reason to refuse them.
    options.keychain = Keychain::of_user().unwrap_or_else(|error| {
        output::note(&format!(
            "warning: credentials of registries are not used: {error}"
        ));
        Keychain::anonymous()
    });
    options.katalogs = base(Kind::Katalog);
    options.motifs = base(Kind::Motif);
    options
}

impl Fetching {
    /// The hosts and networks that are permitted by flags.
    pub(super) fn allowed(&self) -> Vec<Allow> {
        CommaSeparated::all(&self.allow)
    }

    /// The fetcher for Komposers of a cluster: it calls only permitted hosts, without credentials of its own.
    pub(super) fn in_cluster(&self) -> anyhow::Result<Fetcher> {
        let mut options = Options::new(Guard::for_sources(self.allowed()));
        options.katalogs = base(Kind::Katalog);
        options.motifs = base(Kind::Motif);
        Ok(Fetcher::new(self.complete(options)?))
    }

    /// The fetcher for files that the user of this machine names.
    pub(super) fn fetcher(&self) -> anyhow::Result<Fetcher> {
        let options = at_desk(self.allowed());
        Ok(Fetcher::new(self.complete(options)?))
    }

    /// Fetches the sources of Komposers in files.
    pub(super) fn fetch(&self) -> anyhow::Result<Arc<dyn Fetch>> {
        Ok(Arc::new(Remote::new(self.fetcher()?)))
    }

    /// Adds the variables, the policy and the certificates of the flags.
    pub(super) fn complete(&self, mut options: Options) -> anyhow::Result<Options> {
        options.variables =
            Variables::new(CommaSeparated::all(&self.env), |name| env::var(name).ok());
        if let Some(file) = &self.policy {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            options.policy = Policy::parse(&text).with_context(|| file.display().to_string())?;
        }
        if let Some(file) = &self.ca_file {
            options.roots = certificates(file)?;
        }
        Ok(options)
    }
}

impl SourceOptions {
    /// The fetcher for files that the user names.
    pub(super) fn fetcher(&self) -> anyhow::Result<Fetcher> {
        self.fetching.fetcher()
    }

    /// Fetches the sources as they are now, even if Komposers require a lock; with `--locked` in the locked revisions.
    pub(super) fn current(&self, path: &PathBuf) -> anyhow::Result<Arc<dyn Fetch>> {
        if self.locked {
            return self.fetch(std::slice::from_ref(path));
        }
        Ok(Arc::new(Remote::new(self.fetcher()?).ignoring_locks()))
    }

    /// Fetches the sources of the Komposers at these paths.
    pub(super) fn fetch(&self, paths: &[PathBuf]) -> anyhow::Result<Arc<dyn Fetch>> {
        if !self.locked {
            return self.fetching.fetch();
        }
        let remote = Remote::new(self.fetcher()?);
        let mut locked = Lock::default();
        for path in paths {
            let file = lock_file(path);
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}; `ork lock` writes it", file.display()))?;
            let lock = Lock::read(&text).with_context(|| file.display().to_string())?;
            locked.sources.extend(lock.sources);
        }
        Ok(Arc::new(remote.locked(locked)))
    }
}

/// The lock file of a Komposer's file or folder.
pub(super) fn lock_file(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(LOCK_FILE)
    } else {
        path.with_file_name(LOCK_FILE)
    }
}

/// Reads certificates from a file in PEM.
pub(super) fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file);
    let read = read.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let roots =
        read.with_context(|| format!("cannot read certificates from {}", file.display()))?;
    anyhow::ensure!(
        !roots.is_empty(),
        "{} has no certificate in PEM",
        file.display()
    );
    Ok(roots)
}

/// The folder that short names are below.
pub(super) fn base(kind: Kind) -> String {
    let (variable, default) = match kind {
        Kind::Katalog => ("ORK_REGISTRY", DEFAULT_KATALOGS),
        Kind::Motif => ("ORK_MOTIFS_REGISTRY", DEFAULT_MOTIFS),
    };
    let set = env::var(variable)
        .ok()
        .filter(|base| !base.trim().is_empty());
    set.unwrap_or_else(|| default.to_owned())
}
