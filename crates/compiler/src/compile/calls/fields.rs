//! The fields of a call, each checked separately.

use std::{collections::BTreeMap, time::Duration};

use crate::scope::At;
use orkestra_language::{
    api::{
        calls::{Backoff, CallAuth, CallSecret, RetryBackoff},
        duration::Span,
        names,
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, Leaf, Piece, Retry, TokenPlan};

/// Default timeout of one attempt.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum timeout of one attempt. Source: language reference, external calls.
const MOST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts of one call.
const MOST_ATTEMPTS: u32 = 10;
/// Longest delay between two attempts.
const MOST_WAIT: Duration = Duration::from_mins(5);
/// Headers that control message framing and connections, which a Katalog cannot set; those that start with `proxy-`
/// likewise.
const OWN_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(crate) fn url(at: &At<'_>, url: &Text) -> Option<Leaf> {
    let leaf = at.leaf(url, Coerce::Text)?;
    if let Some(literal) = leaf.template.literal() {
        let literal = literal.trim();
        if literal.is_empty() {
            at.error(Code::Empty, "the value is empty");
        } else if !["http://", "https://"]
            .iter()
            .any(|scheme| literal.starts_with(scheme))
        {
            let message = "expected a URL that starts with `https://` or `http://`";
            at.error(Code::WrongValue, message);
        }
    }
    Some(leaf)
}

pub(crate) fn check_name(at: &At<'_>, name: &str) {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let continues = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !(starts && continues) {
        let message = format!("`{name}` is not a valid call name");
        let hint = "write letters, digits, `_` and `-`, and a letter first, such as `healthCheck`";
        at.error_hint(Code::BadName, message, hint);
    }
}

/// Compiles the headers at `at`.
pub(crate) fn headers(at: &At<'_>, declared: &BTreeMap<String, Text>) -> Box<[(Box<str>, Leaf)]> {
    let mut compiled = Vec::with_capacity(declared.len());
    for (header, value) in declared {
        check_header(&at.key(header), header);
        let value = at.field(header).leaf(value, Coerce::Text);
        compiled.extend(value.map(|value| (Box::from(&**header), value)));
    }
    compiled.into()
}

/// Source: RFC 9110, section 5.1 (field names are tokens).
fn check_header(at: &At<'_>, name: &str) {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        let message = format!("`{name}` is not a valid header name");
        return at.error(Code::BadName, message);
    }
    let lower = name.to_ascii_lowercase();
    if OWN_HEADERS.contains(&&*lower) || lower.starts_with("proxy-") {
        let hint = "remove it: Orkestra sets the headers that control how a message is sent";
        let message = format!("the header `{name}` cannot be set");
        at.error_hint(Code::BadName, message, hint);
    }
}

pub(crate) fn status(at: &At<'_>, declared: Option<&Scalar>) -> Option<u16> {
    match declared?.to_string().trim() {
        "0" => None,
        text => {
            let status = text.parse().ok();
            let status = status.filter(|status| (100..600).contains(status));
            if status.is_none() {
                let message =
                    "expected a status from 100 to 599, or 0 to permit all except 4xx and 5xx";
                at.error(Code::OutOfRange, message);
            }
            status
        }
    }
}

pub(crate) fn timeout(at: &At<'_>, declared: Option<Span>) -> Duration {
    let timeout = declared.map_or(DEFAULT_TIMEOUT, |span| span.0);
    if timeout.is_zero() || timeout > MOST_TIMEOUT {
        at.error(
            Code::OutOfRange,
            "expected a timeout of more than `0s` and at most `30s`",
        );
    }
    timeout
}

