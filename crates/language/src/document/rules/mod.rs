//! Rules that a schema cannot express.

mod sources;

use std::sync::LazyLock;

use jiff::civil::Date;

use crate::api::info::Info;
use crate::api::lifecycle::{Deprecation, Timeline};
use crate::api::shape::Shape;
use crate::api::{CrdEntry, KatalogSpec, MotifSpec, Notes, Profiles, names};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::{Tree, TreeKey};

pub(crate) use sources::check_sources;

static ENTRY_FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| match Shape::of::<CrdEntry>() {
    Shape::Object(object) => object.fields.keys().cloned().collect(),
    _ => Vec::new(),
});

/// Detects fields with too little indentation, as in a sample whose indentation was lost. No other problem is worth
/// reporting then.
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
        // No operator's name contains capitals.
        let is_field = key.name.contains(|c: char| c.is_ascii_uppercase());
        let is_value = !entry.is_null() && (has_bare || is_field || entry.as_map().is_none());
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

fn key_of<'a>(tree: &'a Tree, name: &str) -> Option<&'a TreeKey> {
    let entries = tree.as_map()?;
    entries
        .iter()
        .map(|(key, _)| key)
        .find(|key| key.name == name)
}

/// Checks the document's own name.
pub(crate) fn check_metadata(root: &Tree, found: &mut Diagnostics) {
    for name in ["name", "namespace"] {
        let text = root.below(&["metadata", name]).and_then(Tree::as_str);
        let check = names::check_dns1123_subdomain;
        if let Some(text) = text
            && let Err(why) = check(text)
        {
            let path = FieldPath::root().field("metadata").field(name);
            let mut error = Diagnostic::error(Code::BadName, path, why);
            error.hint = names::instead(text, check);
            found.push(error);
        }
    }
}

/// Checks the information that a document declares about itself.
fn check_info(info: Option<&Info>, path: &FieldPath, found: &mut Diagnostics) {
    let deprecation = info.and_then(|info| info.deprecation.as_ref());
    check_deprecation(deprecation, &path.field("info"), found);
}

/// Checks the message and the dates of a deprecation.
fn check_deprecation(deprecation: Option<&Deprecation>, path: &FieldPath, found: &mut Diagnostics) {
    let Some(deprecation) = deprecation else {
        return;
    };
    let path = path.field("deprecation");
    if deprecation.message.trim().is_empty() {
        let at = path.field("message");
        found.push(Diagnostic::error(Code::Empty, at, "`message` is empty"));
    }
    let Some(Timeline { from, to }) = &deprecation.timeline else {
        return;
    };
    let path = path.field("timeline");
    let mut day = |name: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        let day = text
            .parse::<Date>()
            .ok()
            .filter(|day| day.to_string() == *text);
        if day.is_none() {
            let message = format!("`{text}` is not a date");
            let error = Diagnostic::error(Code::WrongShape, path.field(name), message);
            found.push(error.hint("write year, month and day, as in 2026-03-31"));
        }
        day
    };
    let (from, to) = (day("from", from), day("to", to));
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        let message = "`to` must be later than `from`";
        found.push(Diagnostic::error(
            Code::OutOfRange,
            path.field("to"),
            message,
        ));
    }
}

/// Checks the names of a Katalog's operators.
pub(crate) fn check_operator_names(root: &Tree, found: &mut Diagnostics) {
    let path = FieldPath::root().field("spec");
    // With sources, the operators may be theirs.
    let lacks = |spec: &Tree| {
        let has_none = |field| spec.get(field).is_none_or(Tree::is_null);
        spec.as_map().is_some() && has_none("crds") && has_none("sources")
    };
    // An unknown field next to it is probably a misspelling of it.
    let stands_in = |problem: &Diagnostic| {
        problem.code == Code::UnknownField && problem.path.parent().as_ref() == Some(&path)
    };
    if root.get("spec").is_some_and(lacks) && !found.iter().any(stands_in) {
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
        // A label of the children contains it, too.
        let check: fn(&str) -> Result<(), String> = |name| {
            names::check_dns1123_subdomain(name).and_then(|()| names::check_label_value(name))
        };
        if let Err(why) = check(&key.name) {
            let at = path.field("crds").field(&key.name);
            let mut error = Diagnostic::error(Code::BadName, at, why).at(key.span);
            error.hint = names::instead(&key.name, check);
            found.push(error);
        }
    }
}

