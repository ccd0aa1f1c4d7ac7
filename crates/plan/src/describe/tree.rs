//! Objects with expressions at their leaves, as plain values.

use super::{list, map};
use crate::{Coerce, Leaf, ObjectTree, OwnerPart};
use orkestra_object::value::{Key, Node};
use orkestra_template::Template;

/// Describes a tree. A value that is not fixed is a map with one key that starts with `$`; user keys that start with `$`
/// get another `$` in front.
pub fn tree(of: &ObjectTree) -> Node {
    match of {
        ObjectTree::Fixed(node) => fixed(node),
        ObjectTree::Leaf(value) => leaf(value),
        ObjectTree::Map(entries) => entries_of(entries),
        ObjectTree::Part(entries) => {
            let needed = entries
                .first()
                .map(|(key, _)| Node::from(&**key))
                .unwrap_or_default();
            map([("$part", entries_of(entries)), ("$needs", needed)])
        }
        ObjectTree::List(items) => list(items.iter().map(tree)),
        ObjectTree::Joined(parts) => map([("$joined", list(parts.iter().map(tree)))]),
        ObjectTree::Image(parts) => map([("$image", leaf(&parts.0)), ("$tag", leaf(&parts.1))]),
        ObjectTree::Patched(parts) => {
            map([("$object", tree(&parts.0)), ("$patch", tree(&parts.1))])
        }
        ObjectTree::Chosen(chosen) => {
            let options = chosen.options.iter();
            let options = options.map(|(name, option)| {
                let option = option.as_ref().map(tree).unwrap_or_default();
                (Key::from(&**name), option)
            });
            map([
                ("$profile", leaf(&chosen.name)),
                ("$of", Node::Map(options.collect())),
            ])
        }
        ObjectTree::ContainerName(name) => map([("$containerName", leaf(name))]),
        ObjectTree::Owner(OwnerPart::Kind) => map([("$owner", Node::from("kind"))]),
        ObjectTree::Owner(OwnerPart::Name) => map([("$owner", Node::from("name"))]),
        ObjectTree::Workload(workload) => map([
            ("$workload", Node::from(workload.0.to_string())),
            ("$name", leaf(&workload.1)),
        ]),
    }
}

fn entries_of(entries: &[(Key, ObjectTree)]) -> Node {
    Node::Map(
        entries
            .iter()
            .map(|(key, value)| (escaped(key), tree(value)))
            .collect(),
    )
}

fn fixed(node: &Node) -> Node {
    match node {
        Node::Map(entries) => Node::Map(
            entries
                .iter()
                .map(|(key, value)| (escaped(key), fixed(value)))
                .collect(),
        ),
        Node::List(items) => list(items.iter().map(fixed)),
        other => other.clone(),
    }
}

fn escaped(key: &Key) -> Key {
    if key.starts_with('$') {
        Key::from(format!("${key}"))
    } else {
        key.clone()
    }
}

pub(crate) fn coerced(coerce: Coerce) -> &'static str {
    match coerce {
        Coerce::Native => "$native",
        Coerce::Text => "$text",
        Coerce::AsText => "$asText",
        Coerce::OptionalText => "$optionalText",
        Coerce::Int => "$int",
        Coerce::Port => "$port",
        Coerce::Float => "$float",
        Coerce::Bool => "$bool",
        Coerce::IntOrText => "$intOrText",
        Coerce::Base64 => "$base64",
        Coerce::Auto => "$auto",
        Coerce::Word(_) => "$word",
        Coerce::Whole(whole) => whole.key(),
    }
}

pub(crate) fn leaf(leaf: &Leaf) -> Node {
    of_template(coerced(leaf.coerce), &leaf.template)
}

/// Describes the source, and a hash of the user's notes that it calls.
pub(crate) fn of_template(key: &str, template: &Template) -> Node {
    let notes = template
        .notes_hash()
        .map(|hash| ("$notes", Node::from(hash)));
    map([(key, Node::from(template.source()))]
        .into_iter()
        .chain(notes))
}
