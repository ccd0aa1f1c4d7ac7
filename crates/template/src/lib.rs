//! Go templates, as users write them: `{{ .spec.image | default "nginx" }}`.
//!
//! ```text
//!  text ── lexer, parser ──► statements ── checker ──► Template (shared, immutable)
//!                                                        │ eval(&Data, &mut EvalBudget)
//!                                                        ▼
//!                                               a Node: native or text
//! ```
//!
//! The language is Go's text/template without `define`, `template` and `block`. A Katalog declares [`Functions`]
//! of its own in `notes`, beside the built-in ones. The differences from Go serve operators: a missing value is empty and never
//! an error, numbers print exactly, and one [`EvalBudget`] bounds the time and memory of an evaluation.

mod ast;
mod budget;
mod compile;
mod constants;
mod data;
mod declared;
mod entropy;
mod error;
mod eval;
mod flows;
mod functions;
pub mod go;
mod infer;
mod kro;
mod notes;
mod parse;
mod print;
mod reads;
mod scope;
mod template;
#[cfg(test)]
mod tests;

pub use budget::EvalBudget;
pub use data::Data;
pub use declared::{FunctionPart, FunctionProblem, FunctionSource};
pub use entropy::Entropy;
pub use error::{EvalError, EvalErrorKind, TemplateError};
pub use functions::Functions;
pub use infer::{Inference, TypedExpression};
pub use notes::{NoteDoc, notes, notes_instead, notes_markdown, notes_sample, search_notes};
pub use template::Template;

pub use flows::{Flow, Flows};
pub use infer::{explain_no_field, explain_word};
pub use kro::expression as kro_expression;
pub use notes::is_image_reference;
pub use notes::number::Number;
pub use notes::{does_without, is_added_key};
