//! `pods`.

use super::{Child, ChildList, Metadata, Pods, Shorthand, pod::Parts, workload::workload_label};
use crate::{
    api::children::{Common, Pod},
    scope::Fields,
};

impl Shorthand for Pod {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "pods",
            group: "",
            version: "v1",
            kind: "Pod",
            name: Some("{{ .metadata.name }}-pod"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

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
