//! Formats and verbs of Go's fmt.Sprintf.
//!
//! Source: Go's package fmt, "Printing". One difference, for Katalogs: `%v` writes floats exactly, without an exponent.
//!
//! One file: one table of verbs, as Go has it.

mod float;
mod number;
mod quote;

use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

/// Larger widths and precisions are invalid, as in Go.
const LARGEST: usize = 1_000_000;

/// Formatting one value costs as much as several expressions.
const STEPS_A_VALUE: u64 = 4;

/// A value to be formatted.
#[derive(Clone, Copy)]
pub(crate) struct Arg<'a> {
    pub(crate) node: &'a Node,
    /// True if it is not from the data. Its integers are then of Go's type `int`; those of data are `int64`.
    pub(crate) constant: bool,
}

impl<'a> Arg<'a> {
    /// A part of a list or a map. No constant is a list or a map, so the part is from the data, or a copy of it.
    fn within(node: &'a Node) -> Arg<'a> {
        Arg {
            node,
            constant: false,
        }
    }

    /// Returns the name of the Go type; `None` for null.
    fn type_name(self) -> Option<&'static str> {
        match self.node {
            Node::Null => None,
            Node::Bool(_) => Some("bool"),
            Node::Int(_) if self.constant => Some("int"),
            Node::Int(_) => Some("int64"),
            Node::UInt(_) => Some("uint64"),
            Node::Float(_) => Some("float64"),
            Node::Str(_) => Some("string"),
            Node::List(_) => Some("[]interface {}"),
            Node::Map(_) => Some("map[string]interface {}"),
        }
    }
}

/// The flags of one verb.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are five flags")]
struct Flags {
    sharp: bool,
    zero: bool,
    plus: bool,
    minus: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// The position in a format and the next argument.
struct Cursor<'f> {
    rest: &'f str,
    arg: usize,
    /// True if any argument was selected by number. Unused arguments are then not reported.
    reordered: bool,
    /// True if the argument numbers of the current verb are valid.
    sound: bool,
}

