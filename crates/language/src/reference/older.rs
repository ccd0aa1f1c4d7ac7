//! The page for readers of older documents: fields that do nothing, fields and words that are not supported, other spellings.

use std::fmt::Write as _;
use std::sync::Arc;

use super::page::{OLDER, ReferencePage, cell, description, walk};
use super::{named_maps, words};
use crate::api::shape::{Field, ObjectShape, Support};
use crate::document::aliases::{ALIASES, WORD_ALIASES};

/// The kinds of documents of the reference.
const KINDS: [&str; 3] = ["katalog", "motif", "komposer"];

const HEAD: &str = "# Older documents

This page is for readers of documents that were written for an earlier release or another version of the language. The other pages of \
the reference, and the schema for editors, have only what works today. `ork explain PATH` explains each field below, too, and `ork convert` \
rewrites a document in the current fields.

## Keep children as declared

Children under `onReconcile` are kept as declared, and removed when their conditions no longer hold. Two other forms mean the same: an \
entry of `onCreate` with `reconcile: true`, and lists of children directly under `resources` of a Motif.
";

/// Forms that no table of spellings can show.
const FORMS: &str = include_str!("older.md");

/// A section about fields: its heading, its introduction, the heading of its last column.
type Section = (&'static str, &'static str, &'static str);

const NO_EFFECT: Section = (
    "Fields without effect",
    "Orkestra accepts these fields with a warning, and does nothing.",
    "Why",
);
const LATER: Section = (
    "Fields that are not supported yet",
    "A document with one of these fields is checked, and then refused: [`ORK0011`](diagnostics.md#ork0011-this-is-not-supported-yet).",
    "",
);
const REFUSED: Section = (
    "Fields that are refused",
    "These fields exist in other versions of the language. A document with one of them is refused.",
    "Instead",
);

/// `docs/reference/older-documents.md`.
pub fn older_page() -> String {
    let mut page = ReferencePage::new(OLDER);
    page.text.push_str(HEAD);
    let _ = write!(page.text, "\n{FORMS}");
    let mut types = Vec::new();
    for (section, has) in [
        (NO_EFFECT, is_ignored as fn(&Support) -> bool),
        (LATER, |support| *support == Support::Later),
        (REFUSED, |support| matches!(support, Support::Refused(_))),
    ] {
        types.extend(fields(&mut page, section, has));
    }
    later_words(&mut page);
    spellings(&mut page);
    page.blocks();
    page.text.push_str("\n## Types of these fields\n");
    page.types(types);
    page.text
}

fn is_ignored(support: &Support) -> bool {
    matches!(support, Support::Ignored(_))
}

/// A field that several types may have.
struct Row {
    name: String,
    field: Field,
    of: Vec<String>,
}

/// Visits each field of the types that documents can reach through fields that work, with the link to its type.
fn each_field(page: &ReferencePage, mut visit: impl FnMut(&str, &Field, String)) {
    for kind in KINDS {
        walk(kind, Field::works, |object| {
            for (name, field) in &object.fields {
                visit(name, field, link(page, object, name));
            }
            true
        });
    }
}

/// Returns a link to the table of a type. Fields that all children have are those of every child.
fn link(page: &ReferencePage, object: &ObjectShape, field: &str) -> String {
    let is_child = page
        .common
        .keys()
        .all(|name| object.fields.contains_key(name));
    if is_child && page.common.contains_key(field) {
        return "[every child](katalog.md#deployments)".to_owned();
    }
    match page.anchors.get(&object.name) {
        Some(anchor) => format!("[{}]({anchor})", object.name),
        None => object.name.clone(),
    }
}

/// Adds the table of the fields with some support. Returns the types of their values.
fn fields(
    page: &mut ReferencePage,
    (title, about, column): Section,
    has: fn(&Support) -> bool,
) -> Vec<Arc<ObjectShape>> {
    let mut rows: Vec<Row> = Vec::new();
    each_field(page, |name, field, of| {
        if !has(&field.support) {
            return;
        }
        let is_same = |row: &&mut Row| row.name == name && row.field == *field;
        match rows.iter_mut().find(is_same) {
            Some(row) if row.of.contains(&of) => {}
            Some(row) => row.of.push(of),
            None => rows.push(Row {
                name: name.to_owned(),
                field: field.clone(),
                of: vec![of],
            }),
        }
    });
    let _ = write!(
        page.text,
        "\n## {title}\n\n{about}\n\n| In | Field | Description | {column} |\n|---|---|---|---|\n"
    );
    for row in &rows {
        let why = match &row.field.support {
            Support::Ignored(why) | Support::Refused(why) => why.as_str(),
            Support::Later | Support::Works => "",
        };
        let (about, of) = (cell(&description(&row.field)), row.of.join(", "));
        let _ = writeln!(
            page.text,
            "| {of} | `{}` | {about} | {} |",
            row.name,
            cell(why)
        );
    }
    let values = rows.iter().flat_map(|row| named_maps(&row.field.shape));
    values.cloned().collect()
}

fn later_words(page: &mut ReferencePage) {
    let mut rows: Vec<String> = Vec::new();
    each_field(page, |name, field, of| {
        let later = words(&field.shape).map_or(&[][..], |(_, later)| later);
        if field.works() && !later.is_empty() {
            let row = format!("| {of} | `{name}` | `{}` |", later.join("`, `"));
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    });
    let _ = write!(
        page.text,
        "\n## Words that are not supported yet\n\n| In | Field | Words |\n|---|---|---|\n{}\n",
        rows.join("\n")
    );
}

fn spellings(page: &mut ReferencePage) {
    page.text.push_str(
        "\n## Other spellings\n\nOrkestra accepts these spellings, with a warning if there is a current one. A field that is \
         written in two spellings is refused.\n\n| In | Written | Means | |\n|---|---|---|---|\n",
    );
    let dotted = |words: &[&str]| words.join(".");
    let keys = ALIASES
        .iter()
        .map(|alias| (alias.of, dotted(alias.from), dotted(alias.to), alias.warns));
    let words = WORD_ALIASES.iter().map(|word| {
        let written = |value: &str| format!("{}: {value}", word.fields[0]);
        (word.of, written(word.from), written(word.to), word.warns)
    });
    for (of, from, to, warns) in keys.chain(words) {
        let anchor = page.anchors.get(of);
        let of = anchor.map_or_else(String::new, |anchor| format!("[{of}]({anchor})"));
        let note = if warns { "warns" } else { "" };
        let _ = writeln!(page.text, "| {of} | `{from}` | `{to}` | {note} |");
    }
}
