//! Rendering from files.

use std::{fs, path::PathBuf};

use orkestra_core::diagnostics::Code;
use serde_json::Value;
use tempfile::TempDir;

use super::{Rendered, Request, Show, masked_objects, render, to_json, to_yaml};

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
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

    fn request(&self) -> Request {
        let path = |name| self.0.path().join(name);
        Request {
            katalogs: vec![path("k.yaml"), path("crd.yaml")],
            resources: vec![path("cr.yaml")],
            status: None,
            children: Vec::new(),
            cross: Vec::new(),
            calls: None,
            now: "2025-03-04T05:06:07Z".parse().unwrap(),
            fetch: std::sync::Arc::new(crate::compose::DiskFiles),
        }
    }
}

const ALL: Show = Show {
    secrets: true,
    status: true,
};

/// The objects; asserts that rendering had no errors.
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
    assert_eq!(status["fish"], "carp", "it sees the children that are made");
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
        yaml.contains("# left out: ConfigMap at spec.crds.pond.operatorBox.onReconcile.configMaps[1]: when[0] does not hold\n"),
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
    // A Secret that is created.
    let rendered = render(&request).await;
    let made = objects(&rendered);
    let password = find(&made, "Secret", "login")["data"]["password"].as_str();
    let password = password.unwrap().to_owned();
    let text = to_yaml(&rendered.passes, status).unwrap();
    assert!(!text.contains(&password), "{text}");
    // A Secret that exists.
    let live = "apiVersion: v1\nkind: Secret\nmetadata: { name: login, namespace: default }\ndata: { password: bm9ydGhlcm4= }\n";
    request.children = vec![desk.write("live.yaml", live)];
    let rendered = render(&request).await;
    // If it were applied, `***` would overwrite the values: the output contains neither the copy nor a status with them.
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
    assert_eq!(data["same"], "bm9ydGhlcm4=", "it is written in the Katalog");
    let items = list["items"].as_array().unwrap();
    assert_eq!(find(items, "Pond", "north")["status"]["fish"], "carp");
    let shown = objects(&rendered);
    let data = &find(&shown, "ConfigMap", "copy")["data"];
    assert_eq!(data["plain"], "northern");
}

#[tokio::test]
async fn the_status_to_assume_is_a_whole_object_or_a_status() {
    let desk = Desk::new(&pond(""));
    for text in ["fish: eel\n", "status: { fish: eel }\n"] {
        let mut request = desk.request();
        request.status = Some(desk.write("status.yaml", text));
        let found = objects(&render(&request).await);
        assert_eq!(find(&found, "ConfigMap", "north")["data"]["was"], "eel");
    }
    let two = format!("{}---\n{}", pond(""), pond("-2"));
    desk.write("cr.yaml", &two);
    let mut request = desk.request();
    assert_eq!(render(&request).await.passes.len(), 2);
    request.status = Some(desk.write("status.yaml", "fish: eel\n"));
    let rendered = render(&request).await;
    assert!(rendered.problems.has_errors() && rendered.passes.is_empty());
}

#[tokio::test]
async fn a_certificate_that_kubectl_shows_stays_until_it_is_for_something_else() {
    let desk = Desk::new(&pond(""));
    let secret = "secrets:\n            - name: tls\n              tls: { dnsNames: [HOST] }\n            - name:";
    let katalog = |host: &str| {
        KATALOG.replace(
            "secrets:\n            - name:",
            &secret.replace("HOST", host),
        )
    };
    desk.write("k.yaml", &katalog("north.example"));
    let made = objects(&render(&desk.request()).await);
    let mut made = find(&made, "Secret", "tls").clone();
    made["data"]["tls.crt"] = "YSBjZXJ0aWZpY2F0ZQ==".into();
    let mut request = desk.request();
    request.children = vec![desk.write("tls.json", &made.to_string())];
    let is_there = |rendered: &[Value]| rendered.iter().any(|one| one["metadata"]["name"] == "tls");
    assert!(!is_there(&objects(&render(&request).await)));
    desk.write("k.yaml", &katalog("south.example"));
    assert!(is_there(&objects(&render(&request).await)));
}

#[tokio::test]
async fn live_children_are_seen_and_what_was_made_once_is_not_made_again() {
    let desk = Desk::new(&pond(""));
    let live = "apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: Secret, metadata: { name: north-key, namespace: default } }
  - { apiVersion: v1, kind: ConfigMap, metadata: { name: old, namespace: default, ownerReferences: [{ controller: true, apiVersion: water.example/v1, kind: Pond, name: north, uid: x }] } }
";
    let mut request = desk.request();
    request.children = vec![desk.write("live.yaml", live)];
    let rendered = render(&request).await;
    let yaml = to_yaml(&rendered.passes, ALL).unwrap();
    assert!(yaml.contains("it is made once, and was\n"), "{yaml}");
    assert!(
        yaml.contains("# deleted: ConfigMap default/old\n"),
        "{yaml}"
    );
    assert!(
        !objects(&rendered)
            .iter()
            .any(|object| object["kind"] == "Secret")
    );
}

