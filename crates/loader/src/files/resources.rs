//! Custom resources and definitions, checked as the API server and the Katalogs' rules would.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use orkestra_engine::admission::{
    Admitted, Answer, Answers, Denial, Operation, Review, User, admit_by_rules,
};
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{Source, Tree, TreeValue, parse_stream},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    GroupKind, OperatorPlan,
    definitions::{CrdShape, check_crd},
};

use super::{
    check::{Compiled, beside, crd},
    find::{TextFile, read_file},
};

/// The time of rules about time: as in `ork render`.
const ASSUMED_TIME: &str = "2025-01-01T00:00:00Z";
/// The most rounds of reads that rules may request.
const MOST_ROUNDS: usize = 8;

/// Checks a definition as the API server does; documents of other kinds have no problems.
pub(crate) fn check_definition(source: &Source) -> Diagnostics {
    if crd(source).is_err() {
        return Diagnostics::default();
    }
    let mut found = check_crd(&Node::from(&source.tree.to_json()));
    found.locate(&source.tree, source.file.as_deref());
    found
}

/// Checks the definitions in the `crdFile`s of a Katalog, except for files in `seen`, which were checked.
///
/// Returns the problems, and the texts of the files that have any.
pub(crate) fn check_crd_files(
    katalog: &Compiled,
    seen: &mut BTreeSet<PathBuf>,
) -> (Diagnostics, Vec<TextFile>) {
    let (mut problems, mut texts) = (Diagnostics::default(), Vec::new());
    let own = katalog.document.file.as_deref().map(Path::new);
    // The files of an artifact were checked when it was published.
    let Some(own) = own.filter(|_| katalog.composed.is_none()) else {
        return (problems, texts);
    };
    for entry in katalog.document.spec.crds.values() {
        let Some(named) = entry.crd_file.as_ref().filter(|_| entry.is_enabled()) else {
            continue;
        };
        let path = beside(own, named);
        let known = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !seen.insert(known) {
            continue;
        }
        // An unreadable file is reported where it is compiled.
        let Ok(file) = read_file(&path) else {
            continue;
        };
        let stream = parse_stream(&file.name, &file.text);
        let before = problems.0.len();
        for source in &stream.sources {
            problems.extend(check_definition(source));
        }
        if problems.0.len() > before {
            texts.push(file);
        }
    }
    (problems, texts)
}

/// The objects that a document declares: itself, or the items of a `List`.
pub(crate) fn objects(source: &Source) -> Vec<&Tree> {
    let kind = source.tree.get("kind").and_then(Tree::as_str);
    let items = source.tree.get("items").map(|items| &items.value);
    match items {
        Some(TreeValue::List(items)) if kind.is_some_and(|kind| kind.ends_with("List")) => {
            items.iter().collect()
        }
        _ => vec![&source.tree],
    }
}

/// Returns the kind of an object.
pub(crate) fn kind_of(tree: &Tree) -> Option<GroupKind> {
    let text = |field| tree.get(field).and_then(Tree::as_str);
    let (group, _) = text("apiVersion")?.split_once('/')?;
    Some(GroupKind {
        group: group.into(),
        kind: text("kind")?.into(),
    })
}

/// Checks a custom resource against the definition of its kind; `None` if no Katalog knows one.
pub fn check_schema(katalogs: &[Compiled], object: &Node) -> Option<Diagnostics> {
    Some(definition_of(katalogs, object)?.check_object(object))
}

/// Returns the definition of an object's kind that the Katalogs know.
fn definition_of<'k>(katalogs: &'k [Compiled], object: &Node) -> Option<&'k CrdShape> {
    let text = |field| object.get(field).and_then(Node::as_str);
    let (group, _) = text("apiVersion")?.split_once('/')?;
    let kind = GroupKind {
        group: group.into(),
        kind: text("kind")?.into(),
    };
    let mut schemas = katalogs.iter().map(|katalog| &katalog.schemas);
    schemas.find_map(|schemas| schemas.kind(&kind))
}

