//! What gates ask, compiled.

use std::time::Duration;

use regex::Regex;

use super::Leaf;
use crate::{
    api::ValueType,
    template::Template,
    value::Path,
    window::{Daily, Days},
};

/// What must hold: all of one list, and one of the other where that has any.
///
/// Source: language reference, condition language.
#[derive(Debug, Default)]
pub struct Gate {
    /// `when`: all must hold.
    pub all: Box<[Condition]>,
    /// `or`: one must hold, if there is any.
    pub any: Box<[Condition]>,
}

impl Gate {
    /// Whether it asks nothing, and is always open.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty()
    }

    /// Every condition of both lists.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.all.iter().chain(&self.any)
    }
}

/// One entry of a `when` or `or` list.
#[derive(Debug)]
pub struct Condition {
    /// What it asks.
    pub asks: Asks,
    /// Whether it holds when what it asks does not.
    pub negate: bool,
    /// Where it stands in the Katalog, for messages.
    pub path: Box<str>,
}

/// What a condition asks.
#[derive(Debug)]
pub enum Asks {
    /// A value, of which all tests must hold.
    Value(Operand, Box<[Test]>),
    /// The time, which must lie in all windows.
    Time(Box<[Window]>),
}

/// Left side of a condition.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A plain path such as `spec.environment`.
    Path(Path),
    /// A template; what it gives is the operand.
    Template(Template),
}

/// What is asked of an operand.
#[derive(Debug)]
pub struct Test {
    /// How the operand must be.
    pub relation: Relation,
    /// Whether it must not be so. What cannot be compared is neither.
    pub not: bool,
}

/// How an operand is compared. Texts are compared without white space around them; an operand that is absent is the
/// empty text, 0 or false.
#[derive(Debug)]
pub enum Relation {
    /// Present and not empty.
    Exists,
    /// Equal to it, as values of a type.
    Equals(Leaf, ValueType),
    /// Has the text in it.
    Contains(Leaf),
    /// Starts with the text.
    Prefix(Leaf),
    /// Ends with the text.
    Suffix(Leaf),
    /// The expression is found in it.
    Matches(Pattern),
    /// A number in this order to another.
    Is(Order, Leaf),
    /// A number from one to another, both included.
    Between(Members),
    /// One of several values of a type.
    In(Members, ValueType),
    /// No other custom resource of the kind has the same text at the operand's path.
    Unique,
    /// Of a type of JSON.
    Type(JsonType),
}

/// A regular expression.
#[derive(Debug)]
pub enum Pattern {
    /// One that is written out.
    Fixed(Regex),
    /// One that a template gives.
    Rendered(Leaf),
}

/// How a number stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is greater.
    Greater,
    /// It is greater, or equal.
    GreaterOrEqual,
    /// It is less.
    Less,
    /// It is less, or equal.
    LessOrEqual,
}

/// Several values on the right side.
#[derive(Debug)]
pub enum Members {
    /// Each by itself.
    Each(Box<[Leaf]>),
    /// Text with commas between them, or a template that gives a list.
    Split(Leaf),
}

impl Members {
    /// What is rendered for them.
    pub fn leaves(&self) -> &[Leaf] {
        match self {
            Self::Each(leaves) => leaves,
            Self::Split(leaf) => std::slice::from_ref(leaf),
        }
    }
}

/// A type of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// A map.
    Map,
    /// A list.
    List,
    /// Text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Nothing.
    Null,
}

impl JsonType {
    /// All of them, with their names.
    pub const ALL: [(&str, JsonType); 6] = [
        ("map", Self::Map),
        ("list", Self::List),
        ("string", Self::String),
        ("number", Self::Number),
        ("bool", Self::Bool),
        ("null", Self::Null),
    ];
}

/// Times in which a condition holds, in UTC.
#[derive(Debug)]
pub enum Window {
    /// A part of each day.
    Daily(Daily),
    /// The same, with times that are rendered: where it begins, and where it ends.
    Rendered(Option<Leaf>, Option<Leaf>),
    /// Days of the week.
    Days(Days),
    /// That long after each moment of a schedule.
    Cron(Leaf, Duration),
}

impl Condition {
    /// The left side, where it asks for a value.
    pub fn operand(&self) -> Option<&Operand> {
        match &self.asks {
            Asks::Value(operand, _) => Some(operand),
            Asks::Time(_) => None,
        }
    }

    /// What is asked of the left side; nothing where it asks for the time.
    pub fn tests(&self) -> &[Test] {
        match &self.asks {
            Asks::Value(_, tests) => tests,
            Asks::Time(_) => &[],
        }
    }

    /// Everything that is rendered for it, but for its left side.
    pub fn leaves(&self) -> Vec<&Leaf> {
        match &self.asks {
            Asks::Value(_, tests) => tests.iter().flat_map(Test::leaves).collect(),
            Asks::Time(windows) => windows.iter().flat_map(Window::leaves).collect(),
        }
    }

    /// Whether it asks for something that is neither on the custom resource nor below a root of the templates: the time, or
    /// other custom resources.
    pub(crate) fn asks_elsewhere(&self) -> bool {
        let is_unique = |test: &Test| matches!(test.relation, Relation::Unique);
        matches!(self.asks, Asks::Time(_)) || self.tests().iter().any(is_unique)
    }

    /// The path of the custom resource whose text nobody else of the kind may have, where that is asked.
    pub fn unique(&self) -> Option<&Path> {
        let is_unique = |test: &Test| matches!(test.relation, Relation::Unique);
        match &self.asks {
            Asks::Value(Operand::Path(path), tests) if tests.iter().any(is_unique) => Some(path),
            _ => None,
        }
    }

    /// Calls `visit` with every path that is read to answer it.
    pub(crate) fn visit_reads(&self, visit: &mut dyn FnMut(&Path)) {
        match self.operand() {
            Some(Operand::Path(path)) => visit(path),
            Some(Operand::Template(template)) => template.reads().iter().for_each(&mut *visit),
            None => {}
        }
        for leaf in self.leaves() {
            leaf.template.reads().iter().for_each(&mut *visit);
        }
    }
}

impl Test {
    fn leaves(&self) -> &[Leaf] {
        match &self.relation {
            Relation::Equals(leaf, _)
            | Relation::Contains(leaf)
            | Relation::Prefix(leaf)
            | Relation::Suffix(leaf)
            | Relation::Matches(Pattern::Rendered(leaf))
            | Relation::Is(_, leaf) => std::slice::from_ref(leaf),
            Relation::Between(members) | Relation::In(members, _) => members.leaves(),
            Relation::Exists
            | Relation::Matches(Pattern::Fixed(_))
            | Relation::Unique
            | Relation::Type(_) => &[],
        }
    }
}

impl Window {
    fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let (first, second) = match self {
            Self::Rendered(after, before) => (after.as_ref(), before.as_ref()),
            Self::Cron(schedule, _) => (Some(schedule), None),
            Self::Daily(_) | Self::Days(_) => (None, None),
        };
        first.into_iter().chain(second)
    }
}
