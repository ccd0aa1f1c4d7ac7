//! Values of Secrets are not disclosed: neither in logs at debug level, Events, statuses and pages, nor in output of `ork render`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

/// The value in the Secret that the test creates.
const PLANTED: &str = "planted !m4rk3r! 7f1c9";
/// The paths of the operator's pages, relative to its address.
const PAGES: [&str; 5] = ["", "/health", "/cr", "/cr/NAMESPACE/north", "/events"];

/// Returns the texts that must not be disclosed: the values of all Secrets, plain and in base64.
async fn markers(secrets: &Objects) -> Result<BTreeSet<String>> {
    let mut markers = BTreeSet::new();
    for secret in secrets.list().await? {
        for value in secret["data"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, value)| value)
        {
            let stored = value.as_str().unwrap_or_default();
            let plain = String::from_utf8_lossy(&STANDARD.decode(stored)?).into_owned();
            // Each line of a certificate or key is a text; its `-----BEGIN` and `-----END` lines are not secret.
            let lines = plain.lines().filter(|line| !line.starts_with("-----"));
            markers.extend(lines.filter(|line| line.len() >= 8).map(str::to_owned));
            markers.extend((stored.len() >= 8).then(|| stored.to_owned()));
        }
    }
    Ok(markers)
}

/// Returns all texts that the controller writes or serves, with the place of each.
async fn reported(scenario: &Scenario) -> Result<Vec<(String, String)>> {
    let mut reported = vec![("the log".to_owned(), scenario.log())];
    for plural in [
        "ponds",
        "katalogs",
        "events",
        "deployments",
        "configmaps",
        "services",
    ] {
        for mut object in scenario.objects(plural).list().await? {
            // Skip the data of ConfigMaps: the Katalog requests the value there.
            if let Some(object) = object.as_object_mut().filter(|_| plural == "configmaps") {
                object.remove("data");
            }
            reported.push((
                format!("{plural} {}", waters::text(&object, "/metadata/name")),
                object.to_string(),
            ));
        }
    }
    let operator = format!("/katalog/{}/waters/pond", scenario.namespace);
    let pages = PAGES.map(|page| {
        format!(
            "{operator}{}",
            page.replace("NAMESPACE", &scenario.namespace)
        )
    });
    for page in pages
        .into_iter()
        .chain(["/katalog", "/metrics"].map(str::to_owned))
    {
        reported.push((page.clone(), scenario.http(&page).await?));
    }
    Ok(reported)
}

/// Returns the output of `ork render` for the pond, with the existing Secrets as children.
async fn rendered(scenario: &Scenario, secrets: &Objects) -> Result<String> {
    let katalog = scenario.file("katalog.yaml", &input("markers/katalog.yaml")?)?;
    let mut pond = scenario.objects("ponds").fetch("north").await?;
    pond.as_object_mut().context("no pond")?.remove("status");
    let pond = scenario.file("pond.yaml", &pond.to_string())?;
    let list: Vec<String> = secrets
        .list()
        .await?
        .iter()
        .map(|secret| {
            let mut secret = secret.clone();
            secret["apiVersion"] = json!("v1");
            secret["kind"] = json!("Secret");
            secret.to_string()
        })
        .collect();
    let children = scenario.file("secrets.yaml", &list.join("\n---\n"))?;
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let args = [
        "render",
        "-k",
        &path(&katalog),
        "--cr",
        &path(&pond),
        "--children",
        &path(&children),
        "--with-status",
    ];
    // Some children cannot be rendered: the error counts as output.
    let reported = match scenario.ork(&args) {
        Ok(printed) => printed,
        Err(error) => error.to_string(),
    };
    ensure!(reported.contains("north"), "{reported}");
    Ok(reported)
}

/// Returns the message with all failures: `Ready` names the first one only.
fn message(pond: &Value) -> &str {
    condition(pond, "Stalled")
        .or_else(|| condition(pond, "Reconciling"))
        .map_or("", |ready| waters::text(ready, "/message"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_secrets_are_disclosed_nowhere() -> Result<()> {
    let mut scenario = Scenario::new("markers").await?;
    scenario.log_filter = Some("debug");
    let katalog = input("markers/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let secrets = scenario.objects("secrets");
    let data = json!({ "password": STANDARD.encode(PLANTED) });
    secrets
        .create(&json!({ "metadata": { "name": "login" }, "data": data }))
        .await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "north", &json!({ "login": "login" })).await?;
    let ponds = scenario.objects("ponds");
    let wanted = ["-invalid", "-label", "number", "-chained", "port"];
    let pond = ponds
        .until("north", "reports all failures", LIMIT, |pond| {
            wanted.iter().all(|part| message(pond).contains(part))
        })
        .await?;
    ensure!(
        message(&pond).contains("is not shown"),
        "{}",
        message(&pond)
    );
    let mut markers = markers(&secrets).await?;
    // Add the values after a rotation.
    let before = secrets.fetch("north-drawn").await?;
    secrets
        .until("north-drawn", "rotates", LIMIT, |now| {
            now["data"] != before["data"]
        })
        .await?;
    scenario.until_idle().await?;
    markers.extend(self::markers(&secrets).await?);
    ensure!(
        markers.contains(PLANTED) && markers.len() > 20,
        "{} markers",
        markers.len()
    );
    let mut reported = reported(&scenario).await?;
    reported.push((
        "ork render".to_owned(),
        rendered(&scenario, &secrets).await?,
    ));
    ensure!(
        reported[0].1.contains("DEBUG"),
        "the log is not at debug level"
    );
    for (place, text) in &reported {
        let leaked: Vec<_> = markers
            .iter()
            .filter(|marker| text.contains(&***marker))
            .collect();
        ensure!(leaked.is_empty(), "{place} contains {leaked:?}:\n{text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_that_would_disclose_a_secret_is_refused_with_its_place() -> Result<()> {
    let mut scenario = Scenario::new("markers").await?;
    let katalog = input("markers/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    let reporting = katalog.replace(
        "{{ .metadata.name }} {{ end }}",
        "{{ .data.password }} {{ end }}",
    );
    ensure!(reporting != katalog, "nothing was replaced");
    scenario.apply(&reporting)?;
    let refused = scenario
        .objects("katalogs")
        .until("waters", "is refused", LIMIT, |katalog| {
            condition(katalog, "Ready").is_some_and(|ready| ready["status"] == "False")
        })
        .await?;
    let message = message(&refused);
    ensure!(message.contains("ORK0416"), "{message}");
    ensure!(message.contains("status.fields[0].value"), "{message}");
    Ok(())
}
