//! The inside of an action: pipelines, commands, operands.

use super::super::TemplateError;
use super::super::ast::{Expr, ExprKind, LoopVars, Store};
use super::lexer::{self, Tok, Token};
use super::{MOST_VARIABLES, Parser, Syntax, foreign, literal, place};
use orkestra_language::diagnostics::{Code, did_you_mean};
use orkestra_object::value::{Key, Node};

/// An operand, or the name of a note whose arguments follow.
pub(crate) enum ParsedOperand<D: Syntax> {
    Expr(Expr<D>),
    Note(Token),
}

impl<D: Syntax> Parser<'_, D> {
    /// Parses a pipeline and the variable that receives its value: `$x := …`, `$x = …` or none.
    ///
    /// Returns `None` after an error, which is then reported and the rest of the action skipped.
    pub(crate) fn stored_pipeline(&mut self) -> Option<(Expr<D>, Store)> {
        let target = match (self.peek(), self.tokens.get(self.next + 1)) {
            (Some(var), Some(sign)) if var.tok == Tok::Variable => match sign.tok {
                Tok::Declare | Tok::Assign => Some((var, sign.tok)),
                _ => None,
            },
            _ => None,
        };
        let Some((var, sign)) = target else {
            return Some((self.pipeline_or_report()?, Store::Nowhere));
        };
        self.next += 2;
        let expr = self.pipeline_or_report()?;
        let store = match sign {
            Tok::Declare => self.declare(var).map(|()| Store::Declare),
            _ => self.slot(var).map(Store::Assign),
        };
        Some((expr, self.or_report(store)?))
    }

    /// Parses the collection of a `range`, and the variables that it sets.
    pub(crate) fn range_head(&mut self) -> Option<(Expr<D>, LoopVars)> {
        let toks: Vec<Tok> = self.tokens[self.next..]
            .iter()
            .take(4)
            .map(|t| t.tok)
            .collect();
        let two = match toks[..] {
            [
                Tok::Variable,
                Tok::Comma,
                Tok::Variable,
                Tok::Declare | Tok::Assign,
            ] => true,
            [Tok::Variable, Tok::Declare | Tok::Assign, ..] => false,
            _ => return Some((self.pipeline_or_report()?, LoopVars::Nowhere)),
        };
        let first = self.tokens[self.next];
        let last = self.tokens[self.next + if two { 2 } else { 0 }];
        let declares = toks[if two { 3 } else { 1 }] == Tok::Declare;
        self.next += if two { 4 } else { 2 };
        let over = self.pipeline_or_report()?;
        let vars = if declares {
            let key = if two { self.declare(first) } else { Ok(()) };
            key.and_then(|()| self.declare(last))
                .map(|()| LoopVars::Declare { with_key: two })
        } else {
            let key = if two {
                self.slot(first).map(Some)
            } else {
                Ok(None)
            };
            key.and_then(|key| {
                Ok(LoopVars::Assign {
                    key,
                    item: self.slot(last)?,
                })
            })
        };
        Some((over, self.or_report(vars)?))
    }

    fn declare(&mut self, var: Token) -> Result<(), TemplateError> {
        let name = self.slice(var);
        if name == "$" {
            return Err(lexer::error(var.at, var.end, "`$` is always the root data"));
        }
        if self.vars.len() >= MOST_VARIABLES {
            return Err(lexer::error(var.at, var.end, "too many variables"));
        }
        self.vars.push(name);
        Ok(())
    }

    fn slot(&self, var: Token) -> Result<u16, TemplateError> {
        let name = self.slice(var);
        let slot = self.vars.iter().rposition(|known| *known == name);
        slot.and_then(|slot| u16::try_from(slot).ok())
            .ok_or_else(|| {
                let mut error =
                    lexer::error(var.at, var.end, &format!("undeclared variable `{name}`"));
                error.code = Code::UnknownVariable;
                let near = did_you_mean(name, self.vars.iter().copied());
                let declare = || format!("declare it before: `{{{{ {name} := … }}}}`");
                error.hint = Some(near.unwrap_or_else(declare));
                error
            })
    }

    pub(crate) fn pipeline_or_report(&mut self) -> Option<Expr<D>> {
        let result = self.pipeline();
        self.or_report(result)
    }

    fn or_report<T>(&mut self, result: Result<T, TemplateError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(error);
                self.next = self.tokens.len();
                None
            }
        }
    }

    /// Parses commands separated by bars.
    fn pipeline(&mut self) -> Result<Expr<D>, TemplateError> {
        let mut stages = vec![self.command(false)?];
        while self.peek().is_some_and(|token| token.tok == Tok::Pipe) {
            self.next += 1;
            stages.push(self.command(true)?);
        }
        let at = stages[0].at;
        match <[Expr<D>; 1]>::try_from(stages) {
            Ok([only]) => Ok(only),
            Err(stages) => Ok(Expr {
                at,
                kind: ExprKind::Pipe(stages.into()),
            }),
        }
    }

    /// Parses an operand, or a note and its arguments.
    fn command(&mut self, piped: bool) -> Result<Expr<D>, TemplateError> {
        let start = self.peek();
        let mut operands = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(token.tok, Tok::Pipe | Tok::Close) {
                break;
            }
            if !operands.is_empty() && !token.spaced {
                let message = match token.tok {
                    Tok::Dot => "expected a name after the dot".to_owned(),
                    _ => format!("expected a space before `{}`", self.slice(token)),
                };
                return Err(self.foreign(token, &message));
            }
            operands.push(self.operand()?);
        }
        let mut operands = operands.into_iter();
        let (first, rest) = (operands.next(), operands);
        match (first, start) {
            (Some(ParsedOperand::Note(name)), _) => D::call(self, name, rest.collect(), piped),
            (Some(ParsedOperand::Expr(expr)), Some(start)) => {
                let end = self.tokens[self.next - 1].end;
                if !piped && rest.len() == 0 {
                    return match self.slice(start) {
                        "nil" => Err(lexer::error(
                            start.at,
                            start.end,
                            "`nil` alone is not a command",
                        )),
                        _ => Ok(expr),
                    };
                }
                D::apply(self, (start, end), expr, rest.collect(), piped)
            }
            _ => {
                let at = start.map_or_else(
                    || self.tokens.last().map_or(self.action.0, |token| token.end),
                    |token| token.at,
                );
                let error = lexer::error(at, at, "expected an expression");
                let before = self.source.get(at.saturating_sub(1)..);
                let bars = before.filter(|rest| rest.starts_with("||"));
                Err(TemplateError {
                    hint: bars.and_then(foreign::character).map(str::to_owned),
                    ..error
                })
            }
        }
    }

    /// Returns an error at `token`, with a replacement for the syntax of another language.
    pub(crate) fn foreign(&self, token: Token, message: &str) -> TemplateError {
        let rest = self.source.get(token.at..).unwrap_or_default();
        TemplateError {
            hint: foreign::character(rest).map(str::to_owned),
            ..lexer::error(token.at, token.end, message)
        }
    }

    pub(crate) fn unexpected(&self, token: Token) -> TemplateError {
        self.foreign(token, &format!("unexpected `{}`", self.slice(token)))
    }

    /// Parses a term and the fields after it: `(f .x).a.b`.
    pub(crate) fn operand(&mut self) -> Result<ParsedOperand<D>, TemplateError> {
        let Some(token) = self.peek() else {
            return Err(lexer::error(
                self.action.1,
                self.action.1,
                "expected an expression",
            ));
        };
        self.next += 1;
        let text = self.slice(token);
        let kind = match token.tok {
            Tok::Word => return self.word(token),
            Tok::Field => ExprKind::Field(self.fields(Some(Key::new(&text[1..])))),
            Tok::Dot => ExprKind::Dot,
            Tok::Variable if text == "$" => ExprKind::Root,
            Tok::Variable => ExprKind::Var(self.slot(token)?),
            Tok::Open => self.parenthesised(token)?,
            Tok::Number => constant(token, text, literal::number(text))?,
            Tok::Char => constant(token, text, literal::character(text))?,
            Tok::Quoted => constant(token, text, literal::quoted(text))?,
            Tok::Raw => ExprKind::Literal(literal::raw(text).into()),
            Tok::Close | Tok::Pipe | Tok::Comma | Tok::Declare | Tok::Assign => {
                return Err(self.unexpected(token));
            }
        };
        let at = place(token.at);
        let base = Expr { at, kind };
        let keys = self.fields(None);
        if keys.is_empty() {
            return Ok(ParsedOperand::Expr(base));
        }
        if base.literal().is_some() || token.tok == Tok::Dot {
            let field = self.tokens[self.next - keys.len()];
            return Err(self.unexpected(field));
        }
        let kind = ExprKind::Within(Box::new((base, keys)));
        Ok(ParsedOperand::Expr(Expr { at, kind }))
    }

    fn parenthesised(&mut self, open: Token) -> Result<ExprKind<D>, TemplateError> {
        if !self.deeper() {
            return Err(lexer::error(open.at, open.end, "too many parentheses"));
        }
        let inner = self.pipeline();
        self.depth -= 1;
        let inner = inner?;
        match self.peek() {
            Some(token) if token.tok == Tok::Close => {
                self.next += 1;
                Ok(inner.kind)
            }
            Some(token) => Err(self.unexpected(token)),
            None => Err(lexer::error(open.at, open.end, "`(` without `)`")),
        }
    }

    /// Parses the fields that follow without a space.
    pub(crate) fn fields(&mut self, first: Option<Key>) -> Box<[Key]> {
        let mut keys = Vec::from_iter(first);
        while let Some(token) = self.peek().filter(|t| t.tok == Tok::Field && !t.spaced) {
            keys.push(Key::new(&self.slice(token)[1..]));
            self.next += 1;
        }
        keys.into()
    }

    /// Returns the field that follows without a space.
    pub(crate) fn dotted(&self) -> Option<Token> {
        self.peek().filter(|t| t.tok == Tok::Field && !t.spaced)
    }

    /// Parses a constant, or a word of the dialect.
    fn word(&mut self, token: Token) -> Result<ParsedOperand<D>, TemplateError> {
        let word = self.slice(token);
        let constant = match word {
            "true" => Some(Node::Bool(true)),
            "false" => Some(Node::Bool(false)),
            "nil" => Some(Node::Null),
            _ => None,
        };
        let at = place(token.at);
        if let Some(node) = constant {
            return match self.dotted() {
                Some(field) => Err(self.unexpected(field)),
                None => Ok(ParsedOperand::Expr(Expr {
                    at,
                    kind: ExprKind::Literal(node.into()),
                })),
            };
        }
        D::word(self, token)
    }
}

fn constant<D: Syntax>(
    token: Token,
    text: &str,
    node: Result<Node, &'static str>,
) -> Result<ExprKind<D>, TemplateError> {
    node.map(|node| ExprKind::Literal(node.into()))
        .map_err(|message| {
            let signed = text.starts_with(['-', '+']) && token.tok == Tok::Number;
            TemplateError {
                hint: signed
                    .then(|| "a trim marker needs a space after it: `{{- .x }}`".to_owned()),
                ..lexer::error(token.at, token.end, message)
            }
        })
}
