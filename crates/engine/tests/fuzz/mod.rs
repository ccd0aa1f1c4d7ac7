//! Properties that hold for any input: the targets of `make fuzz`. The tests run them on the committed corpus.
//!
//! Each target takes the bytes of one input and panics if a property does not hold.

#[path = "../passes/mod.rs"]
mod passes;

use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::reconcile::{
    record::{ChildRecord, CrRecord},
    step::Cycle,
};
use orkestra_language::{
    diagnostics::{Diagnostic, Diagnostics},
    document::{Source, convert, parse_stream, read_katalog, read_stream},
};
use orkestra_object::{
    decode::{Event, Lines, Listed, Page},
    value::{Node, Path, Projection, project},
};
use orkestra_plan::{self, GroupKind, KatalogRef, OperatorPlan, Plan, definitions::Schemas};
use orkestra_template::{Data, EvalBudget, Template};
use serde_json::{Value, json};

/// The file name of inputs in messages.
const FILE: &str = "input.yaml";

/// A template is parsed, or is refused with positions inside the text. A parsed template evaluates within a budget, and each time
/// to the same result, also on only the part of the data that it declares to read.
pub(crate) fn template(input: &[u8]) {
    let Ok(source) = str::from_utf8(input) else {
        return;
    };
    let template = match Template::parse(source) {
        Ok(template) => template,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                let end = error.offset + error.len;
                assert!(source.get(error.offset..end).is_some(), "{error:?}");
            }
            return;
        }
    };
    for warning in template.warnings() {
        let end = warning.offset + warning.len;
        assert!(source.get(warning.offset..end).is_some(), "{warning:?}");
    }
    let root = Node::from(&template_data());
    let value = evaluate(&template, &root);
    assert_eq!(value, evaluate(&template, &root));
    let Ok((value, text)) = value else {
        return;
    };
    if let Some(literal) = template.literal() {
        assert_eq!((literal, source), (&*text, source));
    }
    if !template.is_single_expression() {
        assert_eq!(value, Node::from(&*text));
    }
    let part = project(&root, template.reads());
    assert_eq!(evaluate(&template, &part), Ok((value, text)));
}

/// Returns the value and the text of a template, or the position of the error, which must be inside the source.
fn evaluate(template: &Template, root: &Node) -> Result<(Node, String), usize> {
    let data = Data::of(root);
    let budget = || EvalBudget {
        steps: 50_000,
        bytes: 1 << 20,
        ..EvalBudget::default()
    };
    let value = template.eval(&data, &mut budget());
    let text = template.render_text(&data, &mut budget());
    let failed = |error: orkestra_template::EvalError| {
        assert!(template.source().is_char_boundary(error.offset));
        error.offset
    };
    Ok((value.map_err(failed)?.into_owned(), text.map_err(failed)?))
}

/// Returns data with a value of every type, so that any expression can find an operand.
fn template_data() -> Value {
    json!({
        "metadata": { "name": "pond", "namespace": "east", "labels": { "app": "shop", "a.b/c": "dotted" } },
        "spec": {
            "image": "nginx:1.25", "replicas": 3, "zero": 0, "negative": -7, "big": 9_007_199_254_740_993_u64,
            "huge": u64::MAX, "ratio": 0.5, "on": true, "off": false, "empty": "", "none": null, "accent": "é😀",
            "list": ["a", "b", "c"], "numbers": [1, 2, 3], "mixed": ["x", 1, true, null, ["y"]], "emptyList": [],
            "map": { "k1": "v1", "k2": 2 }, "emptyMap": {}, "ports": [{ "name": "http", "port": 80 }],
            "matrix": [[1, 2], [3]], "time": "2026-01-09T12:00:00Z", "quantity": "1500m", "json": "{\"a\": [1]}",
        },
        "status": { "phase": "Running", "ready": { "count": 2 } },
    })
}

/// A stream of documents is read, or is refused with positions inside the text. A Katalog that is read is equal if it is read
/// from an object, or if it is written and read again. A text that can be parsed is converted to one that can be parsed.
pub(crate) fn document(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    if let Err(problems) = read_stream(FILE, text) {
        assert!(problems.has_errors());
        for problem in &problems {
            inside(problem, text);
        }
    }
    if let Ok(converted) = convert(FILE, text) {
        assert!(convert(FILE, &converted.text).is_ok());
    }
    for source in parse_stream(FILE, text).sources {
        let read = match read_katalog(&source) {
            Ok((read, warnings)) => {
                for warning in &warnings {
                    inside(warning, text);
                }
                read
            }
            Err(problems) => {
                assert!(problems.has_errors());
                for problem in &problems {
                    inside(problem, text);
                }
                continue;
            }
        };
        let as_object = Source::from_object(&source.tree.to_json()).unwrap();
        assert_eq!(read_katalog(&as_object).unwrap().0.spec, read.spec);
        let written = json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "again" },
            "spec": read.spec,
        });
        let again = Source::from_object(&written).unwrap();
        assert_eq!(read_katalog(&again).unwrap().0.spec, read.spec);
    }
}

