//! `x-kubernetes-validations`: rules in CEL.
//!
//! The evaluator has no budget and lacks a part of Kubernetes' functions. A rule that is too expensive, that calls an unknown
//! function or reads a type that is not supported is reported as not checked: it neither passed nor failed.
//!
//! One file: the evaluation of one kind of rule, with the limits on what is evaluated.

use std::{
    collections::{BTreeSet, HashMap},
    panic::{self, AssertUnwindSafe},
    sync::{Arc, LazyLock},
};

use cel::{Context, Env, ExecutionError, Program, Value, extensions, objects::Key};

use super::{entries, flag};
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    schema::{INT_OR_STRING, NestedSchema, PRESERVE, Schema},
};
use orkestra_object::value::{Node, Path};

/// The maximum length of an expression that is evaluated.
const MOST_BYTES: usize = 8 * 1024;
/// The maximum nesting of parentheses: the parser is recursive.
const MOST_NESTED: usize = 40;
/// The maximum number of steps: the number of values that a rule reads, to the power of its nested macros.
const MOST_STEPS: usize = 1_000_000;
/// The macros that iterate.
const MACROS: [&str; 12] = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "distinct",
    "flatten",
];
/// Types of texts that CEL reads as other types than text.
const OTHER_TYPES: [&str; 5] = ["date", "date-time", "datetime", "duration", "byte"];
/// CEL's reserved words, which escaped field names contain. Source: Kubernetes, "Validation rules", escaping.
const RESERVED: [&str; 24] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "int",
    "uint",
    "double",
];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // An extension that cannot be added is missing: rules that use it are not checked.
    let _ = env.add_extension(extensions::strings);
    let _ = env.add_extension(extensions::encoders);
    Arc::new(env)
});

/// Why a rule of a definition is not valid, or is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleProblem {
    /// It cannot be parsed.
    Syntax(String),
    /// It reads a field that the schema does not have.
    NoSuchField(String),
}

/// The rules of a definition, while an object is checked.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) found: Diagnostics,
    programs: HashMap<String, Result<Arc<Program>, String>>,
    /// Rules that are not checked, each reported once.
    unchecked: BTreeSet<String>,
}

