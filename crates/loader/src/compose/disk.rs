//! Sources on disk.

use std::{io, path::Path, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::compose::{self, Artifact, RequestKind, SourceRequest, Verified};
use orkestra_language::diagnostics::Code;
use tokio::io::AsyncReadExt as _;

use super::{Fetch, Fetched};

/// The longest file that is read; the limit for a document is lower.
const MOST_BYTES: u64 = 16 << 20;

/// Fetches files on disk only.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl DiskFiles {
    /// Reads the file of a request.
    async fn read(request: &SourceRequest, path: &str) -> Fetched {
        match read(Path::new(path)).await {
            Ok(text) => {
                let documents = vec![compose::Fetched {
                    name: String::new(),
                    text,
                }];
                Ok(Arc::new(Artifact {
                    url: path.to_owned(),
                    revision: String::new(),
                    digest: Artifact::digest_of(&documents),
                    documents,
                    verified: Verified::NotRequired,
                }))
            }
            Err(why) => {
                let message = format!("cannot read {path}: {why}");
                Err(Box::new(request.problem(Code::Unreadable, message)))
            }
        }
    }
}

impl Fetch for DiskFiles {
    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched> {
        async move {
            if let RequestKind::File { path } = &request.kind {
                return Self::read(request, path).await;
            }
            let message = format!("the source `{request}` is not supported yet");
            let problem = request.problem(Code::NotSupportedYet, message);
            Err(Box::new(problem.hint(
                "download it, and name the file under `sources.files`",
            )))
        }
        .boxed()
    }
}

async fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    file.take(MOST_BYTES).read_to_end(&mut bytes).await?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len == MOST_BYTES) {
        return Err(io::Error::other("it is too large"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))
}
