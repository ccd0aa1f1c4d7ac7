//! `cross`: reads of other operators' custom resources.

use std::collections::BTreeMap;

use super::{Coerce, Leaf, ResourceType, lasting, operator::Context, reads, targets};
use crate::{
    api::{self, CrdEntry, CrossSelector as Declared, scalar::Text},
    diagnostics::{Code, nearest},
    plan::api_types,
    resources::scope::{At, Problems},
    value::{Key, Path, Step},
};

/// Name below `.cross.<as>` of whether such a resource exists.
pub const FOUND: &str = "found";
/// Name below `.cross.<as>` of the health of the resource's operator.
pub const HEALTH: &str = "health";
/// Name below `.cross.<as>` of the metrics of the resource's operator.
pub const METRICS: &str = "metrics";

/// One entry of `cross`.
#[derive(Debug)]
pub struct CrossPlan {
    /// Its path in the Katalog, for messages.
    pub path: Box<str>,
    /// The name below `.cross`.
    pub name: Key,
    /// The operator whose resource is read.
    pub target: CrossTarget,
    /// Selects the resource.
    pub selector: CrossSelector,
    /// Its namespace; `None` is the custom resource's own.
    pub namespace: Option<Leaf>,
    /// Patterns of the namespaces that the custom resource may choose; if empty it may choose any, if that is permitted.
    pub allowed: Box<[Box<str>]>,
    /// The paths that templates read of it.
    pub reads: Vec<Path>,
    /// True if templates read the health of its operator.
    pub reads_health: bool,
    /// True if templates read the metrics of its operator.
    pub reads_metrics: bool,
}

/// The operator whose resource is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossTarget {
    /// An entry of the same Katalog, whose kind is known.
    Own(Box<str>, ResourceType),
    /// An entry of another Katalog.
    Other(Box<str>),
    /// The operator whose definition has these labels.
    Labels(BTreeMap<Box<str>, Box<str>>),
}

/// Selects a resource of a kind.
#[derive(Debug)]
pub enum CrossSelector {
    /// By name.
    Name(Leaf),
    /// The first that has these labels.
    Labels(Box<[(Key, Leaf)]>),
}

impl CrossPlan {
    /// Returns the templates that select the resource.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let (name, labels) = match &self.selector {
            CrossSelector::Name(name) => (Some(name), None),
            CrossSelector::Labels(labels) => (None, Some(labels)),
        };
        let labels = labels.into_iter().flat_map(|labels| labels.iter());
        let labels = labels.map(|(_, value)| value);
        name.into_iter().chain(labels).chain(&self.namespace)
    }

    /// True if the custom resource chooses the namespace: it is neither literal nor its own.
    pub fn is_chosen(&self) -> bool {
        let chosen = self.namespace.as_ref();
        chosen.is_some_and(|leaf| {
            !leaf.template.reads().is_empty() && !targets::is_own(&[], None, leaf)
        })
    }

    /// True if a custom resource in the namespace `own` may read from `namespace`.
    pub fn permits(&self, own: Option<&str>, namespace: Option<&str>) -> bool {
        let is_free = !self.is_chosen() || self.allowed.is_empty() || namespace == own;
        is_free
            || namespace.is_some_and(|namespace| {
                let mut allowed = self.allowed.iter();
                allowed.any(|pattern| lasting::matches(pattern, namespace))
            })
    }

    /// Returns the paths that must be kept of resources of the kind, to select and to show one.
    pub fn kept_paths(&self) -> Vec<Path> {
        let mut paths = self.reads.clone();
        if let CrossSelector::Labels(labels) = &self.selector {
            paths.extend(labels.iter().map(|(key, _)| label_path(key)));
        }
        paths
    }
}

/// Returns the path of a label in an object.
pub fn label_path(key: &Key) -> Path {
    let steps = [Key::from("metadata"), Key::from("labels"), key.clone()];
    steps.map(Step::Field).into_iter().collect()
}

