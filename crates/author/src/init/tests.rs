//! The files that `ork init` writes for a name.

use tempfile::TempDir;

use super::*;
use orkestra_loader::files::validate;

#[tokio::test]
async fn what_is_made_is_valid_and_renders_to_what_it_expects() {
    for (name, kind, group) in [
        ("frog-pond", None, None),
        ("null", None, Some("water.example")),
        ("on", Some("True"), Some("1.2")),
        ("3d", Some("Box"), None),
        ("city", None, None),
        ("a", None, None),
        ("x23456789-123456789-123456789-123456789", None, None),
    ] {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("deep").join(name);
        let written = Scaffold::new(name, kind, group)
            .unwrap()
            .write(&root)
            .await
            .unwrap();
        assert!(
            written.iter().all(|file| root.join(file).exists()),
            "{name}"
        );
        let found = validate(std::slice::from_ref(&root)).await;
        assert!(found.problems.is_empty(), "{name}: {}", found.problems);
        assert_eq!(found.katalogs.len(), 1, "{name}");
        let made = fs::read_to_string(root.join(EXPECTED)).unwrap();
        for part in ["kind: Deployment", "kind: Service", "replicas: 2"] {
            assert!(made.contains(part), "{name}: {made}");
        }
        for (file, _) in TEMPLATES.into_iter().chain(COMMON) {
            let text = fs::read_to_string(root.join(file)).unwrap();
            assert!(!text.contains("[["), "{file}: {text}");
        }
        assert_editors_are_helped(&root);
        assert_columns(&root);
    }
}

/// Checks that the first line of the Katalog names a schema in the same folder, which accepts the Katalog.
fn assert_editors_are_helped(root: &Path) {
    let katalog = fs::read_to_string(root.join(KATALOG)).unwrap();
    let first = katalog.lines().next().unwrap();
    let schema = first
        .strip_prefix("# yaml-language-server: $schema=")
        .unwrap();
    let schema = fs::read_to_string(root.join(schema)).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let katalog = serde_saphyr::from_str(&katalog).unwrap();
    let wrong: Vec<String> = schema
        .iter_errors(&katalog)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Checks that `kubectl get` shows the condition, and that a new object is in progress.
fn assert_columns(root: &Path) {
    let crd = fs::read_to_string(root.join(CRD)).unwrap();
    let crd: serde_json::Value = serde_saphyr::from_str(&crd).unwrap();
    let version = &crd["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    for name in ["Ready", "Reason", "Age"] {
        assert!(names.contains(&&name.into()), "{names:?}");
    }
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
    assert_eq!(status["default"]["observedGeneration"], -1);
}

#[test]
fn a_folder_names_the_katalog_as_far_as_it_can() {
    for (folder, name) in [
        ("/ponds/Frog Pond_2", Some("frog-pond-2")),
        ("/ponds/--", None),
        ("/", None),
        ("/3d", None),
        (
            "/x123456789-123456789-123456789-12345678-tail",
            Some("x123456789-123456789-123456789-12345678"),
        ),
    ] {
        let found = name_of_folder(Path::new(folder));
        assert_eq!(found.as_deref(), name, "{folder}");
    }
}

#[tokio::test]
async fn nothing_is_overwritten() {
    let folder = TempDir::new().unwrap();
    let scaffold = Scaffold::new("pond", None, None).unwrap();
    scaffold.write(folder.path()).await.unwrap();
    fs::write(folder.path().join("katalog.yaml"), "mine").unwrap();
    let again = scaffold.write(folder.path()).await;
    assert!(matches!(again, Err(Error::NotEmpty(_))), "{again:?}");
    let file = folder.path().join("katalog.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(scaffold.write(&file).await.is_err(), "the target is a file");
}

#[test]
fn names_that_kubernetes_refuses_are_reported() {
    let long = "x".repeat(41);
    for (name, kind, group) in [
        ("Pond", None, None),
        ("", None, None),
        ("a.b", None, None),
        (&*long, None, None),
        ("-x", None, None),
        ("3d", None, None),
        ("pond", Some("pond"), None),
        ("pond", Some("Po nd"), None),
        ("pond", None, Some("nodots")),
        ("pond", None, Some("k8s.io")),
        ("pond", None, Some("water.kubernetes.io")),
        ("pond", None, Some("UPPER.example")),
    ] {
        let made = Scaffold::new(name, kind, group);
        assert!(
            matches!(made, Err(Error::Name { .. })),
            "{name} {kind:?} {group:?}"
        );
    }
}
