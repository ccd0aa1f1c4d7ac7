//! `external`: calls to the outside.

use std::time::Duration;

use super::{Coerce, Gate, Leaf, children::Declared, conditions, walk::Expression};
use crate::{
    api::{
        ExternalCall,
        calls::{Backoff, CallAuth, CallSecret, Method, Protocol, RetryBackoff},
        duration::Span,
        names,
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
    reconcile::calls::{Piece, Retry},
    resources::scope::At,
    value::Key,
};

/// How long a try may take, where nothing is declared.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a try may take at most. Source: language reference, external calls.
const MOST_TIMEOUT: Duration = Duration::from_secs(30);
/// Most tries of one call.
const MOST_ATTEMPTS: u32 = 10;
/// Longest wait between two tries.
const MOST_WAIT: Duration = Duration::from_mins(5);
/// Most calls of one operator.
const MOST_CALLS: usize = 50;
/// Headers that say how the message is sent, which is not the Katalog's to say; those that start with `proxy-` too.
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

/// One call of an operator.
#[derive(Debug)]
pub struct CallPlan {
    /// The key under `.external`, which calls of one import do not share.
    pub name: Key,
    /// Where it stands in the Katalog, or in the Motif of `import`.
    pub path: Box<str>,
    /// The import that it comes from, by its place in [`OperatorPlan::imports`](super::OperatorPlan::imports); none is the
    /// Katalog.
    pub import: Option<usize>,
    /// The block that it stands in, by its place in [`OperatorPlan::blocks`](super::OperatorPlan::blocks); none is before all
    /// of them.
    pub block: Option<usize>,
    /// What must hold for it to be made.
    pub gate: Gate,
    /// The HTTP method, in capitals.
    pub method: &'static str,
    /// Where it goes.
    pub url: Leaf,
    /// Names and values of headers, sorted.
    pub headers: Box<[(Box<str>, Leaf)]>,
    /// What is sent.
    pub body: Option<Leaf>,
    /// What it shows as a bearer token.
    pub token: Option<Token>,
    /// The only status that counts as success; none for all but 4xx and 5xx.
    pub expected_status: Option<u16>,
    /// Whether the pass goes on when it fails.
    pub continue_on_error: bool,
    /// How long one try may take.
    pub timeout: Duration,
    /// How it is tried again.
    pub retry: Retry,
    /// How long a good answer is used again.
    pub cache_for: Option<Duration>,
}

/// A bearer token.
#[derive(Debug)]
pub enum Token {
    /// A template gives it.
    Template(Leaf),
    /// Text and variables of the runtime's environment.
    Literal(Box<[Piece]>),
    /// A Secret holds it.
    Secret {
        /// Its namespace; none is the custom resource's.
        namespace: Option<Box<str>>,
        /// Its name.
        name: Box<str>,
        /// The key in its data.
        key: Box<str>,
    },
}

impl CallPlan {
    /// Calls `visit` with every expression.
    pub(super) fn visit<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>)) {
        visit(Expression::Leaf(&self.url));
        let headers = self.headers.iter().map(|(_, value)| value);
        let token = match &self.token {
            Some(Token::Template(leaf)) => Some(leaf),
            _ => None,
        };
        for leaf in headers.chain(&self.body).chain(token) {
            visit(Expression::Leaf(leaf));
        }
        for condition in self.gate.iter() {
            visit(Expression::Condition(condition));
        }
    }
}

