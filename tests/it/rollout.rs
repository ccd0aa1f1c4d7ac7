//! Revisions that cannot run yet: the status reports the plan in use, which continues to run.

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    api::{Api, ApiResource, DynamicObject},
    runtime::watcher,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::kstatus::{Kstatus, condition as status_of, faults, kstatus};
use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

const KATALOG: &str = "rollout/katalog.yaml";

/// Returns the second revision of the Katalog, in which the pond has the additional children `more`.
fn second(more: &str) -> Result<String> {
    let first = input(KATALOG)?;
    let second = first.replace("revision: \"one\"", "revision: \"two\"");
    let second = second.replace("          # More of the pond.", more);
    ensure!(second != first && second.contains(more));
    Ok(second)
}

/// Records every state of a Katalog that a watch reports, up to the first one that `until` accepts.
pub(crate) struct Recorder(JoinHandle<Result<Vec<Value>>>);

impl Recorder {
    pub(crate) fn start(
        scenario: &Scenario,
        name: &str,
        until: impl Fn(&Value) -> bool + Send + 'static,
    ) -> Self {
        let kind = ApiResource {
            group: "orkestra.orkspace.io".into(),
            version: "v1".into(),
            api_version: "orkestra.orkspace.io/v1".into(),
            kind: "Katalog".into(),
            plural: "katalogs".into(),
        };
        let katalogs: Api<DynamicObject> =
            Api::namespaced_with(scenario.client.clone(), &scenario.namespace, &kind);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        Self(tokio::spawn(async move {
            let mut states = Vec::new();
            let mut events = watcher(katalogs, config).boxed();
            while let Some(event) = events.try_next().await? {
                if let watcher::Event::Apply(object) | watcher::Event::InitApply(object) = event {
                    let object = serde_json::to_value(object)?;
                    let is_last = until(&object);
                    states.push(object);
                    if is_last {
                        break;
                    }
                }
            }
            Ok(states)
        }))
    }

    /// Returns the recorded states, once the last one was seen.
    pub(crate) async fn states(self) -> Result<Vec<Value>> {
        tokio::time::timeout(LIMIT, self.0).await??
    }
}

/// Waits until the Katalog reports for its current generation that the pond's wanted revision waits for that reason.
async fn until_waiting(
    scenario: &Scenario,
    ready: &str,
    reason: &str,
    part: &str,
) -> Result<Value> {
    scenario
        .objects("katalogs")
        .until("waters", "reports what it waits for", LIMIT, |katalog| {
            let current =
                katalog["status"]["observedGeneration"] == katalog["metadata"]["generation"];
            let reported = condition(katalog, "Ready").is_some_and(|one| {
                one["status"] == "False"
                    && one["reason"] == ready
                    && waters::text(one, "/message").contains(part)
            });
            let row = waters::row(katalog, "pond").is_some_and(|row| {
                row["reason"] == reason && waters::text(row, "/message").contains(part)
            });
            current && reported && row
        })
        .await
}

/// Checks that the pond's operator runs the first revision: it applies a change, and corrects drift.
async fn first_works(scenario: &Scenario, colour: &str) -> Result<()> {
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    let change = json!({ "spec": { "colour": colour } });
    ponds.patch("north", &change).await?;
    maps.until_equal("north-pond", "/data/colour", json!(colour), LIMIT)
        .await?;
    maps.patch("north-pond", &json!({ "data": { "colour": "plastic" } }))
        .await?;
    let map = maps
        .until_equal("north-pond", "/data/colour", json!(colour), LIMIT)
        .await?;
    ensure!(map["data"]["revision"] == "one", "{map}");
    Ok(())
}

async fn filled(prefix: &str) -> Result<(Scenario, Value)> {
    let scenario = Scenario::running(prefix, &["kinds/crds.yaml"], KATALOG).await?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    waters::lake(&scenario, "deep", &json!({ "colour": "blue" })).await?;
    scenario.objects("ponds").until_ready("north").await?;
    scenario.objects("lakes").until_ready("deep").await?;
    let first = scenario.objects("katalogs").fetch("waters").await?["status"]["revision"].clone();
    ensure!(first.is_string(), "the status has no revision");
    Ok((scenario, first))
}

/// Checks every recorded state (G1, G3). `second` is the generation of the revision that has to wait.
fn judge(states: &[Value], second: &Value) -> Result<()> {
    for state in states {
        let faults = faults(state);
        ensure!(faults.is_empty(), "{faults:?} in {state}");
        let is_current = kstatus(state) == Kstatus::Current;
        ensure!(is_current == (status_of(state, "Ready") == Some("True") && is_observed(state)));
        let rows = state["status"]["operators"].as_array();
        let mut rows = rows.into_iter().flatten();
        if is_current && state["metadata"]["generation"] == *second {
            let both = rows.clone().count() == 2;
            let revision = &state["status"]["revision"];
            ensure!(
                both && rows
                    .all(|row| row["revision"] == *revision && row["wantedRevision"].is_null()),
                "ready, but an operator does not run the revision: {state}"
            );
        }
    }
    Ok(())
}

