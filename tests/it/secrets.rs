//! Generated Secrets: values and certificates are generated once and rotated in place, and pods that use them roll.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use orkestra_ground::Clock;
use serde_json::{Value, json};
use testbed::{AuditEvent, eventually};

use crate::panics::{Engine, Moments};
use crate::scenario::{LIMIT, Objects, Scenario, input, measured, within};
use crate::{seed, waters};

const GENERATED_AT: &str = "/metadata/annotations/orkestra.orkspace.io~1generated-at";
const CONFIG_HASH: &str = "/spec/template/metadata/annotations/orkestra.orkspace.io~1config-hash";
/// `rotateAfter` in `tests/inputs/secrets/rotating.yaml`.
const ROTATE_AFTER: Duration = Duration::from_secs(4);

/// Returns a decoded value of a Secret.
fn value(secret: &Value, key: &str) -> Result<String> {
    let encoded = secret["data"][key].as_str().context("no such key")?;
    Ok(String::from_utf8(STANDARD.decode(encoded)?)?)
}

fn generated_at(secret: &Value) -> Result<Timestamp> {
    Ok(waters::text(secret, GENERATED_AT).parse()?)
}

async fn running(prefix: &str, katalog: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], katalog).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn credentials_are_made_once_and_made_again_only_when_they_are_gone() -> Result<()>
{
    let mut scenario =
        Scenario::with_katalog("secrets", &[seed::DEMO], &seed::sample("environment")?).await?;
    let spec =
        json!({ "username": "ann", "region": "eu-west-1", "image": "registry.example/pond:3" });
    seed::demo(&scenario, "north", &spec).await?;
    let (secrets, demos) = (scenario.objects("secrets"), seed::demos(&scenario));
    demos.until_ready("north").await?;
    let made = secrets.fetch("north-creds").await?;
    ensure!(value(&made, "username")? == "ann", "{}", made["data"]);
    let password = value(&made, "password")?;
    let is_drawn = password.len() == 16 && password.bytes().all(|b| b.is_ascii_alphanumeric());
    ensure!(is_drawn, "{password}");
    generated_at(&made)?;
    let map = scenario.objects("configmaps").fetch("north-cfg").await?;
    let expected = json!({ "region": "eu-west-1", "image": "registry.example/pond:3" });
    ensure!(map["data"] == expected, "{}", map["data"]);
    let deployment = scenario.objects("deployments").fetch("north").await?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let expected = json!([{ "configMapRef": { "name": "north-cfg" } }, { "secretRef": { "name": "north-creds" } }]);
    ensure!(container["envFrom"] == expected, "{container}");

    // The values that the Secret is created from change: the Secret is not updated.
    let version = waters::version(&secrets, "north-creds").await?;
    demos
        .patch("north", &json!({ "spec": { "username": "eve" } }))
        .await?;
    demos.until_ready("north").await?;
    scenario.kill9()?;
    scenario.start().await?;
    waters::ensure_no_writes(&scenario).await?;
    ensure!(waters::version(&secrets, "north-creds").await? == version);

    secrets.delete("north-creds").await?;
    let uid = made["metadata"]["uid"].clone();
    let again = secrets
        .until("north-creds", "is created again", LIMIT, |secret| {
            secret["metadata"]["uid"] != uid
        })
        .await?;
    ensure!(value(&again, "username")? == "eve" && value(&again, "password")? != password);
    Ok(())
}

/// Follows at least two rotations until one is at most 2 s late: times are truncated to seconds. Checks that none is early, that each
/// has a value of its own, and that the Secret is never replaced.
async fn ensure_rotates_in_time(secrets: &Objects, name: &str) -> Result<()> {
    let mut last = secrets.fetch(name).await?;
    let mut values = BTreeSet::from([value(&last, "password")?]);
    measured(
        "the delay of a rotation",
        |(rotations, late)| *rotations > 1 && *late <= Duration::from_secs(2),
        async || {
            let next = rotation(secrets, &last).await?;
            let after = generated_at(&next)?.duration_since(generated_at(&last)?);
            let after: Duration = after.try_into()?;
            ensure!(after >= ROTATE_AFTER, "rotated after {after:?}");
            ensure!(
                next["metadata"]["uid"] == last["metadata"]["uid"],
                "the Secret was replaced"
            );
            ensure!(
                values.insert(value(&next, "password")?),
                "the value was used before"
            );
            last = next;
            Ok((values.len() - 1, after.saturating_sub(ROTATE_AFTER)))
        },
    )
    .await
    .map(drop)
}

/// Waits until the Secret is rotated, and returns it.
async fn rotation(secrets: &Objects, last: &Value) -> Result<Value> {
    let name = waters::text(last, "/metadata/name");
    let before = generated_at(last)?;
    eventually("the password rotates", LIMIT, async || {
        let now = secrets.fetch(name).await?;
        Ok((generated_at(&now)? != before).then_some(now))
    })
    .await
}

