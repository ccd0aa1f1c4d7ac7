//! Requests and caches tokens.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use orkestra_egress::Target;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::time::Instant;

use super::{Credential, basic, bearer};
use crate::{Error, transport::RegistryRequest};

/// The default lifetime of a token. Source: docker's "Token Authentication Specification".
const DEFAULT_SECONDS: u64 = 60;
/// The time before expiry at which a token is renewed.
const MARGIN: Duration = Duration::from_secs(10);
/// The name of this client in messages and for token servers.
const CLIENT_ID: &str = "ork";

const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Valid authorizations, by host and scope.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<HashMap<(String, String), CachedToken>>);

/// An authorization and its expiry.
type CachedToken = (HeaderValue, Option<Instant>);

impl Tokens {
    pub(crate) fn get(&self, host: &str, scope: &str) -> Option<HeaderValue> {
        let tokens = self.0.lock();
        let (value, end) = tokens.get(&(host.to_owned(), scope.to_owned()))?;
        let is_valid = end.is_none_or(|end| Instant::now() < end);
        is_valid.then(|| value.clone())
    }

    pub(crate) fn put(
        &self,
        host: &str,
        scope: &str,
        value: HeaderValue,
        within: Option<Duration>,
    ) {
        let end = within.map(|within| Instant::now() + within);
        let mut tokens = self.0.lock();
        tokens.insert((host.to_owned(), scope.to_owned()), (value, end));
    }
}

/// Returns the request for a token, with its credentials.
///
/// Source: docker's "Token Authentication Specification" (GET with Basic) and "Authenticate with `OAuth2`" (POST, for identity
/// tokens).
pub(crate) fn token_call(
    realm: &Target,
    service: Option<&str>,
    scope: &str,
    credential: Option<&Credential>,
) -> Result<(RegistryRequest, Option<HeaderValue>), Error> {
    let mut fields = Vec::new();
    fields.extend(service.map(|service| ("service", service)));
    if !scope.is_empty() {
        fields.push(("scope", scope));
    }
    if let Some(Credential::Identity(token)) = credential {
        fields.extend([
            ("grant_type", "refresh_token"),
            ("client_id", CLIENT_ID),
            ("refresh_token", token),
        ]);
        let body = Bytes::from(encode(&fields));
        let call = RegistryRequest::new(Method::POST, realm.clone());
        return Ok((call.body("application/x-www-form-urlencoded", body), None));
    }
    let query = encode(&fields);
    let joint = if realm.path.contains('?') { "&" } else { "?" };
    let path = if query.is_empty() {
        realm.path.clone()
    } else {
        format!("{}{joint}{query}", realm.path)
    };
    let url = realm
        .at(&path)
        .map_err(|_| malformed("its URL is too long".to_owned()))?;
    let authorization = match credential {
        Some(Credential::Basic { user, password }) => basic(user, password),
        _ => None,
    };
    Ok((
        RegistryRequest::new(Method::GET, url).header(header::ACCEPT, "application/json"),
        authorization,
    ))
}

fn encode(fields: &[(&str, &str)]) -> String {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)));
    pairs.collect::<Vec<_>>().join("&")
}

#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Parses the response of a token server into an authorization and its lifetime.
pub(crate) fn read_token(body: &[u8]) -> Result<(HeaderValue, Duration), Error> {
    let answer: TokenResponse = serde_json::from_slice(body)
        .map_err(|_| malformed("it is not JSON of that form".to_owned()))?;
    let token = answer
        .token
        .or(answer.access_token)
        .filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| malformed("it has no token".to_owned()))?;
    let value = bearer(&token).ok_or_else(|| {
        malformed("its token has characters that headers cannot contain".to_owned())
    })?;
    let within = Duration::from_secs(answer.expires_in.unwrap_or(DEFAULT_SECONDS));
    Ok((value, within.saturating_sub(MARGIN)))
}

fn malformed(why: String) -> Error {
    Error::Malformed {
        what: "the answer of the token server".to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_with_the_credentials_in_their_own_way() {
        let realm = Target::parse("https://auth.example/token?a=b").unwrap();
        let user = Credential::Basic {
            user: "u".to_owned(),
            password: "p".to_owned(),
        };
        let (call, authorization) =
            token_call(&realm, Some("reg"), "repository:a/b:pull,push", Some(&user)).unwrap();
        assert_eq!(
            call.0.target.url(),
            "https://auth.example/token?a=b&service=reg&scope=repository%3Aa%2Fb%3Apull%2Cpush"
        );
        assert_eq!(authorization.unwrap(), "Basic dTpw");
        let identity = Credential::Identity("t&t".to_owned());
        let (call, authorization) = token_call(&realm, None, "", Some(&identity)).unwrap();
        assert_eq!((call.0.method, authorization), (Method::POST, None));
        assert_eq!(
            call.0.body,
            "grant_type=refresh_token&client_id=ork&refresh_token=t%26t"
        );
    }

    #[test]
    fn a_token_is_used_until_shortly_before_its_end() {
        let (value, within) = read_token(br#"{"access_token":"abc","expires_in":300}"#).unwrap();
        assert_eq!(value, "Bearer abc");
        assert_eq!(within, Duration::from_secs(290));
        assert_eq!(
            read_token(br#"{"token":"abc"}"#).unwrap().1,
            Duration::from_secs(50)
        );
        for wrong in ["", "{}", r#"{"token":""}"#, r#"{"token":"a\nb"}"#] {
            assert!(read_token(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