pub(crate) fn is_observed(state: &Value) -> bool {
    state["status"]["observedGeneration"] == state["metadata"]["generation"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_without_its_permissions_is_reconciling_and_the_last_good_plan_works_on()
-> Result<()> {
    let (mut scenario, first) = filled("unpermitted").await?;
    let more = "          secrets: [{ name: \"{{ .metadata.name }}-key\", data: { colour: \"{{ .spec.colour }}\" } }]";
    let next = second(more)?;
    let generation = scenario.objects("katalogs").fetch("waters").await?["metadata"]["generation"]
        .as_i64()
        .context("no generation")?;
    let recorder = Recorder::start(&scenario, "waters", move |state| {
        state["metadata"]["generation"] == generation + 1 && kstatus(state) == Kstatus::Current
    });
    scenario.apply(&next)?;
    let reported = until_waiting(&scenario, "Forbidden", "Forbidden", "secrets").await?;
    ensure!(kstatus(&reported) == Kstatus::InProgress, "{reported}");
    let message = condition(&reported, "Reconciling").map(|one| waters::text(one, "/message"));
    ensure!(
        message.is_some_and(|message| message.contains("list resource \"secrets\"")),
        "{reported}"
    );
    let wanted = the_pond_waits_and_the_lake_runs(&reported, &first)?.clone();
    scenario
        .objects("configmaps")
        .until_equal("deep-lake", "/data/revision", json!("two"), LIMIT)
        .await?;
    first_works(&scenario, "red").await?;
    let page = scenario.page("/katalog/pond").await?;
    ensure!(
        page["revision"] == first && page["wantedRevision"] == wanted,
        "{page}"
    );

    // A restart keeps the running plan.
    scenario.kill9()?;
    scenario.start().await?;
    first_works(&scenario, "pink").await?;
    let reported = until_waiting(&scenario, "Forbidden", "Forbidden", "secrets").await?;
    assert_eq!(reported["status"]["revision"], first);
    assert_eq!(reported["status"]["wantedRevision"], wanted);

    scenario.grant(&next).await?;
    let katalogs = scenario.objects("katalogs");
    let ready = katalogs
        .until("waters", "is ready", LIMIT, |katalog| {
            is_observed(katalog) && kstatus(katalog) == Kstatus::Current
        })
        .await?;
    assert_eq!(ready["status"]["revision"], wanted);
    assert_eq!(ready["status"].get("wantedRevision"), None);
    scenario
        .objects("secrets")
        .until("north-key", "exists", LIMIT, |_| true)
        .await?;
    scenario
        .objects("configmaps")
        .until_equal("north-pond", "/data/revision", json!("two"), LIMIT)
        .await?;
    judge(&recorder.states().await?, &json!(generation + 1))?;
    scenario.check_running()
}

/// Checks the revision of each operator in the status, which is `first` for the pond. Returns the wanted revision.
fn the_pond_waits_and_the_lake_runs<'a>(reported: &'a Value, first: &Value) -> Result<&'a Value> {
    let (pond, lake) = (
        waters::row(reported, "pond").context("no row of the pond")?,
        waters::row(reported, "lake").context("no row of the lake")?,
    );
    let wanted = &reported["status"]["wantedRevision"];
    assert_eq!(reported["status"]["revision"], *first);
    assert_ne!(wanted, first);
    assert_eq!(
        (&pond["state"], &pond["revision"], &pond["wantedRevision"]),
        (&json!("Updating"), first, wanted)
    );
    assert_eq!(
        (&lake["state"], &lake["revision"], &lake["wantedRevision"]),
        (&json!("Running"), wanted, &Value::Null)
    );
    assert_eq!(reported["status"]["ready"], "1/2");
    Ok(wanted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_whose_kinds_are_not_served_waits_for_them_and_may_be_taken_back() -> Result<()>
{
    let (mut scenario, first) = filled("unserved").await?;
    let more = "          custom: [{ apiVersion: GROUP/v1alpha1, kind: Well, metadata: { name: \"{{ .metadata.name }}-well\" }, spec: { colour: \"{{ .spec.colour }}\" } }]";
    let next = second(more)?;
    scenario.grant(&next).await?;
    scenario.apply(&next)?;
    let reported = until_waiting(&scenario, "Waiting", "KindNotServed", "Well").await?;
    assert_eq!(reported["status"]["revision"], first);
    first_works(&scenario, "red").await?;

    scenario.apply(&input(KATALOG)?)?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    assert_eq!(katalog["status"]["revision"], first);
    assert_eq!(katalog["status"].get("wantedRevision"), None);
    first_works(&scenario, "pink").await?;

    scenario.apply(&next)?;
    until_waiting(&scenario, "Waiting", "KindNotServed", "Well").await?;
    let crds = waters::crds()?;
    let well = crds.split("\n---").next().context("no CRD")?;
    let well = well.replace("Pond", "Well").replace("pond", "well");
    scenario.install(&well).await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    scenario
        .objects("wells")
        .until("north-well", "exists", LIMIT, |_| true)
        .await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_takes_over_beside_the_one_that_runs() -> Result<()> {
    let (mut scenario, first) = filled("unversioned").await?;
    let old = "{ group: GROUP, version: v1alpha1, kind: Pond, plural: ponds }";
    let next = input(KATALOG)?.replace(old, &old.replace("v1alpha1", "v1beta1"));
    scenario.apply(&next)?;
    let reported = scenario
        .katalog_is("waters", "False", "InvalidRevision")
        .await?;
    ensure!(kstatus(&reported) == Kstatus::Failed, "{reported}");
    let row = waters::row(&reported, "pond").context("no row of the pond")?;
    assert_eq!(
        (&row["revision"], &row["version"]),
        (&first, &json!("v1alpha1"))
    );
    first_works(&scenario, "red").await?;

    let crds = Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    let name = format!("ponds.{}", scenario.group);
    let mut versions = crds.fetch(&name).await?["spec"]["versions"].clone();
    let mut beta = versions[0].clone();
    (beta["name"], beta["storage"]) = (json!("v1beta1"), json!(false));
    versions.as_array_mut().context("no versions")?.push(beta);
    crds.patch(&name, &json!({ "spec": { "versions": versions } }))
        .await?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    let row = waters::row(&katalog, "pond").context("no row of the pond")?;
    assert_eq!(row["version"], "v1beta1");
    first_works(&scenario, "pink").await?;
    scenario.check_running()
}
