//! Determines which parts of the root data can appear in the result of a template.
//!
//! [`reads`](super::reads) lists everything that an evaluation reads; this lists what may be visible in its result. It
//! leaves out values that are only tested (`if`, `and`, `empty` and similar) and follows the items of a `range` one by one.
//! A value that cannot be followed counts as a whole, so the list is complete.
//!
//! ```text
//!  {{ .a }}, {{ printf "%s" .a }} ───────► visible: the value, or something made from it
//!  {{ if .a }}, {{ if eq .a "x" }} ──────► nothing: one bit, of a question that the template's author asks
//!  {{ if eq .a .b }}, {{ eq .a .b }} ────► compared: the author of `.b` asks, as often as it takes to learn `.a`
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Block, Branches, CallExpr, Expr, ExprKind, Loop, LoopVars, Stmt, Store};
use super::functions::Function;
use super::notes;
use super::template::Template;
use orkestra_object::value::{Key, Node};

/// Notes that return only the number of parts of a value or their names, never the parts. Those of a value that is computed,
/// as by `until .a` or `dict .b 1`, may be what it is computed from.
const OF_OUTLINES: [&str; 3] = ["len", "listLen", "mapKeys"];

/// A path of the root data. `None` stands for any item of a list and any key of a map.
pub type Flow = Vec<Option<Key>>;

impl Template {
    /// Returns the paths whose values may be in the result, or may be learned from it, without duplicates. The empty path is
    /// all of the data. The same applies to everything below a path.
    pub fn flows(&self) -> Flows {
        let mut walk = FlowWalk::default();
        walk.block(self.body(), &Value::root());
        walk.out
    }
}

/// The paths that the result of a template depends on.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// The paths whose values may be in the result.
    pub visible: BTreeSet<Flow>,
    /// The paths whose values the result depends on by a comparison with data that is no literal, or by a calculation with
    /// it; each with the name of the note that compares.
    pub compared: BTreeMap<Flow, Box<str>>,
}

/// Compared paths, each with the name of the note that compares.
pub(crate) type Compared = BTreeMap<Flow, Box<str>>;

impl Flows {
    fn show(&mut self, value: Value) {
        self.visible.extend(value.at);
        self.visible.extend(value.of);
        self.compared.extend(value.compared);
    }

    fn test(&mut self, value: &Value) {
        self.compared.extend(value.compared.clone());
    }
}

/// The origin of a value.
#[derive(Clone, Default)]
struct Value {
    /// The value is at one of these paths, so its fields are below them.
    at: BTreeSet<Flow>,
    /// The value is computed from these paths, and so are all of its fields.
    of: BTreeSet<Flow>,
    /// A test of the value compares these paths with data that is no literal.
    compared: Compared,
}

impl Value {
    fn root() -> Self {
        Self {
            at: BTreeSet::from([Flow::new()]),
            ..Self::default()
        }
    }

    fn below(self, step: Option<&Key>) -> Self {
        let longer = |mut path: Flow| {
            path.push(step.cloned());
            path
        };
        Self {
            at: self.at.into_iter().map(longer).collect(),
            ..self
        }
    }

    fn fields(self, keys: &[Key]) -> Self {
        keys.iter().fold(self, |value, key| value.below(Some(key)))
    }

    /// Adds that the value is computed from the whole of another.
    fn add(&mut self, other: Self) {
        self.of.extend(other.at);
        self.of.extend(other.of);
        self.compared.extend(other.compared);
    }

    /// Adds that the note `name` compares everything that the value is computed from.
    fn compare(mut self, name: &str) -> Self {
        let all = self.of.iter().cloned();
        self.compared.extend(all.map(|path| (path, name.into())));
        self
    }

    /// Returns what is left of the value if only its existence, its truth or its size is visible.
    fn tested(self) -> Self {
        Self {
            compared: self.compared,
            ..Self::default()
        }
    }
}

#[derive(Default)]
struct FlowWalk {
    out: Flows,
    /// The variables, by slot.
    vars: Vec<Value>,
    /// The results of the user's notes.
    functions: BTreeMap<Box<str>, Value>,
}

impl FlowWalk {
    fn block(&mut self, body: &Block, dot: &Value) {
        let scope = self.vars.len();
        for stmt in body {
            self.statement(stmt, dot);
        }
        self.vars.truncate(scope);
    }

    fn statement(&mut self, stmt: &Stmt, dot: &Value) {
        match stmt {
            Stmt::Text(..) | Stmt::Break | Stmt::Continue => {}
            Stmt::Own(never) => match *never {},
            // A loop may have used an older variable before this assignment, so the value counts as printed.
            Stmt::Print(expr) | Stmt::Assign(_, expr) => {
                let value = self.value(expr, dot);
                self.out.show(value);
            }
            Stmt::Declare(expr) => {
                let value = self.value(expr, dot);
                self.vars.push(value);
            }
            Stmt::If(branches) => self.branches(branches, dot, false),
            Stmt::With(branches) => self.branches(branches, dot, true),
            Stmt::Range(range) => self.range(range, dot),
        }
    }

    fn branches(&mut self, branches: &Branches, dot: &Value, is_with: bool) {
        let scope = self.vars.len();
        for arm in &branches.arms {
            let test = self.value(&arm.test, dot);
            // The output, or the lack of it, is the result of the test.
            self.out.test(&test);
            match arm.store {
                Store::Nowhere => {}
                Store::Declare => self.vars.push(test.clone()),
                Store::Assign(_) => self.out.show(test.clone()),
            }
            self.block(&arm.body, if is_with { &test } else { dot });
        }
        self.block(&branches.otherwise, dot);
        self.vars.truncate(scope);
    }

