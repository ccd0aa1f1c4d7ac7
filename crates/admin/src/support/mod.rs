//! A support bundle: what describes an installation, in one archive, without the values of Secrets.
//!
//! ```text
//!  cluster ── gather ──► objects, logs, metrics ── redact ──► files ── archive ──► .tar.gz of bounded size
//!                │ refused or absent: a note in summary.json, never a failure
//! ```
//!
//! Secrets are never requested. Of custom resources only metadata and conditions are kept. Katalogs keep their templates; literal
//! values of Secrets and of fields that are named like one become `***`.

mod archive;
mod gather;
mod redact;

pub use archive::{Error, write};
pub use gather::gather;

use std::net::SocketAddr;

use serde_json::{Value, json};

/// What a bundle is about.
#[derive(Clone, Debug)]
pub struct BundleRequest {
    /// Namespaces of Katalogs and custom resources; if empty, all.
    pub namespaces: Vec<String>,
    /// The namespace that the controller runs in.
    pub system: String,
    /// The address of a controller's metrics and pages; without it they are read through the API server.
    pub runtime: Option<SocketAddr>,
    /// Lines of each container's log.
    pub lines: u32,
    /// The most bytes of the files together.
    pub limit: usize,
    /// The time of the bundle.
    pub now: jiff::Timestamp,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the archive.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Something that a bundle lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What is missing.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The parts of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Its files, in the order in which they were gathered.
    pub files: Vec<File>,
    /// What it lacks.
    pub notes: Vec<Note>,
    /// The bytes of the files.
    bytes: usize,
}

impl Bundle {
    /// Adds a file. One over the limit is cut at the end of a line, which is noted; one that has no room is left out.
    fn add(&mut self, path: String, mut text: String, limit: usize) {
        let room = limit.saturating_sub(self.bytes);
        if text.len() > room {
            let cut = text[..text.floor_char_boundary(room)].rfind('\n');
            text.truncate(cut.map_or(0, |at| at + 1));
            self.note(&path, "truncated: the bundle has reached its size limit");
        }
        if !text.is_empty() {
            self.bytes += text.len();
            self.files.push(File { path, text });
        }
    }

    fn note(&mut self, what: &str, why: &str) {
        self.notes.push(Note {
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }

    /// The summary: versions, the files with their sizes, and what is missing.
    fn summary(&self, now: jiff::Timestamp) -> Value {
        let files = self.files.iter();
        let files = files.map(|file| json!({ "path": file.path, "bytes": file.text.len() }));
        let notes = self.notes.iter();
        let notes = notes.map(|note| json!({ "what": note.what, "why": note.why }));
        json!({
            "created": now.to_string(),
            "ork": orkestra_ground::VERSION,
            "files": files.collect::<Vec<_>>(),
            "missing": notes.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_keeps_its_size_and_says_what_was_cut() {
        let mut bundle = Bundle::default();
        bundle.add("a".into(), "12345\n789\n".into(), 12);
        bundle.add("b".into(), "1\n2\n3\n".into(), 12);
        bundle.add("c".into(), "x\n".into(), 12);
        let texts: Vec<&str> = bundle.files.iter().map(|file| &*file.text).collect();
        assert_eq!(texts, ["12345\n789\n", "1\n"]);
        let cut: Vec<&str> = bundle.notes.iter().map(|note| &*note.what).collect();
        assert_eq!(cut, ["b", "c"]);
        let summary = bundle.summary(jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(summary["files"][1], json!({ "path": "b", "bytes": 2 }));
        assert_eq!(summary["missing"][0]["what"], "b");
    }
}
