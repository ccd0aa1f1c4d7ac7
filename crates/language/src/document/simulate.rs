//! Rules for a Simulate that a schema cannot express.

use jiff::Timestamp;

use crate::api::SimulateSpec;
use crate::api::simulate::{DEFAULT_CYCLES, ExpectedResource, OpRule, Outcome, OutcomeResult};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_object::value::Path;

/// Kinds that can fail permanently.
const FAILING: [&str; 3] = ["Deployment", "Job", "Pod"];

fn error(found: &mut Diagnostics, code: Code, at: &FieldPath, message: impl Into<String>) {
    found.push(Diagnostic::error(code, at.clone(), message));
}

/// Reports problems in the spec of a Simulate.
pub(crate) fn check(spec: &SimulateSpec, found: &mut Diagnostics) {
    let at = FieldPath::root().field("spec");
    check_inputs(spec, &at, found);
    let cycles = spec.cycles.unwrap_or(DEFAULT_CYCLES);
    let late = |number: Option<u32>, at: &FieldPath, found: &mut Diagnostics| {
        if let Some(number) = number.filter(|number| *number > cycles) {
            let message =
                format!("cycle {number} does not run: the simulation ends after {cycles}");
            let problem = Diagnostic::error(Code::OutOfRange, at.clone(), message);
            found.push(problem.hint(format!("write `cycles: {number}`, or an earlier cycle")));
        }
    };
    for (index, outcome) in spec.outcomes.iter().enumerate() {
        let at = at.field("outcomes").index(index);
        late(outcome.after, &at.field("after"), found);
        check_outcome(outcome, &at, found);
    }
    for (index, change) in spec.changes.iter().enumerate() {
        let at = at.field("changes").index(index);
        late(Some(change.after), &at.field("after"), found);
        match (&change.patch, change.delete == Some(true)) {
            (None, false) => error(found, Code::Missing, &at, "`patch` is missing"),
            (Some(_), true) => {
                let message = "`patch` and `delete` are mutually exclusive";
                error(found, Code::Exclusive, &at.field("delete"), message);
            }
            _ => {}
        }
    }
    let Some(expect) = &spec.expect else { return };
    let at = at.field("expect");
    let of_crds = expect.crds.iter();
    let of_crds = of_crds.map(|(name, expected)| (at.field("crds").field(name), expected));
    for (at, expected) in [(at.clone(), &expect.all)].into_iter().chain(of_crds) {
        late(expected.steady_at, &at.field("steadyAt"), found);
        for (name, rules) in [("ops", &expected.ops), ("absent", &expected.absent)] {
            let at = at.field(name);
            for (index, rule) in rules.iter().enumerate() {
                late(rule.cycle, &at.index(index).field("cycle"), found);
            }
            check_ops(rules, &at, name == "ops", found);
        }
        check_resources(&expected.resources, &at.field("resources"), found);
    }
}

fn check_inputs(spec: &SimulateSpec, at: &FieldPath, found: &mut Diagnostics) {
    let is_suite = *spec
        == SimulateSpec {
            imports: spec.imports.clone(),
            ..SimulateSpec::default()
        };
    if is_suite && !spec.imports.is_empty() {
        return;
    }
    if spec.katalog.is_none() {
        error(found, Code::Missing, at, "`katalog` is missing");
    }
    if spec.cr.is_none() && spec.cr_files.is_empty() {
        let problem = Diagnostic::error(Code::Missing, at.clone(), "`cr` is missing");
        found.push(problem.hint("name a file with a custom resource"));
    }
    if let Some(text) = &spec.at
        && text.parse::<Timestamp>().is_err()
    {
        let message = format!("`{text}` is not a time");
        let problem = Diagnostic::error(Code::WrongValue, at.field("at"), message);
        found.push(problem.hint("write it as `2025-06-30T12:00:00Z`"));
    }
}

fn check_outcome(outcome: &Outcome, at: &FieldPath, found: &mut Diagnostics) {
    let is_failing = FAILING.contains(&outcome.kind.as_str());
    if outcome.result == Some(OutcomeResult::Failed) && !is_failing {
        let message = format!("a {} cannot fail permanently", outcome.kind);
        let problem = Diagnostic::error(Code::Exclusive, at.field("result"), message);
        found.push(problem.hint("write `stuck`, or set its `status`"));
    }
}

/// Reports problems in operations that are expected, or not expected.
pub(crate) fn check_ops(rules: &[OpRule], at: &FieldPath, is_seen: bool, found: &mut Diagnostics) {
    for (index, rule) in rules.iter().enumerate() {
        let at = at.index(index);
        let is_alone = *rule
            == OpRule {
                include: rule.include.clone(),
                ..OpRule::default()
            };
        if rule.include.is_some() {
            if !is_alone {
                let message = "`include` excludes all other fields";
                error(found, Code::Exclusive, &at.field("include"), message);
            }
            continue;
        }
        if rule.resource.is_none() {
            error(found, Code::Missing, &at, "`resource` is missing");
        }
        if is_seen && rule.verb.is_none() {
            error(found, Code::Missing, &at, "`verb` is missing");
        }
        if !is_seen && rule.count.is_some() {
            let message = "operations that must not occur cannot have a `count`";
            error(found, Code::Exclusive, &at.field("count"), message);
        }
    }
}

/// Checks field paths and mutually exclusive fields.
pub fn check_resources(resources: &[ExpectedResource], at: &FieldPath, found: &mut Diagnostics) {
    for (index, resource) in resources.iter().enumerate() {
        let at = at.index(index);
        for name in resource.fields.keys() {
            if let Err(why) = Path::parse(name) {
                let message = format!("`{name}` is not a path: {why}");
                let at = at.field("fields").field(name);
                error(found, Code::BadName, &at, message);
            }
        }
        let asks = resource.ready.is_some() || !resource.fields.is_empty();
        if resource.count == Some(0) && asks {
            let message = "`count: 0` expects no object, so nothing else can be expected of it";
            error(found, Code::Exclusive, &at.field("count"), message);
        }
    }
}
