//! Flags for the sources of Komposers.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use anyhow::Context as _;
use orkestra_compiler::compose::{LOCK_FILE, Lock};
use orkestra_egress::{Allow, Guard, Variables};
use orkestra_language::api::names;
use orkestra_registry::{Keychain, artifact::Kind};
use orkestra_sources::{Fetcher, Options, Policy};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;

use super::{
    options::{CommaSeparated, without_api_server},
    output,
};
use orkestra_admin::published;
use orkestra_loader::compose::{ANY_KEY, ConfigMaps, Fetch, Remote};

/// Flags that limit which sources are fetched.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sources")]
pub(crate) struct Fetching {
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
pub(crate) struct SourceOptions {
    #[command(flatten)]
    fetching: Fetching,
    /// Content of a source that exists in a cluster only, such as `configmap/waters=waters.yaml`: a file with the manifest of the
    /// `ConfigMap`, or with a document in it, or a folder with a file for each key; may be repeated
    #[arg(long = "source", value_name = "configmap/NAME=FILE")]
    given: Vec<GivenSource>,
    /// Require the revisions in komposer.lock, which `ork lock` writes
    #[arg(long)]
    locked: bool,
}

/// The options for sources that the user of this machine names, with the user's credentials.
pub(crate) fn at_desk(allowed: Vec<Allow>) -> Options {
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
    pub(crate) fn allowed(&self) -> Vec<Allow> {
        CommaSeparated::all(&self.allow)
    }

    /// The options for Komposers of a cluster: only permitted hosts are called, without credentials of its own, and never the API
    /// server of the Pod.
    pub(crate) fn in_cluster(&self) -> anyhow::Result<Options> {
        let guard = without_api_server(Guard::for_sources(self.allowed()));
        let mut options = Options::new(guard);
        options.katalogs = base(Kind::Katalog);
        options.motifs = base(Kind::Motif);
        self.complete(options)
    }

    /// The fetcher for files that the user of this machine names.
    pub(crate) fn fetcher(&self) -> anyhow::Result<Fetcher> {
        let options = at_desk(self.allowed());
        Ok(Fetcher::new(self.complete(options)?))
    }

    /// Fetches the sources of Komposers in files.
    pub(crate) fn fetch(&self) -> anyhow::Result<Arc<dyn Fetch>> {
        Ok(Arc::new(Remote::new(self.fetcher()?)))
    }

    /// Adds the variables, the policy and the certificates of the flags.
    pub(crate) fn complete(&self, mut options: Options) -> anyhow::Result<Options> {
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

/// A `ConfigMap`, and the file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GivenSource {
    name: String,
    file: PathBuf,
}

impl FromStr for GivenSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected configmap/NAME=FILE, such as configmap/waters=waters.yaml".to_owned();
        let (what, file) = text.split_once('=').ok_or_else(expected)?;
        let name = what.strip_prefix("configmap/").ok_or_else(expected)?;
        names::check_dns1123_subdomain(name)?;
        if file.is_empty() {
            return Err(expected());
        }
        Ok(Self {
            name: name.to_owned(),
            file: file.into(),
        })
    }
}

impl GivenSource {
    /// Reads the data of the `ConfigMap`: that of its manifest, else a key for each file.
    fn data(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let read = |file: &Path| {
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        };
        let key = |file: &Path| file.file_name()?.to_str().map(str::to_owned);
        let mut data = BTreeMap::new();
        if self.file.is_dir() {
            let shown = self.file.display();
            let entries =
                fs::read_dir(&self.file).with_context(|| format!("cannot read {shown}"))?;
            for entry in entries {
                let file = entry
                    .with_context(|| format!("cannot read {shown}"))?
                    .path();
                if let Some(key) = key(&file).filter(|key| !key.starts_with('.') && file.is_file())
                {
                    data.insert(key, read(&file)?);
                }
            }
            return Ok(data);
        }
        let text = read(&self.file)?;
        let manifests: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
        let is_config_map = |one: &&Value| one["kind"] == "ConfigMap" && one["apiVersion"] == "v1";
        if !manifests.iter().any(|one| is_config_map(&one)) {
            data.insert(ANY_KEY.to_owned(), text);
            return Ok(data);
        }
        let own = |one: &&Value| is_config_map(one) && one["metadata"]["name"] == *self.name;
        let manifest = manifests.iter().find(own).with_context(|| {
            format!(
                "{} has no ConfigMap with the name `{}`",
                self.file.display(),
                self.name
            )
        })?;
        let entries = manifest["data"].as_object().into_iter().flatten();
        data.extend(
            entries.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))),
        );
        Ok(data)
    }
}

