//! The environment of a chart's templates: named templates, budget, clock, randomness.

pub(crate) mod functions;
mod glob;
mod objects;
mod print;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use jiff::Timestamp;
use orkestra_object::value::{Key, Node};
use orkestra_template::go::{self, EvalFailure, Machine, Unit};
use orkestra_template::{Entropy, EvalBudget as Steps, EvalErrorKind};
use regex::Regex;

use crate::Budget;
use crate::error::Frame;
use crate::value::{Elem, Value, object};

use functions::Function;

/// The text of missing values inside a template, which is removed from its output.
const NO_VALUE: &str = "<no value>";

/// The maximum nesting of lists and maps that a function processes.
const MOST_LEVELS: u32 = 100;

/// The maximum size of a compiled regular expression, in bytes.
const REGEX_BYTES: usize = 1 << 20;

/// The maximum nesting of `include` and `tpl`, which limits the stack.
const MOST_CALLS: u32 = 60;

/// A named template: a definition of a unit, and the unit's file.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) unit: Unit<&'static Function>,
    pub(crate) definition: usize,
    pub(crate) file: Rc<str>,
}

/// The evaluation of all templates of a chart.
pub(crate) struct Engine<'c> {
    budget: Steps,
    text_bytes: usize,
    templates: Rc<BTreeMap<Rc<str>, Template>>,
    /// `None` refuses random values.
    entropy: Option<&'c Entropy>,
    now: Timestamp,
    regexes: HashMap<Rc<str>, Rc<Regex>>,
    /// The positions of the failure, the innermost template first.
    trace: Vec<Frame>,
    calls: u32,
}

impl<'c> Engine<'c> {
    pub(crate) fn new(budget: &Budget, entropy: Option<&'c Entropy>, now: Timestamp) -> Self {
        Engine {
            budget: Steps {
                steps: budget.steps,
                bytes: budget.bytes,
                depth: budget.depth,
            },
            text_bytes: usize::try_from(budget.text_bytes).unwrap_or(usize::MAX),
            templates: Rc::default(),
            entropy,
            now,
            regexes: HashMap::new(),
            trace: Vec::new(),
            calls: 0,
        }
    }

    /// Parses a file and adds its definitions: its own text under its name, and named templates. A definition replaces an
    /// earlier one of its name unless it is blank.
    ///
    /// # Errors
    /// The first syntax error, and its position.
    pub(crate) fn add(&mut self, file: &str, source: &str) -> Result<(), (Frame, String)> {
        self.define(file, file, source)
    }

    fn define(&mut self, name: &str, file: &str, source: &str) -> Result<(), (Frame, String)> {
        let unit = Unit::parse(name, source, &functions::find).map_err(|errors| {
            let first = errors.into_iter().next();
            let offset = first.as_ref().map_or(0, |error| error.offset);
            let message = first.map_or_else(String::new, |error| error.message);
            (Frame::new(file, source, offset), message)
        })?;
        let file: Rc<str> = file.into();
        let names: Vec<Rc<str>> = unit.names().map(Rc::from).collect();
        let templates = Rc::make_mut(&mut self.templates);
        for (definition, name) in names.into_iter().enumerate() {
            if unit.is_blank(definition) && templates.contains_key(&name) {
                continue;
            }
            let template = Template {
                unit: unit.clone(),
                definition,
                file: Rc::clone(&file),
            };
            templates.insert(name, template);
        }
        Ok(())
    }

    /// Returns the text of a named template.
    ///
    /// # Errors
    /// The failure of the template; [`Engine::take_trace`] returns its positions.
    pub(crate) fn render(&mut self, name: &str, dot: Value) -> Result<String, EvalFailure> {
        let mut out = String::new();
        self.invoke(&mut out, name, dot)?;
        Ok(out.replace(NO_VALUE, ""))
    }

    /// Returns the text of a named template, including the text of missing values: `include`.
    pub(crate) fn render_raw(&mut self, name: &str, dot: Value) -> Result<String, EvalFailure> {
        let mut out = String::new();
        self.invoke(&mut out, name, dot)?;
        Ok(out)
    }

