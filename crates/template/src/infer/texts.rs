//! The texts of a template: the constant parts of its result, and the source of its expressions.

use crate::Template;
use crate::ast::Stmt;
use orkestra_language::schema::Constant;
use orkestra_object::value::Node;

impl Template {
    /// Two texts that the template can produce: the shortest, with every action empty, and a longer one, with every action
    /// as `filler`. An error that no value can fix is in both.
    pub fn samples(&self, filler: &str) -> [String; 2] {
        ["", filler].map(|filler| {
            let piece = |stmt: &Stmt| match stmt {
                Stmt::Text(from, to) => {
                    let piece = self.source().get(*from as usize..*to as usize);
                    piece.unwrap_or_default().to_owned()
                }
                _ => filler.to_owned(),
            };
            self.body().iter().map(piece).collect()
        })
    }
}

/// Collects the constant texts that a body may produce as a whole, those of the arms of a single `if`. Returns whether these
/// are all.
pub(crate) fn alternatives(body: &[Stmt], source: &str, constants: &mut Vec<Constant>) -> bool {
    match body {
        [] => true,
        [Stmt::Text(from, to)] => {
            let text = source.get(*from as usize..*to as usize).unwrap_or_default();
            let blank = text.len() - text.trim_start().len();
            constants.push(Constant {
                node: Node::from(text),
                at: *from + u32::try_from(blank).unwrap_or_default(),
            });
            true
        }
        [Stmt::Print(expr)] => match expr.literal() {
            Some(node) => {
                constants.push(Constant {
                    node: Node::from(&*node.to_text()),
                    at: expr.at,
                });
                true
            }
            None => false,
        },
        [Stmt::If(branches) | Stmt::With(branches)] => {
            let mut is_all = true;
            for arm in &branches.arms {
                is_all &= alternatives(&arm.body, source, constants);
            }
            is_all & alternatives(&branches.otherwise, source, constants)
        }
        _ => false,
    }
}

/// Returns the expression at the start of a text, up to the end of its action.
pub(crate) fn expression_text(text: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some('"' | '\'') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if text[at..].starts_with("}}") => {
                let inside = text[..at].trim_end();
                // A trim marker.
                return inside.strip_suffix(" -").map_or(inside, str::trim_end);
            }
            _ => {}
        }
    }
    text
}