/// The calls of an operator: those `before` all blocks, at the place that is given, and those of its blocks.
pub(crate) fn compile(
    at: &At<'_>,
    before: &[ExternalCall],
    blocks: &[Declared<'_>],
) -> Box<[CallPlan]> {
    let mut calls: Vec<CallPlan> = Vec::new();
    list(at, before, (None, None), &mut calls);
    for (position, block) in blocks.iter().enumerate() {
        let declared = &block.lifecycle.external;
        let at = block.at.field("external");
        list(&at, declared, (block.import, Some(position)), &mut calls);
    }
    calls.into()
}

fn list(
    at: &At<'_>,
    declared: &[ExternalCall],
    (import, block): (Option<usize>, Option<usize>),
    calls: &mut Vec<CallPlan>,
) {
    for (index, declared) in declared.iter().enumerate() {
        let at = at.index(index);
        let Some(call) = one(&at, declared, import, block) else {
            continue;
        };
        let same = |other: &&CallPlan| other.name == call.name && other.import == import;
        if let Some(other) = calls.iter().find(same) {
            let message = format!("{} is called `{}` too", other.path, other.name);
            let hint = "give one of them another name: it is the key under `.external`";
            at.field("name").error_hint(Code::SetTwice, message, hint);
        } else if calls.len() == MOST_CALLS {
            let message = format!("an operator makes at most {MOST_CALLS} calls");
            at.error(Code::OutOfRange, message);
        } else {
            calls.push(call);
        }
    }
}

fn one(
    at: &At<'_>,
    declared: &ExternalCall,
    import: Option<usize>,
    block: Option<usize>,
) -> Option<CallPlan> {
    let ExternalCall {
        name,
        url,
        method,
        expected_status,
        continue_on_error,
        timeout,
        body,
        headers,
        token,
        auth,
        when,
        or,
        cache_for,
        retry_backoff,
        protocol: None | Some(Protocol::Http),
        later: _,
    } = declared;
    check_name(&at.field("name"), name);
    let url = self::url(&at.field("url"), url);
    let body = body.as_ref();
    let body = body.and_then(|body| at.field("body").leaf(body, Coerce::Text));
    let mut sent = Vec::with_capacity(headers.len());
    for (header, value) in headers {
        check_header(&at.field("headers").key(header), header);
        let value = at.field("headers").field(header).leaf(value, Coerce::Text);
        sent.extend(value.map(|value| (Box::from(&**header), value)));
    }
    Some(CallPlan {
        name: Key::from(&**name),
        path: at.text(),
        import,
        block,
        gate: conditions::gate(at, when, or),
        method: match method.unwrap_or(Method::Get) {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        },
        url: url?,
        headers: sent.into(),
        body,
        token: self::token(at, token.as_ref(), auth.as_ref()),
        expected_status: status(&at.field("expectedStatus"), expected_status.as_ref()),
        continue_on_error: continue_on_error.unwrap_or(false),
        timeout: self::timeout(&at.field("timeout"), *timeout),
        retry: retry(&at.field("retryBackoff"), retry_backoff.as_ref()),
        cache_for: cache_for.map(|span| span.0).filter(|time| !time.is_zero()),
    })
}

fn url(at: &At<'_>, url: &Text) -> Option<Leaf> {
    let leaf = at.leaf(url, Coerce::Text)?;
    if let Some(literal) = leaf.template.literal() {
        let literal = literal.trim();
        if literal.is_empty() {
            at.error(Code::Empty, "this is empty");
        } else if !["http://", "https://"]
            .iter()
            .any(|scheme| literal.starts_with(scheme))
        {
            let message = "a call goes to a URL that starts with `https://` or `http://`";
            at.error(Code::WrongValue, message);
        }
    }
    Some(leaf)
}

fn check_name(at: &At<'_>, name: &str) {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let goes_on = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !(starts && goes_on) {
        let message = format!("`{name}` is no name of a call");
        let hint = "write letters, digits, `_` and `-`, and a letter first, such as `healthCheck`";
        at.error_hint(Code::BadName, message, hint);
    }
}

/// Source: RFC 9110, section 5.1 (field names are tokens).
fn check_header(at: &At<'_>, name: &str) {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        let message = format!("`{name}` is no name of a header");
        return at.error(Code::BadName, message);
    }
    let lower = name.to_ascii_lowercase();
    if OWN_HEADERS.contains(&&*lower) || lower.starts_with("proxy-") {
        let hint = "leave it out: Orkestra says how a message is sent";
        let message = format!("the header `{name}` cannot be set");
        at.error_hint(Code::BadName, message, hint);
    }
}