pub(crate) fn retry(at: &At<'_>, declared: Option<&RetryBackoff>) -> Retry {
    let (own, at) = match declared {
        None => return Retry::NONE,
        Some(RetryBackoff::Initial(span)) => {
            let initial = Some(*span);
            (
                Backoff {
                    initial,
                    ..Backoff::default()
                },
                None,
            )
        }
        Some(RetryBackoff::Full(backoff)) => (backoff.clone(), Some(at)),
    };
    let refuse = |field: &str, message: String| {
        if let Some(at) = at {
            at.field(field).error(Code::OutOfRange, message);
        }
    };
    let number = |scalar: &Option<Scalar>| Some(scalar.as_ref()?.to_string().trim().to_owned());
    let initial = own
        .initial
        .map_or(Duration::from_millis(500), |span| span.0);
    let most = own.max.map_or(Duration::from_secs(30), |span| span.0);
    if most > MOST_WAIT {
        let most = MOST_WAIT.as_secs() / 60;
        refuse(
            "max",
            format!("expected a delay of at most {most} minutes between attempts"),
        );
    }
    let attempts = number(&own.max_attempts).map_or(Some(3), |text| text.parse().ok());
    let attempts = attempts.filter(|attempts| (1..=MOST_ATTEMPTS).contains(attempts));
    if attempts.is_none() {
        refuse(
            "maxAttempts",
            format!("expected 1 to {MOST_ATTEMPTS} attempts"),
        );
    }
    let multiplier = number(&own.multiplier).map_or(Some(2.0), |text| text.parse().ok());
    let multiplier = multiplier.filter(|times| (1.0..=10.0).contains(times));
    if multiplier.is_none() {
        refuse(
            "multiplier",
            "expected a multiplier from 1 to 10".to_owned(),
        );
    }
    Retry {
        attempts: attempts.unwrap_or(1),
        initial,
        most,
        thousandths: thousandths(multiplier.unwrap_or(2.0)),
    }
}

/// Converts a number from 1 to 10 to thousandths.
fn thousandths(times: f64) -> u32 {
    let times = format!("{:.0}", times * 1000.0);
    times.parse().unwrap_or(1000)
}

pub(crate) fn token(
    at: &At<'_>,
    token: Option<&Text>,
    auth: Option<&CallAuth>,
) -> Option<TokenPlan> {
    if let Some(CallAuth { secret_ref }) = auth {
        if token.is_some() {
            let message = "`token` and `auth` are mutually exclusive";
            at.field("auth").error(Code::Exclusive, message);
        }
        return Some(secret(&at.field("auth").field("secretRef"), secret_ref));
    }
    let leaf = at.field("token").leaf(token?, Coerce::Text)?;
    Some(match leaf.template.literal() {
        Some(literal) => TokenPlan::Literal(pieces(literal.trim())),
        None => TokenPlan::Template(leaf),
    })
}

fn secret(at: &At<'_>, declared: &CallSecret) -> TokenPlan {
    let CallSecret {
        name,
        namespace,
        key,
    } = declared;
    for (field, text) in [("name", Some(name)), ("namespace", namespace.as_ref())] {
        if text.is_some_and(|text| text.contains("{{")) {
            at.field(field).error_hint(
                Code::NotATemplate,
                "the Secret of a call cannot be a template",
                "write a literal name: the author of a custom resource must not choose which Secret is sent",
            );
        } else if let Some(text) = text
            && let Err(why) = names::check_dns1123_subdomain(text)
        {
            at.field(field)
                .bad_name(text, why, names::check_dns1123_subdomain);
        }
    }
    TokenPlan::Secret {
        namespace: namespace.as_deref().map(Box::from),
        name: name.as_str().into(),
        key: key.as_str().into(),
    }
}

/// Parses text with `$VAR` and `${VAR}`; any other `$` is literal.
fn pieces(text: &str) -> Box<[Piece]> {
    let mut pieces = Vec::new();
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        plain.push_str(before);
        rest = after;
        let braced = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let length = after
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        let (name, beyond) = braced.unwrap_or_else(|| after.split_at(length));
        let is_name = !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            plain.push('$');
            continue;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
        }
        pieces.push(Piece::Variable(name.into()));
        rest = beyond;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain.into()));
    }
    pieces.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_variables_with_and_without_braces() {
        let shown = |text: &str| -> Vec<String> {
            let show = |piece: &Piece| match piece {
                Piece::Text(text) => format!("'{text}'"),
                Piece::Variable(name) => name.to_string(),
            };
            pieces(text).iter().map(show).collect()
        };
        assert_eq!(shown("plain"), ["'plain'"]);
        assert_eq!(shown("$TOKEN"), ["TOKEN"]);
        assert_eq!(
            shown("a-${TOKEN}b$B.c"),
            ["'a-'", "TOKEN", "'b'", "B", "'.c'"]
        );
        assert_eq!(shown("5$ $1 ${} ${A B} $"), ["'5$ $1 ${} ${A B} $'"]);
        assert!(shown("").is_empty());
    }
}
