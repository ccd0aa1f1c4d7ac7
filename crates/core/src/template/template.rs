//! The template: what is parsed once and evaluated often.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Budget, Data, EvalError, TemplateError};
use crate::value::{Node, Path};

/// A checked template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Template(Arc<str>);

impl Template {
    /// Parses and checks a text.
    pub fn parse(source: &str) -> Result<Template, Vec<TemplateError>> {
        Ok(Template(source.into()))
    }
    /// What is odd, but works.
    pub fn warnings(&self) -> &[TemplateError] {
        &[]
    }
    /// The text.
    pub fn source(&self) -> &str {
        &self.0
    }
    /// The text, if there is no action in it.
    pub fn literal(&self) -> Option<&str> {
        (!self.0.contains("{{")).then_some(&self.0)
    }
    /// Whether the text is one expression.
    pub fn is_single_expression(&self) -> bool {
        false
    }
    /// What is read.
    pub fn reads(&self) -> &[Path] {
        &[]
    }
    /// Evaluates.
    pub fn eval<'d>(
        &self,
        _data: &Data<'d>,
        _budget: &mut Budget,
    ) -> Result<Cow<'d, Node>, EvalError> {
        Ok(Cow::Owned(Node::from(self.source())))
    }
    /// Evaluates to text.
    pub fn render_text(&self, data: &Data<'_>, budget: &mut Budget) -> Result<String, EvalError> {
        Ok(self.eval(data, budget)?.to_text().into_owned())
    }
}
