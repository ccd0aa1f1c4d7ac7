//! Fetches files, from this machine and over HTTP(S).

use std::{path::Path, sync::Arc};

use super::{CachedSource, FetchJob, FetchResult, Fetcher, Validators, blocking, no_files, same};
use crate::{
    Artifact, Error, Fetched,
    artifact::text,
    http::{HttpRequest, HttpResponse, without_query},
};

impl Fetcher {
    pub(crate) async fn path(&self, path: &Path) -> FetchResult {
        let shown = path.display().to_string();
        if !self.0.local {
            return Err(no_files(&shown));
        }
        let (path, most) = (path.to_owned(), self.0.http.limits.document);
        let data = blocking(&shown, move || read_file(&path, most)).await?;
        let data = data.map_err(|source| Error::Local {
            what: shown.clone(),
            source,
        })?;
        let text = text(&shown, data).map_err(|why| Error::Malformed(shown.clone(), why))?;
        let documents = vec![Fetched {
            name: String::new(),
            text,
        }];
        Ok(Some(CachedSource {
            state: Validators::Chart(String::new()),
            artifact: Arc::new(Artifact {
                digest: Artifact::digest_of(&documents),
                url: shown,
                documents,
                ..Artifact::default()
            }),
        }))
    }

    pub(crate) async fn file(&self, job: FetchJob<'_>, url: &str) -> FetchResult {
        let what = without_query(url).to_owned();
        if !url.contains("://") {
            return Err(no_files(&what));
        }
        let verified = self.unsigned(url)?;
        let authorization = self.authorization(job.credential, url).await?;
        let known = match job.known.map(|known| &known.state) {
            Some(Validators::HttpClient(validator)) => Some(validator),
            _ => None,
        };
        let ask = HttpRequest {
            authorization: authorization.as_ref(),
            known,
            ..HttpRequest::get(url, self.0.http.limits.document)
        };
        let (body, validator) = match self.0.http.ask(&ask).await? {
            HttpResponse::Unchanged => return Ok(None),
            HttpResponse::Is {
                body, validator, ..
            } => (body, validator),
        };
        let text = text("it", body).map_err(|why| Error::Malformed(what.clone(), why))?;
        let documents = vec![Fetched {
            name: String::new(),
            text,
        }];
        let digest = Artifact::digest_of(&documents);
        let state = Validators::HttpClient(validator);
        if let Some(same) = same(job, &digest, &state) {
            return Ok(Some(same));
        }
        Ok(Some(CachedSource {
            state,
            artifact: Arc::new(Artifact {
                url: what,
                revision: String::new(),
                digest,
                documents,
                verified,
            }),
        }))
    }
}

fn read_file(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut data = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut data)?;
    if data.len() > most {
        return Err(std::io::Error::other(format!(
            "it has more than {most} bytes"
        )));
    }
    Ok(data)
}
