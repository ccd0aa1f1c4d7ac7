//! The parts of a child other than its body, such as generated values and the source of a copy.

use super::{leaf, list, map};
use crate::{
    Allowed, CertificatePlan, ChildPlan, CopyPlan, GeneratedSecretPlan, Leaf, ScalePlan, ScaleStep,
};
use orkestra_language::api::duration;
use orkestra_object::value::Node;

/// Returns the entries of a child, in order; most children have none.
pub(crate) fn of(plan: &ChildPlan) -> impl Iterator<Item = (&'static str, Node)> {
    let ChildPlan {
        recreates,
        generated,
        copy,
        scale,
        rolls,
        spread,
        // `child` describes these, or they follow from others.
        shows_secrets: _,
        path: _,
        import: _,
        block: _,
        kind: _,
        mode: _,
        for_each: _,
        gate: _,
        on_false: _,
        name: _,
        name_rule: _,
        namespace: _,
        body: _,
        whole_lists: _,
        list_keys: _,
        force_conflict: _,
        adopt: _,
        bound_roles: _,
        reach: _,
    } = plan;
    let entries = [
        recreates.then(|| ("recreates", Node::from(true))),
        generated
            .as_ref()
            .map(|plan| ("generated", self::generated_secret(plan))),
        copy.as_ref().map(|plan| ("copy", self::copy(plan))),
        scale.as_ref().map(|plan| ("scale", self::scale(plan))),
        rolls.then(|| ("rolls", Node::from(true))),
        spread.then(|| ("spread", Node::from(true))),
    ];
    entries.into_iter().flatten()
}

fn scale(plan: &ScalePlan) -> Node {
    let ScalePlan {
        min,
        max,
        cooldown,
        up,
        down,
    } = plan;
    let number = |leaf: &Option<Leaf>| leaf.as_ref().map(self::leaf).unwrap_or_default();
    let step = |step: &Option<ScaleStep>| {
        let Some(ScaleStep { gate, by }) = step else {
            return Node::Null;
        };
        map([("gate", super::gate(gate)), ("by", number(by))])
    };
    map([
        ("min", number(min)),
        ("max", number(max)),
        ("cooldown", Node::from(duration::format(*cooldown))),
        ("up", step(up)),
        ("down", step(down)),
    ])
}

fn generated_secret(plan: &GeneratedSecretPlan) -> Node {
    let GeneratedSecretPlan {
        once,
        renew_after,
        certificate,
    } = plan;
    let certificate = certificate.as_ref().map(|plan| {
        let CertificatePlan {
            common_name,
            hosts,
            valid_for,
        } = plan;
        let certificate = map([
            (
                "commonName",
                common_name.as_ref().map(leaf).unwrap_or_default(),
            ),
            ("hosts", list(hosts.iter().map(leaf))),
            ("validFor", Node::from(duration::format(*valid_for))),
        ]);
        ("certificate", certificate)
    });
    let renewed = renew_after.map(|after| ("renewAfter", Node::from(duration::format(after))));
    map([("once", Node::from(*once))]
        .into_iter()
        .chain(renewed)
        .chain(certificate))
}

fn copy(plan: &CopyPlan) -> Node {
    let CopyPlan {
        kind,
        name,
        namespace,
        allowed,
        parts,
    } = plan;
    let pattern = |allowed: &Allowed| Node::from(format!("{}/{}", allowed.namespace, allowed.name));
    let allowed = allowed
        .as_ref()
        .map(|allowed| ("allowed", list(allowed.iter().map(pattern))));
    map([
        ("kind", Node::from(kind.to_string())),
        ("name", leaf(name)),
        (
            "namespace",
            namespace.as_ref().map(leaf).unwrap_or_default(),
        ),
        ("parts", list(parts.iter().map(|part| Node::from(&**part)))),
    ]
    .into_iter()
    .chain(allowed))
}