impl SourceOptions {
    /// Returns the data of the `ConfigMaps` whose content is given.
    fn config_maps(&self) -> anyhow::Result<ConfigMaps> {
        let given = self.given.iter();
        given
            .map(|one| Ok((one.name.clone(), one.data()?)))
            .collect()
    }

    /// Fetches for these files, with the given sources.
    fn remote(&self) -> anyhow::Result<Remote> {
        Ok(Remote::new(self.fetcher()?).with_config_maps(self.config_maps()?))
    }

    /// The fetcher for files that the user names.
    pub(crate) fn fetcher(&self) -> anyhow::Result<Fetcher> {
        self.fetching.fetcher()
    }

    /// Fetches the sources as they are now, even if Komposers require a lock; with `--locked` in the locked revisions.
    pub(crate) fn current(&self, path: &PathBuf) -> anyhow::Result<Arc<dyn Fetch>> {
        if self.locked {
            return self.fetch(std::slice::from_ref(path));
        }
        Ok(Arc::new(self.remote()?.ignoring_locks()))
    }

    /// Fetches the sources of the Komposers at these paths.
    pub(crate) fn fetch(&self, paths: &[PathBuf]) -> anyhow::Result<Arc<dyn Fetch>> {
        let remote = self.remote()?;
        if !self.locked {
            return Ok(Arc::new(remote));
        }
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
pub(crate) fn lock_file(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(LOCK_FILE)
    } else {
        path.with_file_name(LOCK_FILE)
    }
}

/// Reads certificates from a file in PEM.
pub(crate) fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
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

/// The folder that short names are below; empty if there is none.
pub(crate) fn base(kind: Kind) -> String {
    let (variable, folder) = match kind {
        Kind::Katalog => ("ORK_REGISTRY", "katalogs"),
        Kind::Motif => ("ORK_MOTIFS_REGISTRY", "motifs"),
    };
    let set = env::var(variable)
        .ok()
        .filter(|base| !base.trim().is_empty());
    let published = || published::PATTERNS.map(|patterns| format!("{patterns}/{folder}"));
    set.or_else(published).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_is_given_as_manifest_document_or_folder() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            format!("configmap/waters={}", file.display())
        };
        let data = |given: &str| given.parse::<GivenSource>().unwrap().data();
        let manifest = file(
            "manifest.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {x.yaml: y}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {name: waters}\ndata: {pond.yaml: text, n: more}\n",
        );
        let read = data(&manifest).unwrap();
        assert_eq!(read["pond.yaml"], "text");
        assert_eq!(read.len(), 2);
        let foreign = manifest.replace("configmap/waters", "configmap/seas");
        let refused = data(&foreign).unwrap_err().to_string();
        assert!(
            refused.contains("no ConfigMap with the name `seas`"),
            "{refused}"
        );
        let document = file("pond.yaml", "kind: Katalog\n");
        assert_eq!(data(&document).unwrap()[ANY_KEY], "kind: Katalog\n");
        let all = format!("configmap/waters={}", folder.path().display());
        let keys: Vec<String> = data(&all).unwrap().into_keys().collect();
        assert_eq!(keys, ["manifest.yaml", "pond.yaml"]);
        assert!(data("configmap/waters=/nowhere/at/all").is_err());
        for wrong in [
            "waters=x",
            "configmap/=x",
            "configmap/waters",
            "configmap/waters=",
            "secret/a=b",
        ] {
            assert!(wrong.parse::<GivenSource>().is_err(), "{wrong}");
        }
    }
}