/// Checks the values in a Motif.
pub(crate) fn check_motif(spec: &MotifSpec, found: &mut Diagnostics) {
    let path = FieldPath::root().field("spec");
    check_info(spec.info.as_ref(), &path, found);
    let inputs = path.field("inputs");
    let names = spec.inputs.iter().map(|input| input.name.as_str());
    check_list(names, &inputs, true, found);
    for (index, input) in spec.inputs.iter().enumerate() {
        if input.required == Some(true) && input.default.is_some() {
            let message = "a required input cannot have a `default`";
            let at = inputs.index(index).field("default");
            let error = Diagnostic::error(Code::Exclusive, at, message);
            found.push(error.hint("leave out one of the two"));
        }
    }
    check_shared(spec.notes.as_ref(), spec.profiles.as_ref(), &path, found);
}

/// Checks the names of notes and profiles.
fn check_shared(
    notes: Option<&Notes>,
    profiles: Option<&Profiles>,
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    if let Some(notes) = notes {
        let at = path.field("notes");
        let at = notes.keys().iter().fold(at, |at, key| at.field(key));
        let names = notes.functions().iter().map(|note| note.name.as_str());
        check_list(names, &at, true, found);
    }
    if let Some(profiles) = profiles {
        let at = path.field("profiles");
        for (class, names) in profiles.names() {
            check_list(names.into_iter(), &at.field(class), false, found);
        }
    }
}

/// Checks the names of a list's items: unique, and words that templates can call where required.
fn check_list<'a>(
    names: impl Iterator<Item = &'a str>,
    path: &FieldPath,
    are_words: bool,
    found: &mut Diagnostics,
) {
    let mut seen: Vec<String> = Vec::new();
    for (index, name) in names.enumerate() {
        let at = path.index(index).field("name");
        if name.trim().is_empty() {
            found.push(Diagnostic::error(Code::Empty, at, "`name` is empty"));
            continue;
        }
        let is_word = !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if are_words && !is_word {
            let message = format!("`{name}` is not a valid name in templates");
            let error = Diagnostic::error(Code::NoteName, at.clone(), message);
            found.push(error.hint("a letter, then letters, digits and `_`"));
        }
        // Only the names of profiles ignore case.
        let key = if are_words {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        if seen.contains(&key) {
            let message = format!("`{name}` is declared twice");
            found.push(Diagnostic::error(Code::SetTwice, at, message));
        }
        seen.push(key);
    }
}

/// Checks the values in a Katalog.
pub(crate) fn check_katalog(spec: &KatalogSpec, found: &mut Diagnostics) {
    let path = FieldPath::root().field("spec");
    check_info(spec.info.as_ref(), &path, found);
    let lifecycle = spec.lifecycle.as_ref();
    let deprecation = lifecycle.and_then(|one| one.deprecation.as_ref());
    check_deprecation(deprecation, &path.field("lifecycle"), found);
    check_shared(spec.notes.as_ref(), spec.profiles.as_ref(), &path, found);
    check_sources(spec.sources.as_ref(), &path.field("sources"), found);
    let crds = path.field("crds");
    for (name, entry) in &spec.crds {
        let path = crds.field(name);
        if let Some(api_types) = &entry.api_types {
            let path = path.field("apiTypes");
            let fields = [
                ("version", &api_types.version),
                ("kind", &api_types.kind),
                ("plural", &api_types.plural),
            ];
            let is_empty =
                |text: &Option<String>| text.as_deref().is_some_and(|t| t.trim().is_empty());
            for (name, _) in fields.iter().filter(|(_, text)| is_empty(text)) {
                found.push(Diagnostic::error(
                    Code::Empty,
                    path.field(name),
                    format!("`{name}` is empty"),
                ));
            }
        }
    }
}