/// Checks that a problem has a position inside the file.
fn inside(problem: &Diagnostic, text: &str) {
    let (Some(line), Some(column)) = (problem.line, problem.column) else {
        // The problem is about the whole file.
        assert!(problem.path.is_root(), "{problem:?}");
        return;
    };
    assert!(line > 0 && column > 0, "{problem:?}");
    // YAML also ends a line at a single carriage return.
    let text = text.replace("\r\n", "\n");
    let mut lines = text.split(['\n', '\r']);
    let line = lines
        .nth(line as usize - 1)
        .map(|line| line.chars().count());
    // The position directly after the last character belongs to the line.
    assert!(
        line.is_some_and(|length| column as usize <= length + 1),
        "{problem:?}"
    );
}

/// A stream of documents: a Katalog that is read compiles, or is refused with positions inside the text. Compiling it again gives
/// an equal plan without changes, which makes equal decisions for a custom resource.
pub(crate) fn plan(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let Ok((documents, _)) = read_stream(FILE, text) else {
        return;
    };
    for document in documents.katalogs {
        let katalog = KatalogRef::new("default".into(), document.name.clone());
        let compile = || {
            compile::katalog(
                &katalog,
                &document.spec,
                &Schemas::default(),
                &Library::default(),
            )
        };
        let located = |mut problems: Diagnostics| {
            problems.locate(&document.tree, Some(FILE));
            for problem in &problems {
                inside(problem, text);
            }
        };
        match compile() {
            Ok((plan, warnings)) => {
                located(warnings.into_iter().collect());
                compiled(&plan, &compile().unwrap().0);
            }
            Err(problems) => {
                assert!(problems.has_errors());
                located(problems);
            }
        }
    }
}

fn compiled(plan: &Plan, again: &Plan) {
    assert!(orkestra_plan::diff(plan, again).is_empty());
    orkestra_plan::rbac::rules(plan);
    for operator in &plan.operators {
        assert_eq!(decide(operator), decide(operator));
    }
}

/// Runs one pass over a custom resource without children.
fn decide(plan: &OperatorPlan) -> Cycle {
    let mut object = template_data();
    object["apiVersion"] = json!("water.example/v1");
    object["kind"] = json!("Pond");
    object["metadata"]["uid"] = json!("0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10");
    object["metadata"]["resourceVersion"] = json!("70");
    passes::first(plan, &object)
}

/// Returns the paths that the records of the two targets below keep.
fn kept() -> Vec<Path> {
    ["spec.image", "spec.list[1]", "status"]
        .map(|path| Path::parse(path).unwrap())
        .to_vec()
}

/// Checks that an object read through a projection gives the same records as the complete tree, if there is one.
fn records(projection: &Projection, text: &[u8], object: &Node) {
    let (kept, kind) = (kept(), GroupKind::parse("Deployment.apps"));
    let record = CrRecord::read(object, &kept);
    let _ = ChildRecord::read(&kind, object, &kept);
    assert_eq!(
        *object,
        projection.decode(text),
        "the object depends on how the text was split"
    );
    let Ok(record) = record else { return };
    let whole = serde_json::from_slice::<Node>(text);
    if let (None, Ok(whole)) = (&record.unread, whole) {
        assert_eq!(CrRecord::read(&whole, &kept).as_ref(), Ok(&record));
    }
}

/// A page of a list gives the same objects for every split of the text, and each object gives the same records as its complete
/// tree.
pub(crate) fn list(input: &[u8]) {
    let projection = CrRecord::projection(&kept());
    let read = |size: usize| {
        let (mut page, mut found) = (Page::new(&projection), Vec::new());
        let mut take = |listed| found.push(listed);
        for part in input.chunks(size) {
            page.feed(part, &mut take).ok()?;
        }
        let next = page.end(&mut take).ok()?;
        Some((found, next))
    };
    let whole = read(input.len().max(1));
    assert_eq!(whole, read(7));
    for listed in whole.into_iter().flat_map(|(found, _)| found) {
        if let Listed::Object(object) = listed {
            let _ = CrRecord::read(&object, &kept());
            let _ = ChildRecord::read(&GroupKind::parse("ConfigMap"), &object, &kept());
        }
    }
    // Read the input as a single object, too.
    records(&projection, input, &projection.decode(input));
    let _ = Projection::whole().decode(input);
}

/// Lines of a watch give the same events for every split of the text. A line that cannot be read does not hide other lines.
pub(crate) fn watch(input: &[u8]) {
    let projection = CrRecord::projection(&kept());
    let read = |size: usize| {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for mut part in input.chunks(size) {
            while !part.is_empty() {
                let (used, event) = lines.feed(part, &projection);
                assert!(used > 0 && used <= part.len());
                found.extend(event);
                part = &part[used..];
            }
        }
        (found, lines.is_cut_off())
    };
    let (events, is_cut_off) = read(input.len().max(1));
    assert_eq!((&events, is_cut_off), (&read(5).0, read(5).1));
    for event in &events {
        if let Event::Put(object) | Event::Gone(object) = event {
            let _ = CrRecord::read(object, &kept());
            let _ = ChildRecord::read(&GroupKind::parse("ConfigMap"), object, &kept());
        }
    }
    let good =
        br#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}}"#;
    let mut after = Lines::default();
    let text = [input, b"\n", good, b"\n"].concat();
    let mut rest = &text[..];
    let mut last = None;
    while !rest.is_empty() {
        let (used, event) = after.feed(rest, &projection);
        last = event.or(last);
        rest = &rest[used..];
    }
    assert!(matches!(last, Some(Event::Put(_))), "{last:?}");
}
