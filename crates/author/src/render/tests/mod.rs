//! Rendering of Katalogs and custom resources from files.

mod calls;
mod existing;
mod problems;

use std::{fs, path::PathBuf};

use orkestra_language::diagnostics::Code;
use serde_json::Value;
use tempfile::TempDir;

use super::{RenderRequest, Rendered, Show, masked_objects, render, to_json, to_yaml};

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ponds.water.example }
spec:
  group: water.example
  scope: Namespaced
  names: { kind: Pond, plural: ponds }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                fish: { type: string, default: carp }
                deep: { type: boolean }
            status: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

const KATALOG: &str = r#"apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox:
        onReconcile:
          configMaps:
            - name: "{{ .metadata.name }}"
              data: { fish: "{{ .spec.fish }}", was: "{{ .status.fish }}" }
            - name: "{{ .metadata.name }}-deep"
              data: { a: b }
              when:
                - { field: spec.deep, equals: true }
        onCreate:
          secrets:
            - name: "{{ .metadata.name }}-key"
              data: { key: "{{ .metadata.name }}" }
        status:
          fields:
            - { path: fish, value: "{{ .children.configMap.data.fish }}" }
    lake:
      enabled: false
      apiTypes: { group: water.example, version: v1, kind: Lake, plural: lakes }
"#;

fn pond(more: &str) -> String {
    format!(
        "apiVersion: water.example/v1\nkind: Pond\nmetadata: {{ name: north{more} }}\nspec: {{}}\n"
    )
}

struct Desk(TempDir);

impl Desk {
    fn new(cr: &str) -> Self {
        let desk = Self(TempDir::new().unwrap());
        desk.write("k.yaml", KATALOG);
        desk.write("crd.yaml", CRD);
        desk.write("cr.yaml", cr);
        desk
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn request(&self) -> RenderRequest {
        let path = |name| self.0.path().join(name);
        RenderRequest {
            katalogs: vec![path("k.yaml"), path("crd.yaml")],
            resources: vec![path("cr.yaml")],
            status: None,
            children: Vec::new(),
            cross: Vec::new(),
            calls: None,
            now: "2025-03-04T05:06:07Z".parse().unwrap(),
            fetch: std::sync::Arc::new(orkestra_loader::compose::DiskFiles),
        }
    }
}

const ALL: Show = Show {
    secrets: true,
    status: true,
};

/// Returns the rendered objects, and asserts that rendering had no errors.
fn objects(rendered: &Rendered) -> Vec<Value> {
    assert!(!rendered.problems.has_errors(), "{}", rendered.problems);
    to_json(&rendered.passes, ALL)["items"]
        .as_array()
        .unwrap()
        .clone()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap()
}

#[tokio::test]
async fn objects_come_with_defaults_and_without_what_a_uid_is_part_of() {
    let desk = Desk::new(&pond(""));
    let found = objects(&render(&desk.request()).await);
    let map = find(&found, "ConfigMap", "north");
    assert_eq!(map["data"]["fish"], "carp");
    assert_eq!(map["metadata"]["namespace"], "default");
    assert!(map["metadata"].get("ownerReferences").is_none());
    assert!(!map.to_string().contains("00000000"), "{map}");
    let status = &find(&found, "Pond", "north")["status"];
    assert_eq!(status["fish"], "carp", "the status lacks data of children");
    assert_eq!(
        status["conditions"][0]["lastTransitionTime"],
        "2025-03-04T05:06:07Z"
    );
}

#[tokio::test]
async fn a_custom_resource_with_a_uid_owns_its_objects() {
    let desk = Desk::new(&pond(", uid: 9f3a, namespace: east"));
    let found = objects(&render(&desk.request()).await);
    let map = find(&found, "ConfigMap", "north");
    assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], "9f3a");
    assert_eq!(
        map["metadata"]["labels"]["orkestra.orkspace.io/owner-uid"],
        "9f3a"
    );
    assert!(map["metadata"]["annotations"]["orkestra.orkspace.io/applied"].is_string());
}

#[tokio::test]
async fn what_is_left_out_is_said_with_the_reason() {
    let desk = Desk::new(&pond(""));
    let yaml = to_yaml(&render(&desk.request()).await.passes, ALL).unwrap();
    assert!(
        yaml.contains("# left out: ConfigMap at spec.crds.pond.operatorBox.onReconcile.configMaps[1]: when[0] does not hold: spec.deep equals true (spec.deep is empty)\n"),
        "{yaml}"
    );
    desk.write(
        "cr.yaml",
        &pond("").replace("spec: {}", "spec: { deep: true }"),
    );
    let found = objects(&render(&desk.request()).await);
    find(&found, "ConfigMap", "north-deep");
}

#[tokio::test]
async fn equal_files_give_equal_text() {
    let desk = Desk::new(&pond(""));
    let text = async || to_yaml(&render(&desk.request()).await.passes, ALL).unwrap();
    assert_eq!(text().await, text().await);
}

#[tokio::test]
async fn secrets_are_masked_unless_they_are_asked_for() {
    let desk = Desk::new(&pond(""));
    let rendered = render(&desk.request()).await;
    let (hidden, shown) = (Show::default(), ALL);
    assert_eq!(
        masked_objects(&rendered.passes, hidden),
        ["Secret default/north-key"]
    );
    assert!(masked_objects(&rendered.passes, shown).is_empty());
    let yaml = to_yaml(&rendered.passes, hidden).unwrap();
    assert!(
        yaml.contains("#   key: \"***\"") || yaml.contains("#   key: '***'"),
        "{yaml}"
    );
    assert!(!yaml.contains("bm9ydGg="), "{yaml}");
    assert!(
        !to_json(&rendered.passes, hidden)
            .to_string()
            .contains("bm9ydGg=")
    );
    assert!(
        to_yaml(&rendered.passes, shown)
            .unwrap()
            .contains("bm9ydGg=")
    );
}

