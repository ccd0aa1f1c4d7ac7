//! Templates as a whole: parsing, evaluation, notes, budgets, and a comparison with Go.

mod bounds;
mod domains;
mod errors;
mod go;
mod notes;
mod properties;
mod reads;
mod refusals;
mod results;

use super::{Data, EvalBudget, EvalError, Template, TemplateError};
use orkestra_object::value::Node;

/// Parses a template.
fn template(source: &str) -> Template {
    Template::parse(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}"))
}

/// Returns the errors of a source that does not parse.
fn errors(source: &str) -> Vec<TemplateError> {
    Template::parse(source).map_or_else(|errors| errors, |_| panic!("{source} parses"))
}

/// Returns the text of a template for the root data.
pub(crate) fn text(source: &str, root: &Node) -> Result<String, EvalError> {
    template(source).render_text(&Data::of(root), &mut EvalBudget::default())
}

/// Returns the value of a template for the root data.
fn value(source: &str, root: &Node) -> Result<Node, EvalError> {
    let data = Data::of(root);
    let value = template(source).eval(&data, &mut EvalBudget::default())?;
    Ok(value.into_owned())
}

/// Creates a node from a `json!` value.
macro_rules! node {
    ($($json:tt)*) => {
        orkestra_object::value::Node::from(&serde_json::json!($($json)*))
    };
}
pub(crate) use node;