impl Rules {
    /// Evaluates the rules of a schema and of everything below for a valid value.
    pub(crate) fn check(&mut self, schema: &Node, value: &Node, at: &FieldPath, is_root: bool) {
        if *value == Node::Null {
            return;
        }
        let declared = schema.get("x-kubernetes-validations");
        for rule in declared.and_then(Node::as_list).unwrap_or_default() {
            self.one(rule, schema, value, (at, is_root));
        }
        match value {
            Node::Map(map) => {
                for (key, below) in map.iter() {
                    let declared = entries(schema, "properties").find(|(name, _)| *name == &**key);
                    let declared = declared.map(|(_, declared)| declared);
                    if let Some(declared) = declared.or_else(|| schema.get("additionalProperties"))
                    {
                        self.check(declared, below, &at.field(key), false);
                    }
                }
            }
            Node::List(items) => {
                if let Some(schema) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.check(schema, item, &at.index(index), false);
                    }
                }
            }
            _ => {}
        }
    }

    fn one(&mut self, rule: &Node, schema: &Node, value: &Node, (at, is_root): (&FieldPath, bool)) {
        let text = |field: &str| rule.get(field).and_then(Node::as_str);
        let Some(expression) = text("rule") else {
            return;
        };
        // A rule about a transition does not apply to an object that is created.
        let bare = without_texts(expression);
        if reads(&bare, "oldSelf") {
            if flag(rule, "optionalOldSelf") {
                self.not_checked(expression, at, "it reads `oldSelf`, which may be missing");
            }
            return;
        }
        let this = Subject {
            schema,
            value,
            is_root,
        };
        match self.evaluate(expression, &this) {
            Ok(Ok(Value::Bool(true))) => {}
            Ok(Ok(Value::Bool(false))) => {
                let message = self.message(rule, &this);
                let at = text("fieldPath").map_or_else(|| at.clone(), |path| below(at, path));
                let problem = Diagnostic::error(Code::RefusedResource, at, message);
                self.found
                    .push(problem.hint(format!("rule: {}", one_line(expression))));
            }
            Ok(Ok(_)) => self.not_checked(expression, at, "its result is not a boolean"),
            // The API server refuses an object for which a rule cannot be evaluated.
            Ok(Err(why)) => {
                let problem = Diagnostic::error(Code::RefusedResource, at.clone(), why);
                self.found
                    .push(problem.hint(format!("rule: {}", one_line(expression))));
            }
            Err(why) => self.not_checked(expression, at, &why),
        }
    }

    /// Returns the message of a rule that failed.
    fn message(&mut self, rule: &Node, this: &Subject<'_>) -> String {
        let text = |field: &str| rule.get(field).and_then(Node::as_str);
        let made = text("messageExpression").and_then(|expression| {
            match self.evaluate(expression, this) {
                Ok(Ok(Value::String(text))) => {
                    Some(one_line(&text)).filter(|text| !text.is_empty())
                }
                _ => None,
            }
        });
        let given = || text("message").map(one_line);
        made.or_else(given).unwrap_or_else(|| {
            let rule = text("rule").unwrap_or_default();
            format!("failed rule: {}", one_line(rule))
        })
    }

    /// Evaluates an expression. The outer error says why it is not evaluated, the inner one why it failed.
    fn evaluate(
        &mut self,
        expression: &str,
        this: &Subject<'_>,
    ) -> Result<Result<Value, String>, String> {
        let program = if let Some(known) = self.programs.get(expression) {
            known.clone()
        } else {
            let compiled = compile(expression).map(Arc::new);
            self.programs
                .insert(expression.to_owned(), compiled.clone());
            compiled
        }?;
        let bare = without_texts(expression);
        if let Some(field) = other_type(this.schema, &bare) {
            return Err(format!(
                "it reads `{field}`, whose format is not supported here"
            ));
        }
        let nested = nested_macros(&bare);
        let steps = size(this.value).max(2).checked_pow(nested);
        if steps.is_none_or(|steps| steps > MOST_STEPS) {
            return Err("it would take too many steps".to_owned());
        }
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_from_value("self", to_cel(this.schema, this.value, this.is_root));
        let run = || program.execute(&context);
        let Ok(result) = panic::catch_unwind(AssertUnwindSafe(run)) else {
            return Err("the evaluator failed".to_owned());
        };
        match result {
            Ok(value) => Ok(Ok(value)),
            Err(
                error @ (ExecutionError::NoSuchKey(_)
                | ExecutionError::IndexOutOfBounds(_)
                | ExecutionError::DivisionByZero(_)
                | ExecutionError::RemainderByZero(_)
                | ExecutionError::Overflow(..)),
            ) => Ok(Err(format!(
                "the rule cannot be evaluated: {}",
                lower_first(&error.to_string())
            ))),
            Err(ExecutionError::UndeclaredReference(name)) => {
                Err(format!("`{name}` is not known here"))
            }
            Err(ExecutionError::NoSuchOverload(why)) => Err(format!(
                "the function `{}` is not supported here",
                why.function()
            )),
            Err(error) => Err(lower_first(&error.to_string())),
        }
    }

    fn not_checked(&mut self, expression: &str, at: &FieldPath, why: &str) {
        let shown = one_line(expression);
        if self.unchecked.insert(shown.clone()) {
            let message = format!("the rule `{shown}` is not checked: {why}");
            let hint = "the API server checks it";
            let warning = Diagnostic::warning(Code::RuleNotChecked, at.clone(), message);
            self.found.push(warning.hint(hint));
        }
    }
}

/// The value that a rule is about.
struct Subject<'n> {
    schema: &'n Node,
    value: &'n Node,
    is_root: bool,
}

