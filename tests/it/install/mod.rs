//! Installation, upgrade and removal, each on its own control plane. Pods are scheduled to a fake node, and the controller runs
//! outside the cluster, with the installed permissions of its service account.

mod churn;
mod documents;
mod first_week;
mod helm;
mod kustomize;
mod lint;
mod preflight;
mod removal;
mod site;
mod upgrade;
mod webhooks;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use self::site::{NAMESPACE, Site, definitions};
use crate::scenario::{LIMIT, is_ready};

const EXAMPLE: &str = "examples/01-hello-website";

/// Starts the controller, and waits until the example's Katalog and its Website are ready.
async fn run_the_example(site: &mut Site) -> Result<()> {
    site.grant(EXAMPLE)?;
    site.launch().await?;
    let website = format!("{EXAMPLE}/crd.yaml");
    for file in [&website, &format!("{EXAMPLE}/katalog.yaml")] {
        site.kubectl(&["apply", "-f", file], None)?;
    }
    site.kubectl(
        &[
            "wait",
            "--for=condition=Ready",
            "katalog/hello-website",
            "--timeout=120s",
        ],
        None,
    )?;
    site.kubectl(&["apply", "-f", &format!("{EXAMPLE}/website.yaml")], None)?;
    site.kubectl(
        &[
            "wait",
            "--for=condition=Ready",
            "website/hello",
            "--timeout=120s",
        ],
        None,
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_install_runs_a_katalog_changes_nothing_twice_and_ork_uninstall_removes_all()
-> Result<()> {
    let mut site = Site::start()?;
    a_dry_run_writes_nothing(&site).await?;

    // `--wait` succeeds: the Pods were admitted to a namespace that enforces the Pod Security Standard `restricted`.
    site.ork(&["install", "--wait", "--timeout", "2m"])?;
    let namespace = site.cluster_objects("namespaces").fetch(NAMESPACE).await?;
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
    let pods = site.objects("pods").list().await?;
    assert_eq!(pods.len(), 2, "{pods:?}");

    let manifests = a_second_install_changes_nothing(&site).await?;
    site.ork(&["version", "--cluster"])?;

    run_the_example(&mut site).await?;
    let refused = site.refused(&["uninstall"])?;
    ensure!(refused.contains("Katalogs exist (1)"), "{refused}");
    for object in ["website/hello", "katalog/hello-website"] {
        site.kubectl(&["delete", object, "--timeout=120s"], None)?;
    }
    site.stop()?;
    uninstall_keeps_namespaces_and_definitions(&site, manifests).await?;

    site.ork(&["install"])?;
    uninstall_removes_all(&site).await
}

/// Checks that a dry run prints the objects that it would create, and writes nothing.
async fn a_dry_run_writes_nothing(site: &Site) -> Result<()> {
    let checked = site.ork(&["install", "--dry-run=server"])?;
    ensure!(
        checked.contains("Deployment orkestra-system/orkestra not checked"),
        "{checked}"
    );
    ensure!(
        checked.contains("ClusterRole orkestra created (dry run)"),
        "{checked}"
    );
    ensure!(
        site.definition("katalogs").await?.is_none(),
        "a dry run wrote a CRD"
    );
    Ok(())
}

/// Checks that a second installation changes nothing, and that `--dry-run=client` prints the applied objects; returns the number
/// of manifests.
async fn a_second_install_changes_nothing(site: &Site) -> Result<usize> {
    let again = site.ork(&["install"])?;
    ensure!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    // The printed manifests equal the applied objects.
    let printed = site.ork(&["install", "--dry-run=client"])?;
    let compare = [
        "diff",
        "--server-side",
        "--force-conflicts",
        "--field-manager=ork-install",
        "-f",
        "-",
    ];
    // The status of objects may still change between the two requests of `kubectl diff`.
    eventually("the manifests equal the live objects", LIMIT, async || {
        site.kubectl(&compare, Some(&printed)).map(Some)
    })
    .await?;
    let manifests = serde_saphyr::from_multiple::<Value>(&printed)?.len();
    assert_eq!(again.lines().count(), manifests);
    Ok(manifests)
}

/// Checks that `ork uninstall` deletes the objects that its dry run prints: all manifests except two and the CRDs.
async fn uninstall_keeps_namespaces_and_definitions(site: &Site, manifests: usize) -> Result<()> {
    let planned = site.ork(&["uninstall", "--dry-run"])?;
    ensure!(
        planned
            .lines()
            .all(|line| line.ends_with(" deleted (dry run)")),
        "{planned}"
    );
    ensure!(
        planned.lines().count() + 2 + definitions().len() == manifests,
        "{planned}"
    );
    let removed = site.ork(&["uninstall"])?;
    assert_eq!(removed.replace(" deleted", " deleted (dry run)"), planned);
    site.objects("deployments")
        .until_gone("orkestra", LIMIT)
        .await?;
    ensure!(
        site.definition("katalogs").await?.is_some(),
        "a CRD was deleted"
    );
    let absent = site.refused(&["uninstall"])?;
    ensure!(absent.contains("no installation"), "{absent}");
    Ok(())
}

/// Checks that `ork uninstall --crds --namespaces` deletes all objects.
async fn uninstall_removes_all(site: &Site) -> Result<()> {
    site.ork(&["uninstall", "--crds", "--namespaces", "--timeout", "60s"])?;
    ensure!(site.definition("katalogs").await?.is_none());
    ensure!(
        site.cluster_objects("namespaces")
            .get(NAMESPACE)
            .await?
            .is_none()
    );
    let left = site.kubectl(
        &[
            "get",
            "clusterroles,clusterrolebindings",
            "-l",
            "app.kubernetes.io/part-of=orkestra",
            "-o",
            "name",
        ],
        None,
    )?;
    ensure!(left.is_empty(), "{left}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_if_a_check_fails_and_objects_that_are_no_longer_part_are_deleted()
-> Result<()> {
    let site = Site::start()?;
    without_permissions_nothing_is_written(&site)?;

    objects_that_are_no_longer_part_are_pruned(&site).await?;

    // Another field manager owns a field.
    let deployments = site.objects("deployments");
    let scale = [
        "scale",
        "deployment/orkestra",
        "--replicas=5",
        "-n",
        NAMESPACE,
    ];
    site.kubectl(&scale, None)?;
    let conflict = site.refused(&["install", "--set", "replicas=1"])?;
    ensure!(
        conflict.contains("--force-conflicts") && conflict.contains("replicas"),
        "{conflict}"
    );
    site.ork(&["install", "--set", "replicas=1", "--force-conflicts"])?;
    assert_eq!(deployments.fetch("orkestra").await?["spec"]["replicas"], 1);

    a_newer_version_is_replaced_only_without_checks(&site).await?;

    let helm = json!({ "metadata": { "annotations": { "meta.helm.sh/release-name": "ops" } } });
    deployments.patch("orkestra", &helm).await?;
    let refused = site.refused(&["install"])?;
    ensure!(
        refused.contains("belongs to the Helm release ops"),
        "{refused}"
    );
    Ok(())
}

/// Checks that a user who lacks permissions gets an error that lists them, before any object is written.
fn without_permissions_nothing_is_written(site: &Site) -> Result<()> {
    let weak = site.cluster.identity("weak", &[])?;
    let mark = site.cluster.mark()?;
    let refused = Site::refused_as(&weak, &["install"])?;
    for missing in [
        "create clusterroles.rbac.authorization.k8s.io",
        "patch deployments.apps in the namespace orkestra-system",
    ] {
        ensure!(
            refused.contains(&format!("you cannot {missing}")),
            "{missing}: {refused}"
        );
    }
    let writes = site
        .cluster
        .audit_since(mark)?
        .into_iter()
        .filter(|event| event.user == "weak" && event.is_write());
    let writes: Vec<_> = writes
        .filter(|event| event.resource != "selfsubjectaccessreviews")
        .collect();
    ensure!(writes.is_empty(), "{writes:?}");
    Ok(())
}

/// Checks that an installation with other values deletes the objects that they no longer include.
async fn objects_that_are_no_longer_part_are_pruned(site: &Site) -> Result<()> {
    let values = site.file("values.yaml", "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: orkestra-system}}]\n")?;
    site.ork(&["install", "--values", &values, "--set", "replicas=3"])?;
    let deployments = site.objects("deployments");
    assert_eq!(deployments.fetch("orkestra").await?["spec"]["replicas"], 3);
    let fewer = site.ork(&["install", "--set", "replicas=1"])?;
    for line in [
        "ConfigMap orkestra-system/extra pruned",
        "PodDisruptionBudget orkestra-system/orkestra pruned",
        "Deployment orkestra-system/orkestra configured",
    ] {
        ensure!(fewer.contains(line), "{line}: {fewer}");
    }
    ensure!(site.objects("configmaps").get("extra").await?.is_none());
    let again = site.ork(&["install", "--set", "replicas=1"])?;
    ensure!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    Ok(())
}

/// Checks that CRDs of a newer version are replaced only with `--ignore-preflight`.
async fn a_newer_version_is_replaced_only_without_checks(site: &Site) -> Result<()> {
    let definitions = site.cluster_objects("customresourcedefinitions");
    let newer = json!({ "metadata": { "annotations": { "orkestra.orkspace.io/version": "99.0.0", "orkestra.orkspace.io/schema": "x" } } });
    definitions
        .patch("katalogs.orkestra.orkspace.io", &newer)
        .await?;
    let refused = site.refused(&["install", "--force-conflicts"])?;
    ensure!(refused.contains("written by version 99.0.0"), "{refused}");
    let skewed = site.refused(&["version", "--cluster"])?;
    ensure!(
        skewed.contains("katalogs.orkestra.orkspace.io is newer"),
        "{skewed}"
    );
    site.ork(&["install", "--force-conflicts", "--ignore-preflight"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_of_a_katalog_are_granted_as_values_of_the_chart_too() -> Result<()> {
    let mut site = Site::start()?;
    let katalog = format!("{EXAMPLE}/katalog.yaml");
    let values = site.ork(&["generate", "rbac", "--output", "values", "-k", &katalog])?;
    let file = site.file("katalogs.yaml", &values)?;
    site.ork(&["install", "-f", &file])?;
    site.launch().await?;
    for name in ["crd.yaml", "katalog.yaml", "website.yaml"] {
        site.kubectl(&["apply", "-f", &format!("{EXAMPLE}/{name}")], None)?;
    }
    let websites = site.objects_at("/apis/demo.orkestra.io/v1alpha1/namespaces/default/websites");
    websites.until("hello", "is ready", LIMIT, is_ready).await?;
    site.stop()
}
