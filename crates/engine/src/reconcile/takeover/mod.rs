//! Fields that stand in the way of a refused apply.
//!
//! A server-side apply leaves what other managers wrote. The API server may refuse the result: a Service whose port another client
//! changed from 80 to 81 gets both, and two ports without a name are invalid. What is declared takes precedence over an update, so
//! such fields are moved in `managedFields` from the update to the apply of the operator. The next apply does not contain them, so
//! the API server removes them and adds what is declared, in one write.
//!
//! ```text
//!  422 spec.ports[1].name ─► live object, not rendered, no manager applies it, named by the 422 ─► managedFields: Update ─► our Apply
//! ```
//!
//! Fields that another manager applies stay, and so do fields that the API server does not name.
//!
//! One file: the search, the choice and the move share the steps of `managedFields` as written.

use std::collections::BTreeSet;

use super::{
    owned::{Element, OwnValues, PathElement},
    refused::validation_steps,
};
use orkestra_object::value::{Key, Map, Node};

/// The values that [`OwnValues`] replaces in shared sets: none here.
const NO_OWN: OwnValues<'_> = OwnValues {
    name: "",
    owner: None,
};

/// A field that the API server named when it refused an apply.
#[derive(Clone, Copy, Debug)]
pub struct RefusedField<'a> {
    /// Its path, as validation writes it: `spec.ports[1].name`, `data[key]`.
    pub path: &'a str,
    /// Whether it may be refused because of another field beside it: two that exclude each other.
    pub may_exclude: bool,
}

/// The fields to take over before the apply is sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// The new `metadata.managedFields` of the object.
    pub managed_fields: Node,
    /// The fields.
    pub fields: Vec<TakenField>,
}

/// A field that an apply removes because what is declared is refused beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenField {
    /// The field: `spec.ports[port=81,protocol=TCP]`.
    pub path: String,
    /// The managers that set it by update; none if the API server did.
    pub managers: Vec<String>,
}

/// Returns the fields of `live` that keep the API server from taking `rendered`, and how to take them over; none if there are none.
///
/// `manager` is the field manager of the apply; `refused` are the fields that the API server named.
pub fn takeover(
    live: &Node,
    rendered: &Node,
    manager: &str,
    refused: &[RefusedField<'_>],
) -> Option<Takeover> {
    let version = rendered.get("apiVersion")?.as_str()?;
    let mut entries: Vec<Entry> = live
        .meta("managedFields")?
        .as_list()?
        .iter()
        .map(|node| Entry::read(node, manager, version))
        .collect();
    let sets = Sets::of(&entries);
    let mut found = Vec::new();
    search(live, Some(rendered), &sets, &mut Vec::new(), &mut found);
    let causes: Vec<Cause<'_>> = refused.iter().map(Cause::read).collect();
    let chosen = choose(found, &causes);
    if chosen.is_empty() {
        return None;
    }
    if !entries.iter().any(|entry| entry.side == Side::Ours) {
        entries.push(Entry::new(manager, version));
    }
    let fields = chosen
        .iter()
        .map(|trail| take(&mut entries, trail))
        .collect();
    let left = entries.into_iter().filter_map(Entry::into_node);
    Some(Takeover {
        managed_fields: Node::List(left.collect()),
        fields,
    })
}

/// Whose entry of `managedFields` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Our apply.
    Ours,
    /// An update of the object in the version that we apply: its fields can be taken over.
    Update,
    /// Another apply, an update of a subresource or in another version: its fields stay.
    Kept,
}

/// An entry of `managedFields`.
struct Entry {
    side: Side,
    manager: String,
    /// The entry without its fields.
    rest: Map,
    fields: Node,
}

impl Entry {
    fn read(node: &Node, manager: &str, version: &str) -> Self {
        let text = |field| node.get(field).and_then(Node::as_str).unwrap_or_default();
        let is_whole = text("subresource").is_empty() && text("apiVersion") == version;
        let side = match text("operation") {
            "Apply" if is_whole && text("manager") == manager => Side::Ours,
            "Update" if is_whole => Side::Update,
            _ => Side::Kept,
        };
        let mut rest = node.as_map().cloned().unwrap_or_default();
        let fields = rest.remove("fieldsV1").unwrap_or_default();
        Self {
            side,
            manager: text("manager").to_owned(),
            rest,
            fields,
        }
    }

    fn new(manager: &str, version: &str) -> Self {
        let rest = [
            ("manager", manager),
            ("operation", "Apply"),
            ("apiVersion", version),
            ("fieldsType", "FieldsV1"),
        ];
        Self {
            side: Side::Ours,
            manager: manager.to_owned(),
            rest: rest
                .into_iter()
                .map(|(key, value)| (Key::new(key), Node::from(value)))
                .collect(),
            fields: Node::Map(Map::default()),
        }
    }

