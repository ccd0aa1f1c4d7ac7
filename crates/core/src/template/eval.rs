//! The tree walker.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::ast::{Arm, Block, Branches, CallExpr, Expr, Kind, Loop, LoopVars, Stmt, Store};
use super::budget::Budget;
use super::error::{EvalError, Failure};
use super::notes::{Call, Run};
use super::scope::{Value, copied};
use super::{Data, print};
use crate::value::{Key, Node};

/// A note looks at so many bytes of its arguments in one step.
const BYTES_A_STEP: usize = 64;

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

    fn range(&mut self, range: &Loop, dot: &Value<'d>) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let at = range.over.at;
        let over = self.expr(&range.over, dot)?;
        let over = self.settled(over).map_err(|e| e.at(at))?.shared();
        if let LoopVars::Declare { with_key } = range.vars {
            let count = if with_key { 2 } else { 1 };
            self.vars.resize(scope + count, over.clone());
        }
        let length = self.length(range, &over).map_err(|e| e.at(at))?;
        let flow = match length {
            0 => self.deeper(at, &range.otherwise, dot),
            length => self.iterate(range, &over, length, scope),
        };
        self.vars.truncate(scope);
        flow
    }

    /// How often a loop runs.
    fn length(&self, range: &Loop, over: &Value<'d>) -> Result<u64, Failure> {
        let with_key = matches!(
            range.vars,
            LoopVars::Declare { with_key: true } | LoopVars::Assign { key: Some(_), .. }
        );
        match over.node() {
            Node::Null => Ok(0),
            Node::List(items) => Ok(items.len() as u64),
            Node::Map(map) => Ok(map.len() as u64),
            Node::Int(_) | Node::UInt(_) if with_key => Err(Failure::wrong_type(
                "`range` over an integer has one variable, not two",
            )),
            Node::Int(n) => Ok(u64::try_from(*n).unwrap_or(0)),
            Node::UInt(n) => Ok(*n),
            node => {
                let name = node.type_name();
                let message = format!("`range` goes over a list, a map or an integer, not {name}");
                Err(Failure::wrong_type(message))
            }
        }
    }

    fn iterate(
        &mut self,
        range: &Loop,
        over: &Value<'d>,
        length: u64,
        scope: usize,
    ) -> Result<Flow, EvalError> {
        let at = range.over.at;
        for turn in 0..length {
            self.budget.step(1).map_err(|e| e.at(at))?;
            let (key, item) = self.turn(range, over, turn).map_err(|e| e.at(at))?;
            match range.vars {
                LoopVars::Nowhere => {}
                LoopVars::Declare { with_key } => {
                    if let (true, Some(slot)) = (with_key, self.vars.get_mut(scope)) {
                        *slot = key;
                    }
                    if let Some(slot) = self.vars.get_mut(scope + usize::from(with_key)) {
                        *slot = item.clone();
                    }
                }
                LoopVars::Assign {
                    key: slot,
                    item: item_slot,
                } => {
                    if let Some(slot) = slot {
                        self.assign(slot, key);
                    }
                    self.assign(item_slot, item.clone());
                }
            }
            if self.deeper(at, &range.body, &item)? == Flow::Break {
                break;
            }
        }
        Ok(Flow::On)
    }

    /// The key and the item of one turn of a loop. The key is null where no variable takes it.
    fn turn(
        &mut self,
        range: &Loop,
        over: &Value<'d>,
        turn: u64,
    ) -> Result<(Value<'d>, Value<'d>), Failure> {
        let wants_key = !matches!(
            range.vars,
            LoopVars::Nowhere
                | LoopVars::Declare { with_key: false }
                | LoopVars::Assign { key: None, .. }
        );
        let position = usize::try_from(turn).unwrap_or(usize::MAX);
        let number = Node::from(turn);
        let key = match over.node() {
            Node::Map(map) if wants_key => match map.nth(position) {
                Some((key, _)) => {
                    self.budget.take(key.len())?;
                    Value::from(Node::from(key.as_str())).shared()
                }
                None => Value::null(),
            },
            _ if wants_key => Value::from(number.clone()),
            _ => Value::null(),
        };
        let item = match over {
            Value::Data(Node::List(items)) => {
                items.get(position).map_or(Value::null(), Value::Data)
            }
            Value::Data(Node::Map(map)) => map
                .nth(position)
                .map_or(Value::null(), |(_, item)| Value::Data(item)),
            over => match over.node() {
                Node::List(items) => match items.get(position) {
                    Some(item) => Value::from(copied(item, self.budget)?).shared(),
                    None => Value::null(),
                },
                Node::Map(map) => match map.nth(position) {
                    Some((_, item)) => Value::from(copied(item, self.budget)?).shared(),
                    None => Value::null(),
                },
                _ => Value::from(number),
            },
        };
        Ok((key, item))
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
            if settle && matches!(arg, Value::Root) {
                *arg = self.settled(Value::Root).map_err(|e| e.at(at))?;
            }
            let node = arg.node();
            if !note.param(position).accepts(node) {
                let message = note.wrong_argument(position, node);
                let at = call.args.get(position).map_or(at, |arg| arg.at);
                return Err(Failure::wrong_type(message).at(at));
            }
            let bytes = node.as_str().map_or(0, str::len);
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
