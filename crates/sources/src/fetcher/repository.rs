//! Fetches sources from Git repositories.

use std::{path::PathBuf, sync::Arc};

use super::{CachedSource, FetchJob, FetchResult, Fetcher, Validators, blocking, same};
use crate::{
    Artifact, Error, Fetched,
    artifact::{is_yaml, text},
    git::{self, Blob, ObjectId, Objects, Remote, RepositoryLocation, WalkError, WalkLimits},
    http::without_query,
};

/// The most documents beside the one that is named.
const MOST_BESIDE: usize = 500;
/// The most bytes of them.
const MOST_BESIDE_BYTES: usize = 4 << 20;

/// What is wanted of a commit.
#[derive(Clone)]
pub(crate) struct FileSelection {
    /// The file or folder.
    pub(crate) path: String,
    /// Whether all files are wanted, or only documents.
    pub(crate) whole: bool,
}

/// A commit and the files that are wanted of it.
pub(crate) struct Checkout {
    pub(crate) base: Option<String>,
    pub(crate) commit: ObjectId,
    /// `None` if the commit is the known one.
    pub(crate) files: Option<Vec<Blob>>,
}

impl Fetcher {
    pub(crate) async fn git(
        &self,
        job: FetchJob<'_>,
        url: &str,
        reference: &str,
        path: &str,
    ) -> FetchResult {
        let verified = self.unsigned(url)?;
        let name = if reference.is_empty() {
            "HEAD"
        } else {
            reference
        };
        let path = normal(url, path)?;
        let wanted = FileSelection { path, whole: false };
        let Checkout {
            base,
            commit,
            files,
        } = self.checkout(job, url, name, wanted).await?;
        let Some(files) = files else {
            return Ok(None);
        };
        let mut documents = Vec::new();
        for Blob { path, data } in files {
            let text = text(&path, data)
                .map_err(|why| Error::Malformed(without_query(url).to_owned(), why))?;
            documents.push(Fetched { name: path, text });
        }
        let digest = Artifact::digest_of(&documents);
        let state = Validators::Git {
            base,
            commit,
            marks: String::new(),
        };
        let revision = if commit == name {
            name.to_owned()
        } else {
            format!("{name}@{commit}")
        };
        if let Some(same) = same(job, &digest, &state).filter(|k| k.artifact.revision == revision) {
            return Ok(Some(same));
        }
        Ok(Some(CachedSource {
            state,
            artifact: Arc::new(Artifact {
                url: without_query(url).to_owned(),
                revision,
                digest,
                documents,
                verified,
            }),
        }))
    }

    /// Returns the files of a commit, unless it is the known one.
    pub(crate) async fn checkout(
        &self,
        job: FetchJob<'_>,
        url: &str,
        name: &str,
        wanted: FileSelection,
    ) -> Result<Checkout, Error> {
        git::check_name(name).map_err(|why| Error::Invalid(without_query(url).to_owned(), why))?;
        let pinned = job.pin.map(|pin| pin.revision.rsplit('@').next());
        let commit = pinned.flatten().unwrap_or(name).parse::<ObjectId>().ok();
        let known = match job.known.map(|known| &known.state) {
            Some(Validators::Git { base, commit, .. }) => Some((base.clone(), *commit)),
            _ => None,
        };
        if let (Some(commit), Some((base, is))) = (commit, &known)
            && commit == *is
        {
            return Ok(Checkout {
                base: base.clone(),
                commit,
                files: None,
            });
        }
        match RepositoryLocation::parse(url)? {
            RepositoryLocation::Local(folder) => {
                self.local(folder, name, commit, wanted, known).await
            }
            RepositoryLocation::Remote(url) => {
                self.remote(job, &url, name, commit, wanted, known).await
            }
        }
    }

    async fn local(
        &self,
        folder: PathBuf,
        name: &str,
        commit: Option<ObjectId>,
        wanted: FileSelection,
        known: Option<(Option<String>, ObjectId)>,
    ) -> Result<Checkout, Error> {
        let shown = format!("file://{}", folder.display());
        if !self.0.local {
            return Err(Error::Unsupported(format!(
                "{shown}: a local repository cannot be used in a cluster; use an HTTPS URL"
            )));
        }
        let (limits, name) = (self.0.http.limits, name.to_owned());
        let _heavy = self.0.heavy.acquire().await;
        let what = shown.clone();
        let read = move || {
            let mut local = git::Local::open(&folder, &limits)?;
            let commit = match commit {
                Some(commit) => commit,
                None => local.tip(&name)?.commit,
            };
            let files = match known {
                Some((_, is)) if is == commit => None,
                _ => Some(walk(&mut local, &what, commit, &wanted, &limits)?),
            };
            Ok(Checkout {
                base: None,
                commit,
                files,
            })
        };
        blocking(&shown, read).await?
    }

