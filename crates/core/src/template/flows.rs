//! Determines which parts of the root data can appear in the result of a template.
//!
//! [`reads`](super::reads) lists everything that an evaluation reads; this lists what may be visible in its result. It
//! leaves out values that are only tested (`if`, `and`, `empty` and similar) and follows the items of a `range` one by one.
//! A value that cannot be followed counts as a whole, so the list is complete.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Block, Branches, CallExpr, Expr, Kind, Loop, LoopVars, Stmt, Store};
use super::functions::Function;
use super::notes;
use super::template::Template;
use crate::value::{Key, Node};

/// Notes that return only the number of parts of a value or their names, never the parts.
const OF_OUTLINES: [&str; 4] = ["len", "listLen", "mapKeys", "typeOf"];

/// A path of the root data. `None` stands for any item of a list and any key of a map.
pub(crate) type Flow = Vec<Option<Key>>;

impl Template {
    /// Returns the paths whose values may be in the result, without duplicates. The empty path is all of the data.
    /// Everything below a path may be in the result as well.
    pub(crate) fn flows(&self) -> BTreeSet<Flow> {
        let mut walk = FlowWalk::default();
        walk.block(self.body(), &Value::root());
        walk.out
    }
}

/// The origin of a value.
#[derive(Clone, Default)]
struct Value {
    /// The value is at one of these paths, so its fields are below them.
    at: BTreeSet<Flow>,
    /// The value is computed from these paths, and so are all of its fields.
    of: BTreeSet<Flow>,
}

impl Value {
    fn root() -> Self {
        Self {
            at: BTreeSet::from([Flow::new()]),
            of: BTreeSet::new(),
        }
    }

    fn below(self, step: Option<&Key>) -> Self {
        let longer = |mut path: Flow| {
            path.push(step.cloned());
            path
        };
        Self {
            at: self.at.into_iter().map(longer).collect(),
            of: self.of,
        }
    }

    fn fields(self, keys: &[Key]) -> Self {
        keys.iter().fold(self, |value, key| value.below(Some(key)))
    }

    /// Returns the paths that the whole value depends on.
    fn whole(self) -> BTreeSet<Flow> {
        let mut all = self.of;
        all.extend(self.at);
        all
    }
}

