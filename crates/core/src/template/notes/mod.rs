//! Notes: the functions that templates call.
//!
//! One file a family, one table a file, one entry a note; a new note is one entry. Arguments come value
//! first (`replace .spec.name "_" "-"`), with `default` as the exception, and null passes for every type: it
//! is the zero value. No note does I/O or has a clock or dice of its own: the data tell the moment and hand
//! out random bytes. Each takes from the budget before it builds.

#![allow(
    clippy::unnecessary_wraps,
    reason = "all notes have one signature, also those that cannot fail"
)]

mod access;
mod compare;
mod convert;
mod cron;
mod data;
mod doc;
mod elsewhere;
mod encoding;
pub(super) mod format;
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
pub(super) mod semver;
mod text;
pub(super) mod time;
mod trim;
mod types;
mod verbs;
mod yaml;

pub use doc::{NoteDoc, notes, notes_markdown, notes_sample};
pub(super) use elsewhere::instead;
pub(crate) use formats::is_image_reference;
pub(super) use refused::refused;
pub use search::{notes_instead, search_notes};

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Data;
use super::budget::Budget;
use super::error::Failure;
use super::scope::Value;
use crate::value::Node;

/// The families by domain, each sorted as it likes; names and aliases are unique over all.
static FAMILIES: &[(&str, &[Note])] = &[
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

/// What examples are evaluated on: the names of this map, the moment [`SAMPLE_TIME`], and a constant seed.
pub(super) const SAMPLE: &str = include_str!("sample.yaml");

/// The present time of examples, a Friday.
pub(super) const SAMPLE_TIME: &str = "2026-05-08T12:00:00Z";

/// A function of the template language.
pub(super) struct Note {
    /// Its name.
    pub(super) name: &'static str,
    /// Other names that mean the same.
    pub(super) aliases: &'static [&'static str],
    /// What it does, in one sentence.
    pub(super) doc: &'static str,
    /// A template over [`SAMPLE`] and its text, which a test compares.
    pub(super) example: (&'static str, &'static str),
    /// The fewest arguments, a piped one included.
    pub(super) min_args: usize,
    /// The most; nothing if there is no limit.
    pub(super) max_args: Option<usize>,
    /// The types of the arguments; the last one is that of all further arguments.
    pub(super) params: &'static [Type],
    /// The type of the result.
    pub(super) result: Type,
    /// The paths below its first argument that it reads, where a number is a position in a list and a `*` at the end
    /// stands for the second argument as a key; nothing if it reads the whole. Through [`Call::object`] it gets no
    /// more than these.
    pub(super) reads: &'static [&'static str],
    /// Whether it draws from the source of random bytes, so that no two results are equal.
    pub(super) random: bool,
    /// Whether it asks for the present time.
    pub(super) clock: bool,
    /// How it runs.
    pub(super) run: Run,
}

/// A note of one argument without peculiarities: what the entries of the tables start from.
const PLAIN: Note = Note {
    name: "",
    aliases: &[],
    doc: "",
    example: ("", ""),
    min_args: 1,
    max_args: Some(1),
    params: &[Type::Any],
    result: Type::Any,
    reads: &[],
    random: false,
    clock: false,
    run: Run::Eager(|_| Ok(Value::null())),
};

