//! Version 2 of Git's protocol over HTTP: two small requests resolve a name to a commit, and one fetches a commit without history.
//!
//! `gix-protocol` writes requests and reads answers; see [`outbox`](super::outbox).
//!
//! Source: gitprotocol-http(5), gitprotocol-v2(5).

use std::{cell::RefCell, io::Read as _, ops::ControlFlow};

use ::http::{HeaderName, HeaderValue, header};
use bytes::Bytes;
use gix_protocol::{
    fetch::{Arguments, Response},
    handshake::{Ref, refs},
};
use gix_transport::{
    Protocol,
    bstr::BString,
    client::{
        blocking_io::{HandleProgress, TransportV2Ext as _},
        capabilities::blocking_recv::Handshake,
    },
    packetline::{self, blocking_io::WithSidebands},
};

use super::{
    ObjectId, Tip, candidates,
    outbox::{Lines, Outbox, lines},
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
        let request = list(&candidates).map_err(|why| malformed(self.url, &why))?;
        let body = self.post(request, MOST_LIST).await?;
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
        let request = want(commit).map_err(|why| malformed(self.url, &why))?;
        // Every 64 kB are framed by a few bytes.
        let most = limits.pack + limits.pack / 1024 + MOST_LIST;
        let body = self.post(request, most).await?;
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
    let parse = orkestra_egress::Target::parse;
    match (parse(one), parse(other)) {
        (Ok(one), Ok(other)) => one.same_origin(&other),
        _ => false,
    }
}

/// What every request says of this client.
fn features() -> Vec<(&'static str, Option<String>)> {
    let agent = concat!("ork/", env!("CARGO_PKG_VERSION"));
    vec![
        ("agent", Some(agent.to_owned())),
        ("object-format", Some("sha1".to_owned())),
    ]
}

/// Returns the request for a list of references.
fn list(candidates: &[String]) -> Result<Vec<u8>, String> {
    let mut arguments: Vec<BString> = vec!["peel".into(), "symrefs".into()];
    arguments.extend(
        candidates
            .iter()
            .map(|name| format!("ref-prefix {name}").into()),
    );
    let mut outbox = Outbox::new();
    outbox
        .invoke(
            "ls-refs",
            features().into_iter(),
            Some(arguments.into_iter()),
            false,
        )
        .map_err(|error| error.to_string())?;
    Ok(outbox.into_request())
}

/// Returns the request for the pack of a commit with all its files, without its history.
fn want(commit: ObjectId) -> Result<Vec<u8>, String> {
    let mut features = features();
    features.push(("shallow", None));
    let mut arguments = Arguments::new(Protocol::V2, features, false);
    arguments.add_feature("no-progress");
    arguments.deepen(1);
    arguments.want(commit);
    let mut outbox = Outbox::new();
    arguments
        .send(&mut outbox, true)
        .map_err(|error| error.to_string())?;
    Ok(outbox.into_request())
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
    let mut lines = lines(body);
    let is_announced = text(&mut lines)?.starts_with("# service=");
    if is_announced {
        let mut announced = Vec::new();
        let read = lines.as_read().read_to_end(&mut announced);
        read.map_err(cut)?;
    }
    if text(&mut lines)? != "version 2" {
        return Err(
            "the server does not speak version 2 of Git's protocol (Git 2.18 or later)".to_owned(),
        );
    }
    let capabilities = Handshake::from_lines_with_version_detection(&mut lines)
        .map_err(|error| unreadable(&error.into()))?
        .capabilities;
    let format = capabilities.capability("object-format");
    if format.is_some_and(|format| format.value().is_some_and(|value| value != "sha1")) {
        return Err("the repository has SHA-256 identifiers, which are not supported".to_owned());
    }
    let fetch = capabilities.capability("fetch");
    if fetch.and_then(|fetch| fetch.supports("shallow")) != Some(true) {
        return Err("the server does not offer shallow fetches".to_owned());
    }
    Ok(())
}

/// Returns the next line, which stays the next one; empty for one without text.
fn text(lines: &mut Lines<'_>) -> Result<String, String> {
    let line = match lines.peek_line() {
        Some(line) => line.map_err(cut)?.map_err(|error| unreadable(&error))?,
        None => return Ok(String::new()),
    };
    let line = line.as_slice().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).trim_end().to_owned())
}

/// Returns the commit of the first candidate that is listed: for a tag with a message, what it is for.
pub(crate) fn listed(body: &[u8], candidates: &[String]) -> Result<Option<ObjectId>, String> {
    let mut lines = lines(body);
    let listed = refs::from_v2_refs(&mut lines.as_read()).map_err(|error| unreadable(&error))?;
    let commit = |candidate: &String| {
        let mut listed = listed.iter().map(Ref::unpack);
        listed.find_map(|(name, target, peeled)| {
            let id = peeled.or(target).filter(|_| name == candidate)?;
            Some(id.to_owned())
        })
    };
    Ok(candidates.iter().find_map(commit))
}

/// Returns the pack of a response.
pub(crate) fn packfile(body: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut lines = lines(body);
    match lines.peek_line() {
        None => return Err("the server sent no pack".to_owned()),
        Some(line) => line.map_err(cut)?.map_err(|error| unreadable(&error))?,
    };
    let failure = RefCell::new(None);
    let mut reader: WithSidebands<'_, _, HandleProgress<'_>> = lines.as_read_without_sidebands();
    let response = Response::from_line_reader(Protocol::V2, &mut reader, true, false)
        .map_err(|error| unreadable(&error))?;
    if !response.has_pack() {
        return Err("the server sent no pack".to_owned());
    }
    reader.set_progress_handler(Some(Box::new(|is_error, text| {
        if !is_error {
            return ControlFlow::Continue(());
        }
        failure.replace(Some(said(&String::from_utf8_lossy(text))));
        ControlFlow::Break(())
    })));
    let mut pack = Vec::new();
    let read = (&mut reader).take(most as u64 + 1).read_to_end(&mut pack);
    drop(reader);
    if let Some(failure) = failure.into_inner() {
        return Err(failure);
    }
    read.map_err(cut)?;
    if pack.len() > most {
        return Err(format!("its pack has more than {most} bytes"));
    }
    Ok(pack)
}

/// The reason why an answer cannot be read: the server's own error, if it has one.
fn unreadable(error: &gix_error::Error) -> String {
    let wrapped = error.downcast_any_ref::<std::io::Error>();
    let wrapped = wrapped.and_then(|error| error.get_ref()?.downcast_ref());
    let reported: Option<&packetline::read::Error> = error.downcast_any_ref().or(wrapped);
    match reported {
        Some(error) => said(&error.message.to_string()),
        None => "the answer is not in Git's packet format".to_owned(),
    }
}

/// As [`unreadable`], for an answer that ends too early or with an error of the server.
fn cut(error: std::io::Error) -> String {
    unreadable(&gix_error::Error::from_error(error))
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
