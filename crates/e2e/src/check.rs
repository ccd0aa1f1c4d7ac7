//! Reads an E2E: its shape as `document` reads it, and the rules that a schema cannot express.

use orkestra_language::api::e2e::{
    Assertions, Command, E2eSetup, Expectation, Kubectl, OnFailure, Phase, PodChoice, PortForward,
};
use orkestra_language::api::{E2eSpec, SetupFile, SetupWait};

use super::{calls, gates, wrong_assertions};
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::{
    E2eDocument, Source, check_resources, old_calls, read_included, read_partly,
};

/// Reads an E2E, with warnings.
///
/// # Errors
/// Every problem of the document with its path and position: those of [`orkestra_language::document::read_katalog`], and what no call can do.
pub fn read_e2e(source: &Source) -> Result<(E2eDocument, Vec<Diagnostic>), Diagnostics> {
    let (document, mut found) = read_partly::<E2eSpec>(source);
    if let Some(document) = document.as_ref().filter(|_| !found.has_errors()) {
        let mut rules = Diagnostics::default();
        check(&document.spec, &mut rules);
        rules.locate(&document.tree, source.file.as_deref());
        found.extend(rules);
        found.cap();
    }
    let warnings = found.into_result()?;
    Ok((document.ok_or_else(Diagnostics::default)?, warnings))
}

/// The expectations of a file, and warnings.
pub type Expected = (Vec<Expectation>, Vec<Diagnostic>);

/// Reads a file of expectations that an E2E includes: a list under `expect`.
///
/// # Errors
/// Every problem of the file, as for a document.
pub fn read_expectations(source: &Source) -> Result<Expected, Diagnostics> {
    let mut source = source.clone();
    let mut old = Diagnostics::default();
    old_calls(&mut source.tree, &FieldPath::root(), &mut old);
    old.locate(&source.tree, source.file.as_deref());
    let (expect, tree, mut warnings) = read_included::<Vec<Expectation>>(&source, "expect")?;
    warnings.extend(old.into_result()?);
    let mut found = Diagnostics::default();
    check_expectations(&expect, &FieldPath::root().field("expect"), &mut found);
    found.locate(&tree, source.file.as_deref());
    found.into_result()?;
    Ok((expect, warnings))
}

fn error(found: &mut Diagnostics, code: Code, at: &FieldPath, message: impl Into<String>) {
    found.push(Diagnostic::error(code, at.clone(), message));
}

/// Reports problems in the spec of an E2E.
fn check(spec: &E2eSpec, found: &mut Diagnostics) {
    let at = FieldPath::root().field("spec");
    check_inputs(spec, &at, found);
    if let Some(setup) = &spec.setup {
        check_setup(setup, &at.field("setup"), found);
    }
    if let Some(block) = &spec.on_failure {
        check_on_failure(block, &at.field("onFailure"), found);
    }
    check_expectations(&spec.expect, &at.field("expect"), found);
    found.extend(gates(spec).1);
    let has_resources = spec.cr.is_some() || !spec.cr_files.is_empty();
    for (index, expected) in spec.expect.iter().enumerate() {
        let phase = expected.after.unwrap_or_default();
        if phase != Phase::SetupComplete && !has_resources {
            let at = at.field("expect").index(index).field("after");
            let message = format!(
                "no custom resource is applied, so the phase `{}` is never reached",
                phase.name()
            );
            let problem = Diagnostic::error(Code::Exclusive, at, message);
            found.push(problem.hint("name a file with a custom resource as `cr`"));
        }
    }
}

fn check_inputs(spec: &E2eSpec, at: &FieldPath, found: &mut Diagnostics) {
    let is_suite = *spec
        == E2eSpec {
            imports: spec.imports.clone(),
            ..E2eSpec::default()
        };
    if is_suite && !spec.imports.is_empty() {
        return;
    }
    match (&spec.katalog, &spec.custom) {
        (None, None) => {
            let problem = Diagnostic::error(Code::Missing, at.clone(), "`katalog` is missing");
            let hint = "name the Katalog to test, or write `custom: { target: kubernetes }` to test an operator that runs \
                        in the cluster";
            found.push(problem.hint(hint));
        }
        (Some(_), Some(_)) => {
            let message = "`katalog` and `custom` are mutually exclusive: either `ork` runs the operator, or it does not";
            error(found, Code::Exclusive, &at.field("custom"), message);
        }
        _ => {}
    }
    if spec.expect.is_empty() {
        error(found, Code::Missing, at, "`expect` is missing, or empty");
    }
}

