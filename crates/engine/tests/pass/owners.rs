//! Ownership without owner references: the owner of a child in another namespace, and the children of a custom resource that no
//! longer exists.

use orkestra_engine::reconcile::{
    reason::Reason, record::Uid, step::Failure, verdict::Executed, verdict::verdict,
};
use orkestra_plan::ChildKey;
use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};

use super::{
    operator::{MANAGER, UID, cluster_operator, operator, operator_with, pond},
    server::{Operation, Stored},
    world::{World, key, key_in, words},
};

const MANAGED: &str = "orkestra.orkspace.io/managed";
const OWNER_UID: &str = "orkestra.orkspace.io/owner-uid";
const CHILD: &str = "orkestra.orkspace.io/child";
const OWNER: &str = "orkestra.orkspace.io/owner";
/// Declares only `far/sign`.
const SIGN: &str = "onReconcile: { configMaps: [{ name: sign, namespace: far }] }";
const NOTHING: &str = "onReconcile: { configMaps: [{ name: other }] }";

/// Returns a settled world in which the pond has a child in another namespace.
fn far() -> World {
    let mut world = World::new(
        &operator(SIGN),
        pond(&json!({ "name": "fine" }), &json!({})),
    );
    world.settle();
    world
}

fn sign() -> ChildKey {
    key_in(Some("far"), "ConfigMap", "sign")
}

/// Stores the child with a change, as written by `manager`.
fn put(world: &mut World, manager: &str, change: impl FnOnce(&mut Value)) {
    let mut object = world.objects[&sign()].object();
    change(&mut object["metadata"]);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let stored = Stored::made(&object, "sign-1", manager, Operation::Apply);
    world.objects.insert(sign(), stored);
}

/// Returns true if the child counts as a child of the pond.
fn is_ours(world: &World) -> bool {
    let record = world.record_of(&sign());
    record.is_uncollected(&Uid::from(UID), MANAGER)
}

#[test]
fn a_child_elsewhere_names_its_owner() {
    let world = far();
    let object = world.objects[&sign()].object();
    let owner = object["metadata"]["annotations"][OWNER].as_str().unwrap();
    assert!(owner.ends_with(&format!("/{UID}")), "{owner}");
    assert!(object["metadata"].get("ownerReferences").is_none());
    assert!(is_ours(&world));
}

proptest! {
    #[test]
    fn one_mark_less_loses_no_child_and_copied_marks_gain_none(kept in subsequence(vec![MANAGED, OWNER_UID, CHILD, OWNER], 0..=4)) {
        let without = |metadata: &mut Value| {
            for map in ["labels", "annotations"] {
                let marks = metadata[map].as_object_mut().unwrap();
                marks.retain(|mark, _| kept.contains(&mark.as_str()));
            }
        };
        let mut world = far();
        put(&mut world, MANAGER, without);
        let has = |mark: &str| kept.contains(&mark);
        let proofs = [OWNER_UID, CHILD, OWNER].into_iter().filter(|mark| has(mark)).count();
        prop_assert_eq!(is_ours(&world), proofs >= 2, "{:?}", kept);
        // A copy has the labels and annotations, but another field manager.
        let mut world = far();
        put(&mut world, "kubectl", without);
        prop_assert!(!is_ours(&world));
    }
}

#[test]
fn a_plan_says_in_which_namespaces_beyond_the_own_one_children_may_be() {
    let of = |line: &str, declared: &str| {
        let plan = operator_with(line, declared);
        plan.child_targets(&sign().kind).texts()
    };
    let plain = "workers: 2";
    let sign_in = |namespace: &str| {
        format!("onReconcile: {{ configMaps: [{{ name: sign, namespace: \"{namespace}\" }}] }}")
    };
    let chosen = sign_in("{{ .spec.into }}");
    assert_eq!(of(plain, NOTHING), [""; 0]);
    assert_eq!(of(plain, SIGN), ["far"]);
    assert_eq!(of(plain, &sign_in("{{ .metadata.namespace }}")), [""; 0]);
    let names = "allowedTargets: [team-*, shared]";
    assert_eq!(of(names, &chosen), ["shared", "team-*"]);
    let labels = "allowedTargets: [{ matchLabels: { a: b } }, shared]";
    assert_eq!(of(labels, &chosen), ["*", "shared"]);
    let created = "onReconcile: { namespaces: [{ name: \"{{ .spec.into }}\" }], \
                   configMaps: [{ name: sign, namespace: \"{{ .spec.into }}\" }] }";
    assert_eq!(of(plain, created), ["(created)"]);
    let of_cluster = cluster_operator(&chosen);
    assert_eq!(of_cluster.child_targets(&sign().kind).texts(), ["*"]);
}

/// Simulates that the pond was deleted and created again: its child still has the old uid.
fn again(world: &mut World, change: impl FnOnce(&mut Value)) {
    put(world, MANAGER, |metadata| {
        metadata["labels"][OWNER_UID] = json!("dead");
        let owner = metadata["annotations"][OWNER].as_str().unwrap();
        metadata["annotations"][OWNER] = json!(owner.replace(UID, "dead"));
        change(metadata);
    });
}

