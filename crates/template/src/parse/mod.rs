//! Parses text to statements: blocks, scopes, and recovery from errors.
//!
//! One file: one recursive-descent parser.

mod call;
mod expr;
mod foreign;
mod go;
mod katalog;
pub(crate) mod lexer;
mod literal;
mod notable_calls;
mod order;

use super::TemplateError;
use super::ast::{
    Arm, Block, Branches, Dialect, Expr, ExprKind, Katalog, Loop, LoopVars, Stmt, Store,
};
use super::functions::Functions;
use expr::ParsedOperand;
pub(crate) use go::GoContext;
use katalog::KatalogContext;
use lexer::Token;
use lexer::{SPACE, Tok};
use notable_calls::NotableCalls;
use orkestra_object::value::Node;

/// The maximum nesting of blocks and parentheses. No human writes more, and both parser and evaluator are recursive.
const MOST_DEPTH: usize = 100;
/// The maximum length of a source: as much as a whole object may take.
const MOST_SOURCE: usize = 1 << 20;
/// The maximum number of variables in scope. No human writes more, and each use searches them.
const MOST_VARIABLES: usize = 1000;
/// The maximum number of errors, after which parsing stops. More would not help the reader.
const MOST_ERRORS: usize = 32;

/// A dialect, as the parser sees it.
pub(crate) trait Syntax: Dialect {
    /// The input and output of the parser that is specific to the dialect.
    type Context<'s>;

    /// Resolves a call of a function by name. `piped` is true if a pipeline adds an argument.
    ///
    /// # Errors
    /// An unknown function.
    fn call(
        parser: &mut Parser<'_, Self>,
        name: Token,
        operands: Vec<ParsedOperand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// Handles an expression that is given arguments, from its first token to a byte.
    ///
    /// # Errors
    /// The expression takes no arguments.
    fn apply(
        parser: &mut Parser<'_, Self>,
        place: (Token, usize),
        expr: Expr<Self>,
        operands: Vec<ParsedOperand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// Handles a word that is not a constant, as an operand.
    ///
    /// # Errors
    /// The word is not valid in this position.
    fn word(
        parser: &mut Parser<'_, Self>,
        token: Token,
    ) -> Result<ParsedOperand<Self>, TemplateError>;

    /// Parses the rest of a `template`, after its keyword.
    fn invocation(parser: &mut Parser<'_, Self>) -> Option<Stmt<Self>>;

    /// Parses the rest of a `define` or `block`, after its keyword and up to its `end`.
    fn definition(
        parser: &mut Parser<'_, Self>,
        word: &str,
        opened: (usize, usize),
    ) -> Option<Stmt<Self>>;
}

/// The compiled form of a source.
pub(crate) struct Parsed {
    pub(crate) body: Block,
    pub(crate) warnings: Vec<TemplateError>,
    pub(crate) marks: NotableCalls,
}

/// Parses and checks a source that may call these notes of the user.
pub(crate) fn parse(source: &str, functions: &Functions) -> Result<Parsed, Vec<TemplateError>> {
    let context = KatalogContext {
        functions,
        warnings: Vec::new(),
        marks: NotableCalls::default(),
    };
    let (body, context) = parse_in::<Katalog>(source, context)?;
    Ok(Parsed {
        body,
        warnings: context.warnings,
        marks: context.marks,
    })
}

/// Parses a source in a dialect; also returns the output of the dialect.
pub(crate) fn parse_in<'s, D: Syntax>(
    source: &'s str,
    context: D::Context<'s>,
) -> Result<(Block<D>, D::Context<'s>), Vec<TemplateError>> {
    if source.len() > MOST_SOURCE && source.contains("{{") {
        let error = lexer::error(
            MOST_SOURCE,
            source.len(),
            "a template is at most 1 MiB long",
        );
        return Err(vec![error]);
    }
    let mut parser = Parser::<D> {
        source,
        context,
        at: 0,
        trim: false,
        tokens: Vec::new(),
        next: 0,
        action: (0, 0),
        vars: Vec::new(),
        loops: 0,
        depth: 0,
        stopped: false,
        muted: false,
        errors: Vec::new(),
    };
    let mut body = Vec::new();
    loop {
        let (block, ender) = parser.block();
        body.extend(block);
        match ender {
            BlockEnd::Source => break,
            BlockEnd::End | BlockEnd::Else => {
                let word = if ender == BlockEnd::End {
                    "end"
                } else {
                    "else"
                };
                parser.fail_action(&format!("`{word}` without an `if`, `with` or `range`"));
            }
        }
    }
    if parser.errors.is_empty() {
        return Ok((body.into(), parser.context));
    }
    parser.errors.sort_by_key(|error| error.offset);
    parser.errors.truncate(MOST_ERRORS);
    Err(parser.errors)
}

pub(crate) struct Parser<'s, D: Syntax> {
    source: &'s str,
    /// The input and output of the dialect.
    pub(crate) context: D::Context<'s>,
    /// The offset after the current action.
    at: usize,
    /// True if the white space there is trimmed.
    trim: bool,
    /// The tokens of the current action, how many of them are read, and its range in the source.
    tokens: Vec<Token>,
    next: usize,
    action: (usize, usize),
    /// The names of the variables in scope; the position of a variable is its slot.
    vars: Vec<&'s str>,
    loops: usize,
    depth: usize,
    /// True if parsing cannot continue.
    stopped: bool,
    /// True if an error in the action is reported, so that its consequences in the same action are not.
    muted: bool,
    errors: Vec<TemplateError>,
}

/// The end of a block.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum BlockEnd {
    Source,
    End,
    /// `else`; the rest of the action is still to be read.
    Else,
}

