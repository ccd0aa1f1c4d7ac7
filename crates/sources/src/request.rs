//! Converts the requests of compositions to sources.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use orkestra_compiler::{
    compose::{Base, RequestKind, SourceRequest},
    scope::beside,
};
use orkestra_egress::Unavailable;
use orkestra_language::api::{
    auth::AuthType,
    sources::{Keyless, SourceCredentials, SourceSecret, Verify},
};
use orkestra_registry::signature::{Identity, TrustedRoot};

use crate::{
    Artifact, Credential, Document, Error, Fetcher, Pin, Scheme, SignatureRequirement, Source,
    ValuesFile,
};

/// The key of a Secret with a trusted root.
const TRUSTED_ROOT: &str = "trusted_root.json";
/// The variable that is always permitted: it is no secret.
const REGISTRY: &str = "ORK_REGISTRY";

/// A Secret.
#[derive(Clone, Default)]
pub struct Secret {
    /// Its type.
    pub type_: String,
    /// Its data, decoded.
    pub data: BTreeMap<String, Vec<u8>>,
}

/// Reads the Secrets that sources name.
pub trait Secrets: Send + Sync {
    /// Reads a Secret of the composition's namespace.
    ///
    /// # Errors
    /// A sentence with the reason.
    fn secret<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, String>>;
}

/// There are no Secrets: documents are files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn secret<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Secret, String>> {
        let why = "Secrets are read in a cluster only: use `fromEnv` in files";
        Box::pin(async move { Err(why.to_owned()) })
    }
}

impl Fetcher {
    /// Fetches what a composition asks for, with the Secrets that it names.
    ///
    /// `pin` is what a lock recorded: the same content is fetched, or it is an error.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unsupported`] for sources that are objects of the cluster.
    pub async fn request(
        &self,
        request: &SourceRequest,
        secrets: &dyn Secrets,
        pin: Option<&Pin>,
    ) -> Result<Arc<Artifact>, Error> {
        let expanded = self.expanded(request)?;
        let credential = match &request.auth {
            Some(auth) => self.credential(request, auth, secrets).await?,
            None => None,
        };
        let verify = match &request.verify {
            Some(verify) => Some(trust(request, verify, secrets).await?),
            None => None,
        };
        let source = self.source(&expanded, verify).await?;
        let artifact = self.fetch(&source, credential.as_ref(), pin).await?;
        // The values of variables are not shown.
        if expanded.kind == request.kind {
            return Ok(artifact);
        }
        Ok(Arc::new(Artifact {
            url: request.id.clone(),
            ..(*artifact).clone()
        }))
    }

    fn expanded(&self, request: &SourceRequest) -> Result<SourceRequest, Error> {
        let look_up = |name: &str| {
            if name == REGISTRY {
                let katalogs = self.katalogs();
                return (!katalogs.is_empty()).then(|| katalogs.to_owned());
            }
            self.variables().get(name).ok().map(str::to_owned)
        };
        request
            .expanded(look_up)
            .map_err(|name| self.unavailable(&request.id, &name))
    }

    fn unavailable(&self, id: &str, name: &str) -> Error {
        Error::Variable(match self.variables().get(name) {
            Err(Unavailable::Unset) => format!(
                "{id} names the variable {name}, which is not set in the environment of the process"
            ),
            _ => format!(
                "{id} names the variable {name}, which is not permitted: start with --source-env {name}"
            ),
        })
    }