#[tokio::test]
async fn an_object_that_is_not_a_child_is_never_deleted() {
    let desk = Desk::new(&pond(""));
    let deletes = async |cr: &str, metadata: &str| {
        let live = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: old, namespace: default{metadata} }}\n"
        );
        desk.write("cr.yaml", cr);
        let request = Request {
            children: vec![desk.write("live.yaml", &live)],
            ..desk.request()
        };
        let yaml = to_yaml(&render(&request).await.passes, ALL).unwrap();
        yaml.contains("# deleted: ConfigMap default/old\n")
    };
    let reference = |owner: &str| format!(", ownerReferences: [{{ controller: true, {owner} }}]");
    let north = "apiVersion: water.example/v1, kind: Pond, name: north, uid: mine";
    let annotation = |owner: &str| {
        format!(
            ", annotations: {{ orkestra.orkspace.io/owner: Pond.water.example/default/{owner} }}"
        )
    };
    let mark = ", annotations: { orkestra.orkspace.io/child: ConfigMap/old }";
    let label = |uid: &str| format!(", labels: {{ orkestra.orkspace.io/owner-uid: {uid} }}");
    let (without, with) = (pond(""), pond(", uid: mine"));
    for (cr, metadata, expected) in [
        // A source that templates read: nothing marks it as a child.
        (&without, String::new(), false),
        (&with, String::new(), false),
        (&without, reference(north), true),
        (&with, reference(north), true),
        (&without, reference(&north.replace("north", "south")), false),
        (&without, reference(&north.replace("Pond", "Lake")), false),
        (&with, reference(&north.replace("mine", "other")), false),
        (&without, annotation("north/x"), true),
        (&without, annotation("south/x"), false),
        (&with, annotation("north/mine"), true),
        (&with, annotation("north/other"), false),
        (&with, label("mine"), true),
        (&with, label("other"), false),
        (&without, mark.to_owned(), true),
    ] {
        assert_eq!(deletes(cr, &metadata).await, expected, "{cr}{metadata}");
    }
}

#[tokio::test]
async fn an_unmarked_child_of_a_declared_name_is_seen_and_deleted_where_its_gate_is_closed() {
    let desk = Desk::new(&pond(""));
    let live =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: north-deep, namespace: default }\n";
    let mut request = desk.request();
    request.children = vec![desk.write("live.yaml", live)];
    let yaml = to_yaml(&render(&request).await.passes, ALL).unwrap();
    assert!(
        yaml.contains("# deleted: ConfigMap default/north-deep\n"),
        "{yaml}"
    );
}

#[tokio::test]
async fn what_nobody_operates_is_an_error_that_says_what_is() {
    let desk = Desk::new("");
    for (cr, message, hint) in [
        (
            pond("").replace("Pond", "Puddle"),
            "no Katalog operates Puddle.water.example",
            "operated kinds: Pond.water.example",
        ),
        (
            pond("").replace("/v1", "/v2"),
            "no Katalog operates version `v2` of Pond.water.example",
            "operated versions: `v1`",
        ),
        (
            pond("").replace("Pond", "Lake"),
            "the entry `lake` that operates Lake.water.example is disabled",
            "write `enabled: true` to render it",
        ),
    ] {
        desk.write("cr.yaml", &cr);
        let rendered = render(&desk.request()).await;
        let problem = &rendered.problems.0[0];
        assert_eq!(problem.code, Code::NotOperated);
        assert_eq!(
            (&*problem.message, problem.hint.as_deref()),
            (message, Some(hint))
        );
        assert!(problem.file.is_some() && problem.line.is_some());
        assert!(rendered.passes.is_empty());
    }
    for cr in [
        "",
        "kind: Pond\n",
        "apiVersion: water.example/v1\nkind: Pond\nmetadata: {}\n",
        "7\n",
    ] {
        desk.write("cr.yaml", cr);
        assert!(
            render(&desk.request()).await.problems.has_errors(),
            "{cr:?}"
        );
    }
}

#[tokio::test]
async fn what_is_being_deleted_makes_nothing() {
    let desk = Desk::new(&pond(", deletionTimestamp: \"2025-01-01T00:00:00Z\""));
    let rendered = render(&desk.request()).await;
    assert_eq!(rendered.problems.0[0].code, Code::CannotRender);
    assert!(rendered.passes.is_empty());
}

#[tokio::test]
async fn a_failure_is_told_at_its_field_in_the_katalog() {
    let desk = Desk::new(&pond("").replace("north", "North Pond"));
    let rendered = render(&desk.request()).await;
    let problem = &rendered.problems.0[0];
    assert_eq!(problem.code, Code::CannotRender);
    assert!(
        problem.message.contains("(for Pond default/North Pond)"),
        "{problem}"
    );
    assert!(problem.file.as_ref().unwrap().ends_with("k.yaml"));
    let line = KATALOG
        .lines()
        .nth(problem.line.unwrap() as usize - 1)
        .unwrap();
    assert!(line.contains("name: \"{{ .metadata.name }}"), "{problem}");
}

