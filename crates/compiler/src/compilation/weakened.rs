//! Weaker protection: a new revision of a source needs approval for it, as for a further permission.

use orkestra_language::api::FailurePolicy;
use orkestra_plan::{Plan, SecurityPlan};

/// Returns what `new` protects less than `old`, of the whole and of the operators that `is_of` the source; a line each.
pub(crate) fn weakened(new: &Plan, old: &Plan, is_of: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = of_whole(&new.security, &old.security);
    for operator in new.operators.iter().filter(|one| is_of(&one.name)) {
        let before = old.operators.iter().find(|one| one.name == operator.name);
        let Some(before) = before.map(|before| &before.admission) else {
            continue;
        };
        let now = &operator.admission;
        let (was, is) = (&before.protection, &now.protection);
        let weaker = [
            (
                was.definition && !is.definition,
                "protection of its definition",
            ),
            (
                was.resources && !is.resources,
                "protection of its custom resources",
            ),
            (was.strict && !is.strict, "strict mode"),
            (
                before.validation && !now.validation,
                "validation at admission",
            ),
            (before.mutation && !now.mutation, "mutation at admission"),
        ];
        let weaker = weaker.into_iter().filter(|(is_weaker, _)| *is_weaker);
        lines.extend(
            weaker.map(|(_, what)| {
                format!("less protection: no {what} for operator {}", operator.name)
            }),
        );
    }
    lines
}

// Over 60 lines: a table of what may become weaker.
fn of_whole(new: &SecurityPlan, old: &SecurityPlan) -> Vec<String> {
    let ignores = |now: FailurePolicy, before: FailurePolicy| {
        now == FailurePolicy::Ignore && before == FailurePolicy::Fail
    };
    let (is, was) = (
        new.deletion.unwrap_or_default(),
        old.deletion.unwrap_or_default(),
    );
    let namespaces = |plan: &SecurityPlan| plan.namespaces.clone().unwrap_or_default();
    let (open, closed) = (namespaces(new), namespaces(old));
    let is_wider = !closed.restricted.is_subset(&open.restricted) && open.allowed.is_empty()
        || !closed.allowed.is_empty()
            && (open.allowed.is_empty() || !open.allowed.is_subset(&closed.allowed));
    let deletions = new.deletion.is_some() && old.deletion.is_some();
    let lists = new.namespaces.is_some() && old.namespaces.is_some();
    let lines = [
        (
            old.deletion.is_some() && new.deletion.is_none(),
            "no deletion protection",
        ),
        (
            deletions && was.strict && !is.strict,
            "no strict mode of deletion protection",
        ),
        (
            deletions && ignores(is.failure_policy, was.failure_policy),
            "deletion protection that ignores failures",
        ),
        (
            deletions && is.cleanup && !was.cleanup,
            "deletion protection that ends with Orkestra",
        ),
        (
            old.namespaces.is_some() && new.namespaces.is_none(),
            "no namespace protection",
        ),
        (lists && is_wider, "custom resources in further namespaces"),
        (
            lists && ignores(open.failure_policy, closed.failure_policy),
            "namespace protection that ignores failures",
        ),
        (
            lists && open.cleanup && !closed.cleanup,
            "namespace protection that ends with Orkestra",
        ),
        (
            old.admission == Some(true) && new.admission != Some(true),
            "no webhooks for rules",
        ),
        (
            new.admission == Some(false) && old.admission.is_none(),
            "no rules at admission",
        ),
        (
            ignores(new.failure_policy, old.failure_policy),
            "webhooks that ignore failures",
        ),
        (
            new.cleanup && !old.cleanup,
            "webhooks that end with Orkestra",
        ),
    ];
    let lines = lines.into_iter().filter(|(is_weaker, _)| *is_weaker);
    lines
        .map(|(_, what)| format!("less protection: {what}"))
        .collect()
}
