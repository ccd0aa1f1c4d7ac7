use serde_json::json;

use super::*;

#[test]
fn a_katalog_in_the_cluster_claims_what_it_declares_and_not_what_is_disabled() {
    let object = json!({ "spec": { "crds": {
        "pond": { "apiTypes": { "group": "water.example", "kind": "Pond" } },
        "lake": { "enabled": false, "apiTypes": { "group": "water.example", "kind": "Lake" } },
        "odd": { "apiTypes": 7 },
    }}});
    assert_eq!(
        declared(&object),
        [("water.example".to_owned(), "Pond".to_owned())]
    );
}

#[tokio::test]
// Over 60 lines: two documents, and the ways to name them.
async fn a_folder_and_definitions_among_the_files_are_known() {
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let katalog = write(
        "katalog.yaml",
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: lans }
spec:
  crds:
    lan:
      apiTypes: { group: cases.example.com, version: v1, kind: Lan, plural: lans }
      operatorBox:
        onReconcile:
          custom:
            - apiVersion: k8s.cni.cncf.io/v1
              kind: NetworkAttachmentDefinition
              metadata: { name: '{{ .metadata.name }}' }
              spec: { config: '{{ .spec.config }}' }
",
    );
    let crd = write(
        "nad.crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: network-attachment-definitions.k8s.cni.cncf.io }
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: { plural: network-attachment-definitions, kind: NetworkAttachmentDefinition }
  versions:
    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
",
    );
    write(
        "service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: { name: x }\n",
    );
    write(
        "lan.yaml",
        "apiVersion: cases.example.com/v1\nkind: Lan\nmetadata: { name: x }\n",
    );
    for paths in [
        vec![katalog.clone(), crd.clone()],
        vec![crd.clone(), katalog.clone()],
        vec![folder.path().to_owned()],
    ] {
        let schemas = Schemas::default();
        let compiled = super::super::compile_files(
            &paths,
            &schemas,
            &orkestra_loader::compose::DiskFiles,
            false,
        );
        let (plans, warnings) = compiled.await.unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let permissions = orkestra_plan::rbac::permissions(&plans[0]);
        let text = format!("{permissions:?}");
        assert!(text.contains("network-attachment-definitions"), "{text}");
    }
    // A definition alone is not a Katalog.
    let (only, schemas) = ([crd], Schemas::default());
    let compiled =
        super::super::compile_files(&only, &schemas, &orkestra_loader::compose::DiskFiles, false);
    let error = compiled.await.unwrap_err();
    assert!(error.to_string().contains("no Katalog"), "{error}");
}

/// Fetches every source as this artifact.
#[derive(Debug)]
struct OneArtifact(std::sync::Arc<orkestra_compiler::compose::Artifact>);

impl Fetch for OneArtifact {
    fn fetch<'a>(
        &'a self,
        _: &'a orkestra_compiler::compose::SourceRequest,
    ) -> futures::future::BoxFuture<'a, orkestra_loader::compose::Fetched> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// Loads a Komposer with this `spec`, whose source is a Katalog with a chart in its `setup`, beside `values.yaml` on disk.
async fn of_source(spec: &str, chart: &str) -> Result<Vec<LoadedKatalog>, FileError> {
    use orkestra_compiler::compose::{Artifact, Fetched};
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("komposer.yaml");
    let komposer = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{ name: waters }}\nsources: {{ registry: [{{ url: 'r.example/ponds:v1' }}] }}\nspec: {{ {spec} }}\n"
    );
    std::fs::write(&path, komposer).unwrap();
    std::fs::write(folder.path().join("values.yaml"), "on: disk\n").unwrap();
    let katalog = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: ponds }}\nspec:\n  crds:\n    pond:\n      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}\n      setup: {{ helm: [{chart}] }}\n"
    );
    let file = |name: &str, text: &str| Fetched {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let fetch = OneArtifact(std::sync::Arc::new(Artifact {
        url: "oci://r.example/ponds:v1".to_owned(),
        digest: format!("sha256:{}", "ab".repeat(32)),
        documents: vec![
            file("katalog.yaml", &katalog),
            file("values.yaml", "of: artifact\n"),
        ],
        ..Artifact::default()
    }));
    let contents = read(&[path]).await?;
    let gathered = gather(&contents, &fetch, false).await;
    let (loaded, _) = gathered.compile(&Schemas::default(), &fetch).await?;
    Ok(loaded)
}

#[tokio::test]
async fn files_of_a_chart_are_those_of_the_artifact_that_names_it() {
    let remote = "repo: 'https://charts.example', chart: reeds";
    let loaded = of_source("", &format!("{{ {remote}, valueFiles: [values.yaml] }}")).await;
    let chart = &loaded.unwrap()[0].entries[0].charts[0];
    assert_eq!(chart.values[0].read().await.unwrap(), "of: artifact\n");
    assert!(chart.lock.is_none());
    for file in ["/etc/hostname", "../values.yaml", "x://../../etc/hostname"] {
        let refused = of_source("", &format!("{{ {remote}, valueFiles: ['{file}'] }}")).await;
        assert!(matches!(refused, Err(FileError::Invalid(_))), "{file}");
    }
    for chart in [".", "/tmp", "../chart"] {
        let refused = of_source("", &format!("{{ chart: '{chart}' }}")).await;
        assert!(matches!(refused, Err(FileError::Invalid(_))), "{chart}");
    }
    // The values of the user's own document are beside it.
    let own = format!(
        "crds: {{ pond: {{ setup: {{ helm: [{{ {remote}, valueFiles: [values.yaml] }}] }} }} }}"
    );
    let loaded = of_source(&own, &format!("{{ {remote} }}")).await.unwrap();
    let chart = &loaded[0].entries[0].charts[0];
    assert_eq!(
        chart.values[0].read().await.ok(),
        None,
        "the folder is gone"
    );
    assert!(chart.values[0].path.ends_with("values.yaml"));
}

#[tokio::test]
async fn a_chart_must_be_locked_if_the_composition_requires_it() {
    let locked = format!(
        "lock: required, locked: {{ 'oci://r.example/ponds:v1': 'sha256:{}' }}",
        "ab".repeat(32)
    );
    let remote = "{ repo: 'https://charts.example', chart: reeds }";
    let loaded = of_source(&locked, remote).await.unwrap();
    let chart = &loaded[0].entries[0].charts[0];
    let lock = chart.lock.as_ref().unwrap();
    let why = lock
        .check_chart("chart+https://charts.example/reeds@*", b"x")
        .unwrap_err();
    assert!(why.contains("is not locked"), "{why}");
}
