//! External calls as plain values.

use super::{leaf, list, map, place, tree};
use crate::{CallPlan, HookEndpoint, HookPlan, ManagedKind, Piece, TokenPlan};
use orkestra_object::value::{self, Node};

/// Describes one call.
pub(crate) fn call(plan: &CallPlan) -> Node {
    let CallPlan {
        name,
        path,
        import,
        stage,
        block,
        moments,
        gate,
        method,
        url,
        headers,
        body,
        token,
        expected_status,
        continue_on_error,
        timeout,
        retry,
        cache_for,
    } = plan;
    let headers = headers.iter().map(|(name, value)| (&**name, leaf(value)));
    let call = [
        ("name", Node::from(&**name)),
        ("path", Node::from(&**path)),
        ("stage", Node::from(format!("{stage:?}"))),
        ("atAdmission", Node::Bool(moments.not_in_passes.is_some())),
        ("gate", super::gate(gate)),
        ("method", Node::from(*method)),
        ("url", leaf(url)),
        ("headers", map(headers)),
        ("body", body.as_ref().map(leaf).unwrap_or_default()),
        ("token", token.as_ref().map(self::token).unwrap_or_default()),
        (
            "expectedStatus",
            Node::from(i64::from(expected_status.unwrap_or_default())),
        ),
        ("continueOnError", Node::from(*continue_on_error)),
        (
            "times",
            Node::from(format!("{timeout:?} {retry:?} {cache_for:?}")),
        ),
    ];
    let places = place("import", *import)
        .into_iter()
        .chain(place("block", *block));
    map(call.into_iter().chain(places))
}

/// Describes one hook; the gate is that of its block.
pub(crate) fn hook(plan: &HookPlan) -> Node {
    let HookPlan {
        name,
        path,
        at,
        block,
        http:
            HookEndpoint {
                url,
                finalize_url,
                headers,
                token,
            },
        protocol,
        args,
        managed,
        // The same in every plan.
        entries: _,
        timeout,
        retry,
        cache_for,
    } = plan;
    let headers = headers.iter().map(|(name, value)| (&**name, leaf(value)));
    let managed = managed.iter().map(|one| {
        let ManagedKind { kind, roots: _ } = one;
        Node::from(&*HookPlan::key_of(kind))
    });
    let hook = [
        ("name", Node::from(&**name)),
        ("path", Node::from(&**path)),
        ("at", Node::from(format!("{at:?}"))),
        ("url", leaf(url)),
        (
            "finalizeUrl",
            finalize_url.as_ref().map(leaf).unwrap_or_default(),
        ),
        ("headers", map(headers)),
        ("token", token.as_ref().map(self::token).unwrap_or_default()),
        ("protocol", Node::from(format!("{protocol:?}"))),
        ("args", tree(args)),
        ("managed", list(managed)),
        (
            "times",
            Node::from(format!("{timeout:?} {retry:?} {cache_for:?}")),
        ),
    ];
    map(hook.into_iter().chain(place("block", Some(*block))))
}

fn token(plan: &TokenPlan) -> Node {
    match plan {
        TokenPlan::Template(token) => leaf(token),
        TokenPlan::Literal(pieces) => list(pieces.iter().map(piece)),
        TokenPlan::Secret {
            namespace,
            name,
            key,
        } => Node::from(format!(
            "{}/{name} {key}",
            namespace.as_deref().unwrap_or_default()
        )),
    }
}

/// Hashes the text of a token, which may be secret.
fn piece(piece: &Piece) -> Node {
    match piece {
        Piece::Text(text) => Node::from(value::hash_text(text)),
        Piece::Variable(name) => Node::from(format!("${name}")),
    }
}
