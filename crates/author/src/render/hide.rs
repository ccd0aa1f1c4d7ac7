//! Detects what depends on the values of Secrets by comparison: the pass runs again with other values in the Secrets, and
//! whatever differs depends on them. This also finds values that were cut, joined or encoded, while equal text of other origin
//! stays.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_engine::reconcile::preview::{Change, Preview};
use orkestra_object::value::{Key, MASK, Map, Node};

/// The annotation in which `kubectl apply` keeps the applied object, including values.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The ways to replace values of Secrets: whatever differs with any of them is hidden.
pub(crate) const WAYS: [Change; 2] = [alike, unlike];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HideMode {
    Alike,
    All,
}

/// True if the object is a Secret.
pub(crate) fn is_secret(object: &Node) -> bool {
    let is = |field, wanted| object.get(field).and_then(Node::as_str) == Some(wanted);
    is("apiVersion", "v1") && is("kind", "Secret")
}

/// Returns the object, with other values if it is a Secret. Letters and digits are replaced by others of their class, so that a
/// number stays a number, and an address an address.
fn alike(object: &Node) -> Node {
    with_other_values(object, HideMode::Alike)
}

/// Returns the object, with other values if it is a Secret; every character is replaced.
fn unlike(object: &Node) -> Node {
    with_other_values(object, HideMode::All)
}

fn with_other_values(object: &Node, way: HideMode) -> Node {
    if is_secret(object) {
        with_values(object, &|value| other_value(value, way))
    } else {
        object.clone()
    }
}

/// Returns a Secret with its values masked.
pub(crate) fn masked(secret: &Node) -> Node {
    with_values(secret, &|_| MASK.into())
}

fn with_values(secret: &Node, change: &impl Fn(&Node) -> Node) -> Node {
    changed(secret, &|key, value| match key {
        "data" | "stringData" => match value {
            Node::Map(_) => changed(value, &|_, value| change(value)),
            _ => change(value),
        },
        "metadata" => changed(value, &|key, value| match key {
            "annotations" => changed(value, &|key, value| match key {
                APPLIED => change(value),
                _ => value.clone(),
            }),
            _ => value.clone(),
        }),
        _ => value.clone(),
    })
}

/// Returns the map with each value changed; any other node unchanged.
fn changed(node: &Node, change: &impl Fn(&str, &Node) -> Node) -> Node {
    let Node::Map(map) = node else {
        return node.clone();
    };
    let entry = |(key, value): (&Key, &Node)| (key.clone(), change(key.as_str(), value));
    Node::Map(map.iter().map(entry).collect::<Map>())
}

/// Returns another value: for base64 another encoded text, so that it is still decodable.
fn other_value(value: &Node, way: HideMode) -> Node {
    let Some(text) = value.as_str() else {
        return Node::Null;
    };
    let inside = STANDARD.decode(text).ok();
    match inside.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(inside) => STANDARD.encode(other_text(&inside, way)).into(),
        None => other_text(text, way).into(),
    }
}

fn other_text(text: &str, way: HideMode) -> String {
    let other = |c: char| match c {
        'z' => 'a',
        'Z' => 'A',
        '9' => '0',
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from_u32(u32::from(c) + 1).unwrap_or('a'),
        _ if way == HideMode::All => 'q',
        _ => c,
    };
    text.chars().map(other).collect()
}

/// Hides everything in `preview` that differs in `other`.
pub(crate) fn hide(preview: &mut Preview, other: &Preview) {
    let is_aligned = preview.objects.len() == other.objects.len();
    for (at, object) in preview.objects.iter_mut().enumerate() {
        let twin = other.objects.iter().find(|twin| is_same(object, twin));
        let twin = twin.or_else(|| other.objects.get(at).filter(|_| is_aligned));
        let twin = twin.cloned().unwrap_or_else(|| only_kind(object));
        *object = hidden(object, &twin);
    }
    preview.cr = hidden(&preview.cr, &other.cr);
    for failure in &mut preview.failures {
        if !other.failures.contains(failure) {
            "the error is hidden because it depends on the values of Secrets"
                .clone_into(&mut failure.message);
        }
    }
}

/// Stands in for the counterpart of an object that has none.
fn only_kind(object: &Node) -> Node {
    let field = |name| (name, object.get(name).cloned().unwrap_or_default());
    Node::object([field("apiVersion"), field("kind")])
}

fn is_same(object: &Node, other: &Node) -> bool {
    let identity = |object: &Node| {
        [
            object.get("apiVersion").cloned(),
            object.get("kind").cloned(),
            object.meta("namespace").cloned(),
            object.meta("name").cloned(),
        ]
    };
    identity(object) == identity(other)
}

/// Returns the node with [`MASK`] in place of everything that differs in `other`.
fn hidden(node: &Node, other: &Node) -> Node {
    match (node, other) {
        (Node::Map(map), Node::Map(others)) => {
            let entry = |(key, value): (&Key, &Node)| {
                let Some(other) = others.get(key.as_str()) else {
                    return (Key::from(MASK), Node::from(MASK));
                };
                (key.clone(), hidden(value, other))
            };
            Node::Map(map.iter().map(entry).collect::<Map>())
        }
        (Node::List(list), Node::List(others)) if list.len() == others.len() => {
            let items = list.iter().zip(others.iter());
            items
                .map(|(item, other)| hidden(item, other))
                .collect::<Vec<_>>()
                .into()
        }
        _ if node == other => node.clone(),
        _ => MASK.into(),
    }
}
