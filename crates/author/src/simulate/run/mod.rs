//! Runs one Simulate: reads its files, runs the passes, and checks the expectations.

mod expect;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use orkestra_engine::reconcile::simulate::{self, SimulatedSetup, simulate};
use orkestra_language::{
    api::simulate::{
        DEFAULT_CYCLES, DEFAULT_INTERVAL, DEFAULT_TIME, SimulateSpec, StubbedAnswer, UserChange,
    },
    diagnostics::{Code, Diagnostic, FieldPath},
};
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{ObjectKey, OperatorPlan};

use self::expect::{checks, listed};
use super::{SimulateOptions, Simulated, SimulatedSubject, SimulationReport, load::Loaded};
use crate::render::{
    Rendered,
    objects::{FileObject, read_objects},
    pick::{Picked, pick},
    refused as refused_by_schema,
};
use orkestra_loader::files::{self, Compiled, beside};

/// Runs a Simulate. Returns `None` if it has errors, or only imports others.
pub(crate) async fn run(
    loaded: &Loaded,
    options: &SimulateOptions,
    simulated: &mut Simulated,
) -> Option<SimulationReport> {
    let spec = &loaded.document.spec;
    let katalog = spec.katalog.as_ref()?;
    let katalogs = compile(loaded, katalog, options, simulated).await?;
    let objects = resources(loaded, options, simulated)?;
    let mut job = SimulateReader {
        loaded,
        simulated,
        is_wrong: false,
    };
    job.check_objects(&katalogs, &objects);
    let (subjects, others) = job.subjects(&katalogs, objects);
    let plans: Vec<&OperatorPlan> = subjects.iter().map(|subject| subject.plan).collect();
    let expect = job.expectations(&plans).await;
    let changes = job.changes(&plans);
    job.check_calls(&plans);
    if job.is_wrong {
        return None;
    }
    let reported: Vec<SimulatedSubject> = subjects
        .iter()
        .map(|subject| SimulatedSubject {
            entry: subject.plan.name.clone(),
            object: name_of(&subject.cr),
        })
        .collect();
    // The format was checked when the document was read.
    let now = spec.at.as_deref().unwrap_or(DEFAULT_TIME).parse();
    let setup = SimulatedSetup {
        subjects,
        objects: others,
        calls: answers(&spec.external),
        skips_calls: options.skip_external || spec.skip_external == Some(true),
        outcomes: &spec.outcomes,
        changes,
        cycles: options.cycles.or(spec.cycles).unwrap_or(DEFAULT_CYCLES),
        now: now.unwrap_or_default(),
        interval: spec.interval.map_or(DEFAULT_INTERVAL, |span| span.0),
    };
    let run = match simulate(setup) {
        Ok(run) => run,
        Err(why) => {
            let at = FieldPath::root().field("spec").field("cr");
            job.refuse(Code::Missing, at, why.to_string());
            return None;
        }
    };
    Some(SimulationReport {
        name: loaded.document.name.clone(),
        file: loaded.path.display().to_string(),
        subjects: reported,
        checks: checks(&expect, &run, &plans),
        run,
    })
}

/// Compiles the Katalogs with the CRDs.
async fn compile(
    loaded: &Loaded,
    katalog: &str,
    options: &SimulateOptions,
    simulated: &mut Simulated,
) -> Option<Vec<Compiled>> {
    let spec = &loaded.document.spec;
    let mut paths = vec![beside(&loaded.path, katalog)];
    if options.definitions.is_empty() {
        let named = spec.crd.iter().chain(&spec.crd_files);
        paths.extend(named.map(|file| beside(&loaded.path, file)));
    } else {
        paths.extend(options.definitions.iter().cloned());
    }
    let found = files::validate_with(&paths, &*options.fetch).await;
    simulated
        .files
        .extend(found.texts.keys().map(PathBuf::from));
    simulated.texts.extend(found.texts);
    let is_wrong = found.problems.has_errors();
    for problem in found.problems {
        if !simulated.problems.0.contains(&problem) {
            simulated.problems.push(problem);
        }
    }
    (!is_wrong).then_some(found.katalogs)
}

