//! Git repositories: one commit's tree, over HTTP(S) or from a folder.
//!
//! ```text
//!  https://…  ── protocol (version 2): ls-refs, fetch with depth 1 ──► pack ──► Objects ─┐
//!  file://…   ── local: references, loose objects, packs ─────────────────────► Objects ─┴─ tree ──► files below a path
//! ```
//!
//! gitoxide's crates know Git's formats: `gix-protocol` the messages, `gix-pack` entries and deltas, `gix-object` commits, tags and
//! trees, `gix-hash` SHA-1 with collision detection, `gix-ref` and `gix-odb` the repository in a folder. The connections, the limits
//! and the walk over the tree are here.
//!
//! Guarantees: nothing is written to disk and no program is run. A pack is limited in bytes, objects and deltas, and the walk in
//! folders, depth and bytes. The content of every used object is checked against its identifier. Links and submodules are not
//! followed. The paths of files are UTF-8 without control characters, and each is there once.

mod local;
mod object;
mod outbox;
mod pack;
mod protocol;
#[cfg(test)]
mod tests;
mod tree;

use std::path::PathBuf;

pub(crate) use local::Local;
pub(crate) use object::{ObjectId, Objects};
pub(crate) use pack::Pack;
pub(crate) use protocol::Remote;
pub(crate) use tree::{WalkError, WalkLimits, files};

use super::Error;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Its path below the requested one, with `/` between the parts; its name if the requested path is the file itself.
    pub(crate) path: String,
    pub(crate) data: Vec<u8>,
}

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepositoryLocation {
    /// A server.
    Remote(String),
    /// A folder of this machine.
    Local(PathBuf),
}

impl RepositoryLocation {
    /// Parses the URL of a repository.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for SSH and other transports.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let url = url.trim();
        if url.starts_with("https://") || url.starts_with("http://") {
            return Ok(Self::Remote(url.trim_end_matches('/').to_owned()));
        }
        if let Some(path) = url.strip_prefix("file://") {
            if path.starts_with('/') {
                return Ok(Self::Local(path.into()));
            }
            let why = "a file URL has three slashes and an absolute path: file:///srv/repo.git";
            return Err(Error::Invalid(url.to_owned(), why.to_owned()));
        }
        let is_scp = url
            .split_once(':')
            .is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
        if url.starts_with("ssh://") || url.starts_with("git+ssh://") || is_scp {
            return Err(Error::Unsupported(format!(
                "{}: SSH is not supported, because host keys and private keys would have to be managed; use the HTTPS URL of the \
                 repository, with a token if it is private",
                super::http::without_query(url)
            )));
        }
        Err(Error::Unsupported(format!(
            "{}: not the URL of a Git repository; expected https://host/path or file:///path",
            super::http::without_query(url)
        )))
    }
}

/// A commit that a name refers to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) commit: ObjectId,
}

/// Selects what a `ref` names among the references of a repository, as `git` does: itself, a tag, a branch.
pub(crate) fn candidates(name: &str) -> Vec<String> {
    if name == "HEAD" || name.starts_with("refs/") {
        return vec![name.to_owned()];
    }
    vec![format!("refs/tags/{name}"), format!("refs/heads/{name}")]
}

/// Checks the name of a reference.
///
/// Source: git-check-ref-format(1).
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_good = !name.is_empty()
        && name.len() <= 250
        && !name.chars().any(is_bad)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.contains("//");
    if is_good {
        return Ok(());
    }
    let shown: String = name.chars().take(100).filter(|c| !c.is_control()).collect();
    Err(format!(
        "`{shown}` is not a valid name of a branch, a tag or a commit"
    ))
}