/// Compiles the list at `at`; invalid entries are reported and left out.
pub(crate) fn compile(
    at: &At<'_>,
    declared: &[api::Cross],
    context: &Context<'_>,
) -> Box<[CrossPlan]> {
    let mut plans: Vec<CrossPlan> = Vec::new();
    for (index, declared) in declared.iter().enumerate() {
        let at = at.index(index);
        let Some(plan) = one(&at, declared, context) else {
            continue;
        };
        if plans.iter().any(|other| other.name == plan.name) {
            let message = format!("another entry is `.cross.{}` already", plan.name);
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
pub(super) fn check(at: &At<'_>, plans: &[CrossPlan], owner: Option<&ResourceType>) {
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
        Some((entry.as_.as_deref().unwrap_or(crd), crd))
    });
    named.collect()
}

fn one(at: &At<'_>, declared: &api::Cross, context: &Context<'_>) -> Option<CrossPlan> {
    let api::Cross {
        crd,
        label_selector,
        selector,
        allowed_namespaces,
        as_,
        later: _,
    } = declared;
    let crd = crd.as_deref().filter(|crd| !crd.is_empty());
    let target = target(at, crd, label_selector, context);
    let name = as_.as_deref().filter(|name| !name.is_empty()).or(crd);
    if name.is_none() && target.is_some() {
        let hint = "say `as: db`, and templates read `.cross.db`";
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
        path: at.text(),
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
            let [Step::Field(root), rest @ ..] = path.steps() else {
                continue;
            };
            let is_above = |name: &Key| above.iter().any(|other| other.name == *name);
            let is_known = matches!(rest.first(), Some(Step::Field(name)) if is_above(name));
            if &**root == reads::CROSS && !is_known {
                let message = format!("`.{path}` is not read before this");
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
    context: &Context<'_>,
) -> Option<CrossTarget> {
    match (crd, labels.is_empty()) {
        (Some(_), false) => {
            at.field("labelSelector").error(
                Code::Exclusive,
                "`crd` names the operator already: leave one of the two out",
            );
            None
        }
        (None, true) => {
            at.error_hint(
                Code::Missing,
                "neither `crd` nor `labelSelector` says whose resource this is",
                "name an entry of `spec.crds`: `crd: database`",
            );
            None
        }
        (None, false) => {
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| (Box::from(&**key), Box::from(value.as_str())));
            Some(CrossTarget::Labels(labels.collect()))
        }
        (Some(name), true) => entry(&at.field("crd"), name, context),
    }
}

/// Returns the entry with that name, in this Katalog or another.
fn entry(at: &At<'_>, name: &str, context: &Context<'_>) -> Option<CrossTarget> {
    let crds = context.crds;
    if let Some(entry) = crds.get(name) {
        if entry.cross_access == Some(false) {
            let message =
                format!("`{name}` has `crossAccess: false`: others may not read its resources");
            at.error_hint(
                Code::UnknownCross,
                message,
                format!("remove `crossAccess` from `{name}`"),
            );
            return None;
        }
        return Some(CrossTarget::Own(name.into(), kind(name, entry, context)?));
    }
    if let Some(near) = nearest(name, crds.keys().map(String::as_str)) {
        at.warn_hint(
            Code::UnknownOperator,
            format!("this Katalog has no `{name}`: another one must"),
            format!("did you mean `{near}`?"),
        );
    }
    Some(CrossTarget::Other(name.into()))
}

/// Returns the kind of another entry of the Katalog. Its problems are reported at that entry.
fn kind(name: &str, entry: &CrdEntry, context: &Context<'_>) -> Option<ResourceType> {
    let quiet = Problems::default();
    api_types::resolve(&At::root(&quiet), name, entry, context.known.schemas)
}

fn by(at: &At<'_>, declared: &Declared) -> Option<CrossSelector> {
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
                "nothing says which resource this is",
                "choose it by name: `selector: { name: \"{{ .metadata.name }}-db\" }`",
            );
            None
        }
        (Some(name), true) => {
            let leaf = at.field("name").leaf(name, Coerce::OptionalText)?;
            Some(CrossSelector::Name(leaf))
        }
        (name, false) => {
            if name.is_some() {
                let message = "`matchLabels` chooses the resource, whatever it is called";
                at.field("name").warn(Code::NoEffect, message);
            }
            let at = at.field("matchLabels");
            let labels = match_labels.iter().map(|(key, value)| {
                let leaf = at.field(key).leaf(value, Coerce::OptionalText)?;
                Some((Key::from(&**key), leaf))
            });
            Some(CrossSelector::Labels(labels.collect::<Option<_>>()?))
        }
    }
}
