//! Validation of files and folders: which files are read, and how problems are reported.

use std::{fs, path::Path};

use orkestra_language::diagnostics::{Code, Diagnostic};
use tempfile::TempDir;

use super::{Validated, validate};

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ponds.water.example }
spec:
  group: water.example
  scope: Namespaced
  names: { kind: Pond, plural: ponds }
  versions:
    - { name: v1, served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: { type: object } } }
";

/// Returns a Katalog whose only entry contains `declared`.
fn katalog(declared: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: waters }}\nspec:\n  crds:\n    pond:\n      {declared}\n"
    )
}

const TYPES: &str = "apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Validates paths of a folder.
async fn validated(folder: &TempDir, paths: &[&str]) -> Validated {
    let paths: Vec<_> = paths.iter().map(|path| folder.path().join(path)).collect();
    validate(&paths).await
}

/// Returns the problems as `file:line code`, with the path relative to the folder.
fn reported(folder: &TempDir, found: &Validated) -> Vec<String> {
    let line = |problem: &Diagnostic| {
        let file = Path::new(problem.file.as_deref().unwrap_or_default());
        let file = file.strip_prefix(folder.path()).unwrap_or(file);
        let line = problem
            .line
            .map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line} {:?}", file.display(), problem.code)
    };
    found.problems.iter().map(line).collect()
}

#[tokio::test]
async fn a_folder_is_read_whole_and_other_objects_are_passed_over() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: { name: x }\n";
    let mixed = format!("{service}---\n{}", katalog("workerz: 3"));
    let folder = folder(&[
        ("b/katalog.yaml", &katalog(TYPES)),
        ("b/service.yml", service),
        ("values.yaml", "replicas: 3\n"),
        ("a.yaml", &mixed),
        (".hidden/k.yaml", &katalog("workerz: 3")),
        ("notes.txt", &katalog("workerz: 3")),
    ]);
    let found = validated(&folder, &["."]).await;
    assert_eq!(reported(&folder, &found), ["a.yaml:11 UnknownField"]);
    assert_eq!((found.katalogs.len(), found.texts.len()), (1, 4));
}

#[tokio::test]
async fn templates_of_charts_and_pipes_in_a_folder_are_passed_over() {
    let chart = "kind: Service\nmetadata:\n  name: {{ .Release.Name }}\n{{- if .Values.x }}\n";
    let folder = folder(&[
        ("k.yaml", &katalog(TYPES)),
        ("chart/templates/service.yaml", chart),
    ]);
    #[cfg(unix)]
    let _socket =
        std::os::unix::net::UnixListener::bind(folder.path().join("socket.yaml")).unwrap();
    let found = validated(&folder, &["."]).await;
    assert_eq!(reported(&folder, &found), [""; 0]);
    assert_eq!(found.katalogs.len(), 1);
    // A file that is passed explicitly is always checked.
    let found = validated(&folder, &["chart/templates/service.yaml"]).await;
    assert_eq!(reported(&folder, &found).len(), 1);
}

#[tokio::test]
async fn definitions_among_the_files_are_known_to_every_katalog() {
    let lacks = katalog("operatorBox: { status: { fields: [{ path: fish, value: x }] } }");
    let wrong = lacks.replace(
        "      operatorBox",
        &format!("      {TYPES}\n      operatorBox"),
    );
    let folder = folder(&[("k.yaml", &wrong), ("crd.yaml", CRD)]);
    let alone = validated(&folder, &["k.yaml"]).await;
    assert_eq!(reported(&folder, &alone), [""; 0]);
    let both = validated(&folder, &["k.yaml", "crd.yaml"]).await;
    assert_eq!(
        reported(&folder, &both),
        ["k.yaml:8 StatusUnknown"],
        "{:?}",
        both.problems
    );
}