    /// Returns the text of a template given as text: `tpl`. Only the template itself can use its definitions.
    pub(crate) fn render_source(
        &mut self,
        source: &str,
        dot: Value,
    ) -> Result<String, EvalFailure> {
        self.steps(source.len() as u64)?;
        let templates = Rc::clone(&self.templates);
        let name = "<tpl>";
        let defined = self.define(name, name, source);
        let result = match defined {
            Ok(()) => self.render(name, dot),
            Err((frame, message)) => {
                self.trace.push(frame);
                Err(EvalFailure::refused(message))
            }
        };
        self.templates = templates;
        result
    }

    /// Returns the positions of the last failure, the innermost first.
    pub(crate) fn take_trace(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.trace)
    }

    /// Returns the time of the evaluation.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Draws random bytes.
    pub(crate) fn random(&mut self, count: usize) -> Result<Vec<u8>, EvalFailure> {
        self.steps(count as u64)?;
        self.text(count)?;
        let entropy = self.entropy.ok_or_else(functions::no_randomness)?;
        Ok(entropy.draw(count))
    }

    /// Charges steps to the budget.
    pub(crate) fn steps(&mut self, steps: u64) -> Result<(), EvalFailure> {
        self.budget.step(steps)
    }

    /// Charges the bytes of a text that is about to be built.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), EvalFailure> {
        if bytes > self.text_bytes {
            let message = format!(
                "the template makes a text of more than {} bytes",
                self.text_bytes
            );
            return Err(EvalFailure::new(EvalErrorKind::Budget, message));
        }
        self.budget.take(bytes)
    }

    /// Charges the size of a list with that many items.
    pub(crate) fn items(&mut self, count: usize) -> Result<(), EvalFailure> {
        self.budget.items(count)
    }

    /// Charges for processing a whole value. Fails if it is nested too deeply or contains itself.
    pub(crate) fn whole(&mut self, value: &Value) -> Result<(), EvalFailure> {
        let mut left = self.budget.steps;
        let before = left;
        let Some(bytes) = value.measure(&mut left, MOST_LEVELS) else {
            let message =
                format!("a value is nested deeper than {MOST_LEVELS} levels, or too large");
            return Err(EvalFailure::new(EvalErrorKind::Budget, message));
        };
        self.steps(before - left)?;
        self.budget
            .take(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(crate) fn budget_mut(&mut self) -> &mut Steps {
        &mut self.budget
    }

    /// Returns a compiled regular expression.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Rc<Regex>, EvalFailure> {
        if let Some(known) = self.regexes.get(pattern) {
            return Ok(Rc::clone(known));
        }
        self.steps(1000 + pattern.len() as u64)?;
        let compiled = regex::RegexBuilder::new(&functions::as_rust_regex(pattern))
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|_| EvalFailure::refused(format!("error parsing regexp: `{pattern}`")))?;
        self.budget.take(REGEX_BYTES / 16)?;
        let compiled = Rc::new(compiled);
        self.regexes.insert(pattern.into(), Rc::clone(&compiled));
        Ok(compiled)
    }
}