/// Checks a rule of a definition: its syntax, and the fields that it reads.
pub(crate) fn check_rule(schema: &Node, expression: &str, is_root: bool) -> Option<RuleProblem> {
    let bare = without_texts(expression);
    if is_bounded(&bare)
        && let Err(errors) = ENV.compile(expression)
    {
        let text = errors.to_string();
        let line = text.lines().find(|line| !line.trim().is_empty());
        return Some(RuleProblem::Syntax(
            line.unwrap_or_default().trim().to_owned(),
        ));
    }
    if is_root && schema.get("properties").is_none() {
        return None;
    }
    let view = if is_root {
        Schema::of_objects(schema, None)
    } else {
        Schema::of_part(schema)
    };
    for name in ["self", "oldSelf"] {
        for path in paths(&bare, name) {
            let known = Path::of_fields(path.iter().map(|name| unescaped(name)));
            if matches!(view.at_path(&known), NestedSchema::Nowhere) {
                return Some(RuleProblem::NoSuchField(path.join(".")));
            }
        }
    }
    None
}

fn compile(expression: &str) -> Result<Program, String> {
    if !is_bounded(&without_texts(expression)) {
        return Err("it is too long".to_owned());
    }
    let parse = || ENV.compile(expression);
    match panic::catch_unwind(parse) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(_)) | Err(_) => Err("it cannot be parsed".to_owned()),
    }
}

/// True if an expression without its texts is short and flat enough for the parser.
fn is_bounded(bare: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in bare.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    bare.len() <= MOST_BYTES && deepest <= MOST_NESTED
}

/// Returns an expression with its texts blanked, so that they are not taken for code.
fn without_texts(expression: &str) -> String {
    let mut bare = String::with_capacity(expression.len());
    let mut quote = None;
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match quote {
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                bare.push(c);
            }
            None => bare.push(c),
            Some(open) if c == open => {
                quote = None;
                bare.push(c);
            }
            Some(_) => {
                if c == '\\' {
                    chars.next();
                    bare.push(' ');
                }
                bare.push(' ');
            }
        }
    }
    bare
}

/// True if an expression reads a variable.
fn reads(bare: &str, name: &str) -> bool {
    words_of(bare).any(|(start, word)| word == name && !bare[..start].trim_end().ends_with('.'))
}

/// Returns the identifiers of an expression with their positions.
fn words_of(bare: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + bare[rest..].find(is_part)?;
        let end = bare[start..].find(|c| !is_part(c));
        let end = end.map_or(bare.len(), |end| start + end);
        rest = end;
        Some((start, &bare[start..end]))
    })
}

/// Returns the paths of fields that an expression reads below a variable, without calls at their end.
fn paths<'e>(bare: &'e str, name: &str) -> Vec<Vec<&'e str>> {
    let mut found = Vec::new();
    for (start, word) in words_of(bare) {
        if word != name || bare[..start].ends_with('.') {
            continue;
        }
        let mut path = Vec::new();
        let mut rest = &bare[start + word.len()..];
        while let Some(after) = rest.strip_prefix('.') {
            let Some((0, field)) = words_of(after).next() else {
                break;
            };
            rest = &after[field.len()..];
            if rest.trim_start().starts_with('(') {
                break;
            }
            path.push(field);
        }
        if !path.is_empty() {
            found.push(path);
        }
    }
    found
}

/// Returns the depth of nested macros in an expression, at least 1.
fn nested_macros(bare: &str) -> u32 {
    let (mut open, mut deepest) = (Vec::new(), 1);
    for (at, byte) in bare.bytes().enumerate() {
        match byte {
            b'(' => {
                let before = bare[..at].trim_end();
                let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = &before[start.map_or(0, |start| start + 1)..];
                open.push(MACROS.contains(&name));
            }
            b')' => {
                open.pop();
            }
            _ => continue,
        }
        let nested = open.iter().filter(|is_macro| **is_macro).count();
        deepest = deepest.max(u32::try_from(nested).unwrap_or(u32::MAX));
    }
    deepest
}

