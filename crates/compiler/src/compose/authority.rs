//! The authority of documents: a fetched one has at most that of the fetch that brought it.
//!
//! ```text
//!  your document ── names ──► a source ── brings ──► a fetched document ── names ──► a source: checked here
//! ```
//!
//! Your document is the outermost composition, with the files on disk that it names. It may use Secrets, environment variables,
//! objects of the cluster, files and every host. A fetched document comes from a server or an object that others can write, so it
//! may not, except for the hosts and objects that your document names itself. Further grants are not supported: a source that
//! needs credentials is declared in your document.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::request::{Base, RequestKind, SourceRequest};
use orkestra_language::api::sources::Verify;
use orkestra_language::diagnostics::{Code, Diagnostic};

/// The variable that every document may use: it is no secret.
const REGISTRY: [&str; 2] = ["$ORK_REGISTRY", "${ORK_REGISTRY}"];
/// The fix for most refusals.
const DECLARE: &str =
    "declare this source in your own document, and remove it from the fetched one";

/// What your own document names, and fetched documents may therefore name too.
#[derive(Debug, Default)]
pub(crate) struct Authored {
    /// Whether only hosts that are named may be used: in a cluster.
    pub(crate) is_closed: bool,
    /// Hosts with their ports.
    places: BTreeSet<String>,
    /// `ConfigMaps` and Katalogs of the cluster.
    objects: BTreeSet<String>,
}

/// Why an address may not be used.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// It contains the value of an environment variable.
    Variable,
    /// It is not of a server.
    Scheme(&'static str),
}

impl Authored {
    /// Nothing is named yet by the outermost composition, which is at `base`.
    pub(crate) fn of(base: &Base) -> Self {
        Self {
            is_closed: matches!(base, Base::Cluster { .. }),
            ..Self::default()
        }
    }

    /// Adds what a source names, if it is of your own document.
    pub(crate) fn add(&mut self, request: &SourceRequest) {
        if is_fetched(request) {
            return;
        }
        self.objects.extend(object(&request.kind));
        for (address, schemes) in addresses(&request.kind) {
            if let Ok(Some(place)) = place(address, schemes) {
                self.places.insert(place);
            }
        }
    }

    /// Returns why a source may not be declared where it is; `None` if it may.
    pub(crate) fn refusal(&self, request: &SourceRequest) -> Option<Diagnostic> {
        if !is_fetched(request) {
            return None;
        }
        let refused = |what: String, hint: &str| {
            let message = format!("a fetched document cannot {what}");
            Some(request.problem(Code::Unreadable, message).hint(hint))
        };
        if let Some(what) = credentials(request) {
            return refused(what, DECLARE);
        }
        if let Some(object) = object(&request.kind).filter(|one| !self.objects.contains(one)) {
            let what = format!("name objects of the cluster: `{object}`");
            return refused(what, "name the object in your own document");
        }
        addresses(&request.kind)
            .into_iter()
            .find_map(|(address, schemes)| match place(address, schemes) {
                Err(Refused::Variable) => refused(
                    format!("use environment variables: `{address}` names one"),
                    DECLARE,
                ),
                Err(Refused::Scheme(schemes)) => {
                    refused(format!("name `{address}`: expected {schemes}"), DECLARE)
                }
                Ok(Some(place)) if self.places.contains(&place) => None,
                Ok(Some(place)) if is_this_machine(host(&place)) => refused(
                    format!("name this machine: `{address}`"),
                    "name the address in a source of your own document",
                ),
                Ok(Some(place)) if self.is_closed => refused(
                    format!(
                        "name a further host in a cluster: no source of your document is at `{place}`"
                    ),
                    "name the host in a source of your own document",
                ),
                Ok(_) => None,
            })
    }
}

/// True if a fetched document declares the source.
fn is_fetched(request: &SourceRequest) -> bool {
    match request.base {
        Base::Artifact { .. } => true,
        Base::File(_) | Base::Cluster { .. } => false,
    }
}

/// Returns why the fetched document `from` may not name this address of a chart or a Motif; `None` if it may.
pub(crate) fn refused_address(from: &str, address: &str) -> Option<String> {
    const ALL: &[&str] = &["oci", "https", "http", ""];
    let refused = |what: &str| Some(format!("a fetched document cannot {what}: `{address}`"));
    match place(address, ALL) {
        Err(Refused::Variable) => refused("use environment variables"),
        Err(Refused::Scheme(_)) => refused("name an address that is not of a server"),
        Ok(Some(there)) if is_this_machine(host(&there)) => {
            let is_beside = place(from, ALL) == Ok(Some(there));
            (!is_beside).then(|| refused("name this machine")).flatten()
        }
        Ok(_) => None,
    }
}

