//! `deployments`.

use super::{
    Child, ChildList, Metadata, Pods, Shorthand,
    pod::Parts,
    workload::{self, pace},
};
use crate::{
    api::{
        autoscale::WorkloadAutoscale,
        children::{Common, Deployment},
    },
    plan::Coerce,
    scope::Fields,
};

impl Shorthand for Deployment {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "deployments",
            group: "apps",
            version: "v1",
            kind: "Deployment",
            name: Some("{{ .metadata.name }}-deployment"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

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
        let Deployment {
            common: _,
            pod,
            serving,
            replicas,
            rolling_update,
            rolling: _,
            autoscale: _,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put(
            "replicas",
            at.scalar_field("replicas", replicas.as_ref(), Coerce::Int),
        );
        spec.put(
            "strategy",
            workload::strategy(at, rolling_update.as_ref(), pace),
        );
        let pod = Parts::serving(pod, serving).spec(at, &child.name);
        workload::put_pods(&mut spec, child, metadata, pod);
        spec.into_root("spec")
    }
}
