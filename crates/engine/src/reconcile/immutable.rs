//! The fields that keep the API server from making a change in place.
//!
//! Validation often names only a parent, such as `spec` of a `StatefulSet`: the declared values below it that differ from the live
//! ones are the fields that a user looks for.

use super::refused::validation_steps;
use orkestra_object::value::{Node, Quantity};

/// How many fields are named below one that the API server names.
const MOST_NAMED: usize = 4;

/// Returns the declared fields at or below `field` whose live values differ; `field` itself if there are none.
///
/// `message` is the API server's: fields that it says may change are left out.
pub fn changed_fields(live: &Node, rendered: &Node, field: &str, message: &str) -> Vec<String> {
    let mut found = Vec::new();
    let steps = validation_steps(field);
    descend((live, rendered), &steps, String::new(), &mut found);
    let exempt = exempt(message);
    let prefix = format!("{field}.");
    found.retain(|path| {
        let below = path.strip_prefix(&*prefix).unwrap_or(path);
        !exempt.iter().any(|name| is_at(below, name))
    });
    if found.is_empty() {
        return vec![field.to_owned()];
    }
    found.truncate(MOST_NAMED);
    found
}

/// True if a path is that of the field, or below it.
pub(crate) fn is_at(path: &str, field: &str) -> bool {
    path.strip_prefix(field)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the fields that may change according to a message: `… for fields other than 'replicas', and 'template' are forbidden`,
/// `… is immutable after creation except resources.requests and volumeAttributesClassName for bound claims`.
///
/// Source: Kubernetes, `ValidateStatefulSetUpdate` and `ValidatePersistentVolumeClaimUpdate`.
fn exempt(message: &str) -> Vec<&str> {
    let line = message.lines().next().unwrap_or_default();
    let listed = ["other than ", " except "]
        .iter()
        .find_map(|words| line.split_once(words))
        .map_or("", |(_, listed)| listed);
    let words = listed
        .split(|one: char| one.is_whitespace() || one == ',')
        .map(|word| word.trim_matches(['\'', '"', '`']));
    words
        .filter(|word| !word.is_empty() && !matches!(*word, "and" | "or"))
        .collect()
}

/// Follows the steps to a field in both objects, and compares the values there.
fn descend(
    (live, rendered): (&Node, &Node),
    steps: &[Option<&str>],
    path: String,
    found: &mut Vec<String>,
) {
    let Some((step, rest)) = steps.split_first() else {
        return compare((live, rendered), path, found);
    };
    match (step, rendered) {
        (Some(name), Node::Map(map)) => {
            if let Some(rendered) = map.get(name) {
                let live = live.get(name).unwrap_or(&Node::Null);
                descend((live, rendered), rest, joined(&path, name), found);
            }
        }
        (None, Node::Map(map)) => {
            for (key, rendered) in map.iter() {
                let live = live.get(key).unwrap_or(&Node::Null);
                descend((live, rendered), rest, format!("{path}[{}]", &**key), found);
            }
        }
        (None, Node::List(list)) => {
            let others = live.as_list().unwrap_or_default();
            for (at, rendered) in list.iter().enumerate() {
                let live = others.get(at).unwrap_or(&Node::Null);
                descend((live, rendered), rest, format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// Collects the declared fields whose live values differ, the outermost that is missing or has another length.
fn compare((live, rendered): (&Node, &Node), path: String, found: &mut Vec<String>) {
    match (live, rendered) {
        (_, Node::Null) => {}
        (Node::Map(live), Node::Map(rendered)) => {
            for (key, rendered) in rendered.iter() {
                let live = live.get(key).unwrap_or(&Node::Null);
                compare((live, rendered), joined(&path, key), found);
            }
        }
        (Node::List(live), Node::List(rendered)) if live.len() == rendered.len() => {
            for (at, pair) in live.iter().zip(rendered).enumerate() {
                compare(pair, format!("{path}[{at}]"), found);
            }
        }
        (Node::Null, Node::Map(rendered)) if rendered.iter().all(|(_, one)| is_nothing(one)) => {}
        (Node::Null, rendered) if is_nothing(rendered) => {}
        _ if is_same(live, rendered) => {}
        _ => found.push(path),
    }
}

/// True if the API server leaves such a value out.
pub(crate) fn is_nothing(node: &Node) -> bool {
    match node {
        Node::Map(map) => map.iter().map(|(_, one)| one).all(is_nothing),
        other => other.is_empty_value(),
    }
}

/// True if two values are equal, or equal quantities.
pub(crate) fn is_same(live: &Node, rendered: &Node) -> bool {
    let (live, rendered) = (live.to_text(), rendered.to_text());
    let quantity = |text: &str| text.parse::<Quantity>().ok();
    live == rendered
        || quantity(&live)
            .is_some_and(|live| quantity(&rendered).is_some_and(|other| live == other))
}

pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns what can be done about immutable fields of an object of that kind.
pub fn remedy(kind: &str, name: &str, fields: &[String]) -> String {
    let has = |part: &str| fields.iter().any(|field| field.contains(part));
    match kind {
        "StatefulSet" if has("volumeClaimTemplates") => format!(
            "change it back, or run `kubectl delete statefulset {name} --cascade=orphan`: its pods and volumes stay, and the \
             StatefulSet is created again as declared; `onImmutable: recreate` deletes the pods too"
        ),
        "PersistentVolumeClaim" if has("resources.requests") => {
            "a volume can only grow, and only if its StorageClass has `allowVolumeExpansion`: change it back, or copy the data to \
             a new claim; `onImmutable: recreateAndLoseData` deletes the volume"
                .to_owned()
        }
        "PersistentVolumeClaim" | "PersistentVolume" | "Namespace" => {
            "change it back, or copy the data to a new object; `onImmutable: recreateAndLoseData` deletes the object and its data"
                .to_owned()
        }
        _ => "change it back, delete the object, or declare `onImmutable: recreate`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changed(live: Value, rendered: Value, field: &str, message: &str) -> Vec<String> {
        let [live, rendered] =
            [live, rendered].map(|spec| Node::from(&json!({ "spec": spec, "roleRef": spec })));
        changed_fields(&live, &rendered, field, message)
    }

    #[test]
    fn the_declared_fields_below_a_parent_are_named_and_those_that_may_change_are_not() {
        let message = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                       'updateStrategy' and 'minReadySeconds' are forbidden";
        let live = json!({ "replicas": 1, "template": { "a": 1 }, "serviceName": "a", "volumeClaimTemplates": [
            { "metadata": { "name": "data" }, "spec": { "resources": { "requests": { "storage": "1Gi" } }, "volumeMode": "Filesystem" } },
        ] });
        let mut rendered = live.clone();
        rendered["replicas"] = json!(3);
        rendered["template"]["a"] = json!(2);
        let storage = "/volumeClaimTemplates/0/spec/resources/requests/storage";
        *rendered.pointer_mut(storage).unwrap() = json!("2Gi");
        let found = changed(live.clone(), rendered, "spec", message);
        assert_eq!(
            found,
            ["spec.volumeClaimTemplates[0].spec.resources.requests.storage"]
        );
        let mut more = live.clone();
        more["volumeClaimTemplates"] = json!([{}, {}]);
        assert_eq!(
            changed(live, more, "spec", message),
            ["spec.volumeClaimTemplates"]
        );
    }

    #[test]
    fn a_claim_names_its_class_and_equal_quantities_do_not_differ() {
        let message = "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                       bound claims\n  core.PersistentVolumeClaimSpec{}";
        let live = json!({ "storageClassName": "slow", "resources": { "requests": { "storage": "1Gi", "x": "1" } }, "accessModes": ["A"] });
        let rendered = json!({ "storageClassName": "fast", "resources": { "requests": { "storage": "1024Mi", "x": "2" } }, "selector": {} });
        assert_eq!(
            changed(live, rendered, "spec", message),
            ["spec.storageClassName"]
        );
    }

    #[test]
    fn a_field_that_is_named_itself_stays_as_it_is() {
        for field in ["spec.clusterIPs[0]", "spec.selector", "data"] {
            let found = changed(json!({}), json!({ "clusterIP": "None" }), field, "");
            assert_eq!(found, [field]);
        }
        let found = changed(
            json!({ "kind": "Role", "name": "a" }),
            json!({ "kind": "Role", "name": "b" }),
            "roleRef",
            "Invalid value: rbac.RoleRef{}: cannot change roleRef",
        );
        assert_eq!(found, ["roleRef.name"]);
    }

    #[test]
    fn the_remedy_keeps_volumes() {
        let of = |kind: &str, field: &str| remedy(kind, "web", &[field.to_owned()]);
        assert!(of("StatefulSet", "spec.volumeClaimTemplates[0]").contains("--cascade=orphan"));
        assert!(!of("StatefulSet", "spec.serviceName").contains("orphan"));
        assert!(of("PersistentVolumeClaim", "spec.resources.requests.storage").contains("grow"));
        let claim = of("PersistentVolumeClaim", "spec.storageClassName");
        assert!(claim.contains("recreateAndLoseData") && !claim.contains("recreate`"));
    }
}
