//! Compositions that are larger than the size limit of an API object.

use anyhow::{Result, ensure};
use orkestra_object::value;
use serde_json::Value;

use super::{
    is,
    remote::{Remote, lakes},
};

/// Returns a YAML comment of at least `bytes` bytes that hardly compresses: digits of hashes.
fn noise(seed: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut last = seed.to_owned();
    while text.len() < bytes {
        last = value::hash_text(&last);
        text.push_str("# ");
        text.push_str(&last);
        text.push('\n');
    }
    text
}

/// Katalogs without operators.
const MORE: [&str; 3] = ["marsh", "moor", "fen"];

impl Remote {
    /// Publishes the Katalogs of [`MORE`], each with a comment of `bytes` bytes.
    fn publish_more(&self, bytes: usize) {
        for name in MORE {
            let text = format!(
                "{}apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{name: {name}}}\nspec: {{crds: {{}}}}\n",
                noise(name, bytes)
            );
            self.registry.publish(&format!("k/{name}"), &text, false);
        }
    }

    /// Publishes the Katalog of Lakes with a depth and a comment of `bytes` bytes.
    fn publish_lakes(&self, depth: &str, bytes: usize) -> Result<()> {
        let lakes = lakes()?.replace("depth: \"7\"", &format!("depth: \"{depth}\""));
        let text = noise(depth, bytes) + &self.scenario.text(&lakes);
        self.registry.publish("k/lakes", &text, false);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composition_of_megabytes_is_stored_in_parts_and_one_that_is_too_large_leaves_the_last_one()
-> Result<()> {
    let mut remote = Remote::running("large").await?;
    remote.publish_more(1 << 20);
    remote.publish_lakes("8", 1 << 20)?;
    let more: Vec<String> = (MORE.iter())
        .map(|name| {
            format!(
                "      - url: {}\n        interval: 1s\n",
                remote.reference(name)
            )
        })
        .collect();
    let komposer = remote.komposer.replace(
        "    registry:\n",
        &format!("    registry:\n{}", more.concat()),
    );
    remote.scenario.apply(&komposer)?;
    remote.children("green", "8", "slow").await?;
    let komposer = remote.runs().await?;

    it_is_stored_in_small_parts(&remote, &komposer).await?;

    // After a restart, the stored composition is read while the registry is unreachable.
    remote.registry.stop();
    remote.scenario.kill9()?;
    remote.scenario.start().await?;
    let maps = remote.scenario.objects("configmaps");
    maps.delete("south-lake").await?;
    remote.children("green", "8", "slow").await?;

    // A composition that is too large even when compressed is refused. The stored one keeps running, also after a restart.
    remote.registry.restart().await?;
    remote.publish_more(7 << 19);
    let parts = ["KiB when compressed", "7168 KiB"];
    remote.fails("RevisionTooLarge", &parts, "green").await?;
    remote.scenario.kill9()?;
    remote.scenario.start().await?;
    maps.delete("south-lake").await?;
    remote.children("green", "8", "slow").await?;
    is(
        &remote.scenario,
        "waters",
        ("False", "RevisionTooLarge"),
        &parts,
    )
    .await?;

    // A small composition is accepted again.
    remote.publish_more(1 << 10);
    remote.publish_lakes("5", 1 << 10)?;
    remote.children("green", "5", "slow").await?;
    remote.runs().await?;
    remote.scenario.check_running()
}

/// Checks that the composition of the revision in the status has two to seven parts, and that each object is small enough.
async fn it_is_stored_in_small_parts(remote: &Remote, komposer: &Value) -> Result<()> {
    let revisions = remote
        .scenario
        .objects("controllerrevisions")
        .list()
        .await?;
    let parts: Vec<_> = (revisions.iter())
        .filter(|one| one["data"]["part"]["of"] == komposer["status"]["revision"])
        .collect();
    ensure!((2..=7).contains(&parts.len()), "{} parts", parts.len());
    let longest = revisions.iter().map(|one| one.to_string().len()).max();
    ensure!(longest < Some(1_000_000), "{longest:?}");
    Ok(())
}
