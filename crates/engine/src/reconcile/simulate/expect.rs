//! Compares expectations with the results.

use super::{
    Op, SimulatedRun,
    compare::{compare, matches, words},
};
use orkestra_language::{
    api::simulate::{Expectations, ExpectedCondition, ExpectedResource, ExpectedStatus, OpRule},
    diagnostics::FieldPath,
};
use orkestra_object::value::{Node, Path};

/// The maximum number of result lines that one check shows.
const MOST_LINES: usize = 40;

/// One expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its path in the document.
    pub path: FieldPath,
    /// The expectation: `create deployments web in cycle 1`.
    pub what: String,
    /// The expected (`-`) and the actual result (`+`, and a space for context), one line each; empty if it was met.
    pub diff: Vec<String>,
}

impl Check {
    /// True if it was met.
    pub fn is_met(&self) -> bool {
        self.diff.is_empty()
    }
}

/// Compares the expectations at `path` for some subjects with a run.
pub fn check(
    run: &SimulatedRun,
    expected: &Expectations,
    path: &FieldPath,
    subjects: &[usize],
) -> Vec<Check> {
    let mut judge = Judge {
        run,
        subjects,
        checks: Vec::new(),
    };
    judge.steady(expected, path);
    for (index, rule) in expected.ops.iter().enumerate() {
        judge.seen(rule, path.field("ops").index(index));
    }
    for (index, rule) in expected.absent.iter().enumerate() {
        judge.absent(rule, path.field("absent").index(index));
    }
    if let Some(status) = &expected.status {
        judge.status(status, &path.field("status"));
    }
    for (index, condition) in expected.conditions.iter().enumerate() {
        judge.condition(condition, &path.field("conditions").index(index));
    }
    for (index, resource) in expected.resources.iter().enumerate() {
        judge.resource(resource, path.field("resources").index(index));
    }
    judge.checks
}

struct Judge<'a> {
    run: &'a SimulatedRun,
    subjects: &'a [usize],
    checks: Vec<Check>,
}

impl<'a> Judge<'a> {
    fn add(&mut self, path: FieldPath, what: impl Into<String>, diff: Vec<String>) {
        self.checks.push(Check {
            path,
            what: what.into(),
            diff,
        });
    }

    /// Returns the operations, each with its cycle, from 1.
    fn ops(&self) -> impl Iterator<Item = (usize, &'a Op)> + use<'a> {
        let (run, subjects) = (self.run, self.subjects);
        let cycles = run.cycles.iter().zip(1..);
        let all = cycles.flat_map(|(cycle, number)| cycle.ops.iter().map(move |op| (number, op)));
        all.filter(move |(_, op)| subjects.contains(&op.subject))
    }

    fn steady(&mut self, expected: &Expectations, path: &FieldPath) {
        let steady = self.run.steady_at(self.subjects);
        let all: Vec<_> = self.ops().collect();
        let later = |from: usize| {
            let busy = all.iter().filter(|(number, _)| *number >= from);
            lines(busy.map(|(number, op)| format!("+ cycle {number}: {op}")))
        };
        let last = self.run.cycles.len();
        if expected.steady == Some(true) {
            let diff = match steady {
                Some(_) => Vec::new(),
                None => [vec![format!("- steady by cycle {last}")], later(last)].concat(),
            };
            self.add(path.field("steady"), "a steady state", diff);
        }
        if let Some(at) = expected.steady_at {
            let diff = match steady {
                Some(seen) if seen <= at => Vec::new(),
                _ => {
                    let from = usize::try_from(at).unwrap_or(usize::MAX);
                    [
                        vec![format!("- nothing is done from cycle {at}")],
                        later(from),
                    ]
                    .concat()
                }
            };
            self.add(
                path.field("steadyAt"),
                format!("steady at cycle {at}"),
                diff,
            );
        }
        if expected.no_errors == Some(true) {
            let faults = self.run.cycles.iter().zip(1_usize..);
            let faults = faults.flat_map(|(cycle, number)| {
                let own = cycle
                    .faults
                    .iter()
                    .filter(|one| self.subjects.contains(&one.subject));
                own.map(move |one| {
                    format!(
                        "+ cycle {number}: {}: {}: {}",
                        one.reason, one.at, one.message
                    )
                })
            });
            let mut diff = lines(faults);
            if !diff.is_empty() {
                diff.insert(0, "- no failure".to_owned());
            }
            self.add(path.field("noErrors"), "no failure", diff);
        }
    }

    fn seen(&mut self, rule: &OpRule, path: FieldPath) {
        let what = words(rule);
        let wanted = usize::try_from(rule.count.unwrap_or(1)).unwrap_or(usize::MAX);
        let seen = self
            .ops()
            .filter(|(cycle, op)| matches(rule, *cycle, op))
            .count();
        let mut diff = Vec::new();
        if seen < wanted {
            let times = if wanted == 1 {
                String::new()
            } else {
                format!(", {seen} of {wanted} times")
            };
            diff.push(format!("- {what}{times}"));
            let around = self.ops();
            let around = around.filter(|(cycle, _)| {
                rule.cycle
                    .is_none_or(|wanted| usize::try_from(wanted) == Ok(*cycle))
            });
            let around = lines(around.map(|(cycle, op)| format!("  cycle {cycle}: {op}")));
            if around.is_empty() {
                diff.push("  nothing is done".to_owned());
            }
            diff.extend(around);
        }
        self.add(path, what, diff);
    }

    fn absent(&mut self, rule: &OpRule, path: FieldPath) {
        let seen = self.ops().filter(|(cycle, op)| matches(rule, *cycle, op));
        let diff = lines(seen.map(|(cycle, op)| format!("+ cycle {cycle}: {op}")));
        self.add(path, format!("no {}", words(rule)), diff);
    }

    /// Returns the final states of the subjects' resources.
    fn resources(&self) -> Vec<&'a Node> {
        let known = |index: &usize| self.run.resources.get(*index);
        self.subjects.iter().filter_map(known).collect()
    }