#[tokio::test]
async fn a_path_without_a_katalog_is_an_error_that_names_it() {
    let folder = folder(&[
        ("k.yaml", &katalog(TYPES)),
        ("crd.yaml", CRD),
        ("s.yaml", "apiVersion: v1\nkind: Service\n"),
        ("empty.yaml", "# nothing\n"),
        ("none/readme.md", ""),
    ]);
    for path in ["crd.yaml", "s.yaml", "empty.yaml", "none"] {
        let found = validated(&folder, &[path]).await;
        assert_eq!(reported(&folder, &found), [format!("{path} NoDocument")]);
    }
    let found = validated(&folder, &["k.yaml", "s.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["s.yaml NoDocument"]);
    let found = validated(&folder, &["gone.yaml", "k.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["gone.yaml Unreadable"]);
    assert_eq!(found.katalogs.len(), 1, "the other file is skipped");
}

#[tokio::test]
async fn a_file_is_read_once_however_it_is_named() {
    let folder = folder(&[("k.yaml", &katalog("workerz: 3"))]);
    let found = validated(&folder, &["k.yaml", ".", "./k.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["k.yaml:7 UnknownField"]);
}

#[tokio::test]
async fn a_named_file_that_does_not_say_what_it_is_is_meant_to_be_a_katalog() {
    let folder = folder(&[("k.yaml", "spec: { crds: {} }\n")]);
    let found = validated(&folder, &["k.yaml"]).await;
    assert_eq!(
        reported(&folder, &found),
        ["k.yaml:1 ApiVersion", "k.yaml:1 DocumentKind"]
    );
}

#[tokio::test]
async fn all_mistakes_of_a_file_are_reported_in_their_order() {
    let text = format!(
        "{}---\na: [\n---\n{}",
        katalog(
            "workerz: 3\n      operatorBox: { onCreate: { configMaps: [{ name: '{{ nope }}' }] } }"
        ),
        katalog(
            "crdFile: gone.yaml\n      operatorBox: { onCreate: { configMaps: [{ name: '{{ nope }}' }] } }"
        ),
    );
    let folder = folder(&[("k.yaml", &text)]);
    let found = validated(&folder, &["k.yaml"]).await;
    assert_eq!(
        reported(&folder, &found),
        [
            "k.yaml:7 UnknownField",
            "k.yaml:8 UnknownNote",
            "k.yaml:10 Syntax",
            "k.yaml:18 Unreadable",
            "k.yaml:19 UnknownNote",
        ]
    );
}

#[tokio::test]
async fn text_that_is_no_text_is_reported() {
    let folder = folder(&[]);
    fs::write(folder.path().join("k.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let found = validated(&folder, &["k.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["k.yaml Unreadable"]);
    assert!(found.problems.0[0].message.contains("UTF-8"));
    #[cfg(unix)]
    {
        let endless = validate(&[Path::new("/dev/zero").to_owned()]).await;
        assert_eq!(endless.problems.0[0].code, Code::Unreadable);
    }
}

/// Writes the sample of a diagnostic code to files, with the CRDs in the file that `crdFile` names.
fn of_sample(sample: &str) -> TempDir {
    let (crds, others): (Vec<&str>, Vec<&str>) = sample
        .split("---\n")
        .partition(|document| document.contains("kind: CustomResourceDefinition"));
    folder(&[
        ("crd.yaml", &crds.join("---\n")),
        ("k.yaml", &others.join("---\n")),
    ])
}

#[tokio::test]
async fn the_samples_of_codes_of_files_are_correct() {
    let codes = [
        Code::Unreadable,
        Code::CrdFile,
        Code::RefusedDefinition,
        Code::NoStatusSubresource,
    ];
    for code in codes {
        let explained = code.explain();
        let wrong = of_sample(explained.wrong);
        let found = validated(&wrong, &["k.yaml"]).await;
        let codes: Vec<_> = found.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [code]);
        let right = of_sample(explained.right);
        let found = validated(&right, &["k.yaml"]).await;
        assert!(found.problems.is_empty(), "{code}: {}", found.problems);
    }
}

const MOTIF: &str = "apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: reeds }
inputs: [{ name: height }]
resources:
  configMaps: [{ name: '{{ .metadata.name }}', data: { height: '{{ .inputs.height }}' } }]
";

#[tokio::test]
async fn a_motif_is_found_by_its_path_and_by_its_name() {
    let of = |motif: &str| katalog(&format!("{TYPES}\n      imports: [{{ motif: {motif} }}]"));
    let (by_path, by_name) = (of("../motifs/reeds.yaml"), of("reeds"));
    let folder = folder(&[
        ("ponds/path.yaml", &by_path),
        ("ponds/name.yaml", &by_name),
        ("motifs/reeds.yaml", MOTIF),
    ]);
    let found = validated(&folder, &[""]).await;
    assert_eq!(reported(&folder, &found), Vec::<String>::new());
    let children = found.katalogs.iter();
    let children: Vec<_> = children
        .map(|katalog| katalog.plan.operators[0].children.len())
        .collect();
    assert_eq!(children, [1, 1]);

    let found = validated(&folder, &["ponds/path.yaml"]).await;
    assert_eq!(reported(&folder, &found), Vec::<String>::new());
    let found = validated(&folder, &["ponds/name.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["ponds/name.yaml:8 NotFound"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_motif_is_reported_once_and_also_when_nobody_imports_it() {
    let wrong = MOTIF.replace(".inputs.height", ".inputs.hight");
    let imports = katalog(&format!(
        "{TYPES}\n      imports: [{{ motif: reeds.yaml }}]"
    ));
    let folder = folder(&[
        ("katalog.yaml", &imports),
        ("other.yaml", &imports.replace("waters", "others")),
        ("reeds.yaml", &wrong),
    ]);
    let here = ["reeds.yaml:6 UnknownInput"];
    assert_eq!(
        reported(&folder, &validated(&folder, &["reeds.yaml"]).await),
        here
    );
    let found = validated(&folder, &["katalog.yaml", "other.yaml"]).await;
    assert_eq!(reported(&folder, &found), here);
}

const TYPED_CRD: &str = "apiVersion: apiextensions.k8s.io/v1
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
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { depth: { type: integer } } }
";

#[tokio::test]
async fn custom_resources_among_the_files_are_checked() {
    let rules = format!(
        "{TYPES}\n      validation:\n        rules:\n        - {{ field: spec.depth, exists: true, message: a pond needs a depth }}\n        - {{ field: spec.depth, equals: 3, optional: true, message: ponds are 3 deep }}"
    );
    let pond = |spec: &str| {
        format!(
            "apiVersion: water.example/v1\nkind: Pond\nmetadata: {{ name: north }}\nspec:\n  {spec}\n"
        )
    };
    let folder = folder(&[
        ("katalog.yaml", &katalog(&rules)),
        ("crd.yaml", TYPED_CRD),
        ("a-good.yaml", &pond("depth: 3")),
        ("b-text.yaml", &pond("depth: three")),
        (
            "c-list.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: water.example/v1\n  kind: Pond\n  metadata: { name: a }\n  spec: { dept: 3 }\n",
        ),
        ("d-missing.yaml", &pond("{}")),
        ("e-deep.yaml", &pond("depth: 4")),
        (
            "chart/templates/pond.yaml",
            &pond("depth: {{ .Values.depth }}"),
        ),
    ]);
    let expected = [
        "b-text.yaml:5 RefusedResource",
        "c-list.yaml:7 RefusedResource",
        // The field is missing: the position is that of the map that lacks it, which is its key.
        "d-missing.yaml:4 RuleViolated",
        "e-deep.yaml:5 RuleViolated",
    ];
    assert_eq!(
        reported(&folder, &validated(&folder, &["."]).await),
        expected
    );
    // Files that were named, without the folder.
    let found = validated(&folder, &["katalog.yaml", "crd.yaml", "b-text.yaml"]).await;
    assert_eq!(reported(&folder, &found), ["b-text.yaml:5 RefusedResource"]);
    let found = validated(&folder, &["crd.yaml", "b-text.yaml"]).await;
    assert_eq!(
        reported(&folder, &found)[0],
        "b-text.yaml:5 RefusedResource",
        "{}",
        found.problems
    );
}

#[tokio::test]
async fn the_sample_of_a_violated_rule_is_correct() {
    let explained = Code::RuleViolated.explain();
    for (sample, expected) in [
        (explained.wrong, vec![Code::RuleViolated]),
        (explained.right, vec![]),
    ] {
        let folder = folder(&[("all.yaml", sample)]);
        let found = validated(&folder, &["all.yaml"]).await;
        let codes: Vec<_> = found.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, expected, "{}", found.problems);
    }
}

#[tokio::test]
async fn a_definition_is_checked_where_it_is_named_and_among_the_files() {
    let wrong = TYPED_CRD.replace("type: integer", "type: int");
    let named = format!("crdFile: crd.yaml\n      {TYPES}");
    let folder = folder(&[("katalog.yaml", &katalog(&named)), ("crd.yaml", &wrong)]);
    let expected = ["crd.yaml:16 RefusedDefinition"];
    for paths in [&["katalog.yaml"][..], &["katalog.yaml", "crd.yaml"], &["."]] {
        let found = validated(&folder, paths).await;
        assert_eq!(reported(&folder, &found), expected, "{paths:?}");
    }
}

#[tokio::test]
async fn a_disabled_entry_needs_no_definition() {
    for declared in [
        "crdFile: crd.yaml\n      enabled: false",
        "crdFile: elsewhere.yaml\n      enabled: false",
    ] {
        let folder = folder(&[("katalog.yaml", &katalog(declared)), ("crd.yaml", CRD)]);
        let found = validated(&folder, &["katalog.yaml"]).await;
        assert_eq!(
            reported(&folder, &found),
            Vec::<String>::new(),
            "{declared}"
        );
        assert_eq!(found.katalogs.len(), 1);
    }
}
