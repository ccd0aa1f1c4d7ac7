//! `pods`.

use super::{Child, Metadata, Pods, Shorthand, pod::Parts, workload::workload_label};
use crate::scope::Fields;
use orkestra_language::api::children::Pod;

impl Shorthand for Pod {
    fn pods(&self) -> Option<Pods<'_>> {
        let port = self.serving.port.as_ref();
        Some(Pods { port })
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let Pod {
            common: _,
            pod,
            serving,
        } = self;
        // Services select pods by this label, as with those of other workloads.
        metadata
            .labels
            .extend(workload_label(&child.kind, &child.name));
        let spec = Parts::serving(pod, serving).spec(&child.at, &child.name);
        spec.into_root("spec")
    }
}
