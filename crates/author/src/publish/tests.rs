//! Artifacts from folders: their summary, and the folders that are rejected.

use std::fs;

use super::*;
use orkestra_loader::compose::DiskFiles;

const KATALOG: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata:
  name: shop
  version: 1.2.0
  description: Shops
  author: one
  tags: [web]
  deprecation:
    message: replaced
    timeline: { from: 2026-01-01, to: 2026-06-01 }
spec:
  crds:
    shop:
      apiTypes: { group: example.org, version: v1, kind: Shop, plural: shops }
      operatorBox:
        onReconcile:
          configMaps:
            - name: "{{ .metadata.name }}"
              data: { a: b }
"#;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[tokio::test]
async fn an_artifact_says_what_it_declares_needs_and_when_it_ends() {
    let folder = folder(&[("katalog.yaml", KATALOG), ("README.md", "# Shops")]);
    let prepared = prepare(folder.path(), &DiskFiles).await.unwrap();
    let Summary {
        name,
        version,
        declares,
        permissions,
        author,
        ..
    } = &prepared.summary;
    assert_eq!(
        (&**name, version.as_deref(), author.as_deref()),
        ("shop", Some("1.2.0"), Some("one"))
    );
    assert_eq!(declares[0].api_version, "example.org/v1");
    assert!(
        permissions
            .iter()
            .any(|rule| rule.resources.contains(&"configmaps".to_owned())),
        "{permissions:?}"
    );
    let lifecycle = prepared.lifecycle.unwrap();
    assert_eq!(lifecycle.to.unwrap().to_string(), "2026-06-01");
    assert_eq!(
        prepared.artifact.manifest.annotations["io.orkestra.deprecated"],
        "true"
    );
    let again = prepare(folder.path(), &DiskFiles).await.unwrap();
    assert_eq!(again.artifact.bytes, prepared.artifact.bytes);
}

#[tokio::test]
async fn documents_with_errors_or_with_files_elsewhere_are_not_pushed() {
    let wrong = folder(&[(
        "katalog.yaml",
        &KATALOG.replace("operatorBox", "operatorBix"),
    )]);
    assert!(matches!(
        prepare(wrong.path(), &DiskFiles).await,
        Err(Error::Invalid(_))
    ));
    let neither = folder(&[("crd.yaml", "a: 1")]);
    assert!(matches!(
        prepare(neither.path(), &DiskFiles).await,
        Err(Error::Kind { found: "none", .. })
    ));
    let outer = folder(&[
        (
            "inner/katalog.yaml",
            &KATALOG.replace("spec:\n", "spec:\n  imports: [{ motif: ../motif.yaml }]\n"),
        ),
        (
            "motif.yaml",
            "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: { name: m }\nspec: { notes: {} }\n",
        ),
    ]);
    let error = prepare(&outer.path().join("inner"), &DiskFiles)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Outside(_)), "{error:?}");
}

#[tokio::test]
async fn days_that_are_none_or_in_the_wrong_order_are_errors() {
    for (timeline, why) in [
        ("{ from: 2026-06-01, to: 2026-06-01 }", "later than"),
        ("{ to: 2026-02-30 }", "is not a date"),
        ("{ to: soon }", "is not a date"),
    ] {
        let text = KATALOG.replace("{ from: 2026-01-01, to: 2026-06-01 }", timeline);
        let folder = folder(&[("katalog.yaml", &text)]);
        let Err(Error::Invalid(validated)) = prepare(folder.path(), &DiskFiles).await else {
            panic!("{timeline}")
        };
        let said = format!("{:?}", validated.problems);
        assert!(said.contains(why), "{said}");
    }
}
