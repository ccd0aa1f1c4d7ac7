//! External calls as plain values.

use super::{leaf, list, map, place};
use crate::{
    plan::{CallPlan, Piece, TokenPlan},
    value::{self, Node},
};

/// Describes one call.
pub(super) fn call(plan: &CallPlan) -> Node {
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
    let token = token.as_ref().map(|token| match token {
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
    });
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
        ("token", token.unwrap_or_default()),
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

/// Hashes the text of a token, which may be secret.
fn piece(piece: &Piece) -> Node {
    match piece {
        Piece::Text(text) => Node::from(value::hash_text(text)),
        Piece::Variable(name) => Node::from(format!("${name}")),
    }
}
