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

const HOME: &str = "--webhooks-namespace=orkestra-system";

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

/// Returns the webhook configurations, without which the API server calls nothing.
async fn webhooks(site: &Site) -> Result<Vec<String>> {
    let mut all = registered(site).await?;
    all.retain(|name| name.contains("webhookconfigurations"));
    Ok(all)
}

/// Waits until no webhook is registered.
async fn until_no_webhooks(site: &Site) -> Result<()> {
    eventually("no webhook is registered", LIMIT, async || {
        let all = webhooks(site).await?;
        ensure!(all.is_empty(), "{all:?}");
        Ok(Some(()))
    })
    .await
    .with_context(|| site.log())
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
    serve(&mut site).await?;
    site.kubectl(&["apply", "-f", "-"], Some(&katalog))?;
    until_registered(&site).await?;
    Ok((site, katalog))
}

/// Starts a controller with webhooks.
async fn serve(site: &mut Site) -> Result<()> {
    let port = free_port()?;
    let (listen, url) = (
        format!("--webhooks-listen=127.0.0.1:{port}"),
        format!("--webhooks-url=https://127.0.0.1:{port}"),
    );
    site.launch_with(&["controller", &listen, &url, HOME]).await
}

/// Waits until the configurations and policies exist.
async fn until_registered(site: &Site) -> Result<()> {
    eventually("webhooks and policies are written", LIMIT, async || {
        let all = registered(site).await?;
        let has = |part: &str| all.iter().any(|name| name.contains(part));
        let are_all = has("orkestra-webhooks")
            && has("policies/delete-protection.")
            && has("policies/deny.website")
            && has("bindings/strict-mode");
        ensure!(are_all, "{all:?}");
        Ok(Some(()))
    })
    .await
    .with_context(|| site.log())
}

/// Waits until nothing of the gateway is registered.
async fn until_none(site: &Site) -> Result<()> {
    eventually("nothing is registered", LIMIT, async || {
        let all = registered(site).await?;
        ensure!(all.is_empty(), "{all:?}");
        Ok(Some(()))
    })
    .await
    .with_context(|| site.log())
}

/// Waits until the API server accepts any Katalog again.
async fn until_unreviewed(site: &Site, katalog: &str) -> Result<()> {
    eventually("Katalogs are not reviewed any more", LIMIT, async || {
        let written = site.kubectl(
            &["create", "--dry-run=server", "-f", "-"],
            Some(&katalog.replace("hello", "other")),
        );
        Ok(written.ok())
    })
    .await
    .map(drop)
}

/// How webhooks are switched off.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// `ork install`, while no controller runs.
    OrkInstall,
    /// The manifests with webhooks off, as helm and kustomize apply them, and the new controller.
    Manifests,
    /// The installation is deleted with its roles, as helm and kustomize do it, and no controller runs.
    RolesDeleted,
}

const ON: [&str; 3] = ["install", "--set", "webhooks.enabled=true"];
const OFF: [&str; 3] = ["install", "--set", "webhooks.enabled=false"];

/// Applies the manifests with webhooks off, as helm and kustomize do.
fn apply_manifests(site: &Site) -> Result<()> {
    let manifests = site.ork(&[&OFF[..], &["--dry-run=client"]].concat())?;
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    site.kubectl(&apply, Some(&manifests)).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_of_switching_webhooks_off_leaves_nothing_registered_and_no_other_does()
-> Result<()> {
    let (mut site, katalog) = with_webhooks().await?;
    let kind = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let configurations = site.objects_at(kind);
    for way in [Way::OrkInstall, Way::Manifests, Way::RolesDeleted] {
        // From on to on: nothing is removed.
        let before = configurations.fetch("orkestra-webhooks").await?;
        site.stop()?;
        site.ork(&ON)?;
        serve(&mut site).await?;
        until_registered(&site).await?;
        let after = configurations.fetch("orkestra-webhooks").await?;
        ensure!(before["metadata"]["uid"] == after["metadata"]["uid"]);
        ensure!(
            after["metadata"]["ownerReferences"][0]["kind"] == "ClusterRole",
            "{after}"
        );
        site.stop()?;
        match way {
            Way::OrkInstall => {
                let said = site.ork(&OFF)?;
                let removed = "ValidatingWebhookConfiguration orkestra-webhooks deleted";
                ensure!(said.contains(removed), "{said}");
                ensure!(webhooks(&site).await?.is_empty(), "{said}");
            }
            Way::Manifests => {
                apply_manifests(&site)?;
                let name = "--webhooks-name=orkestra-webhooks";
                let off = ["controller", "--webhooks=off", name, HOME];
                site.launch_with(&off).await?;
                // Policies need no webhook: they stay as long as the Katalog declares them.
                until_no_webhooks(&site).await?;
                ensure!(!registered(&site).await?.is_empty());
                site.stop()?;
            }
            Way::RolesDeleted => {
                let role = "clusterrole/orkestra-webhooks";
                site.kubectl(&["delete", role], None)?;
                until_none(&site).await?;
            }
        }
        until_unreviewed(&site, &katalog)
            .await
            .with_context(|| format!("{way:?}"))?;
        // From off to off, and from off to on.
        site.ork(&[&OFF[..], &["--force-conflicts"]].concat())?;
        let again = site.ork(&OFF)?;
        ensure!(
            again.lines().all(|line| line.ends_with(" unchanged")),
            "{again}"
        );
        // kubectl owns what it applied together with us, since the values are equal, until they change.
        site.ork(&[&ON[..], &["--force-conflicts"]].concat())?;
        serve(&mut site).await?;
        until_registered(&site).await?;
    }
    site.stop()
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
    until_unreviewed(&site, &katalog).await
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