    fn range(&mut self, range: &Loop, dot: &Value) {
        let scope = self.vars.len();
        let item = self.value(&range.over, dot).below(None);
        self.out.test(&item);
        // The number of rounds may be the value that the collection is computed from: `until .a`.
        self.out.visible.extend(item.of.iter().cloned());
        match range.vars {
            LoopVars::Nowhere => {}
            LoopVars::Declare { with_key } => {
                if with_key {
                    // Keys and positions. If the collection is computed from other values, they may be too.
                    self.vars.push(Value {
                        at: BTreeSet::new(),
                        ..item.clone()
                    });
                }
                self.vars.push(item.clone());
            }
            LoopVars::Assign { .. } => self.out.show(item.clone()),
        }
        self.block(&range.body, &item);
        self.block(&range.otherwise, dot);
        self.vars.truncate(scope);
    }

    fn value(&mut self, expr: &Expr, dot: &Value) -> Value {
        match &expr.kind {
            ExprKind::Literal(_) => Value::default(),
            ExprKind::Dot => dot.clone(),
            ExprKind::Root => Value::root(),
            ExprKind::Var(slot) => {
                let var = self.vars.get(usize::from(*slot));
                var.cloned().unwrap_or_else(Value::root)
            }
            ExprKind::Field(keys) => dot.clone().fields(keys),
            ExprKind::Within(within) => self.value(&within.0, dot).fields(&within.1),
            ExprKind::Call(call) => self.call(call, dot, None),
            ExprKind::Function(function) => self.function(function),
            ExprKind::Pipe(stages) => self.pipe(stages, dot),
        }
    }

    fn pipe(&mut self, stages: &[Expr], dot: &Value) -> Value {
        let mut piped: Option<Value> = None;
        let mut constant = true;
        for stage in stages {
            let value = match (&stage.kind, piped.take()) {
                (ExprKind::Call(call), piped) => {
                    self.call(call, dot, piped.map(|value| (value, constant)))
                }
                (_, before) => {
                    let mut value = self.value(stage, dot);
                    value.add(before.unwrap_or_default());
                    value
                }
            };
            constant &= is_constant(stage);
            piped = Some(value);
        }
        piped.unwrap_or_default()
    }

    /// Returns the result of a user's note. Each note is analyzed once, regardless of the number of calls.
    fn function(&mut self, function: &Function) -> Value {
        if let Some(known) = self.functions.get(&function.name) {
            return known.clone();
        }
        let mut inner = FlowWalk {
            functions: std::mem::take(&mut self.functions),
            ..FlowWalk::default()
        };
        inner.block(function.template.body(), &Value::root());
        self.functions = inner.functions;
        let mut value = Value {
            at: BTreeSet::new(),
            of: inner.out.visible,
            compared: inner.out.compared,
        };
        // Text with the values of two paths: a test of it depends on both.
        if value.of.len() > 1 {
            value = value.compare(&function.name);
        }
        self.functions.insert(function.name.clone(), value.clone());
        value
    }

    fn call(&mut self, call: &CallExpr, dot: &Value, piped: Option<(Value, bool)>) -> Value {
        let name = call.note.name;
        let mut given = Vec::with_capacity(call.args.len() + 1);
        for (at, arg) in call.args.iter().enumerate() {
            let key = arg.literal().and_then(Node::as_str).map(Key::new);
            let is_open = !is_constant(arg) && call.note.tests_argument(at);
            given.push((self.value(arg, dot), key, is_open));
        }
        let last = call.args.len();
        given.extend(piped.map(|(value, constant)| {
            let is_open = !constant && call.note.tests_argument(last);
            (value, None, is_open)
        }));
        let compares = given.iter().filter(|(.., is_open)| *is_open).count() > 1;
        let mut given = given.into_iter().map(|(value, key, _)| (value, key));
        let (first, _) = given.next().unwrap_or_default();
        if call.note.leads_on() {
            return given.fold(first, |mut value, (other, key)| {
                // The value that is found depends on the key, too.
                let mut by = Value::default();
                by.add(other);
                let by = if compares { by.compare(name) } else { by };
                value.compared.extend(by.compared);
                value.below(key.as_ref())
            });
        }
        if OF_OUTLINES.contains(&name) {
            return Value {
                at: BTreeSet::new(),
                ..first
            };
        }
        let computed = computed(call.note, first, given);
        let computed = if compares {
            computed.compare(name)
        } else {
            computed
        };
        // A test reveals little, unless it compares with a value that another user may choose.
        if call.note.result == notes::NoteType::Bool || name == "typeOf" {
            return computed.tested();
        }
        computed
    }
}

/// Returns the value that a note computes from its arguments, each with its text if it is a literal.
fn computed(
    note: &notes::BuiltInNote,
    first: Value,
    rest: impl Iterator<Item = (Value, Option<Key>)>,
) -> Value {
    let mut value = Value::default();
    let mut rest = rest.peekable();
    if note.reads_parts() {
        let key = rest.peek().and_then(|(_, key)| key.clone());
        for path in note.reads {
            let steps = path.split('.').map(|step| match step {
                "*" => key.clone(),
                step => Some(Key::new(step)),
            });
            value.add(steps.fold(first.clone(), |value, step| value.below(step.as_ref())));
        }
    } else {
        value.add(first);
    }
    for (other, _) in rest {
        value.add(other);
    }
    value
}

/// True if the value of an expression is in the template: a literal, or what notes make of literals.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Call(call) => call.args.iter().all(is_constant),
        ExprKind::Pipe(stages) => stages.iter().all(is_constant),
        ExprKind::Within(within) => is_constant(&within.0),
        ExprKind::Dot
        | ExprKind::Root
        | ExprKind::Var(_)
        | ExprKind::Field(_)
        | ExprKind::Function(_) => false,
    }
}

#[cfg(test)]
mod tests;
