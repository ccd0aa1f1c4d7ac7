//! `replicaSets`.

use super::{Child, ChildList, Metadata, Pods, Shorthand, pod::Parts, workload};
use crate::{
    api::{
        autoscale::WorkloadAutoscale,
        children::{Common, ReplicaSet},
    },
    plan::Coerce,
    scope::Fields,
};

impl Shorthand for ReplicaSet {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "replicaSets",
            group: "apps",
            version: "v1",
            kind: "ReplicaSet",
            name: Some("{{ .metadata.name }}-replicaset"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

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
