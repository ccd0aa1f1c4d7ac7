//! Scenario p: an API server that goes away.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{
    ControlPlane, Guarded, Identity, Options, Signal, eventually, free_port, spawn_guarded,
};

use crate::scenario::{LIMIT, Objects, input, is_ready};
use crate::waters;

const GROUP: &str = "restarts.example.org";

/// A control plane of the test's own, and a controller in it that is the service account which `ork generate rbac` names.
struct Private {
    cluster: ControlPlane,
    identity: Identity,
    client: kube::Client,
}

impl Private {
    fn start() -> Result<Self> {
        let cluster = ControlPlane::start(Options::default())?;
        let identity = cluster.identity(
            "system:serviceaccount:orkestra-system:orkestra",
            &["system:serviceaccounts"],
        )?;
        let client = cluster.admin().client()?;
        Ok(Self {
            cluster,
            identity,
            client,
        })
    }

    fn apply(&self, text: &str) -> Result<()> {
        let output =
            self.cluster
                .kubectl(&self.cluster.admin(), &["apply", "-f", "-"], Some(text))?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    fn ork(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command
            .args(args)
            .env("KUBECONFIG", self.identity.kubeconfig_path());
        command
    }

    /// What `ork` prints.
    fn printed(&self, args: &[&str]) -> Result<String> {
        let output = self.ork(args).output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    fn controller(&self, log: &Path) -> Result<Guarded> {
        let listen = format!("127.0.0.1:{}", free_port()?);
        let args = ["controller", "--leader-elect=false", "--listen", &listen];
        spawn_guarded(&self.ork(&args), log)
    }

    fn objects(&self, plural: &str) -> Objects {
        let root = if plural == "ponds" {
            format!("/apis/{GROUP}/v1alpha1")
        } else {
            "/api/v1".to_owned()
        };
        Objects::at(&self.client, &format!("{root}/namespaces/default/{plural}"))
    }

    async fn pond(&self, name: &str) -> Result<()> {
        let pond = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Pond", "metadata": { "name": name }, "spec": { "colour": "green" } });
        self.objects("ponds").create(&pond).await.map(drop)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn p_a_killed_api_server_leaves_the_controller_up_and_it_repairs_what_changed_meanwhile()
-> Result<()> {
    let private = Private::start()?;
    let katalog = input("panic/katalog.yaml")?.replace("GROUP", GROUP);
    let file = private.cluster.folder().join("katalog.yaml");
    std::fs::write(&file, &katalog)?;
    private.apply(&private.printed(&["crds"])?)?;
    private.apply(&private.printed(&[
        "generate",
        "rbac",
        "-k",
        file.to_str().context("a path is not text")?,
    ])?)?;
    private.apply(&waters::crds()?.replace("GROUP", GROUP))?;
    private.cluster.relearn_kinds()?;
    let log = private.cluster.folder().join("controller.log");
    let mut controller = private.controller(&log)?;
    eventually("the Katalog is applied", LIMIT, async || {
        private.apply(&katalog).map(Some)
    })
    .await?;
    let (ponds, maps) = (private.objects("ponds"), private.objects("configmaps"));
    for name in ["one", "two", "three", "four"] {
        private.pond(name).await?;
        ponds.until_ready(name).await?;
    }

    private.cluster.stop_api_server()?;
    // Long enough for several tries of everything, with growing pauses.
    tokio::time::sleep(Duration::from_secs(8)).await;
    ensure!(
        controller.status()?.is_none(),
        "it ended without its API server:\n{}",
        controller.log()
    );
    // It stands still while the API server comes back, so that what changes is missed for certain.
    controller.signal(Signal::Stop)?;
    private.cluster.start_api_server()?;
    maps.delete("one-pond").await?;
    maps.patch("two-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    ponds
        .patch("three", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    ponds.delete("four").await?;
    private.pond("five").await?;
    controller.signal(Signal::Cont)?;

    maps.until_equal("one-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    maps.until_equal("two-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    maps.until_equal("three-pond", "/data/colour", json!("brown"), LIMIT)
        .await?;
    ponds.until_gone("four", LIMIT).await?;
    maps.until_gone("four-pond", LIMIT).await?;
    maps.until_equal("five-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    for name in ["one", "two", "three", "five"] {
        ponds.until(name, "is ready again", LIMIT, is_ready).await?;
    }
    // The watches live: what happens now is seen, too.
    maps.delete("two-pond").await?;
    maps.until_equal("two-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    let katalogs = Objects::at(
        &private.client,
        "/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs",
    );
    let is_true = |katalog: &Value| {
        crate::scenario::condition(katalog, "Ready").is_some_and(|ready| ready["status"] == "True")
    };
    katalogs
        .until("waters", "is Ready=True again", LIMIT, is_true)
        .await?;
    ensure!(controller.status()?.is_none(), "it ended");
    ensure!(
        !controller.log().contains("panicked"),
        "something panicked:\n{}",
        controller.log()
    );
    controller.signal(Signal::Term)?;
    ensure!(
        controller.wait(LIMIT)?.success(),
        "after SIGTERM it ended badly:\n{}",
        controller.log()
    );
    Ok(())
}
