//! `external`: calls to external services.
//!
//! ```text
//!  preReconcile ──► enqueueGate ──► reconcileGate ──► mutation ──► validation ──► the operatorBox and its blocks
//! ```
//!
//! Calls are made in this order; at each stage the calls of the Katalog come before those of its Motifs.

mod fields;

pub(crate) use fields::{check_name, headers, retry, timeout, token, url};

use super::{admission, children::DeclaredBlock, conditions};
use crate::scope::At;
use orkestra_language::{
    api::{
        ExternalCall,
        calls::{Fires, Method, Protocol},
    },
    diagnostics::Code,
};
use orkestra_object::value::Key;
use orkestra_plan::{CallPlan, Coerce, Moments, Stage};

/// Maximum number of calls of one operator.
const MOST_CALLS: usize = 50;

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
pub(crate) fn plans<'a>(
    other: impl IntoIterator<Item = DeclaredCalls<'a>>,
    of_box: DeclaredCalls<'a>,
    blocks: &[DeclaredBlock<'a>],
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
        let Some(call) = compile_call(&at, declared, place, block) else {
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
    if ![Stage::Mutation, Stage::Validation].contains(&stage) {
        if fires.and_then(|fires| fires.reconcile) == Some(false) {
            let message = "only calls of `mutation` and `validation` are made at admission";
            let at = at.field("fires").field("reconcile");
            at.error_hint(Code::WrongValue, message, "remove `fires`");
        }
        return Moments::default();
    }
    admission::fires(fires)
}

fn compile_call(
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
    Some(CallPlan {
        name: Key::from(&**name),
        path: at.kept(),
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
        headers: fields::headers(&at.field("headers"), headers),
        body,
        token: fields::token(at, token.as_ref(), auth.as_ref()),
        expected_status: fields::status(&at.field("expectedStatus"), expected_status.as_ref()),
        continue_on_error: continue_on_error.unwrap_or(false),
        timeout: fields::timeout(&at.field("timeout"), *timeout),
        retry: fields::retry(&at.field("retryBackoff"), retry_backoff.as_ref()),
        cache_for: cache_for.map(|span| span.0).filter(|time| !time.is_zero()),
    })
}
