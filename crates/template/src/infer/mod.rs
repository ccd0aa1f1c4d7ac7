//! Infers the types that a template produces, from schemas and notes, and reports what cannot be valid.
//!
//! The walk mirrors the evaluation, with types in place of values. An unknown value may be of any type and every value may
//! be null, so findings hold for every value that fits the schemas.

mod calls;
mod messages;
mod texts;

pub use messages::{explain_no_field, explain_word};
use texts::{alternatives, expression_text};

use std::collections::BTreeMap;

use super::TemplateError;
use super::ast::{Block, Branches, Expr, ExprKind, Loop, LoopVars, Stmt, Store};
use super::functions::Function;
use super::template::Template;
use orkestra_language::diagnostics::{Code, Severity};
use orkestra_language::schema::{Kinds, NoField, Type};
use orkestra_object::value::Key;

/// The result of the inference.
#[derive(Clone, Debug)]
pub struct Inference<'s> {
    /// The type of the result: the expression's own type for a single expression, else text.
    pub gives: Type<'s>,
    /// Problems, in the order of the source.
    pub findings: Vec<(Severity, TemplateError)>,
    /// The expressions that are printed, tested or stored, in the order of the source.
    pub expressions: Vec<TypedExpression>,
}

/// An expression of a template and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedExpression {
    /// The start in the source, in bytes.
    pub offset: usize,
    /// The source text.
    pub source: String,
    /// The type, in words.
    pub type_name: String,
}

impl Template {
    /// Infers the types of all expressions. `root` is the type of the data; `is_listed` also lists the expressions.
    pub fn infer<'s>(&self, root: &Type<'s>, is_listed: bool) -> Inference<'s> {
        let mut infer = Infer {
            source: self.source(),
            root,
            vars: Vec::new(),
            functions: BTreeMap::new(),
            findings: Vec::new(),
            expressions: Vec::new(),
            is_listed,
        };
        let gives = match &**self.body() {
            [Stmt::Print(expr)] => infer.seen(expr, root),
            body => infer.text(body, root),
        };
        let Infer {
            mut findings,
            expressions,
            ..
        } = infer;
        findings.sort_by_key(|(_, found)| found.offset);
        Inference {
            gives,
            findings,
            expressions,
        }
    }
}

struct Infer<'t, 'r, 's> {
    source: &'t str,
    root: &'r Type<'s>,
    /// The types of the variables, by slot.
    vars: Vec<Type<'s>>,
    /// The types of the user's notes called so far.
    functions: BTreeMap<Box<str>, Type<'s>>,
    findings: Vec<(Severity, TemplateError)>,
    expressions: Vec<TypedExpression>,
    is_listed: bool,
}

