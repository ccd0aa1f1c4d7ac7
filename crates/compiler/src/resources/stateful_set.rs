//! `statefulSets`.

use super::{
    Child, Metadata, Pods, Shorthand,
    persistent_volume_claim::{self, SINGLE_WRITER},
    pod::Parts,
    workload,
};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        autoscale::WorkloadAutoscale,
        children::{RollingUpdate, StatefulSet, VolumeClaimTemplate},
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

/// The default name of a volume.
const VOLUME: &str = "data";

impl Shorthand for StatefulSet {
    fn pods(&self) -> Option<Pods<'_>> {
        let port = self.serving.port.as_ref();
        Some(Pods { port })
    }

    fn roll_on_change(&self) -> Option<bool> {
        self.rolling.roll_on_change
    }

    fn autoscale(&self) -> Option<&WorkloadAutoscale> {
        self.autoscale.as_ref()
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let StatefulSet {
            common: _,
            rolling: _,
            pod,
            serving,
            tag,
            replicas,
            rolling_update,
            service_name,
            volume_claim_templates,
            autoscale: _,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put(
            "replicas",
            at.scalar_field("replicas", replicas.as_ref(), Coerce::Int),
        );
        let service = match service_name {
            Some(name) => at.required("serviceName", name),
            None => Some(ObjectTree::Leaf(child.name.clone())),
        };
        spec.put("serviceName", service);
        if rolling_update
            .as_ref()
            .is_some_and(|update| update.max_surge.is_some())
        {
            at.field("rollingUpdate").field("maxSurge").warn(
                Code::NoEffect,
                "a StatefulSet creates no pods above the desired number: this has no effect",
            );
        }
        spec.put(
            "updateStrategy",
            workload::strategy(at, rolling_update.as_ref(), pace),
        );
        let mut mounts = Vec::new();
        let claims = at.field("volumeClaimTemplates");
        let claims = claims.whole(volume_claim_templates, Whole::List, |at, templates| {
            let mut claims = Vec::new();
            for (index, template) in templates.iter().enumerate() {
                let at = at.index(index);
                claims.push(claim(&at, template));
                mounts.extend(mount(&at, template));
            }
            (!claims.is_empty()).then(|| ObjectTree::list(claims))
        });
        spec.put("volumeClaimTemplates", claims);
        let mut parts = Parts::serving(pod, serving);
        (parts.tag, parts.mounts) = (tag.as_ref(), mounts);
        let pod = parts.spec(at, &child.name);
        workload::put_pods(&mut spec, child, metadata, pod);
        spec.into_root("spec")
    }
}

/// Returns the number of pods that may be unavailable. Zero in a profile for Deployments means one after the other, which
/// is the default of a `StatefulSet`.
fn pace(at: &At<'_>, update: &RollingUpdate) -> Fields {
    let mut rolling = Fields::default();
    let wanted = update
        .max_unavailable
        .as_ref()
        .filter(|number| !workload::is_zero(number));
    rolling.put(
        "maxUnavailable",
        at.scalar_field("maxUnavailable", wanted, Coerce::IntOrText),
    );
    rolling
}

fn name(at: &At<'_>, template: &VolumeClaimTemplate) -> Option<ObjectTree> {
    match &template.name {
        Some(name) => at.required("name", name),
        None => Some(ObjectTree::text(VOLUME)),
    }
}

fn claim(at: &At<'_>, template: &VolumeClaimTemplate) -> ObjectTree {
    let mut metadata = Fields::default();
    metadata.put("name", name(at, template));
    let mut spec = persistent_volume_claim::request(at, "storageSize", &template.storage_size);
    spec.put("accessModes", ObjectTree::texts(&[SINGLE_WRITER]));
    spec.put(
        "storageClassName",
        at.text_field("storageClass", template.storage_class.as_ref()),
    );
    let mut claim = Fields::default();
    claim.put("metadata", metadata.into_tree());
    claim.put("spec", spec.into_tree());
    claim.into_tree()
}

fn mount(at: &At<'_>, template: &VolumeClaimTemplate) -> Option<ObjectTree> {
    let mut mount = Fields::default();
    mount.put(
        "mountPath",
        at.text_field("mountPath", template.mount_path.as_ref())?,
    );
    mount.put("name", name(at, template));
    Some(mount.into_part())
}
