//! Notes: the functions that templates call.
//!
//! One file per family, one table per file, one entry per note; a new note is one entry. The value is the first argument
//! (`replace .spec.name "_" "-"`), except for `default`. Null is valid for every type and counts as its zero value. No note
//! does I/O or has a clock or random source of its own: the data provide the time and random bytes. Each note charges the
//! budget before it builds a value.

#![allow(
    clippy::unnecessary_wraps,
    reason = "all functions have one signature, also those that cannot fail"
)]

mod access;
mod compare;
mod convert;
mod cron;
mod data;
mod doc;
mod encoding;
mod foreign;
pub(crate) mod format;
mod formats;
mod list;
mod logic;
mod math;
mod net;
pub(crate) mod number;
mod objects;
mod quantity;
mod random;
mod refused;
mod search;
pub(crate) mod semver;
mod text;
pub(crate) mod time;
mod trim;
mod types;
mod verbs;
mod yaml;

pub use doc::{NoteDoc, notes, notes_markdown, notes_sample};
pub(crate) use foreign::instead;
pub use formats::is_image_reference;
pub(crate) use refused::refused;
pub use search::{notes_instead, search_notes};

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Data;
use super::budget::EvalBudget;
use super::error::EvalFailure;
use super::scope::Value;
use orkestra_object::value::Node;

/// The families by domain, each in its own order. Names and aliases are unique across all families.
static FAMILIES: &[(&str, &[BuiltInNote])] = &[
    ("autoscaling", objects::scaling::NOTES),
    ("collection", data::NOTES),
    ("collection", list::NOTES),
    ("comparison", compare::NOTES),
    ("conditional", access::NOTES),
    ("conditional", logic::NOTES),
    ("cron", cron::NOTES),
    ("data", encoding::NOTES),
    ("format", format::NOTES),
    ("ingress", objects::ingress::NOTES),
    ("job", objects::jobs::NOTES),
    ("math", math::NOTES),
    ("network", net::NOTES),
    ("node", objects::nodes::NOTES),
    ("object", objects::generic::NOTES),
    ("pod", objects::pods::NOTES),
    ("quantity", quantity::NOTES),
    ("random", random::NOTES),
    ("semver", semver::NOTES),
    ("service", objects::services::NOTES),
    ("string", text::NOTES),
    ("string", trim::NOTES),
    ("time", time::NOTES),
    ("type", convert::NOTES),
    ("type", types::NOTES),
    ("validation", formats::NOTES),
    ("volume", objects::volumes::NOTES),
    ("warning", objects::warnings::NOTES),
    ("workload", objects::containers::NOTES),
    ("workload", objects::workloads::NOTES),
];

/// The data of the examples: the names of this map, the time [`SAMPLE_TIME`], and a constant seed.
pub(crate) const SAMPLE: &str = include_str!("sample.yaml");

/// The present time of examples, a Friday.
pub(crate) const SAMPLE_TIME: &str = "2026-05-08T12:00:00Z";

/// A function of the template language.
pub(crate) struct BuiltInNote {
    /// The name.
    pub(crate) name: &'static str,
    /// Aliases.
    pub(crate) aliases: &'static [&'static str],
    /// The description, in one sentence.
    pub(crate) doc: &'static str,
    /// A template over [`SAMPLE`] and its output, which a test compares.
    pub(crate) example: (&'static str, &'static str),
    /// The minimum number of arguments, including a piped one.
    pub(crate) min_args: usize,
    /// The maximum number; `None` means no limit.
    pub(crate) max_args: Option<usize>,
    /// The types of the arguments; the last one also applies to all further arguments.
    pub(crate) params: &'static [NoteType],
    /// The type of the result.
    pub(crate) result: NoteType,
    /// The paths below the first argument that the note reads; empty if it reads the whole argument. A number is a position
    /// in a list; a `*` at the end stands for the second argument as a key. [`NoteCall::object`] returns no more than these
    /// paths.
    pub(crate) reads: &'static [&'static str],
    /// True if it draws random bytes, so that no two results are equal.
    pub(crate) random: bool,
    /// True if it reads the present time.
    pub(crate) clock: bool,
    /// The implementation.
    pub(crate) run: NoteBody,
}

