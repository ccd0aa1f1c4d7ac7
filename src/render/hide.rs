//! What comes of the values of Secrets, told from the rest by comparison: the pass runs again over Secrets with other
//! values, and what differs depends on them. Thus also what is cut, joined or encoded is found, and equal text of other
//! origin stays.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_core::{
    reconcile::preview::{Change, Preview},
    value::{Key, Map, Node},
};

/// What stands for a value that is hidden. It is no base64, so that no API server takes it for one.
pub(crate) const MASK: &str = "***";
/// Where `kubectl apply` keeps what it was given, values and all.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Ways in which Secrets get other values: what is hidden is what any of them changes.
pub(super) const WAYS: [Change; 2] = [alike, unlike];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Alike,
    All,
}

/// Whether it is a Secret.
pub(crate) fn is_secret(object: &Node) -> bool {
    let is = |field, wanted| object.get(field).and_then(Node::as_str) == Some(wanted);
    is("apiVersion", "v1") && is("kind", "Secret")
}

/// The object; if it is a Secret, with other values. Letters and digits become others of their sort, so that a number stays
/// a number, and an address one.
fn alike(object: &Node) -> Node {
    with_other_values(object, Way::Alike)
}

/// The object; if it is a Secret, with other values, in which every character is another.
fn unlike(object: &Node) -> Node {
    with_other_values(object, Way::All)
}

fn with_other_values(object: &Node, way: Way) -> Node {
    if is_secret(object) {
        with_values(object, &|value| other_value(value, way))
    } else {
        object.clone()
    }
}

/// A Secret without its values.
pub(super) fn masked(secret: &Node) -> Node {
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

/// The map with each value changed; what is no map as it is.
fn changed(node: &Node, change: &impl Fn(&str, &Node) -> Node) -> Node {
    let Node::Map(map) = node else {
        return node.clone();
    };
    let entry = |(key, value): (&Key, &Node)| (key.clone(), change(key.as_str(), value));
    Node::Map(map.iter().map(entry).collect::<Map>())
}

/// Another value: of base64 another text inside it, so that it still can be read.
fn other_value(value: &Node, way: Way) -> Node {
    let Some(text) = value.as_str() else {
        return Node::Null;
    };
    let inside = STANDARD.decode(text).ok();
    match inside.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(inside) => STANDARD.encode(other_text(&inside, way)).into(),
        None => other_text(text, way).into(),
    }
}

fn other_text(text: &str, way: Way) -> String {
    let other = |c: char| match c {
        'z' => 'a',
        'Z' => 'A',
        '9' => '0',
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from_u32(u32::from(c) + 1).unwrap_or('a'),
        _ if way == Way::All => 'q',
        _ => c,
    };
    text.chars().map(other).collect()
}

/// Hides in `preview` what is otherwise in `other`.
pub(super) fn hide(preview: &mut Preview, other: &Preview) {
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
            "what fails is hidden: it depends on the values of Secrets"
                .clone_into(&mut failure.message);
        }
    }
}

/// What an object has in common with one that is missing.
fn only_kind(object: &Node) -> Node {
    let field = |name| (name, object.get(name).cloned().unwrap_or_default());
    Node::object([field("apiVersion"), field("kind")])
}

fn is_same(object: &Node, other: &Node) -> bool {
    let identity = |object: &Node| {
        let metadata = object.get("metadata");
        let of_metadata = |field| metadata.and_then(|metadata| metadata.get(field)).cloned();
        let own = |field| object.get(field).cloned();
        [
            own("apiVersion"),
            own("kind"),
            of_metadata("namespace"),
            of_metadata("name"),
        ]
    };
    identity(object) == identity(other)
}

/// The node with [`MASK`] for everything that the other has not.
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