/// Prints formatted text.
pub(crate) struct Printer<'a> {
    out: String,
    args: &'a [Arg<'a>],
    flags: Flags,
    /// True if `%v` writes floats exactly, without an exponent.
    exact: bool,
    budget: &'a mut EvalBudget,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(args: &'a [Arg<'a>], budget: &'a mut EvalBudget) -> Printer<'a> {
        Printer {
            out: String::new(),
            args,
            flags: Flags::default(),
            exact: true,
            budget,
        }
    }

    /// Returns a printer whose `%v` writes floats as Go does.
    pub(crate) fn like_go(mut self) -> Printer<'a> {
        self.exact = false;
        self
    }

    /// Prints a format and its arguments.
    pub(crate) fn printf(mut self, format: &str) -> Result<String, EvalFailure> {
        let mut cursor = Cursor {
            rest: format,
            arg: 0,
            reordered: false,
            sound: true,
        };
        while let Some(at) = cursor.rest.find('%') {
            self.write(&cursor.rest[..at])?;
            cursor.rest = &cursor.rest[at + 1..];
            self.budget.step(1)?;
            self.verb(&mut cursor)?;
        }
        self.write(cursor.rest)?;
        if !cursor.reordered && cursor.arg < self.args.len() {
            self.extra(cursor.arg)?;
        }
        Ok(self.out)
    }

    /// Prints all arguments with `%v`. With `line`, spaces separate all arguments and a line break ends the text; else
    /// spaces separate only arguments that are both not texts.
    pub(crate) fn print(mut self, line: bool) -> Result<String, EvalFailure> {
        let mut text_before = true;
        for (at, arg) in self.args.iter().enumerate() {
            let text = matches!(arg.node, Node::Str(_));
            if at > 0 && (line || !text && !text_before) {
                self.write(" ")?;
            }
            self.arg(*arg, 'v')?;
            text_before = text;
        }
        if line {
            self.write("\n")?;
        }
        Ok(self.out)
    }

    /// Prints one verb, from after its percent sign.
    fn verb(&mut self, cursor: &mut Cursor<'_>) -> Result<(), EvalFailure> {
        self.flags = Flags::default();
        cursor.sound = true;
        self.read_flags(cursor);
        let mut indexed = cursor.index(self.args.len());
        if cursor.skip('*') {
            self.star_width(cursor)?;
            indexed = false;
        } else {
            self.flags.width = cursor.number();
            cursor.sound &= !(indexed && self.flags.width.is_some());
        }
        if cursor.skip('.') {
            cursor.sound &= !indexed;
            indexed = cursor.index(self.args.len());
            if cursor.skip('*') {
                self.star_precision(cursor)?;
                indexed = false;
            } else {
                self.flags.precision = Some(cursor.number().unwrap_or(0));
            }
        }
        if !indexed {
            cursor.index(self.args.len());
        }
        let Some(verb) = cursor.rest.chars().next() else {
            return self.write("%!(NOVERB)");
        };
        cursor.rest = &cursor.rest[verb.len_utf8()..];
        let arg = self.args.get(cursor.arg).copied();
        match arg {
            _ if verb == '%' => self.write("%"),
            _ if !cursor.sound => self.complain(verb, "(BADINDEX)"),
            None => self.complain(verb, "(MISSING)"),
            Some(arg) => {
                cursor.arg += 1;
                if verb == 'v' {
                    // These two select forms of Go's own values, which have no meaning here.
                    self.flags.sharp = false;
                    self.flags.plus = false;
                }
                self.arg(arg, verb)
            }
        }
    }

    fn read_flags(&mut self, cursor: &mut Cursor<'_>) {
        while let Some(flag) = cursor.rest.chars().next() {
            match flag {
                '#' => self.flags.sharp = true,
                '0' => self.flags.zero = true,
                '+' => self.flags.plus = true,
                '-' => self.flags.minus = true,
                ' ' => self.flags.space = true,
                _ => break,
            }
            cursor.rest = &cursor.rest[1..];
        }
    }

    fn star_width(&mut self, cursor: &mut Cursor<'_>) -> Result<(), EvalFailure> {
        match cursor.star(self.args) {
            Some(width) => {
                self.flags.width = Some(width.unsigned_abs());
                if width < 0 {
                    self.flags.minus = true;
                    self.flags.zero = false;
                }
                Ok(())
            }
            None => self.write("%!(BADWIDTH)"),
        }
    }

    fn star_precision(&mut self, cursor: &mut Cursor<'_>) -> Result<(), EvalFailure> {
        match cursor.star(self.args).map(usize::try_from) {
            Some(Ok(precision)) => {
                self.flags.precision = Some(precision);
                Ok(())
            }
            _ => self.write("%!(BADPREC)"),
        }
    }

    fn extra(&mut self, from: usize) -> Result<(), EvalFailure> {
        self.flags = Flags::default();
        self.write("%!(EXTRA ")?;
        for (at, arg) in self.args.iter().enumerate().skip(from) {
            if at > from {
                self.write(", ")?;
            }
            match arg.type_name() {
                None => self.write("<nil>")?,
                Some(name) => {
                    self.write(name)?;
                    self.write("=")?;
                    self.arg(*arg, 'v')?;
                }
            }
        }
        self.write(")")
    }

    /// Prints one value with one verb.
    fn arg(&mut self, arg: Arg<'_>, verb: char) -> Result<(), EvalFailure> {
        self.budget.step(STEPS_A_VALUE)?;
        if verb == 'T' {
            return match arg.type_name() {
                Some(name) => self.text(name, 's'),
                None => self.pad("<nil>"),
            };
        }
        match (arg.node, verb) {
            (Node::Null, 'v') => self.pad("<nil>"),
            (Node::Bool(b), 't' | 'v') => self.pad(if *b { "true" } else { "false" }),
            (Node::Int(n), _) if number::INTEGER_VERBS.contains(verb) => {
                self.integer(i128::from(*n), verb)
            }
            (Node::UInt(n), _) if number::INTEGER_VERBS.contains(verb) => {
                self.integer(i128::from(*n), verb)
            }
            (Node::Float(n), _) if float::VERBS.contains(verb) => self.float(*n, verb),
            (Node::Str(text), 's' | 'v' | 'q' | 'x' | 'X') => self.text(text, verb),
            (Node::List(_) | Node::Map(_), verb) if verb != 'p' => {
                self.budget.enter()?;
                self.tree(arg, verb)?;
                self.budget.leave();
                Ok(())
            }
            _ => self.bad_verb(arg, verb),
        }
    }

    fn tree(&mut self, arg: Arg<'_>, verb: char) -> Result<(), EvalFailure> {
        match arg.node {
            Node::Map(map) => {
                self.write("map[")?;
                for (at, (key, item)) in map.iter().enumerate() {
                    self.write(if at == 0 { "" } else { " " })?;
                    self.arg(Arg::within(&Node::from(key.as_str())), verb)?;
                    self.write(":")?;
                    self.item(Arg::within(item), verb)?;
                }
            }
            node => {
                self.write("[")?;
                for (at, item) in node.as_list().unwrap_or_default().iter().enumerate() {
                    self.write(if at == 0 { "" } else { " " })?;
                    self.item(Arg::within(item), verb)?;
                }
            }
        }
        self.write("]")
    }

    fn item(&mut self, arg: Arg<'_>, verb: char) -> Result<(), EvalFailure> {
        match arg.node {
            Node::Null => self.write("<nil>"),
            _ => self.arg(arg, verb),
        }
    }

    fn bad_verb(&mut self, arg: Arg<'_>, verb: char) -> Result<(), EvalFailure> {
        let Some(name) = arg.type_name() else {
            return self.complain(verb, "(<nil>)");
        };
        self.complain(verb, "(")?;
        self.write(name)?;
        self.write("=")?;
        self.arg(arg, 'v')?;
        self.write(")")
    }

    fn complain(&mut self, verb: char, what: &str) -> Result<(), EvalFailure> {
        self.write("%!")?;
        self.write(verb.encode_utf8(&mut [0; 4]))?;
        self.write(what)
    }

    fn write(&mut self, text: &str) -> Result<(), EvalFailure> {
        print::append(&mut self.out, text, self.budget)
    }

    /// Pads a text to the width: in characters, with spaces, or with zeros on the left.
    fn pad(&mut self, text: &str) -> Result<(), EvalFailure> {
        let width = self.flags.width.unwrap_or(0);
        if width == 0 {
            return self.write(text);
        }
        let missing = width.saturating_sub(text.chars().count());
        if self.flags.minus {
            self.write(text)?;
            return self.fill(' ', missing);
        }
        self.fill(if self.flags.zero { '0' } else { ' ' }, missing)?;
        self.write(text)
    }

    fn fill(&mut self, with: char, count: usize) -> Result<(), EvalFailure> {
        self.budget.longer(self.out.len(), count)?;
        self.out.extend(std::iter::repeat_n(with, count));
        Ok(())
    }
}