/// Checks that each rotation writes the Secret, then the Deployment, and that nothing else is written in between.
async fn ensure_each_rotation_writes_two(scenario: &Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    let written = eventually("two rotations are written", LIMIT, async || {
        let mut writes = scenario.writes_since(mark)?;
        writes.retain(|write| ["secrets", "deployments"].contains(&&*write.resource));
        Ok((writes.len() > 4).then_some(writes))
    })
    .await?;
    // The first write may belong to the rotation before.
    let is_in_turn = |pair: &[AuditEvent]| pair[0].resource != pair[1].resource;
    ensure!(
        written.windows(2).all(is_in_turn),
        "{}",
        waters::lines(&written)
    );
    let mut secrets = written.iter().filter(|write| write.resource == "secrets");
    let mut last = secrets.next().context("no Secret is written")?.timestamp;
    for rotation in secrets {
        let after: Duration = rotation.timestamp.duration_since(last).try_into()?;
        // The time of the rotation before was truncated.
        let shortest = ROTATE_AFTER.saturating_sub(Duration::from_secs(1));
        ensure!(after >= shortest, "rotated after {after:?}");
        last = rotation.timestamp;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_password_rotates_in_place_and_its_pods_roll() -> Result<()> {
    let mut scenario = running("rotating", "secrets/rotating.yaml").await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    let (secrets, deployments) = (scenario.objects("secrets"), scenario.objects("deployments"));
    deployments
        .until("north", "exists", LIMIT, |one| {
            one.pointer(CONFIG_HASH).is_some()
        })
        .await?;
    let before = deployments.fetch("north").await?;
    ensure_rotates_in_time(&secrets, "north-key").await?;
    deployments
        .until("north", "rolls", LIMIT, |now| {
            now.pointer(CONFIG_HASH) != before.pointer(CONFIG_HASH)
        })
        .await?;
    ensure_each_rotation_writes_two(&scenario).await?;

    // A restart does not rotate the password early.
    scenario.kill9()?;
    let last = secrets.fetch("north-key").await?;
    scenario.start().await?;
    let next = rotation(&secrets, &last).await?;
    let after = generated_at(&next)?.duration_since(generated_at(&last)?);
    ensure!(Duration::try_from(after)? >= ROTATE_AFTER);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_somebody_deletes_rolls_its_pods_once() -> Result<()> {
    let scenario = running("deleted", "secrets/rolling.yaml").await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    let (secrets, deployments) = (scenario.objects("secrets"), scenario.objects("deployments"));
    scenario.objects("ponds").until_ready("north").await?;
    let ponds = scenario.objects("ponds");
    let mark = Scenario::mark()?;
    // Two watches report the Secret, in either order; the loop makes it likely that both orders occur.
    for rolls in 1..=10 {
        let before = deployments.fetch("north").await?;
        secrets.delete("north-key").await?;
        deployments
            .until("north", "rolls", LIMIT, |now| {
                now.pointer(CONFIG_HASH) != before.pointer(CONFIG_HASH)
            })
            .await?;
        // A second roll would follow immediately, or with the next deletion.
        scenario.until_handled(&ponds, "north").await?;
        let writes = scenario.writes_since(mark)?;
        let rolled = writes
            .iter()
            .filter(|write| write.resource == "deployments");
        ensure!(rolled.count() == rolls, "{}", waters::lines(&writes));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_follows_its_hosts_and_pods_roll_with_what_others_have() -> Result<()> {
    let mut scenario = running("certified", "secrets/rotating.yaml").await?;
    scenario.objects("configmaps").create(&depths("3")).await?;
    waters::lake(&scenario, "north", &json!({ "host": "north.example.org" })).await?;
    let (secrets, deployments) = (scenario.objects("secrets"), scenario.objects("deployments"));
    let first = a_certificate_is_issued(&secrets).await?;
    let rolled = deployments
        .until("north", "exists", LIMIT, |one| {
            one.pointer(CONFIG_HASH).is_some()
        })
        .await?;

    pods_roll_with_what_others_have(&scenario, &rolled).await?;

    // Nothing is written while nothing changes, and a restart issues no certificate.
    let generation = async || {
        Ok::<_, anyhow::Error>(deployments.fetch("north").await?["metadata"]["generation"].clone())
    };
    let before = generation().await?;
    scenario.terminate()?;
    scenario.start().await?;
    waters::ensure_no_writes(&scenario).await?;
    ensure!(
        waters::version(&secrets, "north-tls").await?
            == waters::text(&first, "/metadata/resourceVersion")
    );
    assert_eq!(generation().await?, before);

    let lakes = scenario.objects("lakes");
    lakes
        .patch("north", &json!({ "spec": { "host": "south.example.org" } }))
        .await?;
    secrets
        .until("north-tls", "is issued again", LIMIT, |one| {
            one["metadata"]["uid"] == first["metadata"]["uid"] && one["data"] != first["data"]
        })
        .await?;
    Ok(())
}

/// Returns a `ConfigMap` that Orkestra does not manage, with that depth.
fn depths(depth: &str) -> Value {
    json!({ "metadata": { "name": "depths" }, "data": { "depth": depth } })
}

/// Waits until the Secret has a certificate, checks it, and returns it.
async fn a_certificate_is_issued(secrets: &Objects) -> Result<Value> {
    let first = secrets
        .until("north-tls", "has a certificate", LIMIT, |one| {
            one["data"].get("tls.crt").is_some()
        })
        .await?;
    ensure!(first["type"] == "kubernetes.io/tls");
    ensure!(value(&first, "tls.crt")?.starts_with("-----BEGIN CERTIFICATE-----"));
    ensure!(value(&first, "tls.key")?.starts_with("-----BEGIN PRIVATE KEY-----"));
    ensure!(value(&first, "ca.crt")? != value(&first, "tls.crt")?);
    Ok(first)
}

/// Changes objects that Orkestra does not manage, and waits each time until the pods roll; on an idle machine within a second.
async fn pods_roll_with_what_others_have(scenario: &Scenario, deployment: &Value) -> Result<()> {
    let (secrets, deployments) = (scenario.objects("secrets"), scenario.objects("deployments"));
    let mut mark = waters::text(deployment, CONFIG_HASH).to_owned();
    scenario
        .objects("configmaps")
        .patch("depths", &depths("4"))
        .await?;
    let others = [json!("b25l"), json!("dHdv")];
    for (index, password) in others.iter().enumerate() {
        let now = deployments
            .until("north", "rolls", LIMIT, |one| {
                waters::text(one, CONFIG_HASH) != mark
            })
            .await?;
        waters::text(&now, CONFIG_HASH).clone_into(&mut mark);
        let secret =
            json!({ "metadata": { "name": "registry" }, "data": { "password": password } });
        if index == 0 {
            secrets.create(&secret).await?;
        } else {
            secrets.patch("registry", &secret).await?;
        }
    }
    deployments
        .until("north", "rolls", LIMIT, |one| {
            waters::text(one, CONFIG_HASH) != mark
        })
        .await?;
    Ok(())
}

/// Runs the scenario's Katalogs in the test process, with a clock that starts at `began`, and records when passes begin.
fn in_process(scenario: &Scenario, began: Timestamp) -> Result<(Engine, Moments)> {
    let since = Instant::now();
    let clock = Clock::new(move || {
        let passed = jiff::SignedDuration::try_from(since.elapsed()).unwrap_or_default();
        began + passed
    });
    let moments = Moments::default();
    let engine = Engine::start(scenario, |context| moments.note(context, clock))?;
    Ok((engine, moments))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_rotation_comes_within_a_second_of_its_moment_by_the_clock_it_is_given()
-> Result<()> {
    let mut scenario = Scenario::new("monthly").await?;
    let katalog = seed::sample("environment")?;
    scenario.grant(&katalog).await?;
    scenario.install(&input(seed::DEMO)?).await?;
    scenario.apply(&katalog)?;
    seed::demo(&scenario, "north", &json!({ "username": "ann" })).await?;
    let secrets = scenario.objects("secrets");
    let began: Timestamp = "2031-05-01T12:00:00Z".parse()?;
    let (engine, _) = in_process(&scenario, began)?;
    let made = secrets
        .until("north-creds", "exists", LIMIT, |secret| {
            secret["data"].get("password").is_some()
        })
        .await?;
    engine.stop().await?;
    let made_at = generated_at(&made)?;
    ensure!(made_at >= began, "{made_at}");
    let mut last = made.clone();
    within("a rotation is late", Duration::from_secs(1), async || {
        // Another engine starts five seconds before the thirty days are over.
        let due = generated_at(&last)? + jiff::SignedDuration::from_hours(30 * 24);
        let (engine, moments) = in_process(&scenario, due - jiff::SignedDuration::from_secs(5))?;
        let rotated = rotation(&secrets, &last).await?;
        engine.stop().await?;
        ensure!(generated_at(&rotated)? >= due, "the rotation was early");
        last = rotated;
        let late = moments.late(due).context("no pass since it was due")?;
        Ok(late.unsigned_abs())
    })
    .await?;
    let name = "north-creds";
    let rotated = secrets.fetch(name).await?;
    ensure!(rotated["data"] != made["data"], "the same value");
    ensure!(rotated["metadata"]["uid"] == made["metadata"]["uid"]);
    ensure!(value(&rotated, "username")? == "ann", "{}", rotated["data"]);
    Ok(())
}
