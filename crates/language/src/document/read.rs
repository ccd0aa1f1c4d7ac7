//! Reads one parsed document into a typed one.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::check;
use super::kinds::{DocumentKind, Readable};
use super::source::Source;
use super::{normalise, rules};
use crate::api::shape::Shape;
use crate::api::simulate::OpRule;
use crate::api::{E2eSpec, KatalogSpec, KomposerSpec, MotifSpec, SimulateSpec, Text, names};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, nearest};
use crate::tree::Tree;

/// A document, read from a file or an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<S> {
    /// The name; without metadata, the name of the file or its folder.
    pub name: String,
    /// The namespace, if given.
    pub namespace: Option<String>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The contents.
    pub spec: S,
    /// The document in the present spelling, for positions: see [`Diagnostics::locate`].
    pub tree: Tree,
    /// The file.
    pub file: Option<String>,
}

/// A Katalog, read from a file or an object.
pub type KatalogDocument = Document<KatalogSpec>;
/// A Komposer, read from a file or an object.
pub type KomposerDocument = Document<KomposerSpec>;
/// A Simulate, read from a file. Blocks next to `spec` are part of it.
pub type SimulateDocument = Document<SimulateSpec>;
/// An E2E, read from a file. Blocks next to `spec` are part of it.
pub type E2eDocument = Document<E2eSpec>;
/// A Motif, read from a file or an object. Blocks next to `spec` are part of it.
pub type MotifDocument = Document<MotifSpec>;

/// Reads a Katalog, with warnings.
///
/// # Errors
/// Every problem of the document with its path, and its position if it is from a file: envelope, unknown fields with the
/// nearest known one, wrong shapes, missing fields, fields that are not supported yet. Warnings are included.
pub fn read_katalog(source: &Source) -> Result<(KatalogDocument, Vec<Diagnostic>), Diagnostics> {
    read_whole(source)
}

/// Reads a Komposer, with warnings. Overrides may be incomplete: the merge checks the result.
///
/// # Errors
/// The errors of [`read_katalog`].
pub fn read_komposer(source: &Source) -> Result<(KomposerDocument, Vec<Diagnostic>), Diagnostics> {
    read_whole(source)
}

/// Reads a Motif, with warnings.
///
/// # Errors
/// The errors of [`read_katalog`].
pub fn read_motif(source: &Source) -> Result<(MotifDocument, Vec<Diagnostic>), Diagnostics> {
    read_whole(source)
}

/// Reads a Simulate, with warnings.
///
/// # Errors
/// The errors of [`read_katalog`].
pub fn read_simulate(source: &Source) -> Result<(SimulateDocument, Vec<Diagnostic>), Diagnostics> {
    read_whole(source)
}

/// Reads a file of expected operations that a Simulate includes: a list under `ops`.
///
/// # Errors
/// Every problem of the file, as for a document.
pub fn read_ops(source: &Source) -> Result<(Vec<OpRule>, Vec<Diagnostic>), Diagnostics> {
    let (rules, tree, warnings) = read_included::<Vec<OpRule>>(source, "ops")?;
    let mut found = Diagnostics::default();
    super::simulate::check_ops(&rules, &FieldPath::root().field("ops"), true, &mut found);
    found.locate(&tree, source.file.as_deref());
    found.into_result()?;
    Ok((rules, warnings))
}

/// Reads a Katalog in the present spelling that was put together from others, without positions and without a check of
/// `dependsOn`, which may name operators of other parts.
pub fn read_present(tree: &Tree) -> (Option<KatalogSpec>, Diagnostics) {
    let mut found = Diagnostics::default();
    let checked = check(tree, KatalogSpec::shape(), &FieldPath::root(), &mut found);
    rules::check_operator_names(tree, &mut found);
    (typed(&checked, &mut found), found)
}

/// Reads the valid parts of a Katalog, regardless of other errors: for further checks, never to be run.
///
/// The problems are those of [`read_katalog`].
pub fn read_what_can_be(source: &Source) -> (Option<KatalogDocument>, Diagnostics) {
    read_partly(source)
}

