//! `deployments`.

use super::{pod, scope::At};
use crate::{
    api::{
        children::{Deployment, RollingUpdate},
        names,
    },
    plan::{Coerce, Fields, GroupKind, Leaf, Tree, resolve_profile},
};

/// The root fields of a Deployment that is called `name`; its user's `labels` go onto the pods too.
///
/// Its selector is one label of ours, since selectors are immutable and pods of two workloads must never be mixed up;
/// ownership labels stay off the pods.
pub(crate) fn expand(
    at: &At<'_>,
    entry: &Deployment,
    labels: &Fields,
    kind: &GroupKind,
    name: &Leaf,
) -> Fields {
    let mut spec = Fields::default();
    spec.put(
        "replicas",
        at.scalar_field("replicas", entry.replicas.as_ref(), Coerce::Int),
    );
    let mut selector = Fields::default();
    selector.put("matchLabels", workload_label(kind, name).into_tree());
    spec.put("selector", selector.into_tree());
    if let Some(declared) = &entry.rolling_update {
        spec.put("strategy", strategy(&at.field("rollingUpdate"), declared));
    }
    let mut labels = labels.clone();
    labels.put(names::LABEL_WORKLOAD, workload(kind, name));
    let mut metadata = Fields::default();
    metadata.put("labels", labels.into_tree());
    let mut template = Fields::default();
    template.put("metadata", metadata.into_tree());
    template.put("spec", pod::spec(at, entry, name));
    spec.put("template", template.into_tree());

    let mut root = Fields::default();
    root.put("spec", spec.into_tree());
    root
}

/// The one label that selects the pods of a workload.
pub(super) fn workload_label(kind: &GroupKind, name: &Leaf) -> Fields {
    let mut label = Fields::default();
    label.put(names::LABEL_WORKLOAD, workload(kind, name));
    label
}

fn workload(kind: &GroupKind, name: &Leaf) -> Tree {
    Tree::Workload(Box::new((kind.clone(), name.clone())))
}

fn strategy(at: &At<'_>, declared: &RollingUpdate) -> Option<Tree> {
    let RollingUpdate {
        profile,
        max_surge,
        max_unavailable,
    } = declared;
    let set = [
        ("maxSurge", max_surge.is_some()),
        ("maxUnavailable", max_unavailable.is_some()),
    ];
    let (at, declared) = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.rolling_update
    })?;
    let mut strategy = Fields::default();
    strategy.put_text("type", "RollingUpdate");
    strategy.put("rollingUpdate", pace(&at, declared).into_optional());
    Some(strategy.into_tree())
}

/// How many pods are exchanged at a time: what a profile can stand for.
pub(crate) fn pace(at: &At<'_>, update: &RollingUpdate) -> Fields {
    let mut rolling = Fields::default();
    rolling.put(
        "maxSurge",
        at.scalar_field("maxSurge", update.max_surge.as_ref(), Coerce::IntOrText),
    );
    rolling.put(
        "maxUnavailable",
        at.scalar_field(
            "maxUnavailable",
            update.max_unavailable.as_ref(),
            Coerce::IntOrText,
        ),
    );
    rolling
}
