//! The caller's token for a page behind the API server's proxy.
//!
//! ```text
//!  Orkestra-Authorization: forward ─► kube's credentials ─► Orkestra-Authorization: Bearer <token> ─► API server ─► Pod
//!                                     Authorization: Bearer <token> ──────────────────────────────────► ends here
//! ```
//!
//! The API server removes `Authorization` from what it forwards. A page needs the token to know the user, so that a request for it
//! carries the token a second time, in a header of our own. Other requests do not.

use http::{HeaderName, HeaderValue, Request, header};

/// The header that carries the token.
pub const HEADER: HeaderName = HeaderName::from_static("orkestra-authorization");
/// Its value until the credentials are known.
pub(crate) const FORWARD: HeaderValue = HeaderValue::from_static("forward");

/// Gives a request that asks for it the token of its `Authorization`. Without a token, the header is removed.
pub(crate) fn forward<B>(mut request: Request<B>) -> Request<B> {
    let headers = request.headers_mut();
    if headers.get(HEADER) != Some(&FORWARD) {
        return request;
    }
    headers.remove(HEADER);
    let token = headers.get(header::AUTHORIZATION).cloned();
    let is_bearer = |value: &HeaderValue| value.as_bytes().starts_with(b"Bearer ");
    if let Some(mut token) = token.filter(is_bearer) {
        token.set_sensitive(true);
        headers.insert(HEADER, token);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_asks_for_it_carries_the_token_again() {
        let sent = |own: Option<&'static str>, credentials: Option<&'static str>| {
            let mut request = Request::get("/").body(()).unwrap();
            let headers = request.headers_mut();
            headers.extend(own.map(|value| (HEADER, HeaderValue::from_static(value))));
            headers.extend(
                credentials.map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value))),
            );
            let sent = forward(request).headers().get(HEADER).cloned();
            sent.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(
            sent(Some("forward"), Some("Bearer abc")).as_deref(),
            Some("Bearer abc")
        );
        assert_eq!(sent(Some("forward"), Some("Basic abc")), None);
        assert_eq!(sent(Some("forward"), None), None);
        assert_eq!(sent(None, Some("Bearer abc")), None);
        assert_eq!(
            sent(Some("Bearer other"), Some("Bearer abc")).as_deref(),
            Some("Bearer other")
        );
    }
}
