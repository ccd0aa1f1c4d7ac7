//! The tree walker.

mod range;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::ast::{Arm, Block, Branches, CallExpr, Expr, Kind, Stmt, Store};
use super::budget::Budget;
use super::error::{EvalError, Failure};
use super::functions::Function;
use super::notes::{Call, Run};
use super::scope::{Value, copied};
use super::{Data, print};
use crate::value::{Key, Node};

/// A note looks at so many bytes of its arguments in one step.
const BYTES_A_STEP: usize = 16;

/// Whether a block goes on.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// One evaluation.
pub(super) struct Eval<'e, 'd> {
    source: &'e str,
    data: &'e Data<'d>,
    budget: &'e mut Budget,
    /// The variables in scope, by slot.
    vars: Vec<Value<'d>>,
    /// The root data as one map, once something asked for it.
    root: OnceCell<Arc<Node>>,
    out: String,
}

impl<'e, 'd> Eval<'e, 'd> {
    pub(super) fn new(source: &'e str, data: &'e Data<'d>, budget: &'e mut Budget) -> Self {
        Eval {
            source,
            data,
            budget,
            vars: Vec::new(),
            root: OnceCell::new(),
            out: String::new(),
        }
    }

    /// The value of an expression.
    pub(super) fn single(mut self, expr: &Expr) -> Result<Cow<'d, Node>, EvalError> {
        let value = self.expr(expr, &Value::Root)?;
        let value = self.settled(value).map_err(|e| e.at(expr.at))?;
        match value {
            Value::Data(node) => Ok(Cow::Borrowed(node)),
            Value::Own(node) => Ok(Cow::Owned(node)),
            value => {
                let node = copied(value.node(), self.budget).map_err(|e| e.at(expr.at))?;
                Ok(Cow::Owned(node))
            }
        }
    }

    /// The text of an expression.
    pub(super) fn single_text(mut self, expr: &Expr) -> Result<String, EvalError> {
        self.print(expr, &Value::Root)?;
        Ok(self.out)
    }

    /// The text of a template.
    pub(super) fn text(mut self, body: &Block) -> Result<String, EvalError> {
        self.block(body, &Value::Root)?;
        Ok(self.out)
    }

    fn block(&mut self, body: &Block, dot: &Value<'d>) -> Result<Flow, EvalError> {
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

    fn statement(&mut self, stmt: &Stmt, dot: &Value<'d>) -> Result<Flow, EvalError> {
        match stmt {
            Stmt::Text(from, to) => {
                let text = self.source.get(*from as usize..*to as usize);
                self.append(text.unwrap_or_default())
                    .map_err(|e| e.at(*from))?;
            }
            Stmt::Print(expr) => self.print(expr, dot)?,
            Stmt::Declare(expr) => {
                let value = self.expr(expr, dot)?.shared();
                self.vars.push(value);
            }
            Stmt::Assign(slot, expr) => {
                let value = self.expr(expr, dot)?.shared();
                self.assign(*slot, value);
            }
            Stmt::If(branches) => return self.nested(branches, dot, false),
            Stmt::With(branches) => return self.nested(branches, dot, true),
            Stmt::Range(range) => return self.range(range, dot),
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn append(&mut self, text: &str) -> Result<(), Failure> {
        self.budget.step(1)?;
        print::append(&mut self.out, text, self.budget)
    }

    fn print(&mut self, expr: &Expr, dot: &Value<'d>) -> Result<(), EvalError> {
        let value = self.expr(expr, dot)?;
        let value = self.settled(value).map_err(|e| e.at(expr.at))?;
        print::print(&mut self.out, value.node(), self.budget).map_err(|e| e.at(expr.at))
    }

    fn assign(&mut self, slot: u16, value: Value<'d>) {
        if let Some(var) = self.vars.get_mut(usize::from(slot)) {
            *var = value;
        }
    }

    /// `if` and `with`; with the latter an arm's dot is its test's value.
    fn nested(
        &mut self,
        branches: &Branches,
        dot: &Value<'d>,
        with: bool,
    ) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let flow = self.branches(branches, dot, with);
        self.vars.truncate(scope);
        flow
    }

    fn branches(
        &mut self,
        branches: &Branches,
        dot: &Value<'d>,
        with: bool,
    ) -> Result<Flow, EvalError> {
        for arm in &branches.arms {
            let Arm { test, store, body } = arm;
            let value = self.expr(test, dot)?.shared();
            match store {
                Store::Nowhere => {}
                Store::Declare => self.vars.push(value.clone()),
                Store::Assign(slot) => self.assign(*slot, value.clone()),
            }
            if !self.is_empty(&value) {
                return self.deeper(test.at, body, if with { &value } else { dot });
            }
        }
        self.deeper(0, &branches.otherwise, dot)
    }

    fn deeper(&mut self, at: u32, body: &Block, dot: &Value<'d>) -> Result<Flow, EvalError> {
        self.budget.enter().map_err(|e| e.at(at))?;
        let flow = self.block(body, dot)?;
        self.budget.leave();
        Ok(flow)
    }

    fn expr(&mut self, expr: &Expr, dot: &Value<'d>) -> Result<Value<'d>, EvalError> {
        let at = expr.at;
        self.budget.step(1).map_err(|e| e.at(at))?;
        match &expr.kind {
            Kind::Literal(node) => Ok(Value::Shared(Arc::clone(node))),
            Kind::Dot => Ok(dot.clone()),
            Kind::Root => Ok(Value::Root),
            Kind::Var(slot) => Ok(self.var(*slot)),
            Kind::Field(keys) => self.fields(dot.clone(), keys).map_err(|e| e.at(at)),
            Kind::Within(within) => {
                let (base, keys) = &**within;
                self.budget.enter().map_err(|e| e.at(at))?;
                let base = self.expr(base, dot)?;
                self.budget.leave();
                self.fields(base, keys).map_err(|e| e.at(at))
            }
            Kind::Call(call) => self.call(call, at, dot, None),
            Kind::Function(function) => self.function(function, at),
            Kind::Pipe(stages) => {
                let mut piped = None;
                for stage in stages {
                    piped = Some(match (&stage.kind, piped) {
                        (Kind::Call(call), Some(piped)) => {
                            self.budget.step(1).map_err(|e| e.at(stage.at))?;
                            self.call(call, stage.at, dot, Some(piped))?
                        }
                        _ => self.expr(stage, dot)?,
                    });
                }
                Ok(piped.unwrap_or(Value::null()))
            }
        }
    }

    /// The text of a note of the user, evaluated on the root data; `true` and `false` are booleans.
    fn function(&mut self, function: &Function, at: u32) -> Result<Value<'d>, EvalError> {
        self.budget.enter().map_err(|e| e.at(at))?;
        let template = &function.template;
        let eval = Eval::new(template.source(), self.data, self.budget);
        let text = eval.text(template.body());
        let text = text.map_err(|error| error.in_note(&function.name, at))?;
        self.budget.leave();
        Ok(match text.trim() {
            "true" => true.into(),
            "false" => false.into(),
            trimmed if trimmed.len() == text.len() => Node::from(text).into(),
            trimmed => Node::from(trimmed).into(),
        })
    }

    fn fields(&mut self, base: Value<'d>, keys: &[Key]) -> Result<Value<'d>, Failure> {
        base.fields(keys, self.data, self.budget)
    }

    fn var(&self, slot: u16) -> Value<'d> {
        let value = self.vars.get(usize::from(slot));
        value.cloned().unwrap_or(Value::null())
    }

    fn call(
        &mut self,
        call: &CallExpr,
        at: u32,
        dot: &Value<'d>,
        piped: Option<Value<'d>>,
    ) -> Result<Value<'d>, EvalError> {
        self.budget.enter().map_err(|e| e.at(at))?;
        let result = match call.note.run {
            Run::Until { empty } => self.until(call, dot, piped, empty),
            Run::Eager(run) => self.run(call, at, dot, piped, run, true),
            Run::Leading(run) => self.run(call, at, dot, piped, run, false),
        };
        self.budget.leave();
        result
    }

    /// `and` and `or`: argument for argument, up to the one that decides.
    fn until(
        &mut self,
        call: &CallExpr,
        dot: &Value<'d>,
        piped: Option<Value<'d>>,
        empty: bool,
    ) -> Result<Value<'d>, EvalError> {
        let mut last = Value::null();
        for arg in &call.args {
            last = self.expr(arg, dot)?;
            if self.is_empty(&last) == empty {
                return Ok(last);
            }
        }
        Ok(piped.unwrap_or(last))
    }

    fn run(
        &mut self,
        call: &CallExpr,
        at: u32,
        dot: &Value<'d>,
        piped: Option<Value<'d>>,
        run: for<'c> fn(&mut Call<'c, 'd>) -> Result<Value<'d>, Failure>,
        settle: bool,
    ) -> Result<Value<'d>, EvalError> {
        let note = call.note;
        let mut args = Vec::with_capacity(call.args.len() + usize::from(piped.is_some()));
        for arg in &call.args {
            args.push(self.expr(arg, dot)?);
        }
        args.extend(piped);
        for (position, arg) in args.iter_mut().enumerate() {
            let by_parts = position == 0 && note.reads_parts();
            if settle && !by_parts && matches!(arg, Value::Root) {
                *arg = self.settled(Value::Root).map_err(|e| e.at(at))?;
            }
            let given = arg.node();
            if !note.param(position).accepts(given) {
                let message = note.wrong_argument(position, given);
                let at = call.args.get(position).map_or(at, |arg| arg.at);
                return Err(Failure::wrong_type(message).at(at));
            }
            let bytes = given.as_str().map_or(0, str::len);
            let steps = (bytes / BYTES_A_STEP) as u64;
            self.budget.step(steps).map_err(|e| e.at(at))?;
        }
        let mut call = Call {
            note,
            args: &mut args,
            data: self.data,
            budget: self.budget,
        };
        run(&mut call).map_err(|e| e.at(at))
    }

    fn is_empty(&self, value: &Value<'d>) -> bool {
        match value {
            Value::Root => self.data.iter().len() == 0,
            value => value.node().is_empty_value(),
        }
    }

    /// The value as one node; the root data is copied into one at most once.
    fn settled(&mut self, value: Value<'d>) -> Result<Value<'d>, Failure> {
        let Value::Root = value else {
            return Ok(value);
        };
        if let Some(root) = self.root.get() {
            return Ok(Value::Shared(Arc::clone(root)));
        }
        self.budget.take(self.data.heap_bytes())?;
        let root = self.root.get_or_init(|| Arc::new(self.data.to_node()));
        Ok(Value::Shared(Arc::clone(root)))
    }
}
