//! The chart, installed by the real helm. `make helm-install` builds helm and runs these tests.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::EXAMPLE;
use super::churn::Churn;
use super::site::{ACCOUNT, IMAGE, NAMESPACE, Site, definitions};
use crate::scenario::{LIMIT, is_ready, printed};

/// The arguments for the namespace of a release, and for the time that helm waits.
const PLACE: [&str; 6] = [
    "--namespace",
    NAMESPACE,
    "--create-namespace",
    "--wait",
    "--timeout",
    "120s",
];

const CHART: &str = "charts/orkestra";
/// The value of the chart for [`IMAGE`].
const IMAGE_VALUE: &str = "image.repository=registry.invalid/orkestra";

/// Runs helm, on the cluster of a site if one is given.
fn helm(site: Option<&Site>, args: &[&str]) -> Result<Output> {
    Ok(command(site, args)?.output()?)
}

fn command(site: Option<&Site>, args: &[&str]) -> Result<Command> {
    let program = std::env::var_os("HELM").context("HELM is not set: run `make helm-install`")?;
    let mut helm = Command::new(program);
    helm.args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("KUBECONFIG");
    if let Some(site) = site {
        helm.env("KUBECONFIG", site.cluster.admin().kubeconfig_path());
    }
    Ok(helm)
}

fn done(site: Option<&Site>, args: &[&str]) -> Result<String> {
    printed(&helm(site, args)?, "helm")
}

fn by_name(text: &str) -> Result<BTreeMap<String, Value>> {
    let objects = serde_saphyr::from_multiple::<Value>(text)?
        .into_iter()
        .filter(|object| !object.is_null());
    let named = objects.map(|object| {
        let metadata = &object["metadata"];
        (
            format!(
                "{} {} {}",
                object["kind"], metadata["namespace"], metadata["name"]
            ),
            object,
        )
    });
    let mut all: BTreeMap<String, Value> = named.collect();
    all.retain(|name, _| !name.contains("orkestra-inventory"));
    Ok(all)
}

const VALUES: [&str; 5] = [
    "{}",
    "replicas: 1\nfullnameOverride: ops\nnamespaces: [a, b]\nleaderElection: {enabled: false}\ncrds: {install: false}\n",
    "webhooks: {enabled: true, certificates: {source: certManager, issuerRef: {kind: Issuer, name: own}}}\nhttp: {tlsSecret: web}\n\
     serviceMonitor: {enabled: true, labels: {team: ops}}\npodMonitor: {enabled: true}\nprometheus: {serviceAccount: {namespace: m, name: p}}\ndashboards: {enabled: true}\n",
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\ntolerations: [{operator: Exists}]\n\
     networkPolicy: {egressPorts: [443], extraEgress: [{to: [{ipBlock: {cidr: 203.0.113.0/24}}]}]}\nextraEnv: [{name: A, value: '1'}]\n\
     extraObjects: ['{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-extra}}']\ncommonLabels: {team: ops}\n",
    "katalogs: [{namespace: shop, name: web, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}], namespaceRules: {shop: \
     [{apiGroups: [''], resources: [secrets], verbs: [get]}]}}]\nrbac: {people: false, extraRules: [{apiGroups: [a], resources: [b], verbs: [get]}]}\n\
     serviceAccount: {create: false, name: other}\nexternal: {allow: ['*.example.org'], env: [A]}\nextraArgs: [--log, debug]\n",
];

#[test]
#[ignore = "needs helm: make helm-install"]
fn helm_renders_what_ork_install_applies_and_has_no_complaint() -> Result<()> {
    done(None, &["lint", "--strict", CHART, "--set", IMAGE_VALUE])?;
    let folder = tempfile::tempdir()?;
    for (number, text) in VALUES.iter().enumerate() {
        let file = folder.path().join(format!("{number}.yaml"));
        std::fs::write(&file, text)?;
        let file = file.to_str().context("a path is not text")?;
        let template = [
            "template",
            "orkestra",
            CHART,
            "--namespace",
            NAMESPACE,
            "--set",
            "namespace.create=true",
            "--set",
            IMAGE_VALUE,
            "--skip-tests",
            "--values",
            file,
        ];
        let expected = by_name(&done(None, &template)?)?;
        let own = Command::new(env!("CARGO_BIN_EXE_ork"))
            .args(["install", "--dry-run=client", "-f", file])
            .env("ORK_IMAGE", IMAGE)
            .output()?;
        let own = by_name(&printed(&own, "ork")?)?;
        ensure!(
            own.keys().eq(expected.keys()),
            "{text}: {:?}\n{:?}",
            own.keys(),
            expected.keys()
        );
        for (name, object) in &own {
            ensure!(
                *object == expected[name],
                "{text}: {name}: {object}\n{}",
                expected[name]
            );
        }
    }
    Ok(())
}