/// Returns the number of values in a value, and of characters in its texts.
fn size(value: &Node) -> usize {
    match value {
        Node::Map(map) => 1 + map.iter().map(|(_, below)| size(below)).sum::<usize>(),
        Node::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Node::Str(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

/// Returns a field below a schema that an expression names, and that CEL reads as another type than text.
fn other_type<'n>(schema: &'n Node, bare: &str) -> Option<&'n str> {
    let has_other = |schema: &Node| {
        let format = schema.get("format").and_then(Node::as_str);
        let of_text = schema.get("type").and_then(Node::as_str) == Some("string");
        of_text && format.is_some_and(|format| OTHER_TYPES.contains(&format))
    };
    if has_other(schema) {
        return Some("self");
    }
    let is_named = |name: &str| words_of(bare).any(|(_, word)| word == escaped(name));
    for (name, below) in entries(schema, "properties") {
        if has_other(below) {
            if is_named(name) {
                return Some(name);
            }
        } else if let Some(found) = other_type(below, bare) {
            return Some(found);
        }
    }
    let inner = ["items", "additionalProperties"];
    inner
        .iter()
        .find_map(|inner| other_type(schema.get(inner)?, bare))
}

/// Converts a value as the API server does for CEL: numbers by their type in the schema, fields with escaped names, and only
/// fields that are declared.
fn to_cel(schema: &Node, value: &Node, is_root: bool) -> Value {
    let is_number = schema.get("type").and_then(Node::as_str) == Some("number");
    match value {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(*flag),
        #[expect(clippy::cast_precision_loss, reason = "a double, as in the API server")]
        Node::Int(number) if is_number => Value::Float(*number as f64),
        Node::Int(number) => Value::Int(*number),
        Node::UInt(number) => Value::UInt(*number),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole, and an integer in the schema"
        )]
        Node::Float(number) if !is_number && number.fract() == 0.0 => Value::Int(*number as i64),
        Node::Float(number) => Value::Float(*number),
        Node::Str(text) => Value::String(Arc::new(text.to_string())),
        Node::List(items) => {
            let items = items.iter();
            let below = schema.get("items").unwrap_or(&Node::Null);
            let items: Vec<Value> = items.map(|item| to_cel(below, item, false)).collect();
            Value::List(Arc::new(items))
        }
        Node::Map(map) => {
            let properties = schema.get("properties").and_then(Node::as_map);
            let values = schema.get("additionalProperties");
            let keeps =
                flag(schema, PRESERVE) || flag(schema, INT_OR_STRING) || *schema == Node::Null;
            let fields = map.iter().filter_map(|(key, below)| {
                let declared = properties.and_then(|all| all.get(key));
                if let Some(schema) = declared {
                    let value = match &**key {
                        "metadata" if is_root => names_only(below),
                        _ => to_cel(schema, below, false),
                    };
                    return Some((Key::from(escaped(key)), value));
                }
                if is_root {
                    return match &**key {
                        "metadata" => Some((Key::from("metadata"), names_only(below))),
                        "apiVersion" | "kind" => {
                            Some((Key::from(&**key), to_cel(&Node::Null, below, false)))
                        }
                        _ => None,
                    };
                }
                match values {
                    Some(schema) => {
                        Some((Key::from(key.to_string()), to_cel(schema, below, false)))
                    }
                    None if keeps => Some((
                        Key::from(key.to_string()),
                        to_cel(&Node::Null, below, false),
                    )),
                    None => None,
                }
            });
            Value::Map(fields.collect::<HashMap<Key, Value>>().into())
        }
    }
}

/// Rules read only the names of the metadata.
fn names_only(metadata: &Node) -> Value {
    let names = ["name", "generateName"].into_iter().filter_map(|name| {
        let value = metadata.get(name).filter(|value| **value != Node::Null)?;
        Some((Key::from(name), to_cel(&Node::Null, value, false)))
    });
    Value::Map(names.collect::<HashMap<Key, Value>>().into())
}

/// Escapes a field's name. Source: Kubernetes, "Validation rules", escaping.
fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

fn unescaped(name: &str) -> String {
    if let Some(word) = name
        .strip_prefix("__")
        .and_then(|name| name.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return word.to_owned();
    }
    name.replace("__slash__", "/")
        .replace("__dash__", "-")
        .replace("__dot__", ".")
        .replace("__underscores__", "__")
}

/// Returns a path below another one: `.x.y`, or `['x']`.
fn below(at: &FieldPath, path: &str) -> FieldPath {
    let path = path.trim_start_matches('.');
    let below = FieldPath::parse(&path.replace("['", ".").replace("']", ""));
    let segments = below.segments().iter();
    segments.fold(at.clone(), |at, segment| match segment {
        orkestra_language::diagnostics::Segment::Field(name) => at.field(name),
        orkestra_language::diagnostics::Segment::Index(index) => at.index(*index),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
