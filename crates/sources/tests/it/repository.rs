//! A Git repository that tests write with the genuine `git`, served by its own `http-backend`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use orkestra_sources::{Artifact, Fetcher, Source};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::server::{Act, Request, Server, redirect, respond};

/// A repository, with a bare clone for the server.
pub(crate) struct Repository {
    pub(crate) folder: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let new = Self { folder };
        std::fs::create_dir(new.tree()).unwrap();
        new.git(&["init", "-q", "-b", "main"]);
        new.commit("katalog.yaml", "kind: Katalog # 1\n");
        new
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.org",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .current_dir(self.tree())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn commit(&self, path: &str, text: &str) -> String {
        let file = self.tree().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", path]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Serves the repository at `/r.git`, at `/private.git` with a password, and at `/moved.git` by a redirect.
    pub(crate) async fn serve(&self) -> Server {
        let root = self.folder.path().to_owned();
        let gate = Mutex::new(());
        Server::start(move |request| {
            let _one = gate.lock();
            let path = &request.path;
            if let Some(rest) = path.strip_prefix("/moved.git") {
                return redirect(&format!("/r.git{rest}"));
            }
            let rest = match path.strip_prefix("/private.git") {
                Some(_) if request.header("authorization") != Some("basic dtpw") => {
                    return respond("401 Unauthorized", "", "");
                }
                Some(rest) => rest,
                None => path.strip_prefix("/r.git").unwrap_or("/nothing"),
            };
            backend(&root, rest, request)
        })
        .await
    }
}

/// Runs Git's own server for one request.
fn backend(root: &Path, rest: &str, request: &Request) -> Act {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/tree/.git{path}"))
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env(
            "CONTENT_TYPE",
            request.header("content-type").unwrap_or_default(),
        )
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env(
            "GIT_PROTOCOL",
            request.header("git-protocol").unwrap_or_default(),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    backend
        .stdin
        .take()
        .unwrap()
        .write_all(&request.body)
        .unwrap();
    let output = backend.wait_with_output().unwrap().stdout;
    let end = output
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(output[..end].to_vec()).unwrap();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: "));
    respond(status.unwrap_or("200 OK"), "", &output[end + 4..])
}

pub(crate) fn source(url: String, reference: &str, path: &str) -> Source {
    Source::Git {
        url,
        reference: reference.to_owned(),
        path: path.to_owned(),
    }
}

pub(crate) async fn fetch(fetcher: &Fetcher, source: &Source) -> Arc<Artifact> {
    fetcher.fetch(source, None, None).await.unwrap()
}