/// Reads the objects in the files of custom resources.
fn resources(
    loaded: &Loaded,
    options: &SimulateOptions,
    simulated: &mut Simulated,
) -> Option<Vec<FileObject>> {
    let spec = &loaded.document.spec;
    let paths: Vec<PathBuf> = if options.resources.is_empty() {
        let named = spec.cr.iter().chain(&spec.cr_files);
        named.map(|file| beside(&loaded.path, file)).collect()
    } else {
        options.resources.clone()
    };
    let mut read = Rendered::default();
    let objects = read_objects(&paths, &mut read);
    simulated.files.extend(read.texts.keys().map(PathBuf::from));
    simulated.texts.extend(read.texts);
    let is_wrong = read.problems.has_errors();
    simulated.problems.extend(read.problems);
    (!is_wrong).then_some(objects)
}

/// Reads the rest of a Simulate and reports its errors.
pub(crate) struct SimulateReader<'s> {
    pub(crate) loaded: &'s Loaded,
    pub(crate) simulated: &'s mut Simulated,
    pub(crate) is_wrong: bool,
}

impl<'s> SimulateReader<'s> {
    pub(crate) fn spec(&self) -> &'s SimulateSpec {
        &self.loaded.document.spec
    }

    pub(crate) fn refuse(&mut self, code: Code, path: FieldPath, message: impl Into<String>) {
        self.refuse_with(Diagnostic::error(code, path, message));
    }

    pub(crate) fn refuse_with(&mut self, problem: Diagnostic) {
        self.is_wrong = true;
        let problem = self.loaded.located(problem);
        self.simulated.problems.push(problem);
    }

    /// Reports the custom resources that the API server would refuse.
    fn check_objects(&mut self, katalogs: &[Compiled], objects: &[FileObject]) {
        for object in objects {
            let found = refused_by_schema(katalogs, object);
            self.is_wrong |= found.has_errors();
            for problem in found {
                if !self.simulated.problems.0.contains(&problem) {
                    self.simulated.problems.push(problem);
                }
            }
        }
    }

    /// Returns the custom resources to reconcile, which are the first object of each operated kind and version. All other objects
    /// are treated as existing.
    fn subjects<'k>(
        &mut self,
        katalogs: &'k [Compiled],
        objects: Vec<FileObject>,
    ) -> (Vec<simulate::SimulatedResource<'k>>, Vec<Node>) {
        let (mut subjects, mut others, mut problem) = (Vec::new(), Vec::new(), None);
        for object in objects {
            let picked: Picked<'k> = match pick(katalogs, &object) {
                Ok(picked) => picked,
                Err(why) => {
                    problem.get_or_insert(why);
                    others.push(object.node);
                    continue;
                }
            };
            let is_same = |subject: &simulate::SimulatedResource<'_>| {
                std::ptr::eq(subject.plan, picked.operator)
            };
            if subjects.iter().any(is_same) {
                others.push(object.node);
                continue;
            }
            if let Some(problem) = refused(&object, picked.operator, &subjects) {
                self.is_wrong = true;
                self.simulated.problems.push(problem);
                continue;
            }
            subjects.push(simulate::SimulatedResource {
                plan: picked.operator,
                version: picked.version(),
                scopes: picked.scopes(),
                cr: object.node,
            });
        }
        if subjects.is_empty() && !self.is_wrong {
            self.is_wrong = true;
            let missing = || {
                let path = FieldPath::root().field("spec").field("cr");
                let problem =
                    Diagnostic::error(Code::NoDocument, path, "the file has no custom resource");
                self.loaded.located(problem)
            };
            let problem = problem.map_or_else(missing, |problem| *problem);
            self.simulated.problems.push(problem);
        }
        // In the order of the Katalog, regardless of the order of the files.
        let operators = katalogs.iter().flat_map(|katalog| &katalog.plan.operators);
        let order: Vec<*const OperatorPlan> = operators.map(|plan| &raw const **plan).collect();
        subjects.sort_by_key(|subject| {
            order
                .iter()
                .position(|plan| std::ptr::eq(*plan, subject.plan))
        });
        (subjects, others)
    }

    /// Returns the scripted changes by users, each with its subject.
    fn changes(&mut self, plans: &[&OperatorPlan]) -> Vec<(usize, &'s UserChange)> {
        let mut changes = Vec::new();
        let at = FieldPath::root().field("spec").field("changes");
        for (index, change) in self.spec().changes.iter().enumerate() {
            let subject = match &change.crd {
                Some(name) => plans.iter().position(|plan| plan.name == *name),
                None => (plans.len() == 1).then_some(0),
            };
            if let Some(subject) = subject {
                changes.push((subject, change));
                continue;
            }
            let known: Vec<&str> = plans.iter().map(|plan| &*plan.name).collect();
            let message = match &change.crd {
                Some(name) => format!("no custom resource of `{name}` is reconciled"),
                None => {
                    "several custom resources are reconciled: set `crd` to select one".to_owned()
                }
            };
            let problem =
                Diagnostic::error(Code::UnknownData, at.index(index).field("crd"), message);
            self.refuse_with(problem.hint(format!("reconciled operators: {}", listed(&known))));
        }
        changes
    }

    /// Reports answers to calls that no operator makes, and to hooks that none has.
    fn check_calls(&mut self, plans: &[&OperatorPlan]) {
        let known: BTreeSet<&str> = plans.iter().flat_map(|plan| plan.asked()).collect();
        let at = FieldPath::root().field("spec").field("external");
        for name in self.spec().external.keys() {
            if !known.contains(name.as_str()) {
                let message = format!("no operator makes a call or has a hook `{name}`");
                self.refuse(Code::UnknownData, at.field(name), message);
            }
        }
    }
}

