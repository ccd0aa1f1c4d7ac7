//! The inside of an action: pipelines, commands, operands.

use super::super::TemplateError;
use super::super::ast::{Expr, Kind, LoopVars, Store};
use super::super::notes;
use super::lexer::{self, Tok, Token};
use super::{MOST_VARIABLES, Parser, foreign, literal, place};
use crate::diagnostics::{Code, did_you_mean};
use crate::value::{Key, Node};

/// An operand, or the name of a note that waits for its arguments.
pub(super) enum Operand {
    Expr(Expr),
    Note(Token),
}

/// The names that root data may have; one of these without its dot is taken for the path.
const ROOTS: [&str; 14] = [
    "metadata", "spec", "status", "children", "item", "value", "external", "cross", "git",
    "docker", "metrics", "health", "previous", "inputs",
];

impl Parser<'_> {
    /// A pipeline, and where its value goes: `$x := …`, `$x = …` or neither.
    ///
    /// Nothing after an error, which is then reported and the action read to its end.
    pub(super) fn stored_pipeline(&mut self) -> Option<(Expr, Store)> {
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

    /// What a `range` goes over, and the variables that it sets.
    pub(super) fn range_head(&mut self) -> Option<(Expr, LoopVars)> {
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

    fn pipeline_or_report(&mut self) -> Option<Expr> {
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

    /// Commands between bars.
    fn pipeline(&mut self) -> Result<Expr, TemplateError> {
        let mut stages = vec![self.command(false)?];
        while self.peek().is_some_and(|token| token.tok == Tok::Pipe) {
            self.next += 1;
            stages.push(self.command(true)?);
        }
        let at = stages[0].at;
        match <[Expr; 1]>::try_from(stages) {
            Ok([only]) => Ok(only),
            Err(stages) => Ok(Expr {
                at,
                kind: Kind::Pipe(stages.into()),
            }),
        }
    }

    /// An operand, or a note and its arguments.
    fn command(&mut self, piped: bool) -> Result<Expr, TemplateError> {
        let start = self.peek();
        let mut operands = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(token.tok, Tok::Pipe | Tok::Close) {
                break;
            }
            if !operands.is_empty() && !token.spaced {
                let message = match token.tok {
                    Tok::Dot => "a name is missing behind the dot".to_owned(),
                    _ => format!("expected a space before `{}`", self.slice(token)),
                };
                return Err(self.foreign(token, &message));
            }
            operands.push(self.operand()?);
        }
        let mut operands = operands.into_iter();
        let (first, rest) = (operands.next(), operands);
        match (first, start) {
            (Some(Operand::Note(name)), _) => self.call(name, rest.collect(), piped),
            (Some(Operand::Expr(expr)), Some(start)) => {
                let end = self.tokens[self.next - 1].end;
                if !piped && rest.len() == 0 {
                    return match self.slice(start) {
                        "nil" => Err(lexer::error(
                            start.at,
                            start.end,
                            "`nil` alone is no command",
                        )),
                        _ => Ok(expr),
                    };
                }
                let what = &self.source[start.at..start.end];
                let message = format!("`{what}…` is not a note, so it takes no arguments");
                Err(TemplateError {
                    hint: foreign::method(&self.source[start.at..]).map(str::to_owned),
                    ..lexer::error(start.at, end, &message)
                })
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

    /// An error at `token`, with what to write instead of what other languages have there.
    fn foreign(&self, token: Token, message: &str) -> TemplateError {
        let rest = self.source.get(token.at..).unwrap_or_default();
        TemplateError {
            hint: foreign::character(rest).map(str::to_owned),
            ..lexer::error(token.at, token.end, message)
        }
    }

    fn unexpected(&self, token: Token) -> TemplateError {
        self.foreign(token, &format!("unexpected `{}`", self.slice(token)))
    }

    /// A term and the fields behind it: `(f .x).a.b`.
    fn operand(&mut self) -> Result<Operand, TemplateError> {
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
            Tok::Field => Kind::Field(self.fields(Some(Key::new(&text[1..])))),
            Tok::Dot => Kind::Dot,
            Tok::Variable if text == "$" => Kind::Root,
            Tok::Variable => Kind::Var(self.slot(token)?),
            Tok::Open => self.parenthesised(token)?,
            Tok::Number => constant(token, text, literal::number(text))?,
            Tok::Char => constant(token, text, literal::character(text))?,
            Tok::Quoted => constant(token, text, literal::quoted(text))?,
            Tok::Raw => Kind::Literal(literal::raw(text).into()),
            Tok::Close | Tok::Pipe | Tok::Comma | Tok::Declare | Tok::Assign => {
                return Err(self.unexpected(token));
            }
        };
        let at = place(token.at);
        let base = Expr { at, kind };
        let keys = self.fields(None);
        if keys.is_empty() {
            return Ok(Operand::Expr(base));
        }
        if base.literal().is_some() || token.tok == Tok::Dot {
            let field = self.tokens[self.next - keys.len()];
            return Err(self.unexpected(field));
        }
        let kind = Kind::Within(Box::new((base, keys)));
        Ok(Operand::Expr(Expr { at, kind }))
    }

    fn parenthesised(&mut self, open: Token) -> Result<Kind, TemplateError> {
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

    /// The fields that follow without a space.
    fn fields(&mut self, first: Option<Key>) -> Box<[Key]> {
        let mut keys = Vec::from_iter(first);
        while let Some(token) = self.peek().filter(|t| t.tok == Tok::Field && !t.spaced) {
            keys.push(Key::new(&self.slice(token)[1..]));
            self.next += 1;
        }
        keys.into()
    }

    /// A constant, a note, or a root name whose dot was forgotten.
    fn word(&mut self, token: Token) -> Result<Operand, TemplateError> {
        let word = self.slice(token);
        let constant = match word {
            "true" => Some(Node::Bool(true)),
            "false" => Some(Node::Bool(false)),
            "nil" => Some(Node::Null),
            _ => None,
        };
        let dotted = self.peek().filter(|t| t.tok == Tok::Field && !t.spaced);
        let at = place(token.at);
        if let Some(node) = constant {
            return match dotted {
                Some(field) => Err(self.unexpected(field)),
                None => Ok(Operand::Expr(Expr {
                    at,
                    kind: Kind::Literal(node.into()),
                })),
            };
        }
        let own = self.functions.find(word).is_some();
        let known = own || notes::find(word).is_some();
        if ROOTS.contains(&word) && (dotted.is_some() || !known) {
            let keys = self.fields(Some(Key::new(word)));
            let end = self.tokens[self.next - 1].end;
            let path = &self.source[token.at..end];
            self.warnings.push(TemplateError {
                code: Code::MissingDot,
                hint: Some(format!("write `.{path}`")),
                ..lexer::error(
                    token.at,
                    end,
                    &format!("`{path}` lacks its dot; it is read as `.{path}`"),
                )
            });
            return Ok(Operand::Expr(Expr {
                at,
                kind: Kind::Field(keys),
            }));
        }
        if dotted.is_none() {
            return Ok(Operand::Note(token));
        }
        if !own && notes::find(word).is_some() {
            return Ok(self.glued(token));
        }
        self.fields(None);
        let end = self.tokens[self.next - 1].end;
        let path = &self.source[token.end..end];
        let (code, message, hint) = if own {
            (
                Code::TemplateSyntax,
                format!("`{word}` is text, which has no fields"),
                format!("write `{word}` alone"),
            )
        } else {
            (
                Code::UnknownNote,
                format!("unknown note `{word}`"),
                format!("a path begins with a dot: `.{word}{path}`"),
            )
        };
        Err(TemplateError {
            code,
            hint: Some(hint),
            ..lexer::error(token.at, end, &message)
        })
    }

    /// A note whose path follows without a space, as in `phase.children.job`: read as if there were one.
    fn glued(&mut self, note: Token) -> Operand {
        let following = self.tokens[self.next..].iter();
        let fields = following.take_while(|token| token.tok == Tok::Field && !token.spaced);
        let end = fields.last().map_or(note.end, |last| last.end);
        let (word, path) = (self.slice(note), &self.source[note.end..end]);
        self.warnings.push(TemplateError {
            code: Code::ArgumentCount,
            hint: Some(format!("write `{word} {path}`")),
            ..lexer::error(
                note.at,
                end,
                &format!("a space is missing between `{word}` and `{path}`; it is read as `{word} {path}`"),
            )
        });
        if let Some(path) = self.tokens.get_mut(self.next) {
            path.spaced = true;
        }
        Operand::Note(note)
    }
}

fn constant(
    token: Token,
    text: &str,
    node: Result<Node, &'static str>,
) -> Result<Kind, TemplateError> {
    node.map(|node| Kind::Literal(node.into()))
        .map_err(|message| {
            let signed = text.starts_with(['-', '+']) && token.tok == Tok::Number;
            TemplateError {
                hint: signed.then(|| "a trim marker has a space behind it: `{{- .x }}`".to_owned()),
                ..lexer::error(token.at, token.end, message)
            }
        })
}