const READER: &str = r#"apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox:
        onCreate:
          secrets:
            - { name: login, data: { password: "{{ randomAlphanumeric 12 }}" } }
        onReconcile:
          configMaps:
            - name: copy
              data:
                whole: "x={{ .children.secret.data.password }}."
                plain: "{{ .children.secret.data.password | fromBase64 }}"
                cut: "{{ slice .children.secret.data.password 0 2 }}"
                same: bm9ydGhlcm4=
        status:
          fields:
            - { path: fish, value: "{{ .spec.fish }}" }
"#;

#[tokio::test]
async fn what_depends_on_a_secret_is_masked_wherever_it_comes_to_stand() {
    let desk = Desk::new(&pond(""));
    desk.write("k.yaml", READER);
    let mut request = desk.request();
    let status = Show {
        status: true,
        ..Show::default()
    };
    // The Secret does not exist, and is created.
    let rendered = render(&request).await;
    let made = objects(&rendered);
    let password = find(&made, "Secret", "login")["data"]["password"].as_str();
    let password = password.unwrap().to_owned();
    let text = to_yaml(&rendered.passes, status).unwrap();
    assert!(!text.contains(&password), "{text}");
    // The Secret exists.
    let live = "apiVersion: v1\nkind: Secret\nmetadata: { name: login, namespace: default }\ndata: { password: bm9ydGhlcm4= }\n";
    request.children = vec![desk.write("live.yaml", live)];
    let rendered = render(&request).await;
    // Applying the output must not overwrite values with `***`, so it contains neither the copy nor a status with such values.
    assert_eq!(
        masked_objects(&rendered.passes, status),
        ["ConfigMap default/copy"]
    );
    let list = to_json(&rendered.passes, status);
    let kinds: Vec<&str> = (list["items"].as_array().unwrap().iter())
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Pond"]);
    let yaml = to_yaml(&rendered.passes, status).unwrap();
    let comment = yaml.lines().filter_map(|line| line.strip_prefix("# "));
    let comment: Vec<&str> = comment
        .skip_while(|line| *line != "apiVersion: v1")
        .collect();
    let masked: Value = serde_saphyr::from_str(&comment.join("\n")).unwrap();
    let data = &masked["data"];
    for field in ["whole", "plain", "cut"] {
        assert_eq!(data[field], "***", "{field}");
    }
    assert_eq!(data["same"], "bm9ydGhlcm4=", "a literal must not be masked");
    let items = list["items"].as_array().unwrap();
    assert_eq!(find(items, "Pond", "north")["status"]["fish"], "carp");
    let shown = objects(&rendered);
    let data = &find(&shown, "ConfigMap", "copy")["data"];
    assert_eq!(data["plain"], "northern");
}

/// Writes the Katalog with rules that normalize, complete and validate Ponds.
fn with_rules(desk: &Desk) {
    let rules = "      normalize: { spec: { fish: '{{ toLower .spec.fish }}' } }
      mutation: { rules: [{ field: spec.deep, default: 'true' }] }
      validation:
        rules: [{ field: spec.fish, notEquals: pike, message: '{{ .spec.fish }} eat the others' }]
      operatorBox:
";
    desk.write(
        "k.yaml",
        &KATALOG.replacen("      operatorBox:\n", rules, 1),
    );
}

#[tokio::test]
async fn a_resource_is_rendered_as_rules_make_it() {
    let desk = Desk::new(&pond("").replace("spec: {}", "spec: { fish: TENCH }"));
    with_rules(&desk);
    let objects = objects(&render(&desk.request()).await);
    let names: Vec<&str> = objects
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["north-key", "north", "north-deep", "north"]);
    assert_eq!(objects[1]["data"]["fish"], "tench");
    let pond = &objects[3];
    assert_eq!(
        pond["spec"],
        serde_json::json!({ "fish": "tench", "deep": true })
    );
    let conditions = pond["status"]["conditions"].as_array().unwrap();
    let types: Vec<&str> = conditions
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert!(
        types.contains(&"Normalized") && types.contains(&"Mutated"),
        "{types:?}"
    );
}

#[tokio::test]
async fn a_resource_that_does_not_keep_a_rule_is_reported_in_its_own_file() {
    let desk = Desk::new(&pond("").replace("spec: {}", "spec: { fish: Pike }"));
    with_rules(&desk);
    let rendered = render(&desk.request()).await;
    let [problem] = &rendered.problems.0[..] else {
        panic!("{}", rendered.problems)
    };
    assert_eq!(problem.code, Code::CannotRender);
    assert_eq!(problem.message, "spec.fish: pike eat the others");
    assert!(problem.file.as_ref().unwrap().ends_with("cr.yaml"));
    let pass = &rendered.passes[0];
    assert!(pass.preview.objects.is_empty());
    assert_eq!(
        pass.preview.left_out[0].to_string(),
        "Secret at spec.crds.pond.operatorBox.onCreate.secrets[0]: no objects are created for this custom resource"
    );
}
