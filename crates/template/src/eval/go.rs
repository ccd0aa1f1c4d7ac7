//! The walker over the values of a [`Machine`].

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use super::super::EvalBudget;
use super::super::ast::go::{Callee, Go, Invocation};
use super::super::ast::{CallExpr, Expr, ExprKind};
use super::super::error::{EvalError, EvalFailure};
use super::{Eval, Host};
use orkestra_object::value::{Key, Node};

/// The values and functions that a template of this dialect runs on.
///
/// A method that fails stops the template; the caller adds the position.
pub trait Machine {
    /// A function, resolved during parsing.
    type Function: fmt::Debug + Clone + 'static;
    /// A value. Clones are cheap.
    type Value: Clone;

    /// Returns the remaining budget.
    fn budget(&mut self) -> &mut EvalBudget;
    /// A constant.
    fn literal(&mut self, node: &Node) -> Result<Self::Value, EvalFailure>;
    /// The value for nothing, such as the dot of a `template` without an argument.
    fn nothing(&self) -> Self::Value;
    /// True if a condition accepts the value as true.
    fn is_true(&self, value: &Self::Value) -> bool;
    /// Returns the value at a path of keys.
    fn fields(&mut self, base: Self::Value, keys: &[Key]) -> Result<Self::Value, EvalFailure>;
    /// Calls a method.
    fn method(
        &mut self,
        base: Self::Value,
        name: &Key,
        args: Vec<Self::Value>,
    ) -> Result<Self::Value, EvalFailure>;
    /// Calls a function.
    fn call(
        &mut self,
        function: &Self::Function,
        args: Vec<Self::Value>,
    ) -> Result<Self::Value, EvalFailure>;
    /// Appends the text of a value.
    fn print(&mut self, out: &mut String, value: &Self::Value) -> Result<(), EvalFailure>;
    /// Appends text of the source.
    fn append(&mut self, out: &mut String, text: &str) -> Result<(), EvalFailure>;
    /// Appends the text of a named template.
    fn invoke(&mut self, out: &mut String, name: &str, dot: Self::Value)
    -> Result<(), EvalFailure>;
    /// Returns the keys and items that a `range` iterates over, in order. `with_key` is true if the loop has a variable for
    /// the key.
    fn items(
        &mut self,
        over: &Self::Value,
        with_key: bool,
    ) -> Result<LoopItems<Self::Value>, EvalFailure>;
}

/// The keys and items of a loop, in order.
pub type LoopItems<V> = Vec<(V, V)>;

/// One evaluation on a machine.
pub(crate) struct GoHost<'m, M: Machine> {
    machine: &'m mut M,
    root: M::Value,
}

impl<'m, M: Machine> GoHost<'m, M> {
    pub(crate) fn new(machine: &'m mut M, root: M::Value) -> Self {
        GoHost { machine, root }
    }
}

impl<M: Machine> Eval<'_, GoHost<'_, M>> {
    fn callee(
        &mut self,
        call: &CallExpr<Go<M::Function>>,
        at: u32,
        dot: &M::Value,
        piped: Option<M::Value>,
    ) -> Result<M::Value, EvalError> {
        match &call.note {
            Callee::Until { empty } => self.until(&call.args, dot, piped, *empty),
            Callee::Function(function) => {
                let args = self.arguments(&call.args, dot, piped)?;
                let result = self.host.machine.call(function, args);
                result.map_err(|e| e.at(at))
            }
            Callee::Method(chain) => {
                let (base, keys) = self.base(chain, dot)?;
                let Some((name, before)) = keys.split_last() else {
                    return Ok(base);
                };
                let machine = &mut *self.host.machine;
                let base = machine.fields(base, before).map_err(|e| e.at(at))?;
                let args = self.arguments(&call.args, dot, piped)?;
                let result = self.host.machine.method(base, name, args);
                result.map_err(|e| e.at(at))
            }
        }
    }

    /// Splits a chain of fields into its base and the fields.
    fn base<'t>(
        &mut self,
        chain: &'t Expr<Go<M::Function>>,
        dot: &M::Value,
    ) -> Result<(M::Value, &'t [Key]), EvalError> {
        match &chain.kind {
            ExprKind::Field(keys) => Ok((dot.clone(), keys)),
            ExprKind::Within(within) => Ok((self.expr(&within.0, dot)?, &within.1)),
            _ => Ok((self.expr(chain, dot)?, &[])),
        }
    }
}

impl<M: Machine> Host for GoHost<'_, M> {
    type Dialect = Go<M::Function>;
    type Value = M::Value;
    type LoopItems = Vec<(M::Value, M::Value)>;

    fn budget(&mut self) -> &mut EvalBudget {
        self.machine.budget()
    }

    fn root(&self) -> M::Value {
        self.root.clone()
    }

    fn null(&self) -> M::Value {
        self.machine.nothing()
    }

    fn literal(&mut self, node: &Arc<Node>) -> Result<M::Value, EvalFailure> {
        self.machine.literal(node)
    }

    fn keep(&self, value: M::Value) -> M::Value {
        value
    }

    fn is_true(&self, value: &M::Value) -> bool {
        self.machine.is_true(value)
    }

    fn fields(&mut self, base: M::Value, keys: &[Key]) -> Result<M::Value, EvalFailure> {
        self.machine.fields(base, keys)
    }

    fn print(&mut self, out: &mut String, value: M::Value) -> Result<(), EvalFailure> {
        self.machine.print(out, &value)
    }

    fn append(&mut self, out: &mut String, text: &str) -> Result<(), EvalFailure> {
        self.machine.append(out, text)
    }

    fn iterations(
        &mut self,
        over: M::Value,
        with_key: bool,
    ) -> Result<(M::Value, Self::LoopItems, u64), EvalFailure> {
        let iterations = self.machine.items(&over, with_key)?;
        let length = iterations.len() as u64;
        Ok((over, iterations, length))
    }

    fn turn(
        &mut self,
        _: &M::Value,
        iterations: &Self::LoopItems,
        turn: u64,
        _: bool,
    ) -> Result<(M::Value, M::Value), EvalFailure> {
        let turn = usize::try_from(turn)
            .ok()
            .and_then(|turn| iterations.get(turn));
        let nothing = || (self.machine.nothing(), self.machine.nothing());
        Ok(turn.cloned().unwrap_or_else(nothing))
    }

    fn call(
        eval: &mut Eval<'_, Self>,
        call: &CallExpr<Self::Dialect>,
        at: u32,
        dot: &M::Value,
        piped: Option<M::Value>,
    ) -> Result<M::Value, EvalError> {
        eval.host.budget().enter().map_err(|e| e.at(at))?;
        let result = eval.callee(call, at, dot, piped);
        eval.host.budget().leave();
        result
    }

    fn named(&mut self, named: &Infallible, _: u32) -> Result<M::Value, EvalError> {
        match *named {}
    }

    fn own(
        eval: &mut Eval<'_, Self>,
        invocation: &Invocation<M::Function>,
        dot: &M::Value,
    ) -> Result<(), EvalError> {
        let at = invocation.at;
        let dot = match &invocation.dot {
            Some(expr) => eval.expr(expr, dot)?,
            None => eval.host.machine.nothing(),
        };
        eval.host.budget().enter().map_err(|e| e.at(at))?;
        let Eval { host, out, .. } = eval;
        let invoked = host.machine.invoke(out, &invocation.name, dot);
        invoked.map_err(|e| e.at(at))?;
        eval.host.budget().leave();
        Ok(())
    }
}
