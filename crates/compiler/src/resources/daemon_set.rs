//! `daemonSets`.

use super::{
    Child, Metadata, Pods, Shorthand,
    pod::Parts,
    workload::{self, is_zero},
};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        children::{DaemonSet, RollingUpdate},
        scalar::Scalar,
    },
    diagnostics::Code,
};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, ObjectTree};

impl Shorthand for DaemonSet {
    fn pods(&self) -> Option<Pods<'_>> {
        let port = self.serving.port.as_ref();
        Some(Pods { port })
    }

    fn roll_on_change(&self) -> Option<bool> {
        self.rolling.roll_on_change
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let DaemonSet {
            common: _,
            rolling: _,
            pod,
            serving,
            rolling_update,
        } = self;
        let at = &child.at;
        if let Some(update) = rolling_update
            && let RollingUpdate {
                max_surge: Some(surge),
                max_unavailable: Some(unavailable),
                ..
            } = &**update
            && !is_zero(surge)
            && !is_zero(unavailable)
        {
            let message =
                "`maxSurge` and `maxUnavailable` of a DaemonSet cannot both be greater than 0";
            at.field("rollingUpdate").field("maxSurge").error_hint(
                Code::Exclusive,
                message,
                "make one of the two `0`",
            );
        }
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

/// Returns the number of pods replaced at a time. Kubernetes accepts only one of the two numbers: of a profile with both it
/// is `maxUnavailable`, as in the Kubernetes default.
fn pace(at: &At<'_>, update: &RollingUpdate) -> Fields {
    let is_given = |number: &Option<Scalar>| number.as_ref().is_some_and(|n| !is_zero(n));
    let number =
        |name, number: &Option<Scalar>| at.scalar_field(name, number.as_ref(), Coerce::IntOrText);
    let mut rolling = Fields::default();
    let mut unavailable = number("maxUnavailable", &update.max_unavailable);
    if !is_given(&update.max_unavailable) {
        rolling.put("maxSurge", number("maxSurge", &update.max_surge));
        if is_given(&update.max_surge) {
            unavailable = unavailable.or(Some(ObjectTree::Fixed(Node::Int(0))));
        }
    }
    rolling.put("maxUnavailable", unavailable);
    rolling
}
