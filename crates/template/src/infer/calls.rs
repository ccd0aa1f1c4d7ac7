//! The types of calls.

use super::{Infer, explain_word};
use crate::ast::CallExpr;
use crate::notes::{self, BuiltInNote};
use orkestra_language::diagnostics::{Code, Severity};
use orkestra_language::schema::{Constant, Kinds, Type, with_article};
use orkestra_object::value::Node;

/// An argument and its offset.
type Arg<'s> = (u32, Type<'s>);

impl<'s> Infer<'_, '_, 's> {
    /// The type of a call. A pipeline may provide the last argument.
    pub(crate) fn call(
        &mut self,
        call: &CallExpr,
        at: u32,
        dot: &Type<'s>,
        piped: Option<Arg<'s>>,
    ) -> Type<'s> {
        let mut args: Vec<Arg<'s>> = Vec::with_capacity(call.args.len() + 1);
        for arg in &call.args {
            let given = self.expr(arg, dot);
            args.push((arg.at, given));
        }
        args.extend(piped);
        let note = call.note;
        if !self.fit(note, &args) {
            return result(note.result);
        }
        match note.name {
            "eq" | "ne" | "lt" | "le" | "gt" | "ge" => self.compare(note, at, &args),
            _ => {}
        }
        match note.result {
            notes::NoteType::Inside => self.inside(note, args),
            notes::NoteType::OneOf(positions) => one_of(note, positions, args),
            other => result(other),
        }
    }

    /// Returns whether the types of the arguments fit the note. An impossible argument is reported.
    fn fit(&mut self, note: &'static BuiltInNote, args: &[Arg<'s>]) -> bool {
        let mut all = true;
        for (position, (at, given)) in args.iter().enumerate() {
            let wanted = note.param(position);
            let takes = Kinds::that(|sample| wanted.accepts(&sample));
            // The parser has reported constants already.
            if given.may == Kinds::NONE || given.may.meets(takes) || given.is_constant() {
                continue;
            }
            all = false;
            let message = format!(
                "`{}` expects {} as argument {}, not {}",
                note.name,
                wanted.name(),
                position + 1,
                with_article(&given.to_string())
            );
            self.report(
                Severity::Error,
                Code::ArgumentType,
                *at as usize,
                message,
                None,
            );
        }
        all
    }

    /// The result of `get`, `index` and similar: the value at the keys, one after the other.
    fn inside(&mut self, note: &'static BuiltInNote, args: Vec<Arg<'s>>) -> Type<'s> {
        let mut args = args.into_iter();
        let Some((_, mut given)) = args.next() else {
            return Type::any();
        };
        for (at, key) in args {
            let constant = match key.constants() {
                [only] if key.is_constant() => Some(&only.node),
                _ => None,
            };
            given = match constant {
                Some(Node::Str(name)) => {
                    if note.name == "index" && given.may == Kinds::LIST {
                        let message = format!("`{name}` is not a position in a {given}");
                        let hint = Some("positions of a list are numbers from 0".to_owned());
                        self.report(
                            Severity::Error,
                            Code::ArgumentType,
                            at as usize,
                            message,
                            hint,
                        );
                        return Type::any();
                    }
                    match given.field(name) {
                        Ok(below) => below,
                        Err(no_field) => {
                            self.no_field(name, &no_field, at as usize);
                            return Type::any();
                        }
                    }
                }
                _ if given.may.within(Kinds::LIST | Kinds::MAP) => given.each(),
                _ => Type::any(),
            };
        }
        given
    }

    /// Reports comparisons of types that are never equal, and with words that do not exist.
    fn compare(&mut self, note: &'static BuiltInNote, at: u32, args: &[Arg<'s>]) {
        let Some(((_, first), others)) = args.split_first() else {
            return;
        };
        for (other_at, other) in others {
            if let (Some(one), Some(two)) = (comparable(first), comparable(other))
                && one != two
            {
                let [first, other_words] = [first, other].map(|one| with_article(&one.to_string()));
                let message = format!("`{}` compares {first} with {other_words}", note.name);
                let hint = match (other.constants(), one) {
                    (
                        [
                            Constant {
                                node: Node::Str(text),
                                ..
                            },
                        ],
                        "number",
                    ) if Kinds::of(&Node::Str(text.clone()))
                        .within(Kinds::INT_TEXT | Kinds::FLOAT_TEXT) =>
                    {
                        Some(format!("write {} without quotes", text.trim()))
                    }
                    _ => None,
                };
                let place = if other.is_constant() { *other_at } else { at };
                self.report(
                    Severity::Warning,
                    Code::ComparedTypes,
                    place as usize,
                    message,
                    hint,
                );
            } else if matches!(note.name, "eq" | "ne") {
                self.check_word(first, other);
                self.check_word(other, first);
            }
        }
    }

    /// Reports a constant that is not in an enum.
    fn check_word(&mut self, listed: &Type<'s>, constant: &Type<'s>) {
        let Some(words) = listed.schema().and_then(|schema| schema.words()) else {
            return;
        };
        if !constant.is_constant() {
            return;
        }
        for Constant { node, at } in constant.constants() {
            // Comparing with an empty value tests for a missing one.
            if node.is_empty_value() || words.contains(node) {
                continue;
            }
            let (message, hint) = explain_word(node, words);
            self.report(
                Severity::Error,
                Code::NotInEnum,
                *at as usize,
                message,
                hint,
            );
        }
    }
}

/// The class of comparable values that a type belongs to, if any.
fn comparable(given: &Type<'_>) -> Option<&'static str> {
    let classes = [
        (Kinds::NUMBER, "number"),
        (Kinds::TEXT, "text"),
        (Kinds::BOOL, "boolean"),
        (Kinds::LIST, "list"),
        (Kinds::MAP, "map"),
    ];
    let class = classes.iter().find(|(kinds, _)| given.may.within(*kinds));
    class.map(|(_, name)| *name)
}

/// An argument of `and` or `or` before the last is the result only if it is empty, or only if it is not.
fn one_of<'s>(note: &BuiltInNote, positions: &[usize], args: Vec<Arg<'s>>) -> Type<'s> {
    let last = args.len().saturating_sub(1);
    let mut given = Type::of(Kinds::NONE);
    for (position, (_, arg)) in args.into_iter().enumerate() {
        if !positions.is_empty() && !positions.contains(&position) {
            continue;
        }
        let arg = if matches!(note.name, "and" | "or") && position != last {
            arg.without_constants()
        } else {
            arg
        };
        given = given.or(arg);
    }
    given
}

fn result<'s>(declared: notes::NoteType) -> Type<'s> {
    Type::of(match declared {
        notes::NoteType::Any | notes::NoteType::Inside | notes::NoteType::OneOf(_) => Kinds::ANY,
        notes::NoteType::Text => Kinds::TEXT,
        notes::NoteType::Int => Kinds::INT,
        notes::NoteType::Number => Kinds::NUMBER,
        notes::NoteType::Bool => Kinds::BOOL,
        notes::NoteType::List => Kinds::LIST,
        notes::NoteType::Map => Kinds::MAP,
    })
}
