//! Rules that a schema cannot say.

use std::sync::LazyLock;

use super::tree::{Key, Tree};
use crate::api::shape::Shape;
use crate::api::{CrdEntry, KatalogSpec, names};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

static ENTRY_FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| match Shape::of::<CrdEntry>() {
    Shape::Object(object) => object.fields.into_keys().collect(),
    _ => Vec::new(),
});

/// Whether fields stand too far left, as in a sample that lost its indentation on the way. Nothing else
/// is worth reporting then.
pub(crate) fn lost_indentation(root: &Tree, found: &mut Diagnostics) -> bool {
    let spec = root.get("spec");
    let beside =
        key_of(root, "crds").filter(|_| spec.is_none_or(|spec| spec.get("crds").is_none()));
    if let Some(key) = beside {
        let error = Diagnostic::error(
            Code::LostIndentation,
            FieldPath::root().field("crds"),
            "`crds` belongs under `spec`",
        );
        let hint = "the indentation is lost: write `crds` two spaces to the right of `spec`, each operator's name two further, and its fields two further";
        found.push(error.hint(hint).at(key.span));
        return true;
    }
    let crds = root
        .below(&["spec", "crds"])
        .and_then(Tree::as_map)
        .unwrap_or_default();
    let has_bare = crds.iter().any(|(_, entry)| entry.is_null());
    let stray = crds.iter().filter(|(key, entry)| {
        let is_value = !entry.is_null() && (has_bare || entry.as_map().is_none());
        is_value && ENTRY_FIELDS.contains(&key.name)
    });
    let before = found.0.len();
    for (key, _) in stray {
        let path = FieldPath::root()
            .field("spec")
            .field("crds")
            .field(&key.name);
        let error = Diagnostic::error(
            Code::LostIndentation,
            path,
            format!("`{}` belongs under an operator's name", key.name),
        );
        let hint =
            "the indentation is lost: write it two spaces to the right of the operator's name";
        found.push(error.hint(hint).at(key.span));
    }
    found.0.len() > before
}

fn key_of<'a>(tree: &'a Tree, name: &str) -> Option<&'a Key> {
    let entries = tree.as_map()?;
    entries
        .iter()
        .map(|(key, _)| key)
        .find(|key| key.name == name)
}

/// The Katalog's own name and those of its operators.
pub(crate) fn check_names(root: &Tree, found: &mut Diagnostics) {
    for name in ["name", "namespace"] {
        let text = root.below(&["metadata", name]).and_then(Tree::as_str);
        if let Some(Err(why)) = text.map(names::check_dns1123_subdomain) {
            found.push(Diagnostic::error(
                Code::BadName,
                FieldPath::root().field("metadata").field(name),
                why,
            ));
        }
    }
    let path = FieldPath::root().field("spec");
    if root
        .get("spec")
        .is_some_and(|spec| spec.as_map().is_some() && spec.get("crds").is_none_or(Tree::is_null))
    {
        found.push(Diagnostic::error(
            Code::Missing,
            path.clone(),
            "`crds` is missing",
        ));
    }
    let crds = root
        .below(&["spec", "crds"])
        .and_then(Tree::as_map)
        .unwrap_or_default();
    for (key, _) in crds {
        if key.name.is_empty() || names::check_label_value(&key.name).is_err() {
            let message = format!("`{}` is no name for an operator", key.name);
            let error =
                Diagnostic::error(Code::BadName, path.field("crds").field(&key.name), message);
            let hint =
                "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
            found.push(error.hint(hint).at(key.span));
        }
    }
}

/// What is refused for its value.
pub(crate) fn check_spec(spec: &KatalogSpec, found: &mut Diagnostics) {
    let crds = FieldPath::root().field("spec").field("crds");
    for (name, entry) in &spec.crds {
        let path = crds.field(name);
        if let Some(api_types) = &entry.api_types {
            let path = path.field("apiTypes");
            let fields = [
                ("version", &api_types.version),
                ("kind", &api_types.kind),
                ("plural", &api_types.plural),
            ];
            for (name, _) in fields.iter().filter(|(_, text)| text.trim().is_empty()) {
                found.push(Diagnostic::error(
                    Code::Empty,
                    path.field(name),
                    format!("`{name}` is empty"),
                ));
            }
        }
        let Some(operator_box) = &entry.operator_box else {
            continue;
        };
        let path = path.field("operatorBox");
        if operator_box.default == Some(false) {
            let error = Diagnostic::error(
                Code::CustomReconciler,
                path.field("default"),
                "reconcilers of your own are not supported",
            );
            found.push(error.hint("leave `default` out"));
        }
        if operator_box
            .finalizers
            .as_ref()
            .is_some_and(|list| !list.is_empty())
        {
            let error = Diagnostic::error(
                Code::Finalizers,
                path.field("finalizers"),
                "further `finalizers` are not supported yet",
            );
            found.push(error.hint("`[]` keeps ours off; leave it out otherwise"));
        }
    }
}
