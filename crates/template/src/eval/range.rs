//! Loops.

use super::super::ast::{Loop, LoopVars};
use super::super::error::EvalError;
use super::{Eval, Flow, Host};

impl<H: Host> Eval<'_, H> {
    /// Runs a `range`. Its variables and a `break` are scoped to it.
    pub(crate) fn range(
        &mut self,
        range: &Loop<H::Dialect>,
        dot: &H::Value,
    ) -> Result<Flow, EvalError> {
        let scope = self.vars.len();
        let at = range.over.at;
        let over = self.expr(&range.over, dot)?;
        let with_key = matches!(
            range.vars,
            LoopVars::Declare { with_key: true } | LoopVars::Assign { key: Some(_), .. }
        );
        let iterations = self.host.iterations(over, with_key);
        let (over, iterations, length) = iterations.map_err(|e| e.at(at))?;
        // Until the first iteration, the variables hold the collection itself.
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
        let flow = match length {
            0 => self.deeper(at, &range.otherwise, dot),
            length => self.iterate(range, &over, (&iterations, length, with_key), scope),
        };
        self.vars.truncate(scope);
        flow
    }

    fn iterate(
        &mut self,
        range: &Loop<H::Dialect>,
        over: &H::Value,
        (iterations, length, with_key): (&H::LoopItems, u64, bool),
        scope: usize,
    ) -> Result<Flow, EvalError> {
        let at = range.over.at;
        for turn in 0..length {
            self.host.budget().step(1).map_err(|e| e.at(at))?;
            let turn = self.host.turn(over, iterations, turn, with_key);
            let (key, item) = turn.map_err(|e| e.at(at))?;
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
            match self.deeper(at, &range.body, &item)? {
                Flow::Break => break,
                Flow::On | Flow::Continue => {}
            }
        }
        Ok(Flow::On)
    }
}
