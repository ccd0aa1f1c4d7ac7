//! Requests, and where a redirect takes them.

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};

use super::{
    BadUrl, Refusal,
    target::{Target, is_absolute},
};

/// The most redirects of a request that are followed.
pub const MOST_REDIRECTS: usize = 5;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL.
    pub target: Target,
    /// The server that led to the target, by a document or a challenge; `None` for a target that the user named.
    pub led_by: Option<Leader>,
    /// The headers for every server that answers, without `Host`.
    pub headers: HeaderMap,
    /// The headers for the origin of the target alone, such as credentials: a redirect to another origin drops them for good.
    pub own: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The redirects that are followed.
    pub redirects: Redirects,
}

/// A server that leads to a target, by a redirect, a document or a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its URL.
    pub server: Target,
    /// The address at which it answered. A later answer of DNS does not count, since the owner of the name chooses it.
    pub address: Option<IpAddr>,
}

/// The redirects that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// None: a redirect is a response like others.
    Returned,
    /// To any reference that is valid in a `Location`. Source: RFC 9110, section 10.2.2.
    Any,
    /// To URLs and absolute paths, as registries write them: another form is an error.
    Absolute,
}

/// The problem of a redirect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// Its target is not permitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its target is not a valid URL.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// There are too many redirects.
    #[error("more than {MOST_REDIRECTS} times")]
    TooMany,
    /// It would send data for one host to another host.
    #[error("to another host, and the request contains data for this host only")]
    Elsewhere,
    /// It would send a request over HTTPS on over plain HTTP.
    #[error("from HTTPS to plain HTTP")]
    Plain,
    /// It has no target.
    #[error("without a target")]
    Nowhere,
}

impl Request {
    /// A request for a URL that the user named, which follows any redirect.
    pub fn new(method: Method, target: Target) -> Self {
        Self {
            method,
            target,
            led_by: None,
            headers: HeaderMap::new(),
            own: HeaderMap::new(),
            body: Bytes::new(),
            redirects: Redirects::Any,
        }
    }

    /// Returns the request that a response leads to; `None` if it is not a redirect. `address` is the one at which the server answered.
    ///
    /// The rules are the same for every client: no step from HTTPS to plain HTTP; to another origin only GET and HEAD, without the
    /// headers for the first one, and with the [restrictions](super::Guard::led_by) on a place that a server leads to. 301 and 302
    /// turn a POST into a GET, and 303 any method but HEAD; 304 is not a redirect.
    ///
    /// # Errors
    /// [`RedirectError`].
    ///
    /// Source: RFC 9110, section 15.4; CVE-2020-15157 and CVE-2018-1000007 for headers that follow a redirect.
    pub fn redirected(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Result<Option<Self>, RedirectError> {
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        if !is_redirect || self.redirects == Redirects::Returned {
            return Ok(None);
        }
        let location = headers.get(header::LOCATION);
        let location = location.ok_or(RedirectError::Nowhere)?;
        let location = location.to_str().map_err(|_| BadUrl::Malformed)?;
        if self.redirects == Redirects::Absolute && !is_absolute(location) {
            return Err(BadUrl::Malformed.into());
        }
        let mut next = self.clone();
        next.target = self.target.join(location)?;
        if self.target.secure && !next.target.secure {
            return Err(RedirectError::Plain);
        }
        let to_get = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if to_get {
            next.method = Method::GET;
            next.body = Bytes::new();
            next.headers.remove(header::CONTENT_TYPE);
            next.own.remove(header::CONTENT_TYPE);
        }
        if !next.target.same_origin(&self.target) {
            if ![Method::GET, Method::HEAD].contains(&next.method) {
                return Err(RedirectError::Elsewhere);
            }
            next.own.clear();
            next.led_by = Some(Leader {
                server: self.target.clone(),
                address,
            });
        }
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn request(method: Method, url: &str) -> Request {
        let mut request = Request::new(method, Target::parse(url).unwrap());
        let planted = HeaderValue::from_static("planted");
        request
            .headers
            .insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        request.own.insert(header::AUTHORIZATION, planted);
        request.body = Bytes::from_static(b"{}");
        request
    }

    fn redirected(from: &Request, status: u16, to: &str) -> Result<Option<Request>, RedirectError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(to).unwrap());
        let address = "10.0.0.1".parse().ok();
        from.redirected(StatusCode::from_u16(status).unwrap(), &headers, address)
    }

    #[test]
    fn credentials_stay_with_their_origin_and_do_not_come_back() {
        let first = request(Method::GET, "https://a.example/x");
        let same = redirected(&first, 307, "/y").unwrap().unwrap();
        assert_eq!((same.own.len(), same.led_by), (1, None));
        for other in [
            "https://b.example/",
            "https://a.example:444/",
            "https://a.example.b.example/",
        ] {
            let there = redirected(&first, 307, other).unwrap().unwrap();
            assert!(there.own.is_empty(), "{other}");
            assert_eq!(there.headers.len(), 1);
            let leader = there.led_by.clone().unwrap();
            assert_eq!(
                (leader.server, leader.address),
                (first.target.clone(), "10.0.0.1".parse().ok())
            );
            let back = redirected(&there, 302, "https://a.example/x");
            let back = back.unwrap().unwrap();
            assert!(back.own.is_empty(), "{other}");
            assert_eq!(back.led_by.unwrap().server, there.target, "the last one");
        }
        let plain = redirected(&first, 302, "http://a.example/x");
        assert_eq!(plain.unwrap_err(), RedirectError::Plain);
    }

    #[test]
    fn only_a_request_without_data_goes_to_another_origin() {
        for (method, status, to, becomes) in [
            (Method::POST, 302, "/b", Some("GET")),
            (Method::PUT, 303, "/b", Some("GET")),
            (Method::HEAD, 303, "/b", Some("HEAD")),
            (Method::POST, 307, "/b", Some("POST")),
            (Method::DELETE, 302, "/b", Some("DELETE")),
            (Method::POST, 307, "https://b.example/", None),
            (Method::DELETE, 302, "https://b.example/", None),
        ] {
            let next = redirected(&request(method.clone(), "https://a.example/"), status, to);
            match becomes {
                Some(becomes) => {
                    let next = next.unwrap().unwrap();
                    assert_eq!(next.method.as_str(), becomes, "{method} {status}");
                    assert_eq!(next.body.is_empty(), next.method == Method::GET);
                }
                None => assert_eq!(next.unwrap_err(), RedirectError::Elsewhere, "{method}"),
            }
        }
    }

    #[test]
    fn a_location_must_be_of_the_form_that_is_accepted() {
        let mut from = request(Method::GET, "https://a.example/b/c");
        let to = |from: &Request, to: &str| {
            let next = redirected(from, 307, to)?;
            Ok::<_, RedirectError>(next.map(|next| next.target.path))
        };
        assert_eq!(to(&from, "d"), Ok(Some("/b/d".to_owned())));
        from.redirects = Redirects::Absolute;
        assert_eq!(to(&from, "/d"), Ok(Some("/d".to_owned())));
        for wrong in [
            "d",
            "",
            "//b.example/",
            "ftp://b.example/",
            "https://u@b.example/",
        ] {
            assert!(
                matches!(to(&from, wrong), Err(RedirectError::Url(_))),
                "{wrong}"
            );
        }
        from.redirects = Redirects::Returned;
        assert_eq!(to(&from, "https://b.example/"), Ok(None));
        let none = from.redirected(StatusCode::NOT_MODIFIED, &HeaderMap::new(), None);
        assert!(none.unwrap().is_none());
    }
}
