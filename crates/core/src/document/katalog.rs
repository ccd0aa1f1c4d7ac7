//! One parsed document to a typed Katalog.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use super::check::check;
use super::normalise::normalise;
use super::rules;
use super::source::Source;
use super::tree::Tree;
use crate::api::katalog::KatalogShape;
use crate::api::names;
use crate::api::shape::Shape;
use crate::api::{KatalogSpec, Text};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, nearest};

/// The kind that this module reads.
const KIND: &str = "Katalog";
/// Further kinds of the language.
const LATER_KINDS: [&str; 4] = ["Komposer", "Motif", "E2E", "Simulate"];

static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<KatalogShape>);

/// A Katalog, read from a file or an object.
#[derive(Debug, Clone, PartialEq)]
pub struct KatalogDocument {
    /// Its name; without metadata, the name of the file or its folder.
    pub name: String,
    /// Its namespace, when it names one.
    pub namespace: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// What it declares.
    pub spec: KatalogSpec,
    /// The document in today's spelling, for positions: see [`Diagnostics::locate`].
    pub tree: Tree,
    /// The file it came from.
    pub file: Option<String>,
}

/// Reads a Katalog, with warnings.
///
/// # Errors
/// Every problem of the document, each with its path, and its position when it came from a file:
/// envelope, unknown fields with the nearest known one, wrong shapes, missing fields, fields that are
/// not supported yet. Warnings are among them.
pub fn read_katalog(source: &Source) -> Result<(KatalogDocument, Vec<Diagnostic>), Diagnostics> {
    let (document, found) = read_what_can_be(source);
    let warnings = found.into_result()?;
    Ok((document.ok_or_else(Diagnostics::default)?, warnings))
}

/// Reads what can be read of a Katalog, whatever is wrong with the rest: for further checks, never to be run.
///
/// The problems are those of [`read_katalog`].
pub fn read_what_can_be(source: &Source) -> (Option<KatalogDocument>, Diagnostics) {
    let mut found = Diagnostics::default();
    let mut tree = source.tree.clone();
    let spec = read(&mut tree, &mut found);
    found.locate(&tree, source.file.as_deref());
    let metadata = tree.get("metadata");
    let text = |name| {
        metadata
            .and_then(|tree| tree.get(name))
            .and_then(Tree::as_str)
    };
    let document = spec.map(|spec| KatalogDocument {
        name: text("name").map_or_else(|| default_name(source.file.as_deref()), str::to_owned),
        namespace: text("namespace").map(str::to_owned),
        labels: texts(metadata, "labels"),
        annotations: texts(metadata, "annotations"),
        spec,
        file: source.file.clone(),
        tree: tree.clone(),
    });
    (document, found)
}

/// None when the document is no Katalog, or so wrong that its spec has no type.
fn read(tree: &mut Tree, found: &mut Diagnostics) -> Option<KatalogSpec> {
    if tree.as_map().is_none() {
        let message = format!("expected a {KIND}, found {}", tree.describe());
        found.push(Diagnostic::error(
            Code::WrongShape,
            FieldPath::root(),
            message,
        ));
        return None;
    }
    if !check_envelope(tree, found) {
        return None;
    }
    if rules::lost_indentation(tree, found) {
        return None;
    }
    normalise(tree, found);
    let checked = check(tree, &SHAPE, &FieldPath::root(), found);
    rules::check_names(tree, found);
    let spec = checked.get("spec").cloned().unwrap_or_default();
    match serde_json::from_value::<KatalogSpec>(spec) {
        Ok(spec) => {
            if !found.has_errors() {
                rules::check_spec(&spec, found);
            }
            Some(spec)
        }
        // What is wrong has been told, with its place.
        Err(_) if found.has_errors() => None,
        Err(error) => {
            found.push(Diagnostic::error(
                Code::WrongShape,
                FieldPath::root().field("spec"),
                error.to_string(),
            ));
            None
        }
    }
}

/// `apiVersion` and `kind`. False when the document is of another kind, and nothing more can be said.
fn check_envelope(tree: &Tree, found: &mut Diagnostics) -> bool {
    let path = |name| FieldPath::root().field(name);
    let span = |name| tree.get(name).and_then(|tree| tree.span);
    match tree.get("apiVersion").map(Tree::as_str) {
        Some(Some(names::API_VERSION)) => {}
        Some(Some(names::OLD_API_VERSION)) => found.push(
            Diagnostic::warning(
                Code::ApiVersion,
                path("apiVersion"),
                format!("`{}` is the old version", names::OLD_API_VERSION),
            )
            .hint(format!("write `{}`", names::API_VERSION))
            .at(span("apiVersion")),
        ),
        Some(other) => found.push(
            Diagnostic::error(
                Code::ApiVersion,
                path("apiVersion"),
                format!("`{}` is not known", other.unwrap_or_default()),
            )
            .hint(format!("write `{}`", names::API_VERSION))
            .at(span("apiVersion")),
        ),
        None => found.push(
            Diagnostic::error(
                Code::ApiVersion,
                FieldPath::root(),
                "`apiVersion` is missing",
            )
            .hint(format!("write `apiVersion: {}`", names::API_VERSION)),
        ),
    }
    let Some(kind) = tree.get("kind") else {
        let missing = Diagnostic::error(Code::DocumentKind, FieldPath::root(), "`kind` is missing");
        found.push(missing.hint(format!("write `kind: {KIND}`")));
        return true;
    };
    match kind.as_str() {
        Some(KIND) => true,
        Some(later) if LATER_KINDS.contains(&later) => {
            let message = format!("the kind `{later}` is not supported yet");
            found.push(Diagnostic::error(Code::DocumentKind, path("kind"), message));
            false
        }
        other => {
            let word = other.unwrap_or_default();
            let error = Diagnostic::error(
                Code::DocumentKind,
                path("kind"),
                format!("the kind `{word}` is not known"),
            );
            let near = nearest(word, LATER_KINDS.into_iter().chain([KIND])).unwrap_or(KIND);
            found.push(error.hint(format!("did you mean `{near}`?")));
            false
        }
    }
}

fn texts(metadata: Option<&Tree>, name: &str) -> BTreeMap<String, String> {
    let json = metadata.and_then(|tree| tree.get(name)).map(Tree::to_json);
    let texts: BTreeMap<String, Text> = json
        .and_then(|json| serde_json::from_value(json).ok())
        .unwrap_or_default();
    texts
        .into_iter()
        .map(|(key, text)| (key, text.to_string()))
        .collect()
}

/// The file's name without its ending; for `katalog.yaml` and standard input the folder's.
fn default_name(file: Option<&str>) -> String {
    let path = Path::new(file.unwrap_or_default());
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let folder = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let candidates = [stem.filter(|stem| !stem.eq_ignore_ascii_case(KIND)), folder];
    let legal = candidates.into_iter().flatten().map(to_name);
    legal
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "katalog".to_owned())
}

fn to_name(text: &str) -> String {
    let lower = text.to_lowercase();
    let legal = lower.replace(
        |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()),
        "-",
    );
    legal.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_a_name_is_called_after_its_file() {
        for (file, name) in [
            (Some("ponds/Frog Pond.yaml"), "frog-pond"),
            (Some("ponds/katalog.yaml"), "ponds"),
            (Some("katalog.yaml"), "katalog"),
            (Some("\u{1f438}.yaml"), "katalog"),
            (None, "katalog"),
        ] {
            assert_eq!(default_name(file), name, "{file:?}");
        }
    }
}
