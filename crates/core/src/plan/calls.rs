//! `external`: calls to external services.
//!
//! ```text
//!  preReconcile ──► enqueueGate ──► reconcileGate ──► mutation ──► validation ──► the operatorBox and its blocks
//! ```
//!
//! Calls are made in this order; at each stage the calls of the Katalog come before those of its Motifs.

mod fields;
mod token;

use std::time::Duration;

pub use self::token::{Piece, Retry};
use super::{
    Coerce, Gate, Leaf, Moment, Moments, OperatorPlan, admission, children::Declared, conditions,
    walk::Expression,
};
use crate::{
    api::{
        ExternalCall,
        calls::{Method, Protocol},
        rules::Fires,
    },
    diagnostics::Code,
    resources::scope::At,
    value::Key,
};

/// Maximum number of calls of one operator.
const MOST_CALLS: usize = 50;
/// The stage at which a call is made. The calls of a stage run before the step that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before the gates of a pass.
    PreReconcile,
    /// The gate for enqueueing a custom resource.
    EnqueueGate,
    /// The gate for reconciling a queued custom resource.
    ReconcileGate,
    /// The mutation rules.
    Mutation,
    /// The validation rules.
    Validation,
    /// Children: the calls of the operatorBox, then those of its blocks.
    Box,
}

/// One call of an operator.
#[derive(Debug)]
pub struct CallPlan {
    /// The key under `.external`, unique among the calls of one import.
    pub name: Key,
    /// Its path in the Katalog, or in the Motif of `import`.
    pub path: Box<str>,
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// The stage at which it is made.
    pub stage: Stage,
    /// The block that declares it, as an index into [`OperatorPlan::blocks`](super::OperatorPlan::blocks); `None` runs
    /// before all blocks.
    pub block: Option<usize>,
    /// The moments at which it is made.
    pub moments: Moments,
    /// The gate of the call.
    pub gate: Gate,
    /// The HTTP method, in upper case.
    pub method: &'static str,
    /// The URL.
    pub url: Leaf,
    /// Header names and values, sorted.
    pub headers: Box<[(Box<str>, Leaf)]>,
    /// The request body.
    pub body: Option<Leaf>,
    /// The bearer token.
    pub token: Option<Token>,
    /// The only status that counts as success; `None` accepts all but 4xx and 5xx.
    pub expected_status: Option<u16>,
    /// True if the pass continues when the call fails.
    pub continue_on_error: bool,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The retry policy.
    pub retry: Retry,
    /// How long a successful response is cached.
    pub cache_for: Option<Duration>,
}

/// A bearer token.
#[derive(Debug)]
pub enum Token {
    /// A template.
    Template(Leaf),
    /// Text and environment variables of the runtime.
    Literal(Box<[Piece]>),
    /// A key of a Secret.
    Secret {
        /// Its namespace; `None` is the custom resource's.
        namespace: Option<Box<str>>,
        /// Its name.
        name: Box<str>,
        /// The key in its data.
        key: Box<str>,
    },
}

impl OperatorPlan {
    /// Returns the number of calls made once those of `stage` are.
    pub(crate) fn calls_until(&self, stage: Stage) -> usize {
        self.calls.partition_point(|call| call.stage <= stage)
    }

    /// True if calls are made for the gates of a pass.
    pub fn gates_ask_outside(&self) -> bool {
        let before = &self.calls[..self.calls_until(Stage::ReconcileGate)];
        before
            .iter()
            .any(|call| call.moments.includes(Moment::Pass))
    }
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

/// The calls declared in one place.
pub(crate) struct DeclaredCalls<'a> {
    /// Their path.
    pub(crate) at: At<'a>,
    /// The calls, in order of declaration.
    pub(crate) calls: &'a [ExternalCall],
    /// The stage at which they are made.
    pub(crate) stage: Stage,
    /// The import that declares them.
    pub(crate) import: Option<usize>,
}

/// Compiles the calls of the operatorBox, of its blocks and of `other` places, in the order in which they are made.
pub(crate) fn compile<'a>(
    other: impl IntoIterator<Item = DeclaredCalls<'a>>,
    of_box: DeclaredCalls<'a>,
    blocks: &[Declared<'a>],
) -> Box<[CallPlan]> {
    let of_blocks = blocks.iter().enumerate().map(|(position, block)| {
        let declared = DeclaredCalls {
            at: block.at.field("external"),
            calls: &block.lifecycle.external,
            stage: Stage::Box,
            import: block.import,
        };
        (declared, Some(position))
    });
    let other = other.into_iter().chain([of_box]);
    let mut calls: Vec<CallPlan> = Vec::new();
    for (declared, block) in other.map(|declared| (declared, None)).chain(of_blocks) {
        list(&declared, block, &mut calls);
    }
    // Stable sort: keeps the order of declaration within an import.
    calls.sort_by_key(|call| (call.stage, call.import));
    calls.into()
}

fn list(place: &DeclaredCalls<'_>, block: Option<usize>, calls: &mut Vec<CallPlan>) {
    for (index, declared) in place.calls.iter().enumerate() {
        let at = place.at.index(index);
        let Some(call) = one(&at, declared, place, block) else {
            continue;
        };
        let same = |other: &&CallPlan| other.name == call.name && other.import == place.import;
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

/// Returns the declared moments of a call.
fn moments(at: &At<'_>, fires: Option<&Fires>, stage: Stage) -> Moments {
    if fires.is_some() && ![Stage::Mutation, Stage::Validation].contains(&stage) {
        let message = "only calls of `mutation` and `validation` are made at admission";
        let at = at.field("fires");
        at.error_hint(Code::WrongValue, message, "leave `fires` out");
        return Moments::default();
    }
    admission::fires(fires)
}

fn one(
    at: &At<'_>,
    declared: &ExternalCall,
    place: &DeclaredCalls<'_>,
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
        fires,
        protocol: None | Some(Protocol::Http),
        later: _,
    } = declared;
    fields::check_name(&at.field("name"), name);
    let url = fields::url(&at.field("url"), url);
    let body = body.as_ref();
    let body = body.and_then(|body| at.field("body").leaf(body, Coerce::Text));
    let mut sent = Vec::with_capacity(headers.len());
    for (header, value) in headers {
        fields::check_header(&at.field("headers").key(header), header);
        let value = at.field("headers").field(header).leaf(value, Coerce::Text);
        sent.extend(value.map(|value| (Box::from(&**header), value)));
    }
    Some(CallPlan {
        name: Key::from(&**name),
        path: at.text(),
        import: place.import,
        stage: place.stage,
        block,
        moments: moments(at, fires.as_ref(), place.stage),
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
        token: fields::token(at, token.as_ref(), auth.as_ref()),
        expected_status: fields::status(&at.field("expectedStatus"), expected_status.as_ref()),
        continue_on_error: continue_on_error.unwrap_or(false),
        timeout: fields::timeout(&at.field("timeout"), *timeout),
        retry: fields::retry(&at.field("retryBackoff"), retry_backoff.as_ref()),
        cache_for: cache_for.map(|span| span.0).filter(|time| !time.is_zero()),
    })
}
