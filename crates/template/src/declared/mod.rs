//! Notes of a user: named expressions without arguments, which templates call by their bare name.
//!
//! ```text
//!  declared ── names ──► stubs ── parse, call graph ──► order ── parse ──► Functions
//! ```
//!
//! Each note is compiled after the notes that it calls and holds references to them, so a call needs no lookup and no note
//! can call itself, directly or indirectly.

use std::collections::{BTreeMap, BTreeSet};

use super::functions::{Function, Functions};
use super::{Template, TemplateError, notes, parse};
use orkestra_language::diagnostics::Code;

/// The maximum depth of notes that call notes.
const MOST_LEVELS: usize = 50;
/// The maximum number of notes. No human writes more.
const MOST_FUNCTIONS: usize = 1000;

/// Words that begin statements or are constants. They are not valid as names of notes.
const RESERVED: [&str; 13] = [
    "block", "break", "continue", "define", "else", "end", "false", "if", "nil", "range",
    "template", "true", "with",
];

/// A note as declared by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionSource<'a> {
    /// Its name: letters, digits and `_`, not starting with a digit.
    pub name: &'a str,
    /// A template. It is evaluated on the root data of its caller, without the caller's variables and dot.
    pub expression: &'a str,
    /// True if it may hide a built-in note of the same name.
    pub shadow: bool,
}

/// An error or warning about a declared note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionProblem {
    /// The index of the declared note, from 0.
    pub index: usize,
    /// The part of the note.
    pub part: FunctionPart,
    /// True if the note works in spite of the problem.
    pub is_warning: bool,
    /// The problem. Its offset is relative to the start of the part.
    pub error: TemplateError,
}

/// The parts of a declared note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionPart {
    /// The name.
    Name,
    /// The expression.
    Expression,
}

impl Functions {
    /// Compiles notes that may call each other, in any order.
    ///
    /// Problems are reported in the order of the declarations. The name of a note with an error stays known and the note
    /// returns nothing, so its callers are not reported as well.
    ///
    /// The errors are: an invalid name, a duplicate name, an expression that does not parse, notes that call each other in a
    /// circle or more than 50 levels deep, more than 1000 notes. A name that hides a built-in note without `shadow` is a
    /// warning; so are [`Template::warnings`].
    pub fn compile(declared: &[FunctionSource<'_>]) -> (Functions, Vec<FunctionProblem>) {
        let mut compiler = Compiler {
            declared,
            positions: BTreeMap::new(),
            functions: Functions::default(),
            problems: Vec::new(),
        };
        compiler.names();
        compiler.expressions();
        let mut problems = compiler.problems;
        problems.sort_by_key(|problem| (problem.index, problem.part as u8, problem.error.offset));
        (compiler.functions, problems)
    }
}

struct Compiler<'a> {
    declared: &'a [FunctionSource<'a>],
    /// The index of each declared name.
    positions: BTreeMap<&'a str, usize>,
    /// Stubs, and the notes compiled so far.
    functions: Functions,
    problems: Vec<FunctionProblem>,
}

/// For each note that parses, the notes that it calls, with the offsets.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<Box<str>, usize>>;

impl<'a> Compiler<'a> {
    /// Creates a stub for each name.
    fn names(&mut self) {
        for (index, declared) in self.declared.iter().enumerate() {
            let FunctionSource { name, shadow, .. } = *declared;
            if index == MOST_FUNCTIONS {
                let message = format!("more than {MOST_FUNCTIONS} functions");
                self.of_name(index, Code::TooLarge, message, None);
                return;
            }
            if let Err(message) = check_name(name) {
                let hint = "a name has letters, digits and `_`, and does not start with a digit";
                self.of_name(index, Code::NoteName, message, Some(hint));
                continue;
            }
            if let Some(first) = self.positions.get(name) {
                let message =
                    format!("the function at position {first} is called `{name}` already");
                self.of_name(index, Code::SetTwice, message, None);
                continue;
            }
            if notes::find(name).is_some() && !shadow {
                let message = format!("`{name}` hides the built-in function of this name");
                let hint = "choose another name, or set `shadow: true`";
                self.of_name(index, Code::HiddenNote, message, Some(hint));
                if let Some(problem) = self.problems.last_mut() {
                    problem.is_warning = true;
                }
            }
            self.positions.insert(name, index);
            self.put(Function::new(name, Template::empty()));
        }
    }

