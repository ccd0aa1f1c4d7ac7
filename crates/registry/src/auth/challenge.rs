//! Parses `WWW-Authenticate`.

use http::{HeaderMap, header};

/// The authentication that a registry requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password in every request.
    Basic,
    /// A token from this server.
    Bearer {
        /// The token server's URL.
        realm: String,
        /// The name of the registry for the token server.
        service: Option<String>,
    },
}

impl Challenge {
    /// Returns the first supported challenge of a response; a token is preferred to a password.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let read: Vec<Self> = values
            .filter_map(|value| value.to_str().ok())
            .filter_map(Self::parse)
            .collect();
        let bearer = read.iter().find(|challenge| **challenge != Self::Basic);
        bearer.or(read.first()).cloned()
    }

    /// Source: RFC 7235, section 2.1; docker's "Token Authentication Specification".
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        for (name, value) in parameters(rest) {
            match name.as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
        }
        Some(Self::Bearer {
            realm: realm?,
            service,
        })
    }
}

/// Parses `name="value", other=value`: names in lower case, values without quotes and escapes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        let name: String = std::iter::from_fn(|| chars.next_if(|c| *c != '=')).collect();
        if chars.next().is_none() {
            return found;
        }
        let mut value = String::new();
        if chars.next_if_eq(&'"').is_some() {
            while let Some(next) = chars.next() {
                match next {
                    '"' => break,
                    '\\' => value.extend(chars.next()),
                    other => value.push(other),
                }
            }
        } else {
            value.extend(std::iter::from_fn(|| chars.next_if(|c| *c != ',')));
        }
        let name = name.trim_matches([',', ' ', '\t']).to_ascii_lowercase();
        found.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_preferred_and_commas_in_quotes_are_part_of_a_value() {
        let mut headers = HeaderMap::new();
        headers.append(
            header::WWW_AUTHENTICATE,
            "Basic realm=\"r\"".parse().unwrap(),
        );
        assert_eq!(Challenge::of(&headers), Some(Challenge::Basic));
        let token = r#"bearer Realm="https://auth.example/token",service="a \"b\"",scope="repository:a/b:pull,push",error=x"#;
        headers.append(header::WWW_AUTHENTICATE, token.parse().unwrap());
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("a \"b\"".to_owned()),
        };
        assert_eq!(Challenge::of(&headers), Some(expected));
    }

    #[test]
    fn a_challenge_of_another_kind_or_without_a_realm_is_not_one() {
        for text in [
            "",
            "Digest realm=\"x\"",
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm",
        ] {
            assert_eq!(Challenge::parse(text), None, "{text}");
        }
    }
}