impl<'s, D: Syntax> Parser<'s, D> {
    /// Parses statements up to the end of the block. The current action is then the one that ended it.
    pub(crate) fn block(&mut self) -> (Vec<Stmt<D>>, BlockEnd) {
        let mut stmts = Vec::new();
        while self.text(&mut stmts) {
            let Some(first) = self.peek() else {
                continue; // a comment, or an action that could not be read
            };
            let word = match first.tok {
                Tok::Word => self.slice(first),
                _ => "",
            };
            match word {
                "end" | "else" => {
                    self.next += 1;
                    if word == "end" {
                        self.finish();
                    }
                    let ender = if word == "end" {
                        BlockEnd::End
                    } else {
                        BlockEnd::Else
                    };
                    return (stmts, ender);
                }
                _ => stmts.extend(self.statement(word)),
            }
        }
        (stmts, BlockEnd::Source)
    }

    /// Reads text up to the next action, and that action; returns false if there is none.
    fn text(&mut self, stmts: &mut Vec<Stmt<D>>) -> bool {
        if self.stopped {
            return false;
        }
        let open = self.source[self.at..].find("{{").map(|n| self.at + n);
        let action = open.map(|open| (open, lexer::action(self.source, open)));
        let mut start = self.at;
        let mut end = open.unwrap_or(self.source.len());
        if self.trim {
            start = end - self.source[start..end].trim_start_matches(SPACE).len();
        }
        if matches!(&action, Some((_, Ok(action))) if action.trim_before) {
            end = start + self.source[start..end].trim_end_matches(SPACE).len();
        }
        if start < end {
            stmts.push(Stmt::Text(place(start), place(end)));
        }
        self.next = 0;
        self.muted = false;
        match action {
            None => return false,
            Some((open, Ok(action))) => {
                if action.tokens.is_empty() && !action.comment {
                    let error = lexer::error(open, action.end, "an action without an expression");
                    self.report(error);
                }
                self.at = action.end;
                self.action = (open, action.end);
                self.trim = action.trim_after;
                self.tokens = action.tokens;
            }
            Some((open, Err((error, resume_at)))) => {
                self.report(error);
                self.trim = false;
                self.stopped = resume_at.is_none();
                self.at = resume_at.unwrap_or(self.source.len());
                // An unreadable action still opens or ends its block.
                self.tokens = lexer::keyword(self.source, open).into_iter().collect();
                self.muted = true;
            }
        }
        true
    }

    fn statement(&mut self, word: &str) -> Option<Stmt<D>> {
        match word {
            "if" | "with" | "range" | "define" | "block" => {
                self.next += 1;
                self.nested(word)
            }
            "break" | "continue" => {
                self.next += 1;
                self.finish();
                if self.loops == 0 {
                    self.fail_action(&format!("`{word}` outside of a `range`"));
                }
                Some(match word {
                    "break" => Stmt::Break,
                    _ => Stmt::Continue,
                })
            }
            "template" => {
                self.next += 1;
                D::invocation(self)
            }
            _ => {
                let (expr, store) = self.stored_pipeline()?;
                self.finish();
                Some(match store {
                    Store::Nowhere => Stmt::Print(expr),
                    Store::Declare => Stmt::Declare(expr),
                    Store::Assign(slot) => Stmt::Assign(slot, expr),
                })
            }
        }
    }