impl Cursor<'_> {
    fn skip(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads a decimal number, if there is one. One that is too large consumes the rest of the format.
    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.len()
            - self
                .rest
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        if digits == 0 {
            return None;
        }
        let number = self.rest[..digits].parse().ok().filter(|n| *n <= LARGEST);
        self.rest = match number {
            Some(_) => &self.rest[digits..],
            None => "",
        };
        number
    }

    /// Reads an argument number, `[2]`. Returns whether there was a valid one.
    fn index(&mut self, args: usize) -> bool {
        let Some(inside) = self.rest.strip_prefix('[') else {
            return false;
        };
        self.reordered = true;
        let Some((number, rest)) = inside.split_once(']') else {
            self.sound = false;
            self.rest = inside;
            return false;
        };
        self.rest = rest;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let number = number.parse().ok().filter(|n| digits && *n <= LARGEST);
        match number {
            Some(number) if (1..=args).contains(&number) => {
                self.arg = number - 1;
                true
            }
            number => {
                self.sound = false;
                number.is_some()
            }
        }
    }

    /// Reads a width or precision from an argument, which must be an integer of a valid size.
    fn star(&mut self, args: &[Arg<'_>]) -> Option<isize> {
        let arg = args.get(self.arg)?;
        self.arg += 1;
        let number = isize::try_from(arg.node.as_i64()?).ok()?;
        (number.unsigned_abs() <= LARGEST).then_some(number)
    }
}
