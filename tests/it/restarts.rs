//! A killed API server: the controller keeps running and corrects what changed in the meantime.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{Guarded, Options, Signal, eventually, free_port, spawn_guarded};

use crate::private::Private;
use crate::scenario::{LIMIT, Objects, input, is_ready, pause};

const GROUP: &str = "restarts.example.org";

async fn pond(ponds: &Objects, name: &str) -> Result<()> {
    let pond = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Pond", "metadata": { "name": name }, "spec": { "colour": "green" } });
    ponds.create(&pond).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_killed_api_server_leaves_the_controller_up_and_it_repairs_what_changed_meanwhile()
-> Result<()> {
    let private = Private::start(Options::default(), GROUP)?;
    let katalog = input("panic/katalog.yaml")?.replace("GROUP", GROUP);
    private.prepare(&katalog)?;
    let mut controller = controller_of(&private)?;
    eventually("the Katalog is applied", LIMIT, async || {
        private.apply(&katalog).map(Some)
    })
    .await?;
    let of = |plural: &str| private.objects(&private.client, "default", plural);
    let (ponds, maps) = (of("ponds"), of("configmaps"));
    for name in ["one", "two", "three", "four"] {
        pond(&ponds, name).await?;
        ponds.until_ready(name).await?;
    }

    private.cluster.stop_api_server()?;
    // The pause is long enough for several retries of each request, with growing backoff.
    pause(Duration::from_secs(8)).await;
    ensure!(
        controller.status()?.is_none(),
        "the controller ended without its API server:\n{}",
        controller.log()
    );
    // The controller is stopped while the API server comes back, so that its watches certainly miss the changes.
    controller.signal(Signal::Stop)?;
    private.cluster.start_api_server()?;
    ponds_and_children_change(&ponds, &maps).await?;
    controller.signal(Signal::Cont)?;

    what_changed_is_repaired(&ponds, &maps).await?;
    // The watches work again: later changes are seen.
    maps.delete("two-pond").await?;
    maps.until_equal("two-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    let katalogs = of("katalogs");
    let is_true = |katalog: &Value| {
        crate::scenario::condition(katalog, "Ready").is_some_and(|ready| ready["status"] == "True")
    };
    katalogs
        .until("waters", "is Ready=True again", LIMIT, is_true)
        .await?;
    it_ends_in_order(&mut controller)
}

/// Starts a controller for that control plane.
fn controller_of(private: &Private) -> Result<Guarded> {
    let log = private.cluster.folder().join("controller.log");
    let listen = format!("127.0.0.1:{}", free_port()?);
    let kubeconfig = private.identity.kubeconfig_path();
    let command = Private::ork(
        kubeconfig,
        &["controller", "--leader-elect=false", "--listen", &listen],
    );
    spawn_guarded(&command, &log)
}

/// Deletes, changes and creates children and resources.
async fn ponds_and_children_change(ponds: &Objects, maps: &Objects) -> Result<()> {
    maps.delete("one-pond").await?;
    maps.patch("two-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    ponds
        .patch("three", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    ponds.delete("four").await?;
    pond(ponds, "five").await
}

/// Waits until all children match their resources again.
async fn what_changed_is_repaired(ponds: &Objects, maps: &Objects) -> Result<()> {
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
    Ok(())
}

/// Checks that the controller still runs, and that it ends with exit status 0 after SIGTERM.
fn it_ends_in_order(controller: &mut Guarded) -> Result<()> {
    ensure!(controller.status()?.is_none(), "the controller ended");
    ensure!(
        !controller.log().contains("panicked"),
        "the controller's log contains a panic:\n{}",
        controller.log()
    );
    controller.signal(Signal::Term)?;
    ensure!(
        controller.wait(LIMIT)?.success(),
        "after SIGTERM the controller failed:\n{}",
        controller.log()
    );
    Ok(())
}
