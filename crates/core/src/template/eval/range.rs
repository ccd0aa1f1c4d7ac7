//! Loops.

use super::super::ast::{Loop, LoopVars};
use super::super::error::{EvalError, Failure};
use super::super::scope::{Value, copied};
use super::{Eval, Flow};
use crate::value::Node;

impl<'d> Eval<'_, 'd> {
    /// A `range`: its variables end with it, and so does a `break`.
    pub(super) fn range(&mut self, range: &Loop, dot: &Value<'d>) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let at = range.over.at;
        let over = self.expr(&range.over, dot)?;
        let over = self.settled(over).map_err(|e| e.at(at))?.shared();
        // What goes round is what the variables hold as long as there is no turn.
        match range.vars {
            LoopVars::Nowhere => {}
            LoopVars::Declare { with_key } => {
                let count = if with_key { 2 } else { 1 };
                self.vars.resize(scope + count, over.clone());
            }
            LoopVars::Assign { key, item } => {
                for slot in key.into_iter().chain([item]) {
                    self.assign(slot, over.clone());
                }
            }
        }
        let length = length(range, over.node()).map_err(|e| e.at(at))?;
        let flow = match length {
            0 => self.deeper(at, &range.otherwise, dot),
            length => self.iterate(range, &over, length, scope),
        };
        self.vars.truncate(scope);
        flow
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
}

/// How often a loop runs.
fn length(range: &Loop, over: &Node) -> Result<u64, Failure> {
    let with_key = matches!(
        range.vars,
        LoopVars::Declare { with_key: true } | LoopVars::Assign { key: Some(_), .. }
    );
    match over {
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