/// Returns the arguments of the two commands in `docs/operate/install.md` that install and test the chart.
fn documented(page: &str) -> Result<[Vec<&str>; 2]> {
    let (_, section) = page
        .split_once("\n## Install with Helm\n\n```text\n")
        .context("no section")?;
    let (block, _) = section.split_once("\n```").context("no block")?;
    let commands: Option<Vec<Vec<&str>>> = block
        .lines()
        .map(|line| Some(line.strip_prefix("helm ")?.split(' ').collect()))
        .collect();
    let commands = commands.context("a command is not helm's")?;
    let two = commands.try_into();
    two.map_err(|all| anyhow::anyhow!("other commands: {all:?}"))
}

/// Runs `helm test`. No container runs on the fake node: the test runs `ork` with the arguments of the Pod as its service account,
/// and writes the result into the Pod's status as a kubelet does.
async fn passes_its_test(site: &Site, args: &[&str]) -> Result<()> {
    const POD: &str = "orkestra-test";
    let mut helm = command(Some(site), args)?;
    let ending = tokio::task::spawn_blocking(move || helm.output());
    let pods = site.objects("pods");
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    let mut pod = pods.until(POD, "runs", LIMIT, is_running).await?;
    ensure!(pod["spec"]["serviceAccountName"] == "orkestra", "{pod}");
    let args: Vec<String> = serde_json::from_value(pod["spec"]["containers"][0]["args"].take())?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let identity = site.cluster.identity(ACCOUNT, &[])?;
    let ended = Site::command(&identity, &args).output()?;
    let phase = if ended.status.success() {
        "Succeeded"
    } else {
        "Failed"
    };
    let status = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
    let patch = ["patch", "pod", POD, "--namespace", NAMESPACE];
    let patch = [
        &patch[..],
        &["--subresource=status", "--type=merge", "-p", &status],
    ];
    site.kubectl(&patch.concat(), None)?;
    let said = printed(&ending.await??, "helm").with_context(|| format!("{ended:?}"))?;
    ensure!(said.contains("Succeeded"), "{said}");
    pods.until_gone(POD, LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs helm: make helm-install"]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() -> Result<()> {
    let mut site = Site::start()?;
    let page = std::fs::read_to_string("docs/operate/install.md")?;
    let [install, test] = documented(&page)?;
    done(Some(&site), &install)?;
    site.ork(&["version", "--cluster"])?;
    passes_its_test(&site, &test).await?;
    // The objects belong to a Helm release, so `ork install` refuses to change them.
    let refused = site.refused(&["install"])?;
    ensure!(
        refused.contains("belongs to the Helm release orkestra"),
        "{refused}"
    );
    site.grant(EXAMPLE)?;
    site.launch().await?;
    for name in ["crd.yaml", "katalog.yaml", "website.yaml"] {
        site.kubectl(&["apply", "-f", &format!("{EXAMPLE}/{name}")], None)?;
    }
    let websites = site.objects_at("/apis/demo.orkestra.io/v1alpha1/namespaces/default/websites");
    let uid =
        websites.until("hello", "is ready", LIMIT, is_ready).await?["metadata"]["uid"].clone();

    the_release_is_upgraded_and_rolled_back(&site).await?;
    assert_eq!(websites.fetch("hello").await?["metadata"]["uid"], uid);

    // Uninstall while custom resources exist: CRDs, Katalogs and children stay, and a new release continues to reconcile them.
    site.stop()?;
    let children = site.objects_at("/apis/apps/v1/namespaces/default/deployments");
    let before = children.versions().await?;
    uninstall(&site).await?;
    for name in definitions() {
        site.cluster_objects("customresourcedefinitions")
            .fetch(&name)
            .await?;
    }
    nothing_is_left(&site)?;
    assert_eq!(websites.fetch("hello").await?["metadata"]["uid"], uid);
    let names = |versions: &[(String, String)]| {
        versions
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&children.versions().await?), names(&before));
    done(Some(&site), &install)?;
    site.grant(EXAMPLE)?;
    site.launch().await?;
    for object in ["website/hello", "katalog/hello-website"] {
        site.kubectl(&["delete", object, "--timeout=120s"], None)?;
    }
    site.stop()?;
    uninstall(&site).await?;
    nothing_is_left(&site)
}

