//! Admission of Katalogs, Komposers and Motifs: what `ork validate` would say, and the permissions of the author.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use orkestra_core::{
    admission::{Permission, denial, derived_permissions, warnings},
    api::{Operation, names},
    diagnostics::Severity,
    plan::{GroupKind, KatalogRef, Plan},
    value::{Node, Projection},
};
use serde_json::Value;

use super::{
    Gateway,
    author::{self, AuthorCheck},
    definitions::Kept,
    review::{Admission, Answer, RequestUser},
};
use crate::meta::{Examined, examine_katalog, examine_komposer, examine_motif};

/// The verb of the permission to let operators of sources have whatever permissions they need.
const APPROVE: &str = "approve";
/// The message for an error of the compiler itself.
const PANICKED: &str = "internal error: the compiler failed; please report it";

/// Judges an object of our own kinds that is being written.
pub(super) async fn review(gateway: &Gateway, request: &Admission) -> Answer {
    let is_write = matches!(
        request.operation(),
        Some(Operation::Create | Operation::Update)
    );
    if !is_write || !request.sub_resource.is_empty() {
        return Answer::default();
    }
    let (decoded, old) = (
        request.object(Projection::whole),
        request.old_object(Projection::whole).node,
    );
    if let Some(fault) = decoded.fault {
        return Answer::denied(format!("the object cannot be read: {fault}"));
    }
    let object = decoded.node;
    if let Some(why) = changed_identity(&old, &object) {
        return Answer::denied(why);
    }
    let submitted = object.to_json();
    let Ok(object) = serde_json::from_value::<DynamicObject>(submitted.clone()) else {
        return Answer::denied("the object has no valid metadata");
    };
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let context = &gateway.context;
    let examined = match request.kind.name.as_str() {
        "Katalog" => examine_katalog(context, object).await,
        "Komposer" => Ok(examine_komposer(&object)),
        "Motif" => examine_motif(context, &object).await,
        // Other kinds of the group are judged by their own controllers.
        _ => return Answer::default(),
    };
    match examined {
        Ok(examined) => {
            let approval = approval(request, &submitted);
            let about = (&request.user_info, &submitted, approval);
            let mut answer = verdict(gateway, about, &examined).await;
            if request.kind.name == "Katalog" && answer.denial.is_none() {
                let reference = KatalogRef::new(namespace, request.name.clone());
                let leaving = leaving(gateway, &reference, &examined.plans).await;
                answer.warnings.extend(leaving);
            }
            answer
        }
        Err(error) => Answer::denied(format!("cannot read what the document refers to: {error}")),
    }
}

/// Returns warnings about conversions that an update no longer declares, although stored objects need them.
async fn leaving(gateway: &Gateway, katalog: &KatalogRef, plans: &[Plan]) -> Vec<String> {
    let catalogue = gateway.catalogue.load_full();
    let is_declared = |kind: &GroupKind| {
        let mut converting = plans.iter().filter(|plan| {
            let declared = plan.security.conversion;
            declared.unwrap_or(gateway.options.conversion)
        });
        converting.any(|plan| plan.conversions.iter().any(|one| one.kind == *kind))
    };
    let gone = catalogue.conversions().filter(|one| {
        one.katalog == *katalog && one.plan.update_crd && !is_declared(&one.plan.kind)
    });
    let mut warnings = Vec::new();
    for conversion in gone {
        let name = conversion.plan.definition();
        // A definition that cannot be read now is looked at again before its conversion is removed.
        if let Ok(Some(kept)) = Kept::look_up(&gateway.cluster, &name).await {
            warnings.push(format!("the conversion of {name} is kept: {}", kept.why));
        }
    }
    warnings
}

