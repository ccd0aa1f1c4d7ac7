//! `ork e2e`: tests of Katalogs on a real control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{ControlPlane, Options};

/// Runs `ork e2e` with the control plane's own kubectl.
fn e2e(cluster: &ControlPlane, args: &[&str]) -> Result<Output> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = cluster.assets().folder().to_path_buf();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
    command
        .arg("e2e")
        .args(args)
        .env("PATH", path)
        .env("KUBECACHEDIR", cluster.folder().join("e2e-cache"))
        .env_remove("KUBECONFIG")
        .env_remove("KUBEBUILDER_ASSETS");
    Ok(command.output()?)
}

/// Runs `ork e2e` on that control plane.
fn on(cluster: &ControlPlane, args: &[&str]) -> Result<Output> {
    let admin = cluster.admin();
    let kubeconfig = admin.kubeconfig_path().to_str().context("not UTF-8")?;
    e2e(cluster, &[args, &["--kubeconfig", kubeconfig]].concat())
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Returns the names of all objects of a kind, in all namespaces.
fn names(cluster: &ControlPlane, kind: &str) -> Result<String> {
    let args = ["get", kind, "-A", "-o", "name"];
    let output = cluster.kubectl(&cluster.admin(), &args, None)?;
    Ok(text(&output).0)
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name)
}

/// Runs on its own control plane, because it checks which objects are left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_pass_failures_are_shown_and_nothing_is_left_behind() -> Result<()> {
    let cluster = ControlPlane::start(Options {
        nodes: true,
        ..Options::default()
    })?;
    let before = names(&cluster, "customresourcedefinitions")?;
    examples_pass(&cluster)?;
    a_failure_is_shown(&cluster)?;
    what_exists_is_not_touched(&cluster)?;
    let after = names(&cluster, "customresourcedefinitions")?;
    ensure!(before == after, "left: {after}");
    for kind in ["deployments", "services", "leases"] {
        let left = names(&cluster, kind)?;
        ensure!(
            !left.contains("hello") && !left.contains("prices"),
            "{left}"
        );
    }
    Ok(())
}

/// Checks that every example with an E2E passes.
fn examples_pass(cluster: &ControlPlane) -> Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/...");
    let examples = examples.to_str().context("not UTF-8")?;
    let output = on(cluster, &[examples, "--output", "json"])?;
    let (out, err) = text(&output);
    ensure!(output.status.code() == Some(0), "{out}{err}");
    let json: Value = serde_json::from_str(&out)?;
    let tests = json["tests"].as_array().context("no tests")?;
    ensure!(tests.len() >= 2, "{out}");
    let cases = tests.iter().filter_map(|test| test["cases"].as_array());
    let cases: Vec<&Value> = cases.flatten().collect();
    ensure!(cases.len() > 8, "{out}");
    ensure!(
        cases.iter().all(|case| case["outcome"] == "passed"),
        "{out}"
    );
    Ok(())
}

/// Copies the first example with other expectations; returns the path of the E2E.
fn copy(folder: &Path, expect: &str) -> Result<PathBuf> {
    for name in ["katalog.yaml", "crd.yaml", "website.yaml"] {
        fs::copy(example("01-hello-website").join(name), folder.join(name))?;
    }
    let file = folder.join("e2e.yaml");
    let head = "apiVersion: orkestra.orkspace.io/v1\nkind: E2E\nmetadata: { name: copy }\nspec:\n  katalog: katalog.yaml\n  \
                crd: crd.yaml\n  cr: website.yaml\n";
    fs::write(&file, format!("{head}{expect}"))?;
    Ok(file)
}

