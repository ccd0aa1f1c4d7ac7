//! Target namespaces: the namespaces in which children of a custom resource may be created.
//!
//! The author of a namespaced custom resource has permissions in its namespace only, while the operator's permissions are wider.
//! A namespace that depends on the custom resource is therefore checked twice:
//!
//! ```text
//!  compile ─► fixed, or the custom resource's own ──► Reach::Fixed
//!         ─► the operator creates the namespace too ► Reach::Created: the executor checks that it is this resource's
//!         ─► anything else ─────────────────────────► Reach::Chosen: `allowedTargets` is required, and each pass checks it
//! ```
//!
//! Cluster-scoped custom resources are written by administrators: nothing is required for them, but a declared list
//! applies.

use super::checks;
use crate::scope::At;
use orkestra_language::{
    api::{AllowedTarget, CrdEntry, LabelOperator, NamespaceSelector, names},
    diagnostics::Code,
};
use orkestra_plan::inputs;
use orkestra_plan::{
    ChildPlan, GroupKind, ImportPlan, LabelRequirementPlan, LabelSelector, NameRule, OperatorPlan,
    Reach, ResourceType, TargetsPlan, inputs::is_own, kinds,
};

/// Compiles the `allowedTargets` of the entry at `at`.
pub(crate) fn plan(at: &At<'_>, entry: &CrdEntry) -> TargetsPlan {
    let at = at.field("allowedTargets");
    let (mut patterns, mut selectors) = (Vec::new(), Vec::new());
    for (index, target) in entry.allowed_targets.iter().enumerate() {
        let at = at.index(index);
        match target {
            AllowedTarget::Name(text) => patterns.extend(pattern(&at, text.trim())),
            AllowedTarget::Selector(declared) => selectors.extend(selector(&at, declared)),
        }
    }
    TargetsPlan {
        names: patterns.into(),
        selectors: selectors.into(),
    }
}

pub(crate) fn pattern(at: &At<'_>, text: &str) -> Option<Box<str>> {
    let check = NameRule::Label1123.as_check();
    // With any text for `*`, the rest must be part of a valid name.
    if let Err(why) = check(&text.replace('*', "a")) {
        if text.contains('*') {
            let message = format!("`{text}` matches no namespace");
            let hint = "write the name of a namespace, with `*` for any text: `team-*`";
            at.error_hint(Code::BadName, message, hint);
        } else {
            at.bad_name(text, why, check);
        }
        return None;
    }
    Some(text.into())
}

fn selector(at: &At<'_>, declared: &NamespaceSelector) -> Option<LabelSelector> {
    let NamespaceSelector {
        match_labels,
        match_expressions,
    } = declared;
    if match_labels.is_empty() && match_expressions.is_empty() {
        let hint = "to permit every namespace, write `\"*\"`";
        at.error_hint(Code::Empty, "this label selector is empty", hint);
        return None;
    }
    let key = |at: &At<'_>, key: &str| {
        if let Err(why) = names::check_label_key(key) {
            at.bad_name(key, why, names::check_label_key);
        }
    };
    let value = |at: &At<'_>, value: &str| {
        if let Err(why) = names::check_label_value(value) {
            at.bad_name(value, why, names::check_label_value);
        }
    };
    let labels_at = at.field("matchLabels");
    for (label, wanted) in match_labels {
        key(&labels_at.key(label), label);
        value(&labels_at.field(label), wanted);
    }
    let mut requirements = Vec::new();
    for (index, one) in match_expressions.iter().enumerate() {
        let at = at.field("matchExpressions").index(index);
        key(&at.field("key"), &one.key);
        for (index, text) in one.values.iter().enumerate() {
            value(&at.field("values").index(index), text);
        }
        let compares = matches!(one.operator, LabelOperator::In | LabelOperator::NotIn);
        if compares && one.values.is_empty() {
            at.error(
                Code::Missing,
                "`In` and `NotIn` compare with `values`, which is missing",
            );
        }
        if !compares && !one.values.is_empty() {
            let message = "`Exists` and `DoesNotExist` take no `values`";
            at.field("values").error(Code::Exclusive, message);
        }
        let values = one.values.iter().map(|text| text.as_str().into());
        requirements.push(LabelRequirementPlan {
            key: one.key.as_str().into(),
            operator: one.operator,
            values: values.collect(),
        });
    }
    let labels = match_labels.iter();
    Some(LabelSelector {
        labels: labels
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
        requirements: requirements.into(),
    })
}

