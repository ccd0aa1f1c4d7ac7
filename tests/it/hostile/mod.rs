//! Objects that are crafted to break their readers: each fails alone, and the operator still reconciles other objects.

mod full;
mod own;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::neighbours::{Neighbours, PONDS};
use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters;

/// The lengths of names: the minimum, those around the maximum of a label, and the maximum. Source: Kubernetes, "Object Names and
/// IDs".
const NAMES: [usize; 7] = [1, 2, 62, 63, 64, 252, 253];
/// The lengths of keys of labels and annotations: without a prefix up to 63, then with a prefix of up to 253 characters. Source:
/// Kubernetes, "Labels and Selectors".
const KEYS: [usize; 8] = [1, 2, 62, 63, 65, 127, 316, 317];
/// The maximum length of a Pond's name with which the name of its child, `NAME-pond`, is valid.
const LONGEST_PARENT: usize = 248;
const KATALOG: &str = "panic/katalog.yaml";

/// Returns JSON maps that are nested to a number of levels.
pub(crate) fn deep(levels: usize) -> String {
    let (open, close) = (r#"{"d":"#.repeat(levels), "}".repeat(levels));
    format!("{open}1{close}")
}

/// Returns a Pond as JSON text; `metadata` and `spec` are inserted between the braces of these fields.
fn pond(scenario: &Scenario, name: &str, metadata: &str, spec: &str) -> String {
    let group = &scenario.group;
    format!(
        r#"{{"apiVersion":"{group}/v1alpha1","kind":"Pond","metadata":{{"name":"{name}"{metadata}}},"spec":{{{spec}}}}}"#
    )
}

/// Returns the path of the Ponds, followed by `below`.
fn ponds(scenario: &Scenario, below: &str) -> String {
    let (group, namespace) = (&scenario.group, &scenario.namespace);
    format!("/apis/{group}/v1alpha1/namespaces/{namespace}/ponds{below}")
}

/// Sends a request whose body may be too deep or irregular for `serde_json`. Returns true if the API server accepts it.
pub(crate) async fn send(
    scenario: &Scenario,
    method: &str,
    path: String,
    body: String,
) -> Result<bool> {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(body.into_bytes())?;
    match scenario.client.request_text(request).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
            println!("refused: {:.200}", status.message);
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns a DNS name of a length.
fn name_of(length: usize) -> String {
    let name: Vec<u8> = (1..=length)
        .map(|at| match at % 64 {
            // A name cannot end with a dot.
            0 if at < length => b'.',
            _ => b'n',
        })
        .collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// Returns a key of a label or an annotation, of a length.
fn key_of(length: usize) -> String {
    match length {
        0..64 => name_of(length),
        _ => format!("{}/{}", name_of(length - 64), name_of(63)),
    }
}

/// Returns a field of the metadata as JSON text, with a key of each length in [`KEYS`].
fn with_keys(field: &str, value: &str) -> String {
    let entries = KEYS.map(|length| format!(r#""{}":"{value}""#, key_of(length)));
    format!(r#","{field}":{{{}}}"#, entries.join(","))
}

/// Returns objects that the API server may accept: name, metadata, spec, and true if the operator can read the object.
// Over 60 lines: a table of objects.
fn objects(owner: &Value) -> Vec<(&'static str, String, String, bool)> {
    let green = r#""colour":"green""#;
    let unread = |levels| format!(r#"{green},"deep":{}"#, deep(levels));
    let reference = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":{}}}"#,
        owner["metadata"]["uid"]
    );
    let references = vec![reference; 5_000].join(",");
    let managers: Vec<String> = (0..3_000)
        .map(|number| {
            format!(
                r#"{{"manager":"m{number}","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:a{number}":{{}}}}}}}}"#
            )
        })
        .collect();
    let none = String::new;
    vec![
        ("deep-200", none(), unread(200), true),
        ("deep-9000", none(), unread(9_000), true),
        ("deep-9990", none(), unread(9_990), true),
        (
            "deep-read",
            none(),
            format!(r#""colour":{}"#, deep(300)),
            false,
        ),
        (
            "deep-read-9000",
            none(),
            format!(r#""colour":{}"#, deep(9_000)),
            false,
        ),
        (
            "annotations",
            with_keys("annotations", &"x".repeat(25_000)),
            green.to_owned(),
            true,
        ),
        (
            "labels",
            with_keys("labels", &"x".repeat(63)),
            green.to_owned(),
            true,
        ),
        (
            "large",
            none(),
            format!(r#"{green},"text":"{}""#, "x".repeat(1_400_000)),
            true,
        ),
        (
            "owners",
            format!(r#","ownerReferences":[{references}]"#),
            green.to_owned(),
            true,
        ),
        (
            "managers",
            format!(r#","managedFields":[{}]"#, managers.join(",")),
            green.to_owned(),
            true,
        ),
        (
            "twice",
            none(),
            format!(r#""colour":"red",{green},"deep":{{"a":1,"a":2}}"#),
            true,
        ),
        ("number", none(), format!(r#"{green},"n":1e400"#), true),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_object_is_its_own_trouble_and_says_so() -> Result<()> {
    let mut scenario = Scenario::running("hostile", &["kinds/crds.yaml"], KATALOG).await?;
    let mut neighbours = Neighbours::settle(&scenario, PONDS).await?;
    let accepted = hostile_objects_are_sent(&scenario, &mut neighbours).await?;
    for length in NAMES {
        let body = pond(&scenario, &name_of(length), "", r#""colour":"green""#);
        ensure!(
            send(&scenario, "POST", ponds(&scenario, ""), body).await?,
            "a name of {length} characters"
        );
    }
    neighbours.ensure_followed().await?;
    for name in [
        "deep-200",
        "deep-9000",
        "deep-read",
        "annotations",
        "labels",
        "large",
        "owners",
        "managers",
    ] {
        ensure!(
            accepted.iter().any(|(known, _)| *known == name),
            "{name} was refused"
        );
    }

    each_is_handled_or_says_why_not(&scenario, &accepted).await?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    ensure!(
        !katalog["status"].to_string().contains("HTTP 0"),
        "{katalog}"
    );

    // After a restart, one list request returns all of them.
    scenario.kill9()?;
    scenario.start().await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    neighbours.ensure_followed().await?;
    ensure_the_way_back(&scenario).await?;
    for (name, _) in &accepted {
        ensure_deletion(&scenario, name).await?;
    }
    neighbours.ensure_followed().await?;
    eventually("no object is unreadable any more", LIMIT, async || {
        let counted = scenario.metric("orkestra_unreadable_objects", &[]).await?;
        Ok((counted < 0.5).then_some(()))
    })
    .await?;
    scenario.check_running()
}

/// Creates each hostile object, and checks the neighbours after each. Returns the names of accepted objects, each with true if the
/// operator can read it.
async fn hostile_objects_are_sent(
    scenario: &Scenario,
    neighbours: &mut Neighbours,
) -> Result<Vec<(&'static str, bool)>> {
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "owner" } });
    let owner = scenario.objects("configmaps").create(&owner).await?;
    let mut accepted = Vec::new();
    for (name, metadata, spec, is_readable) in objects(&owner) {
        let body = pond(scenario, name, &metadata, &spec);
        let is_accepted = send(scenario, "POST", ponds(scenario, ""), body).await?;
        neighbours.ensure_followed().await.context(name)?;
        if is_accepted {
            accepted.push((name, is_readable));
        }
    }
    Ok(accepted)
}

/// Checks that each readable object has its child, and that each other one reports why it has none and is counted.
async fn each_is_handled_or_says_why_not(
    scenario: &Scenario,
    accepted: &[(&str, bool)],
) -> Result<()> {
    let maps = scenario.objects("configmaps");
    for (name, is_readable) in accepted {
        if *is_readable {
            maps.until_equal(
                &format!("{name}-pond"),
                "/data/colour",
                json!("green"),
                LIMIT,
            )
            .await?;
        } else {
            ensure_unreadable(scenario, name).await?;
        }
    }
    for length in NAMES {
        let name = name_of(length);
        if length <= LONGEST_PARENT {
            let child = format!("{name}-pond");
            maps.until_equal(&child, "/data/colour", json!("green"), LIMIT)
                .await?;
            continue;
        }
        // The name of the child would be too long, which an Event of its owner reports.
        eventually("an Event reports the invalid name", LIMIT, async || {
            let warnings = waters::warnings(scenario, &name).await?;
            let is_named = warnings
                .iter()
                .any(|event| event["reason"] == "InvalidName");
            Ok(is_named.then_some(()))
        })
        .await?;
    }
    let unreadable = accepted
        .iter()
        .filter(|(_, is_readable)| !is_readable)
        .count();
    let unreadable = f64::from(u32::try_from(unreadable)?);
    let counted = scenario.metric("orkestra_unreadable_objects", &[]).await?;
    ensure!(
        (counted - unreadable).abs() < 0.5,
        "the metric is {counted}, not {unreadable}"
    );
    Ok(())
}

/// Checks that a condition of the object, an Event and the log report why the object is not reconciled.
async fn ensure_unreadable(scenario: &Scenario, name: &str) -> Result<()> {
    let path = ponds(scenario, &format!("/{name}/status"));
    ensure_condition(scenario, &path, "Unreadable").await?;
    ensure_reported(scenario, name).await
}

/// Waits until the object at a path has a condition with the reason. The object is read as text, since it is too deep for
/// `serde_json`.
async fn ensure_condition(scenario: &Scenario, path: &str, reason: &str) -> Result<()> {
    let wanted = format!(r#""reason":"{reason}""#);
    eventually(&format!("{path} has a condition"), LIMIT, async || {
        let request = http::Request::get(path).body(Vec::new())?;
        let text = scenario.client.request_text(request).await?;
        let at = text
            .find(r#""status":{"conditions""#)
            .context("no status yet")?;
        let status = text.get(at..).unwrap_or_default();
        ensure!(status.contains(&wanted), "{status}");
        Ok(Some(()))
    })
    .await
}

/// Checks that an Event and the log name an object that cannot be read.
async fn ensure_reported(scenario: &Scenario, name: &str) -> Result<()> {
    eventually(&format!("an Event names {name}"), LIMIT, async || {
        let warnings = waters::warnings(scenario, name).await?;
        Ok(warnings
            .iter()
            .any(|event| event["reason"] == "Unreadable")
            .then_some(()))
    })
    .await?;
    let log = scenario.log();
    let mut lines = log
        .lines()
        .filter(|line| line.contains("cannot decode an object"));
    ensure!(
        lines.any(|line| line.contains(name)),
        "the log does not name {name}"
    );
    Ok(())
}

/// Makes a readable object unreadable and readable again. Checks that its child stays, and that the object can be deleted while
/// it is unreadable.
async fn ensure_the_way_back(scenario: &Scenario) -> Result<()> {
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(scenario, "turns", &json!({ "colour": "green" })).await?;
    ponds.until_ready("turns").await?;
    let child = maps.fetch("turns-pond").await?;
    let worse = format!(r#"{{"spec":{{"colour":{}}}}}"#, deep(300));
    ensure!(
        send(
            scenario,
            "PATCH",
            self::ponds(scenario, "/turns"),
            worse.clone()
        )
        .await?,
        "refused"
    );
    ensure_unreadable(scenario, "turns").await?;
    let same = maps.fetch("turns-pond").await?;
    ensure!(
        same["metadata"]["uid"] == child["metadata"]["uid"],
        "{same}"
    );
    ponds
        .patch("turns", &json!({ "spec": { "colour": "blue" } }))
        .await?;
    maps.until_equal("turns-pond", "/data/colour", json!("blue"), LIMIT)
        .await?;
    let ready = ponds.until_ready("turns").await?;
    ensure!(condition(&ready, "Stalled").is_none(), "{ready}");
    ensure!(
        send(scenario, "PATCH", self::ponds(scenario, "/turns"), worse).await?,
        "refused"
    );
    ensure_unreadable(scenario, "turns").await?;
    ensure_deletion(scenario, "turns").await
}

/// Deletes the object, and waits until it is gone.
async fn ensure_deletion(scenario: &Scenario, name: &str) -> Result<()> {
    let path = ponds(scenario, &format!("/{name}"));
    ensure!(
        send(scenario, "DELETE", path.clone(), String::new()).await?,
        "{name} cannot be deleted"
    );
    eventually(&format!("{name} is gone"), LIMIT, async || {
        let is_there = send(scenario, "GET", path.clone(), String::new()).await?;
        Ok((!is_there).then_some(()))
    })
    .await
}
