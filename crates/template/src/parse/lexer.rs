//! Splits a source into text and actions, and actions into tokens.

use super::super::TemplateError;
use super::foreign;
use orkestra_language::diagnostics::Code;

/// The kinds of tokens in an action. The text of a token is in the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tok {
    /// `.` alone.
    Dot,
    /// `.name`
    Field,
    /// `$` or `$name`
    Variable,
    /// A note, a keyword, `true`, `false` or `nil`.
    Word,
    Number,
    /// `'c'`
    Char,
    /// `"text"`
    Quoted,
    /// A text between back quotes.
    Raw,
    Open,
    Close,
    Pipe,
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) at: usize,
    pub(crate) end: usize,
    /// True if white space precedes it.
    pub(crate) spaced: bool,
}

/// An action: from `{{` to `}}`.
#[derive(Debug)]
pub(crate) struct TemplateAction {
    /// The tokens; empty for a comment.
    pub(crate) tokens: Vec<Token>,
    pub(crate) comment: bool,
    /// The offset in the source after the action.
    pub(crate) end: usize,
    /// True if the white space before, or after, the action is trimmed.
    pub(crate) trim_before: bool,
    pub(crate) trim_after: bool,
}

/// White space as defined by Go's templates.
pub(crate) const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads the action whose `{{` is at `start`.
///
/// # Errors
/// The error, and the offset at which parsing continues: after the next `}}`, or `None`.
pub(crate) fn action(
    source: &str,
    start: usize,
) -> Result<TemplateAction, (TemplateError, Option<usize>)> {
    let mut scan = Scan {
        source,
        at: start + 2,
    };
    let trim_before = scan.rest().starts_with('-') && scan.rest()[1..].starts_with(SPACE);
    if trim_before {
        scan.at += 2;
    }
    let mut action = TemplateAction {
        tokens: Vec::new(),
        comment: false,
        end: 0,
        trim_before,
        trim_after: false,
    };
    let result = if scan.rest().trim_start_matches(SPACE).starts_with("/*") {
        scan.comment(&mut action)
    } else {
        scan.tokens(&mut action)
    };
    match result {
        Ok(()) => Ok(action),
        Err(error) => {
            let from = error.offset.max(start + 2).min(source.len());
            let rest = source.get(from..).and_then(|rest| rest.find("}}"));
            Err((error, rest.map(|at| from + at + 2)))
        }
    }
}

/// Returns the keyword at the start of an unreadable action.
pub(crate) fn keyword(source: &str, start: usize) -> Option<Token> {
    let inside = source.get(start + 2..)?;
    let inside = inside.strip_prefix('-').unwrap_or(inside);
    let inside = inside.trim_start_matches(SPACE);
    let word = inside.split(|c| !is_word(c)).next()?;
    let known = ["if", "with", "range", "define", "block", "else", "end"];
    let at = source.len() - inside.len();
    known.contains(&word).then_some(Token {
        tok: Tok::Word,
        at,
        end: at + word.len(),
        spaced: false,
    })
}