fn a_failure_is_shown(cluster: &ControlPlane) -> Result<()> {
    let folder = TempDir::new()?;
    let expect = "  onFailure: { commands: [{ run: echo printed after a failure }] }
  expect:
    - name: too many replicas
      after: cr-applied
      timeout: 5s
      resources:
        - { kind: Deployment, name: hello, fields: { spec.replicas: 7 } }
      kubectl:
        get:
          - { kind: websites, name: hello, field: .spec.replicas, greaterThan: 6 }
    - name: a small one only
      after: cr-applied
      when: [{ field: spec.replicas, equals: 1 }]
      commands: [{ run: 'false' }]
    - name: still checked
      after: cr-applied
      commands: [{ run: kubectl get website hello -o name, equals: website.demo.orkestra.io/hello }]
";
    let file = copy(folder.path(), expect)?;
    let (file, report) = (file.display().to_string(), folder.path().join("report.xml"));
    let output = on(
        cluster,
        &[&file, "--report-file", &report.display().to_string()],
    )?;
    let (out, err) = text(&output);
    ensure!(
        output.status.code() == Some(1),
        "{:?}: {out}{err}",
        output.status
    );
    for part in [
        "  ok   spec.katalog: the operator runs",
        "  FAIL spec.expect[0]: too many replicas",
        "         - spec.replicas: 7\n         + spec.replicas: 2\n",
        "         - a number > 6\n         + 2\n",
        "  skip spec.expect[1]: a small one only: its conditions do not hold\n",
        "  ok   spec.expect[2]: still checked",
        "         | printed after a failure\n",
        "FAIL copy\n",
    ] {
        ensure!(out.contains(part), "{part}\n{out}{err}");
    }
    let report = fs::read_to_string(report)?;
    for part in [
        "failures=\"1\" skipped=\"1\"",
        "<failure message=\"too many replicas failed\">",
        "+ spec.replicas: 2\n",
    ] {
        ensure!(report.contains(part), "{part}\n{report}");
    }
    let left = names(cluster, "deployments,services")?;
    ensure!(!left.contains("hello"), "{left}");
    Ok(())
}

fn what_exists_is_not_touched(cluster: &ControlPlane) -> Result<()> {
    let folder = TempDir::new()?;
    let expect = "  expect: [{ name: a, after: cr-applied, commands: [{ run: 'true' }] }]\n";
    let file = copy(folder.path(), expect)?;
    let admin = cluster.admin();
    for name in ["crd.yaml", "website.yaml"] {
        let path = folder.path().join(name).display().to_string();
        let applied = cluster.kubectl(&admin, &["apply", "-f", &path], None)?;
        ensure!(applied.status.success(), "{}", text(&applied).1);
        let waits = ["wait", "--for=condition=Established", "-f", &path];
        if name == "crd.yaml" {
            cluster.kubectl(&admin, &waits, None)?;
        }
    }
    let output = on(cluster, &[&file.display().to_string()])?;
    let (out, err) = text(&output);
    ensure!(output.status.code() == Some(1), "{out}{err}");
    ensure!(out.contains("exists already"), "{out}{err}");
    ensure!(
        out.contains("skip spec.expect[0]: a: a step before it failed"),
        "{out}"
    );
    let left = names(cluster, "websites")?;
    ensure!(left.contains("/hello"), "the user's Website is gone");
    let website = ["delete", "website", "hello"];
    cluster.kubectl(&admin, &website, None)?;
    let crd = [
        "delete",
        "crd",
        "websites.demo.orkestra.io",
        "--ignore-not-found",
    ];
    cluster.kubectl(&admin, &crd, None)?;
    Ok(())
}

/// Checks that `ork` starts a control plane from the binaries in a folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_is_started_of_given_binaries() -> Result<()> {
    let cluster = ControlPlane::shared();
    let folder = TempDir::new()?;
    let expect = "  expect:
    - name: the children are there
      after: cr-applied
      resources:
        - { kind: Deployment, name: hello }
        - { kind: Service, name: hello }
    - name: this control plane is another one
      commands: [{ run: kubectl get namespaces -o name, outputNotContains: e2e-mark }]
    - name: they go
      after: cr-deleted
      timeout: 3m
      resources:
        - { kind: Website, count: 0 }
        - { kind: Deployment, count: 0 }
";
    let file = copy(folder.path(), expect)?.display().to_string();
    testbed::namespace(&cluster.admin().client()?, "e2e-mark").await?;
    let assets = cluster.assets().folder().display().to_string();
    let output = e2e(cluster, &[&file, "--assets", &assets])?;
    let (out, err) = text(&output);
    ensure!(output.status.code() == Some(0), "{out}{err}");
    ensure!(
        out.contains("starting a control plane\n") && out.contains("PASS copy\n"),
        "{out}"
    );

    let empty = folder.path().display().to_string();
    let output = e2e(cluster, &[&file, "--assets", &empty])?;
    let (out, err) = text(&output);
    ensure!(output.status.code() == Some(3), "{out}{err}");
    ensure!(err.contains("has no executable `etcd`"), "{err}");
    let output = e2e(cluster, &[&file])?;
    let (out, err) = text(&output);
    ensure!(output.status.code() == Some(1), "{out}{err}");
    ensure!(err.contains("kind create cluster --name ork-e2e"), "{err}");
    Ok(())
}
