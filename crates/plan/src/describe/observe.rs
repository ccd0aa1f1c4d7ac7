//! Triggers of passes as plain values.

use super::{leaf, list, map};
use crate::{
    ObservePlan,
    observe::{Changes, EventPlan, KeyPlan, WatchPlan},
};
use orkestra_object::value::{Node, Path};

pub(crate) fn observe(plan: &ObservePlan) -> Node {
    let ObservePlan { watches, events } = plan;
    map([
        ("watch", list(watches.iter().map(watch))),
        (
            "events",
            map(events.iter().map(|entry| (&*entry.name, event(entry)))),
        ),
    ])
}

fn watch(plan: &WatchPlan) -> Node {
    let WatchPlan {
        path: _,
        kind,
        namespace,
        name,
        on,
        key,
        reads,
    } = plan;
    let of = format!("{} {}", kind.api_version(), kind.kind);
    let named = [("namespace", namespace), ("name", name)];
    let named = named
        .into_iter()
        .filter_map(|(field, text)| Some((field, Node::from(&**text.as_ref()?))));
    let always = [
        ("kind", Node::from(of)),
        ("on", changes(*on)),
        ("key", self::key(key)),
    ];
    let text = |path: &Path| Node::from(path.to_string());
    let reads = (!reads.is_empty()).then(|| ("reads", list(reads.iter().map(text))));
    map(always.into_iter().chain(named).chain(reads))
}

fn event(plan: &EventPlan) -> Node {
    let EventPlan {
        path: _,
        name: _,
        filter,
        on,
        key,
        reads,
    } = plan;
    let text = |path: &Path| Node::from(path.to_string());
    let filter = filter
        .iter()
        .map(|(path, wanted)| Node::from(format!("{path}={wanted}")));
    map([
        ("filter", list(filter)),
        ("on", changes(*on)),
        ("key", self::key(key)),
        ("reads", list(reads.iter().map(text))),
    ])
}

fn changes(on: Changes) -> Node {
    let Changes {
        create,
        update,
        delete,
    } = on;
    let words = [(create, "create"), (update, "update"), (delete, "delete")];
    let words = words.into_iter().filter(|(counts, _)| *counts);
    list(words.map(|(_, word)| Node::from(word)))
}

fn key(key: &KeyPlan) -> Node {
    match key {
        KeyPlan::Owner => Node::from("owner"),
        KeyPlan::About => Node::from("about"),
        KeyPlan::Service => Node::from("service"),
        KeyPlan::Label(label) => map([("label", Node::from(&**label))]),
        KeyPlan::Name { name, namespace } => {
            let namespace = namespace.as_ref().map(|text| ("namespace", leaf(text)));
            map([("name", leaf(name))].into_iter().chain(namespace))
        }
    }
}