struct Scan<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Scan<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn comment(&mut self, action: &mut TemplateAction) -> Result<(), TemplateError> {
        action.comment = true;
        let start = self.at;
        let Some(end) = self.rest().find("*/") else {
            return Err(error(start, self.source.len(), "unterminated comment"));
        };
        self.at += end + 2;
        if self.closes(action, self.rest().starts_with(SPACE)) {
            return Ok(());
        }
        Err(error(
            self.at,
            self.at,
            "a comment is alone in its action: expected `}}` after `*/`",
        ))
    }

    /// Returns whether the action ends here, after any white space.
    fn closes(&mut self, action: &mut TemplateAction, spaced: bool) -> bool {
        let rest = self.rest().trim_start_matches(SPACE);
        let at = self.source.len() - rest.len();
        action.trim_after = spaced && rest.starts_with("-}}");
        let closes = action.trim_after || rest.starts_with("}}");
        if closes {
            action.end = at + if action.trim_after { 3 } else { 2 };
        }
        closes
    }

    fn tokens(&mut self, action: &mut TemplateAction) -> Result<(), TemplateError> {
        let start = self.at;
        // In `{{- -}}`, the white space of the opening trim marker also serves the closing one.
        let mut spaced = action.trim_before;
        loop {
            spaced |= self.rest().starts_with(SPACE);
            if self.closes(action, spaced) {
                return Ok(());
            }
            self.at = self.source.len() - self.rest().trim_start_matches(SPACE).len();
            let Some(first) = self.rest().chars().next() else {
                return Err(error(
                    start - 2,
                    start,
                    "unterminated action: expected `}}`",
                ));
            };
            let at = self.at;
            let tok = self.token(first)?;
            action.tokens.push(Token {
                tok,
                at,
                end: self.at,
                spaced,
            });
            spaced = false;
        }
    }

    fn token(&mut self, first: char) -> Result<Tok, TemplateError> {
        let second = self.rest()[first.len_utf8()..].chars().next();
        let digit_next = second.is_some_and(|c| c.is_ascii_digit());
        match first {
            '(' => Ok(self.take(1, Tok::Open)),
            ')' => Ok(self.take(1, Tok::Close)),
            '|' => Ok(self.take(1, Tok::Pipe)),
            ',' => Ok(self.take(1, Tok::Comma)),
            '=' => Ok(self.take(1, Tok::Assign)),
            ':' if second == Some('=') => Ok(self.take(2, Tok::Declare)),
            '"' => self.quoted('"', Tok::Quoted),
            '\'' => self.quoted('\'', Tok::Char),
            '`' => self.raw(),
            '.' if digit_next => Ok(self.number()),
            '.' if second.is_some_and(is_word) => self.word(1, Tok::Field),
            '.' => Ok(self.take(1, Tok::Dot)),
            '$' => self.word(1, Tok::Variable),
            '+' | '-' if digit_next || second == Some('.') => Ok(self.number()),
            c if c.is_ascii_digit() => Ok(self.number()),
            c if is_word(c) => self.word(0, Tok::Word),
            c => Err(self.bad_character(c)),
        }
    }

    fn take(&mut self, bytes: usize, tok: Tok) -> Tok {
        self.at += bytes;
        tok
    }

    fn word(&mut self, skip: usize, tok: Tok) -> Result<Tok, TemplateError> {
        let start = self.at;
        let name = &self.rest()[skip..];
        self.at += skip + name.find(|c| !is_word(c)).unwrap_or(name.len());
        match self.rest().chars().next() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(' | '=') => Ok(tok),
            Some(c) if SPACE.contains(&c) => Ok(tok),
            Some('}') if self.rest().starts_with("}}") => Ok(tok),
            Some(c) => {
                let mut error = self.bad_character(c);
                if tok == Tok::Field && c == '-' {
                    let end = self.rest().find(|c| !is_word(c) && c != '-');
                    let end = self.at + end.unwrap_or(self.rest().len());
                    let key = &self.source[start + 1..end];
                    error.hint = Some(format!(
                        "a key that is no plain name is read with `get`: `get .parent \"{key}\"`"
                    ));
                }
                Err(error)
            }
        }
    }

    /// Reads everything that could belong to a number; [`super::literal`] validates it.
    fn number(&mut self) -> Tok {
        let text = self.rest();
        let digits = text.trim_start_matches(['+', '-']);
        let hex = digits.starts_with("0x") || digits.starts_with("0X");
        let mut before = ' ';
        let end = text.find(|c: char| {
            let exponent = matches!(before, 'p' | 'P') || (!hex && matches!(before, 'e' | 'E'));
            let sign = matches!(c, '+' | '-') && (before == ' ' || exponent);
            before = c;
            !(sign || is_word(c) || c == '.')
        });
        self.at += end.unwrap_or(text.len());
        Tok::Number
    }

    fn quoted(&mut self, quote: char, tok: Tok) -> Result<Tok, TemplateError> {
        let start = self.at;
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\n' => break,
                // An escaped character cannot end the text.
                '\\' if chars.next().is_none_or(|(_, c)| c == '\n') => break,
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(tok);
                }
                _ => {}
            }
        }
        Err(error(start, start + 1, "unterminated quoted text"))
    }

    fn raw(&mut self) -> Result<Tok, TemplateError> {
        match self.rest()[1..].find('`') {
            Some(end) => Ok(self.take(end + 2, Tok::Raw)),
            None => Err(error(self.at, self.at + 1, "unterminated raw text")),
        }
    }

    fn bad_character(&self, c: char) -> TemplateError {
        let message = format!("unexpected character {c:?}");
        TemplateError {
            hint: foreign::character(self.rest()).map(str::to_owned),
            ..error(self.at, self.at + c.len_utf8(), &message)
        }
    }
}

/// True if a character is valid in a name.
fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

pub(crate) fn error(at: usize, end: usize, message: &str) -> TemplateError {
    TemplateError {
        code: Code::TemplateSyntax,
        offset: at,
        len: end.saturating_sub(at),
        message: message.into(),
        hint: None,
    }
}
