//! `deployments`.

use super::{
    Child, Metadata, Pods, Shorthand,
    pod::Parts,
    workload::{self, pace},
};
use crate::scope::Fields;
use orkestra_language::api::{autoscale::WorkloadAutoscale, children::Deployment};
use orkestra_plan::Coerce;

impl Shorthand for Deployment {
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