impl<'s> Infer<'_, '_, 's> {
    /// The type of a user's note: text, except that `true` and `false` are booleans. Problems in the note are reported at
    /// its declaration.
    fn function(&mut self, function: &Function) -> Type<'s> {
        if let Some(known) = self.functions.get(&function.name) {
            return known.clone();
        }
        let mut inner = Infer {
            source: function.template.source(),
            root: self.root,
            vars: Vec::new(),
            functions: std::mem::take(&mut self.functions),
            findings: Vec::new(),
            expressions: Vec::new(),
            is_listed: false,
        };
        let text = match &**function.template.body() {
            [Stmt::Print(expr)] => inner.seen(expr, self.root).may.as_text() | Kinds::BLANK,
            body => inner.text(body, self.root).may,
        };
        let boolean = if text.meets(Kinds::BOOL_TEXT) {
            Kinds::BOOL
        } else {
            Kinds::NONE
        };
        let gives = Type::of(text.without(Kinds::BOOL_TEXT) | boolean);
        self.functions = inner.functions;
        self.functions.insert(function.name.clone(), gives.clone());
        gives
    }

    /// The type of the text that statements produce.
    fn text(&mut self, body: &[Stmt], dot: &Type<'s>) -> Type<'s> {
        let may = self.block(body, dot);
        let mut constants = Vec::new();
        let is_all = alternatives(body, self.source, &mut constants);
        if is_all {
            Type::of_constants(constants)
        } else {
            Type::with_constants(may, constants)
        }
    }

    /// The kinds that the text of a block may parse as.
    fn block(&mut self, block: &[Stmt], dot: &Type<'s>) -> Kinds {
        let scope = self.vars.len();
        let mut may = Kinds::TEXT;
        for stmt in block {
            may = may & self.statement(stmt, dot);
        }
        self.vars.truncate(scope);
        may
    }

    fn statement(&mut self, stmt: &Stmt, dot: &Type<'s>) -> Kinds {
        match stmt {
            Stmt::Text(from, to) => {
                let piece = self.source.get(*from as usize..*to as usize);
                return Kinds::of_text_with(piece.unwrap_or_default());
            }
            Stmt::Break | Stmt::Continue => {}
            Stmt::Own(never) => match *never {},
            Stmt::Print(expr) => {
                self.seen(expr, dot);
            }
            Stmt::Declare(expr) => {
                let given = self.seen(expr, dot);
                self.vars.push(given);
            }
            Stmt::Assign(slot, expr) => {
                let given = self.seen(expr, dot);
                self.assign(*slot, given);
            }
            Stmt::If(branches) => return self.branches(branches, dot, false),
            Stmt::With(branches) => return self.branches(branches, dot, true),
            Stmt::Range(range) => self.range(range, dot),
        }
        Kinds::TEXT
    }

    /// A variable may still hold its earlier value.
    fn assign(&mut self, slot: u16, given: Type<'s>) {
        if let Some(var) = self.vars.get_mut(usize::from(slot)) {
            *var = var.clone().or(given).without_constants();
        }
    }

    fn store(&mut self, store: Store, given: &Type<'s>) {
        match store {
            Store::Nowhere => {}
            Store::Declare => self.vars.push(given.clone()),
            Store::Assign(slot) => self.assign(slot, given.clone()),
        }
    }

    fn branches(&mut self, branches: &Branches, dot: &Type<'s>, is_with: bool) -> Kinds {
        let scope = self.vars.len();
        let mut may = Kinds::NONE;
        for arm in &branches.arms {
            let test = self.seen(&arm.test, dot);
            self.store(arm.store, &test);
            let dot = if is_with { &test } else { dot };
            may = may | self.block(&arm.body, dot);
        }
        may = may | self.block(&branches.otherwise, dot);
        self.vars.truncate(scope);
        may
    }

    fn range(&mut self, range: &Loop, dot: &Type<'s>) {
        let scope = self.vars.len();
        let over = self.seen(&range.over, dot);
        let mut item = over.each();
        let mut key = Type::of(Kinds::NONE);
        if over.may.meets(Kinds::MAP) {
            key = key.or(Type::of(Kinds::TEXT));
        }
        if over.may.meets(Kinds::LIST | Kinds::NUMBER) {
            key = key.or(Type::of(Kinds::INT));
        }
        if over.may.meets(Kinds::NUMBER) {
            let of_rest = over.may.meets(Kinds::LIST | Kinds::MAP);
            let iterations = Type::of(Kinds::INT);
            item = if of_rest {
                item.or(iterations)
            } else {
                iterations
            };
        }
        match range.vars {
            LoopVars::Nowhere => {}
            LoopVars::Declare { with_key } => {
                if with_key {
                    self.vars.push(key);
                }
                self.vars.push(item.clone());
            }
            LoopVars::Assign {
                key: slot,
                item: at,
            } => {
                if let Some(slot) = slot {
                    self.assign(slot, key);
                }
                self.assign(at, item.clone());
            }
        }
        // An assignment in one iteration is visible in the next, before the assignment there.
        let mut assigned = Vec::new();
        assignments(&range.body, &mut assigned);
        for slot in assigned {
            if let Some(var) = self.vars.get_mut(usize::from(slot)) {
                *var = Type::any();
            }
        }
        self.block(&range.body, &item);
        self.block(&range.otherwise, dot);
        self.vars.truncate(scope);
    }

    /// The type of a whole expression, which is also listed.
    fn seen(&mut self, expr: &Expr, dot: &Type<'s>) -> Type<'s> {
        let index = self.expressions.len();
        let given = self.expr(expr, dot);
        if !self.is_listed {
            return given;
        }
        let offset = expr.at as usize;
        let expression = TypedExpression {
            offset,
            source: expression_text(self.source.get(offset..).unwrap_or_default()).to_owned(),
            type_name: given.to_string(),
        };
        self.expressions.insert(index, expression);
        given
    }

    fn expr(&mut self, expr: &Expr, dot: &Type<'s>) -> Type<'s> {
        match &expr.kind {
            ExprKind::Literal(node) => Type::constant(node, expr.at),
            ExprKind::Dot => dot.clone(),
            ExprKind::Root => self.root.clone(),
            ExprKind::Var(slot) => {
                let var = self.vars.get(usize::from(*slot));
                var.unwrap_or(self.root).clone()
            }
            ExprKind::Field(keys) => self.fields(dot.clone(), keys, expr.at),
            ExprKind::Within(within) => {
                let from = self.expr(&within.0, dot);
                self.fields(from, &within.1, expr.at)
            }
            ExprKind::Call(call) => self.call(call, expr.at, dot, None),
            ExprKind::Function(function) => self.function(function),
            ExprKind::Pipe(stages) => self.pipe(stages, dot),
        }
    }

    fn pipe(&mut self, stages: &[Expr], dot: &Type<'s>) -> Type<'s> {
        let mut piped: Option<(u32, Type<'s>)> = None;
        for stage in stages {
            let given = match (&stage.kind, piped.take()) {
                (ExprKind::Call(call), piped) => self.call(call, stage.at, dot, piped),
                _ => self.expr(stage, dot),
            };
            piped = Some((stage.at, given));
        }
        piped.map_or_else(Type::any, |(_, given)| given)
    }

    /// The type at a path of keys. The keys are adjacent in the source, starting at `at`.
    fn fields(&mut self, from: Type<'s>, keys: &[Key], at: u32) -> Type<'s> {
        let mut given = from;
        let mut end = at as usize;
        for (position, key) in keys.iter().enumerate() {
            let is_bare = position == 0 && self.rest(end).starts_with(&**key);
            let start = if is_bare {
                end
            } else {
                let found = self.rest(end).find(&format!(".{key}"));
                found.map_or(end, |dots| end + dots + 1)
            };
            end = start + key.len();
            given = match given.field(key) {
                Ok(below) => below,
                Err(no_field) => {
                    self.no_field(key, &no_field, start);
                    return Type::any();
                }
            };
        }
        given
    }

    fn rest(&self, from: usize) -> &str {
        self.source.get(from..).unwrap_or_default()
    }

    fn no_field(&mut self, key: &str, no_field: &NoField<'_>, offset: usize) {
        let (message, hint) = explain_no_field(key, no_field);
        self.report(Severity::Error, Code::NoSuchField, offset, message, hint);
    }

    fn report(
        &mut self,
        severity: Severity,
        code: Code,
        offset: usize,
        message: String,
        hint: Option<String>,
    ) {
        let found = TemplateError {
            code,
            offset,
            len: 0,
            message,
            hint,
        };
        self.findings.push((severity, found));
    }
}

/// Collects the variables that a body assigns.
fn assignments(body: &Block, slots: &mut Vec<u16>) {
    for stmt in body {
        match stmt {
            Stmt::Assign(slot, _) => slots.push(*slot),
            Stmt::If(branches) | Stmt::With(branches) => {
                for arm in &branches.arms {
                    if let Store::Assign(slot) = arm.store {
                        slots.push(slot);
                    }
                    assignments(&arm.body, slots);
                }
                assignments(&branches.otherwise, slots);
            }
            Stmt::Range(range) => {
                if let LoopVars::Assign { key, item } = range.vars {
                    slots.extend(key);
                    slots.push(item);
                }
                assignments(&range.body, slots);
                assignments(&range.otherwise, slots);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
