//! The documentation of notes: one table for `ork notes` and for the reference document.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{BuiltInNote, FAMILIES, NoteType, SAMPLE, SAMPLE_TIME};

/// The documentation of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteDoc {
    /// The name.
    pub name: &'static str,
    /// Aliases.
    pub aliases: &'static [&'static str],
    /// The domain, one lower-case word: `string`, `time`.
    pub domain: &'static str,
    /// The description, in one sentence.
    pub doc: &'static str,
    /// The signature: `replace TEXT TEXT TEXT -> text`. Optional arguments are in brackets; dots mean that more may follow.
    pub signature: String,
    /// The number of arguments, in words: `2 arguments`, `at least 1 argument`.
    pub arguments: String,
    /// The type of the result, in words: `text`, `a list`.
    pub gives: &'static str,
    /// A template that uses the note and its output, on [`notes_sample`] at its time.
    pub example: (&'static str, &'static str),
    /// True if each call returns another value. Such a note is permitted only where the value is stored.
    pub random: bool,
    /// True if it reads the present time.
    pub clock: bool,
}

/// Returns all notes, sorted by name.
pub fn notes() -> Vec<NoteDoc> {
    let families = FAMILIES.iter();
    let mut notes: Vec<NoteDoc> = families
        .flat_map(|(domain, notes)| notes.iter().map(|note| note_doc(domain, note)))
        .collect();
    notes.sort_unstable_by_key(|note| note.name);
    notes
}

/// Returns the data of the examples, as YAML, and the time that they take as the present.
pub fn notes_sample() -> (&'static str, &'static str) {
    (SAMPLE, SAMPLE_TIME)
}

fn note_doc(domain: &'static str, note: &BuiltInNote) -> NoteDoc {
    NoteDoc {
        name: note.name,
        aliases: note.aliases,
        domain,
        doc: note.doc,
        signature: signature(note),
        arguments: note.arity(),
        gives: note.result.name(),
        example: note.example,
        random: note.random,
        clock: note.clock,
    }
}

fn signature(note: &BuiltInNote) -> String {
    let most = note
        .max_args
        .unwrap_or(note.min_args.max(note.params.len()));
    let mut out = note.name.to_owned();
    for position in 0..most {
        let word = word(note.param(position)).to_uppercase();
        let open_end = note.max_args.is_none() && position + 1 == most;
        let dots = if open_end { "..." } else { "" };
        // Writing to a string cannot fail.
        let _ = if position < note.min_args {
            write!(out, " {word}{dots}")
        } else {
            write!(out, " [{word}{dots}]")
        };
    }
    out + " -> " + word(note.result)
}

fn word(ty: NoteType) -> &'static str {
    match ty {
        NoteType::Any | NoteType::Inside | NoteType::OneOf(_) => "any",
        NoteType::Text => "text",
        NoteType::Int => "integer",
        NoteType::Number => "number",
        NoteType::Bool => "boolean",
        NoteType::List => "list",
        NoteType::Map => "map",
    }
}

/// Returns the reference of all notes in Markdown, by domain.
pub fn notes_markdown() -> String {
    let mut domains: BTreeMap<&str, Vec<NoteDoc>> = BTreeMap::new();
    for note in notes() {
        domains.entry(note.domain).or_default().push(note);
    }
    let (sample, now) = notes_sample();
    let mut out = format!(
        "<!-- Generated from crates/template/src/notes: UPDATE=1 cargo test -p orkestra-template --lib notes -->\n\
         # Functions\n\n\
         The functions of the template language. The value is the first argument; a piped value is the last one. \
         A missing value is the zero value of the type that the function expects; it is not an error by itself.\n\n\
         A signature lists the types of the arguments and of the result. Optional arguments are in brackets; dots mean that \
         more arguments may follow. Functions marked *random* are permitted only where a value is generated once and stored; \
         functions marked *clock* read the current time.\n\n\
         The examples use this data, with {now} as the current time; a test executes each of them:\n\n\
         ```yaml\n{sample}```\n"
    );
    for (domain, notes) in domains {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {domain}\n");
        for note in notes {
            out.push_str(&entry(&note));
        }
    }
    out
}

fn entry(note: &NoteDoc) -> String {
    let mut out = format!("\n### {}\n\n`{}`", note.name, note.signature);
    for (marked, mark) in [(note.random, "random"), (note.clock, "clock")] {
        if marked {
            out = out + " *" + mark + "*";
        }
    }
    out = out + "\n\n" + note.doc;
    if !note.aliases.is_empty() {
        out = out + " Also called `" + &note.aliases.join("`, `") + "`.";
    }
    let (template, text) = note.example;
    out + "\n\n```text\n" + template + "\n" + text + "\n```\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_for_users_has_every_note_in_order() {
        let listed = notes();
        assert_eq!(listed.len(), super::super::all().count());
        assert!(listed.is_sorted_by(|a, b| a.name < b.name));
        let replace = listed.iter().find(|note| note.name == "replace").unwrap();
        assert_eq!(
            (&*replace.arguments, replace.gives, replace.domain),
            ("3 arguments", "text", "string")
        );
    }

    #[test]
    fn signatures_show_what_may_be_left_out() {
        let signature = |name| signature(super::super::find(name).unwrap());
        assert_eq!(signature("replace"), "replace TEXT TEXT TEXT -> text");
        assert_eq!(signature("get"), "get ANY [TEXT...] -> any");
        assert_eq!(signature("and"), "and ANY... -> any");
    }

    #[test]
    fn the_reference_document_is_current() {
        let file =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/notes.md");
        let expected = notes_markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == expected,
            "docs/reference/notes.md is stale; run the test again with UPDATE=1"
        );
    }
}
