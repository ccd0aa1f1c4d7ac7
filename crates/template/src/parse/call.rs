//! Calls, and the checks that are possible before they run.

use std::sync::Arc;

use super::super::TemplateError;
use super::super::ast::{CallExpr, Expr, ExprKind, Katalog};
use super::super::functions::Function;
use super::super::notes::{self, BuiltInNote};
use super::expr::ParsedOperand;
use super::lexer::{self, Token};
use super::{Parser, foreign, order, place};
use orkestra_language::diagnostics::Code;

impl Parser<'_, Katalog> {
    /// Parses a note with its arguments. `piped` is true if a pipeline will add one.
    ///
    /// # Errors
    /// An unknown note. Problems with the arguments are reported separately, so that parsing of the action continues.
    pub(crate) fn call(
        &mut self,
        name: Token,
        operands: Vec<ParsedOperand<Katalog>>,
        piped: bool,
    ) -> Result<Expr, TemplateError> {
        let word = self.slice(name);
        let function = self.context.functions.find(word).map(Arc::clone);
        let note = notes::find(word);
        if function.is_none() && note.is_none() {
            // The text after it belongs to the intended name.
            return Err(self.unknown(name));
        }
        let mut args = Vec::with_capacity(operands.len());
        for operand in operands {
            args.push(match operand {
                ParsedOperand::Expr(expr) => expr,
                // A note among the arguments is called without arguments.
                ParsedOperand::Note(inner) => match self.call(inner, Vec::new(), false) {
                    Ok(expr) => expr,
                    Err(error) => {
                        self.report(error);
                        self.nothing()
                    }
                },
            });
        }
        if let Some(function) = function {
            return self.call_function(&function, name, args.len() + usize::from(piped));
        }
        let Some(note) = note else {
            return Err(self.unknown(name));
        };
        let ordered = order::meant(note, &args, piped);
        let is_sound = self.check(note, name, &args, piped, ordered.as_deref());
        if let Some(meant) = ordered.filter(|_| is_sound) {
            self.context
                .warnings
                .push(order::warning(name, &meant, piped));
        }
        if let Some(warning) = order::helms_lookup(note, &args, name) {
            self.context.warnings.push(warning);
        }
        self.context.marks.note(note, name.at);
        if note.name == "default" && !piped && fallback_first(&mut args) {
            self.context.warnings.push(fallback_warning(name));
        }
        Ok(Expr {
            at: place(name.at),
            kind: ExprKind::Call(Box::new(CallExpr {
                note,
                args: args.into(),
            })),
        })
    }

    /// Returns the error for an unknown note.
    fn unknown(&self, name: Token) -> TemplateError {
        let word = self.slice(name);
        if let Some((message, hint)) = notes::refused(word) {
            return TemplateError {
                code: Code::RefusedNote,
                hint: hint.map(str::to_owned),
                ..lexer::error(name.at, name.end, &message)
            };
        }
        let near = || {
            let near = notes::nearest(word, self.context.functions.names())?;
            Some(format!("did you mean `{near}`?"))
        };
        let message = format!("unknown function `{word}`");
        TemplateError {
            code: Code::UnknownNote,
            hint: notes::instead(word)
                .or_else(|| foreign::word(word))
                .map(str::to_owned)
                .or_else(near),
            ..lexer::error(name.at, name.end, &message)
        }
    }

    /// Parses a call of a user's note, which takes no arguments.
    fn call_function(
        &mut self,
        function: &Arc<Function>,
        name: Token,
        given: usize,
    ) -> Result<Expr, TemplateError> {
        let word = self.slice(name);
        if given > 0 {
            let message = format!("`{word}` is a function of the Katalog and takes no arguments");
            return Err(TemplateError {
                code: Code::ArgumentCount,
                ..lexer::error(name.at, name.end, &message)
            });
        }
        self.context.marks.function(function, name.at);
        Ok(Expr {
            at: place(name.at),
            kind: ExprKind::Function(Arc::clone(function)),
        })
    }

    /// Reports a wrong number of arguments and constants of a wrong type; returns true if there are none. `ordered` is the
    /// corrected call if the arguments are in another order.
    fn check(
        &mut self,
        note: &BuiltInNote,
        name: Token,
        args: &[Expr],
        piped: bool,
        ordered: Option<&str>,
    ) -> bool {
        let before = self.errors.len();
        let given = args.len() + usize::from(piped);
        if given < note.min_args || note.max_args.is_some_and(|most| given > most) {
            let error = lexer::error(
                name.at,
                name.end,
                &format!("`{}` takes {}, not {given}", note.name, note.arity()),
            );
            let (example, _) = note.example;
            let hint = Some(format!("for example `{example}`"));
            self.report(TemplateError {
                code: Code::ArgumentCount,
                hint,
                ..error
            });
        }
        for (position, arg) in args.iter().enumerate() {
            let Some(constant) = arg.literal() else {
                continue;
            };
            let wanted = note.param(position);
            if !wanted.accepts(constant) {
                let at = arg.at as usize;
                let message = note.wrong_argument(position, constant);
                self.report(TemplateError {
                    code: Code::ArgumentType,
                    hint: ordered.map(|call| format!("the value comes first: write `{call}`")),
                    ..lexer::error(at, at, &message)
                });
            }
        }
        self.errors.len() == before
    }
}

/// Swaps the arguments of a `default` that is not piped into the note's order; returns whether it did.
///
/// The fallback comes first, but documentation also shows `default .spec.tag "latest"`. If only the second argument is a
/// constant, it must be the fallback.
fn fallback_first(args: &mut [Expr]) -> bool {
    if let [value, fallback] = args
        && value.literal().is_none()
        && fallback.literal().is_some()
    {
        std::mem::swap(value, fallback);
        return true;
    }
    false
}

/// Returns the warning about `default` with the constant first.
fn fallback_warning(name: Token) -> TemplateError {
    let message = "the fallback comes first; this is read with the constant as the fallback";
    TemplateError {
        code: Code::FallbackFirst,
        hint: Some("write the value last, or pipe it: `{{ .spec.x | default 1 }}`".into()),
        ..lexer::error(name.at, name.end, message)
    }
}
