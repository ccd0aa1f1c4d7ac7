//! The tree walker: statements, scopes and pipelines, shared by all dialects.

mod go;
mod katalog;
mod range;
mod template;

use std::sync::Arc;

use super::ast::{Arm, Block, Branches, CallExpr, Dialect, Expr, ExprKind, Stmt, Store};
use super::budget::EvalBudget;
use super::error::{EvalError, EvalFailure};
use super::print;
use orkestra_object::value::{Key, Node};

pub(crate) use go::GoHost;
pub use go::{LoopItems, Machine};
pub(crate) use katalog::NoteData;

/// Whether a block continues.
#[derive(PartialEq)]
pub(crate) enum Flow {
    On,
    Break,
    Continue,
}

/// The values and calls of a walker. A method that fails ends the evaluation.
pub(crate) trait Host: Sized {
    /// The dialect of the trees.
    type Dialect: Dialect;
    /// A value. Clones of kept values are cheap.
    type Value: Clone;
    /// The items of a loop, determined once before the first iteration.
    type LoopItems;

    /// Returns the remaining budget.
    fn budget(&mut self) -> &mut EvalBudget;
    /// `$`
    fn root(&self) -> Self::Value;
    /// The value of a missing path.
    fn null(&self) -> Self::Value;
    /// A constant.
    fn literal(&mut self, node: &Arc<Node>) -> Result<Self::Value, EvalFailure>;
    /// Returns the value in a form that is cheap to clone.
    fn keep(&self, value: Self::Value) -> Self::Value;
    /// True if a condition accepts the value as true.
    fn is_true(&self, value: &Self::Value) -> bool;
    /// Returns the value at a path of keys.
    fn fields(&mut self, base: Self::Value, keys: &[Key]) -> Result<Self::Value, EvalFailure>;
    /// Appends the text of a value.
    fn print(&mut self, out: &mut String, value: Self::Value) -> Result<(), EvalFailure>;
    /// Returns the items of a loop, the number of iterations, and the value of the variables before the first iteration.
    fn iterations(
        &mut self,
        over: Self::Value,
        with_key: bool,
    ) -> Result<(Self::Value, Self::LoopItems, u64), EvalFailure>;
    /// Returns the key and the item of an iteration. The key is null if no variable takes it.
    fn turn(
        &mut self,
        over: &Self::Value,
        iterations: &Self::LoopItems,
        turn: u64,
        wants_key: bool,
    ) -> Result<(Self::Value, Self::Value), EvalFailure>;
    /// Evaluates a call.
    fn call(
        eval: &mut Eval<'_, Self>,
        call: &CallExpr<Self::Dialect>,
        at: u32,
        dot: &Self::Value,
        piped: Option<Self::Value>,
    ) -> Result<Self::Value, EvalError>;
    /// Evaluates a named expression.
    fn named(
        &mut self,
        named: &<Self::Dialect as Dialect>::Named,
        at: u32,
    ) -> Result<Self::Value, EvalError>;
    /// Runs a statement that only this dialect has.
    fn own(
        eval: &mut Eval<'_, Self>,
        stmt: &<Self::Dialect as Dialect>::Stmt,
        dot: &Self::Value,
    ) -> Result<(), EvalError>;
    /// Appends text of the source.
    fn append(&mut self, out: &mut String, text: &str) -> Result<(), EvalFailure> {
        print::append(out, text, self.budget())
    }
}

/// One evaluation.
pub(crate) struct Eval<'e, H: Host> {
    source: &'e str,
    host: H,
    /// The variables in scope, by slot.
    vars: Vec<H::Value>,
    out: String,
}

impl<'e, H: Host> Eval<'e, H> {
    pub(crate) fn new(source: &'e str, host: H) -> Self {
        Eval {
            source,
            host,
            vars: Vec::new(),
            out: String::new(),
        }
    }

    /// Returns the same evaluation, appending to a text.
    pub(crate) fn onto(mut self, out: String) -> Self {
        self.out = out;
        self
    }

    /// Returns the text of an expression.
    pub(crate) fn single_text(mut self, expr: &Expr<H::Dialect>) -> Result<String, EvalError> {
        let root = self.host.root();
        self.print(expr, &root)?;
        Ok(self.out)
    }

    /// Returns the text of a template.
    pub(crate) fn text(self, body: &Block<H::Dialect>) -> Result<String, EvalError> {
        let (text, result) = self.run(body);
        result.map(|()| text)
    }

    /// Returns the text of a template, up to the point of failure.
    pub(crate) fn run(mut self, body: &Block<H::Dialect>) -> (String, Result<(), EvalError>) {
        let root = self.host.root();
        let result = self.block(body, &root).map(|_| ());
        (self.out, result)
    }

