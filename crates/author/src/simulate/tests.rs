//! Simulations of small Katalogs.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::{
    Init, InitError, SimulateOptions, Simulated, init, simulate, to_json, to_junit, to_text,
};

const KATALOG: &str = r#"apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox:
        onCreate:
          jobs:
            - name: "{{ .metadata.name }}-fill"
              image: hose:1
        onReconcile:
          external: [{ name: flags, url: "https://flags.example/" }]
          deployments:
            - name: "{{ .metadata.name }}"
              image: pump:1
              replicas: "{{ .spec.pumps }}"
          configMaps:
            - name: "{{ .metadata.name }}-fish"
              when: [{ field: spec.fish, exists: true }]
              data: { fish: "{{ .spec.fish }}", flag: "{{ .external.flags.body }}" }
        status:
          fields:
            - { path: ready, value: "{{ .children.deployment.status.readyReplicas }}", type: int }
            - { path: filled, value: "{{ .children.job.status.succeeded }}", type: int }
"#;

const POND: &str = "apiVersion: water.example/v1
kind: Pond
metadata: { name: north, namespace: east }
spec: { pumps: 2 }
";

/// A folder with the Katalog, a Pond and `simulate.yaml`.
struct Desk(TempDir);

impl Desk {
    fn new(spec: &str) -> Self {
        let desk = Self(TempDir::new().unwrap());
        desk.write("katalog.yaml", KATALOG);
        desk.write("cr.yaml", POND);
        desk.simulate("simulate.yaml", spec);
        desk
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a Simulate whose spec consists of its inputs and these lines.
    fn simulate(&self, name: &str, spec: &str) -> PathBuf {
        let lines: Vec<_> = spec.lines().map(|line| format!("  {line}\n")).collect();
        let lines = lines.concat();
        let head = "apiVersion: orkestra.orkspace.io/v1\nkind: Simulate\nmetadata: { name: north }\nspec:\n";
        self.write(
            name,
            &format!("{head}  katalog: katalog.yaml\n  cr: cr.yaml\n{lines}"),
        )
    }

    async fn run(&self) -> Simulated {
        simulate(
            &[self.0.path().join("simulate.yaml")],
            &SimulateOptions::default(),
        )
        .await
    }
}

/// Returns the problems, one per line.
fn reported(simulated: &Simulated) -> Vec<String> {
    let line = |problem: &orkestra_language::diagnostics::Diagnostic| {
        format!(
            "{}:{}: {}",
            problem.line.unwrap_or_default(),
            problem.path,
            problem.message
        )
    };
    simulated.problems.iter().map(line).collect()
}

/// Returns the differences of the failed checks.
fn diffs(simulated: &Simulated) -> Vec<String> {
    let checks = simulated.suites.iter().flat_map(|suite| &suite.checks);
    checks.flat_map(|check| check.diff.clone()).collect()
}

#[tokio::test]
async fn workloads_become_ready_and_the_status_follows() {
    let desk = Desk::new(
        "skipExternal: true
expect:
  steadyAt: 3
  noErrors: true
  ops:
    - { cycle: 1, verb: create, resource: deployments, name: north, namespace: east }
    - { verb: apply, resource: jobs.batch }
    - { cycle: 2, verb: patch, resource: ponds/status }
  absent: [{ resource: configmaps }, { verb: delete, resource: deployments }]
  status: { ready: 2, filled: 1 }
  conditions: [{ type: Ready, reason: ReconcileSucceeded }, { type: Stalled, status: 'False' }]
  resources: [{ kind: Deployment, name: north, ready: true, count: 1, fields: { spec.replicas: '2' } }]",
    );
    let simulated = desk.run().await;
    assert_eq!(reported(&simulated), [""; 0]);
    assert!(simulated.is_passed(), "{}", to_text(&simulated));
    // The result does not depend on the time of the run.
    assert_eq!(to_text(&simulated), to_text(&desk.run().await));
}

#[tokio::test]
async fn scripted_outcomes_and_changes_of_users_are_seen_by_passes() {
    let desk = Desk::new(
        "external: { flags: { body: blue } }
outcomes:
  - { kind: Job, result: failed }
  - { kind: Deployment, after: 4 }
changes: [{ after: 5, patch: { spec: { fish: tench, pumps: 3 } } }, { after: 7, patch: { spec: { fish: null } } }]
expect:
  ops:
    - { cycle: 6, verb: create, resource: configmaps, name: north-fish }
    - { cycle: 6, verb: update, resource: deployments }
    - { cycle: 8, verb: delete, resource: configmaps }
  conditions: [{ type: Ready, status: 'False', reason: ChildFailed }]
  resources: [{ kind: ConfigMap, count: 0 }, { kind: Deployment, fields: { spec.replicas: 3 } }]",
    );
    let simulated = desk.run().await;
    assert_eq!(reported(&simulated), [""; 0]);
    assert!(simulated.is_passed(), "{}", to_text(&simulated));
    let text = to_text(&simulated);
    for part in [
        "Job.batch east/north-fill has failed",
        "is changed by its user",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_deleted_resource_goes_by_the_steps_of_its_end() {
    let desk = Desk::new(
        "skipExternal: true
outcomes: [{ kind: Job, name: north-save, after: 5 }]
changes: [{ after: 3, delete: true }]
expect:
  ops:
    - { cycle: 4, verb: create, resource: jobs, name: north-save }
    - { cycle: 6, verb: delete, resource: deployments }
    - { cycle: 7, verb: patch, resource: ponds }
  absent: [{ cycle: 5, verb: delete, resource: deployments }, { cycle: 8, verb: create, resource: deployments }]
  steadyAt: 8
  noErrors: true
  resources: [{ kind: Deployment, count: 0 }, { kind: Job, count: 0 }]",
    );
    let end = r#"        onDelete:
          ordered: true
          groups:
            - name: save
              jobs: [{ name: "{{ .metadata.name }}-save", image: "hose:1" }]
            - name: stop
              deployments: [{ name: "{{ .metadata.name }}", image: "pump:1" }]
        status:
"#;
    let katalog = KATALOG.replace("        status:\n", end);
    desk.write("katalog.yaml", &katalog);
    let simulated = desk.run().await;
    assert_eq!(reported(&simulated), [""; 0]);
    let text = to_text(&simulated);
    assert!(simulated.is_passed(), "{text}");
    for part in [
        "Pond.water.example east/north is deleted by its user",
        "Pond.water.example east/north is gone",
        "Job.batch east/north-fill is garbage-collected",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn what_is_not_met_is_shown_with_what_was_seen() {
    let desk = Desk::new(
        "expect:
  steadyAt: 1
  noErrors: true
  ops: [{ cycle: 1, verb: create, resource: configmaps }]
  absent: [{ verb: create, resource: ponds }]
  status: { ready: 5 }
  conditions: [{ type: Ready }]
  resources: [{ kind: Secret }]",
    );
    let simulated = desk.run().await;
    assert!(!simulated.is_passed());
    let diffs = diffs(&simulated).join("\n");
    for part in [
        "- nothing is done from cycle 1",
        "the call `flags` failed: a simulation makes no calls",
        "- create configmaps in cycle 1",
        "- status.ready: 5",
        "- Ready=True\n+ Ready=False",
        "- Secret: at least 1\n+ Secret: 0",
    ] {
        assert!(diffs.contains(part), "{part}: {diffs}");
    }
    let junit = to_junit(&simulated);
    assert!(
        junit.contains("<failure message=\"spec.expect.status is not met\">"),
        "{junit}"
    );
    let json = to_json(&simulated);
    assert_eq!(json["passed"], false);
    assert_eq!(json["simulations"][0]["cycles"][0]["cycle"], 1);
}

#[tokio::test]
async fn what_a_document_cannot_mean_is_reported_with_its_place() {
    for (spec, place) in [
        ("cykles: 3", "7:spec.cykles: unknown field"),
        ("target: web", "7:spec.target: `target` is not supported"),
        ("cycles: 0", "7:spec.cycles: 0 is too small"),
        ("at: noon", "7:spec.at: `noon` is not a time"),
        (
            "external: { flagz: {} }",
            "7:spec.external.flagz: no operator makes a call or has a hook `flagz`",
        ),
        (
            "outcomes: [{ kind: StatefulSet, result: failed }]",
            "7:spec.outcomes[0].result: a StatefulSet cannot",
        ),
        (
            "changes: [{ after: 11, patch: {} }]",
            "7:spec.changes[0].after: cycle 11 does not run",
        ),
        (
            "expect: { ops: [{ resource: ponds }] }",
            "7:spec.expect.ops[0]: `verb` is missing",
        ),
        (
            "expect: { absent: [{ resource: pods }] }",
            "7:spec.expect.absent[0].resource: the Katalog has no resource `pods`",
        ),
        (
            "expect: { ops: [{ include: a.yaml, cycle: 1 }] }",
            "7:spec.expect.ops[0].include: `include` excludes",
        ),
        (
            "expect: { ops: [{ include: a.yaml }] }",
            "7:spec.expect.ops[0].include: cannot read",
        ),
        (
            "expect: { crds: { pound: {} } }",
            "7:spec.expect.crds.pound: no custom resource of `pound`",
        ),
        (
            "expect: { resources: [{ kind: A, fields: { 'a[': 1 } }] }",
            "is not a path",
        ),
        ("imports: [b.yaml]", "7:spec.imports[0]: cannot be read"),
    ] {
        let simulated = Desk::new(spec).run().await;
        let reported = reported(&simulated).join("\n");
        assert!(reported.contains(place), "{spec}: {reported}");
        assert!(!simulated.is_passed(), "{spec}");
    }
}

#[tokio::test]
async fn suites_import_others_and_files_of_operations_are_included() {
    let desk = Desk::new(
        "skipExternal: true\nexpect: { ops: [{ include: more/ops.yaml }] }\nimports: [other.yaml]",
    );
    desk.write(
        "more/ops.yaml",
        "ops: [{ cycle: 2, verb: create, resource: jobs }]\n",
    );
    desk.simulate(
        "other.yaml",
        "skipExternal: true\nimports: [simulate.yaml]\nexpect: { steady: true }",
    );
    let simulated = desk.run().await;
    assert_eq!(reported(&simulated), [""; 0]);
    let passed: Vec<bool> = simulated
        .suites
        .iter()
        .map(super::SimulationReport::is_passed)
        .collect();
    assert_eq!(passed, [false, true], "{}", to_text(&simulated));
    // Each file of the folder is read once.
    let all = simulate(&[desk.0.path().join("...")], &SimulateOptions::default()).await;
    assert_eq!(all.suites.len(), 2);
    let suite = "apiVersion: orkestra.orkspace.io/v1\nkind: Simulate\nmetadata: { name: all }\nimports: [simulate.yaml]\n";
    let suite = desk.write("suite.yaml", suite);
    assert_eq!(
        simulate(&[suite], &SimulateOptions::default())
            .await
            .suites
            .len(),
        2
    );
}

#[tokio::test]
async fn init_writes_what_is_seen_and_keeps_the_rest_of_a_file() {
    let desk = Desk::new("skipExternal: true\n# A comment.\nexpect: { steadyAt: 1 }");
    let file = desk.0.path().join("simulate.yaml");
    let wanted = |force| Init {
        file: file.clone(),
        katalog: "katalog.yaml".to_owned(),
        resources: vec!["cr.yaml".to_owned()],
        definitions: Vec::new(),
        force,
        dry_run: false,
    };
    assert!(matches!(
        init(&wanted(false)).await,
        Err(InitError::Exists(_))
    ));
    assert!(matches!(
        init(&wanted(true)).await,
        Err(InitError::Unclear(_))
    ));
    desk.simulate(
        "simulate.yaml",
        "skipExternal: true\n# A comment.\nexpect:\n  steadyAt: 1",
    );
    let text = init(&wanted(true)).await.unwrap();
    assert!(
        text.contains("  # A comment.\n  expect:\n    noErrors: true\n    steadyAt: 3\n"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let simulated = desk.run().await;
    assert!(simulated.is_passed(), "{}", to_text(&simulated));
    fs::remove_file(&file).unwrap();
    let text = init(&wanted(false)).await.unwrap();
    // The call has no stubbed response.
    assert!(
        !text.contains("noErrors") && text.contains("status: \"False\""),
        "{text}"
    );
    assert!(desk.run().await.is_passed());
    assert_eq!(fs::read_dir(desk.0.path()).unwrap().count(), 3);
}
