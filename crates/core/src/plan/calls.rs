//! `external`: calls to the outside.
//!
//! ```text
//!  preReconcile ──► enqueueGate ──► reconcileGate ──► mutation ──► validation ──► the box and its blocks
//! ```
//!
//! Calls are made in this order; in each place those of the Katalog before those of its Motifs.

mod fields;
mod token;

use std::time::Duration;

pub use self::token::{Piece, Retry};
use super::{Coerce, Gate, Leaf, OperatorPlan, children::Declared, conditions, walk::Expression};
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

/// Most calls of one operator.
const MOST_CALLS: usize = 50;
/// When a call is made. Those of a stage come before what the stage is called after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before the gates of a pass.
    PreReconcile,
    /// The gate that lets a custom resource be queued.
    EnqueueGate,
    /// The gate that lets a queued one be reconciled.
    ReconcileGate,
    /// The rules that complete.
    Mutation,
    /// The rules that refuse.
    Validation,
    /// Children: the calls of the box, then those of its blocks.
    Box,
}

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
    /// When it is made.
    pub stage: Stage,
    /// The block that it stands in, by its place in [`OperatorPlan::blocks`](super::OperatorPlan::blocks); none is before all
    /// of them.
    pub block: Option<usize>,
    /// Whether it is made at admission only, and in no pass.
    pub at_admission: bool,
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

impl OperatorPlan {
    /// How many of the calls are made once those of `stage` are.
    pub(crate) fn calls_until(&self, stage: Stage) -> usize {
        self.calls.partition_point(|call| call.stage <= stage)
    }

    /// Whether calls are made for the gates of a pass.
    pub fn gates_ask_outside(&self) -> bool {
        let before = &self.calls[..self.calls_until(Stage::ReconcileGate)];
        before.iter().any(|call| !call.at_admission)
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

/// The calls that are declared in one place.
pub(crate) struct DeclaredCalls<'a> {
    /// The place.
    pub(crate) at: At<'a>,
    /// The calls, in order.
    pub(crate) calls: &'a [ExternalCall],
    /// When they are made.
    pub(crate) stage: Stage,
    /// The import that they come from.
    pub(crate) import: Option<usize>,
}

/// The calls of the box and of its blocks, and those of `other` places, in the order in which they are made.
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
    // The order of declaration stays within an import.
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

/// Whether the call is made at admission only. Nothing asks there yet, so that it is never made.
fn at_admission(at: &At<'_>, fires: Option<&Fires>, stage: Stage) -> bool {
    if fires.and_then(|fires| fires.reconcile) != Some(false) {
        return false;
    }
    let at = at.field("fires").field("reconcile");
    if [Stage::Mutation, Stage::Validation].contains(&stage) {
        let message =
            "nothing asks at admission yet: the call is never made, and `.called` is `false`";
        at.warn(Code::NoEffect, message);
        return true;
    }
    let message = "only calls of `mutation` and `validation` are made at admission";
    at.error_hint(Code::WrongValue, message, "leave `fires` out");
    false
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
        at_admission: at_admission(at, fires.as_ref(), place.stage),
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
