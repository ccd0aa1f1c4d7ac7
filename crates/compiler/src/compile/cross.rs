//! `cross`: reads of other operators' custom resources.

use std::collections::BTreeMap;

use super::{api_types, targets};
use crate::scope::{At, Problems};
use orkestra_language::{
    api::{self, CrdEntry, CrossSelector as Declared, scalar::Text},
    diagnostics::{Code, nearest},
};
use orkestra_object::value::{Key, PathStep};
use orkestra_plan::{
    Coerce, ResourceType,
    cross::{CROSS, CrossPlan, CrossSelectorPlan, CrossTarget, full_name},
    definitions::Schemas,
};

/// The entries that `crd` can name.
#[derive(Clone, Copy)]
pub(crate) struct NamedEntries<'a> {
    /// The entries of all Katalogs of a composition.
    pub(crate) crds: &'a BTreeMap<String, CrdEntry>,
    /// The definitions of their kinds.
    pub(crate) schemas: &'a Schemas,
}

/// Compiles the list at `at`; invalid entries are reported and left out.
pub(crate) fn plans(
    at: &At<'_>,
    declared: &[api::Cross],
    named: NamedEntries<'_>,
) -> Box<[CrossPlan]> {
    let mut plans: Vec<CrossPlan> = Vec::new();
    for (index, declared) in declared.iter().enumerate() {
        let at = at.index(index);
        let Some(plan) = compile_entry(&at, declared, named) else {
            continue;
        };
        if plans.iter().any(|other| other.name == plan.name) {
            let message = format!("another entry already has the name `.cross.{}`", plan.name);
            let place = if declared.as_.is_some() { "as" } else { "crd" };
            let hint = "give one of them another name with `as`";
            at.field(place).error_hint(Code::SetTwice, message, hint);
            continue;
        }
        only_above(&at, &plan, &plans);
        plans.push(plan);
    }
    plans.into()
}

/// Refuses namespaces that a custom resource of the kind `owner` chooses without a permission of the Katalog: the watches
/// see resources of all namespaces.
pub(crate) fn check(at: &At<'_>, plans: &[CrossPlan], owner: Option<&ResourceType>) {
    // Only administrators write cluster-scoped objects.
    let is_trusted = owner.is_some_and(|owner| owner.namespaced == Some(false));
    for plan in plans {
        let chosen = plan.namespace.as_ref().filter(|_| plan.is_chosen());
        match chosen {
            Some(leaf) if plan.allowed.is_empty() && !is_trusted => {
                at.place(&leaf.path).error_hint(
                    Code::OpenSource,
                    "the author of a custom resource chooses the namespace that is read",
                    "permit namespaces in this entry of `cross`: `allowedNamespaces: [team-*]`",
                );
            }
            None if !plan.allowed.is_empty() => {
                let message = "the namespace that is read does not depend on the custom resource";
                at.place(&plan.path).warn(Code::NoEffect, message);
            }
            _ => {}
        }
    }
}

/// Returns the entries of `spec.crds` that are read, by their names below `.cross`.
pub(crate) fn entries(declared: &[api::Cross]) -> BTreeMap<&str, &str> {
    let named = declared.iter().filter_map(|entry| {
        let crd = entry.crd.as_deref()?;
        Some((entry.as_.as_deref().unwrap_or(short_name(crd)), crd))
    });
    named.collect()
}

/// Returns the name of the entry in a reference to an operator.
fn short_name(crd: &str) -> &str {
    full_name(crd).map_or(crd, |(_, crd)| crd)
}

fn compile_entry(at: &At<'_>, declared: &api::Cross, named: NamedEntries<'_>) -> Option<CrossPlan> {
    let api::Cross {
        crd,
        label_selector,
        selector,
        allowed_namespaces,
        as_,
        later: _,
    } = declared;
    let crd = crd.as_deref().filter(|crd| !crd.is_empty());
    let target = target(at, crd, label_selector, named);
    let name = as_.as_deref().filter(|name| !name.is_empty());
    let name = name.or(crd.map(short_name));
    if name.is_none() && target.is_some() {
        let hint = "set `as`: with `as: db`, templates read `.cross.db`";
        at.error_hint(Code::Missing, "`as` is missing", hint);
    }
    let empty = Declared::default();
    let chosen = selector.as_ref().unwrap_or(&empty);
    let place = if selector.is_some() {
        at.field("selector")
    } else {
        at.clone()
    };
    let selector = by(&place, chosen);
    let namespace = chosen.namespace.as_ref();
    let namespace = namespace.map(|text| place.field("namespace").leaf(text, Coerce::OptionalText));
    let allowed_at = at.field("allowedNamespaces");
    let allowed = allowed_namespaces.iter().enumerate();
    let allowed =
        allowed.filter_map(|(index, text)| targets::pattern(&allowed_at.index(index), text.trim()));
    let allowed = allowed.collect();
    Some(CrossPlan {
        path: at.kept(),
        name: Key::from(name?),
        target: target?,
        selector: selector?,
        namespace: match namespace {
            Some(leaf) => Some(leaf?),
            None => None,
        },
        allowed,
        reads: Vec::new(),
        reads_health: false,
        reads_metrics: false,
    })
}