    async fn credential(
        &self,
        request: &SourceRequest,
        auth: &SourceCredentials,
        secrets: &dyn Secrets,
    ) -> Result<Option<Credential>, Error> {
        let SourceCredentials {
            type_,
            from_env,
            secret_ref,
        } = auth;
        let scheme = type_.as_ref().map(|type_| match type_ {
            AuthType::Basic => Scheme::Basic,
            AuthType::Bearer => Scheme::Bearer,
            AuthType::Github => Scheme::GitHub,
        });
        match (secret_ref, from_env) {
            (Some(_), Some(_)) => Err(Error::Credential(
                request.id.clone(),
                "name both `fromEnv` and `secretRef`; use one".to_owned(),
            )),
            (Some(secret), None) => of_secret(request, secret, scheme, secrets).await.map(Some),
            (None, Some(name)) => {
                let text = self.variables().get(name);
                let text = text.map_err(|_| self.unavailable(&request.id, name))?;
                let scheme = scheme.unwrap_or(Scheme::Bearer);
                Credential::of_text(scheme, name, text).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    // Over 60 lines: a table, one arm for each kind of source.
    async fn source(
        &self,
        request: &SourceRequest,
        verify: Option<SignatureRequirement>,
    ) -> Result<Source, Error> {
        let unsigned = |verify: &Option<SignatureRequirement>| match verify {
            Some(_) => Err(Error::Unsupported(format!(
                "{}: `verify` is for artifacts of OCI registries",
                request.id
            ))),
            None => Ok(()),
        };
        Ok(match &request.kind {
            RequestKind::Registry { url, use_komposer } => Source::Registry {
                reference: url.clone(),
                document: if *use_komposer {
                    Document::Komposer
                } else {
                    Document::Katalog
                },
                verify,
            },
            RequestKind::File { path } => {
                unsigned(&verify)?;
                if !matches!(request.base, Base::File(_)) {
                    return Err(super::fetcher::no_files(path));
                }
                Source::Path(path.into())
            }
            RequestKind::Url { url } => {
                unsigned(&verify)?;
                Source::File { url: url.clone() }
            }
            RequestKind::Git {
                url,
                reference,
                path,
            } => {
                unsigned(&verify)?;
                Source::Git {
                    url: url.clone(),
                    reference: reference.clone(),
                    path: path.clone(),
                }
            }
            RequestKind::Helm {
                repo,
                chart,
                version,
                path,
                value_files,
                values,
            } => Source::Helm {
                repo: repo.clone(),
                chart: chart.clone(),
                version: version.clone().unwrap_or_default(),
                path: path.clone().unwrap_or_default(),
                files: self.values_files(request, value_files).await?,
                values: values.clone().unwrap_or_default(),
                verify,
            },
            RequestKind::ConfigMap { .. } | RequestKind::Katalogs { .. } => {
                return Err(Error::Unsupported(format!(
                    "{}: ConfigMaps and Katalogs are sources in a cluster only",
                    request.id
                )));
            }
        })
    }

    /// Finds values files: a URL, a file beside the document that names it, else a file of the chart.
    async fn values_files(
        &self,
        request: &SourceRequest,
        files: &[String],
    ) -> Result<Vec<ValuesFile>, Error> {
        let mut found = Vec::new();
        for file in files {
            if file.contains("://") {
                found.push(ValuesFile::Url(file.clone()));
                continue;
            }
            if let Base::File(document) = &request.base
                && self.is_local()
            {
                let path = beside(document, file);
                if PathBuf::from(&path).exists() {
                    let source = Source::Path(path.clone().into());
                    let artifact = self.fetch(&source, None, None).await?;
                    let text = artifact.text("").unwrap_or_default().to_owned();
                    found.push(ValuesFile::Text(path, text));
                    continue;
                }
            }
            found.push(ValuesFile::InChart(file.clone()));
        }
        Ok(found)
    }
}

async fn read(
    request: &SourceRequest,
    secret: &SourceSecret,
    secrets: &dyn Secrets,
) -> Result<Secret, Error> {
    let read = secrets.secret(&secret.name).await;
    read.map_err(|why| {
        let why = format!("are in Secret {}, which cannot be read: {why}", secret.name);
        Error::Credential(request.id.clone(), why)
    })
}

async fn of_secret(
    request: &SourceRequest,
    secret: &SourceSecret,
    scheme: Option<Scheme>,
    secrets: &dyn Secrets,
) -> Result<Credential, Error> {
    let Secret { type_, data } = read(request, secret, secrets).await?;
    let name = &secret.name;
    let Some(key) = &secret.key else {
        let credential = Credential::of_secret(name, &type_, &data)?;
        return Ok(match (credential, scheme) {
            (Credential::Bearer(token), Some(Scheme::GitHub)) => Credential::GitHub(token),
            (credential, _) => credential,
        });
    };
    let wrong = |why: &str| Error::Credential(format!("Secret {name}"), why.to_owned());
    let value = data.get(key);
    let value = value.ok_or_else(|| wrong(&format!("have no key `{key}`")))?;
    let text = std::str::from_utf8(value);
    let text = text.map_err(|_| wrong(&format!("have a {key} that is not UTF-8")))?;
    if text.trim_start().starts_with('{') {
        let data = BTreeMap::from([(".dockerconfigjson".to_owned(), value.clone())]);
        return Credential::of_secret(name, "", &data);
    }
    Credential::of_text(scheme.unwrap_or(Scheme::Bearer), key, text)
}

async fn trust(
    request: &SourceRequest,
    verify: &Verify,
    secrets: &dyn Secrets,
) -> Result<SignatureRequirement, Error> {
    let Verify {
        keys,
        secret_ref,
        keyless,
    } = verify;
    let wrong = |why: String| Error::Invalid(format!("{}: `verify`", request.id), why);
    let mut all = keys.clone();
    if let Some(secret) = secret_ref {
        let read = read(request, secret, secrets).await?;
        let wanted = |name: &str| match &secret.key {
            Some(key) => name == key,
            None => name
                .rsplit_once('.')
                .is_some_and(|(_, ending)| ending == "pub"),
        };
        let found = read.data.into_iter().filter(|(name, _)| wanted(name));
        let before = all.len();
        for (name, key) in found {
            let key = String::from_utf8(key);
            all.push(key.map_err(|_| wrong(format!("{name} of the Secret is not a key")))?);
        }
        if all.len() == before {
            return Err(wrong(format!(
                "Secret {} has no public key: expected a key that ends in `.pub`",
                secret.name
            )));
        }
    }
    let identity = match keyless {
        Some(keyless) => Some(identity(request, keyless, secrets).await?),
        None => None,
    };
    let trust = SignatureRequirement::of(all.iter().map(String::as_str), identity);
    trust.map_err(|why| wrong(why.to_string()))
}

/// Returns the identity of a source, with the trusted root that it names.
async fn identity(
    request: &SourceRequest,
    keyless: &Keyless,
    secrets: &dyn Secrets,
) -> Result<Identity, Error> {
    let Keyless {
        issuer,
        subject,
        trusted_root,
        secret_ref,
    } = keyless;
    let wrong = |why: String| Error::Invalid(format!("{}: `verify.keyless`", request.id), why);
    let root = match (trusted_root, secret_ref) {
        (Some(root), None) => root.clone(),
        (None, Some(secret)) => {
            let key = secret.key.as_deref().unwrap_or(TRUSTED_ROOT);
            let mut data = read(request, secret, secrets).await?.data;
            let root = data
                .remove(key)
                .ok_or_else(|| wrong(format!("Secret {} has no key `{key}`", secret.name)))?;
            String::from_utf8(root)
                .map_err(|_| wrong(format!("{key} of Secret {} is not UTF-8", secret.name)))?
        }
        _ => {
            let why = "expected either `trustedRoot` or `secretRef`";
            return Err(wrong(why.to_owned()));
        }
    };
    let identity = TrustedRoot::parse(&root).and_then(|root| Identity::new(issuer, subject, root));
    identity.map_err(|why| wrong(why.to_string()))
}
