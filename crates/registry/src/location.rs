//! URLs in responses, and their form in messages.

use http::{
    HeaderMap, Uri, header,
    uri::{Authority, Scheme},
};

use super::Error;

/// Returns the `Location` of a response: absolute, or relative to the request.
pub(crate) fn location(asked: &Uri, headers: &HeaderMap) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::Malformed {
        what: format!("the Location of an answer of {}", origin(asked)),
        why: why.to_owned(),
    };
    let value = headers
        .get(header::LOCATION)
        .ok_or_else(|| wrong("it is missing"))?;
    let text = value.to_str().map_err(|_| wrong("it is not text"))?;
    let text = text.split('#').next().unwrap_or_default();
    let mut parts = asked.clone().into_parts();
    if text.contains("://") {
        let url: Uri = text.parse().map_err(|_| wrong("it is not a URL"))?;
        let is_known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&url.scheme());
        let is_plain = url
            .authority()
            .is_some_and(|authority| !authority.as_str().contains('@'));
        return if is_known && is_plain {
            Ok(url)
        } else {
            Err(wrong("it is not an HTTP URL without credentials"))
        };
    }
    if !text.starts_with('/') || text.starts_with("//") {
        return Err(wrong("it is neither a URL nor an absolute path"));
    }
    parts.path_and_query = Some(text.parse().map_err(|_| wrong("it is not a path"))?);
    Uri::from_parts(parts).map_err(|_| wrong("it is not a URL"))
}

/// Returns the scheme, host and port, which messages show of a URL.
pub(crate) fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("https");
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    format!("{scheme}://{authority}")
}
