//! The parts common to kinds with pods: selector, pod template, rollout; and the lookup of the workload that others select.

use super::{Child, Metadata, Workload};
use crate::scope::{At, Fields, Problems, resolve_profile};
use orkestra_language::{
    api::{children::RollingUpdate, names, or_template::OrTemplate, scalar::Scalar},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, GroupKind, Leaf, ObjectTree, OwnerPart, Whole};
use orkestra_template::Template;

impl Workload<'_> {
    /// True if its number of pods can be changed.
    pub(crate) fn is_scalable(&self) -> bool {
        matches!(
            &*self.kind.kind,
            "Deployment" | "ReplicaSet" | "StatefulSet"
        )
    }

    /// Returns its name; the workload itself reports errors in it.
    pub(crate) fn leaf(&self, at: &At<'_>) -> Option<Leaf> {
        Some(Leaf {
            template: Template::parse(&self.name).ok()?,
            coerce: Coerce::OptionalText,
            path: at.kept(),
        })
    }

    /// Returns the label of its pods.
    pub(crate) fn pods(&self, at: &At<'_>) -> Option<ObjectTree> {
        Some(workload_label(&self.kind, &self.leaf(at)?).into_tree())
    }

    /// Returns its port without reporting: the workload reports errors in it.
    pub(crate) fn port_tree(&self) -> Option<ObjectTree> {
        let (at, port) = self.port.as_ref()?;
        at.quietly(&Problems::default()).scalar(port, Coerce::Port)
    }
}

/// Finds the workload of an object that names none: the one with its name, except for a suffix, else the only one.
pub(crate) struct Search<'a> {
    /// The kind of the object, for messages.
    pub(crate) kind: &'static str,
    /// The suffixes that its name may add to that of its workload.
    pub(crate) endings: &'static [&'static str],
    /// The hint if there is none.
    pub(crate) instead: &'static str,
    /// Selects the workloads that qualify.
    pub(crate) wanted: fn(&Workload<'_>) -> bool,
    pub(crate) child: &'a Child<'a>,
}

impl<'a> Search<'a> {
    /// Returns the workload; a missing one is reported as an error.
    pub(crate) fn needed(&self) -> Option<&'a Workload<'a>> {
        let found = self.found();
        if found.is_none() {
            let hint = self.instead;
            let names: Vec<String> = self
                .workloads()
                .map(|workload| format!("`{}`", workload.name))
                .collect();
            let at = &self.child.at;
            if names.is_empty() {
                let message = format!(
                    "the {} has no workload to select: this operatorBox declares none",
                    self.kind
                );
                at.error_hint(Code::ServiceSelector, message, hint);
            } else {
                let message = format!(
                    "it is not clear which of {} the {} selects",
                    names.join(", "),
                    self.kind
                );
                let hint = format!("{hint}, or name the {} after one of them", self.kind);
                at.error_hint(Code::ServiceSelector, message, hint);
            }
        }
        found
    }

    /// Returns the workload, if there is one. Workloads with the same name count as one: they exclude each other by their
    /// conditions.
    pub(crate) fn found(&self) -> Option<&'a Workload<'a>> {
        let name = self.child.name_text;
        let named = |workload: &&Workload<'_>| {
            name.strip_prefix(&*workload.name)
                .is_some_and(|ending| self.endings.contains(&ending))
        };
        let only = || {
            let first = self.workloads().next()?;
            let is_only = self.workloads().all(|other| other.name == first.name);
            is_only.then_some(first)
        };
        let found = self.workloads().find(named).or_else(only)?;
        // If workloads exclude each other, any with a port determines the port.
        let with_port = |other: &&Workload<'_>| other.name == found.name && other.port.is_some();
        self.workloads().find(with_port).or(Some(found))
    }

    fn workloads(&self) -> impl Iterator<Item = &'a Workload<'a>> {
        let wanted = self.wanted;
        let all = self.child.workloads.iter();
        all.filter(move |workload| wanted(workload))
    }
}