async fn verdict(
    gateway: &Gateway,
    (user, submitted, approval): (&RequestUser, &Value, Option<Permission>),
    examined: &Examined,
) -> Answer {
    if examined.panicked {
        return Answer::denied(PANICKED);
    }
    if let Some(message) = denial(&examined.problems, submitted) {
        return Answer::denied(message);
    }
    let is_warning = |problem: &&_| {
        let problem: &orkestra_core::diagnostics::Diagnostic = problem;
        problem.severity == Severity::Warning
    };
    let mut answer = Answer {
        warnings: warnings(examined.problems.iter().filter(is_warning)),
        ..Answer::default()
    };
    if gateway.options.author_check == AuthorCheck::Off || user.username == gateway.options.user {
        return answer;
    }
    let mut needed: BTreeSet<_> = examined
        .plans
        .iter()
        .flat_map(derived_permissions)
        .collect();
    needed.extend(approval);
    let message = match gateway.authors.missing(user, needed).await {
        Ok(missing) if missing.is_empty() => return answer,
        Ok(missing) => author::message(user, &missing),
        Err(why) => format!(
            "cannot check the permissions of user `{}`: {why}",
            user.username
        ),
    };
    if gateway.options.author_check == AuthorCheck::Enforce {
        return Answer::denied(message);
    }
    answer.warnings.push(message);
    answer
}

/// Returns the permission to approve sources, if the document has any: what their operators need is not known when it is written,
/// and may grow later.
fn approval(request: &Admission, submitted: &Value) -> Option<Permission> {
    let sources = submitted.pointer("/spec/sources")?;
    let has_any = match sources {
        Value::Object(kinds) => !kinds.is_empty(),
        Value::Array(all) => !all.is_empty(),
        _ => false,
    };
    has_any.then(|| Permission {
        namespace: request.namespace.clone(),
        group: names::GROUP.to_owned(),
        resource: request.resource.plural.clone(),
        subresource: String::new(),
        name: Some(request.name.clone()).filter(|name| !name.is_empty()),
        verb: APPROVE.to_owned(),
    })
}

/// Returns why an update changes what an object is: an entry keeps its kind, or its custom resources would be abandoned.
fn changed_identity(old: &Node, new: &Node) -> Option<String> {
    let crds = |node: &Node| node.get("spec").and_then(|spec| spec.get("crds")).cloned();
    let (old, new) = (crds(old)?, crds(new)?);
    let (old, new) = (old.as_map()?.clone(), new.as_map()?.clone());
    old.iter().find_map(|(name, before)| {
        let (before, after) = (kind(before)?, kind(new.get(name)?)?);
        (before != after).then(|| {
            format!(
                "spec.crds.{name}.apiTypes: the entry operates {before}, and its kind cannot change to {after}: add an entry of another name"
            )
        })
    })
}

/// Returns the kind that an entry declares, as `Kind.group`.
fn kind(entry: &Node) -> Option<String> {
    let types = entry.get("apiTypes")?;
    let text = |field: &str| types.get(field).and_then(Node::as_str);
    Some(format!("{}.{}", text("kind")?, text("group")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn katalog(types: &Value) -> Node {
        Node::from(&json!({ "spec": { "crds": { "pond": { "apiTypes": types } } } }))
    }

    #[test]
    fn an_entry_keeps_its_kind_and_may_change_its_version() {
        let pond = json!({ "group": "water.example", "version": "v1", "kind": "Pond" });
        let newer = json!({ "group": "water.example", "version": "v2", "kind": "Pond" });
        let lake = json!({ "group": "water.example", "version": "v1", "kind": "Lake" });
        assert_eq!(changed_identity(&katalog(&pond), &katalog(&newer)), None);
        assert_eq!(changed_identity(&Node::Null, &katalog(&pond)), None);
        let why = changed_identity(&katalog(&pond), &katalog(&lake)).unwrap();
        assert!(why.contains("Lake.water.example"), "{why}");
        let other = Node::from(&json!({ "spec": { "crds": { "lake": { "apiTypes": lake } } } }));
        assert_eq!(changed_identity(&katalog(&pond), &other), None);
        for odd in [json!(null), json!({ "spec": { "crds": [] } }), json!(7)] {
            assert_eq!(changed_identity(&Node::from(&odd), &katalog(&pond)), None);
        }
    }
}
