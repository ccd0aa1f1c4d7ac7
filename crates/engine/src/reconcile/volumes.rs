//! The volumes of a `StatefulSet`: `volumeClaimTemplates` cannot change, but the claims made from them can grow.

use orkestra_object::value::{Node, Quantity};

/// A claim whose request is smaller than its template declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeGrowth {
    /// The name of the claim.
    pub claim: String,
    /// The declared request.
    pub storage: String,
}

/// True if a field is the size of a volume in `volumeClaimTemplates`.
pub fn is_size(field: &str) -> bool {
    field.starts_with("spec.volumeClaimTemplates[")
        && field.ends_with("].spec.resources.requests.storage")
}

/// Returns the claims of a `StatefulSet` that have to grow, and the number of its claims. `claims` are those that its selector matches.
///
/// Source: Kubernetes, `getPersistentVolumeClaimName`: `<template>-<set>-<ordinal>`.
pub fn growths(set: &Node, claims: &[Node]) -> (Vec<VolumeGrowth>, usize) {
    let templates = set
        .get("spec")
        .and_then(|spec| spec.get("volumeClaimTemplates"));
    let templates = templates.and_then(Node::as_list).unwrap_or_default();
    let name = set.meta_text("name").unwrap_or_default();
    let (mut growths, mut count) = (Vec::new(), 0);
    for template in templates {
        let prefix = format!("{}-{name}-", template.meta_text("name").unwrap_or_default());
        let Some(declared) = request(template) else {
            continue;
        };
        for claim in claims {
            let Some(text) = claim.meta_text("name") else {
                continue;
            };
            let ordinal = text.strip_prefix(&*prefix);
            if ordinal.is_none_or(|one| one.parse::<u32>().is_err()) {
                continue;
            }
            count += 1;
            if request(claim).is_some_and(|(_, now)| now.as_f64() < declared.1.as_f64()) {
                growths.push(VolumeGrowth {
                    claim: text.to_owned(),
                    storage: declared.0.clone(),
                });
            }
        }
    }
    (growths, count)
}

/// Returns the requested storage of a claim, as text and as a quantity.
fn request(claim: &Node) -> Option<(String, Quantity)> {
    let requests = claim.get("spec")?.get("resources")?.get("requests")?;
    let text = requests.get("storage")?.to_text().into_owned();
    let quantity = text.parse().ok()?;
    Some((text, quantity))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(name: &str, storage: &str) -> Value {
        json!({ "metadata": { "name": name }, "spec": { "resources": { "requests": { "storage": storage } } } })
    }

    #[test]
    fn the_claims_of_the_set_grow_and_never_shrink() {
        let set = json!({
            "metadata": { "name": "db" },
            "spec": { "volumeClaimTemplates": [claim("data", "2Gi"), claim("logs", "1Gi")] },
        });
        let claims = [
            claim("data-db-0", "1Gi"),
            claim("data-db-1", "2048Mi"),
            claim("data-db-2", "3Gi"),
            claim("data-db-x", "1Gi"),
            claim("data-db-web-0", "1Gi"),
            claim("logs-db-0", "500Mi"),
        ]
        .map(|claim| Node::from(&claim));
        let (found, count) = growths(&Node::from(&set), &claims);
        let found: Vec<_> = found
            .iter()
            .map(|one| (&*one.claim, &*one.storage))
            .collect();
        assert_eq!(found, [("data-db-0", "2Gi"), ("logs-db-0", "1Gi")]);
        assert_eq!(count, 4);
    }

    #[test]
    fn sizes_and_other_fields_of_a_template_differ() {
        assert!(is_size(
            "spec.volumeClaimTemplates[0].spec.resources.requests.storage"
        ));
        for other in [
            "spec.volumeClaimTemplates[0].spec.storageClassName",
            "spec.volumeClaimTemplates",
            "spec.serviceName",
        ] {
            assert!(!is_size(other), "{other}");
        }
    }
}
