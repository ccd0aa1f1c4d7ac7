//! `ork uninstall` deletes the webhook configurations and policies that the gateway wrote.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{eventually, free_port};

use super::site::{NAMESPACE, Site};
use crate::scenario::LIMIT;

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "hello", "namespace": "default" },
    "spec": {
        "security": { "webhooks": { "admission": { "enabled": true } }, "deletionProtection": { "enabled": true, "strictMode": true } },
        "crds": { "website": {
            "crdFile": "crd.yaml",
            "apiTypes": { "group": "demo.orkestra.io", "version": "v1alpha1", "kind": "Website", "plural": "websites" },
            "validation": { "rules": [{ "field": "spec.image", "prefix": "myorg/" }] },
            "operatorBox": { "onReconcile": { "configMaps": [{ "name": "{{ .metadata.name }}", "data": { "a": "b" } }] } }
        } }
    }
}"#;

const KINDS: [&str; 4] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

async fn registered(site: &Site) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for kind in KINDS {
        let objects = site.objects_at(&format!("/apis/admissionregistration.k8s.io/v1/{kind}"));
        let names = objects.list().await?.into_iter().map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            format!("{kind}/{name}")
        });
        all.extend(names);
    }
    Ok(all)
}

/// Starts an installation with webhooks and a Katalog, and waits until the configurations and policies exist; returns both.
async fn with_webhooks() -> Result<(Site, String)> {
    let mut site = Site::start()?;
    site.ork(&["install", "--set", "webhooks.enabled=true"])?;
    let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/01-hello-website/crd.yaml"
    ))?)?;
    let group = crd["spec"]["group"].as_str().context("no group")?;
    let katalog = KATALOG.replace("demo.orkestra.io", group);
    let katalog = katalog.replace(r#""crdFile": "crd.yaml","#, "");
    site.kubectl(&["apply", "-f", "-"], Some(&crd.to_string()))?;
    site.file("katalog.yaml", &katalog)?;
    site.grant(site.cluster.folder().to_str().context("not text")?)?;
    let port = free_port()?;
    let (listen, url) = (
        format!("--webhooks-listen=127.0.0.1:{port}"),
        format!("--webhooks-url=https://127.0.0.1:{port}"),
    );
    let home = format!("--webhooks-namespace={NAMESPACE}");
    site.launch_with(&["controller", &listen, &url, &home])
        .await?;
    site.kubectl(&["apply", "-f", "-"], Some(&katalog))?;
    eventually("webhooks and policies are written", LIMIT, async || {
        let all = registered(&site).await?;
        let has = |part: &str| all.iter().any(|name| name.contains(part));
        let are_all = has("orkestra-webhooks")
            && has("policies/delete-protection.")
            && has("policies/deny.website")
            && has("bindings/strict-mode");
        ensure!(are_all, "{all:?}");
        Ok(Some(()))
    })
    .await
    .with_context(|| site.log())?;
    Ok((site, katalog))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_uninstall_removes_webhooks_and_policies_and_no_protection_blocks_it() -> Result<()> {
    let (mut site, katalog) = with_webhooks().await?;
    let secrets = site.objects("secrets");
    secrets.fetch("orkestra-tls").await?;

    the_installation_is_protected(&site).await?;
    // The configurations stay when the controller stops, since no Katalog declares `cleanupOnShutdown`.
    site.stop()?;
    let before = registered(&site).await?;
    ensure!(before.len() >= 8, "{before:?}");
    let wrong = site.kubectl(
        &["create", "--dry-run=server", "-f", "-"],
        Some(&katalog.replace("hello", "other")),
    );
    ensure!(
        wrong.is_err(),
        "a Katalog was accepted although no webhook reviews it"
    );

    an_uninstallation_leaves_nothing(&site, &before).await?;
    ensure!(secrets.get("orkestra-tls").await?.is_none());
    ensure!(site.objects("deployments").get("orkestra").await?.is_none());
    // Katalogs can be written again, as a later installation requires.
    eventually("Katalogs are not reviewed any more", LIMIT, async || {
        let written = site.kubectl(
            &["create", "--dry-run=server", "-f", "-"],
            Some(&katalog.replace("hello", "other")),
        );
        Ok(written.ok())
    })
    .await?;
    Ok(())
}

/// Labels Orkestra's Deployment and `ServiceAccount` as protected, and waits until a deletion is denied.
async fn the_installation_is_protected(site: &Site) -> Result<()> {
    let label = json!({ "metadata": { "labels": { "orkestra.io/deletion-protection": "true" } } });
    for plural in ["deployments", "serviceaccounts"] {
        site.objects(plural).patch("orkestra", &label).await?;
    }
    let deletion = [
        "--namespace",
        NAMESPACE,
        "delete",
        "deployment/orkestra",
        "--dry-run=server",
    ];
    eventually("the Deployment is protected", LIMIT, async || {
        Ok(site.kubectl(&deletion, None).is_err().then_some(()))
    })
    .await
}

/// Checks that `ork uninstall` deletes the objects that its dry run prints, and that none of `before` is left.
async fn an_uninstallation_leaves_nothing(site: &Site, before: &[String]) -> Result<()> {
    let uninstall = ["uninstall", "--ignore-katalogs", "--timeout", "60s"];
    let planned = site.ork(&[&uninstall[..], &["--dry-run"]].concat())?;
    ensure!(
        registered(site).await? == before,
        "a dry run removed an object"
    );
    let removed = site.ork(&uninstall)?;
    ensure!(
        removed.replace(" deleted", " deleted (dry run)") == planned,
        "{removed}"
    );
    ensure!(
        removed.contains("ValidatingWebhookConfiguration orkestra-webhooks deleted"),
        "{removed}"
    );
    let left = registered(site).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