impl Machine for Engine<'_> {
    type Function = &'static Function;
    type Value = Value;

    fn budget(&mut self) -> &mut Steps {
        &mut self.budget
    }

    fn literal(&mut self, node: &Node) -> Result<Value, EvalFailure> {
        Ok(match node {
            Node::Int(n) => Value::Int(*n),
            Node::Str(text) => {
                self.budget.take(text.len())?;
                Value::text(text)
            }
            node => Value::from_node(node),
        })
    }

    fn nothing(&self) -> Value {
        Value::Nil
    }

    fn is_true(&self, value: &Value) -> bool {
        !value.is_empty()
    }

    fn fields(&mut self, mut base: Value, keys: &[Key]) -> Result<Value, EvalFailure> {
        // The value of a variable or of parentheses may be missing: `(.Values.a).b`. An intermediate key may not.
        if base.is_nil() {
            return Ok(base);
        }
        for key in keys {
            base = match &base {
                Value::Map(map, _) => map.borrow().get(key.as_str()).cloned().unwrap_or_default(),
                Value::Object(object) => object.clone().field(key, self)?,
                Value::Nil => {
                    let message = format!("nil pointer evaluating interface {{}}.{key}");
                    return Err(EvalFailure::wrong_type(message));
                }
                value => {
                    let name = value.type_name();
                    let message = format!("can't evaluate field {key} in type {name}");
                    return Err(EvalFailure::wrong_type(message));
                }
            };
        }
        Ok(base)
    }

    fn method(&mut self, base: Value, name: &Key, args: Vec<Value>) -> Result<Value, EvalFailure> {
        match &base {
            Value::Object(object) => object.clone().method(name, &args, self),
            Value::Map(..) => {
                let message = format!("{name} is not a method but has arguments");
                Err(EvalFailure::wrong_type(message))
            }
            Value::Nil => {
                let message = format!("nil pointer evaluating interface {{}}.{name}");
                Err(EvalFailure::wrong_type(message))
            }
            value => {
                let type_name = value.type_name();
                let message = format!("can't evaluate field {name} in type {type_name}");
                Err(EvalFailure::wrong_type(message))
            }
        }
    }

    fn call(
        &mut self,
        function: &&'static Function,
        args: Vec<Value>,
    ) -> Result<Value, EvalFailure> {
        functions::call(function, &args, self)
    }

    fn print(&mut self, out: &mut String, value: &Value) -> Result<(), EvalFailure> {
        match value {
            Value::Nil => self.append(out, NO_VALUE),
            Value::Str(text) => self.append(out, text),
            value => {
                let text = print::text(value, self)?;
                self.append(out, &text)
            }
        }
    }

    fn append(&mut self, out: &mut String, text: &str) -> Result<(), EvalFailure> {
        if out.len() + text.len() > self.text_bytes {
            // Fails because the text is too long.
            self.text(out.len() + text.len())?;
        }
        self.budget.step(1)?;
        self.budget.take(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn invoke(&mut self, out: &mut String, name: &str, dot: Value) -> Result<(), EvalFailure> {
        let Some(template) = self.templates.get(name).cloned() else {
            let message = format!("no template {name:?} is defined");
            return Err(EvalFailure::refused(message));
        };
        if self.calls == MOST_CALLS {
            let message = format!("templates call each other more than {MOST_CALLS} levels deep");
            return Err(EvalFailure::new(EvalErrorKind::Budget, message));
        }
        self.calls += 1;
        let Template {
            unit,
            definition,
            file,
        } = template;
        let result = go::run(&unit, definition, self, dot, out);
        self.calls -= 1;
        result.map_err(|error| {
            self.trace
                .push(Frame::new(&file, unit.source(), error.offset));
            EvalFailure::new(error.kind, error.message)
        })
    }

    fn items(&mut self, over: &Value, with_key: bool) -> Result<Vec<(Value, Value)>, EvalFailure> {
        let numbered = |items: &[Value]| {
            let pair = |(at, item): (usize, &Value)| {
                (
                    Value::Int(i64::try_from(at).unwrap_or(i64::MAX)),
                    item.clone(),
                )
            };
            items.iter().enumerate().map(pair).collect()
        };
        match over {
            Value::Nil => Ok(Vec::new()),
            Value::List(items, _) => {
                self.budget.items(items.len())?;
                Ok(numbered(items))
            }
            Value::Map(map, _) => {
                let map = map.borrow();
                self.budget.items(map.len())?;
                let pair =
                    |(key, item): (&Rc<str>, &Value)| (Value::Str(Rc::clone(key)), item.clone());
                Ok(map.iter().map(pair).collect())
            }
            Value::Int(_) | Value::Int64(_) if with_key => Err(EvalFailure::wrong_type(format!(
                "can't use {} to iterate over more than one variable",
                print::text(over, self)?
            ))),
            Value::Int(n) | Value::Int64(n) => {
                let count = usize::try_from(*n).unwrap_or(0);
                self.budget.items(count)?;
                let number = |at: i64| (Value::Nil, Value::Int(at));
                Ok((0..*n).map(number).collect())
            }
            Value::Object(object) => match object::items(object) {
                Some(items) => {
                    self.budget.items(items.len())?;
                    Ok(items)
                }
                None => Err(not_iterable(over, self)),
            },
            _ => Err(not_iterable(over, self)),
        }
    }
}

fn not_iterable(value: &Value, engine: &mut Engine<'_>) -> EvalFailure {
    match print::text(value, engine) {
        Ok(text) => EvalFailure::wrong_type(format!("range can't iterate over {text}")),
        Err(failure) => failure,
    }
}

/// Returns a list that a function made from a part of another, with the same element type.
pub(crate) fn part_of(elem: Elem, items: Vec<Value>) -> Value {
    Value::List(crate::value::Items::new(items), elem)
}
