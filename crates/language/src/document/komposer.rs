//! Rules for Komposers that a schema cannot express.

use super::rules::{check_operator_names, check_sources};
use crate::api::sources::Sources;
use crate::api::{KomposerSpec, oci};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, Segment};
use crate::tree::Tree;

/// Overrides may be incomplete: what is missing in them is checked after the merge.
pub(crate) fn check_tree(tree: &Tree, found: &mut Diagnostics) {
    check_operator_names(tree, found);
    found
        .0
        .retain(|problem| problem.code != Code::Missing || !is_optional(&problem.path));
}

/// True for `spec`, whose missing sources are reported by [`check`], and below an entry of `spec.crds`.
fn is_optional(path: &FieldPath) -> bool {
    let field = |segment: &Segment, name: &str| matches!(segment, Segment::Field(field) if **field == *name);
    match path.segments() {
        [spec] => field(spec, "spec"),
        [spec, crds, _, ..] => field(spec, "spec") && field(crds, "crds"),
        _ => false,
    }
}

/// Checks what the document declares.
pub(crate) fn check(spec: &KomposerSpec, found: &mut Diagnostics) {
    let root = FieldPath::root().field("spec");
    check_sources(spec.sources.as_ref(), &root.field("sources"), found);
    let is_empty = spec.sources.as_ref().is_none_or(Sources::is_empty);
    if is_empty {
        let error = Diagnostic::error(Code::Missing, root.field("sources"), "there are no sources");
        found.push(error.hint(
            "name the Katalogs under `sources`; for operators without sources, write a Katalog",
        ));
    }
    for (source, digest) in &spec.locked {
        check_digest(digest, &root.field("locked").field(source), found);
    }
    for (index, digest) in spec.approve.iter().enumerate() {
        check_digest(digest, &root.field("approve").index(index), found);
    }
}

/// Reports a text that is not the digest of an artifact.
fn check_digest(digest: &str, path: &FieldPath, found: &mut Diagnostics) {
    if !oci::is_digest(digest) {
        let message = format!("`{digest}` is not a digest");
        let error = Diagnostic::error(Code::WrongShape, path.clone(), message);
        found.push(error.hint("write `sha256:` and 64 hexadecimal digits"));
    }
}