/// How a note runs.
pub(super) enum Run {
    /// With its arguments evaluated and their types checked.
    Eager(for<'c, 'd> fn(&mut Call<'c, 'd>) -> Result<Value<'d>, Failure>),
    /// As [`Run::Eager`], and the result is what lies in the first argument under the others, taken as
    /// keys. So `.` as an argument need not be made one map, and only what the keys lead to is read.
    Leading(for<'c, 'd> fn(&mut Call<'c, 'd>) -> Result<Value<'d>, Failure>),
    /// Argument for argument, up to the first that is empty (`and`) or is not (`or`), which is the result.
    Until {
        /// Whether the argument that ends it is an empty one.
        empty: bool,
    },
}

/// The type of an argument or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Anything.
    Any,
    /// Text.
    Text,
    /// A whole number.
    Int,
    /// A number, whole or not; a boolean counts as 1 or 0, and text as the number that it spells.
    Number,
    /// A boolean.
    Bool,
    /// A list.
    List,
    /// A map.
    Map,
    /// Of a result only: what the first argument holds under the others, or under any key.
    Inside,
    /// Of a result only: one of the arguments at these positions; of all where none is named.
    OneOf(&'static [usize]),
}

impl Type {
    /// Whether a value is of the type; null always is.
    pub(super) fn accepts(self, node: &Node) -> bool {
        matches!(
            (self, node),
            (Type::Any | Type::Inside | Type::OneOf(_), _)
                | (_, Node::Null)
                | (Type::Text, Node::Str(_))
                | (Type::Int, Node::Int(_) | Node::UInt(_))
                | (Type::Number, Node::Int(_) | Node::UInt(_) | Node::Float(_))
                | (Type::Bool | Type::Number, Node::Bool(_))
                | (Type::List, Node::List(_))
                | (Type::Map, Node::Map(_))
        ) || matches!((self, node), (Type::Number, Node::Str(text)) if text.trim().parse().is_ok_and(f64::is_finite))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Any | Type::Inside | Type::OneOf(_) => "any value",
            Type::Text => "text",
            Type::Int => "an integer",
            Type::Number => "a number",
            Type::Bool => "a boolean",
            Type::List => "a list",
            Type::Map => "a map",
        }
    }
}

impl Note {
    /// Its name, and then its aliases.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The type of the argument at a position, from 0.
    pub(super) fn param(&self, position: usize) -> Type {
        let last = self.params.last().copied().unwrap_or(Type::Any);
        self.params.get(position).copied().unwrap_or(last)
    }

    /// Whether the result is what lies in the first argument under the others.
    pub(super) fn leads_on(&self) -> bool {
        matches!(self.run, Run::Leading(_))
    }

    /// Whether it declares which parts of its first argument it reads.
    pub(super) fn reads_parts(&self) -> bool {
        !self.reads.is_empty()
    }

    /// How many arguments it takes, in words.
    pub(super) fn arity(&self) -> String {
        let plural = |n| if n == 1 { "argument" } else { "arguments" };
        match (self.min_args, self.max_args) {
            (0, Some(0)) => "no arguments".into(),
            (least, Some(most)) if least == most => format!("{least} {}", plural(least)),
            (least, Some(most)) => format!("{least} to {most} arguments"),
            (least, None) => format!("at least {least} {}", plural(least)),
        }
    }

    /// What to say of an argument of a wrong type. The value itself is not told: it may be secret.
    pub(super) fn wrong_argument(&self, position: usize, given: &Node) -> String {
        let (name, wanted) = (self.name, self.param(position).name());
        let (number, given) = (position + 1, given.type_name());
        format!("`{name}` wants {wanted} as argument {number}, not {given}")
    }
}

impl std::fmt::Debug for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// One call of a note: its arguments, evaluated and of the types that it declares, and the budget.
pub(super) struct Call<'c, 'd> {
    pub(super) note: &'static Note,
    /// As many as the note allows.
    pub(super) args: &'c mut [Value<'d>],
    pub(super) data: &'c Data<'d>,
    pub(super) budget: &'c mut Budget,
}

