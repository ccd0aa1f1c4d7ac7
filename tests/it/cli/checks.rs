//! `ork validate` and `ork convert`: the problems that they report, and the changes that they make in files.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::{EXAMPLE, ork, run};

#[test]
fn validate_fails_for_errors_and_with_strict_for_warnings() {
    let (code, out, err) = run(&["validate", "--strict", "examples"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("no problems"), "{err}");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("k.yaml");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE)).unwrap();
    let old = text.replace("orkestra.orkspace.io/v1", "orkestra.konductor.io/v1Alpha");
    fs::write(&file, old).unwrap();
    let name = file.to_str().unwrap();
    let (code, _, err) = run(&["validate", name]);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("warning[ORK0004]") && err.contains("1 warning"),
        "{err}"
    );
    assert_eq!(run(&["validate", "--strict", name]).0, 1);
    let (code, out, err) = run(&["validate", "--output", "json", name, "not/there"]);
    assert_eq!((code, err.as_str()), (1, ""));
    let problems: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(problems[0]["severity"], "warning");
    assert_eq!(problems[1]["file"], "not/there");
    assert_eq!(problems[1].as_object().unwrap().len(), 8);
    let here = ork().arg("validate").current_dir(&folder).output().unwrap();
    assert_eq!(here.status.code(), Some(0));
    let said = String::from_utf8(here.stderr).unwrap();
    assert!(
        said.contains("k.yaml:") && said.contains("1 file: 1 warning"),
        "{said}"
    );
    let said = run(&[
        "validate",
        "-f",
        name,
        "-k",
        EXAMPLE,
        "examples/02-environments",
    ])
    .2;
    assert!(said.contains(" files: 1 warning"), "{said}");
    let (code, out, _) = run(&["validate", "--types", "examples/01-hello-website"]);
    assert_eq!(code, 0);
    assert!(out.contains(": .spec.replicas: integer"), "{out}");
    let (_, out, _) = run(&["validate", "--types", "examples/20-motif"]);
    assert!(out.contains("database.yaml:34:"), "places in Motifs: {out}");
    let (code, out, _) = run(&["validate", "--explain-admission", "examples/31-house-rules"]);
    assert!(
        code == 0 && out.contains(": validation of ") && out.contains(": passes: "),
        "{out}"
    );
}

#[test]
fn convert_prints_checks_and_writes_and_leaves_what_is_no_yaml() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("k.yaml");
    let example = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE)).unwrap();
    let old = example.replace("onReconcile:", "# made\n        onReconcile:");
    let old = old.replace("orkestra.orkspace.io/v1", "orkestra.konductor.io/v1Alpha");
    fs::write(&file, &old).unwrap();
    let name = file.to_str().unwrap();
    let today = old.replace("orkestra.konductor.io/v1Alpha", "orkestra.orkspace.io/v1");

    let (code, out, err) = run(&["convert", name]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, today.as_str(), ""));
    let (code, out, err) = run(&["convert", "--check", name]);
    assert_eq!((code, out.as_str()), (1, ""));
    let said = err.contains("warning[ORK0004]") && err.contains("k.yaml would be changed");
    assert!(said, "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    let (code, out, err) = run(&["convert", "--in-place", name]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), today);
    assert_eq!(
        run(&["convert", "--check", name]),
        (0, String::new(), String::new())
    );

    let broken = folder.path().join("broken.yaml");
    fs::write(&broken, "kind: Katalog\nspec: [\n").unwrap();
    let broken = broken.to_str().unwrap();
    let (code, _, err) = run(&["convert", "--in-place", broken, name]);
    assert_eq!(code, 1);
    assert!(err.contains("broken.yaml:"), "{err}");
    assert_eq!(
        fs::read_to_string(broken).unwrap(),
        "kind: Katalog\nspec: [\n"
    );
    assert_eq!(run(&["convert", "--in-place", "-"]).0, 1);
    assert_eq!(run(&["convert"]).0, 2);
}

#[test]
fn an_entry_that_runs_only_from_files_is_a_warning_with_the_lines_to_add() {
    let folder = TempDir::new().unwrap();
    let katalog = fs::read_to_string("examples/02-environments/katalog.yaml").unwrap();
    let (before, rest) = katalog.split_once("      apiTypes:").unwrap();
    let (_, after) = rest.split_once("      operatorBox:").unwrap();
    let file = folder.path().join("katalog.yaml");
    fs::write(&file, format!("{before}      operatorBox:{after}")).unwrap();
    fs::copy(
        "examples/02-environments/crd.yaml",
        folder.path().join("crd.yaml"),
    )
    .unwrap();
    let (code, _, err) = run(&["validate", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("katalog.yaml:9:16"), "{err}");
    assert!(
        err.contains(
            "add `apiTypes: {group: demo.orkestra.io, version: v1, kind: App, plural: apps}`"
        ),
        "{err}"
    );
}
