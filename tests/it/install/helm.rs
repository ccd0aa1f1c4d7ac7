//! The chart with the genuine helm: `make helm-install`, which builds it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::EXAMPLE;
use super::churn::Churn;
use super::site::{NAMESPACE, Site, definitions};
use crate::scenario::{LIMIT, is_ready, printed};

/// Where a release is installed, and how long helm waits for it.
const PLACE: [&str; 6] = [
    "--namespace",
    NAMESPACE,
    "--create-namespace",
    "--wait",
    "--timeout",
    "120s",
];

const CHART: &str = "charts/orkestra";

/// Runs helm on the cluster of a site, or without one.
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
     serviceMonitor: {enabled: true, labels: {team: ops}}\npodMonitor: {enabled: true}\nprometheus: {serviceAccount: {namespace: m, name: p}}\n",
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
    done(None, &["lint", "--strict", CHART])?;
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
            "--skip-tests",
            "--values",
            file,
        ];
        let expected = by_name(&done(None, &template)?)?;
        let own = Command::new(env!("CARGO_BIN_EXE_ork"))
            .args(["install", "--dry-run=client", "-f", file])
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs helm: make helm-install"]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() -> Result<()> {
    let mut site = Site::start()?;
    let install = [&["install", "orkestra", CHART][..], &PLACE].concat();
    done(Some(&site), &install)?;
    site.ork(&["version", "--cluster"])?;
    // `helm` owns the objects, and `ork` leaves them alone.
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

    let upgrade = [
        "upgrade",
        "orkestra",
        CHART,
        "--namespace",
        NAMESPACE,
        "--set",
        "replicas=3",
        "--wait",
        "--timeout",
        "120s",
    ];
    done(Some(&site), &upgrade)?;
    let deployments = site.objects("deployments");
    assert_eq!(deployments.fetch("orkestra").await?["spec"]["replicas"], 3);
    done(
        Some(&site),
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
    assert_eq!(websites.fetch("hello").await?["metadata"]["uid"], uid);

    // With custom resources alive: CRDs, Katalogs and children stay, and a new release takes up where the last one ended.
    site.stop()?;
    let children = site.objects_at("/apis/apps/v1/namespaces/default/deployments");
    let before = children.versions().await?;
    done(
        Some(&site),
        &["uninstall", "orkestra", "--namespace", NAMESPACE, "--wait"],
    )?;
    deployments.until_gone("orkestra", LIMIT).await?;
    for name in definitions() {
        site.cluster_objects("customresourcedefinitions")
            .fetch(&name)
            .await?;
    }
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
        site.kubectl(&["delete", object, "--timeout=60s"], None)?;
    }
    site.stop()?;
    done(
        Some(&site),
        &["uninstall", "orkestra", "--namespace", NAMESPACE, "--wait"],
    )?;
    deployments.until_gone("orkestra", LIMIT).await
}

/// The chart and the CRDs of the change before the last that the repository has of the chart, unpacked in a folder.
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
    git(&["archive", "--output", path, commit, "charts", "crds"])?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(folder);
    printed(&tar.output()?, "tar")?;
    Ok(folder.join(CHART))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs helm: make helm-install"]
async fn an_upgrade_from_an_earlier_chart_and_a_rollback_lose_no_change_and_rewrite_no_child()
-> Result<()> {
    let mut site = Site::start()?;
    let folder = tempfile::tempdir()?;
    let chart = earlier_chart(folder.path())?;
    let chart = chart.to_str().context("a path is not text")?;
    let install = [&["install", "orkestra", chart][..], &PLACE].concat();
    done(Some(&site), &install)?;
    let churn = Churn::begin(&mut site).await?;
    for (what, args) in [
        ("upgrade", ["upgrade", "orkestra", CHART].as_slice()),
        ("rollback", ["rollback", "orkestra", "1"].as_slice()),
        ("second upgrade", ["upgrade", "orkestra", CHART].as_slice()),
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
