//! Settings of Argo CD: the `ConfigMap` `argocd-cm` with health checks and fields to ignore.

use std::collections::BTreeMap;

use orkestra_plan::Plan;
use serde_json::{Map, Value, json};

use super::{GitOpsKind, operated_kinds, own_kinds};

/// The health check, in Lua: `config/argocd/health.lua`. It uses only what Argo CD opens to a check: base and table.
pub const HEALTH: &str = include_str!("../../../../config/argocd/health.lua");

/// How settings name their kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStyle {
    /// A key for each kind, which every Argo CD accepts.
    Kinds,
    /// A wildcard for each API group, under the one key that takes them: kinds that are added later are included.
    Groups,
}

/// Returns the `ConfigMap` `argocd-cm` of that namespace with the settings for our own kinds and for those of `plans`.
///
/// It is meant to be merged with the existing one: it has no other settings, and only labels by which Argo CD finds it.
pub fn config_map(plans: &[&Plan], keys: KeyStyle, namespace: &str) -> Value {
    let mut kinds = own_kinds();
    kinds.extend(operated_kinds(plans));
    let data: Map<String, Value> = match keys {
        KeyStyle::Kinds => kinds.iter().flat_map(of_kind).collect(),
        KeyStyle::Groups => std::iter::once(of_groups(&kinds)).collect(),
    };
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/name": "argocd-cm",
                "app.kubernetes.io/part-of": "argocd",
            },
        },
        "data": data,
    })
}

fn of_kind(kind: &GitOpsKind) -> [(String, Value); 2] {
    let GitOpsKind {
        group, kind: name, ..
    } = kind;
    let key = |what: &str| format!("resource.customizations.{what}.{group}_{name}");
    [
        (key("health"), HEALTH.into()),
        (key("ignoreDifferences"), ignored(&kind.managers).into()),
    ]
}

/// The value of `resource.customizations`: YAML with a key for each group.
fn of_groups(kinds: &[GitOpsKind]) -> (String, Value) {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        let managers = groups.entry(&kind.group).or_default();
        managers.extend(kind.managers.iter().map(String::as_str));
    }
    let texts = groups.into_iter().map(|(group, managers)| {
        let mut managers: Vec<String> = managers.into_iter().map(str::to_owned).collect();
        managers.sort_unstable();
        managers.dedup();
        let health = block("health.lua", HEALTH);
        let ignored = block("ignoreDifferences", &ignored(&managers));
        format!("\"{group}/*\":\n{health}{ignored}")
    });
    let text = texts.collect::<Vec<_>>().concat();
    ("resource.customizations".to_owned(), text.into())
}

/// A field with a text of several lines, indented by two.
fn block(field: &str, text: &str) -> String {
    let indented = text.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    });
    let text = indented.collect::<Vec<_>>().concat();
    format!("  {field}: |\n{text}")
}

/// What is not part of Git: the status, and the fields that the runtime owns (finalizers, labels and annotations of ours, and
/// normalized values that no other manager owns).
fn ignored(managers: &[String]) -> String {
    let pointers = "jsonPointers:\n- /status\n";
    if managers.is_empty() {
        return pointers.to_owned();
    }
    let lines = managers.iter().map(|manager| format!("- {manager}\n"));
    let managers = lines.collect::<Vec<_>>().concat();
    format!("{pointers}managedFieldsManagers:\n{managers}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_testkit::compiled;

    const PONDS: &str = r"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox: { onReconcile: { configMaps: [{}] } }
";

    #[test]
    fn each_kind_has_a_health_check_and_ignores_what_the_runtime_writes() {
        let plan = compiled(PONDS);
        let map = config_map(&[&plan], KeyStyle::Kinds, "cd");
        assert_eq!(map["metadata"]["namespace"], "cd");
        let data = map["data"].as_object().unwrap();
        assert_eq!(data.len(), 8);
        for (key, value) in data {
            let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            assert!(key.bytes().all(is_legal), "{key}");
            assert!(value.is_string(), "{key}");
        }
        assert_eq!(
            data["resource.customizations.health.water.example_Pond"],
            HEALTH
        );
        assert_eq!(
            data["resource.customizations.ignoreDifferences.water.example_Pond"],
            "jsonPointers:\n- /status\nmanagedFieldsManagers:\n- orkestra-metadata/ponds.water.example\n"
        );
    }

    #[test]
    fn a_wildcard_covers_a_group_and_is_yaml_with_the_same_texts() {
        let plan = compiled(PONDS);
        let map = config_map(&[&plan], KeyStyle::Groups, "argocd");
        let text = map["data"]["resource.customizations"].as_str().unwrap();
        let groups: Value = serde_saphyr::from_str(text).unwrap();
        let groups = groups.as_object().unwrap();
        let names: Vec<&String> = groups.keys().collect();
        assert_eq!(names, ["orkestra.orkspace.io/*", "water.example/*"]);
        for group in groups.values() {
            assert_eq!(group["health.lua"], HEALTH);
            let ignored = group["ignoreDifferences"].as_str().unwrap();
            let ignored: Value = serde_saphyr::from_str(ignored).unwrap();
            assert_eq!(ignored["jsonPointers"], json!(["/status"]));
            assert!(ignored["managedFieldsManagers"].is_array());
        }
    }

    #[test]
    fn the_check_uses_only_what_argo_cd_opens() {
        for library in [
            "string.", "math.", "io.", "os.", "debug.", "require", ":sub(", ":match(",
        ] {
            assert!(!HEALTH.contains(library), "{library}");
        }
    }
}