    fn status(&mut self, expected: &Node, path: &FieldPath) {
        for resource in self.resources() {
            let nothing = Node::Null;
            let seen = resource.get("status").unwrap_or(&nothing);
            let mut diff = Vec::new();
            // The compiler refuses a status with values of Secrets.
            compare(expected, seen, "status", false, &mut diff);
            self.add(path.clone(), "the status", diff);
        }
    }

    fn condition(&mut self, expected: &ExpectedCondition, path: &FieldPath) {
        let status = match expected.status {
            None | Some(ExpectedStatus::True) => "True",
            Some(ExpectedStatus::False) => "False",
            Some(ExpectedStatus::Unknown) => "Unknown",
        };
        let reason = expected.reason.as_deref();
        let what = |status: &str, reason: Option<&str>| match reason {
            Some(reason) => format!("{}={status} ({reason})", expected.type_),
            None => format!("{}={status}", expected.type_),
        };
        let wanted = what(status, reason);
        for resource in self.resources() {
            let all = resource
                .get("status")
                .and_then(|status| status.get("conditions"));
            let text = |node: &'a Node, name| node.get(name).and_then(Node::as_str);
            let found = all.and_then(Node::as_list).unwrap_or_default().iter();
            let mut found = found.filter(|one| text(one, "type") == Some(&expected.type_));
            let found = found.next();
            let is_met = match found {
                Some(one) => {
                    text(one, "status") == Some(status)
                        && reason.is_none_or(|reason| text(one, "reason") == Some(reason))
                }
                None => status == "False" && reason.is_none(),
            };
            let seen = match found {
                Some(one) => {
                    let message = text(one, "message").unwrap_or_default();
                    let said = what(text(one, "status").unwrap_or_default(), text(one, "reason"));
                    format!("+ {said}: {message}")
                }
                None => format!("+ no condition {}", expected.type_),
            };
            let diff = if is_met {
                Vec::new()
            } else {
                vec![format!("- {wanted}"), seen]
            };
            self.add(path.clone(), format!("the condition {wanted}"), diff);
        }
    }

    fn resource(&mut self, expected: &ExpectedResource, path: FieldPath) {
        let is = |given: &Option<String>, is: Option<&str>| {
            given.as_deref().is_none_or(|given| Some(given) == is)
        };
        let found = self.run.objects.iter().filter(|left| {
            let key = &left.key;
            let of_these = left
                .subject
                .is_none_or(|subject| self.subjects.contains(&subject));
            let kind = *expected.kind == *key.kind.kind || expected.kind == key.kind.to_string();
            of_these
                && kind
                && is(&expected.name, Some(&key.object.name))
                && is(&expected.namespace, key.object.namespace.as_deref())
        });
        let found: Vec<_> = found.collect();
        let name = expected
            .name
            .as_deref()
            .map(|name| format!(" {name}"))
            .unwrap_or_default();
        let what = format!("{}{name}", expected.kind);
        let wanted = expected
            .count
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut diff = Vec::new();
        if wanted.map_or(found.is_empty(), |wanted| found.len() != wanted) {
            let wanted = wanted.map_or("at least 1".to_owned(), |wanted| wanted.to_string());
            diff.push(format!("- {what}: {wanted}"));
            diff.push(format!("+ {what}: {}", found.len()));
            diff.extend(lines(found.iter().map(|left| format!("  {}", left.key))));
        }
        for left in &found {
            let mut own = Vec::new();
            if expected.ready == Some(true) && !left.is_ready {
                own.extend(["- it is ready".to_owned(), "+ it is not ready".to_owned()]);
            }
            let is_secret = left.key.kind.to_string() == "Secret";
            for (field, wanted) in &expected.fields {
                // The document layer has checked the path.
                let at = Path::parse(field).unwrap_or_default();
                let nothing = Node::Null;
                let seen = left.object.at(&at).unwrap_or(&nothing);
                compare(wanted, seen, field, is_secret, &mut own);
            }
            if !own.is_empty() {
                diff.push(format!("  {}", left.key));
                diff.append(&mut own);
            }
        }
        self.add(path, what, diff);
    }
}

/// Returns at most [`MOST_LINES`] lines, and the number of the rest.
fn lines(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.collect();
    let more = all.len().saturating_sub(MOST_LINES);
    if more > 0 {
        all.truncate(MOST_LINES);
        all.push(format!("  and {more} more"));
    }
    all
}
