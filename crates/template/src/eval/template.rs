//! Evaluates a template on data.

use std::borrow::Cow;

use super::super::{Data, EvalBudget, EvalError, Template};
use super::{Eval, NoteData};
use orkestra_object::value::Node;

impl Template {
    /// Evaluates the template. A single expression results in a node of its native type, borrowed from the data if possible;
    /// everything else in text, which is not trimmed.
    ///
    /// A missing path is null, and empty in text.
    ///
    /// # Errors
    /// An exhausted budget, a value that a note rejects, or a value of the wrong type; see
    /// [`EvalErrorKind`](crate::EvalErrorKind).
    pub fn eval<'d>(
        &self,
        data: &Data<'d>,
        budget: &mut EvalBudget,
    ) -> Result<Cow<'d, Node>, EvalError> {
        if let Some(expr) = self.single() {
            return self.within(data, budget, |eval| eval.single(expr));
        }
        let text = self.within(data, budget, |eval| eval.text(self.body()))?;
        Ok(Cow::Owned(Node::from(text)))
    }

    /// Evaluates the template to text, also for a single expression. Lists and maps are printed in Go's form, `[a b]` and
    /// `map[k:v]`.
    ///
    /// # Errors
    /// The errors of [`Template::eval`].
    pub fn render_text(
        &self,
        data: &Data<'_>,
        budget: &mut EvalBudget,
    ) -> Result<String, EvalError> {
        match self.single() {
            Some(expr) => self.within(data, budget, |eval| eval.single_text(expr)),
            None => self.within(data, budget, |eval| eval.text(self.body())),
        }
    }

    /// Runs an evaluation and restores the budget's depth, also after an error.
    fn within<'e, 'd, T>(
        &'e self,
        data: &'e Data<'d>,
        budget: &'e mut EvalBudget,
        run: impl for<'r> FnOnce(Eval<'r, NoteData<'r, 'd>>) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let depth = budget.depth;
        let result = run(Eval::new(self.source(), NoteData::new(data, budget)));
        budget.depth = depth;
        result
    }
}
