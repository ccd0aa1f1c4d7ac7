//! Webhooks that are switched off: the controller removes what it registered, with the permissions that remain, and keeps policies.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::{Gate, conversion};
use crate::scenario::LIMIT;

/// The Katalog of conversions, with a policy.
fn katalog() -> String {
    conversion::KATALOG.replace(
        "security: { conversion: { enabled: true } }",
        "security: { conversion: { enabled: true }, deletionProtection: { enabled: true } }",
    )
}

/// Returns the names of the policies of the gateway.
async fn policies(gate: &Gate) -> Result<Vec<Value>> {
    let own = |policy: &Value| {
        let labels = &policy["metadata"]["labels"];
        labels["orkestra.orkspace.io/gateway"] == *gate.scenario.namespace
    };
    let all = gate
        .registrations("validatingadmissionpolicies")
        .list()
        .await?;
    Ok(all.into_iter().filter(own).collect())
}

/// Replaces the rules of the role for webhooks by those of an installation whose webhooks are off.
fn narrow(gate: &Gate) -> Result<()> {
    let namespace = &gate.scenario.namespace;
    let rules = orkestra_admin::install::role_rules()["withdrawal"].to_string();
    let rules: Value = serde_json::from_str(&rules.replace("orkestra-webhooks", namespace))?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": format!("{namespace}:webhooks") }, "rules": rules,
    });
    let admin = gate.scenario.cluster.admin();
    let output = (gate.scenario.cluster).kubectl(
        &admin,
        &["replace", "-f", "-"],
        Some(&role.to_string()),
    )?;
    super::printed_or_error(&output)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_with_webhooks_off_removes_its_webhooks_and_keeps_policies_and_a_foreign_one_removes_nothing()
-> Result<()> {
    let katalog = katalog();
    let mut gate = Gate::start("gateoff", &[conversion::CRD], &katalog).await?;
    gate.run(&katalog).await?;
    conversion::until_converted(&gate).await?;
    eventually("policies are written", LIMIT, async || {
        Ok((!policies(&gate).await?.is_empty()).then_some(()))
    })
    .await?;
    let (crds, crd) = conversion::crd(&gate);
    gate.scenario.terminate()?;
    ensure!(gate.configuration().await?.is_some());

    // Another installation, with the same name by mistake.
    let name = format!("--webhooks-name={}", gate.scenario.namespace);
    let off = |namespace: &str| {
        let home = format!("--webhooks-namespace={namespace}");
        vec!["--webhooks=off".to_owned(), name.clone(), home]
    };
    gate.scenario.arguments = off("elsewhere");
    gate.scenario.start().await?;
    gate.scenario.katalog_is("crons", "True", "Running").await?;
    gate.scenario.terminate()?;
    ensure!(gate.configuration().await?.is_some() && !policies(&gate).await?.is_empty());

    narrow(&gate)?;
    gate.scenario.arguments = off(&gate.home());
    gate.scenario.start().await?;
    eventually("no webhook is registered any more", LIMIT, async || {
        gate.scenario.check_running()?;
        Ok(gate.configuration().await?.is_none().then_some(()))
    })
    .await
    .with_context(|| gate.scenario.log())?;
    crds.until_equal(
        &crd,
        "/spec/conversion",
        json!({ "strategy": "None" }),
        LIMIT,
    )
    .await?;
    let definition = crds.fetch(&crd).await?;
    let label = &definition["metadata"]["labels"]["orkestra.orkspace.io/gateway"];
    ensure!(label.is_null(), "{definition}");
    // The operators run on, and the policies, which need no webhook, apply until no Katalog declares them.
    gate.scenario.check_running()?;
    ensure!(!policies(&gate).await?.is_empty());
    let plain = katalog.replace("deletionProtection: { enabled: true }", "");
    gate.scenario.apply(&plain)?;
    eventually("no policy remains", LIMIT, async || {
        gate.scenario.check_running()?;
        Ok(policies(&gate).await?.is_empty().then_some(()))
    })
    .await
    .with_context(|| gate.scenario.log())
}
