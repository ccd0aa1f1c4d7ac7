//! `daemonSets`.

use super::{
    Child, Metadata, Row, Shorthand,
    pod::Parts,
    workload::{self, pace},
};
use crate::{
    api::{
        children::{Common, DaemonSet},
        scalar::Scalar,
    },
    plan::Fields,
};

impl Shorthand for DaemonSet {
    fn row(&self) -> &'static Row {
        &Row {
            list: "daemonSets",
            group: "apps",
            version: "v1",
            kind: "DaemonSet",
            name: Some("{{ .metadata.name }}-daemonset"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn pods(&self) -> Option<Option<&Scalar>> {
        Some(self.serving.port.as_ref())
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let DaemonSet {
            common: _,
            pod,
            serving,
            rolling_update,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put(
            "updateStrategy",
            workload::strategy(at, rolling_update.as_ref(), pace),
        );
        let pod = Parts::serving(pod, serving).spec(at, &child.name);
        workload::put_pods(&mut spec, child, metadata, pod);
        spec.into_root("spec")
    }
}
