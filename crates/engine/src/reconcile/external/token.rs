//! The bearer tokens of calls and hooks.

use crate::reconcile::{
    record::Observed,
    render::{RenderError, Renderer},
    sources::{Answer, Read},
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, Piece, TokenPlan};

/// The token of a call, or why it is not available.
pub(crate) enum TokenResult {
    /// The token; empty if none is declared.
    Token(Box<[Piece]>),
    /// This must be known first.
    Needs(Read),
    /// The Secret has no token, with the reason.
    Missing(String),
}

/// Returns the declared token.
///
/// # Errors
/// Its template failed.
pub(crate) fn token(
    renderer: &mut Renderer<'_, '_>,
    observed: &Observed,
    declared: Option<&TokenPlan>,
) -> Result<TokenResult, RenderError> {
    let whole = |text: String| TokenResult::Token(Box::new([Piece::Text(text.into())]));
    let (namespace, name, key) = match declared {
        None => return Ok(TokenResult::Token(Box::default())),
        Some(TokenPlan::Literal(pieces)) => return Ok(TokenResult::Token(pieces.clone())),
        Some(TokenPlan::Template(leaf)) => return Ok(whole(renderer.text(leaf)?)),
        Some(TokenPlan::Secret {
            namespace,
            name,
            key,
        }) => (namespace, name, key),
    };
    let own = &observed.cr.id.key.namespace;
    let secret = ChildKey {
        kind: GroupKind::parse("Secret"),
        object: ObjectKey {
            namespace: namespace.as_deref().map(Key::from).or_else(|| own.clone()),
            name: Key::from(&**name),
        },
    };
    let read = Read::Object(secret.clone());
    Ok(match observed.answers.get(&read) {
        None => TokenResult::Needs(read),
        Some(Answer::Absent) => TokenResult::Missing(format!("{secret} does not exist")),
        Some(Answer::Unavailable(why)) => {
            TokenResult::Missing(format!("{secret} cannot be read: {why}"))
        }
        Some(Answer::Ready(object)) => match value(object, key) {
            Some(text) => whole(text),
            None => TokenResult::Missing(format!("{secret} has no text under `{key}`")),
        },
    })
}

/// Returns the text under a key of a Secret.
fn value(secret: &Node, key: &str) -> Option<String> {
    use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    let text = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
