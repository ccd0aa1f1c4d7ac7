//! Documentation: runs the commands of `docs/operate/install.md`, `docs/operate/operations.md`, `docs/guides/gitops.md` and of the README's section "Run
//! Orkestra", in order.

use std::{os::unix::fs::symlink, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use testbed::eventually;

use super::site::Site;
use super::{EXAMPLE, run_the_example};
use crate::scenario::{LIMIT, printed};

/// Returns the commands in the `sh` blocks of a text; each line is a command.
fn commands(text: &str) -> Vec<&str> {
    let blocks = text
        .split("\n```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next());
    let lines = blocks.flat_map(str::lines).map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Creates a folder with an example and the files that the commands name by relative paths.
fn folder() -> Result<tempfile::TempDir> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir()?;
    for name in ["config", "charts", "crds"] {
        symlink(root.join(name), folder.path().join(name))?;
    }
    for name in ["crd.yaml", "katalog.yaml", "website.yaml"] {
        std::fs::copy(root.join(EXAMPLE).join(name), folder.path().join(name))?;
    }
    std::fs::write(folder.path().join("values.yaml"), "replicas: 2\n")?;
    Ok(folder)
}

/// Returns the variable that `docs/operate/install.md` exports, with the image of the commands on it and on later pages.
fn image() -> Result<[(String, String); 1]> {
    let page = std::fs::read_to_string("docs/operate/install.md")?;
    let mut lines = page.lines();
    let export = lines.find_map(|line| line.strip_prefix("export ORK_IMAGE="));
    let image = export.context("docs/operate/install.md does not export ORK_IMAGE")?;
    Ok([("ORK_IMAGE".to_owned(), image.to_owned())])
}

/// Runs a command as an administrator, in a shell.
fn run(site: &Site, folder: &Path, command: &str) -> Result<()> {
    output_of(site, folder, command).map(drop)
}

/// Runs a command as an administrator, in a shell, which must succeed; returns its standard output.
pub(crate) fn output_of(site: &Site, folder: &Path, command: &str) -> Result<String> {
    let ork = Path::new(env!("CARGO_BIN_EXE_ork"))
        .parent()
        .context("no folder")?;
    let kubectl = site.cluster.assets().binary("kubectl")?;
    let kubectl = kubectl.parent().context("no folder")?;
    let path = format!(
        "{}:{}:{}",
        ork.display(),
        kubectl.display(),
        std::env::var("PATH")?
    );
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("KUBECONFIG", site.cluster.admin().kubeconfig_path())
        .env("KUBECACHEDIR", site.cluster.folder().join("kubectl-cache"))
        .envs(image()?)
        .output()?;
    printed(&output, command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_page_install_upgrade_and_remove() -> Result<()> {
    let mut site = Site::start()?;
    let folder = folder()?;
    let page = std::fs::read_to_string("docs/operate/install.md")?;
    let mut ran = 0;
    for command in commands(&page) {
        // The controller is not a Pod here: start it before the first Katalog, and stop it before the removal.
        if command.starts_with("ork generate rbac -k") {
            site.launch().await?;
        }
        if command.starts_with("ork uninstall --dry-run") {
            site.stop()?;
        }
        if command.starts_with("kubectl diff") {
            // The status of objects may change between the two requests of `kubectl diff`.
            eventually("no manifest differs", LIMIT, async || {
                run(&site, folder.path(), command).map(Some)
            })
            .await?;
        } else {
            run(&site, folder.path(), command)?;
        }
        ran += 1;
    }
    ensure!(ran > 12, "{ran} commands");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readme_runs_orkestra_by_three_commands() -> Result<()> {
    let mut site = Site::start()?;
    let folder = folder()?;
    let readme = std::fs::read_to_string("README.md")?;
    let (_, section) = readme
        .split_once("\n## Run Orkestra\n")
        .context("no section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let commands = commands(section);
    ensure!(commands.len() == 3, "{commands:?}");
    for (number, command) in commands.iter().enumerate() {
        run(&site, folder.path(), command)?;
        if number == 0 {
            site.launch().await?;
            run(&site, folder.path(), "kubectl apply -f crd.yaml")?;
        }
    }
    run(
        &site,
        folder.path(),
        "kubectl wait --for=condition=Ready katalog/hello-website --timeout=60s",
    )?;
    site.stop()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_operations_do_what_the_page_says() -> Result<()> {
    let mut site = Site::start()?;
    let folder = folder()?;
    site.ork(&["install", "--wait"])?;
    run_the_example(&mut site).await?;
    let websites = site.objects_at("/apis/demo.orkestra.io/v1alpha1/namespaces/default/websites");
    let uid = websites.fetch("hello").await?["metadata"]["uid"].clone();
    let page = std::fs::read_to_string("docs/operate/operations.md")?;
    let mut ran = 0;
    for command in commands(&page) {
        // The controller runs outside the cluster: start and stop it when its Pods would start and stop.
        if command.starts_with("kubectl delete katalog") {
            site.stop()?;
        }
        run(&site, folder.path(), command)?;
        if command.ends_with("--replicas=0") {
            site.stop()?;
        }
        if command.ends_with("--replicas=2") {
            site.launch().await?;
        }
        if command.starts_with("ork release") {
            let katalogs =
                site.objects_at("/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs");
            ensure!(katalogs.get("hello-website").await?.is_none());
            let website = websites.fetch("hello").await?;
            ensure!(website["metadata"]["uid"] == uid, "{website}");
            ensure!(website["metadata"]["finalizers"].is_null(), "{website}");
            site.launch().await?;
            run(&site, folder.path(), "kubectl apply -f katalog.yaml")?;
            katalogs.until_ready("hello-website").await?;
        }
        ran += 1;
    }
    ensure!(ran > 20, "{ran} commands");
    for (file, part) in [
        ("orkestra.yaml", "name: hello-website"),
        ("websites.yaml", "name: hello"),
        ("revisions.yaml", "kind: ControllerRevision"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(file))?;
        ensure!(text.contains(part), "{file} lacks {part}");
    }
    site.stop()
}

/// A CRD that accepts any fields, in place of Flux's CRD.
const KUSTOMIZATIONS: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": { "name": "kustomizations.kustomize.toolkit.fluxcd.io" },
    "spec": {
        "group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced",
        "names": { "kind": "Kustomization", "plural": "kustomizations" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true
        } } }]
    }
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_gitops_configure_argo_cd_and_flux() -> Result<()> {
    let site = Site::start()?;
    for namespace in ["argocd", "flux-system"] {
        site.kubectl(&["create", "namespace", namespace], None)?;
    }
    site.kubectl(&["apply", "-f", "-"], Some(KUSTOMIZATIONS))?;
    let definition = "crd/kustomizations.kustomize.toolkit.fluxcd.io";
    site.kubectl(&["wait", "--for=condition=Established", definition], None)?;
    let page = std::fs::read_to_string("docs/guides/gitops.md")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gitops");
    let commands = commands(&page);
    ensure!(commands.len() == 2, "{commands:?}");
    for command in commands {
        // A kind is served a moment after its definition is established.
        eventually("the command succeeds", LIMIT, async || {
            run(&site, &folder, command).map(Some)
        })
        .await?;
    }
    let maps = site.objects_at("/api/v1/namespaces/argocd/configmaps");
    let settings = maps.fetch("argocd-cm").await?;
    let health = "resource.customizations.health.gitops.example.org_Website";
    ensure!(settings["data"][health].is_string(), "{settings}");
    let flux = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations";
    let resources = site.objects_at(flux).fetch("resources").await?;
    ensure!(
        resources["spec"]["dependsOn"][0]["name"] == "katalogs",
        "{resources}"
    );
    Ok(())
}
