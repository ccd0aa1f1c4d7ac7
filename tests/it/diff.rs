//! `ork diff`, and the output of `ork render` piped to `kubectl diff`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Scenario, input};

/// Runs `ork diff` as the administrator; returns the exit code, stdout and stderr.
fn diff(scenario: &Scenario, args: &[&str]) -> Result<(Option<i32>, String, String)> {
    let mut command = scenario.command_as(&scenario.cluster.admin());
    let output = command.arg("diff").args(args).output()?;
    let text = |bytes| String::from_utf8(bytes);
    Ok((
        output.status.code(),
        text(output.stdout)?,
        text(output.stderr)?,
    ))
}

fn path(file: &Path) -> Result<&str> {
    file.to_str().context("not UTF-8")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn differences_are_shown_and_rendered_objects_can_be_piped_to_kubectl() -> Result<()> {
    let secret = "          secrets:\n            - name: key\n              data: { key: planted-value }\n          services:";
    let katalog = input("website/katalog.yaml")?.replace("          services:", secret);
    let scenario = Scenario::with_katalog("diff", &["website/crd.yaml"], &katalog).await?;
    let cr = input("website/cr.yaml")?;
    scenario.apply(&cr)?;
    the_website_is_deployed(&scenario).await?;
    let (deployments, services) = (
        scenario.objects("deployments"),
        scenario.objects("services"),
    );
    let file = scenario.file("katalog.yaml", &katalog)?;
    let state = async || -> Result<_> {
        let deployment = deployments.fetch("hello").await?;
        let generation = deployment["metadata"]["generation"].clone();
        Ok((generation, services.versions().await?))
    };
    let before = state().await?;
    let namespace = ["--namespace", &scenario.namespace];

    let (code, out, err) = diff(&scenario, &[&["-f", path(&file)?], &namespace[..]].concat())?;
    ensure!(code == Some(0) && out.is_empty(), "{out}{err}");

    // With a changed Katalog, only the Service differs.
    let changed = katalog.replace("port: 80\n", "port: 81\n");
    let changed = scenario.file("changed.yaml", &changed)?;
    let (code, out, err) = diff(&scenario, &[&[path(&changed)?], &namespace[..]].concat())?;
    ensure!(code == Some(1), "{code:?}: {out}{err}");
    let head = scenario.text("--- Service NAMESPACE/hello\n+++ Service NAMESPACE/hello\n");
    for part in [&*head, "port: 80\n", "port: 81\n"] {
        ensure!(out.contains(part), "{part}: {out}");
    }
    ensure!(!out.contains("Deployment"), "{out}");

    // A changed custom resource from a file, and one that does not exist in the cluster.
    let more = scenario.file("more.yaml", &cr.replace("replicas: 2", "replicas: 3"))?;
    let (code, out, err) = diff(&scenario, &["-k", path(&file)?, "--cr", path(&more)?])?;
    ensure!(code == Some(1), "{code:?}: {out}{err}");
    ensure!(out.contains("-  replicas: 2\n+  replicas: 3\n"), "{out}");
    let other = scenario.file("other.yaml", &cr.replace("name: hello", "name: other"))?;
    let (code, out, err) = diff(&scenario, &["-k", path(&file)?, "--cr", path(&other)?])?;
    ensure!(code == Some(1), "{code:?}: {out}{err}");
    let head = scenario.text("--- /dev/null\n+++ Deployment.apps NAMESPACE/other\n");
    ensure!(out.contains(&head) && !out.contains("planted"), "{out}");
    ensure!(before == state().await?, "`ork diff` wrote");

    let rendered = scenario.ork(&["render", "-f", path(&file)?, "--cr", path(&more)?])?;
    ensure!(rendered.contains("# kind: Secret\n"), "{rendered}");
    kubectl_shows_a_third_replica_and_no_secret(&scenario, &rendered)
}

/// Waits until the children of the website exist, and the Deployment controller has written to its Deployment.
async fn the_website_is_deployed(scenario: &Scenario) -> Result<()> {
    let (deployments, services) = (
        scenario.objects("deployments"),
        scenario.objects("services"),
    );
    deployments
        .until_equal("hello", "/spec/replicas", json!(2), LIMIT)
        .await?;
    // The Deployment controller writes this annotation.
    let revision = "/metadata/annotations/deployment.kubernetes.io~1revision";
    deployments
        .until_equal("hello", revision, json!("1"), LIMIT)
        .await?;
    services
        .until_equal("hello", "/spec/ports/0/port", json!(80), LIMIT)
        .await?;
    scenario
        .objects("secrets")
        .until("key", "exists", LIMIT, |_| true)
        .await?;
    Ok(())
}

/// Checks that `kubectl diff` of the rendered objects shows the changed replicas, and nothing of the Secret, which `ork render`
/// prints as a comment.
fn kubectl_shows_a_third_replica_and_no_secret(scenario: &Scenario, rendered: &str) -> Result<()> {
    let args = ["diff", "--filename", "-"];
    let cluster = scenario.cluster;
    let output = cluster.kubectl(&cluster.admin(), &args, Some(rendered))?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.code() == Some(1), "{out}{err}");
    ensure!(
        out.contains("+  replicas: 3\n") && !out.contains("Secret"),
        "{out}{err}"
    );
    Ok(())
}
