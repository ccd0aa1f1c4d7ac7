//! An evaluator of CEL, with the functions of the API server that policies use.

use std::{cell::RefCell, collections::HashMap, rc::Rc, sync::Arc};

use cel::{Context, Program, extractors::This, objects::Key};
use serde_json::{Value, json};

/// The data of a request that a policy can read.
pub(crate) struct Request<'a> {
    pub(crate) operation: &'a str,
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) user: &'a str,
    /// The options of the request; null for none.
    pub(crate) options: &'a Value,
}

impl<'a> Request<'a> {
    /// The creation of an object by a user without permissions of its own.
    pub(crate) fn creation(object: &'a Value) -> Self {
        Self {
            operation: "CREATE",
            object,
            old: &Value::Null,
            user: "somebody",
            options: &Value::Null,
        }
    }
}

thread_local! {
    static PROGRAMS: RefCell<HashMap<String, Rc<Program>>> = RefCell::default();
}

/// Compiles an expression, once.
fn program(expression: &str) -> Rc<Program> {
    PROGRAMS.with_borrow_mut(|programs| {
        let known = programs.entry(expression.to_owned()).or_insert_with(|| {
            let compiled = Program::compile(expression);
            Rc::new(compiled.unwrap_or_else(|error| panic!("{expression}: {error:?}")))
        });
        Rc::clone(known)
    })
}

/// Evaluates an expression of a policy.
pub(crate) fn evaluate(expression: &str, request: &Request<'_>) -> Value {
    evaluate_with(expression, request, &json!({}))
}

/// Evaluates an expression of a policy with the values of its variables.
pub(crate) fn evaluate_with(expression: &str, request: &Request<'_>, variables: &Value) -> Value {
    match result(expression, request, variables) {
        cel::Value::Bool(holds) => json!(holds),
        cel::Value::String(text) => json!(*text),
        other => panic!(
            "{expression}: {other:?}\n{:#}\n{:#}",
            request.object, request.old
        ),
    }
}

/// Evaluates a JSON patch of a policy and returns its operations.
pub(crate) fn operations(expression: &str, request: &Request<'_>) -> Vec<Value> {
    // The type of the operations is defined by the API server, not by CEL.
    let expression = expression
        .replace("JSONPatch{op: ", "{\"op\": ")
        .replace(", path: ", ", \"path\": ")
        .replace(", value: ", ", \"value\": ");
    match from_cel(&result(&expression, request, &json!({}))) {
        Value::Array(operations) => operations,
        other => panic!("{expression}: {other}"),
    }
}

fn result(expression: &str, request: &Request<'_>, variables: &Value) -> cel::Value {
    let program = program(expression);
    let mut context = Context::default();
    let trim = |This(text): This<Arc<String>>| -> String { text.trim().to_owned() };
    let _ = context.add_function("trim", trim);
    let join = |This(texts): This<Arc<Vec<cel::Value>>>, separator: Arc<String>| -> String {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| match text {
                cel::Value::String(text) => text.to_string(),
                other => panic!("{other:?} is no string"),
            })
            .collect();
        texts.join(&separator)
    };
    let _ = context.add_function("join", join);
    let substring = |This(text): This<Arc<String>>, start: i64, end: i64| -> String {
        let (start, end) = (start.try_into().unwrap(), end.try_into().unwrap());
        text.chars().take(end).skip(start).collect()
    };
    let _ = context.add_function("substring", substring);
    let namespace = if request.object.is_null() {
        request.old
    } else {
        request.object
    };
    let mut about = json!({
        "operation": request.operation,
        "userInfo": { "username": request.user },
    });
    // The API server leaves out what is empty.
    let namespace = namespace["metadata"]["namespace"].as_str();
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        about["namespace"] = json!(namespace);
    }
    if !request.options.is_null() {
        about["options"] = request.options.clone();
    }
    for (name, value) in [
        ("object", request.object),
        ("oldObject", request.old),
        ("request", &about),
        ("variables", variables),
    ] {
        context.add_variable(name, to_cel(value)).unwrap();
    }
    let result = program.execute(&context);
    result.unwrap_or_else(|error| panic!("{expression}: {error:?}\n{:#}", request.object))
}

fn from_cel(value: &cel::Value) -> Value {
    match value {
        cel::Value::Bool(flag) => json!(flag),
        cel::Value::Int(number) => json!(number),
        cel::Value::Float(number) => json!(number),
        cel::Value::String(text) => json!(**text),
        cel::Value::List(items) => items.iter().map(from_cel).collect(),
        cel::Value::Map(map) => {
            let entries = map.map.iter();
            entries
                .map(|(key, value)| (key.to_string(), from_cel(value)))
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Converts JSON as the API server decodes it: integers are `int`, other numbers `double`.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => number.as_i64().map_or_else(
            || cel::Value::Float(number.as_f64().unwrap()),
            cel::Value::Int,
        ),
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| (Key::from(key.clone()), to_cel(value)));
            cel::Value::Map(entries.collect::<HashMap<Key, cel::Value>>().into())
        }
    }
}
