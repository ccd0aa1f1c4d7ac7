//! Version 2 of Git's protocol over HTTP: two small requests resolve a name to a commit, and one fetches a commit without history.
//!
//! Source: gitprotocol-http(5), gitprotocol-v2(5).

use ::http::{HeaderName, HeaderValue, header};
use bytes::Bytes;

use super::{
    ObjectId, Tip, candidates,
    packet::{Packet, Packets, Writer, line},
};
use crate::{
    Error,
    http::{HttpClient, HttpRequest, HttpResponse, without_query},
};

/// The most bytes of a list of references and of capabilities.
const MOST_LIST: usize = 1 << 20;

const VERSION: (HeaderName, &str) = (HeaderName::from_static("git-protocol"), "version=2");
const POST: [(HeaderName, &str); 3] = [
    VERSION,
    (
        header::CONTENT_TYPE,
        "application/x-git-upload-pack-request",
    ),
    (header::ACCEPT, "application/x-git-upload-pack-result"),
];

/// A repository on a server.
pub(crate) struct Remote<'a> {
    pub(crate) http: &'a HttpClient,
    /// The URL that the user gave, for messages.
    pub(crate) url: &'a str,
    /// The URL to use, after redirects; see [`Remote::discover`].
    pub(crate) base: String,
    pub(crate) authorization: Option<&'a HeaderValue>,
}

impl<'a> Remote<'a> {
    /// The repository at a known address. Credentials are for the origin that the user named.
    pub(crate) fn at(
        http: &'a HttpClient,
        url: &'a str,
        base: String,
        authorization: Option<&'a HeaderValue>,
    ) -> Self {
        Self {
            http,
            url,
            authorization: authorization.filter(|_| same_origin(url, &base)),
            base,
        }
    }

    /// Checks that a server speaks the protocol, and returns the repository where redirects lead.
    pub(crate) async fn discover(
        http: &'a HttpClient,
        url: &'a str,
        authorization: Option<&'a HeaderValue>,
    ) -> Result<Self, Error> {
        const SUFFIX: &str = "/info/refs?service=git-upload-pack";
        let headers = [VERSION];
        let asked = format!("{url}{SUFFIX}");
        let ask = HttpRequest {
            authorization,
            headers: &headers,
            ..HttpRequest::get(&asked, MOST_LIST)
        };
        let HttpResponse::Is { body, from, .. } =
            http.ask(&ask).await.map_err(|error| named(error, url))?
        else {
            return Err(malformed(
                url,
                "the server reports it as unchanged, but no earlier response is known",
            ));
        };
        capabilities(&body).map_err(|why| malformed(url, &why))?;
        let Some(path) = from.path.strip_suffix(SUFFIX) else {
            return Err(malformed(
                url,
                "it redirects to an address that is not a repository's",
            ));
        };
        let base = format!("{from}{path}");
        Ok(Self::at(http, url, base, authorization))
    }

    /// Returns the commit of a branch, a tag or another reference.
    pub(crate) async fn tip(&self, name: &str) -> Result<Tip, Error> {
        let candidates = candidates(name);
        let mut message = request("ls-refs").line("peel").line("symrefs");
        for candidate in &candidates {
            message = message.line(&format!("ref-prefix {candidate}"));
        }
        let body = self.post(message.finish(), MOST_LIST).await?;
        let found = listed(&body, &candidates).map_err(|why| malformed(self.url, &why))?;
        found.map(|commit| Tip { commit }).ok_or_else(|| {
            Error::NotFound(format!(
                "the branch or tag {name} of {}",
                without_query(self.url)
            ))
        })
    }

    /// Fetches the pack of a commit with all its files, without its history.
    pub(crate) async fn fetch(&self, commit: ObjectId) -> Result<Vec<u8>, Error> {
        let limits = &self.http.limits;
        let message = request("fetch")
            .line("no-progress")
            .line("ofs-delta")
            .line("deepen 1")
            .line(&format!("want {commit}"))
            .line("done");
        // Every 64 kB are framed by a few bytes.
        let most = limits.pack + limits.pack / 1024 + MOST_LIST;
        let body = self.post(message.finish(), most).await?;
        packfile(&body, limits.pack).map_err(|why| malformed(self.url, &why))
    }