    /// Returns the entry; none if it has no fields left.
    fn into_node(self) -> Option<Node> {
        let Self {
            mut rest, fields, ..
        } = self;
        if fields.as_map().is_some_and(Map::is_empty) {
            return None;
        }
        if fields != Node::Null {
            rest.insert(Key::new("fieldsV1"), fields);
        }
        Some(Node::Map(rest))
    }
}

/// The sets of fields of all managers, from one path on.
struct Sets<'n> {
    all: Vec<(Side, &'n Node)>,
}

impl<'n> Sets<'n> {
    fn of(entries: &'n [Entry]) -> Self {
        let all = entries.iter().map(|entry| (entry.side, &entry.fields));
        Self { all: all.collect() }
    }

    /// Returns the sets below a step, `f:…` or `k:…` as written.
    fn below(&self, step: &str) -> Self {
        let below = self.all.iter();
        let below = below.filter_map(|(side, set)| Some((*side, set.get(step)?)));
        Self {
            all: below.collect(),
        }
    }

    fn has(&self, side: Side) -> bool {
        self.all.iter().any(|(of, _)| *of == side)
    }

    /// True if a manager owns the value as a whole.
    fn is_whole(&self) -> bool {
        let is_leaf = |set: &Node| set.as_map().is_some_and(Map::is_empty);
        self.all.iter().any(|(_, set)| is_leaf(set))
    }

    /// Returns the steps to list items that the sets contain, as written.
    fn items(&self) -> BTreeSet<&'n Key> {
        let sets = self.all.iter().filter_map(|(_, set)| set.as_map());
        let names = sets.flat_map(Map::keys);
        names
            .filter(|name| name.starts_with("k:") || name.starts_with("v:"))
            .collect()
    }
}

/// A field that exists and is not rendered, and that no other manager applies.
struct Found {
    trail: Vec<Key>,
    /// Whether an update set it.
    updated: bool,
}

/// Collects the fields of `live` that are not rendered and that no other manager applies, each with everything below it.
fn search(
    live: &Node,
    rendered: Option<&Node>,
    sets: &Sets<'_>,
    trail: &mut Vec<Key>,
    found: &mut Vec<Found>,
) {
    match live {
        Node::Map(map) => {
            for (key, child) in map.iter() {
                if is_of_the_server(trail, key) {
                    continue;
                }
                let below = rendered.and_then(|node| node.get(key));
                let below = below.filter(|node| **node != Node::Null);
                let step = Key::from(format!("f:{}", &**key));
                visit(child, below, &sets.below(&step), (trail, step), found);
            }
        }
        Node::List(items) => {
            for step in sets.items() {
                let Some(element) = Element::read(step, NO_OWN) else {
                    continue;
                };
                let is_it = |item: &&Node| element.matches(PathElement::Item(0, item), NO_OWN);
                let in_list = |list: &[Node]| list.iter().position(|item| is_it(&item));
                let Some(at) = in_list(items) else { continue };
                let wanted = rendered.and_then(Node::as_list);
                let below = wanted.and_then(|list| list.get(in_list(list)?));
                let step = step.clone();
                visit(&items[at], below, &sets.below(&step), (trail, step), found);
            }
        }
        _ => {}
    }
}

/// True for the identity of an object, its status, and metadata that no client writes.
fn is_of_the_server(trail: &[Key], key: &str) -> bool {
    match trail {
        [] => matches!(key, "apiVersion" | "kind" | "status"),
        [root] if &**root == "f:metadata" => !matches!(
            key,
            "annotations" | "finalizers" | "labels" | "ownerReferences"
        ),
        _ => false,
    }
}

fn visit(
    live: &Node,
    rendered: Option<&Node>,
    sets: &Sets<'_>,
    (trail, step): (&mut Vec<Key>, Key),
    found: &mut Vec<Found>,
) {
    trail.push(step);
    if rendered.is_none() && !sets.has(Side::Kept) {
        found.push(Found {
            trail: trail.clone(),
            updated: sets.has(Side::Update),
        });
    } else if !sets.is_whole() {
        search(live, rendered, sets, trail, found);
    }
    trail.pop();
}

/// A field that the API server named, in steps; `None` is a list item or a key of a map.
struct Cause<'a> {
    steps: Vec<Option<&'a str>>,
    may_exclude: bool,
}

