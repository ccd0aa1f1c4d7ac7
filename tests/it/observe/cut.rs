//! An interrupted watch: changes in the meantime lead to a reconcile pass once the watch is established again.

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::{config_map, create, leads_to, patch, ponds, rest};
use crate::scenario::{Scenario, input, pause};

/// The time for which the connection is cut.
const CUT: std::time::Duration = std::time::Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_the_watch_is_cut_leads_to_a_pass_and_what_stays_does_not() -> Result<()>
{
    let katalog = input("observe/katalog.yaml")?;
    let mut scenario = Scenario::new("observecut").await?;
    scenario.grant(&katalog).await?;
    let cluster = Cable::new(&mut scenario).await?;
    scenario.start().await?;
    scenario.install(&input("observe/storms.yaml")?).await?;
    scenario.install(&input("observe/crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("observers", "True", "Running").await?;
    let maps = scenario.objects("configmaps");
    for name in ["changed", "removed"] {
        create(
            &maps,
            &config_map(name, Some("north"), &json!({ "a": "1" })),
        )
        .await?;
    }
    create(&maps, &config_map("kept", Some("south"), &json!({}))).await?;
    ponds(&scenario).await?;

    for (what, change) in [("made", 0), ("changed", 1), ("removed", 2)] {
        println!("{what} while the connection is cut");
        leads_to(&scenario, "north", async || {
            cluster.cut(true);
            match change {
                0 => create(&maps, &config_map("made", Some("north"), &json!({}))).await?,
                1 => patch(&maps, "changed", &json!({ "data": { "a": "2" } })).await?,
                _ => maps.delete("removed").await?,
            }
            pause(CUT).await;
            cluster.cut(false);
            Ok(())
        })
        .await?;
        rest(&scenario).await?;
    }
    scenario.check_running()
}

/// A proxy between the controller and the API server whose connections can be cut.
struct Cable(watch::Sender<bool>);

impl Cable {
    /// Starts the proxy, and makes the scenario's controllers connect through it.
    async fn new(scenario: &mut Scenario) -> Result<Self> {
        let text = scenario.identity.kubeconfig().to_owned();
        let server = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("server: "));
        let address = server
            .and_then(|server| server.strip_prefix("https://"))
            .context("the kubeconfig names no server")?
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let led = text.replace(&address, &format!("127.0.0.1:{port}"));
        let file = scenario.file("kubeconfig-led", &led)?;
        let file = file.to_str().context("a path is not text")?.to_owned();
        scenario.environment.push(("KUBECONFIG", file));
        let (cut, is_cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(lead(near, address.clone(), is_cut.clone()));
            }
        });
        Ok(Self(cut))
    }

    fn cut(&self, cut: bool) {
        self.0.send_replace(cut);
    }
}

/// Forwards one connection until it ends or is cut.
async fn lead(mut near: TcpStream, address: String, mut is_cut: watch::Receiver<bool>) {
    if *is_cut.borrow() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(address).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = is_cut.wait_for(|cut| *cut) => {}
    }
}