fn decided(world: &World) -> Vec<String> {
    words(&world.decide())
}

#[test]
fn what_a_predecessor_left_and_nobody_declares_is_deleted() {
    let mut world = far();
    again(&mut world, |_| {});
    assert!(!is_ours(&world));
    world.plan = operator(NOTHING);
    assert!(decided(&world).contains(&"delete ConfigMap far/sign".to_owned()));
}

#[test]
fn what_a_predecessor_left_and_is_declared_is_applied() {
    let mut world = far();
    again(&mut world, |_| {});
    assert_eq!(decided(&world), ["apply ConfigMap far/sign"]);
}

#[test]
fn only_what_bears_every_mark_of_a_predecessor_goes() {
    let other = |name: &'static str| {
        move |metadata: &mut Value| {
            let owner = metadata["annotations"][OWNER].as_str().unwrap();
            let mut parts: Vec<&str> = owner.split('/').collect();
            parts[2] = name;
            metadata["annotations"][OWNER] = json!(parts.join("/"));
        }
    };
    let mut spared: Vec<(&str, World)> = Vec::new();
    let mut of_another = far();
    again(&mut of_another, other("another"));
    spared.push(("it is another pond's", of_another));
    let mut copied = far();
    again(&mut copied, |metadata| {
        metadata["annotations"][CHILD] = json!("ConfigMap/other");
        metadata["labels"] = json!({ MANAGED: "true" });
    });
    spared.push(("it names another object", copied));
    let mut unmarked = far();
    again(&mut unmarked, |metadata| {
        metadata["annotations"] = json!({ CHILD: "ConfigMap/sign" });
    });
    spared.push(("a label alone names its owner", unmarked));
    let mut foreign = far();
    again(&mut foreign, |_| {});
    put(&mut foreign, "kubectl", |_| {});
    spared.push(("somebody else wrote it", foreign));
    let mut unsure = far();
    again(&mut unsure, |_| {});
    unsure.unseen.insert(sign().kind);
    unsure.plan = operator("onReconcile: { configMaps: [{ name: \"{{ .spec.missing }}\" }] }");
    assert!(
        decided(&unsure)
            .iter()
            .all(|word| !word.starts_with("delete"))
    );
    for (why, mut world) in spared {
        world.plan = operator(NOTHING);
        let decided = decided(&world);
        assert!(
            decided.iter().all(|word| !word.starts_with("delete")),
            "{why}: {decided:?}"
        );
    }
}

#[test]
fn an_adopted_object_stays_without_an_owner_reference() {
    let adopting = "onReconcile: { configMaps: [{ name: theirs, adopt: true }] }";
    let mut world = World::new(
        &operator(adopting),
        pond(&json!({ "name": "fine" }), &json!({})),
    );
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "theirs", "namespace": "east",
            "labels": { MANAGED: "true", OWNER_UID: UID },
            "annotations": { CHILD: "ConfigMap/theirs", "orkestra.orkspace.io/adopted": "true" },
        },
    });
    let theirs = key("ConfigMap", "theirs");
    let rendered = |world: &World| {
        let cycle = world.decide();
        let rendered = cycle.intents.iter().find_map(|intent| match intent {
            orkestra_engine::reconcile::step::Intent::Apply(rendered) => Some(rendered.clone()),
            _ => None,
        });
        rendered.unwrap().object
    };
    let has = |object: &orkestra_object::value::Node, fields: &[&str]| {
        let path = orkestra_object::value::Path::of_fields(fields.iter().copied());
        object.at(&path).is_some()
    };
    let references = ["metadata", "ownerReferences"];
    assert!(
        has(&rendered(&world), &references),
        "a new child must have an owner"
    );
    for tracked in [false, true] {
        if tracked {
            object["metadata"]["annotations"] = json!({
                CHILD: "ConfigMap/theirs", "argocd.argoproj.io/tracking-id": "shop",
            });
        }
        let stored = Stored::made(&object, "theirs-1", MANAGER, Operation::Apply);
        world.objects.insert(theirs.clone(), stored);
        let object = rendered(&world);
        assert!(!has(&object, &references), "tracked: {tracked}");
        assert!(has(&object, &["metadata", "annotations", OWNER]));
        assert_eq!(
            has(
                &object,
                &["metadata", "annotations", "orkestra.orkspace.io/adopted"]
            ),
            !tracked
        );
    }
}

#[test]
fn a_write_that_is_tried_again_hides_no_other_failure() {
    let failure = |reason| Failure {
        reason,
        at: "ConfigMap east/a".to_owned(),
        message: "no".to_owned(),
    };
    let reported = |reasons: &[Reason]| {
        let executed = Executed {
            failures: reasons.iter().copied().map(failure).collect(),
            ..Executed::default()
        };
        let verdict = verdict(&far().observe(), &executed);
        (verdict.reason, verdict.stalled)
    };
    let taken = Reason::NameTaken;
    assert_eq!(reported(&[Reason::WriteConflict, taken]), (taken, false));
    assert_eq!(
        reported(&[taken, Reason::Unavailable]).0,
        Reason::Unavailable
    );
    assert_eq!(reported(&[Reason::WriteConflict]).0, Reason::WriteConflict);
}
