//! Admission of Katalogs, Komposers and Motifs: what `ork validate` would say, and the permissions of the author.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::api::DynamicObject;
use orkestra_engine::admission::{Permission, denial, derived_permissions, warnings};
use orkestra_language::{
    api::{Operation, names},
    diagnostics::Severity,
};
use orkestra_object::value::Projection;
use orkestra_plan::{GroupKind, KatalogRef, Plan};
use serde_json::Value;

use super::{
    Gateway,
    author::{self, AuthorCheck},
    definitions::Kept,
    queues::Seat,
    review::{Admission, Answer},
};
use orkestra_controller::{Declares, Examined, examine_katalog, examine_motif, kinds_declared};

/// The verb of the permission to let operators of sources have whatever permissions they need.
const APPROVE: &str = "approve";
/// The message for an error of the compiler itself.
const PANICKED: &str = "internal error: the compiler failed; please report it";

/// The message for a document of which nothing is derived, although it is accepted.
const UNDERIVED: &str = "internal error: the permissions that the document needs are not derived from it; please report it";

/// Judges an object of our own kinds that is being written. `seat` is held until everything that it starts has ended.
pub(crate) async fn review(gateway: &Gateway, request: &Admission, seat: Arc<Seat>) -> Answer {
    let is_write = matches!(
        request.operation(),
        Some(Operation::Create | Operation::Update)
    );
    if !is_write || !request.sub_resource.is_empty() {
        return Answer::default();
    }
    let decoded = request.object(Projection::whole);
    if let Some(fault) = decoded.fault {
        return Answer::denied(format!("the object cannot be read: {fault}"));
    }
    let submitted = decoded.node.to_json();
    let Ok(object) = serde_json::from_value::<DynamicObject>(submitted.clone()) else {
        return Answer::denied("the object has no valid metadata");
    };
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let context = &gateway.context;
    let held = Arc::clone(&seat);
    let examined = match request.kind.name.as_str() {
        "Katalog" | "Komposer" => examine_katalog(context, object, held).await,
        "Motif" => examine_motif(context, &object, held).await,
        // Other kinds of the group are judged by their own controllers.
        _ => return Answer::default(),
    };
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => {
            return Answer::denied(format!("cannot read what the document refers to: {error}"));
        }
    };
    let old = request.old_object(Projection::whole).node.to_json();
    if let Ok(old) = serde_json::from_value::<DynamicObject>(old) {
        let before = kinds_declared(old, seat).await;
        if let Some(why) = changed_identity(&before, &examined.kinds) {
            return Answer::denied(why);
        }
    }
    let mut answer = verdict(gateway, (request, &submitted), &examined).await;
    if request.kind.name == "Katalog" && answer.denial.is_none() {
        let reference = KatalogRef::new(namespace, request.name.clone());
        let plans = match &examined.declares {
            Declares::Plans(plans) => &**plans,
            Declares::Sources | Declares::Nothing => &[],
        };
        answer
            .warnings
            .extend(leaving(gateway, &reference, plans).await);
    }
    answer
}

/// Returns warnings about conversions that an update no longer declares, although stored objects need them.
async fn leaving(gateway: &Gateway, katalog: &KatalogRef, plans: &[Arc<Plan>]) -> Vec<String> {
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
    (request, submitted): (&Admission, &Value),
    examined: &Examined,
) -> Answer {
    if examined.panicked {
        return Answer::denied(PANICKED);
    }
    if let Some(message) = denial(&examined.problems, submitted) {
        return Answer::denied(message);
    }
    let Some(needed) = needed(request, &examined.declares) else {
        return Answer::denied(UNDERIVED);
    };
    let is_warning = |problem: &&_| {
        let problem: &orkestra_language::diagnostics::Diagnostic = problem;
        problem.severity == Severity::Warning
    };
    let mut answer = Answer {
        warnings: warnings(examined.problems.iter().filter(is_warning)),
        ..Answer::default()
    };
    if gateway.options.author_check == AuthorCheck::Off {
        return answer;
    }
    let user = &request.user_info;
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

/// Returns the permissions that the author must have; `None` if they are not derived. What the operators of sources need is not
/// known when a document is written, and may grow later: their author must be permitted to approve it.
fn needed(request: &Admission, declares: &Declares) -> Option<BTreeSet<Permission>> {
    match declares {
        Declares::Nothing => None,
        Declares::Plans(plans) => {
            let needed: BTreeSet<_> = plans
                .iter()
                .flat_map(|plan| derived_permissions(plan))
                .collect();
            let is_derived =
                !needed.is_empty() || plans.iter().all(|plan| plan.operators.is_empty());
            is_derived.then_some(needed)
        }
        Declares::Sources => Some(BTreeSet::from([Permission {
            namespace: request.namespace.clone(),
            group: names::GROUP.to_owned(),
            resource: request.resource.plural.clone(),
            subresource: String::new(),
            name: Some(request.name.clone()).filter(|name| !name.is_empty()),
            verb: APPROVE.to_owned(),
        }])),
    }
}

/// Returns why an update changes what an object is: an entry keeps its kind, or its custom resources would be abandoned.
fn changed_identity(
    old: &BTreeMap<String, GroupKind>,
    new: &BTreeMap<String, GroupKind>,
) -> Option<String> {
    old.iter().find_map(|(name, before)| {
        let after = new.get(name)?;
        (before != after).then(|| {
            format!(
                "spec.crds.{name}.apiTypes: the entry operates {before}, and its kind cannot change to {after}: add an entry of another name"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds(entries: &[(&str, &str)]) -> BTreeMap<String, GroupKind> {
        let kind = |kind: &&str| GroupKind {
            group: "water.example".into(),
            kind: (**kind).into(),
        };
        let entries = entries.iter();
        entries
            .map(|(name, of)| ((*name).to_owned(), kind(of)))
            .collect()
    }

    #[test]
    fn an_entry_keeps_its_kind() {
        let pond = kinds(&[("pond", "Pond")]);
        let lake = kinds(&[("pond", "Lake")]);
        assert_eq!(changed_identity(&pond, &pond), None);
        assert_eq!(changed_identity(&kinds(&[]), &pond), None);
        assert_eq!(changed_identity(&pond, &kinds(&[])), None);
        let why = changed_identity(&pond, &lake).unwrap();
        assert!(why.contains("Lake.water.example"), "{why}");
        let other = kinds(&[("lake", "Lake")]);
        assert_eq!(changed_identity(&pond, &other), None);
    }

    #[test]
    fn what_is_not_derived_is_never_no_permission() {
        let review = json!({ "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "CREATE", "name": "all", "namespace": "team",
            "kind": { "group": "orkestra.orkspace.io", "version": "v1", "kind": "Komposer" },
            "resource": { "group": "orkestra.orkspace.io", "version": "v1", "resource": "komposers" },
        } });
        let request = Admission::parse(review.to_string().as_bytes()).unwrap();
        assert_eq!(needed(&request, &Declares::Nothing), None);
        let approve = needed(&request, &Declares::Sources).unwrap();
        let named: Vec<String> = approve.iter().map(ToString::to_string).collect();
        assert_eq!(
            named,
            ["approve komposers.orkestra.orkspace.io `all` in namespace team"]
        );
        // A Motif that no Katalog uses grants nothing.
        assert_eq!(
            needed(&request, &Declares::Plans(Vec::new())),
            Some(BTreeSet::new())
        );
    }
}