    async fn remote(
        &self,
        job: FetchJob<'_>,
        url: &str,
        name: &str,
        commit: Option<ObjectId>,
        wanted: FileSelection,
        known: Option<(Option<String>, ObjectId)>,
    ) -> Result<Checkout, Error> {
        let authorization = self.authorization(job.credential, url).await?;
        let http = &self.0.http;
        let base = known.as_ref().and_then(|(base, _)| base.clone());
        let authorization = authorization.as_ref();
        let (remote, commit) = match (base, commit) {
            (Some(base), None) => {
                let remote = Remote::at(http, url, base, authorization);
                // One small request suffices while the repository stays where it is.
                if let Ok(tip) = remote.tip(name).await {
                    (remote, tip.commit)
                } else {
                    let remote = Remote::discover(http, url, authorization).await?;
                    let tip = remote.tip(name).await?;
                    (remote, tip.commit)
                }
            }
            (_, commit) => {
                let remote = Remote::discover(http, url, authorization).await?;
                let commit = match commit {
                    Some(commit) => commit,
                    None => remote.tip(name).await?.commit,
                };
                (remote, commit)
            }
        };
        let base = Some(remote.base.clone());
        if known.is_some_and(|(_, is)| is == commit) {
            return Ok(Checkout {
                base,
                commit,
                files: None,
            });
        }
        let _heavy = self.0.heavy.acquire().await;
        let bytes = remote.fetch(commit).await?;
        let (limits, what) = (http.limits, without_query(url).to_owned());
        let read = move || {
            let mut pack = git::Pack::read(bytes, &limits)
                .map_err(|why| Error::Malformed(what.clone(), why))?;
            walk(&mut pack, &what, commit, &wanted, &limits)
        };
        let files = blocking(without_query(url), read).await??;
        Ok(Checkout {
            base,
            commit,
            files: Some(files),
        })
    }
}

/// Returns the limits of a walk over all files, or over documents.
fn walk_limits(whole: bool, limits: &crate::Limits) -> WalkLimits {
    if whole {
        WalkLimits {
            files: 10_000,
            file: limits.chart,
            bytes: 2 * limits.chart,
            folders: limits.objects,
        }
    } else {
        WalkLimits {
            files: limits.files,
            file: limits.document,
            bytes: limits.documents,
            folders: limits.objects,
        }
    }
}

/// Returns the wanted files of a commit, with their paths in the repository. For a single document, those are also the other
/// documents of the repository, which it may refer to.
fn walk(
    objects: &mut impl Objects,
    what: &str,
    commit: ObjectId,
    wanted: &FileSelection,
    limits: &crate::Limits,
) -> Result<Vec<Blob>, Error> {
    let most = walk_limits(wanted.whole, limits);
    let failed = |error: WalkError| match error {
        WalkError::Missing => Error::NotFound(format!("{} in {what} at {commit}", wanted.path)),
        WalkError::Failed(why) => Error::Malformed(what.to_owned(), why),
    };
    let accept = |path: &str| wanted.whole || is_yaml(path);
    let path = &wanted.path;
    let mut files = git::files(objects, commit, path, accept, most).map_err(failed)?;
    let is_file =
        !wanted.whole && is_yaml(path) && files.len() == 1 && path.ends_with(&files[0].path);
    if !is_file {
        let prefix = if path.is_empty() || wanted.whole {
            String::new()
        } else {
            format!("{path}/")
        };
        for file in &mut files {
            file.path.insert_str(0, &prefix);
        }
        if files.is_empty() {
            return Err(Error::NotFound(format!(
                "a YAML file in {path} of {what} at {commit}"
            )));
        }
        return Ok(files);
    }
    files[0].path.clone_from(path);
    // A repository with more documents than this is no reason to refuse the one that is named: then those of its folder suffice.
    let most = WalkLimits {
        files: MOST_BESIDE.min(limits.files),
        bytes: MOST_BESIDE_BYTES.min(limits.documents),
        ..most
    };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let prefix = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    let beside = if let Ok(all) = git::files(objects, commit, "", is_yaml, most) {
        all
    } else {
        let mut beside = git::files(objects, commit, folder, is_yaml, most).unwrap_or_default();
        for file in &mut beside {
            file.path.insert_str(0, &prefix);
        }
        beside
    };
    files.extend(beside.into_iter().filter(|file| file.path != *path));
    Ok(files)
}

/// Returns a path without `.` and empty parts.
pub(crate) fn normal(url: &str, path: &str) -> Result<String, Error> {
    let wrong = || {
        let why = format!("`{path}` is not a path in the repository");
        Error::Invalid(without_query(url).to_owned(), why)
    };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(wrong()),
            part if part.chars().any(char::is_control) || part.contains('\\') => {
                return Err(wrong());
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}
