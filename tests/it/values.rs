//! Values of a custom resource reach its children unchanged, and an invalid name or value affects only that resource.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

/// Texts with a meaning in YAML, templates, shells or terminals, which must be copied literally.
const TEXTS: [&str; 31] = [
    "0644",
    "0x1F",
    "1e3",
    "1_000",
    "12:30:45",
    ".inf",
    "null",
    "~",
    "yes",
    "No",
    "true",
    "2026-01-02",
    "  spaces around  ",
    "\ttab and newline\n",
    "two\nlines",
    "windows\r\nlines\r\n",
    "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: smuggled\n",
    "}\n---\n{",
    "key: value",
    "- item",
    "# no comment",
    "&anchor *alias !!binary tag",
    "\"double\" and 'single' and `back` quotes",
    "back\\slash \\n \\u0041",
    "$(id) ${HOME} $HOME",
    "{{ .metadata.name }}",
    "{{ range .spec }}",
    "}} {{ end }} {{",
    "{{/* comment */}}{{- trim -}}",
    "h\u{e9}llo \u{1f980} \u{202e}right to left \u{feff}\u{200b}",
    "a%41 <b>&amp;</b> \u{1b}[31m\u{7}",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_a_resource_arrive_unchanged_and_cannot_break_out() -> Result<()> {
    let mut scenario = Scenario::new("values").await?;
    let katalog = katalog_of_texts();
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;

    let texts: Map<String, Value> = TEXTS
        .iter()
        .enumerate()
        .map(|(index, text)| (key(index), json!(text)))
        .collect();
    waters::pond(&scenario, "north", &json!({ "texts": texts })).await?;
    scenario.objects("ponds").until_ready("north").await?;
    let map = scenario.objects("configmaps").fetch("north-texts").await?;
    let secret = scenario.objects("secrets").fetch("north-texts").await?;
    for (index, text) in TEXTS.iter().enumerate() {
        assert_eq!(map["data"][key(index)], *text, "in the ConfigMap");
        assert_eq!(
            map["data"][format!("in-{}", key(index))],
            format!("[{text}]"),
            "within another text"
        );
        assert_eq!(
            map["metadata"]["annotations"][format!("example.org/{}", key(index))],
            *text,
            "in an annotation"
        );
        let encoded = waters::text(&secret, &format!("/data/{}", key(index))).to_owned();
        assert_eq!(decoded(&encoded)?, *text, "in the Secret");
    }
    assert_eq!(map["data"].as_object().map(Map::len), Some(2 * TEXTS.len()));
    let made = |objects| waters::names(&waters::managed(objects));
    assert_eq!(
        made(scenario.objects("configmaps").list().await?),
        ["north-texts"]
    );
    assert_eq!(
        made(scenario.objects("secrets").list().await?),
        ["north-texts"]
    );
    // The children match what was rendered: nothing is corrected.
    waters::ensure_no_writes(&scenario).await
}

/// Returns the key of the text at that index of [`TEXTS`].
fn key(index: usize) -> String {
    format!("t{index:02}")
}

/// Returns a Katalog whose children have every text of [`TEXTS`] in data, within other text and in annotations.
fn katalog_of_texts() -> String {
    let mut data = Map::new();
    let mut annotations = Map::new();
    for index in 0..TEXTS.len() {
        data.insert(
            key(index),
            json!(format!("{{{{ .spec.texts.{} }}}}", key(index))),
        );
        data.insert(
            format!("in-{}", key(index)),
            json!(format!("[{{{{ .spec.texts.{} }}}}]", key(index))),
        );
        annotations.insert(
            format!("example.org/{}", key(index)),
            json!(format!("{{{{ .spec.texts.{} }}}}", key(index))),
        );
    }
    json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "waters" },
        "spec": { "crds": { "pond": {
            "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
            "operatorBox": { "onReconcile": {
                "configMaps": [{ "name": "{{ .metadata.name }}-texts", "data": data, "annotations": annotations }],
                "secrets": [{ "name": "{{ .metadata.name }}-texts", "data": data }],
            } },
        } } },
    })
    .to_string()
}

/// Decodes Base64 to text.
fn decoded(encoded: &str) -> Result<String> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(encoded))?;
    String::from_utf8(bytes.0).context("not UTF-8")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_whose_child_is_illegal_fails_alone_says_so_once_and_is_not_retried_hot()
-> Result<()> {
    let mut scenario = Scenario::new("illegal").await?;
    let katalog = input("values/services.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let ponds = scenario.objects("ponds");
    let spec =
        |service: &str, kind: &str| json!({ "service": service, "type": kind, "colour": "green" });
    let long = "s".repeat(64);
    waters::pond(&scenario, "long", &spec(&long, "ClusterIP")).await?;
    waters::pond(&scenario, "upper", &spec("Service", "ClusterIP")).await?;
    // Only the API server can detect that this value is invalid.
    waters::pond(&scenario, "odd", &spec("legal", "Nonsense")).await?;
    waters::pond(&scenario, "fits", &spec(&"s".repeat(63), "NodePort")).await?;
    ponds.until_ready("fits").await?;
    for (name, word) in [
        ("long", long.as_str()),
        ("upper", "Service"),
        ("odd", "Nonsense"),
    ] {
        the_resource_says_so(&scenario, name, word).await?;
    }
    // The other child of the resource is created, and other resources are reconciled.
    scenario
        .objects("configmaps")
        .until_equal("long-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    nothing_is_retried(&scenario).await?;
    for name in ["long", "upper", "odd"] {
        let warnings = waters::warnings(&scenario, name).await?;
        ensure!(
            warnings.len() == 1 && warnings[0]["count"].as_i64().unwrap_or(1) <= 1,
            "{name} has {} warnings: {warnings:?}",
            warnings.len()
        );
    }
    assert!(waters::warnings(&scenario, "fits").await?.is_empty());
    ponds
        .patch(
            "long",
            &json!({ "spec": { "service": "short", "colour": "brown" } }),
        )
        .await?;
    ponds.until_ready("long").await?;
    scenario.objects("services").fetch("short").await?;
    scenario.check_running()
}

/// Waits until the Pond's conditions and an Event report that it fails because of `word`.
async fn the_resource_says_so(scenario: &Scenario, name: &str, word: &str) -> Result<()> {
    let says = |pond: &Value| {
        let ready = condition(pond, "Ready").cloned().unwrap_or_default();
        ready["status"] == "False"
            && waters::text(&ready, "/message").contains(word)
            && condition(pond, "Stalled").is_some()
    };
    scenario
        .objects("ponds")
        .until(
            name,
            &format!("is Ready=False and Stalled because of {word}"),
            LIMIT,
            says,
        )
        .await?;
    eventually("an Event reports it", LIMIT, async || {
        Ok((!waters::warnings(scenario, name).await?.is_empty()).then_some(()))
    })
    .await
}

/// Checks that no retry is scheduled after the controller has processed its own writes: each of them is a change of the resource or
/// of a child, and triggers one more pass.
async fn nothing_is_retried(scenario: &Scenario) -> Result<()> {
    scenario.until_settled().await?;
    scenario.until_at_rest("pond").await.map(drop)
}