    async fn post(&self, message: Vec<u8>, most: usize) -> Result<Vec<u8>, Error> {
        let url = format!("{}/git-upload-pack", self.base);
        let ask = HttpRequest {
            authorization: self.authorization,
            headers: &POST,
            body: Some(Bytes::from(message)),
            ..HttpRequest::get(&url, most)
        };
        match self
            .http
            .ask(&ask)
            .await
            .map_err(|error| named(error, self.url))?
        {
            HttpResponse::Is { body, .. } => Ok(body),
            HttpResponse::Unchanged => Err(malformed(self.url, "it answers without content")),
        }
    }
}

/// True if two URLs have the same scheme, host and port.
fn same_origin(one: &str, other: &str) -> bool {
    let parse = orkestra_guard::Target::parse;
    match (parse(one), parse(other)) {
        (Ok(one), Ok(other)) => one.same_origin(&other),
        _ => false,
    }
}

fn request(command: &str) -> Writer {
    Writer::default()
        .line(&format!("command={command}"))
        .line(concat!("agent=ork/", env!("CARGO_PKG_VERSION")))
        .line("object-format=sha1")
        .delimiter()
}

/// Names the repository instead of the request's URL.
fn named(error: Error, url: &str) -> Error {
    let url = without_query(url);
    match error {
        Error::NotFound(_) => Error::NotFound(format!("the Git repository {url}")),
        Error::Unauthorized { host, status, .. } => Error::Unauthorized {
            host,
            what: url.to_owned(),
            status,
        },
        Error::Status { host, status, .. } => Error::Status {
            host,
            what: url.to_owned(),
            status,
        },
        other => other,
    }
}

fn malformed(url: &str, why: &str) -> Error {
    Error::Malformed(without_query(url).to_owned(), why.to_owned())
}

/// Checks the capabilities that a server advertises.
pub(crate) fn capabilities(body: &[u8]) -> Result<(), String> {
    let mut lines = Vec::new();
    for packet in Packets(body) {
        if let Packet::Data(data) = packet? {
            lines.push(line(data));
        }
    }
    lines.retain(|line| !line.starts_with(b"# service="));
    if lines.first() != Some(&&b"version 2"[..]) {
        return Err(
            "the server does not speak version 2 of Git's protocol (Git 2.18 or later)".to_owned(),
        );
    }
    let value = |name: &[u8]| {
        lines
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(b"="))
    };
    if value(b"object-format").is_some_and(|format| format != b"sha1") {
        return Err("the repository has SHA-256 identifiers, which are not supported".to_owned());
    }
    let fetch = value(b"fetch").unwrap_or_default();
    if !fetch
        .split(|byte| *byte == b' ')
        .any(|word| word == b"shallow")
    {
        return Err("the server does not offer shallow fetches".to_owned());
    }
    Ok(())
}

/// Returns the commit of the first candidate that is listed: for a tag with a message, what it is for.
fn listed(body: &[u8], candidates: &[String]) -> Result<Option<ObjectId>, String> {
    let mut found: Vec<Option<ObjectId>> = vec![None; candidates.len()];
    for packet in Packets(body) {
        let Packet::Data(data) = packet? else {
            continue;
        };
        let text = std::str::from_utf8(line(data)).unwrap_or_default();
        if let Some(why) = text.strip_prefix("ERR ") {
            return Err(said(why));
        }
        let mut words = text.split(' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        let Some(place) = candidates.iter().position(|candidate| candidate == name) else {
            continue;
        };
        let peeled = words.find_map(|word| word.strip_prefix("peeled:"));
        let id: ObjectId = peeled
            .unwrap_or(id)
            .parse()
            .map_err(|()| format!("the reference {name} is not a commit"))?;
        found[place] = Some(id);
    }
    Ok(found.into_iter().flatten().next())
}

/// Returns the pack of a response.
fn packfile(body: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut pack = Vec::new();
    let mut is_pack = false;
    for packet in Packets(body) {
        let Packet::Data(data) = packet? else {
            continue;
        };
        if !is_pack {
            if let Some(why) = data.strip_prefix(b"ERR ") {
                return Err(said(&String::from_utf8_lossy(why)));
            }
            is_pack = line(data) == b"packfile";
            continue;
        }
        match data.split_first() {
            Some((1, piece)) => {
                if pack.len() + piece.len() > most {
                    return Err(format!("its pack has more than {most} bytes"));
                }
                pack.extend_from_slice(piece);
            }
            Some((3, why)) => return Err(said(&String::from_utf8_lossy(why))),
            // 2 is progress.
            _ => {}
        }
    }
    if is_pack {
        Ok(pack)
    } else {
        Err("the server sent no pack".to_owned())
    }
}

/// The server's own message, shortened.
fn said(why: &str) -> String {
    let why: String = why
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    format!("the server says: {why}")
}
