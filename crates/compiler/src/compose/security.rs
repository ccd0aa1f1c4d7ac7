//! `security` of sources: each of them can add protection, and none can take away that of another.
//!
//! What concerns the installation (`serviceName`, `gatewayEndpoint`) is declared by the outermost composition: in a source it has
//! no effect.

use orkestra_language::tree::{Tree, TreeKey, TreeValue};

/// The blocks that protect while they are there, unless they say otherwise.
const BLOCKS: [&str; 2] = ["deletionProtection", "namespaceProtection"];
const WEBHOOKS: &str = "webhooks";
const CONVERSION: &str = "conversion";
/// The lists of namespaces, which are mutually exclusive.
const RESTRICTED: &str = "restrictedNamespaces";
const ALLOWED: &str = "allowedNamespaces";

/// How strict a value is; that of an absent one is the default.
type Rank = fn(Option<&Tree>) -> u8;

/// Adds the protection that a source declares, or by default has, to that of earlier ones.
pub(crate) fn tighten(known: &mut Tree, declared: Option<&Tree>) {
    let block = |name: &str| {
        let block = declared.and_then(|declared| declared.get(name));
        block.filter(|block| block.as_map().is_some()).cloned()
    };
    for name in BLOCKS {
        let Some(mut block) = block(name) else {
            continue;
        };
        if block
            .take(&["enabled"])
            .is_some_and(|(_, value)| !is_true(Some(&value)))
        {
            continue;
        }
        set(&mut block, "enabled", Tree::new(TreeValue::Bool(true)));
        match known.get_mut(name) {
            None => set(known, name, block),
            Some(known) => {
                stricter(known, &block, "strictMode", on);
                stricter(known, &block, "failurePolicy", fails);
                stricter(known, &block, "cleanupOnShutdown", off);
                namespaces(known, &block);
            }
        }
    }
    let mut webhooks = block(WEBHOOKS).unwrap_or_else(empty);
    webhooks.take(&["serviceName"]);
    match known.get_mut(WEBHOOKS) {
        None => set(known, WEBHOOKS, webhooks),
        Some(known) => {
            stricter(known, &webhooks, "failurePolicy", fails);
            stricter(known, &webhooks, "cleanupOnShutdown", off);
            stricter(known, &webhooks, "admission", enabled);
        }
    }
    let conversion = block(CONVERSION).unwrap_or_else(empty);
    match known.get_mut(CONVERSION) {
        None => set(known, CONVERSION, conversion),
        Some(known) => stricter(known, &conversion, "enabled", on_or_default),
    }
}

/// Removes the blocks that declare nothing; `None` if nothing is left.
pub(crate) fn without_empty(mut security: Tree) -> Option<Tree> {
    let is_empty = |tree: &Tree| tree.as_map().is_some_and(<[_]>::is_empty);
    for name in [WEBHOOKS, CONVERSION] {
        if security.get(name).is_some_and(is_empty) {
            security.take(&[name]);
        }
    }
    (!is_empty(&security)).then_some(security)
}

/// Takes the value of a field from `added` if it is stricter.
fn stricter(known: &mut Tree, added: &Tree, field: &str, rank: Rank) {
    if rank(added.get(field)) <= rank(known.get(field)) {
        return;
    }
    known.take(&[field]);
    if let Some(value) = added.get(field) {
        set(known, field, value.clone());
    }
}

/// Combines lists of namespaces, so that no namespace becomes a permitted one.
fn namespaces(known: &mut Tree, added: &Tree) {
    let names = |tree: &Tree, field: &str| -> Vec<String> {
        let list = tree.get(field).map(|list| &list.value);
        let Some(TreeValue::List(items)) = list else {
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let mut restricted = names(known, RESTRICTED);
    for name in names(added, RESTRICTED) {
        if !restricted.contains(&name) {
            restricted.push(name);
        }
    }
    let (before, after) = (names(known, ALLOWED), names(added, ALLOWED));
    let both = match (before.is_empty(), after.is_empty()) {
        (true, _) => after.clone(),
        (_, true) => before.clone(),
        _ => before
            .iter()
            .filter(|name| after.contains(name))
            .cloned()
            .collect(),
    };
    let allowed: Vec<String> = both
        .into_iter()
        .filter(|name| !restricted.contains(name))
        .collect();
    known.take(&[RESTRICTED]);
    known.take(&[ALLOWED]);
    let is_limited = !before.is_empty() || !after.is_empty();
    if !is_limited {
        set_names(known, RESTRICTED, restricted);
    } else if !allowed.is_empty() {
        set_names(known, ALLOWED, allowed);
    } else {
        // No namespace suits both. With an empty list all would be permitted, with both lists the Katalog is refused.
        let all: Vec<String> = before.into_iter().chain(after).collect();
        if restricted.is_empty() {
            restricted.clone_from(&all);
        }
        set_names(known, RESTRICTED, restricted);
        set_names(known, ALLOWED, all);
    }
}

fn set_names(tree: &mut Tree, field: &str, names: Vec<String>) {
    if !names.is_empty() {
        let items = names
            .into_iter()
            .map(|name| Tree::new(TreeValue::Str(name)));
        set(tree, field, Tree::new(TreeValue::List(items.collect())));
    }
}

fn set(tree: &mut Tree, name: &str, value: Tree) {
    if let Some(fields) = tree.as_map_mut() {
        fields.push((TreeKey::new(name), value));
    }
}

fn empty() -> Tree {
    Tree::map(Vec::new())
}

fn is_true(value: Option<&Tree>) -> bool {
    matches!(value.map(|value| &value.value), Some(TreeValue::Bool(true)))
}

/// `true` is stricter than the default.
fn on(value: Option<&Tree>) -> u8 {
    u8::from(is_true(value))
}

/// `true` is less strict than the default.
fn off(value: Option<&Tree>) -> u8 {
    u8::from(!is_true(value))
}

/// `Ignore` is less strict than the default.
fn fails(value: Option<&Tree>) -> u8 {
    u8::from(value.and_then(Tree::as_str) != Some("Ignore"))
}

/// `true` is stricter than the default of the installation, and `false` is less strict.
fn on_or_default(value: Option<&Tree>) -> u8 {
    match value {
        Some(value) if is_true(Some(value)) => 2,
        Some(value) if !value.is_null() => 0,
        _ => 1,
    }
}

/// The same for a block with `enabled`.
fn enabled(value: Option<&Tree>) -> u8 {
    on_or_default(value.and_then(|block| block.get("enabled")))
}