/// Refuses a selector that reads a `cross` entry not declared before it.
fn only_above(at: &At<'_>, plan: &CrossPlan, above: &[CrossPlan]) {
    for leaf in plan.leaves() {
        for path in leaf.template.reads() {
            let [PathStep::Field(root), rest @ ..] = path.steps() else {
                continue;
            };
            let is_above = |name: &Key| above.iter().any(|other| other.name == *name);
            let is_known = matches!(rest.first(), Some(PathStep::Field(name)) if is_above(name));
            if &**root == CROSS && !is_known {
                let message = format!("`.{path}` is not available at this point");
                let hint = "only entries of `cross` above this one can be read here";
                let place = at.place(&leaf.path);
                place.error_hint(Code::UnknownCross, message, hint);
            }
        }
    }
}

fn target(
    at: &At<'_>,
    crd: Option<&str>,
    labels: &BTreeMap<String, Text>,
    named: NamedEntries<'_>,
) -> Option<CrossTarget> {
    match (crd, labels.is_empty()) {
        (Some(_), false) => {
            at.field("labelSelector").error(
                Code::Exclusive,
                "`crd` already selects the operator: remove one of the two",
            );
            None
        }
        (None, true) => {
            at.error_hint(
                Code::Missing,
                "`crd` or `labelSelector` is required: it selects the operator",
                "name an entry of `spec.crds`: `crd: database`",
            );
            None
        }
        (None, false) => {
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| (Box::from(&**key), Box::from(value.as_str())));
            Some(CrossTarget::Labels(labels.collect()))
        }
        (Some(name), true) => entry(&at.field("crd"), name, named),
    }
}

/// Returns the entry with that name, in this Katalog or another.
fn entry(at: &At<'_>, name: &str, named: NamedEntries<'_>) -> Option<CrossTarget> {
    let crds = named.crds;
    if let Some(entry) = crds.get(name) {
        if entry.cross_access == Some(false) {
            let message = format!(
                "`{name}` has `crossAccess: false`: other operators cannot read its resources"
            );
            at.error_hint(
                Code::UnknownCross,
                message,
                format!("remove `crossAccess` from `{name}`"),
            );
            return None;
        }
        return Some(CrossTarget::Own(
            name.into(),
            kind(name, entry, named.schemas)?,
        ));
    }
    if name.contains('/') {
        if full_name(name).is_none() {
            let message = format!("`{name}` is not the name of an operator");
            let hint = "an operator of another Katalog is named `namespace/katalog/crd`";
            at.error_hint(Code::UnknownCross, message, hint);
            return None;
        }
        return Some(CrossTarget::Other(name.into()));
    }
    if let Some(near) = nearest(name, crds.keys().map(String::as_str)) {
        at.warn_hint(
            Code::UnknownOperator,
            format!("this Katalog has no operator `{name}`, so another Katalog must declare it"),
            format!("did you mean `{near}`?"),
        );
    }
    Some(CrossTarget::Other(name.into()))
}

/// Returns the kind of another entry of the Katalog. Its problems are reported at that entry.
fn kind(name: &str, entry: &CrdEntry, schemas: &Schemas) -> Option<ResourceType> {
    let quiet = Problems::default();
    api_types::resolve(&At::root(&quiet), name, entry, schemas)
}

fn by(at: &At<'_>, declared: &Declared) -> Option<CrossSelectorPlan> {
    let Declared {
        name,
        namespace: _,
        match_labels,
    } = declared;
    let name = name.as_ref().filter(|name| !name.trim().is_empty());
    match (name, match_labels.is_empty()) {
        (None, true) => {
            at.error_hint(
                Code::Missing,
                "the entry does not select a resource",
                "choose it by name: `selector: { name: \"{{ .metadata.name }}-db\" }`",
            );
            None
        }
        (Some(name), true) => {
            let leaf = at.field("name").leaf(name, Coerce::OptionalText)?;
            Some(CrossSelectorPlan::Name(leaf))
        }
        (name, false) => {
            if name.is_some() {
                let message = "`name` has no effect: `matchLabels` selects the resource";
                at.field("name").warn(Code::NoEffect, message);
            }
            let at = at.field("matchLabels");
            let labels = match_labels.iter().map(|(key, value)| {
                let leaf = at.field(key).leaf(value, Coerce::OptionalText)?;
                Some((Key::from(&**key), leaf))
            });
            Some(CrossSelectorPlan::Labels(labels.collect::<Option<_>>()?))
        }
    }
}