#[tokio::test]
async fn a_failure_in_a_motif_is_told_there() {
    let desk = Desk::new(&pond("").replace("north", "North"));
    let katalog = KATALOG.replace(
        "plural: ponds }\n",
        "plural: ponds }\n      imports: [{ motif: motif.yaml }]\n",
    );
    desk.write("k.yaml", &katalog);
    desk.write(
        "motif.yaml",
        "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: { name: m }\nresources:\n  configMaps:\n    - name: \"{{ .metadata.name }}-m\"\n",
    );
    let rendered = render(&desk.request()).await;
    let places: Vec<_> = rendered
        .problems
        .iter()
        .map(|problem| {
            (
                problem.file.as_ref().unwrap().rsplit('/').next().unwrap(),
                problem.line,
            )
        })
        .collect();
    assert!(
        places.contains(&("motif.yaml", Some(6))),
        "{}",
        rendered.problems
    );
}

#[tokio::test]
async fn the_samples_of_codes_of_custom_resources_are_right() {
    for code in [Code::NotOperated, Code::CannotRender] {
        let explained = code.explain();
        for (sample, expected) in [(explained.wrong, vec![code]), (explained.right, vec![])] {
            let desk = Desk::new("");
            let (katalog, cr) = sample.split_once("---\n").unwrap();
            let mut request = desk.request();
            request.katalogs = vec![desk.write("k.yaml", katalog)];
            desk.write("cr.yaml", cr);
            let rendered = render(&request).await;
            let codes: Vec<_> = rendered
                .problems
                .iter()
                .map(|problem| problem.code)
                .collect();
            assert_eq!(codes, expected, "{}", rendered.problems);
        }
    }
}

/// The Katalog with rules for Ponds that are not normalized yet.
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
async fn a_resource_that_does_not_keep_a_rule_is_told_in_its_own_file() {
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
        "Secret at spec.crds.pond.operatorBox.onCreate.secrets[0]: nothing is made for this resource"
    );
}

#[tokio::test]
async fn calls_have_the_answers_that_are_given_and_none_is_made() {
    let desk = Desk::new(&pond(""));
    let called = KATALOG
        .replace("        onReconcile:\n", "        onReconcile:\n          external: [{ name: flags, url: \"https://flags.example/{{ .metadata.name }}\", expectedStatus: 200 }]\n")
        .replace("fish: \"{{ .spec.fish }}\", was", "fish: \"{{ .external.flags.json.fish }}\", was");
    desk.write("k.yaml", &called);
    let given = async |text: &str| {
        let path = desk.write("calls.yaml", text);
        let request = Request {
            calls: Some(path),
            ..desk.request()
        };
        render(&request).await
    };
    let rendered = given("flags: { body: { fish: pike } }").await;
    let objects = objects(&rendered);
    let map = objects.iter().find(|object| object["kind"] == "ConfigMap");
    assert_eq!(map.unwrap()["data"]["fish"], "pike");
    for (text, told) in [
        ("flags: { status: 404 }", "the answer has status 404"),
        ("flags: { error: it is down }", "failed: it is down"),
        ("flags: { code: 200 }", "no `code`"),
        ("flagz: { status: 200 }", "no operator makes a call `flagz`"),
        ("[flags]", "a map from call names"),
    ] {
        let problems = given(text).await.problems.to_string();
        assert!(problems.contains(told), "{problems}");
    }
}

#[tokio::test]
async fn a_call_without_an_answer_hides_only_what_depends_on_it() {
    let desk = Desk::new(&pond("").replace("spec: {}", "spec: { deep: true }"));
    let called = KATALOG
        .replace("        onReconcile:\n", "        onReconcile:\n          external:\n            - { name: flags, url: \"https://flags.example/{{ .metadata.name }}\", expectedStatus: 200 }\n            - { name: next, url: \"https://flags.example/{{ .external.flags.body }}\" }\n")
        .replace("fish: \"{{ .spec.fish }}\", was", "fish: \"{{ .external.flags.json.fish }}\", was")
        .replace("data: { key: \"{{ .metadata.name }}\" }", "data: { key: \"{{ .external.next.body }}\" }");
    desk.write("k.yaml", &called);
    let rendered = render(&desk.request()).await;
    let [secret, map] = &rendered.problems.0[..] else {
        panic!("{}", rendered.problems)
    };
    let hint = Some("put the answer into a file and pass it with `--external`");
    for (problem, call) in [(map, "flags"), (secret, "next")] {
        let unread = format!("`.external.{call}` cannot be read");
        assert!(problem.message.contains(&unread), "{problem}");
        assert_eq!(problem.hint.as_deref(), hint);
    }
    let yaml = to_yaml(&rendered.passes, ALL).unwrap();
    for at in ["onReconcile.configMaps[0]", "onCreate.secrets[0]"] {
        let left_out = format!("operatorBox.{at}: `.external.");
        assert!(yaml.contains(&left_out), "{yaml}");
    }
    assert!(yaml.contains("name: north-deep\n"), "{yaml}");
    assert!(!yaml.contains("name: north-key\n"), "{yaml}");
}