/// Reads a part of a document from its own file, which has one key, `key`, and no envelope.
///
/// Returns the value, the tree that contains it, for positions, and warnings.
///
/// # Errors
/// Every problem of the file, as for a document.
pub fn read_included<T: JsonSchema + DeserializeOwned>(
    source: &Source,
    key: &str,
) -> Result<(T, Tree, Vec<Diagnostic>), Diagnostics> {
    let mut found = Diagnostics::default();
    let mut tree = source.tree.clone();
    let shape = Shape::map_of_one(key, Shape::of::<T>());
    normalise::included(&mut tree, key, &shape, &mut found);
    let mut checked = check(&tree, &shape, &FieldPath::root(), &mut found);
    found.locate(&tree, source.file.as_deref());
    found.cap();
    let warnings = found.into_result()?;
    let value = checked.get_mut(key).map(Value::take);
    let value = serde_json::from_value(value.unwrap_or_default()).map_err(mistyped)?;
    Ok((value, tree, warnings))
}

type Read<S> = Result<(Document<S>, Vec<Diagnostic>), Diagnostics>;

fn read_whole<S: Readable>(source: &Source) -> Read<S> {
    let (document, found) = read_partly(source);
    let warnings = found.into_result()?;
    Ok((document.ok_or_else(Diagnostics::default)?, warnings))
}

/// Reads the valid parts of a document, with all its problems.
pub fn read_partly<S: Readable>(source: &Source) -> (Option<Document<S>>, Diagnostics) {
    let mut found = Diagnostics::default();
    let mut tree = source.tree.clone();
    let spec = read::<S>(&mut tree, &mut found);
    found.locate(&tree, source.file.as_deref());
    found.cap();
    let metadata = tree.get("metadata");
    let text = |name| {
        metadata
            .and_then(|tree| tree.get(name))
            .and_then(Tree::as_str)
    };
    let file = source.file.as_deref();
    let document = spec.map(|spec| Document {
        name: text("name").map_or_else(|| default_name(file, S::KIND), str::to_owned),
        namespace: text("namespace").map(str::to_owned),
        labels: texts(metadata, "labels"),
        annotations: texts(metadata, "annotations"),
        spec,
        file: source.file.clone(),
        tree: tree.clone(),
    });
    (document, found)
}

/// Returns `None` if the document is of another kind, or its spec cannot be deserialized.
fn read<S: Readable>(tree: &mut Tree, found: &mut Diagnostics) -> Option<S> {
    if tree.as_map().is_none() {
        let message = format!("expected a {}, found {}", S::KIND.name(), tree.describe());
        found.push(Diagnostic::error(
            Code::WrongShape,
            FieldPath::root(),
            message,
        ));
        return None;
    }
    if !check_envelope(tree, S::KIND, found) {
        return None;
    }
    if rules::lost_indentation(tree, found) {
        return None;
    }
    S::normalise(tree, found);
    let checked = check(tree, S::shape(), &FieldPath::root(), found);
    rules::check_metadata(tree, found);
    S::check_tree(tree, found);
    typed(&checked, found)
}

/// Deserializes the `spec` of a checked document.
fn typed<S: Readable>(checked: &Value, found: &mut Diagnostics) -> Option<S> {
    let nothing = || Value::Object(serde_json::Map::new());
    let spec = checked.get("spec").cloned().unwrap_or_else(nothing);
    match serde_json::from_value::<S>(spec) {
        Ok(spec) => {
            if !found.has_errors() {
                spec.check(found);
            }
            Some(spec)
        }
        // The problem is reported already, with its position.
        Err(_) if found.has_errors() => None,
        Err(error) => {
            found.extend(mistyped(error));
            None
        }
    }
}

/// The shape and the type disagree. This is a bug in Orkestra, reported nevertheless.
#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn mistyped(error: serde_json::Error) -> Diagnostics {
    let path = FieldPath::root().field("spec");
    Diagnostic::error(Code::WrongShape, path, error.to_string()).into()
}

