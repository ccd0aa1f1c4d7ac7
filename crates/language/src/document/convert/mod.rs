//! Rewrites documents to the present spelling, by edits of their text.
//!
//! ```text
//! text ─ parse ─► Tree as written ─ normalise ─► Tree in the present spelling
//!           │ layout: the position of each entry        │
//!           └───────────────► write ◄───────────────────┘ copies each value of the second tree from the text
//! ```
//!
//! This module contains no rules: values keep their positions when [`normalise`](super::normalise) moves them, so the
//! difference between the trees determines the renames and moves. Comments, blank lines, quotes and the order of keys are
//! kept. The result is parsed again: a document is changed only if the result has the same meaning and no comment is lost.

mod comments;
mod flow;
mod layout;
mod scalar;
mod write;

use std::collections::BTreeMap;

use self::layout::Layout;
use self::write::DocumentWriter;
use super::kinds::{DocumentKind, normalise_as};
use super::source;
use super::yaml::Chunk;
use crate::api::names;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::{Tree, TreeValue};

/// A text in the present spelling.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// The old spellings in the input, with their positions there.
    pub found: Vec<Diagnostic>,
    /// Problems that remain in the result, with their positions in the result: old spellings that cannot be rewritten, and
    /// fields that are set in two spellings.
    pub left: Vec<Diagnostic>,
}

/// Rewrites every Orkestra document of a stream to the present spelling. Other documents stay unchanged.
///
/// Messages refer to the text as `file`. Converting the result again changes nothing.
///
/// # Errors
/// Every problem of every document that cannot be parsed, with its position.
///
/// ```
/// let old = "kind: Motif\napiVersion: orkestra.orkspace.io/v1\nspec:\n  resources:\n    # claims\n    pvcs: []\n";
/// let today = orkestra_language::document::convert("motif.yaml", old)?;
/// assert_eq!(today.text, old.replace("pvcs", "persistentVolumeClaims"));
/// # Ok::<(), orkestra_language::diagnostics::Diagnostics>(())
/// ```
pub fn convert(file: &str, text: &str) -> Result<Converted, Diagnostics> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Diagnostics::default();
    let mut result = String::with_capacity(text.len());
    result.push_str(&text[..text.len() - plain.len()]);
    let mut done = 0;
    for (chunk, tree) in source::parse_chunks(file, plain)? {
        let start = usize::try_from(chunk.bytes).unwrap_or(plain.len());
        result.push_str(plain.get(done..start).unwrap_or_default());
        done = start + chunk.text.len();
        let converted = tree.and_then(|tree| document(chunk, &tree, file, &mut found));
        result.push_str(converted.as_deref().unwrap_or(chunk.text));
    }
    result.push_str(plain.get(done..).unwrap_or_default());
    let left = spellings(file, &result)?;
    Ok(Converted {
        text: result,
        found: found.0,
        left,
    })
}

/// Rewrites one document; `None` if it has the present spelling already, or cannot be rewritten.
fn document(chunk: Chunk<'_>, tree: &Tree, file: &str, found: &mut Diagnostics) -> Option<String> {
    let mut problems = Diagnostics::default();
    let today = today(tree, &mut problems)?;
    let is_clear = !problems.has_errors();
    problems.locate(tree, Some(file));
    found.extend(problems);
    if !is_clear || today == *tree {
        return None;
    }
    let text = rewrite(chunk, tree, &today);
    let alone = Chunk {
        text: &text,
        lines: 0,
        bytes: 0,
    };
    let again = source::parse_alone(alone)?;
    let again = self::today(&again, &mut Diagnostics::default())?;
    let is_same = again.to_json() == today.to_json();
    (is_same && comments::are_kept(chunk.text, &text)).then_some(text)
}

/// Writes the text of a document according to `today`. Comments that belong to no written entry are placed before the next
/// one.
fn rewrite(chunk: Chunk<'_>, tree: &Tree, today: &Tree) -> String {
    let layout = Layout::of(chunk, tree);
    let none = BTreeMap::new();
    let mut first = DocumentWriter::new(&layout, &none);
    first.document(today);
    let strays = first.strays();
    if strays.is_empty() {
        return first.into_text();
    }
    let mut second = DocumentWriter::new(&layout, &strays);
    second.document(today);
    second.into_text()
}

/// Returns the tree in the present spelling, with each block where the author wrote it, because both next to `spec` and
/// inside it are valid. `None` for documents of other kinds.
fn today(tree: &Tree, found: &mut Diagnostics) -> Option<Tree> {
    let kind = DocumentKind::parse(tree.get("kind")?.as_str()?)?;
    let mut today = tree.clone();
    if let Some(version) = today.get_mut("apiVersion")
        && version.as_str() == Some(names::OLD_API_VERSION)
    {
        let message = format!("`{}` is the old version", names::OLD_API_VERSION);
        let path = FieldPath::root().field("apiVersion");
        let warning = Diagnostic::warning(Code::ApiVersion, path, message);
        let hint = format!("write `{}`", names::API_VERSION);
        found.push(warning.hint(hint).at(version.span));
        version.value = TreeValue::Str(names::API_VERSION.to_owned());
        version.verbatim = Box::default();
    }
    let blocks = normalise_as(kind, &mut today, found);
    for name in blocks {
        if tree.get(name).is_some()
            && today.get(name).is_none()
            && let Some((key, value)) = today.take(&["spec", name])
        {
            // Cannot fail: the key does not exist.
            let _ = today.put(&[name], key, value);
        }
    }
    Some(today)
}

/// Returns all diagnostics about spellings in a text, with positions.
fn spellings(file: &str, text: &str) -> Result<Vec<Diagnostic>, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    for (_, tree) in source::parse_chunks(file, text)? {
        let Some(tree) = tree else {
            continue;
        };
        let mut found = Diagnostics::default();
        if today(&tree, &mut found).is_some() {
            found.locate(&tree, Some(file));
            let is_spelling = |problem: &Diagnostic| {
                matches!(
                    problem.code,
                    Code::OtherSpelling | Code::TwoSpellings | Code::SetTwice
                )
            };
            all.extend(found.into_iter().filter(is_spelling));
        }
    }
    Ok(all)
}