/// A note with one argument: the base of the entries in the tables.
const PLAIN: BuiltInNote = BuiltInNote {
    name: "",
    aliases: &[],
    doc: "",
    example: ("", ""),
    min_args: 1,
    max_args: Some(1),
    params: &[NoteType::Any],
    result: NoteType::Any,
    reads: &[],
    random: false,
    clock: false,
    run: NoteBody::Eager(|_| Ok(Value::null())),
};

/// The implementation of a note.
pub(crate) enum NoteBody {
    /// A function of evaluated arguments of checked types.
    Eager(for<'c, 'd> fn(&mut NoteCall<'c, 'd>) -> Result<Value<'d>, EvalFailure>),
    /// As [`NoteBody::Eager`]; the result is the value in the first argument at the keys that the other arguments name. With `.`
    /// as the argument no map has to be built, and only the values at the keys are read.
    Leading(for<'c, 'd> fn(&mut NoteCall<'c, 'd>) -> Result<Value<'d>, EvalFailure>),
    /// Evaluates one argument after the other, up to the first empty (`and`) or non-empty one (`or`), which is the result.
    Until {
        /// True if an empty argument ends the evaluation.
        empty: bool,
    },
}

/// The type of an argument or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteType {
    /// Anything.
    Any,
    /// Text.
    Text,
    /// An integer.
    Int,
    /// A number, whole or not. A boolean counts as 1 or 0, text as the number that it contains.
    Number,
    /// A boolean.
    Bool,
    /// A list.
    List,
    /// A map.
    Map,
    /// Only for results: the value in the first argument at the other arguments, or at any key.
    Inside,
    /// Only for results: one of the arguments at these positions; of all arguments if the list is empty.
    OneOf(&'static [usize]),
}

impl NoteType {
    /// True if a value is of the type; null always is.
    pub(crate) fn accepts(self, node: &Node) -> bool {
        matches!(
            (self, node),
            (NoteType::Any | NoteType::Inside | NoteType::OneOf(_), _)
                | (_, Node::Null)
                | (NoteType::Text, Node::Str(_))
                | (NoteType::Int, Node::Int(_) | Node::UInt(_))
                | (
                    NoteType::Number,
                    Node::Int(_) | Node::UInt(_) | Node::Float(_)
                )
                | (NoteType::Bool | NoteType::Number, Node::Bool(_))
                | (NoteType::List, Node::List(_))
                | (NoteType::Map, Node::Map(_))
        ) || matches!((self, node), (NoteType::Number, Node::Str(text)) if text.trim().parse().is_ok_and(f64::is_finite))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            NoteType::Any | NoteType::Inside | NoteType::OneOf(_) => "any value",
            NoteType::Text => "text",
            NoteType::Int => "an integer",
            NoteType::Number => "a number",
            NoteType::Bool => "a boolean",
            NoteType::List => "a list",
            NoteType::Map => "a map",
        }
    }
}

impl BuiltInNote {
    /// Returns the name and the aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the type of the argument at a position, from 0.
    pub(crate) fn param(&self, position: usize) -> NoteType {
        let last = self.params.last().copied().unwrap_or(NoteType::Any);
        self.params.get(position).copied().unwrap_or(last)
    }

    /// True if the result is a value inside the first argument.
    pub(crate) fn leads_on(&self) -> bool {
        matches!(self.run, NoteBody::Leading(_))
    }

    /// True if the result depends on the argument at a position otherwise than by being that argument: `default` only chooses one
    /// of its arguments, and `eqTernary` compares the first two.
    pub(crate) fn tests_argument(&self, position: usize) -> bool {
        match self.result {
            NoteType::OneOf(chosen) => !chosen.is_empty() && !chosen.contains(&position),
            _ => true,
        }
    }

