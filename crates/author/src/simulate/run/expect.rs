//! The expectations of a Simulate, with the files that it includes.

use std::collections::BTreeSet;

use orkestra_engine::reconcile::simulate::{self, Check, check};
use orkestra_language::{
    api::simulate::{Expect, Expectations, OpRule},
    diagnostics::{Code, Diagnostic, FieldPath},
    document::{parse_stream, read_ops},
};
use orkestra_plan::OperatorPlan;

use super::SimulateReader;
use orkestra_loader::files::{self, beside};

/// A rule with its list and its index in the list.
type IndexedRule = ((&'static str, usize), OpRule);

impl SimulateReader<'_> {
    /// Returns the expectations, with the included files, and reports their errors.
    pub(crate) async fn expectations(&mut self, plans: &[&OperatorPlan]) -> Expect {
        let at = FieldPath::root().field("spec").field("expect");
        let mut expect = self.spec().expect.clone().unwrap_or_default();
        let known: Vec<&str> = plans.iter().map(|plan| &*plan.name).collect();
        for name in expect.crds.keys() {
            if !known.contains(&name.as_str()) {
                let message = format!("no custom resource of `{name}` is reconciled");
                let problem =
                    Diagnostic::error(Code::UnknownData, at.field("crds").field(name), message);
                self.refuse_with(problem.hint(format!("reconciled operators: {}", listed(&known))));
            }
        }
        let shared = known
            .iter()
            .filter(|name| !expect.crds.contains_key(**name));
        let asks = expect.all.status.is_some() || !expect.all.conditions.is_empty();
        if shared.count() > 1 && asks {
            let message = "several custom resources are reconciled, and each has a status";
            let problem = Diagnostic::error(Code::Exclusive, at.clone(), message);
            self.refuse_with(problem.hint("write `status` and `conditions` below `crds`"));
        }
        let resources = resources_of(plans);
        let all = self.included(&mut expect.all, &at).await;
        let mut checked = vec![(at.clone(), all)];
        for (name, own) in &mut expect.crds {
            let at = at.field("crds").field(name);
            let rules = self.included(own, &at).await;
            checked.push((at, rules));
        }
        for (at, rules) in checked {
            for (path, rule) in rules {
                self.check_rule(&at, path, &rule, &resources);
            }
        }
        expect
    }

    /// Inserts the included rules. Returns all rules with their positions below the expectations.
    async fn included(&mut self, expected: &mut Expectations, at: &FieldPath) -> Vec<IndexedRule> {
        let mut all = Vec::new();
        for (name, rules) in [("ops", &mut expected.ops), ("absent", &mut expected.absent)] {
            let mut whole = Vec::with_capacity(rules.len());
            for (index, rule) in std::mem::take(rules).into_iter().enumerate() {
                let place = (name, index);
                let Some(file) = &rule.include else {
                    all.push((place, rule.clone()));
                    whole.push(rule);
                    continue;
                };
                let path = at.field(name).index(index).field("include");
                let more = self.read_rules(file, path).await;
                all.extend(more.iter().map(|rule| (place, rule.clone())));
                whole.extend(more);
            }
            *rules = whole;
        }
        all
    }

    async fn read_rules(&mut self, file: &str, at: FieldPath) -> Vec<OpRule> {
        let path = beside(&self.loaded.path, file);
        let name = path.display().to_string();
        let text = match files::read_text(&path).await {
            Ok(text) => text,
            Err(why) => {
                self.refuse(Code::Unreadable, at, format!("cannot read {name}: {why}"));
                return Vec::new();
            }
        };
        let stream = parse_stream(&name, &text);
        self.simulated.files.insert(path);
        self.simulated.texts.insert(name, text);
        self.is_wrong |= stream.problems.has_errors();
        self.simulated.problems.extend(stream.problems);
        let mut rules = Vec::new();
        for source in &stream.sources {
            match read_ops(source) {
                Ok((read, warnings)) => {
                    self.simulated.problems.extend(warnings);
                    rules.extend(read);
                }
                Err(problems) => {
                    self.is_wrong = true;
                    self.simulated.problems.extend(problems);
                }
            }
        }
        if rules.iter().any(|rule| rule.include.is_some()) {
            self.refuse(
                Code::Exclusive,
                at,
                "an included file cannot include another file",
            );
        }
        rules
    }

    /// Reports a resource that the Katalog does not have: an `absent` rule for it would always be met.
    fn check_rule(
        &mut self,
        at: &FieldPath,
        (list, index): (&str, usize),
        rule: &OpRule,
        known: &BTreeSet<String>,
    ) {
        let Some(resource) = &rule.resource else {
            return;
        };
        let plural = resource.strip_suffix("/status").unwrap_or(resource);
        if known.contains(plural) {
            return;
        }
        let message = format!("the Katalog has no resource `{plural}`");
        let path = at.field(list).index(index).field("resource");
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let names: Vec<&str> = names
            .into_iter()
            .filter(|name| !name.contains('.'))
            .collect();
        let problem = Diagnostic::error(Code::UnknownData, path, message);
        self.refuse_with(problem.hint(format!("its resources: {}", listed(&names))));
    }
}

/// Formats names for a message.
pub(crate) fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the plurals of all kinds that the operators reconcile, read or create, with and without their groups.
fn resources_of(plans: &[&OperatorPlan]) -> BTreeSet<String> {
    let kinds = plans.iter().flat_map(|plan| {
        let kinds = std::iter::once(&plan.resource).chain(plan.kinds());
        kinds.map(|kind| {
            (
                simulate::plural(plan, &kind.group_kind()),
                kind.group.to_string(),
            )
        })
    });
    let names = kinds.flat_map(|(plural, group)| {
        let whole = (!group.is_empty()).then(|| format!("{plural}.{group}"));
        [Some(plural), whole].into_iter().flatten()
    });
    names.collect()
}

/// Compares each expectation with the results. Operators with a separate block use that block; the other operators share the rest.
pub(crate) fn checks(
    expect: &Expect,
    run: &simulate::SimulatedRun,
    plans: &[&OperatorPlan],
) -> Vec<Check> {
    let at = FieldPath::root().field("spec").field("expect");
    let all = plans.iter().enumerate();
    let shared = all.filter(|(_, plan)| !expect.crds.contains_key(&plan.name));
    let shared: Vec<usize> = shared.map(|(index, _)| index).collect();
    let mut checks = Vec::new();
    if !shared.is_empty() {
        checks.extend(check(run, &expect.all, &at, &shared));
    }
    for (name, own) in &expect.crds {
        let of = plans
            .iter()
            .enumerate()
            .filter(|(_, plan)| plan.name == *name);
        let of: Vec<usize> = of.map(|(index, _)| index).collect();
        let at = at.field("crds").field(name);
        checks.extend(check(run, own, &at, &of));
    }
    checks
}