impl<'a> Cause<'a> {
    fn read(refused: &RefusedField<'a>) -> Self {
        Self {
            steps: validation_steps(refused.path),
            may_exclude: refused.may_exclude,
        }
    }

    /// Returns how close a field is to the cause, the closest first; none if they have nothing to do with each other.
    fn distance(&self, field: &Found) -> Option<(u8, usize)> {
        let (trail, steps) = (&field.trail, &self.steps);
        let common = trail
            .iter()
            .zip(steps)
            .take_while(|(step, named)| is_named(step, **named))
            .count();
        if common == trail.len() {
            // The field itself is named, or a part of it. A deep part may belong to another item of the list: positions in a
            // refused object are unknown. If it is wrong by itself, it is not of this item, which was accepted before.
            let depth = steps.len() - common;
            let is_certain = depth <= 1 || steps[..common].iter().all(Option::is_some);
            (is_certain || self.may_exclude).then_some((if depth > 1 { 3 } else { 0 }, depth))
        } else if !field.updated || steps.is_empty() {
            None
        } else if common == steps.len() {
            Some((1, 0))
        } else {
            let are_siblings = trail.len() == steps.len() && common + 1 == steps.len();
            (self.may_exclude && are_siblings).then_some((2, 0))
        }
    }
}

/// True if a step of `managedFields` may be the step that a cause names.
fn is_named(step: &str, named: Option<&str>) -> bool {
    match named {
        Some(name) => step.strip_prefix("f:") == Some(name),
        None => true,
    }
}

/// Returns the fields closest to each cause.
fn choose(found: Vec<Found>, causes: &[Cause<'_>]) -> Vec<Vec<Key>> {
    let nearest: Vec<Option<(u8, usize)>> = causes
        .iter()
        .map(|cause| found.iter().filter_map(|field| cause.distance(field)).min())
        .collect();
    let is_chosen = |field: &Found| {
        let mut pairs = causes.iter().zip(&nearest);
        pairs.any(|(cause, nearest)| nearest.is_some() && cause.distance(field) == *nearest)
    };
    found
        .into_iter()
        .filter(is_chosen)
        .map(|field| field.trail)
        .collect()
}

/// Moves a field from the updates to our apply.
fn take(entries: &mut [Entry], trail: &[Key]) -> TakenField {
    let mut taken = Node::Map(Map::default());
    let mut managers = Vec::new();
    for entry in entries.iter_mut() {
        if entry.side == Side::Update
            && let Some(set) = cut(&mut entry.fields, trail)
        {
            managers.push(entry.manager.clone());
            merge(&mut taken, set);
        }
    }
    for entry in entries.iter_mut() {
        if entry.side == Side::Ours {
            let mut place = &mut entry.fields;
            for step in trail {
                if !matches!(place, Node::Map(_)) {
                    *place = Node::Map(Map::default());
                }
                let Node::Map(map) = place else { break };
                place = map.entry(step);
            }
            merge(place, std::mem::take(&mut taken));
        }
    }
    managers.sort();
    managers.dedup();
    TakenField {
        path: described(trail),
        managers,
    }
}

/// Removes a field from a set, with the parents that become empty. Returns the set below it; none if it is not in the set.
fn cut(set: &mut Node, trail: &[Key]) -> Option<Node> {
    let Node::Map(map) = set else {
        return None;
    };
    let (step, rest) = trail.split_first()?;
    if rest.is_empty() {
        return map.remove(step);
    }
    let below = map.get_mut(step)?;
    let taken = cut(below, rest)?;
    if below.as_map().is_some_and(Map::is_empty) {
        map.remove(step);
    }
    Some(taken)
}

/// Adds the fields of one set to another.
fn merge(into: &mut Node, set: Node) {
    if !matches!(into, Node::Map(_)) {
        *into = Node::Map(Map::default());
    }
    let (Node::Map(into), Node::Map(set)) = (into, set) else {
        return;
    };
    for (step, below) in set {
        merge(into.entry(&step), below);
    }
}

/// Returns the path for messages.
fn described(trail: &[Key]) -> String {
    let mut text = String::new();
    for step in trail {
        match step.split_once(':') {
            Some(("f", name)) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Some(("k", keys)) => {
                let keys: Node = serde_json::from_str(keys).unwrap_or_default();
                let keys = keys.as_map().into_iter().flat_map(Map::iter);
                let keys: Vec<String> = keys
                    .map(|(key, value)| format!("{}={}", &**key, value.to_text()))
                    .collect();
                text.extend(["[", &keys.join(","), "]"]);
            }
            Some((_, value)) => text.extend(["[=", value, "]"]),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