/// Returns the variable or the Secret that a source uses.
fn credentials(request: &SourceRequest) -> Option<String> {
    let auth = request.auth.as_ref();
    if let Some(name) = auth.and_then(|auth| auth.from_env.as_ref()) {
        return Some(format!(
            "use environment variables: `fromEnv` names `{name}`"
        ));
    }
    let of_auth = auth.and_then(|auth| auth.secret_ref.as_ref());
    let of_verify = request.verify.iter().flat_map(Verify::secrets);
    let secret = of_auth.into_iter().chain(of_verify).next()?;
    let name = &secret.name;
    Some(format!("use Secrets: `secretRef` names `{name}`"))
}

/// Returns the identity of an object of the cluster; all keys of a `ConfigMap` are one object.
fn object(kind: &RequestKind) -> Option<String> {
    match kind {
        RequestKind::ConfigMap { name, .. } => Some(format!("configmap/{name}")),
        RequestKind::Katalogs {
            name: Some(name), ..
        } => Some(format!("katalog/{name}")),
        RequestKind::Katalogs { selector, .. } => Some(format!("katalogs?{selector:?}")),
        _ => None,
    }
}

/// Returns the addresses of a source, each with the schemes that it may have: an empty one stands for a reference without a scheme.
fn addresses(kind: &RequestKind) -> Vec<(&str, &'static [&'static str])> {
    const WEB: &[&str] = &["https", "http"];
    match kind {
        RequestKind::Registry { url, .. } => vec![(url, &["oci", ""])],
        RequestKind::Url { url } | RequestKind::Git { url, .. } => vec![(url, WEB)],
        RequestKind::Helm {
            repo, value_files, ..
        } => {
            let mut all: Vec<(&str, &'static [&'static str])> =
                vec![(repo, &["oci", "https", "http"])];
            let urls = value_files.iter().filter(|file| file.contains([':', '$']));
            all.extend(urls.map(|url| (url.as_str(), WEB)));
            all
        }
        RequestKind::File { .. } | RequestKind::ConfigMap { .. } | RequestKind::Katalogs { .. } => {
            Vec::new()
        }
    }
}

/// Returns `host:port` of an address; `None` for one below `$ORK_REGISTRY`.
fn place(address: &str, schemes: &[&str]) -> Result<Option<String>, Refused> {
    let address = address.trim();
    let bare = address.strip_prefix("oci://").unwrap_or(address);
    let below = REGISTRY.iter().find_map(|name| bare.strip_prefix(name));
    if below.is_some_and(|rest| rest.starts_with('/') && !rest.contains('$')) {
        return Ok(None);
    }
    if address.contains('$') {
        return Err(Refused::Variable);
    }
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => (String::new(), address),
    };
    if !schemes.contains(&&*scheme) {
        let is_web = !schemes.contains(&"oci");
        return Err(Refused::Scheme(if is_web {
            "an `https://` URL"
        } else {
            "a registry or an `https://` URL"
        }));
    }
    let end = rest.find(['/', '?', '#', '\\']);
    let authority = match end {
        Some(end) => &rest[..end],
        // A short name, which is below `$ORK_REGISTRY`.
        None if scheme.is_empty() => return Ok(None),
        None => rest,
    };
    let is_short = scheme.is_empty() || scheme == "oci";
    if is_short && !authority.contains(['.', ':']) && !is_this_machine(authority) {
        return Ok(None);
    }
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    };
    let port = match port.trim_start_matches('0') {
        "" if scheme == "http" => "80",
        "" => "443",
        port => port,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    Ok(Some(format!("{host}:{port}")))
}

/// Returns the host of `host:port`.
fn host(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(host, _)| host)
}

/// True for a name or an address of this machine, and for a number that some parsers read as an address.
fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback() || address.is_unspecified();
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number =
        last.starts_with("0x") || (!last.is_empty() && last.bytes().all(|c| c.is_ascii_digit()));
    is_number || host.is_empty() || last == "localhost" || host == "localhost.localdomain"
}
