//! Komposers whose sources are in a registry: updates, outages, signatures and locks.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use rcgen::KeyPair;
use serde_json::json;

use super::{child, is, its_deletion_lets_go_of, komposers, registry::Registry};
use crate::scenario::{Rate, Scenario, input};
use crate::waters;

/// Turns a text about Ponds into one about a third kind, Rivers.
fn rivers(text: &str) -> String {
    let text = text.replace("Pond", "River").replace("pond", "river");
    text.replace("colour: green", "flow: slow")
}

/// A scenario with a registry. Its Komposer reads three sources from it: Ponds, which must be signed with `key`, Lakes and Rivers.
pub(crate) struct Remote {
    pub(crate) scenario: Scenario,
    pub(crate) registry: Registry,
    key: PathBuf,
    pub(crate) komposer: String,
}

impl Remote {
    pub(crate) async fn running(prefix: &str) -> Result<Self> {
        let scenario = Scenario::new(prefix).await?;
        let registry = Registry::start().await?;
        let pair = KeyPair::generate()?;
        let key = scenario.file("signing.key", &pair.serialize_pem())?;
        let public = pair.public_key_pem().replace('\n', "\n              ");
        let komposer = input("komposer/remote.yaml")?
            .replace("HOST", &registry.host)
            .replace("KEY", public.trim_end());
        let remote = Self {
            scenario,
            registry,
            key,
            komposer,
        };
        let ponds = input("komposer/ponds.yaml")?;
        remote.push("ponds", &ponds)?;
        remote.sign(&remote.key)?;
        remote.push("lakes", &lakes()?)?;
        remote.push("rivers", &rivers(&ponds))?;
        let Self {
            mut scenario,
            registry,
            key,
            komposer,
        } = remote;
        scenario.grant_confined(&komposer).await?;
        let crds = waters::crds()?;
        scenario.install(&crds).await?;
        scenario.install(&rivers(&crds)).await?;
        scenario.arguments = vec!["--source-allow=http://127.0.0.0/8".to_owned()];
        scenario.start().await?;
        scenario.apply(&komposer)?;
        is(&scenario, "waters", ("True", "Running"), &[]).await?;
        for (kind, plural, name) in NAMES {
            let object = waters::resource(&scenario, kind, name, &json!({}));
            scenario.objects(plural).create(&object).await?;
        }
        let remote = Self {
            scenario,
            registry,
            key,
            komposer,
        };
        remote.children("green", "7", "slow").await?;
        Ok(remote)
    }

    /// Pushes a Katalog to `k/NAME:stable`.
    fn push(&self, name: &str, katalog: &str) -> Result<()> {
        let file = self
            .scenario
            .file(&format!("{name}/katalog.yaml"), katalog)?;
        let folder = file.parent().and_then(std::path::Path::to_str);
        let reference = self.reference(name);
        let folder = folder.context("a path is not text")?;
        self.scenario
            .ork(&["push", folder, &reference, "--no-index"])?;
        Ok(())
    }

    pub(crate) fn reference(&self, name: &str) -> String {
        format!("oci://{}/k/{name}:stable", self.registry.host)
    }

    /// Signs the Katalog of Ponds.
    fn sign(&self, key: &std::path::Path) -> Result<()> {
        let key = key.to_str().context("a path is not text")?;
        self.scenario
            .ork(&["sign", &self.reference("ponds"), "--key", key])?;
        Ok(())
    }

    /// Waits until the children of the three kinds have these values.
    pub(crate) async fn children(&self, colour: &str, depth: &str, flow: &str) -> Result<()> {
        child(&self.scenario, "north-pond", "colour", colour).await?;
        child(&self.scenario, "south-lake", "depth", depth).await?;
        child(&self.scenario, "west-river", "flow", flow).await
    }

    /// Waits until the Komposer is not ready with a reason, and until the child of the Pond has a colour.
    pub(crate) async fn fails(&self, reason: &str, parts: &[&str], colour: &str) -> Result<()> {
        is(&self.scenario, "waters", ("False", reason), parts).await?;
        child(&self.scenario, "north-pond", "colour", colour).await
    }

    pub(crate) async fn runs(&self) -> Result<serde_json::Value> {
        is(&self.scenario, "waters", ("True", "Running"), &[]).await
    }
}

const NAMES: [(&str, &str, &str); 3] = [
    ("Pond", "ponds", "north"),
    ("Lake", "lakes", "south"),
    ("River", "rivers", "west"),
];