/// Returns the operator of an object's kind and version.
fn operator_of<'k>(katalogs: &'k [Compiled], object: &Node) -> Option<&'k OperatorPlan> {
    let text = |field| object.get(field).and_then(Node::as_str);
    let (group, version) = text("apiVersion")?.split_once('/')?;
    let kind = text("kind")?;
    let mut operators = katalogs.iter().flat_map(|katalog| &katalog.plan.operators);
    let found = operators.find(|operator| {
        let resource = &operator.resource;
        &*resource.group == group && &*resource.version == version && &*resource.kind == kind
    });
    found.map(AsRef::as_ref)
}

/// Applies the rules of the Katalogs to a custom resource that is created, like the webhook of the gateway, wherever they apply.
///
/// Rules that read the cluster are not decided here.
pub(crate) fn check_rules(katalogs: &[Compiled], object: &Node) -> Diagnostics {
    let Some(operator) = operator_of(katalogs, object) else {
        return Diagnostics::default();
    };
    let namespaced = operator.resource.namespaced != Some(false);
    let namespace = object.meta_text("namespace").unwrap_or("default");
    let review = Review {
        operation: Operation::Create,
        object: object.clone(),
        old_object: Node::Null,
        namespace: namespaced.then(|| namespace.to_owned()),
        name: object.meta_text("name").unwrap_or_default().to_owned(),
        user: User::default(),
        dry_run: true,
    };
    let now = ASSUMED_TIME.parse().unwrap_or_default();
    let mut answers = Answers::new();
    for _ in 0..MOST_ROUNDS {
        match admit_by_rules(operator, &review, now, &answers) {
            Admitted::Need(reads) => {
                for read in reads {
                    answers.insert(read, Answer::Unavailable("there is no cluster".into()));
                }
            }
            Admitted::Done(verdict) => {
                let violations = verdict.denials.into_iter().filter(|one| one.is_violation);
                let problem = |denial: Denial| {
                    let is_field =
                        denial.rule.starts_with("spec.") && !denial.rule.starts_with("spec.crds.");
                    let path = FieldPath::parse(if is_field { &denial.rule } else { "spec" });
                    let message = format!("{}: {}", denial.rule, denial.message);
                    Diagnostic::error(Code::RuleViolated, path, message)
                };
                return violations.map(problem).collect();
            }
        }
    }
    Diagnostics::default()
}

/// A document of a file that is not Orkestra's.
#[derive(Debug)]
pub(crate) struct OtherDocument {
    /// The path that its file was found at.
    pub(crate) given: PathBuf,
    /// The document.
    pub(crate) source: Source,
}

/// Checks the custom resources among documents whose kinds have a definition or an operator.
///
/// Returns the problems, and the paths at which custom resources were found.
pub(crate) fn check_resources(
    katalogs: &[Compiled],
    shapes: &BTreeMap<GroupKind, CrdShape>,
    documents: &[OtherDocument],
) -> (Diagnostics, BTreeSet<PathBuf>) {
    let (mut problems, mut used) = (Diagnostics::default(), BTreeSet::new());
    for document in documents {
        for tree in objects(&document.source) {
            let Some(kind) = kind_of(tree) else {
                continue;
            };
            let object = Node::from(&tree.to_json());
            let shape = definition_of(katalogs, &object).or_else(|| shapes.get(&kind));
            let operator = operator_of(katalogs, &object);
            if shape.is_none() && operator.is_none() {
                continue;
            }
            used.insert(document.given.clone());
            let mut found =
                shape.map_or_else(Diagnostics::default, |shape| shape.check_object(&object));
            // Rules may rely on the types of the fields.
            if !found.has_errors() {
                let completed = shape.map(|shape| shape.completed(&object));
                found.extend(check_rules(katalogs, completed.as_ref().unwrap_or(&object)));
            }
            found.locate(tree, document.source.file.as_deref());
            problems.extend(found);
        }
    }
    (problems, used)
}
