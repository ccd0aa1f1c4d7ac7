//! `hpa`.

use super::{Child, Metadata, Shorthand, workload::Search};
use crate::scope::{At, Fields, ResolvedBlock, resolve_profile};
use orkestra_language::{
    api::{
        children::{HorizontalPodAutoscaler, ScaleTarget, ScalingBehavior},
        or_template::OrTemplate,
        profiles::Scaling,
        scalar::Scalar,
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

const CPU: &str = "targetCPUUtilizationPercentage";

impl Shorthand for HorizontalPodAutoscaler {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let HorizontalPodAutoscaler {
            common: _,
            scale_target_ref,
            min_replicas,
            max_replicas,
            target_cpu_utilization_percentage,
            behavior,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put("scaleTargetRef", target(child, scale_target_ref.as_ref()));
        let none = Scaling::default();
        let written = behavior.as_ref().and_then(OrTemplate::written);
        let profile = profile(at, written, &none);
        // The entry's own value takes precedence.
        let number = |name: &str, own: &Option<Scalar>, of: fn(&Scaling) -> Option<&Scalar>| {
            let own = at.scalar_field(name, own.as_ref(), Coerce::Int);
            own.or_else(|| {
                let profile = profile.as_ref()?;
                profile.tree(|at, profile| at.scalar_field(name, of(profile), Coerce::Int))
            })
        };
        spec.put(
            "minReplicas",
            number("minReplicas", min_replicas, |p| p.min_replicas.as_ref()),
        );
        let most = number("maxReplicas", max_replicas, |p| p.max_replicas.as_ref());
        if most.is_none() && max_replicas.is_none() {
            at.error(Code::Missing, "`maxReplicas` is missing");
        }
        spec.put("maxReplicas", most);
        let cpu = number(CPU, target_cpu_utilization_percentage, |p| {
            p.target_cpu_utilization_percentage.as_ref()
        });
        spec.put(
            "metrics",
            cpu.map(|share| ObjectTree::list(vec![metric(share)])),
        );
        spec.put(
            "behavior",
            behavior.as_ref().and_then(|declared| {
                let place = at.field("behavior");
                place.whole(declared, Whole::Map, |at, own| {
                    self::behavior(at, own, profile.as_ref())
                })
            }),
        );
        spec.into_root("spec")
    }
}

/// Returns the only metric: CPU utilization relative to the requests of pods.
fn metric(share: ObjectTree) -> ObjectTree {
    let mut target = Fields::default();
    target.put("averageUtilization", share);
    target.put_text("type", "Utilization");
    let mut resource = Fields::default();
    resource.put("target", target.into_part());
    resource.put_text("name", "cpu");
    let mut metric = Fields::default();
    metric.put("resource", resource.into_part());
    metric.put_text("type", "Resource");
    metric.into_part()
}

#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
fn declared_target(at: &At<'_>, declared: &ScaleTarget) -> Option<ObjectTree> {
    let ScaleTarget {
        api_version,
        kind,
        name,
    } = declared;
    let text = |name, text, default: &str| {
        at.text_field(name, text)
            .unwrap_or_else(|| ObjectTree::text(default))
    };
    let mut fields = Fields::default();
    fields.put(
        "apiVersion",
        text("apiVersion", api_version.as_ref(), "apps/v1"),
    );
    fields.put("kind", text("kind", kind.as_ref(), "Deployment"));
    fields.put("name", at.required("name", name));
    Some(fields.into_tree())
}

fn target(child: &Child<'_>, declared: Option<&OrTemplate<ScaleTarget>>) -> Option<ObjectTree> {
    let at = &child.at;
    if let Some(declared) = declared {
        let at = at.field("scaleTargetRef");
        return at.whole(declared, Whole::Map, declared_target);
    }
    let mut fields = Fields::default();
    let search = Search {
        kind: "HorizontalPodAutoscaler",
        endings: &["", "-hpa"],
        instead: "declare `scaleTargetRef` with the name of a Deployment",
        wanted: |workload| workload.is_scalable(),
        child,
    };
    let workload = search.needed()?;
    fields.put_text("apiVersion", "apps/v1");
    fields.put_text("kind", &workload.kind.kind);
    fields.put("name", workload.leaf(at).map(ObjectTree::Leaf));
    Some(fields.into_tree())
}

/// Returns the profile that the behavior names.
fn profile<'a>(
    at: &At<'a>,
    behavior: Option<&'a ScalingBehavior>,
    none: &'a Scaling,
) -> Option<ResolvedBlock<'a, Scaling>> {
    let ScalingBehavior {
        profile,
        scale_up,
        scale_down,
    } = behavior?;
    let set = [
        ("scaleUp", scale_up.is_some()),
        ("scaleDown", scale_down.is_some()),
    ];
    let name = profile.as_deref()?;
    let at = at.field("behavior");
    resolve_profile(&at, Some(name), &set, none, |profiles| &profiles.hpa)
}

fn behavior(
    at: &At<'_>,
    own: &ScalingBehavior,
    profile: Option<&ResolvedBlock<'_, Scaling>>,
) -> Option<ObjectTree> {
    if let Some(profile) = profile {
        return profile
            .tree(|at, profile| at.field("behavior").manifest(profile.behavior.as_ref()?));
    }
    let mut fields = Fields::default();
    for (name, node) in [("scaleUp", &own.scale_up), ("scaleDown", &own.scale_down)] {
        fields.put(
            name,
            node.as_ref().and_then(|node| at.field(name).manifest(node)),
        );
    }
    fields.into_optional()
}

/// Returns all fields of a profile, to check them.
pub(crate) fn scaling(at: &At<'_>, scaling: &Scaling) -> Fields {
    let Scaling {
        min_replicas,
        max_replicas,
        target_cpu_utilization_percentage,
        behavior,
    } = scaling;
    let mut fields = Fields::default();
    for (name, number) in [
        ("minReplicas", min_replicas),
        ("maxReplicas", max_replicas),
        (CPU, target_cpu_utilization_percentage),
    ] {
        fields.put(name, at.scalar_field(name, number.as_ref(), Coerce::Int));
    }
    fields.put(
        "behavior",
        behavior
            .as_ref()
            .and_then(|node| at.field("behavior").manifest(node)),
    );
    fields
}