    /// Replaces stubs with compiled notes, each after the notes that it calls.
    fn expressions(&mut self) {
        let mut graph = Graph::new();
        for (name, index) in &self.positions {
            match parse::parse(self.declared[*index].expression, &self.functions) {
                Ok(parsed) => {
                    let calls = parsed.marks.calls.into_iter();
                    graph.insert(name, calls.map(|(name, (_, at))| (name, at)).collect());
                }
                Err(errors) => {
                    let problem = |error| FunctionProblem {
                        index: *index,
                        part: FunctionPart::Expression,
                        is_warning: false,
                        error,
                    };
                    self.problems.extend(errors.into_iter().map(problem));
                }
            }
        }
        let mut levels: BTreeMap<&str, usize> = BTreeMap::new();
        loop {
            // Notes whose callees are all compiled, or will never be because of their own errors.
            let ready: Vec<&str> = graph
                .iter()
                .filter(|(_, calls)| !calls.keys().any(|name| graph.contains_key(&**name)))
                .map(|(name, _)| *name)
                .collect();
            if ready.is_empty() {
                break;
            }
            for name in ready {
                let calls = graph.remove(name).unwrap_or_default();
                let below = calls.keys().filter_map(|name| levels.get(&**name)).max();
                let level = below.map_or(1, |below| below + 1);
                self.compile(name, level);
                levels.insert(name, level);
            }
        }
        self.circles(&graph);
    }

    /// Compiles one note whose callees are compiled.
    fn compile(&mut self, name: &str, level: usize) {
        let Some(&index) = self.positions.get(name) else {
            return;
        };
        if level > MOST_LEVELS {
            let message =
                format!("`{name}` calls functions that call functions, {level} levels deep");
            let hint = format!("at most {MOST_LEVELS} are allowed");
            self.of_name(index, Code::TooLarge, message, Some(&hint));
            return;
        }
        // It has parsed before, with stubs.
        let Ok(template) = Template::parse_with(self.declared[index].expression, &self.functions)
        else {
            return;
        };
        let warnings = template.warnings().iter().map(|warning| FunctionProblem {
            index,
            part: FunctionPart::Expression,
            is_warning: true,
            error: warning.clone(),
        });
        self.problems.extend(warnings);
        self.put(Function::new(name, template));
    }

    /// Reports the circles among the notes that could not be ordered. A note that only leads into a circle is not reported.
    fn circles(&mut self, graph: &Graph<'a>) {
        let next = |name: &str| {
            let (known, calls) = graph.get_key_value(name)?;
            let (callee, at) = calls
                .iter()
                .find(|(name, _)| graph.contains_key(&***name))?;
            let (callee, _) = graph.get_key_value(&**callee)?;
            Some((*known, *callee, *at))
        };
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut names: Vec<&str> = graph.keys().copied().collect();
        names.sort_by_key(|name| self.positions.get(name));
        for start in names {
            let mut walked: Vec<(&str, usize)> = Vec::new();
            let mut at_name = start;
            while seen.insert(at_name) {
                let Some((name, callee, at)) = next(at_name) else {
                    break;
                };
                walked.push((name, at));
                at_name = callee;
            }
            let Some(begins) = walked.iter().position(|(name, _)| *name == at_name) else {
                continue; // it leads to a circle that is already reported
            };
            self.circle(&walked[begins..]);
        }
    }

    /// Reports a circle at the member that is declared first.
    fn circle(&mut self, members: &[(&str, usize)]) {
        let position = |(name, _): &(&str, usize)| self.positions.get(name).copied();
        let first = (0..members.len()).min_by_key(|at| position(&members[*at]));
        let Some((first, index)) = first.and_then(|at| Some((at, position(&members[at])?))) else {
            return;
        };
        let (name, offset) = members[first];
        let turn = members.iter().cycle().skip(first);
        let path: Vec<&str> = turn
            .take(members.len() + 1)
            .map(|(name, _)| *name)
            .collect();
        let after = path.get(1).map_or(0, |callee| callee.len());
        self.problems.push(FunctionProblem {
            index,
            part: FunctionPart::Expression,
            is_warning: false,
            error: TemplateError {
                offset,
                len: after,
                code: Code::NoteCircle,
                message: format!("`{name}` calls itself: {}", path.join(" → ")),
                hint: Some("a function cannot need its own result".into()),
            },
        });
    }

    fn put(&mut self, function: Function) {
        self.functions.put(function);
    }

    fn of_name(&mut self, index: usize, code: Code, message: String, hint: Option<&str>) {
        self.problems.push(FunctionProblem {
            index,
            part: FunctionPart::Name,
            is_warning: false,
            error: TemplateError {
                offset: 0,
                len: self.declared[index].name.len(),
                code,
                message,
                hint: hint.map(str::to_owned),
            },
        });
    }
}

/// Checks that a name is valid for a note.
///
/// Source: the Go language specification, "Identifiers".
fn check_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is a word of the template language"));
    }
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    if !starts || !chars.all(|c| c == '_' || c.is_alphanumeric()) {
        return Err(format!("`{name}` is not a valid function name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