#[derive(Default)]
struct FlowWalk {
    out: BTreeSet<Flow>,
    /// The variables, by slot.
    vars: Vec<Value>,
    /// The results of the user's notes.
    functions: BTreeMap<Box<str>, BTreeSet<Flow>>,
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
                self.out.extend(value.whole());
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
            match arm.store {
                Store::Nowhere => {}
                Store::Declare => self.vars.push(test.clone()),
                Store::Assign(_) => self.out.extend(test.clone().whole()),
            }
            self.block(&arm.body, if is_with { &test } else { dot });
        }
        self.block(&branches.otherwise, dot);
        self.vars.truncate(scope);
    }

    fn range(&mut self, range: &Loop, dot: &Value) {
        let scope = self.vars.len();
        let item = self.value(&range.over, dot).below(None);
        match range.vars {
            LoopVars::Nowhere => {}
            LoopVars::Declare { with_key } => {
                if with_key {
                    // Keys and positions. If the collection is computed from other values, they may be too.
                    self.vars.push(Value {
                        at: BTreeSet::new(),
                        of: item.of.clone(),
                    });
                }
                self.vars.push(item.clone());
            }
            LoopVars::Assign { .. } => self.out.extend(item.clone().whole()),
        }
        self.block(&range.body, &item);
        self.block(&range.otherwise, dot);
        self.vars.truncate(scope);
    }

    fn value(&mut self, expr: &Expr, dot: &Value) -> Value {
        match &expr.kind {
            Kind::Literal(_) => Value::default(),
            Kind::Dot => dot.clone(),
            Kind::Root => Value::root(),
            Kind::Var(slot) => {
                let var = self.vars.get(usize::from(*slot));
                var.cloned().unwrap_or_else(Value::root)
            }
            Kind::Field(keys) => dot.clone().fields(keys),
            Kind::Within(within) => self.value(&within.0, dot).fields(&within.1),
            Kind::Call(call) => self.call(call, dot, None),
            Kind::Function(function) => Value {
                at: BTreeSet::new(),
                of: self.function(function),
            },
            Kind::Pipe(stages) => {
                let mut piped = None;
                for stage in stages {
                    let value = match (&stage.kind, piped.take()) {
                        (Kind::Call(call), piped) => self.call(call, dot, piped),
                        (_, before) => {
                            let mut value = self.value(stage, dot);
                            value.of.extend(before.unwrap_or_default().whole());
                            value
                        }
                    };
                    piped = Some(value);
                }
                piped.unwrap_or_default()
            }
        }
    }

    /// Returns the paths in the result of a user's note. Each note is analyzed once, regardless of the number of calls.
    fn function(&mut self, function: &Function) -> BTreeSet<Flow> {
        if let Some(known) = self.functions.get(&function.name) {
            return known.clone();
        }
        let mut inner = FlowWalk {
            functions: std::mem::take(&mut self.functions),
            ..FlowWalk::default()
        };
        inner.block(function.template.body(), &Value::root());
        self.functions = inner.functions;
        self.functions
            .insert(function.name.clone(), inner.out.clone());
        inner.out
    }

    fn call(&mut self, call: &CallExpr, dot: &Value, piped: Option<Value>) -> Value {
        let mut given: Vec<(Value, Option<Key>)> = Vec::with_capacity(call.args.len() + 1);
        for arg in &call.args {
            let key = arg.literal().and_then(Node::as_str).map(Key::new);
            given.push((self.value(arg, dot), key));
        }
        let open = call.args.iter().filter(|arg| arg.literal().is_none());
        let open = open.count() + usize::from(piped.is_some());
        given.extend(piped.map(|value| (value, None)));
        // A test reveals little, unless it compares with a value that somebody else may choose.
        let tests = call.note.result == notes::Type::Bool && open <= 1;
        if tests || OF_OUTLINES.contains(&call.note.name) {
            return Value::default();
        }
        let mut given = given.into_iter();
        let (first, rest) = (given.next().unwrap_or_default().0, given);
        if call.note.leads_on() {
            return rest.fold(first, |value, (_, key)| value.below(key.as_ref()));
        }
        let mut of = BTreeSet::new();
        if call.note.reads_parts() {
            let rest: Vec<_> = rest.collect();
            let key = rest.first().and_then(|(_, key)| key.clone());
            for path in call.note.reads {
                let steps = path.split('.').map(|step| match step {
                    "*" => key.clone(),
                    step => Some(Key::new(step)),
                });
                let part = steps.fold(first.clone(), |value, step| value.below(step.as_ref()));
                of.extend(part.whole());
            }
            of.extend(rest.into_iter().flat_map(|(value, _)| value.whole()));
        } else {
            of.extend(first.whole());
            of.extend(rest.flat_map(|(value, _)| value.whole()));
        }
        Value {
            at: BTreeSet::new(),
            of,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(source: &str) -> Vec<String> {
        let template = Template::parse(source).unwrap();
        let word = |flow: Flow| {
            let steps = flow.iter();
            let steps = steps.map(|step| step.as_ref().map_or("*", |key| key));
            steps.collect::<Vec<_>>().join(".")
        };
        template.flows().into_iter().map(word).collect()
    }

    #[test]
    fn what_is_printed_or_made_into_something_is_in_the_result() {
        for (source, expected) in [
            ("{{ .a.b }}", &["a.b"][..]),
            ("{{ .a.b | toUpper | trimSpace }}", &["a.b"]),
            ("{{ printf \"%s-%s\" .a .b }}", &["a", "b"]),
            ("{{ $x := .a }}{{ $x.b }}", &["a.b"]),
            ("{{ with .a }}{{ .b }}{{ end }}", &["a.b"]),
            ("{{ range .a }}{{ .b }}{{ end }}", &["a.*.b"]),
            ("{{ range $k, $v := .a }}{{ $v }}{{ end }}", &["a.*"]),
            ("{{ index .a \"b\" .c }}", &["a.b.*"]),
            ("{{ .a | default .b }}", &["a", "b"]),
            (
                "{{ $x := \"\" }}{{ range .a }}{{ $x = .b }}{{ end }}",
                &["a.*.b"],
            ),
            ("{{ if eq .a .b }}x{{ end }}{{ eq .a .b }}", &["a", "b"]),
            ("{{ toJson . }}", &[""]),
        ] {
            assert_eq!(flows(source), expected, "{source}");
        }
    }

    #[test]
    fn what_is_only_tested_or_counted_is_not() {
        for source in [
            "{{ if .a }}yes{{ else }}no{{ end }}",
            "{{ if eq .a .b }}yes{{ end }}",
            "{{ empty .a }}",
            "{{ eq .a \"x\" }}",
            "{{ .a | empty }}",
            "{{ len .a }}",
            "{{ range $k, $v := .a }}{{ $k }}{{ end }}",
            "{{ with .a }}there{{ end }}",
        ] {
            assert_eq!(flows(source), [""; 0], "{source}");
        }
    }
}
