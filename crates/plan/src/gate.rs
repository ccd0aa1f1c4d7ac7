//! Compiled gates.

use std::time::Duration;

use regex::{Regex, RegexBuilder};

use super::{Leaf, PlanPlace};
use orkestra_language::{
    api::ValueType,
    window::{Daily, Days},
};
use orkestra_object::value::Path;
use orkestra_template::Template;

/// A gate: all of one list must hold, and at least one of the other unless that is empty.
///
/// Source: language reference, condition language.
#[derive(Debug, Default)]
pub struct Gate {
    /// `when`: all must hold.
    pub all: Box<[ConditionPlan]>,
    /// `or`: at least one must hold, unless it is empty.
    pub any: Box<[ConditionPlan]>,
}

impl Gate {
    /// True if it has no conditions, and is always open.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty()
    }

    /// Returns every condition of both lists.
    pub fn iter(&self) -> impl Iterator<Item = &ConditionPlan> {
        self.all.iter().chain(&self.any)
    }
}

/// One entry of a `when` or `or` list.
#[derive(Debug)]
pub struct ConditionPlan {
    /// The question.
    pub asks: Question,
    /// True if the result is negated.
    pub negate: bool,
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
}

/// The question of a condition.
#[derive(Debug)]
pub enum Question {
    /// A value; all tests must hold.
    Value(Operand, Box<[Test]>),
    /// The time; it must lie in all windows.
    Time(Box<[Window]>),
}

/// The left side of a condition.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A plain path such as `spec.environment`.
    Path(Path),
    /// A template; the operand is its result.
    Template(Template),
}

/// One test of an operand.
#[derive(Debug)]
pub struct Test {
    /// The relation to check.
    pub relation: OperandRelation,
    /// True if the relation must not hold. A value that cannot be compared fails in both cases.
    pub not: bool,
}

/// The relation of an operand to a value. Texts are compared without surrounding white space; an absent operand is the
/// empty text, 0 or false.
#[derive(Debug)]
pub enum OperandRelation {
    /// Present and not empty.
    Exists,
    /// Equal, as values of a type.
    Equals(Leaf, ValueType),
    /// Contains the text.
    Contains(Leaf),
    /// Starts with the text.
    Prefix(Leaf),
    /// Ends with the text.
    Suffix(Leaf),
    /// Matches the regular expression.
    Matches(Pattern),
    /// Compares as a number with another.
    Is(Order, Leaf),
    /// A number between two others, both included.
    Between(Members),
    /// One of several values of a type.
    In(Members, ValueType),
    /// No other custom resource of the kind has the same text at the operand's path.
    Unique,
    /// Has a JSON type.
    Type(JsonType),
    /// Has the value that the custom resource had before an update at the operand's path, or it had none there.
    Unchanged,
}

/// A regular expression.
#[derive(Debug)]
pub enum Pattern {
    /// A literal expression.
    Fixed(Regex),
    /// The result of a template.
    Rendered(Leaf),
}

/// The order of a number relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
}

/// Several values on the right side.
#[derive(Debug)]
pub enum Members {
    /// Separate values.
    Each(Box<[Leaf]>),
    /// Comma-separated text, or a template that returns a list.
    Split(Leaf),
}

impl Members {
    /// Returns the leaves to render.
    pub fn leaves(&self) -> &[Leaf] {
        match self {
            Self::Each(leaves) => leaves,
            Self::Split(leaf) => std::slice::from_ref(leaf),
        }
    }
}

/// A JSON type.
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
    /// Null.
    Null,
}

impl JsonType {
    /// All types, with their names.
    pub const ALL: [(&str, JsonType); 6] = [
        ("map", Self::Map),
        ("list", Self::List),
        ("string", Self::String),
        ("number", Self::Number),
        ("bool", Self::Bool),
        ("null", Self::Null),
    ];
}

/// Times, in UTC, at which a condition holds.
#[derive(Debug)]
pub enum Window {
    /// A part of each day.
    Daily(Daily),
    /// A part of each day with rendered times: start and end.
    Rendered(Option<Leaf>, Option<Leaf>),
    /// Days of the week.
    Days(Days),
    /// That long after each time of a schedule.
    Cron(Leaf, Duration),
}

impl ConditionPlan {
    /// Returns the left side, if it asks for a value.
    pub fn operand(&self) -> Option<&Operand> {
        match &self.asks {
            Question::Value(operand, _) => Some(operand),
            Question::Time(_) => None,
        }
    }

    /// Returns the tests of the left side; empty if it asks for the time.
    pub fn tests(&self) -> &[Test] {
        match &self.asks {
            Question::Value(_, tests) => tests,
            Question::Time(_) => &[],
        }
    }

    /// Returns the leaves to render, without its left side.
    pub fn leaves(&self) -> Vec<&Leaf> {
        match &self.asks {
            Question::Value(_, tests) => tests.iter().flat_map(Test::leaves).collect(),
            Question::Time(windows) => windows.iter().flat_map(Window::leaves).collect(),
        }
    }

    /// True if it asks for something that is neither in the custom resource nor below a template root: the time, or other
    /// custom resources.
    pub fn asks_elsewhere(&self) -> bool {
        let is_unique = |test: &Test| matches!(test.relation, OperandRelation::Unique);
        matches!(self.asks, Question::Time(_)) || self.tests().iter().any(is_unique)
    }

    /// True if it compares with the custom resource before an update.
    pub fn asks_old(&self) -> bool {
        let is_it = |test: &Test| matches!(test.relation, OperandRelation::Unchanged);
        self.tests().iter().any(is_it)
    }

    /// Returns the path whose text must be unique among custom resources of the kind, if that is asked.
    pub fn unique(&self) -> Option<&Path> {
        let is_unique = |test: &Test| matches!(test.relation, OperandRelation::Unique);
        match &self.asks {
            Question::Value(Operand::Path(path), tests) if tests.iter().any(is_unique) => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Calls `visit` with every path that the condition reads.
    pub fn visit_reads(&self, visit: &mut dyn FnMut(&Path)) {
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
            OperandRelation::Equals(leaf, _)
            | OperandRelation::Contains(leaf)
            | OperandRelation::Prefix(leaf)
            | OperandRelation::Suffix(leaf)
            | OperandRelation::Matches(Pattern::Rendered(leaf))
            | OperandRelation::Is(_, leaf) => std::slice::from_ref(leaf),
            OperandRelation::Between(members) | OperandRelation::In(members, _) => members.leaves(),
            OperandRelation::Exists
            | OperandRelation::Matches(Pattern::Fixed(_))
            | OperandRelation::Unique
            | OperandRelation::Unchanged
            | OperandRelation::Type(_) => &[],
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

/// Maximum memory of a compiled expression, in bytes.
const MOST_REGEX_BYTES: usize = 256 * 1024;

/// Compiles a regular expression.
///
/// # Errors
/// The message of the parser.
pub fn regex(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(MOST_REGEX_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the expression is too large".to_owned(),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        }
    })
}