/// Checks `apiVersion` and `kind`. Returns false if the document is of another kind, so that no further check is possible.
fn check_envelope(tree: &Tree, wanted: DocumentKind, found: &mut Diagnostics) -> bool {
    check_version(tree, found);
    let path = FieldPath::root().field("kind");
    let Some(kind) = tree.get("kind") else {
        let missing = Diagnostic::error(Code::DocumentKind, FieldPath::root(), "`kind` is missing");
        found.push(missing.hint(format!("write `kind: {}`", wanted.name())));
        return true;
    };
    let word = kind.as_str().unwrap_or_default();
    let error = |message: String| Diagnostic::error(Code::DocumentKind, path.clone(), message);
    match DocumentKind::parse(word) {
        Some(kind) if kind == wanted => return true,
        Some(kind) => found.push(error(format!(
            "expected a {}, found a {}",
            wanted.name(),
            kind.name()
        ))),
        None => {
            let names = DocumentKind::ALL.map(DocumentKind::name);
            let hint = other_kind(word).map_or_else(
                || {
                    let near = nearest(word, names).unwrap_or(wanted.name());
                    format!("did you mean `{near}`?")
                },
                str::to_owned,
            );
            let error = error(format!("the kind `{word}` is not known"));
            found.push(error.hint(hint));
        }
    }
    false
}

/// Returns a hint for a document of another system.
fn other_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "ResourceGraphDefinition" => {
            "kro's graphs become an entry of `spec.crds` in a Katalog: see docs/learn/coming-from.md"
        }
        "CompositeController" | "DecoratorController" => {
            "Metacontroller's controllers become an entry of `spec.crds` in a Katalog: see docs/learn/coming-from.md"
        }
        "Composition" | "CompositeResourceDefinition" => {
            "Crossplane's compositions become an entry of `spec.crds` in a Katalog: see docs/learn/coming-from.md"
        }
        "HelmRelease" | "HelmChart" => {
            "a chart's templates become children in a Katalog: see docs/learn/coming-from.md"
        }
        "Deployment" | "StatefulSet" | "DaemonSet" | "Job" | "CronJob" | "Service" | "Ingress"
        | "ConfigMap" | "Secret" => {
            "declare it as a child in a Katalog, under `operatorBox.onReconcile` of an entry of `spec.crds`"
        }
        _ => return None,
    })
}

fn check_version(tree: &Tree, found: &mut Diagnostics) {
    let path = FieldPath::root().field("apiVersion");
    let span = tree.get("apiVersion").and_then(|tree| tree.span);
    let hint = format!("write `{}`", names::API_VERSION);
    match tree.get("apiVersion").map(Tree::as_str) {
        Some(Some(names::API_VERSION)) => {}
        Some(Some(names::OLD_API_VERSION)) => {
            let message = format!("`{}` is the old version", names::OLD_API_VERSION);
            let warning = Diagnostic::warning(Code::ApiVersion, path, message);
            found.push(warning.hint(hint).at(span));
        }
        Some(other) => {
            let message = format!("`{}` is not known", other.unwrap_or_default());
            let error = Diagnostic::error(Code::ApiVersion, path, message);
            found.push(error.hint(hint).at(span));
        }
        None => {
            let message = "`apiVersion` is missing";
            let error = Diagnostic::error(Code::ApiVersion, FieldPath::root(), message);
            found.push(error.hint(format!("write `apiVersion: {}`", names::API_VERSION)));
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

/// Returns the file's name without its extension; for `katalog.yaml` and standard input, the folder's.
fn default_name(file: Option<&str>, kind: DocumentKind) -> String {
    let path = Path::new(file.unwrap_or_default());
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let folder = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let own = stem.filter(|stem| !stem.eq_ignore_ascii_case(kind.name()));
    let legal = [own, folder].into_iter().flatten().map(to_name);
    legal
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| kind.name().to_lowercase())
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
            assert_eq!(default_name(file, DocumentKind::Katalog), name, "{file:?}");
        }
        let motif = default_name(Some("reeds/motif.yaml"), DocumentKind::Motif);
        assert_eq!(motif, "reeds");
    }
}