    fn block(&mut self, body: &Block<H::Dialect>, dot: &H::Value) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let mut flow = Flow::On;
        for stmt in body {
            flow = self.statement(stmt, dot)?;
            if flow != Flow::On {
                break;
            }
        }
        self.vars.truncate(scope);
        Ok(flow)
    }

    fn statement(&mut self, stmt: &Stmt<H::Dialect>, dot: &H::Value) -> Result<Flow, EvalError> {
        match stmt {
            Stmt::Text(from, to) => {
                let text = self.source.get(*from as usize..*to as usize);
                self.append(text.unwrap_or_default())
                    .map_err(|e| e.at(*from))?;
            }
            Stmt::Print(expr) => self.print(expr, dot)?,
            Stmt::Declare(expr) => {
                let value = self.expr(expr, dot)?;
                let value = self.host.keep(value);
                self.vars.push(value);
            }
            Stmt::Assign(slot, expr) => {
                let value = self.expr(expr, dot)?;
                let value = self.host.keep(value);
                self.assign(*slot, value);
            }
            Stmt::If(branches) => return self.nested(branches, dot, false),
            Stmt::With(branches) => return self.nested(branches, dot, true),
            Stmt::Range(range) => return self.range(range, dot),
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Own(own) => H::own(self, own, dot)?,
        }
        Ok(Flow::On)
    }

    fn append(&mut self, text: &str) -> Result<(), EvalFailure> {
        self.host.budget().step(1)?;
        self.host.append(&mut self.out, text)
    }

    fn print(&mut self, expr: &Expr<H::Dialect>, dot: &H::Value) -> Result<(), EvalError> {
        let value = self.expr(expr, dot)?;
        let printed = self.host.print(&mut self.out, value);
        printed.map_err(|e| e.at(expr.at))
    }

    fn assign(&mut self, slot: u16, value: H::Value) {
        if let Some(var) = self.vars.get_mut(usize::from(slot)) {
            *var = value;
        }
    }

    /// Runs `if` and `with`. For `with`, the dot of an arm is the value of its test.
    fn nested(
        &mut self,
        branches: &Branches<H::Dialect>,
        dot: &H::Value,
        with: bool,
    ) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let flow = self.branches(branches, dot, with);
        self.vars.truncate(scope);
        flow
    }

    fn branches(
        &mut self,
        branches: &Branches<H::Dialect>,
        dot: &H::Value,
        with: bool,
    ) -> Result<Flow, EvalError> {
        for arm in &branches.arms {
            let Arm { test, store, body } = arm;
            let value = self.expr(test, dot)?;
            let value = self.host.keep(value);
            match store {
                Store::Nowhere => {}
                Store::Declare => self.vars.push(value.clone()),
                Store::Assign(slot) => self.assign(*slot, value.clone()),
            }
            if self.host.is_true(&value) {
                return self.deeper(test.at, body, if with { &value } else { dot });
            }
        }
        self.deeper(0, &branches.otherwise, dot)
    }

    fn deeper(
        &mut self,
        at: u32,
        body: &Block<H::Dialect>,
        dot: &H::Value,
    ) -> Result<Flow, EvalError> {
        self.host.budget().enter().map_err(|e| e.at(at))?;
        let flow = self.block(body, dot)?;
        self.host.budget().leave();
        Ok(flow)
    }

    fn expr(&mut self, expr: &Expr<H::Dialect>, dot: &H::Value) -> Result<H::Value, EvalError> {
        let at = expr.at;
        self.host.budget().step(1).map_err(|e| e.at(at))?;
        match &expr.kind {
            ExprKind::Literal(node) => self.host.literal(node).map_err(|e| e.at(at)),
            ExprKind::Dot => Ok(dot.clone()),
            ExprKind::Root => Ok(self.host.root()),
            ExprKind::Var(slot) => Ok(self.var(*slot)),
            ExprKind::Field(keys) => self.host.fields(dot.clone(), keys).map_err(|e| e.at(at)),
            ExprKind::Within(within) => {
                let (base, keys) = &**within;
                self.host.budget().enter().map_err(|e| e.at(at))?;
                let base = self.expr(base, dot)?;
                self.host.budget().leave();
                self.host.fields(base, keys).map_err(|e| e.at(at))
            }
            ExprKind::Call(call) => H::call(self, call, at, dot, None),
            ExprKind::Function(function) => self.host.named(function, at),
            ExprKind::Pipe(stages) => {
                let mut piped = None;
                for stage in stages {
                    piped = Some(match (&stage.kind, piped) {
                        (ExprKind::Call(call), Some(piped)) => {
                            self.host.budget().step(1).map_err(|e| e.at(stage.at))?;
                            H::call(self, call, stage.at, dot, Some(piped))?
                        }
                        _ => self.expr(stage, dot)?,
                    });
                }
                Ok(piped.unwrap_or_else(|| self.host.null()))
            }
        }
    }

    fn var(&self, slot: u16) -> H::Value {
        let value = self.vars.get(usize::from(slot));
        value.cloned().unwrap_or_else(|| self.host.null())
    }

    /// Evaluates the arguments, and adds the value of a pipeline.
    fn arguments(
        &mut self,
        args: &[Expr<H::Dialect>],
        dot: &H::Value,
        piped: Option<H::Value>,
    ) -> Result<Vec<H::Value>, EvalError> {
        let mut values = Vec::with_capacity(args.len() + usize::from(piped.is_some()));
        for arg in args {
            values.push(self.expr(arg, dot)?);
        }
        values.extend(piped);
        Ok(values)
    }

    /// Evaluates `and` and `or`: one argument after the other, up to the one that decides.
    fn until(
        &mut self,
        args: &[Expr<H::Dialect>],
        dot: &H::Value,
        piped: Option<H::Value>,
        empty: bool,
    ) -> Result<H::Value, EvalError> {
        let mut last = self.host.null();
        for arg in args {
            last = self.expr(arg, dot)?;
            if self.host.is_true(&last) != empty {
                return Ok(last);
            }
        }
        Ok(piped.unwrap_or(last))
    }
}
