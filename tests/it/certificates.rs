//! Certificates of Ingresses, and pod templates of every kind that change with the Secrets that they use.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario};
use crate::waters;

async fn running(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], "secrets/ingress.yaml").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingress_gets_its_certificate_first_keeps_it_and_takes_it_along() -> Result<()> {
    let mut scenario = running("ingress").await?;
    let start = Scenario::mark()?;
    let (ingresses, secrets) = (scenario.objects("ingresses"), scenario.objects("secrets"));
    let spec = json!({ "sites": ["shop", "blog"], "open": "true", "domain": "example.org" });
    waters::pond(&scenario, "north", &spec).await?;
    let ponds = scenario.objects("ponds");
    ponds.until_ready("north").await?;
    let shop = ingresses.fetch("north-shop").await?;
    let tls = json!([{ "hosts": ["shop.example.org"], "secretName": "north-shop-tls" }]);
    ensure!(shop["spec"]["tls"] == tls, "{}", shop["spec"]);
    let first = secrets.fetch("north-shop-tls").await?;
    ensure!(first["type"] == "kubernetes.io/tls");
    for part in ["tls.crt", "tls.key", "ca.crt"] {
        ensure!(first["data"][part].is_string(), "{part} is missing");
    }
    scenario.until_idle().await?;
    let writes = scenario.writes_since(start)?;
    let place = |resource: &str, name: &str| {
        let is_it = |write: &testbed::AuditEvent| write.resource == resource && write.name == name;
        writes.iter().position(is_it).context("it is not written")
    };
    for site in ["north-shop", "north-blog"] {
        let secret = format!("{site}-tls");
        ensure!(
            place("secrets", &secret)? < place("ingresses", site)?,
            "{}",
            waters::lines(&writes)
        );
    }

    scenario.kill9()?;
    scenario.start().await?;
    waters::ensure_no_writes(&scenario).await?;

    // Another host changes the Secret in place. A Secret is deleted together with its Ingress.
    let domain = json!({ "spec": { "domain": "example.net" } });
    ponds.patch("north", &domain).await?;
    let anew = |now: &Value| {
        now["metadata"]["uid"] == first["metadata"]["uid"] && now["data"] != first["data"]
    };
    secrets
        .until("north-shop-tls", "is reissued", LIMIT, anew)
        .await?;
    let fewer = json!({ "spec": { "sites": ["shop"] } });
    ponds.patch("north", &fewer).await?;
    ingresses.until_gone("north-blog", LIMIT).await?;
    secrets.until_gone("north-blog-tls", LIMIT).await?;
    let closed = json!({ "spec": { "open": "false" } });
    ponds.patch("north", &closed).await?;
    ingresses.until_gone("north-shop", LIMIT).await?;
    secrets.until_gone("north-shop-tls", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_with_pods_that_are_exchanged_rolls_with_what_they_use() -> Result<()> {
    const HASH: &str = "/metadata/annotations/orkestra.orkspace.io~1config-hash";
    let mut scenario = running("rolling").await?;
    let secrets = scenario.objects("secrets");
    let login = |password: &str| json!({ "metadata": { "name": "login" }, "data": { "password": password } });
    secrets.create(&login("b25l")).await?;
    waters::lake(&scenario, "north", &json!({})).await?;
    let kinds = [
        ("statefulsets", "/spec/template"),
        ("daemonsets", "/spec/template"),
        ("cronjobs", "/spec/jobTemplate/spec/template"),
    ];
    let mut marks = Vec::new();
    for (plural, template) in kinds {
        let pointer = format!("{template}{HASH}");
        let has = |object: &Value| object.pointer(&pointer).is_some_and(Value::is_string);
        let objects = scenario.objects(plural);
        let object = objects.until("north", "has a mark", LIMIT, has).await?;
        marks.push(waters::text(&object, &pointer).to_owned());
    }
    scenario.terminate()?;
    scenario.start().await?;
    waters::ensure_no_writes(&scenario).await?;
    secrets.patch("login", &login("dHdv")).await?;
    for ((plural, template), before) in kinds.into_iter().zip(marks) {
        let pointer = format!("{template}{HASH}");
        let is_other = |object: &Value| {
            let now = object.pointer(&pointer).and_then(Value::as_str);
            now.is_some_and(|now| now != before)
        };
        let objects = scenario.objects(plural);
        objects.until("north", "rolls", LIMIT, is_other).await?;
    }
    Ok(())
}