fn status(at: &At<'_>, declared: Option<&Scalar>) -> Option<u16> {
    match declared?.to_string().trim() {
        "0" => None,
        text => {
            let status = text.parse().ok();
            let status = status.filter(|status| (100..600).contains(status));
            if status.is_none() {
                let message = "a status is a number from 100 to 599; 0 takes all but 4xx and 5xx";
                at.error(Code::OutOfRange, message);
            }
            status
        }
    }
}

fn timeout(at: &At<'_>, declared: Option<Span>) -> Duration {
    let timeout = declared.map_or(DEFAULT_TIMEOUT, |span| span.0);
    if timeout.is_zero() || timeout > MOST_TIMEOUT {
        at.error(
            Code::OutOfRange,
            "a call may take more than `0s`, and at most `30s`",
        );
    }
    timeout
}

fn retry(at: &At<'_>, declared: Option<&RetryBackoff>) -> Retry {
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
            format!("a wait between two tries is at most {most} minutes"),
        );
    }
    let attempts = number(&own.max_attempts).map_or(Some(3), |text| text.parse().ok());
    let attempts = attempts.filter(|attempts| (1..=MOST_ATTEMPTS).contains(attempts));
    if attempts.is_none() {
        refuse(
            "maxAttempts",
            format!("there are 1 to {MOST_ATTEMPTS} tries"),
        );
    }
    let multiplier = number(&own.multiplier).map_or(Some(2.0), |text| text.parse().ok());
    let multiplier = multiplier.filter(|times| (1.0..=10.0).contains(times));
    if multiplier.is_none() {
        refuse(
            "multiplier",
            "a wait is 1 to 10 times as long as the one before".to_owned(),
        );
    }
    Retry {
        attempts: attempts.unwrap_or(1),
        initial,
        most,
        thousandths: thousandths(multiplier.unwrap_or(2.0)),
    }
}

/// A number from 1 to 10, in thousandths.
fn thousandths(times: f64) -> u32 {
    let times = format!("{:.0}", times * 1000.0);
    times.parse().unwrap_or(1000)
}

fn token(at: &At<'_>, token: Option<&Text>, auth: Option<&CallAuth>) -> Option<Token> {
    if let Some(CallAuth { secret_ref }) = auth {
        if token.is_some() {
            let message = "`token` and `auth` exclude each other";
            at.field("auth").error(Code::Exclusive, message);
        }
        return Some(secret(&at.field("auth").field("secretRef"), secret_ref));
    }
    let leaf = at.field("token").leaf(token?, Coerce::Text)?;
    Some(match leaf.template.literal() {
        Some(literal) => Token::Literal(pieces(literal.trim())),
        None => Token::Template(leaf),
    })
}

fn secret(at: &At<'_>, declared: &CallSecret) -> Token {
    let CallSecret {
        name,
        namespace,
        key,
    } = declared;
    for (field, text) in [("name", Some(name)), ("namespace", namespace.as_ref())] {
        if text.is_some_and(|text| text.contains("{{")) {
            at.field(field).error_hint(
                Code::NotATemplate,
                "the Secret of a call is not a template",
                "write it out: who writes a custom resource must not choose which Secret is sent",
            );
        } else if let Some(text) = text
            && let Err(why) = names::check_dns1123_subdomain(text)
        {
            at.field(field)
                .bad_name(text, why, names::check_dns1123_subdomain);
        }
    }
    Token::Secret {
        namespace: namespace.as_deref().map(Box::from),
        name: name.as_str().into(),
        key: key.as_str().into(),
    }
}

/// Text with `$VAR` and `${VAR}`; another `$` is itself.
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