impl<'d> Call<'_, 'd> {
    /// The number of arguments.
    pub(super) fn len(&self) -> usize {
        self.args.len()
    }

    /// An argument; null beyond the last.
    pub(super) fn node(&self, position: usize) -> &Node {
        self.args
            .get(position)
            .map_or(&super::scope::NULL, Value::node)
    }

    /// An argument that is declared as text.
    pub(super) fn text(&self, position: usize) -> &str {
        self.node(position).as_str().unwrap_or_default()
    }

    /// An argument that is declared as an integer, as a number of things: what is negative is none.
    pub(super) fn count(&self, position: usize) -> usize {
        match self.node(position) {
            Node::Int(n) => usize::try_from((*n).max(0)).unwrap_or(usize::MAX),
            Node::UInt(n) => usize::try_from(*n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// An argument itself, so that what is borrowed stays borrowed; null stays in its place.
    pub(super) fn take(&mut self, position: usize) -> Value<'d> {
        match self.args.get_mut(position) {
            Some(arg) => std::mem::replace(arg, Value::null()),
            None => Value::null(),
        }
    }

    /// What an argument has under a key; null where there is nothing.
    pub(super) fn look(&mut self, from: Value<'d>, key: &str) -> Result<Value<'d>, Failure> {
        from.field(key, self.data, self.budget)
    }

    /// The failure of an argument whose type only the note can judge.
    pub(super) fn wrong(&self, position: usize, wanted: &str) -> Failure {
        let (name, number) = (self.note.name, position + 1);
        let given = self.node(position).type_name();
        Failure::wrong_type(format!(
            "`{name}` wants {wanted} as argument {number}, not {given}"
        ))
    }
}

/// All notes by name and alias.
static BY_NAME: LazyLock<HashMap<&str, &Note>> = LazyLock::new(|| {
    let named = all().flat_map(|note| note.names().map(move |name| (name, note)));
    named.collect()
});

/// The note of a name or an alias.
pub(super) fn find(name: &str) -> Option<&'static Note> {
    BY_NAME.get(name).copied()
}

/// Whether a name starts with `_` and is a key that notes look for in objects: no object has it by itself.
pub(crate) fn is_added_key(name: &str) -> bool {
    let first = |path: &str| path.split('.').next() == Some(name);
    name.starts_with('_') && all().any(|note| note.reads.iter().any(|path| first(path)))
}

/// Whether notes read that path of objects, and all that do read something else where it is not there.
pub(crate) fn does_without(path: &str) -> bool {
    let mut readers = all().filter(|note| note.reads.contains(&path)).peekable();
    let has_other = |note: &Note| note.reads.iter().any(|read| !read.starts_with('_'));
    readers.peek().is_some() && readers.all(has_other)
}

/// All notes.
pub(super) fn all() -> impl Iterator<Item = &'static Note> {
    FAMILIES.iter().flat_map(|(_, notes)| notes.iter())
}

/// The name of a note, or among others that are known, that a mistyped one most likely means.
pub(super) fn nearest<'n>(name: &str, others: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let notes = all()
        .flat_map(Note::names)
        .map(|known| -> &'n str { known });
    crate::diagnostics::nearest(name, notes.chain(others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Entropy, Template};

    #[test]
    fn every_example_gives_the_text_it_promises() {
        let sample: Node = serde_saphyr::from_str(SAMPLE).unwrap();
        let entropy = Entropy::seeded([0; 32]);
        let data = Data::of(&sample)
            .at(SAMPLE_TIME.parse().unwrap())
            .random(&entropy);
        for note in all() {
            let (source, expected) = note.example;
            let template = Template::parse(source).unwrap_or_else(|e| panic!("{source}: {e:?}"));
            let text = template.render_text(&data, &mut Budget::default());
            assert_eq!(text.as_deref(), Ok(expected), "{source}");
            assert!(source.contains(note.name), "{source}");
        }
    }

    #[test]
    fn names_are_unique_and_tables_make_sense() {
        let mut names: Vec<&str> = all().flat_map(Note::names).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for note in all() {
            assert!(note.doc.ends_with('.'), "{}", note.name);
            assert!(note.max_args.is_none_or(|most| most >= note.min_args));
            assert!(note.params.len() <= note.max_args.unwrap_or(usize::MAX));
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("tolower", std::iter::empty()), Some("toLower"));
        assert_eq!(nearest("replce", std::iter::empty()), Some("replace"));
        assert_eq!(nearest("defualt", std::iter::empty()), Some("default"));
        assert_eq!(nearest("frobnicate", std::iter::empty()), None);
    }

    #[test]
    fn null_never_fails_a_note() {
        // A missing divisor is zero.
        const DIVIDE: [&str; 2] = ["div", "mod"];
        let entropy = Entropy::seeded([0; 32]);
        let data = Data::new().random(&entropy);
        for note in all().filter(|note| !DIVIDE.contains(&note.name)) {
            for given in note.min_args..=note.max_args.unwrap_or(note.min_args + 2) {
                let source = format!("{{{{ {} {} }}}}", note.name, ".missing ".repeat(given));
                let template = Template::parse(&source).unwrap();
                let value = template.eval(&data, &mut Budget::default());
                assert!(value.is_ok(), "{source}: {value:?}");
            }
        }
    }
}
