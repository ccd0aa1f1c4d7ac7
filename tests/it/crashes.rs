//! Crashes: a controller that is killed at random moments leaves no duplicate, no orphan and nothing stuck.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{ControlPlane, eventually};

use crate::scenario::{Objects, Scenario, owner_uid, pause};
use crate::waters;

const PONDS: u64 = 60;
const KILLS: u64 = 20;
/// The pause between two steps of the churn.
const PAUSE: Duration = Duration::from_millis(30);
/// The limit for convergence after the last kill.
const CONVERGED: Duration = Duration::from_mins(2);

/// A generator of pseudorandom numbers, the same in every run.
struct Dice(u64);

impl Dice {
    /// Returns a number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's MMIX constants; the high bits are the most random.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Creates, changes and deletes Ponds until `ended` and at least 40 exist; returns their specs by name.
#[expect(clippy::map_entry, reason = "the create is awaited and may be refused")]
async fn churn(
    ponds: Objects,
    template: Value,
    ended: Arc<AtomicBool>,
) -> Result<BTreeMap<String, Value>> {
    let mut dice = Dice(7);
    let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
    let mut steps = 0_u64;
    while !ended.load(Ordering::SeqCst) || wanted.len() < 40 {
        steps += 1;
        let name = format!("p{:02}", dice.roll(PONDS));
        let spec = json!({ "colour": format!("c{steps}"), "deep": if dice.roll(2) == 0 { "yes" } else { "no" } });
        if !wanted.contains_key(&name) {
            let mut pond = template.clone();
            pond["metadata"]["name"] = json!(name);
            pond["spec"] = spec.clone();
            // Refused while a Pond of that name is still being deleted; a later step retries.
            if ponds.create(&pond).await.is_ok() {
                wanted.insert(name, spec);
            }
        } else if dice.roll(4) == 0 {
            ponds.delete(&name).await?;
            wanted.remove(&name);
        } else {
            ponds.patch(&name, &json!({ "spec": spec })).await?;
            wanted.insert(name, spec);
        }
        pause(PAUSE).await;
    }
    Ok(wanted)
}

/// Returns the expected children of `ponds`: the owner's uid and the colour by `namespace/kind/name`.
fn expected(ponds: &[Value], far: &str) -> BTreeMap<String, (String, String)> {
    let mut all = BTreeMap::new();
    for pond in ponds {
        let name = waters::text(pond, "/metadata/name");
        let of = |colour: &str| {
            (
                waters::text(pond, "/metadata/uid").to_owned(),
                colour.to_owned(),
            )
        };
        let colour = waters::text(pond, "/spec/colour");
        all.insert(format!("near/ConfigMap/{name}-once"), of(""));
        all.insert(format!("near/ConfigMap/{name}-kept"), of(colour));
        all.insert(format!("near/Secret/{name}-key"), of(""));
        all.insert(format!("{far}/ConfigMap/{name}-far"), of(colour));
        if pond["spec"]["deep"] == "yes" {
            all.insert(format!("near/ConfigMap/{name}-deep"), of(colour));
        }
    }
    all
}

/// Returns the existing objects that Orkestra manages.
async fn actual(scenario: &Scenario, far: &str) -> Result<BTreeMap<String, (String, String)>> {
    let mut all = BTreeMap::new();
    let places = [
        ("near", "ConfigMap", scenario.objects("configmaps")),
        ("near", "Secret", scenario.objects("secrets")),
        (far, "ConfigMap", scenario.objects_in(far, "configmaps")),
    ];
    for (place, kind, objects) in places {
        for object in waters::managed(objects.list().await?) {
            let uid = waters::text(&object, "/metadata/labels/orkestra.orkspace.io~1owner-uid");
            if place == "near" {
                ensure!(
                    owner_uid(&object) == Some(uid),
                    "label and owner reference differ: {}",
                    object["metadata"]
                );
            }
            let colour = if kind == "Secret" {
                ""
            } else {
                waters::text(&object, "/data/colour")
            };
            all.insert(
                format!("{place}/{kind}/{}", waters::text(&object, "/metadata/name")),
                (uid.to_owned(), colour.to_owned()),
            );
        }
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_kills_during_a_churn_leave_no_duplicate_no_orphan_and_nothing_stuck() -> Result<()>
{
    let mut scenario = Scenario::new("crashes").await?;
    let far = waters::second_namespace(&scenario.client).await?;
    let katalog = waters::filled("crashes/katalog.yaml", "FAR", &far)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    ControlPlane::shared().relearn_kinds()?;
    scenario.apply(&katalog)?;

    let ponds = scenario.objects("ponds");
    let stop = Arc::new(AtomicBool::new(false));
    let template = waters::resource(&scenario, "Pond", "", &json!({}));
    let churning = tokio::spawn(churn(ponds.clone(), template, Arc::clone(&stop)));
    the_controller_is_killed_again_and_again(&mut scenario).await?;
    scenario.start().await?;
    stop.store(true, Ordering::SeqCst);
    let wanted = churning.await??;
    let started = Instant::now();
    eventually("everything converges", CONVERGED, async || {
        let there = ponds.list().await?;
        ensure_reconciled(&there, &wanted)?;
        ensure_children(&scenario, &there, &far).await?;
        Ok(Some(()))
    })
    .await?;
    println!(
        "{} resources converged {:?} after the last kill",
        wanted.len(),
        started.elapsed()
    );
    let revisions = scenario.objects("controllerrevisions").list().await?;
    assert_eq!(
        revisions.len(),
        1,
        "the revision is not stored once: {:?}",
        waters::names(&revisions)
    );
    waters::ensure_no_writes(&scenario).await?;

    // No deletion gets stuck either.
    all_is_deleted(&scenario, &far).await?;
    scenario.check_running()
}

/// Starts and kills the controller repeatedly, each time after a different delay.
async fn the_controller_is_killed_again_and_again(scenario: &mut Scenario) -> Result<()> {
    let mut dice = Dice(11);
    for _ in 0..KILLS {
        scenario.launch().await?;
        // The kill comes at any time between the start, with empty caches, and the middle of the work.
        pause(Duration::from_millis(100 + dice.roll(1400))).await;
        scenario.kill9()?;
    }
    Ok(())
}

/// Checks that the Ponds have the wanted specs, and that each is ready with a status of its current spec.
fn ensure_reconciled(there: &[Value], wanted: &BTreeMap<String, Value>) -> Result<()> {
    let specs: BTreeMap<String, Value> = there
        .iter()
        .map(|pond| {
            (
                waters::text(pond, "/metadata/name").to_owned(),
                pond["spec"].clone(),
            )
        })
        .collect();
    ensure!(
        specs == *wanted,
        "{} resources exist, {} are expected",
        specs.len(),
        wanted.len()
    );
    for pond in there {
        ensure!(
            crate::scenario::is_ready(pond),
            "not ready: {} {}",
            pond["metadata"]["name"],
            pond["status"]
        );
        ensure!(
            pond["status"]["colour"] == pond["spec"]["colour"],
            "outdated status: {}",
            pond["status"]
        );
    }
    Ok(())
}

/// Checks that the expected children of the Ponds exist, and no others.
async fn ensure_children(scenario: &Scenario, there: &[Value], far: &str) -> Result<()> {
    let (wanted, actual) = (expected(there, far), actual(scenario, far).await?);
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(key, value)| actual.get(*key) != Some(value))
        .take(5)
        .collect();
    let orphans: Vec<_> = actual
        .iter()
        .filter(|(key, _)| !wanted.contains_key(*key))
        .take(5)
        .collect();
    ensure!(
        missing.is_empty() && orphans.is_empty(),
        "missing or old: {missing:?}; orphans: {orphans:?}"
    );
    Ok(())
}

/// Deletes all Ponds, and waits until they and their children are gone.
async fn all_is_deleted(scenario: &Scenario, far: &str) -> Result<()> {
    let ponds = scenario.objects("ponds");
    scenario.kubectl(&[
        "delete",
        &format!("ponds.{}", scenario.group),
        "--all",
        "--wait=false",
    ])?;
    eventually("all Ponds and children are gone", CONVERGED, async || {
        let left = (
            ponds.list().await?.len(),
            actual(scenario, far).await?.len(),
        );
        ensure!(left == (0, 0), "resources and children left: {left:?}");
        Ok(Some(()))
    })
    .await
}