    /// True if it declares the parts of its first argument that it reads.
    pub(crate) fn reads_parts(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Returns the number of arguments, in words.
    pub(crate) fn arity(&self) -> String {
        let plural = |n| if n == 1 { "argument" } else { "arguments" };
        match (self.min_args, self.max_args) {
            (0, Some(0)) => "no arguments".into(),
            (least, Some(most)) if least == most => format!("{least} {}", plural(least)),
            (least, Some(most)) => format!("{least} to {most} arguments"),
            (least, None) => format!("at least {least} {}", plural(least)),
        }
    }

    /// Returns the message for an argument of a wrong type. It omits the value, which may be secret.
    pub(crate) fn wrong_argument(&self, position: usize, given: &Node) -> String {
        let (name, wanted) = (self.name, self.param(position).name());
        let (number, given) = (position + 1, given.type_name());
        format!("`{name}` expects {wanted} as argument {number}, not {given}")
    }
}

impl std::fmt::Debug for BuiltInNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// One call of a note: the budget and the evaluated arguments, which have the declared types.
pub(crate) struct NoteCall<'c, 'd> {
    pub(crate) note: &'static BuiltInNote,
    /// The arguments; their number is valid for the note.
    pub(crate) args: &'c mut [Value<'d>],
    pub(crate) data: &'c Data<'d>,
    pub(crate) budget: &'c mut EvalBudget,
}

impl<'d> NoteCall<'_, 'd> {
    /// The number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Returns an argument; null beyond the last.
    pub(crate) fn node(&self, position: usize) -> &Node {
        self.args
            .get(position)
            .map_or(&super::scope::NULL, Value::node)
    }

    /// Returns an argument that is declared as text.
    pub(crate) fn text(&self, position: usize) -> &str {
        self.node(position).as_str().unwrap_or_default()
    }

    /// Returns an argument that is declared as an integer, as a count. Negative numbers count as 0.
    pub(crate) fn count(&self, position: usize) -> usize {
        match self.node(position) {
            Node::Int(n) => usize::try_from((*n).max(0)).unwrap_or(usize::MAX),
            Node::UInt(n) => usize::try_from(*n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Takes an argument, so that borrowed data stays borrowed. Null replaces it.
    pub(crate) fn take(&mut self, position: usize) -> Value<'d> {
        match self.args.get_mut(position) {
            Some(arg) => std::mem::replace(arg, Value::null()),
            None => Value::null(),
        }
    }

    /// Returns the value under a key of an argument; null if there is none.
    pub(crate) fn look(&mut self, from: Value<'d>, key: &str) -> Result<Value<'d>, EvalFailure> {
        from.field(key, self.data, self.budget)
    }

    /// The failure for an argument whose type only the note itself can check.
    pub(crate) fn wrong(&self, position: usize, wanted: &str) -> EvalFailure {
        let (name, number) = (self.note.name, position + 1);
        let given = self.node(position).type_name();
        EvalFailure::wrong_type(format!(
            "`{name}` expects {wanted} as argument {number}, not {given}"
        ))
    }
}

/// All notes by name and alias.
static BY_NAME: LazyLock<HashMap<&str, &BuiltInNote>> = LazyLock::new(|| {
    let named = all().flat_map(|note| note.names().map(move |name| (name, note)));
    named.collect()
});

/// Finds a note by name or alias.
pub(crate) fn find(name: &str) -> Option<&'static BuiltInNote> {
    BY_NAME.get(name).copied()
}

/// True if the name starts with `_` and is a key that notes read in objects. No object has it by itself.
pub fn is_added_key(name: &str) -> bool {
    let first = |path: &str| path.split('.').next() == Some(name);
    name.starts_with('_') && all().any(|note| note.reads.iter().any(|path| first(path)))
}

/// True if notes read this path of objects and all of them fall back to another path.
pub fn does_without(path: &str) -> bool {
    let mut readers = all().filter(|note| note.reads.contains(&path)).peekable();
    let has_other = |note: &BuiltInNote| note.reads.iter().any(|read| !read.starts_with('_'));
    readers.peek().is_some() && readers.all(has_other)
}

/// All notes.
pub(crate) fn all() -> impl Iterator<Item = &'static BuiltInNote> {
    FAMILIES.iter().flat_map(|(_, notes)| notes.iter())
}

/// Returns the name of a note, or one of the others, that a misspelled name most likely means.
pub(crate) fn nearest<'n>(name: &str, others: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let notes = all()
        .flat_map(BuiltInNote::names)
        .map(|known| -> &'n str { known });
    orkestra_language::diagnostics::nearest(name, notes.chain(others))
}

#[cfg(test)]
mod tests;
