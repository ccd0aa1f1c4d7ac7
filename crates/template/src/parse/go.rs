//! Go's own syntax, as used in charts: named templates, methods, and functions that the caller resolves.

use std::fmt::Debug;

use super::super::TemplateError;
use super::super::ast::go::{Callee, Definition, Go, Invocation};
use super::super::ast::{CallExpr, Expr, ExprKind, Stmt};
use super::expr::ParsedOperand;
use super::lexer::{self, Tok, Token};
use super::{Parser, Syntax, literal, place};
use orkestra_language::diagnostics::Code;
use orkestra_object::value::Node;

/// The input and output of the parser.
pub(crate) struct GoContext<'s, F: Debug + Clone + 'static> {
    pub(crate) find: &'s dyn Fn(&str) -> Option<F>,
    pub(crate) definitions: Vec<Definition<F>>,
    /// True if the parser is inside a definition.
    pub(crate) defining: bool,
}

impl<F: Debug + Clone + 'static> Syntax for Go<F> {
    type Context<'s> = GoContext<'s, F>;

    fn call(
        parser: &mut Parser<'_, Self>,
        name: Token,
        operands: Vec<ParsedOperand<Self>>,
        _: bool,
    ) -> Result<Expr<Self>, TemplateError> {
        let word = parser.slice(name);
        let callee = match word {
            "and" => Callee::Until { empty: true },
            "or" => Callee::Until { empty: false },
            word => match (parser.context.find)(word) {
                Some(function) => Callee::Function(function),
                None => {
                    return Err(TemplateError {
                        code: Code::UnknownNote,
                        ..lexer::error(name.at, name.end, &format!("function {word:?} not defined"))
                    });
                }
            },
        };
        let args = arguments(parser, operands)?;
        Ok(called(name, callee, args))
    }

    fn apply(
        parser: &mut Parser<'_, Self>,
        (start, end): (Token, usize),
        expr: Expr<Self>,
        operands: Vec<ParsedOperand<Self>>,
        _: bool,
    ) -> Result<Expr<Self>, TemplateError> {
        let takes_arguments = matches!(expr.kind, ExprKind::Field(_) | ExprKind::Within(_));
        if !takes_arguments {
            let what = &parser.slice(start);
            let message = format!("`{what}` is not a function, so it takes no arguments");
            return Err(lexer::error(start.at, end, &message));
        }
        let args = arguments(parser, operands)?;
        Ok(called(start, Callee::Method(Box::new(expr)), args))
    }

    fn word(
        parser: &mut Parser<'_, Self>,
        token: Token,
    ) -> Result<ParsedOperand<Self>, TemplateError> {
        match parser.dotted() {
            None => Ok(ParsedOperand::Note(token)),
            Some(field) => Err(parser.unexpected(field)),
        }
    }

    fn invocation(parser: &mut Parser<'_, Self>) -> Option<Stmt<Self>> {
        let opened = parser.action;
        let name = template_name(parser, "template")?;
        let dot = match parser.peek() {
            Some(_) => Some(parser.pipeline_or_report()?),
            None => None,
        };
        parser.finish();
        Some(invoked(opened, name, dot))
    }

    fn definition(
        parser: &mut Parser<'_, Self>,
        word: &str,
        opened: (usize, usize),
    ) -> Option<Stmt<Self>> {
        let nested = parser.depth > 1 || parser.context.defining;
        if nested && word == "define" {
            parser.fail_action("`define` inside of another statement");
        }
        let name = template_name(parser, word);
        let dot = match word {
            "block" => parser.pipeline_or_report(),
            _ => None,
        };
        parser.finish();
        // The body is a separate template: it cannot see the variables and loops around it.
        let vars = std::mem::take(&mut parser.vars);
        let loops = std::mem::replace(&mut parser.loops, 0);
        let defining = std::mem::replace(&mut parser.context.defining, true);
        let (body, ender) = parser.block();
        parser.close(ender, word, opened);
        parser.context.defining = defining;
        parser.vars = vars;
        parser.loops = loops;
        let name = name?;
        let definition = Definition {
            name: name.clone(),
            at: place(opened.0),
            body: body.into(),
        };
        parser.context.definitions.push(definition);
        (word == "block").then(|| invoked(opened, name, dot))
    }
}

fn called<F: Debug + Clone + 'static>(
    at: Token,
    note: Callee<F>,
    args: Box<[Expr<Go<F>>]>,
) -> Expr<Go<F>> {
    Expr {
        at: place(at.at),
        kind: ExprKind::Call(Box::new(CallExpr { note, args })),
    }
}

fn invoked<F: Debug + Clone + 'static>(
    (at, _): (usize, usize),
    name: Box<str>,
    dot: Option<Expr<Go<F>>>,
) -> Stmt<Go<F>> {
    Stmt::Own(Invocation {
        at: place(at),
        name,
        dot,
    })
}

fn arguments<F: Debug + Clone + 'static>(
    parser: &mut Parser<'_, Go<F>>,
    operands: Vec<ParsedOperand<Go<F>>>,
) -> Result<Box<[Expr<Go<F>>]>, TemplateError> {
    let args = operands.into_iter().map(|operand| match operand {
        ParsedOperand::Expr(expr) => Ok(expr),
        // A function among the arguments is called without arguments.
        ParsedOperand::Note(name) => Go::call(parser, name, Vec::new(), false),
    });
    args.collect()
}

/// Parses the constant with the name of a template.
fn template_name<F: Debug + Clone + 'static>(
    parser: &mut Parser<'_, Go<F>>,
    word: &str,
) -> Option<Box<str>> {
    let token = parser.peek();
    let name = match token.map(|token| (token.tok, parser.slice(token))) {
        Some((Tok::Quoted, text)) => literal::quoted(text).ok(),
        Some((Tok::Raw, text)) => Some(literal::raw(text)),
        _ => None,
    };
    let Some(Node::Str(name)) = name else {
        parser.fail_action(&format!("`{word}` takes the name of a template, in quotes"));
        return None;
    };
    parser.next += 1;
    Some(name.as_str().into())
}