    /// Parses a statement with a body. Variables that it declares are scoped to it.
    fn nested(&mut self, word: &str) -> Option<Stmt<D>> {
        if !self.deeper() {
            return None;
        }
        let scope = self.vars.len();
        let opened = self.action;
        let stmt = match word {
            "if" => Some(Stmt::If(self.branches(word, opened).into())),
            "with" => Some(Stmt::With(self.branches(word, opened).into())),
            "range" => Some(Stmt::Range(self.range(opened).into())),
            _ => D::definition(self, word, opened),
        };
        self.vars.truncate(scope);
        self.depth -= 1;
        stmt
    }

    /// Parses `if` and `with`: both chain with `else if` and `else with`.
    fn branches(&mut self, word: &str, opened: (usize, usize)) -> Branches<D> {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.stored_pipeline();
            self.finish();
            let (body, ender) = self.scoped_block();
            let (test, store) = test.unwrap_or((self.nothing(), Store::Nowhere));
            arms.push(Arm {
                test,
                store,
                body: body.into(),
            });
            if ender != BlockEnd::Else {
                self.close(ender, word, opened);
                break;
            }
            if self.peek().is_some_and(|t| self.slice(t) == word) {
                self.next += 1;
                continue;
            }
            self.finish_else(word);
            let (block, ender) = self.scoped_block();
            otherwise = block;
            self.close(ender, word, opened);
            break;
        }
        Branches {
            arms: arms.into(),
            otherwise: otherwise.into(),
        }
    }

    fn range(&mut self, opened: (usize, usize)) -> Loop<D> {
        let head = self.range_head();
        self.finish();
        self.loops += 1;
        let (body, mut ender) = self.scoped_block();
        self.loops -= 1;
        let mut otherwise = Vec::new();
        if ender == BlockEnd::Else {
            self.finish_else("range");
            (otherwise, ender) = self.scoped_block();
        }
        self.close(ender, "range", opened);
        let (over, vars) = head.unwrap_or((self.nothing(), LoopVars::Nowhere));
        Loop {
            over,
            vars,
            body: body.into(),
            otherwise: otherwise.into(),
        }
    }

    /// Parses a block and drops its variables at the end.
    fn scoped_block(&mut self) -> (Vec<Stmt<D>>, BlockEnd) {
        let scope = self.vars.len();
        let block = self.block();
        self.vars.truncate(scope);
        block
    }

    pub(crate) fn close(&mut self, ender: BlockEnd, word: &str, (at, end): (usize, usize)) {
        match ender {
            BlockEnd::End => {}
            BlockEnd::Source if self.stopped => {}
            BlockEnd::Source => {
                self.report(lexer::error(at, end, &format!("`{word}` without `end`")));
            }
            BlockEnd::Else => {
                self.fail_action("a second `else`");
                // The error is reported; the blocks that follow belong to the same statement.
                while self.block().1 == BlockEnd::Else {
                    self.next = self.tokens.len();
                }
            }
        }
    }

    fn finish_else(&mut self, word: &str) {
        if let Some(token) = self.peek() {
            let found = self.slice(token);
            let message = format!("`else {found}` after `{word}`");
            self.report(lexer::error(token.at, token.end, &message));
        }
        self.next = self.tokens.len();
    }

    /// Enters a nesting level, or stops parsing if there are too many.
    fn deeper(&mut self) -> bool {
        if self.depth == MOST_DEPTH {
            self.fail_action(&format!("nested deeper than {MOST_DEPTH} levels"));
            self.stopped = true;
            return false;
        }
        self.depth += 1;
        true
    }

    /// A placeholder for an expression that could not be read.
    pub(crate) fn nothing(&self) -> Expr<D> {
        Expr {
            at: place(self.action.0),
            kind: ExprKind::Literal(Node::Null.into()),
        }
    }

    pub(crate) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    pub(crate) fn slice(&self, token: Token) -> &'s str {
        &self.source[token.at..token.end]
    }

    /// Reports the unread rest of the action.
    pub(crate) fn finish(&mut self) {
        if let Some(token) = self.peek() {
            let message = format!("unexpected `{}`", self.slice(token));
            self.report(lexer::error(token.at, token.end, &message));
        }
        self.next = self.tokens.len();
    }

    /// Reports an error in the whole action and skips its rest.
    pub(crate) fn fail_action(&mut self, message: &str) {
        self.report(lexer::error(self.action.0, self.action.1, message));
        self.next = self.tokens.len();
    }

    pub(crate) fn report(&mut self, error: TemplateError) {
        if self.muted {
            return;
        }
        self.errors.push(error);
        self.stopped |= self.errors.len() >= MOST_ERRORS;
    }
}

/// An error that is found after parsing.
pub(crate) fn syntax_error(at: usize, message: &str) -> TemplateError {
    lexer::error(at, at, message)
}

/// Converts an offset to the form in trees; sources are far below 4 GiB.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