pub(crate) fn lakes() -> Result<String> {
    Ok(input("komposer/lakes.yaml")?.replace("  suspend: true\n", ""))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_komposer_of_a_registry_follows_its_sources_and_runs_on_without_them() -> Result<()> {
    let mut remote = Remote::running("remote").await?;
    let komposer = komposers(&remote.scenario).fetch("waters").await?;
    ensure!(komposer["status"]["ready"] == "3/3", "{komposer}");
    waters::until_counted(&remote.scenario).await?;

    unchanged_sources_cost_one_small_request_each(&remote).await?;

    let deep = lakes()?.replace("depth: \"7\"", "depth: \"9\"");
    a_new_version_touches_its_operator_alone(&remote, &deep).await?;

    // An invalid version of a source: the last valid one keeps running.
    let broken = remote
        .scenario
        .text(&deep.replace("configMaps:", "configMapz:"));
    remote.registry.publish("k/lakes", &broken, false);
    let line = broken.lines().position(|line| line.contains("configMapz"));
    let digest = remote.registry.digest("k/lakes", "stable")?;
    let place = format!("/katalog.yaml:{}:", line.context("no line")? + 1);
    let parts = ["/k/lakes@", &digest, &place, "configMapz"];
    remote.fails("InvalidRevision", &parts, "green").await?;
    remote.children("green", "9", "slow").await?;

    // The controller restarts while the registry is unreachable: all operators run.
    remote.push("lakes", &deep)?;
    remote.runs().await?;
    remote.registry.stop();
    remote.scenario.kill9()?;
    remote.scenario.start().await?;
    let maps = remote.scenario.objects("configmaps");
    for name in ["north-pond", "south-lake", "west-river"] {
        maps.delete(name).await?;
    }
    remote.children("green", "9", "slow").await?;
    let parts = ["cannot be fetched", &*remote.registry.host];
    is(
        &remote.scenario,
        "waters",
        ("False", "SourceFailed"),
        &parts,
    )
    .await?;
    remote.registry.restart().await?;
    remote.runs().await?;

    let resources = NAMES.map(|(_, plural, name)| (plural, name));
    its_deletion_lets_go_of(&remote.scenario, &resources).await?;
    remote.scenario.check_running()
}

/// Checks that each unchanged source leads to one HEAD request per interval of a second, and to no writes.
async fn unchanged_sources_cost_one_small_request_each(remote: &Remote) -> Result<()> {
    let mark = remote.scenario.cluster.mark()?;
    remote.registry.seen();
    let mut seen = Vec::new();
    let rate = Rate::until("the sources are asked for", 9.0, async || {
        seen.extend(remote.registry.seen());
        Ok(f64::from(u32::try_from(seen.len())?))
    });
    let rate = rate.await?;
    ensure!(seen.iter().all(|one| one.starts_with("HEAD ")), "{seen:?}");
    // Each of the three sources has a request at the begin and at the end.
    rate.ensure_at_most(std::time::Duration::from_secs(1) / 3, 2 * 3)?;
    let writes = remote.scenario.writes_since(mark)?;
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));
    let fetches = [("kind", "registry"), ("result", "unchanged")];
    let fetches = remote
        .scenario
        .series("orkestra_source_fetches_total", &fetches)
        .await?;
    ensure!(
        fetches.iter().any(|one| !one.ends_with(" 0")),
        "{fetches:?}"
    );
    Ok(())
}

/// Pushes a new version of one source, and checks that the other operators send no requests.
async fn a_new_version_touches_its_operator_alone(remote: &Remote, deep: &str) -> Result<()> {
    let mark = remote.scenario.cluster.mark()?;
    remote.push("lakes", deep)?;
    remote.children("green", "9", "slow").await?;
    remote.runs().await?;
    remote.scenario.until_idle().await?;
    let requests = remote.scenario.requests_since(mark)?;
    let others = ["ponds", "rivers", "north-pond", "west-river"];
    let touched = (requests.iter())
        .any(|one| others.contains(&&*one.resource) || others.contains(&&*one.name));
    ensure!(!touched, "{}", waters::lines(&requests));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_signed_tampered_with_or_not_locked_is_refused_and_what_ran_runs_on()
-> Result<()> {
    let mut remote = Remote::running("verified").await?;
    let komposer = komposers(&remote.scenario).fetch("waters").await?;
    let row = komposer["status"]["sources"][0].clone();
    let first = remote.registry.digest("k/ponds", "stable")?;
    ensure!(waters::text(&row, "/digest") == first, "{row}");
    ensure!(!waters::text(&row, "/verified").is_empty(), "{row}");

    // A new version is refused without a signature and with one of another key, and accepted with one of the declared key.
    let ponds = input("komposer/ponds.yaml")?;
    remote.push("ponds", &ponds.replace("green", "blue"))?;
    let source = remote.reference("ponds");
    remote
        .fails("SourceFailed", &[&source, "no signature"], "green")
        .await?;
    let other = KeyPair::generate()?.serialize_pem();
    remote.sign(&remote.scenario.file("other.key", &other)?)?;
    let parts = [&*source, "not signed with the given key"];
    remote.fails("SourceFailed", &parts, "green").await?;
    remote.sign(&remote.key)?;
    child(&remote.scenario, "north-pond", "colour", "blue").await?;
    let komposer = remote.runs().await?;
    let second = remote.registry.digest("k/ponds", "stable")?;
    let row = &komposer["status"]["sources"][0];
    ensure!(waters::text(row, "/digest") == second, "{row}");

    // The content does not match the digest in the manifest: it is refused.
    let lakes = remote
        .scenario
        .text(&lakes()?.replace("depth: \"7\"", "depth: \"9\""));
    remote.registry.publish("k/lakes", &lakes, true);
    let parts = [&*remote.reference("lakes"), "digest"];
    remote.fails("SourceFailed", &parts, "blue").await?;
    child(&remote.scenario, "south-lake", "depth", "7").await?;
    remote.registry.publish("k/lakes", &lakes, false);
    child(&remote.scenario, "south-lake", "depth", "9").await?;
    remote.runs().await?;

    // Locked to the first version: the second one is refused.
    let lock = |digest: &str| json!({ "spec": { "locked": { &source: digest } } });
    komposers(&remote.scenario)
        .patch("waters", &lock(&first))
        .await?;
    remote
        .fails("NotLocked", &[&source, &first, &second], "blue")
        .await?;
    komposers(&remote.scenario)
        .patch("waters", &lock(&second))
        .await?;
    remote.runs().await?;
    remote.scenario.check_running()
}
