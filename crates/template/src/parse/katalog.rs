//! Syntax specific to Katalogs: root names without a dot, and notes joined to a path.

use super::super::TemplateError;
use super::super::ast::{Expr, ExprKind, Katalog, Stmt};
use super::super::functions::Functions;
use super::super::notes;
use super::expr::ParsedOperand;
use super::lexer::{self, Tok, Token};
use super::{NotableCalls, Parser, Syntax, foreign, place};
use orkestra_language::diagnostics::Code;
use orkestra_object::value::Key;

/// The names of root data. One of these without its dot is read as the path.
const ROOTS: [&str; 15] = [
    "metadata", "spec", "status", "children", "item", "value", "external", "cross", "git",
    "docker", "metrics", "health", "ork", "previous", "inputs",
];

/// The parser's input and output for a template of a Katalog.
pub(crate) struct KatalogContext<'s> {
    /// The notes of the user.
    pub(crate) functions: &'s Functions,
    /// Warnings: valid source that is probably a mistake.
    pub(crate) warnings: Vec<TemplateError>,
    /// Properties of the whole template that follow from the notes it calls.
    pub(crate) marks: NotableCalls,
}

impl Syntax for Katalog {
    type Context<'s> = KatalogContext<'s>;

    fn call(
        parser: &mut Parser<'_, Self>,
        name: Token,
        operands: Vec<ParsedOperand<Self>>,
        piped: bool,
    ) -> Result<Expr, TemplateError> {
        parser.call(name, operands, piped)
    }

    fn apply(
        parser: &mut Parser<'_, Self>,
        (start, end): (Token, usize),
        _: Expr,
        _: Vec<ParsedOperand<Self>>,
        _: bool,
    ) -> Result<Expr, TemplateError> {
        let what = parser.slice(start);
        let message = format!("`{what}…` is not a function, so it takes no arguments");
        Err(TemplateError {
            hint: foreign::method(&parser.source[start.at..]).map(str::to_owned),
            ..lexer::error(start.at, end, &message)
        })
    }

    fn word(
        parser: &mut Parser<'_, Self>,
        token: Token,
    ) -> Result<ParsedOperand<Self>, TemplateError> {
        parser.note_or_path(token)
    }

    fn invocation(parser: &mut Parser<'_, Self>) -> Option<Stmt> {
        parser.fail_action("`template` is not supported: a template is one text");
        None
    }

    fn definition(
        parser: &mut Parser<'_, Self>,
        word: &str,
        opened: (usize, usize),
    ) -> Option<Stmt> {
        parser.fail_action(&format!(
            "`{word}` is not supported: a template is one text"
        ));
        let (_, ender) = parser.block();
        parser.close(ender, word, opened);
        None
    }
}

impl Parser<'_, Katalog> {
    /// Parses a note, or a root name without its dot.
    fn note_or_path(&mut self, token: Token) -> Result<ParsedOperand<Katalog>, TemplateError> {
        let word = self.slice(token);
        let dotted = self.dotted();
        let at = place(token.at);
        let own = self.context.functions.find(word).is_some();
        let known = own || notes::find(word).is_some();
        if ROOTS.contains(&word) && (dotted.is_some() || !known) {
            let keys = self.fields(Some(Key::new(word)));
            let end = self.tokens[self.next - 1].end;
            let path = &self.source[token.at..end];
            self.context.warnings.push(TemplateError {
                code: Code::MissingDot,
                hint: Some(format!("write `.{path}`")),
                ..lexer::error(
                    token.at,
                    end,
                    &format!("`{path}` lacks its dot; it is read as `.{path}`"),
                )
            });
            return Ok(ParsedOperand::Expr(Expr {
                at,
                kind: ExprKind::Field(keys),
            }));
        }
        if dotted.is_none() {
            return Ok(ParsedOperand::Note(token));
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
                format!("unknown function `{word}`"),
                format!("a path begins with a dot: `.{word}{path}`"),
            )
        };
        Err(TemplateError {
            code,
            hint: Some(hint),
            ..lexer::error(token.at, end, &message)
        })
    }

    /// Parses a note with a path that follows without a space, as in `phase.children.job`, as if there were a space.
    fn glued(&mut self, note: Token) -> ParsedOperand<Katalog> {
        let following = self.tokens[self.next..].iter();
        let fields = following.take_while(|token| token.tok == Tok::Field && !token.spaced);
        let end = fields.last().map_or(note.end, |last| last.end);
        let (word, path) = (self.slice(note), &self.source[note.end..end]);
        self.context.warnings.push(TemplateError {
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
        ParsedOperand::Note(note)
    }
}