/// Upgrades the release to three replicas, and rolls it back to two.
async fn the_release_is_upgraded_and_rolled_back(site: &Site) -> Result<()> {
    let upgrade = [
        "upgrade",
        "orkestra",
        CHART,
        "--namespace",
        NAMESPACE,
        "--set",
        "replicas=3",
        "--set",
        IMAGE_VALUE,
        "--wait",
        "--timeout",
        "120s",
    ];
    done(Some(site), &upgrade)?;
    let deployments = site.objects("deployments");
    assert_eq!(deployments.fetch("orkestra").await?["spec"]["replicas"], 3);
    done(
        Some(site),
        &[
            "rollback",
            "orkestra",
            "1",
            "--namespace",
            NAMESPACE,
            "--wait",
            "--timeout",
            "120s",
        ],
    )?;
    assert_eq!(deployments.fetch("orkestra").await?["spec"]["replicas"], 2);
    Ok(())
}

/// Uninstalls the release, and waits until its Deployment is gone.
async fn uninstall(site: &Site) -> Result<()> {
    done(
        Some(site),
        &["uninstall", "orkestra", "--namespace", NAMESPACE, "--wait"],
    )?;
    let deployments = site.objects("deployments");
    deployments.until_gone("orkestra", LIMIT).await
}

/// Checks that no object of the chart is left, except CRDs and namespaces.
fn nothing_is_left(site: &Site) -> Result<()> {
    const KINDS: &str = "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,deployments,pods,\
                         networkpolicies,poddisruptionbudgets,configmaps,secrets";
    let part = "app.kubernetes.io/part-of=orkestra";
    let get = ["get", KINDS, "--all-namespaces", "-l", part, "-o", "name"];
    let left = site.kubectl(&get, None)?;
    ensure!(left.is_empty(), "{left}");
    let releases = ["list", "--all-namespaces", "--short"];
    let left = done(Some(site), &releases)?;
    ensure!(left.is_empty(), "{left}");
    Ok(())
}

/// Unpacks the chart and the CRDs of the second-latest commit that changed the chart into a folder; returns the path of the chart.
fn earlier_chart(folder: &Path) -> Result<PathBuf> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        printed(
            &git.args(args)
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .output()?,
            "git",
        )
    };
    let commit = git(&["rev-list", "--skip=1", "--max-count=1", "HEAD", "--", CHART])?;
    let commit = commit.trim();
    ensure!(!commit.is_empty(), "the clone has one version of the chart");
    let archive = folder.join("chart.tar");
    let path = archive.to_str().context("a path is not text")?;
    let linked = ["charts", "crds", "config/monitoring"];
    git(&[&["archive", "--output", path, commit][..], &linked].concat())?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(folder);
    printed(&tar.output()?, "tar")?;
    Ok(folder.join(CHART))
}

/// Returns values for the earlier chart. After a rollback the controller is still that of this version, since no earlier one was
/// built, so it needs the permissions of this version.
fn stand_in(site: &Site) -> Result<String> {
    let installed = by_name(&site.ork(&["install", "--dry-run=client"])?)?;
    let role = &installed["\"ClusterRole\" null \"orkestra\""];
    let values = serde_json::json!({ "rbac": { "extraRules": role["rules"] } });
    site.file("earlier.yaml", &values.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs helm: make helm-install"]
async fn an_upgrade_from_an_earlier_chart_and_a_rollback_lose_no_change_and_rewrite_no_child()
-> Result<()> {
    let mut site = Site::start()?;
    let folder = tempfile::tempdir()?;
    let chart = earlier_chart(folder.path())?;
    let chart = chart.to_str().context("a path is not text")?;
    let values = stand_in(&site)?;
    let install = [
        &["install", "orkestra", chart, "--values", &values][..],
        &PLACE,
    ];
    done(Some(&site), &install.concat())?;
    let churn = Churn::begin(&mut site).await?;
    let image = ["--set", IMAGE_VALUE];
    let upgrade = ["upgrade", "orkestra", CHART, "--reset-values"];
    let upgrade = [&upgrade[..], &image].concat();
    for (what, args) in [
        ("upgrade", upgrade.as_slice()),
        ("rollback", ["rollback", "orkestra", "1"].as_slice()),
        ("second upgrade", upgrade.as_slice()),
    ] {
        let place = PLACE.iter().filter(|one| **one != "--create-namespace");
        let args: Vec<&str> = args.iter().chain(place).copied().collect();
        churn.round().await?;
        let mut helm = command(Some(&site), &args)?;
        let output = tokio::task::spawn_blocking(move || helm.output()).await??;
        printed(&output, "helm").context(what)?;
        let took = churn.hand_over(&mut site).await.context(what)?;
        println!("{what}: drift was corrected after {took:#}");
    }
    site.ork(&["version", "--cluster"])?;
    churn.end(&site).await?;
    site.stop()
}