/// Returns the reason why a custom resource cannot be reconciled together with the others.
fn refused(
    object: &FileObject,
    operator: &OperatorPlan,
    others: &[simulate::SimulatedResource<'_>],
) -> Option<Diagnostic> {
    let kind = operator.resource.group_kind();
    let is_twice = |other: &simulate::SimulatedResource<'_>| {
        other.plan.resource.group_kind() == kind && name_of(&other.cr) == name_of(&object.node)
    };
    if others.iter().any(is_twice) {
        let path = FieldPath::parse("apiVersion");
        let message = "the same custom resource is given in two versions";
        let problem = object.problem(Code::SetTwice, path, message);
        return Some(problem.hint("one operator reconciles it: pass only one version"));
    }
    let path = FieldPath::parse("metadata.deletionTimestamp");
    let message = "a custom resource cannot be terminating at the start";
    object.is_deleting().then(|| {
        let problem = object.problem(Code::NotSupportedYet, path, message);
        problem.hint("request its deletion after a cycle: `changes: [{ after: 1, delete: true }]`")
    })
}

fn answers(given: &BTreeMap<String, StubbedAnswer>) -> BTreeMap<String, Node> {
    let answer = |(name, answer): (&String, &StubbedAnswer)| {
        let fields = [
            (
                "status",
                answer.status.map(|status| Node::Int(status.into())),
            ),
            ("body", answer.body.clone()),
            ("error", answer.error.as_deref().map(Node::from)),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(key, node)| Some((Key::from(key), node?)));
        (name.clone(), Node::Map(fields.collect::<Map>()))
    };
    given.iter().map(answer).collect()
}

/// Formats kind, namespace and name: `Website shop/hello`.
fn name_of(object: &Node) -> String {
    let kind = object
        .get("kind")
        .and_then(Node::as_str)
        .unwrap_or_default();
    format!("{kind} {}", ObjectKey::of(object))
}
