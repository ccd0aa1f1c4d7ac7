//! Charts that `helm` pushes, as sources of Komposers.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use orkestra_registry_tests::{Access, Registry};

use crate::workspace;

/// The chart's only template: a Katalog, and an object that is not Orkestra's.
const TEMPLATE: &str = r#"apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: {{ .Release.Name }} }
spec:
  crds:
    {{ .Values.entry | lower }}:
      apiTypes: { group: example.org, version: v1, kind: {{ .Values.entry }}, plural: {{ .Values.entry | lower }}s }
      operatorBox:
        onReconcile:
          configMaps:
            - name: "{{ "{{ .metadata.name }}" }}"
              data: { a: b }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: not-ours }
"#;

/// Returns the path of `helm`, which is built if necessary.
fn helm() -> Result<String> {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/helm/build");
    let output = Command::new(build).output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "hack/helm/build failed:\n{log}");
    let path = String::from_utf8(output.stdout)?;
    let path = path.lines().last();
    Ok(path.context("hack/helm/build printed no path")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_pushes_ork_reads() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host, helm) = (workspace()?, &registry.host, helm()?);
    work.shell(&format!("{helm} create ponds && rm -r ponds/templates/*"))?
        .ok()?;
    work.write("ponds/templates/katalog.yaml", TEMPLATE)?;
    work.write("ponds/values.yaml", "entry: Pond\n")?;
    for version in ["0.1.0", "0.2.0", "1.0.0-rc.1"] {
        let push = format!(
            "{helm} package ponds --version {version} && {helm} push ponds-{version}.tgz oci://{host}/charts --plain-http"
        );
        work.shell(&push)?.ok()?;
    }
    let komposer = |version: &str| {
        let text = format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{name: mall}}\nsources:\n  helm:\n  - repo: oci://{host}/charts\n    chart: ponds\n    version: {version}\n    values: {{entry: Lake}}\n"
        );
        work.write("mall/komposer.yaml", &text)
    };
    komposer("^0.1")?;
    work.ork("validate mall/komposer.yaml")?.ok()?;
    let rbac = work.ork("generate rbac mall/komposer.yaml")?.ok()?;
    ensure!(rbac.contains("lakes") && !rbac.contains("ponds"), "{rbac}");
    work.ork("lock mall/komposer.yaml")?.ok()?;
    let locked = std::fs::read_to_string(work.path("mall/komposer.lock"))?;
    ensure!(locked.contains("0.1.0"), "{locked}");
    komposer("\">=0.1\"")?;
    work.ork("lock mall/komposer.yaml")?.ok()?;
    let locked = std::fs::read_to_string(work.path("mall/komposer.lock"))?;
    ensure!(locked.contains("0.2.0"), "{locked}");
    komposer("^3")?;
    let missing = work.ork("validate mall/komposer.yaml")?;
    ensure!(
        missing.code == 1 && missing.err.contains("^3"),
        "{}",
        missing.err
    );
    Ok(())
}