/// Sets the reach of every child, and refuses namespaces that a custom resource of the kind `owner` chooses without a
/// permission of the Katalog.
pub(crate) fn check(at: &At<'_>, plan: &mut OperatorPlan, owner: Option<&ResourceType>) {
    let created: Vec<String> = plan
        .children
        .iter()
        .filter(|child| child.kind.group_kind() == GroupKind::parse("Namespace") && !child.adopt)
        .map(|child| checks::unknown_text(&plan.imports, child, &child.name))
        .collect();
    let on_delete = plan
        .on_delete
        .iter()
        .flat_map(|on_delete| on_delete.entries());
    let reaches: Vec<Reach> = plan
        .children
        .iter()
        .chain(on_delete)
        .map(|child| reach(&plan.imports, child, &created))
        .collect();
    // Only administrators write cluster-scoped objects.
    let is_trusted = owner.is_some_and(|owner| owner.namespaced == Some(false));
    let is_required = plan.targets.is_empty() && !is_trusted;
    let on_delete = plan
        .on_delete
        .iter_mut()
        .flat_map(|on_delete| on_delete.steps.iter_mut());
    let on_delete = on_delete.flat_map(|step| step.made.iter_mut().chain(step.deleted.iter_mut()));
    let mut chooses = false;
    for (child, reach) in plan.children.iter_mut().chain(on_delete).zip(reaches) {
        child.reach = reach;
        chooses |= reach != Reach::Fixed;
        if let (Reach::Chosen, true, Some(leaf)) = (reach, is_required, &child.namespace) {
            at.place(&leaf.path).error_hint(
                Code::OpenTarget,
                format!(
                    "the author of a custom resource chooses the namespace of this {}",
                    child.kind.kind
                ),
                "permit namespaces in the entry of `spec.crds`: `allowedTargets: [team-*]`",
            );
        }
    }
    if !is_trusted {
        plan.children.iter().for_each(|child| adopts_any(at, child));
    }
    if !plan.targets.is_empty() && !chooses {
        let message = "the namespace of no child depends on the custom resource";
        at.field("allowedTargets").warn(Code::NoEffect, message);
    }
}

/// Warns about an entry by which the author of a namespaced custom resource may take over any cluster-scoped object of a kind.
fn adopts_any(at: &At<'_>, child: &ChildPlan) {
    let source = child.name.template.source().trim();
    let is_chosen = !child.name.template.reads().is_empty()
        && source.starts_with("{{")
        && source.ends_with("}}");
    let of_cluster = kinds::built_in(&child.kind.group_kind())
        .map_or(child.kind.namespaced == Some(false), |(_, namespaced)| {
            !namespaced
        });
    if child.adopt && of_cluster && is_chosen {
        let kind = &child.kind.kind;
        at.place(&child.name.path).warn_hint(
            Code::OpenTarget,
            format!("the author of a custom resource chooses which {kind} of the cluster is adopted and changed"),
            "start the name with text that only these objects have, or remove `adopt: true`",
        );
    }
}

fn reach(imports: &[ImportPlan], child: &ChildPlan, created: &[String]) -> Reach {
    let Some(leaf) = &child.namespace else {
        return Reach::Fixed;
    };
    // A leaf without reads does not depend on the custom resource; a random or timed name is reported elsewhere.
    if leaf.template.reads().is_empty()
        || inputs::known_text(imports, child.import, leaf).is_some()
        || is_own(imports, child.import, leaf)
    {
        return Reach::Fixed;
    }
    let text = checks::unknown_text(imports, child, leaf);
    if created.contains(&text) {
        Reach::Created
    } else {
        Reach::Chosen
    }
}