/// Returns the only label that selects the pods of a workload.
///
/// Selectors are immutable and pods of two workloads must never be mixed up; ownership labels are not set on the pods.
pub(crate) fn workload_label(kind: &GroupKind, name: &Leaf) -> Fields {
    let mut label = Fields::default();
    let value = ObjectTree::Workload(Box::new((kind.clone(), name.clone())));
    label.put(names::LABEL_WORKLOAD, value);
    label
}

/// Returns a selector of the pods that have these labels.
pub(crate) fn match_labels(labels: ObjectTree) -> ObjectTree {
    let mut selector = Fields::default();
    selector.put("matchLabels", labels);
    selector.into_tree()
}

/// Adds selector and pod template to the spec of a workload that selects its pods.
pub(crate) fn put_pods(spec: &mut Fields, child: &Child<'_>, metadata: &Metadata, pod: Fields) {
    let label = workload_label(&child.kind, &child.name);
    let mut labels = recommended(metadata.labels.clone());
    labels.extend(label.clone());
    spec.put("selector", match_labels(label.into_tree()));
    spec.put("template", template(labels, pod));
}

/// Adds the labels that Kubernetes recommends, unless the author has set them. They are set only on pods, and not in
/// selectors: on objects without an owner Argo CD would take `instance` for its own tracking label.
///
/// Source: Kubernetes, "Recommended Labels".
pub(crate) fn recommended(mut labels: Fields) -> Fields {
    let all = [
        (names::LABEL_APP_NAME, ObjectTree::Owner(OwnerPart::Kind)),
        (
            names::LABEL_APP_INSTANCE,
            ObjectTree::Owner(OwnerPart::Name),
        ),
        (names::LABEL_APP_MANAGED_BY, ObjectTree::text("orkestra")),
    ];
    for (key, value) in all {
        labels.put_default(key, value);
    }
    labels
}

/// Returns a pod template; without labels it has no metadata.
pub(crate) fn template(labels: Fields, pod: Fields) -> ObjectTree {
    let mut metadata = Fields::default();
    metadata.put("labels", labels.into_optional());
    let mut template = Fields::default();
    template.put("metadata", metadata.into_optional());
    template.put("spec", pod.into_tree());
    template.into_tree()
}

/// Returns the rollout strategy: `strategy` of a Deployment, `updateStrategy` of the others. `pace` returns the numbers
/// that the kind accepts.
pub(crate) fn strategy(
    at: &At<'_>,
    declared: Option<&OrTemplate<RollingUpdate>>,
    pace: fn(&At<'_>, &RollingUpdate) -> Fields,
) -> Option<ObjectTree> {
    let at = at.field("rollingUpdate");
    let numbers = at.whole(declared?, Whole::Map, |at, declared| {
        rolling_update(at, declared, pace)
    });
    let mut strategy = Fields::default();
    strategy.put_text("type", "RollingUpdate");
    strategy.put("rollingUpdate", numbers);
    Some(strategy.into_tree())
}

fn rolling_update(
    at: &At<'_>,
    declared: &RollingUpdate,
    pace: fn(&At<'_>, &RollingUpdate) -> Fields,
) -> Option<ObjectTree> {
    let RollingUpdate {
        profile,
        max_surge,
        max_unavailable,
    } = declared;
    let set = [
        ("maxSurge", max_surge.is_some()),
        ("maxUnavailable", max_unavailable.is_some()),
    ];
    let resolved = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.rolling_update
    })?;
    resolved.tree(|at, declared| pace(at, declared).into_optional())
}

/// True if a number of pods is a literal zero.
pub(crate) fn is_zero(number: &Scalar) -> bool {
    matches!(number.to_string().trim(), "0" | "0%")
}

/// Returns the number of pods replaced at a time, which a profile may contain.
pub(crate) fn pace(at: &At<'_>, update: &RollingUpdate) -> Fields {
    let mut rolling = Fields::default();
    for (name, number) in [
        ("maxSurge", &update.max_surge),
        ("maxUnavailable", &update.max_unavailable),
    ] {
        rolling.put(
            name,
            at.scalar_field(name, number.as_ref(), Coerce::IntOrText),
        );
    }
    rolling
}
