//! `replicaSets`.

use super::{Child, Metadata, Pods, Shorthand, pod::Parts, workload};
use crate::scope::Fields;
use orkestra_language::api::{autoscale::WorkloadAutoscale, children::ReplicaSet};
use orkestra_plan::Coerce;

impl Shorthand for ReplicaSet {
    fn pods(&self) -> Option<Pods<'_>> {
        let port = self.serving.port.as_ref();
        Some(Pods { port })
    }

    fn autoscale(&self) -> Option<&WorkloadAutoscale> {
        self.autoscale.as_ref()
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let ReplicaSet {
            common: _,
            pod,
            serving,
            replicas,
            autoscale: _,
            later: _,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put(
            "replicas",
            at.scalar_field("replicas", replicas.as_ref(), Coerce::Int),
        );
        let pod = Parts::serving(pod, serving).spec(at, &child.name);
        workload::put_pods(&mut spec, child, metadata, pod);
        spec.into_root("spec")
    }
}
