//! The values and the notes of Katalogs.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::super::ast::{CallExpr, Expr, Katalog};
use super::super::budget::EvalBudget;
use super::super::error::{EvalError, EvalFailure};
use super::super::functions::Function;
use super::super::notes::{BuiltInNote, NoteBody, NoteCall};
use super::super::scope::{Value, copied};
use super::super::{Data, print};
use super::{Eval, Host};
use orkestra_object::value::{Key, Node};

/// The bytes of its arguments that a note processes per step.
const BYTES_A_STEP: usize = 16;

/// The data of one evaluation.
pub(crate) struct NoteData<'e, 'd> {
    data: &'e Data<'d>,
    budget: &'e mut EvalBudget,
    /// The root data as one map, built on first use.
    root: OnceCell<Arc<Node>>,
}

impl<'e, 'd> NoteData<'e, 'd> {
    pub(crate) fn new(data: &'e Data<'d>, budget: &'e mut EvalBudget) -> Self {
        NoteData {
            data,
            budget,
            root: OnceCell::new(),
        }
    }

    fn is_empty(&self, value: &Value<'d>) -> bool {
        match value {
            Value::Root => self.data.iter().len() == 0,
            value => value.node().is_empty_value(),
        }
    }

    /// Returns the value as one node. The root data is copied into a node at most once.
    fn settled(&mut self, value: Value<'d>) -> Result<Value<'d>, EvalFailure> {
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

    /// Checks the type of an argument and charges for its bytes.
    fn admit(
        &mut self,
        note: &BuiltInNote,
        position: usize,
        arg: &mut Value<'d>,
        settle: bool,
    ) -> Result<(), EvalFailure> {
        let by_parts = position == 0 && note.reads_parts();
        if settle && !by_parts && matches!(arg, Value::Root) {
            *arg = self.settled(Value::Root)?;
        }
        let given = arg.node();
        if !note.param(position).accepts(given) {
            return Err(EvalFailure::wrong_type(
                note.wrong_argument(position, given),
            ));
        }
        let bytes = given.as_str().map_or(0, str::len);
        self.budget.step((bytes / BYTES_A_STEP) as u64)
    }
}

impl<'d> Eval<'_, NoteData<'_, 'd>> {
    /// Returns the value of an expression.
    pub(crate) fn single(mut self, expr: &Expr) -> Result<Cow<'d, Node>, EvalError> {
        let value = self.expr(expr, &Value::Root)?;
        let value = self.host.settled(value).map_err(|e| e.at(expr.at))?;
        match value {
            Value::Data(node) => Ok(Cow::Borrowed(node)),
            Value::Own(node) => Ok(Cow::Owned(node)),
            value => {
                let node = copied(value.node(), self.host.budget).map_err(|e| e.at(expr.at))?;
                Ok(Cow::Owned(node))
            }
        }
    }

    fn note(
        &mut self,
        call: &CallExpr,
        at: u32,
        dot: &Value<'d>,
        piped: Option<Value<'d>>,
        run: for<'c> fn(&mut NoteCall<'c, 'd>) -> Result<Value<'d>, EvalFailure>,
        settle: bool,
    ) -> Result<Value<'d>, EvalError> {
        let note = call.note;
        let mut args = self.arguments(&call.args, dot, piped)?;
        for (position, arg) in args.iter_mut().enumerate() {
            let is_given = self.host.admit(note, position, arg, settle);
            is_given.map_err(|e| {
                // A wrong type is reported at the argument, an exhausted budget at the call.
                let own = call.args.get(position).map_or(at, |arg| arg.at);
                let place = if e.is_type() { own } else { at };
                e.at(place)
            })?;
        }
        let mut call = NoteCall {
            note,
            args: &mut args,
            data: self.host.data,
            budget: self.host.budget,
        };
        run(&mut call).map_err(|e| e.at(at))
    }
}

impl<'d> Host for NoteData<'_, 'd> {
    type Dialect = Katalog;
    type Value = Value<'d>;
    type LoopItems = ();

    fn budget(&mut self) -> &mut EvalBudget {
        self.budget
    }

    fn root(&self) -> Value<'d> {
        Value::Root
    }

    fn null(&self) -> Value<'d> {
        Value::null()
    }

    fn literal(&mut self, node: &Arc<Node>) -> Result<Value<'d>, EvalFailure> {
        Ok(Value::Shared(Arc::clone(node)))
    }

    fn keep(&self, value: Value<'d>) -> Value<'d> {
        value.shared()
    }

    fn is_true(&self, value: &Value<'d>) -> bool {
        !self.is_empty(value)
    }

    fn fields(&mut self, base: Value<'d>, keys: &[Key]) -> Result<Value<'d>, EvalFailure> {
        base.fields(keys, self.data, self.budget)
    }

    fn print(&mut self, out: &mut String, value: Value<'d>) -> Result<(), EvalFailure> {
        let value = self.settled(value)?;
        print::print(out, value.node(), self.budget)
    }

    fn iterations(
        &mut self,
        over: Value<'d>,
        with_key: bool,
    ) -> Result<(Value<'d>, (), u64), EvalFailure> {
        let over = self.settled(over)?.shared();
        let length = length(with_key, over.node())?;
        Ok((over, (), length))
    }

    fn turn(
        &mut self,
        over: &Value<'d>,
        (): &(),
        turn: u64,
        wants_key: bool,
    ) -> Result<(Value<'d>, Value<'d>), EvalFailure> {
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

    fn call(
        eval: &mut Eval<'_, Self>,
        call: &CallExpr,
        at: u32,
        dot: &Value<'d>,
        piped: Option<Value<'d>>,
    ) -> Result<Value<'d>, EvalError> {
        eval.host.budget.enter().map_err(|e| e.at(at))?;
        let result = match call.note.run {
            NoteBody::Until { empty } => eval.until(&call.args, dot, piped, empty),
            NoteBody::Eager(run) => eval.note(call, at, dot, piped, run, true),
            NoteBody::Leading(run) => eval.note(call, at, dot, piped, run, false),
        };
        eval.host.budget.leave();
        result
    }

    /// Evaluates a user's note on the root data. `true` and `false` become booleans, everything else is text.
    fn named(&mut self, function: &Arc<Function>, at: u32) -> Result<Value<'d>, EvalError> {
        self.budget.enter().map_err(|e| e.at(at))?;
        let template = &function.template;
        let eval = Eval::new(template.source(), NoteData::new(self.data, self.budget));
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

    fn own(
        _: &mut Eval<'_, Self>,
        stmt: &std::convert::Infallible,
        _: &Value<'d>,
    ) -> Result<(), EvalError> {
        match *stmt {}
    }
}

/// Returns the number of iterations of a loop.
fn length(with_key: bool, over: &Node) -> Result<u64, EvalFailure> {
    match over {
        Node::Null => Ok(0),
        Node::List(items) => Ok(items.len() as u64),
        Node::Map(map) => Ok(map.len() as u64),
        Node::Int(_) | Node::UInt(_) if with_key => Err(EvalFailure::wrong_type(
            "`range` over an integer has one variable, not two",
        )),
        Node::Int(n) => Ok(u64::try_from(*n).unwrap_or(0)),
        Node::UInt(n) => Ok(*n),
        node => {
            let name = node.type_name();
            let message = format!("`range` goes over a list, a map or an integer, not {name}");
            Err(EvalFailure::wrong_type(message))
        }
    }
}
