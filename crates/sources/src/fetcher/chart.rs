//! Fetches Helm charts.

use std::sync::Arc;

use orkestra_egress::Target;
use orkestra_object::value::Node;
use orkestra_registry::{Reference, Repository};
use sha2::{Digest as _, Sha256};

use super::{
    CachedSource, FetchJob, FetchResult, Fetcher, Validators, WHOLE, blocking, cache::CachedIndex,
    name, same, timed_out,
};
use crate::{
    Artifact, Error, Fetched, Source, ValuesFile, Verified,
    artifact::text,
    fetcher::repository::{FileSelection, normal},
    helm::{self, PackedChart, RepositoryIndex, ValuesText},
    http::{HttpRequest, HttpResponse, without_query},
    policy::SignatureRequirement,
    registry,
};

/// A chart that was found.
struct Chart {
    /// What identifies its content.
    identity: String,
    /// The version in the revision.
    version: String,
    packed: PackedChart,
    verified: Verified,
    state: Option<Validators>,
}

impl Fetcher {
    /// Fetches the archive of a chart without rendering it: the newest version that satisfies `version`, of a repository, or of
    /// a registry if `repo` begins with `oci://`. With an empty `chart`, `repo` names the chart as well.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn chart(&self, repo: &str, chart: &str, version: &str) -> Result<Vec<u8>, Error> {
        let source = Source::Helm {
            repo: repo.to_owned(),
            chart: chart.to_owned(),
            version: version.to_owned(),
            path: String::new(),
            files: Vec::new(),
            values: Node::Null,
            verify: None,
        };
        let fetching = async {
            let _place = self.0.places.acquire().await;
            let job = FetchJob {
                source: &source,
                credential: None,
                pin: None,
                known: None,
            };
            if repo.starts_with("oci://") {
                self.of_registry(job, repo, chart, version, None, "").await
            } else {
                self.of_index(job, repo, chart, version, "").await
            }
        };
        let found = tokio::time::timeout(WHOLE, fetching)
            .await
            .unwrap_or_else(|_| Err(timed_out(&source)))?;
        match found.map(|chart| chart.packed) {
            Some(PackedChart::Archive(data)) => Ok(data),
            Some(PackedChart::Files(_)) | None => Err(Error::NotFound(name(&source))),
        }
    }

    pub(crate) async fn helm(&self, job: FetchJob<'_>) -> FetchResult {
        let Source::Helm {
            repo,
            chart,
            version,
            path,
            files,
            values,
            verify,
        } = job.source
        else {
            return Ok(None);
        };
        let version = match job.pin {
            Some(pin) if !pin.revision.contains('@') => &pin.revision,
            _ => version,
        };
        let (files, marks) = self.values(repo, files).await?;
        let found = if repo.starts_with("oci://") {
            self.of_registry(job, repo, chart, version, verify.as_ref(), &marks)
                .await?
        } else if verify.is_some() {
            let why = "`verify` is for charts of `oci://` registries";
            return Err(Error::Unsupported(format!("{}: {why}", name(job.source))));
        } else if is_git(repo, path) {
            self.of_git(job, repo, chart, version, path, &marks).await?
        } else {
            self.of_index(job, repo, chart, version, &marks).await?
        };
        let Some(found) = found else {
            return Ok(None);
        };
        self.render(job, repo, chart, found, files, values).await
    }

    async fn render(
        &self,
        job: FetchJob<'_>,
        repo: &str,
        chart: &str,
        found: Chart,
        files: Vec<ValuesText>,
        values: &Node,
    ) -> FetchResult {
        let what = name(job.source);
        let Chart {
            identity,
            version,
            packed,
            verified,
            state,
        } = found;
        let (limits, values, of) = (self.0.http.limits, values.clone(), what.clone());
        let _heavy = self.0.heavy.acquire().await;
        let rendering = move || helm::rendered(&of, packed, &files, &values, &limits);
        let rendered = blocking(&what, rendering).await??;
        if rendered.documents.is_empty() {
            let why = "it renders no document of Orkestra's kinds";
            return Err(Error::Malformed(what, why.to_owned()));
        }
        let digest = Artifact::digest_of(&rendered.documents);
        let state = state.unwrap_or(Validators::Chart(identity));
        let revision = if version.is_empty() {
            rendered.version
        } else {
            version
        };
        if let Some(same) = same(job, &digest, &state).filter(|k| k.artifact.revision == revision) {
            return Ok(Some(same));
        }
        Ok(Some(CachedSource {
            state,
            artifact: Arc::new(Artifact {
                url: format!("{}/{chart}", without_query(repo).trim_end_matches('/')),
                revision,
                digest,
                documents: rendered.documents,
                verified,
            }),
        }))
    }

    /// Reads values files; the marks tell whether they changed.
    async fn values(
        &self,
        repo: &str,
        files: &[ValuesFile],
    ) -> Result<(Vec<ValuesText>, String), Error> {
        let mut values = Vec::new();
        let mut texts = Vec::new();
        for file in files {
            match file {
                ValuesFile::InChart(name) => {
                    values.push(ValuesText::InChart(normal(repo, name)?));
                }
                ValuesFile::Text(name, text) => {
                    texts.push(Fetched {
                        name: name.clone(),
                        text: text.clone(),
                    });
                    values.push(ValuesText::Text(name.clone(), text.clone()));
                }
                ValuesFile::Url(url) => {
                    self.unsigned(url)?;
                    let ask = HttpRequest::get(url, self.0.http.limits.document);
                    let HttpResponse::Is { body, .. } = self.0.http.ask(&ask).await? else {
                        return Err(Error::NotFound(without_query(url).to_owned()));
                    };
                    let name = without_query(url).to_owned();
                    let text =
                        text("it", body).map_err(|why| Error::Malformed(name.clone(), why))?;
                    texts.push(Fetched {
                        name: name.clone(),
                        text: text.clone(),
                    });
                    values.push(ValuesText::Text(name, text));
                }
            }
        }
        Ok((values, Artifact::digest_of(&texts)))
    }

    async fn of_registry(
        &self,
        job: FetchJob<'_>,
        repo: &str,
        chart: &str,
        version: &str,
        verify: Option<&SignatureRequirement>,
        marks: &str,
    ) -> Result<Option<Chart>, Error> {
        let wrong = |why: &dyn std::fmt::Display| Error::Invalid(repo.to_owned(), why.to_string());
        let repository = Repository::parse(repo).map_err(|why| wrong(&why))?;
        let repository = match chart {
            "" => repository,
            chart => repository.child(chart).map_err(|why| wrong(&why))?,
        };
        let client = self.client(job.credential)?;
        let tag = if helm::is_exact(version) {
            version.trim().replace('+', "_")
        } else {
            let tags = client.tags(&repository).await?;
            helm::select_tag(version, &tags)
                .map_err(|why| Error::NotFound(format!("oci://{repository}: {why}")))?
        };
        let reference = format!("oci://{repository}:{tag}");
        let reference: Reference = reference.parse().map_err(|why| wrong(&why))?;
        let digest = registry::digest(&client, &reference, None).await?;
        let identity = format!("{digest} {marks}");
        if is_known(job, &identity) {
            return Ok(None);
        }
        let verified = self.verified(&client, &repository, &digest, verify).await?;
        let pinned = reference.at(digest);
        let packed = registry::chart(&client, &pinned, &self.0.http.limits).await?;
        Ok(Some(Chart {
            identity,
            version: tag.replace('_', "+"),
            packed: PackedChart::Archive(packed),
            verified,
            state: None,
        }))
    }

    async fn of_git(
        &self,
        job: FetchJob<'_>,
        repo: &str,
        chart: &str,
        reference: &str,
        path: &str,
        marks: &str,
    ) -> Result<Option<Chart>, Error> {
        let verified = self.unsigned(repo)?;
        let path = normal(repo, if path.is_empty() { chart } else { path })?;
        let reference = match reference.trim() {
            "" | "*" => "HEAD",
            reference => reference,
        };
        let wanted = FileSelection { path, whole: true };
        // Values may have changed though the commit has not.
        let same_values = |known: &&CachedSource| matches!(&known.state, Validators::Git { marks: known, .. } if known == marks);
        let job = FetchJob {
            known: job.known.filter(same_values),
            ..job
        };
        let found = self.checkout(job, repo, reference, wanted).await?;
        let Some(files) = found.files else {
            return Ok(None);
        };
        let commit = found.commit;
        Ok(Some(Chart {
            identity: format!("{commit} {marks}"),
            version: format!("{reference}@{commit}"),
            packed: PackedChart::Files(files),
            verified,
            state: Some(Validators::Git {
                base: found.base,
                commit,
                marks: marks.to_owned(),
            }),
        }))
    }

    async fn of_index(
        &self,
        job: FetchJob<'_>,
        repo: &str,
        chart: &str,
        version: &str,
        marks: &str,
    ) -> Result<Option<Chart>, Error> {
        let verified = self.unsigned(repo)?;
        let repo = repo.trim_end_matches('/');
        let authorization = self.authorization(job.credential, repo).await?;
        let CachedIndex { index, from, .. } = self.index(job, repo, authorization.as_ref()).await?;
        let not_found = |why: String| Error::NotFound(format!("{}: {why}", without_query(repo)));
        let listed = index.select(chart, version).map_err(not_found)?;
        let malformed = |why: String| Error::Malformed(without_query(repo).to_owned(), why);
        let expected = listed.digest.as_deref().unwrap_or_default();
        let expected = expected.trim().trim_start_matches("sha256:").to_owned();
        let identity = format!("{} {expected} {marks}", listed.version);
        // Without a digest, a changed archive under the same version would go unnoticed.
        if !expected.is_empty() && is_known(job, &identity) {
            return Ok(None);
        }
        let place = listed.urls.first().map(String::as_str).unwrap_or_default();
        let target = from
            .join(place)
            .map_err(|why| malformed(format!("the URL of the chart {chart}: {why}")))?;
        let url = format!("{target}{}", target.path);
        let first = Target::parse(repo).map_err(|why| Error::Url(repo.to_owned(), why))?;
        let is_same = first.same_origin(&target);
        if first.secure && !target.secure {
            let why = format!("the chart {chart} is at a plain HTTP address");
            return Err(malformed(why));
        }
        let ask = HttpRequest {
            led_by: (!is_same).then_some(&first),
            authorization: authorization.as_ref().filter(|_| is_same),
            ..HttpRequest::get(&url, self.0.http.limits.chart)
        };
        let HttpResponse::Is { body, .. } = self.0.http.ask(&ask).await? else {
            return Err(Error::NotFound(without_query(&url).to_owned()));
        };
        let actual = orkestra_registry::Digest::of(&body).hex();
        if !expected.is_empty() && expected != actual {
            return Err(Error::Mismatch {
                what: without_query(&url).to_owned(),
                expected: format!("sha256:{expected}"),
                actual: format!("sha256:{actual}"),
            });
        }
        Ok(Some(Chart {
            identity,
            version: listed.version.clone(),
            packed: PackedChart::Archive(body),
            verified,
            state: None,
        }))
    }

    /// Returns the index of a chart repository: with one small request if it is unchanged.
    async fn index(
        &self,
        job: FetchJob<'_>,
        repo: &str,
        authorization: Option<&::http::HeaderValue>,
    ) -> Result<CachedIndex, Error> {
        let mut hasher = Sha256::new();
        hasher.update(repo);
        hasher.update(
            job.credential
                .map(crate::Credential::mark)
                .unwrap_or_default(),
        );
        let key = hasher.finalize().into();
        let known = self.0.cache.lock().index(&key);
        let url = format!("{repo}/index.yaml");
        let ask = HttpRequest {
            authorization,
            known: known.as_ref().map(|known| &known.validator),
            ..HttpRequest::get(&url, self.0.http.limits.index)
        };
        let (body, validator, from) = match (self.0.http.ask(&ask).await?, known) {
            (HttpResponse::Unchanged, Some(known)) => return Ok(known),
            (HttpResponse::Unchanged, None) => return Err(Error::NotFound(url)),
            (
                HttpResponse::Is {
                    body,
                    validator,
                    from,
                },
                _,
            ) => (body, validator, from),
        };
        let parsed = blocking(repo, move || RepositoryIndex::parse(&body)).await?;
        let index = parsed.map_err(|why| Error::Malformed(without_query(&url).to_owned(), why))?;
        let fresh = CachedIndex {
            validator,
            index: Arc::new(index),
            from,
        };
        self.0.cache.lock().put_index(key, fresh.clone());
        Ok(fresh)
    }
}

fn is_known(job: FetchJob<'_>, identity: &str) -> bool {
    let state = job.known.map(|known| &known.state);
    matches!(state, Some(Validators::Chart(known)) if known == identity)
}

/// True for a chart in a Git repository.
fn is_git(repo: &str, path: &str) -> bool {
    !path.is_empty()
        || without_query(repo)
            .trim_end_matches('/')
            .rsplit_once('.')
            .is_some_and(|(_, ending)| ending == "git")
        || repo.starts_with("file://")
        || !(repo.starts_with("https://") || repo.starts_with("http://"))
}
