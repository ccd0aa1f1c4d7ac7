//! `ork why` over every example: what it names is what decides.
//!
//! Each value of each custom resource is given other values, which are not those that the search tries: whatever then changes has to be
//! among what depends on the value.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use orkestra_engine::reconcile::{
    preview::{Assumptions, preview},
    why::{Explainer, Input, Origin, visit_fields},
};
use orkestra_object::value::{Node, Path, PathStep, set};
use orkestra_plan::{ChildKey, OperatorPlan};

use crate::render::examples::{inputs, with_passes};

/// Other values of a scalar, of its type and often of its form.
fn others(value: &Node) -> Vec<Node> {
    match value {
        Node::Bool(is) => vec![Node::Bool(!is)],
        Node::Int(number) => [number + 2, number * 3 + 5].map(Node::Int).to_vec(),
        Node::Float(number) => vec![Node::Float(number + 3.0)],
        Node::Str(text) => {
            let digits: String = text
                .chars()
                .map(|c| {
                    if c == '4' {
                        '6'
                    } else if c.is_ascii_digit() {
                        '4'
                    } else {
                        c
                    }
                })
                .collect();
            let texts = [digits, format!("y{text}"), "other".to_owned()];
            texts.iter().map(|text| Node::from(&**text)).collect()
        }
        _ => Vec::new(),
    }
}

/// The values at and below a node, without empty ones.
fn scalars(node: &Node, path: &Path, found: &mut Vec<(Path, Node)>) {
    let mut below = |step: PathStep, node: &Node| {
        let path: Path = path.steps().iter().cloned().chain([step]).collect();
        scalars(node, &path, found);
    };
    match node {
        Node::Map(map) => map
            .iter()
            .for_each(|(key, node)| below(PathStep::Field(key.clone()), node)),
        Node::List(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, node)| below(PathStep::Index(at), node));
        }
        scalar => found.push((path.clone(), scalar.clone())),
    }
}

/// The fields of all children, by child and path.
fn fields(objects: &[Node]) -> BTreeMap<(ChildKey, Path), Node> {
    let mut all = BTreeMap::new();
    for object in objects {
        let Some(key) = ChildKey::of(object) else {
            continue;
        };
        visit_fields(object, &mut |path| {
            let value = object.at(path).cloned().unwrap_or_default();
            all.insert((key.clone(), path.clone()), value);
        });
    }
    all
}

/// Checks that whatever changes with a value is said to depend on it.
// Over 60 lines: each value, each other value, and each field that then differs.
fn check_inputs(
    plan: &OperatorPlan,
    assumed: &Assumptions<'_>,
    explainer: &Explainer<'_>,
) -> Vec<String> {
    let before = preview(plan, assumed.clone()).unwrap();
    let was = fields(&before.objects);
    let keys: BTreeSet<&ChildKey> = was.keys().map(|(key, _)| key).collect();
    let mut values = Vec::new();
    let root = Path::of_fields(["spec"]);
    scalars(
        assumed.cr.at(&root).unwrap_or(&Node::Null),
        &root,
        &mut values,
    );
    let mut wrong = Vec::new();
    for (path, value) in values {
        let known = (explainer.dependencies().found.iter())
            .filter(|one| matches!(&one.input, Input::Resource(at) if path.starts_with(at)));
        let known: Vec<_> = known.collect();
        for other in others(&value) {
            let mut cr = assumed.cr.clone();
            set(&mut cr, &path, other.clone());
            let changed = Assumptions {
                cr,
                ..assumed.clone()
            };
            let after = preview(plan, changed).unwrap();
            if after
                .failures
                .iter()
                .any(|one| !before.failures.contains(one))
            {
                continue;
            }
            let is = fields(&after.objects);
            for key in &keys {
                let exists = is.keys().any(|(other, _)| other == *key);
                let is_said = known.iter().any(|one| {
                    one.decides.contains(key) || one.changes.iter().any(|(of, _)| of == *key)
                });
                if !exists && !is_said {
                    wrong.push(format!("{path} → {other:?} decides whether {key} exists"));
                }
            }
            for ((key, at), before) in &was {
                let Some(after) = is.get(&(key.clone(), at.clone())) else {
                    continue;
                };
                let is_said = known.iter().any(|one| {
                    let mut fields = one.changes.iter();
                    one.decides.contains(key)
                        || fields.any(|(of, field)| of == key && at.overlaps(field))
                });
                if before != after && !is_said {
                    wrong.push(format!("{path} → {other:?} changes {at} of {key}"));
                }
            }
        }
    }
    wrong
}

/// Checks that a field that depends on a value of the spec is rendered by an expression.
fn check_origins(explainer: &Explainer<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, object) in explainer.children() {
        visit_fields(object, &mut |path| {
            let Some(why) = explainer.why(key, path) else {
                wrong.push(format!("{key} {path} is not explained"));
                return;
            };
            let spec = Path::of_fields(["spec"]);
            let mut inputs = why.inputs.iter();
            let is_rendered = inputs.any(|one| {
                let is_value = one.effect == orkestra_engine::reconcile::why::Effect::Value;
                is_value && matches!(&one.input, Input::Resource(at) if at.starts_with(&spec))
            });
            if is_rendered && why.origin == Origin::Fixed {
                wrong.push(format!(
                    "{key} {path} depends on {:?} and has no expression",
                    why.inputs
                ));
            }
        });
    }
    wrong
}

#[tokio::test]
async fn every_field_of_every_example_depends_on_what_is_named_and_on_nothing_else() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (folder, resource) in inputs() {
        with_passes(&folder, &resource, |plan, assumed| {
            let explainer = Explainer::new(plan, assumed).unwrap();
            count += explainer.children().count();
            let name = resource.file_name().unwrap().to_string_lossy().into_owned();
            let folder: PathBuf = folder.file_name().unwrap().into();
            let mut found = check_inputs(plan, assumed, &explainer);
            found.extend(check_origins(&explainer));
            wrong.extend(
                found
                    .into_iter()
                    .map(|one| format!("{}/{name}: {one}", folder.display())),
            );
        })
        .await;
    }
    assert!(count > 50, "{count}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