fn check_setup(setup: &E2eSetup, at: &FieldPath, found: &mut Diagnostics) {
    let files = match setup {
        E2eSetup::Files(_) => at.clone(),
        E2eSetup::Steps(_) => at.field("apply"),
    };
    for (index, file) in setup.files().iter().enumerate() {
        let at = files.index(index);
        if let SetupFile::Manifest(manifest) = file {
            check_wait(&manifest.wait, &at.field("wait"), found);
        }
    }
    for (index, chart) in setup.charts().iter().enumerate() {
        let at = at.field("helm").index(index);
        if chart.chart.trim().is_empty() {
            error(found, Code::Empty, &at.field("chart"), "the value is empty");
        }
        check_wait(&chart.wait, &at.field("wait"), found);
    }
    check_wait(setup.wait(), &at.field("wait"), found);
}

/// Without an API version, only kinds of Kubernetes itself are known.
fn check_wait(objects: &[SetupWait], at: &FieldPath, found: &mut Diagnostics) {
    for (index, object) in objects.iter().enumerate() {
        if object.api_version.is_none() && orkestra_plan::named(&object.kind).is_none() {
            let message = format!(
                "{} is not a built-in kind: its `apiVersion` is missing",
                object.kind
            );
            let at = at.index(index).field("kind");
            let problem = Diagnostic::error(Code::Missing, at, message);
            found.push(problem.hint("add `apiVersion: GROUP/VERSION`"));
        }
    }
}

/// Reports problems in expectations.
fn check_expectations(expect: &[Expectation], at: &FieldPath, found: &mut Diagnostics) {
    for (index, expected) in expect.iter().enumerate() {
        let at = at.index(index);
        if let Some(file) = &expected.include {
            let alone = Expectation {
                include: Some(file.clone()),
                ..Expectation::default()
            };
            if *expected != alone {
                let message = "`include` excludes all other fields";
                error(found, Code::Exclusive, &at.field("include"), message);
            }
            continue;
        }
        if expected
            .name
            .as_deref()
            .is_none_or(|name| name.trim().is_empty())
        {
            error(found, Code::Missing, &at, "`name` is missing");
        }
        let is_nothing = |block: &Kubectl| *block == Kubectl::default();
        let kubectl = expected.kubectl.as_ref();
        if expected.resources.is_empty()
            && expected.commands.is_empty()
            && kubectl.is_none_or(is_nothing)
        {
            let message = "nothing is expected: write `resources`, `commands` or `kubectl`";
            error(found, Code::Missing, &at, message);
        }
        check_resources(&expected.resources, &at.field("resources"), found);
        check_commands(&expected.commands, &at.field("commands"), found);
        if let Some(block) = kubectl {
            check_kubectl(block, &at.field("kubectl"), found);
        }
        if let Some(block) = &expected.on_failure {
            check_on_failure(block, &at.field("onFailure"), found);
        }
    }
}

fn check_on_failure(block: &OnFailure, at: &FieldPath, found: &mut Diagnostics) {
    check_commands(&block.commands, &at.field("commands"), found);
    if let Some(kubectl) = &block.kubectl {
        check_kubectl(kubectl, &at.field("kubectl"), found);
    }
}

fn check_commands(commands: &[Command], at: &FieldPath, found: &mut Diagnostics) {
    for (index, command) in commands.iter().enumerate() {
        let at = at.index(index);
        if command.run.trim().is_empty() {
            error(found, Code::Empty, &at.field("run"), "the value is empty");
        }
        check_assertions(&command.assertions, &at, found);
    }
}

fn check_assertions(assertions: &Assertions, at: &FieldPath, found: &mut Diagnostics) {
    for (field, why) in wrong_assertions(assertions) {
        error(found, Code::WrongValue, &at.field(field), why);
    }
}

/// Reports unless exactly one of some fields is given.
fn check_one(given: &[(&str, bool)], at: &FieldPath, found: &mut Diagnostics) {
    let names: Vec<String> = given.iter().map(|(name, _)| format!("`{name}`")).collect();
    let names = names.join(", ");
    let all: Vec<&str> = given
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    match all.len() {
        1 => {}
        0 => error(
            found,
            Code::Missing,
            at,
            format!("one of {names} is missing"),
        ),
        _ => {
            let message = format!("{names} are mutually exclusive");
            error(found, Code::Exclusive, &at.field(all[1]), message);
        }
    }
}

fn check_pod(pod: &PodChoice, at: &FieldPath, found: &mut Diagnostics) {
    let given = [
        ("name", pod.name.is_some()),
        ("labelSelector", pod.label_selector.is_some()),
        ("leaderElection", pod.leader_election.is_some()),
    ];
    check_one(&given, at, found);
}

/// `jq` and `yq` filter the same output, so only one is valid.
fn check_filters(
    (jq, yq): (&Option<String>, &Option<String>),
    at: &FieldPath,
    found: &mut Diagnostics,
) {
    if jq.is_some() && yq.is_some() {
        error(
            found,
            Code::Exclusive,
            &at.field("yq"),
            "`jq` and `yq` are mutually exclusive",
        );
    }
}

fn check_kubectl(block: &Kubectl, at: &FieldPath, found: &mut Diagnostics) {
    for call in calls(block, at) {
        check_assertions(call.assertions, &call.path, found);
    }
    check_writes(block, at, found);
    for (index, get) in block.get.iter().enumerate() {
        let at = at.field("get").index(index);
        if get.field.is_some() && get.format.is_some() {
            let message = "`field` and `format` are mutually exclusive";
            error(found, Code::Exclusive, &at.field("format"), message);
        }
        check_filters((&get.jq, &get.yq), &at, found);
    }
    for (index, logs) in block.logs.iter().enumerate() {
        check_pod(&logs.pod, &at.field("logs").index(index), found);
    }
    for (index, exec) in block.exec.iter().enumerate() {
        let at = at.field("exec").index(index);
        check_pod(&exec.pod, &at, found);
        if exec.command.is_empty() {
            error(
                found,
                Code::Empty,
                &at.field("command"),
                "the value is empty",
            );
        }
        check_filters((&exec.jq, &exec.yq), &at, found);
    }
    for (index, forward) in block.port_forward.iter().enumerate() {
        check_forward(forward, &at.field("portForward").index(index), found);
    }
    for (index, copy) in block.cp.iter().enumerate() {
        let at = at.field("cp").index(index);
        check_pod(&copy.pod, &at, found);
        check_filters((&copy.jq, &copy.yq), &at, found);
    }
}

fn check_forward(forward: &PortForward, at: &FieldPath, found: &mut Diagnostics) {
    let given = [
        ("service", forward.service.is_some()),
        ("pod", forward.pod.is_some()),
        ("leaderElection", forward.leader_election.is_some()),
    ];
    check_one(&given, at, found);
    let path = forward.path.as_deref().unwrap_or("/");
    if !path.starts_with('/') || path.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message = "expected a path that begins with `/` and has no white space";
        error(found, Code::WrongValue, &at.field("path"), message);
    }
    check_filters((&forward.jq, &forward.yq), at, found);
}

/// Checks the calls that change something.
fn check_writes(block: &Kubectl, at: &FieldPath, found: &mut Diagnostics) {
    for (index, apply) in block.apply.iter().enumerate() {
        let given = [
            ("file", apply.file.is_some()),
            ("inline", apply.inline.is_some()),
        ];
        check_one(&given, &at.field("apply").index(index), found);
    }
    for (index, delete) in block.delete.iter().enumerate() {
        let at = at.field("delete").index(index);
        let pod = &delete.pod;
        let given = [
            ("file", delete.file.is_some()),
            ("name", pod.name.is_some()),
            ("labelSelector", pod.label_selector.is_some()),
            ("leaderElection", pod.leader_election.is_some()),
        ];
        check_one(&given, &at, found);
        let needs_kind = pod.name.is_some() || pod.label_selector.is_some();
        if needs_kind && delete.kind.is_none() {
            error(found, Code::Missing, &at, "`kind` is missing");
        }
    }
}
