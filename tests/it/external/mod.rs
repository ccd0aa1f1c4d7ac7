//! External calls of a running controller: gates on their answers, the flags that permit them, and servers that misbehave.

mod ended;
pub(crate) mod sink;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use self::sink::Sink;
use crate::{
    scenario::{LIMIT, Objects, Rate, Scenario, condition, input, until_unchanged, within},
    waters,
};

/// A marker in bodies and tokens that must not be exposed.
const PLANTED: &str = "planted-5c1f";
/// The limit for another custom resource while calls hang. A pass takes milliseconds; the machine runs other tests meanwhile.
const SOON: Duration = Duration::from_secs(5);
/// The time after which a call that is repeated would show up.
const WINDOW: Duration = Duration::from_secs(4);

/// Starts a scenario with that Katalog, named `waters`, whose controller may call `allowed` and read `environment`.
async fn running_with(
    katalog: &str,
    allowed: &[String],
    environment: &[(&'static str, &str)],
) -> Result<Scenario> {
    let mut scenario = Scenario::new("external").await?;
    for entry in allowed {
        scenario
            .arguments
            .extend(["--external-allow".to_owned(), entry.clone()]);
    }
    for (name, value) in environment {
        scenario
            .arguments
            .extend(["--external-env".to_owned(), (*name).to_owned()]);
        scenario.environment.push((name, (*value).to_owned()));
    }
    scenario.accept_faults();
    let katalog = input(katalog)?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok(scenario)
}

/// Starts a scenario with Ponds and Lakes that make calls.
async fn running(allowed: &[String], environment: &[(&'static str, &str)]) -> Result<Scenario> {
    running_with("external/katalog.yaml", allowed, environment).await
}

fn pond(url: &str) -> Value {
    json!({ "serviceUrl": url, "image": "registry.example/web:3" })
}

/// Waits until `Ready` has that reason; returns its message.
pub(crate) async fn reported(objects: &Objects, name: &str, reason: &str) -> Result<String> {
    let has =
        |object: &Value| condition(object, "Ready").is_some_and(|one| one["reason"] == reason);
    let object = objects
        .until(name, &format!("has {reason}"), LIMIT, has)
        .await?;
    let ready = condition(&object, "Ready").cloned().unwrap_or_default();
    Ok(waters::text(&ready, "/message").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_are_gated_on_what_calls_answer() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/health", 503, PLANTED);
    sink.answer("/flags/north", 200, "dark-mode");
    let scenario = running(&["127.0.0.1".to_owned()], &[]).await?;
    let kinds = ["ponds", "deployments", "configmaps"];
    let [ponds, deployments, maps] = kinds.map(|plural| scenario.objects(plural));
    waters::pond(&scenario, "north", &pond(&sink.url())).await?;
    a_call_that_must_not_fail_blocks_the_pass(&scenario, &sink).await?;
    // The call is retried automatically.
    sink.answer("/health", 200, "");
    deployments
        .until_equal(
            "north",
            "/spec/template/spec/containers/0/image",
            json!("registry.example/web:3"),
            LIMIT,
        )
        .await?;
    maps.until_equal("north-flags", "/data/flags", json!("dark-mode"), LIMIT)
        .await?;
    let health = sink.requests("/health").remove(0);
    assert!(health.starts_with("GET /health HTTP/1.1\r\n"), "{health}");
    assert!(!health.to_lowercase().contains("authorization"), "{health}");
    // A call that may fail does not block the other children, and its failure is reported.
    sink.answer("/flags", 500, PLANTED);
    waters::pond(&scenario, "south", &pond(&sink.url())).await?;
    deployments
        .until("south", "exists", LIMIT, |_| true)
        .await?;
    reported(&ponds, "south", "ChildrenNotReady").await?;
    assert_eq!(maps.get("south-flags").await?, None);
    neither_the_api_server_nor_a_variable_is_permitted(&scenario, &sink).await?;
    ended::a_call_whose_task_ends_is_made_again(&scenario).await?;
    // Existing children stay when a call fails later.
    sink.answer("/health", 503, PLANTED);
    ponds
        .patch(
            "north",
            &json!({ "spec": { "image": "registry.example/web:5" } }),
        )
        .await?;
    reported(&ponds, "north", "ExternalCallFailed").await?;
    let deployment = deployments.fetch("north").await?;
    let image = waters::text(&deployment, "/spec/template/spec/containers/0/image");
    assert_eq!(image, "registry.example/web:4");
    ensure_nothing_planted(&scenario).await
}

/// Checks that no child is created, that no further call is made, and that the condition reports the failure.
async fn a_call_that_must_not_fail_blocks_the_pass(scenario: &Scenario, sink: &Sink) -> Result<()> {
    let message = reported(&scenario.objects("ponds"), "north", "ExternalCallFailed").await?;
    let wanted = format!(
        "the call `healthCheck` failed: {} answers with status 503, not 200",
        sink.url()
    );
    assert!(message.ends_with(&wanted), "{message}");
    assert_eq!(scenario.objects("deployments").get("north").await?, None);
    assert!(
        sink.requests("/flags").is_empty(),
        "a call follows one that failed"
    );
    Ok(())
}

/// Checks that an allowed address without a port does not include the API server, and that only named variables may be read.
async fn neither_the_api_server_nor_a_variable_is_permitted(
    scenario: &Scenario,
    sink: &Sink,
) -> Result<()> {
    let server = scenario.identity.config()?.cluster_url.to_string();
    waters::pond(scenario, "server", &pond(server.trim_end_matches('/'))).await?;
    let message = reported(&scenario.objects("ponds"), "server", "ExternalCallRefused").await?;
    assert!(
        message.contains("is the API server of the cluster"),
        "{message}"
    );
    waters::lake(scenario, "deep", &json!({ "url": sink.url() })).await?;
    let message = reported(&scenario.objects("lakes"), "deep", "ExternalCallRefused").await?;
    assert!(message.contains("--external-env LAKE_TOKEN"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_flag_no_call_is_made_and_the_condition_names_it() -> Result<()> {
    let sink = Sink::start().await?;
    let scenario = running(&[], &[]).await?;
    waters::pond(&scenario, "north", &pond(&sink.url())).await?;
    let ponds = scenario.objects("ponds");
    let message = reported(&ponds, "north", "ExternalCallRefused").await?;
    let flag = format!(
        "--external-allow {}",
        sink.url().trim_start_matches("http://")
    );
    assert!(message.contains(&flag), "{message}");
    let stalled = ponds.fetch("north").await?;
    assert!(condition(&stalled, "Stalled").is_some(), "{stalled}");
    assert!(sink.requests("/").is_empty());
    assert_eq!(scenario.objects("deployments").get("north").await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_of_a_custom_resource_reaches_only_what_the_flag_permits() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/depth", 200, r#"{"depth": 7}"#);
    sink.answer("/secret", 500, PLANTED);
    let allowed = [sink.url()];
    let scenario = running(&allowed, &[("LAKE_TOKEN", PLANTED)]).await?;
    let lakes = scenario.objects("lakes");
    let metadata = json!({ "url": "http://169.254.169.254/latest/meta-data/" });
    waters::lake(&scenario, "metadata", &metadata).await?;
    let message = reported(&lakes, "metadata", "ExternalCallRefused").await?;
    assert!(message.contains("link-local"), "{message}");
    let port = sink.url().rsplit(':').next().unwrap_or_default().to_owned();
    for (name, url) in [
        ("decimal", format!("http://2130706433:{port}/depth")),
        ("user", format!("http://127.0.0.1:{port}@127.0.0.1/depth")),
        ("mapped", "http://[::ffff:169.254.169.254]/".to_owned()),
        ("other-port", "http://127.0.0.1:1/depth".to_owned()),
    ] {
        waters::lake(&scenario, name, &json!({ "url": url })).await?;
        reported(&lakes, name, "ExternalCallRefused").await?;
    }
    assert!(sink.requests("/").is_empty());
    // A permitted URL is called with the token that the Katalog names.
    waters::lake(
        &scenario,
        "deep",
        &json!({ "url": format!("{}/depth", sink.url()) }),
    )
    .await?;
    let depth = scenario.objects("configmaps");
    depth
        .until_equal("deep-lake", "/data/depth", json!("7"), LIMIT)
        .await?;
    lakes
        .until_equal("deep", "/status/answered", json!("200"), LIMIT)
        .await?;
    let request = sink.requests("/depth").remove(0);
    assert!(
        request.contains(&format!("authorization: Bearer {PLANTED}\r\n")),
        "{request}"
    );
    // An answer that changes the status causes no other call. The watch may deliver a pass's own write before its answer
    // arrives, which causes one more pass, but no further one.
    until_unchanged("no more calls", WINDOW, async || {
        Ok(sink.requests("/depth").len())
    })
    .await?;
    waters::lake(
        &scenario,
        "secret",
        &json!({ "url": format!("{}/secret?{PLANTED}", sink.url()) }),
    )
    .await?;
    let lake = reported(&lakes, "secret", "ExternalCallFailed").await?;
    assert!(lake.contains("answers with status 500"), "{lake}");
    lakes.delete("secret").await?;
    ensure_nothing_planted(&scenario).await
}

/// Creates a lake whose call is answered at once, and returns the time until its child exists.
async fn answered(scenario: &Scenario, sink: &Sink, name: &str) -> Result<Duration> {
    let started = Instant::now();
    let url = json!({ "url": format!("{}/depth", sink.url()) });
    waters::lake(scenario, name, &url).await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal(&format!("{name}-lake"), "/data/depth", json!("7"), LIMIT)
        .await?;
    Ok(started.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_do_not_behave_slow_no_other_custom_resource() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/depth", 200, r#"{"depth": 7}"#);
    let scenario = running(&[sink.url()], &[("LAKE_TOKEN", "x")]).await?;
    let lakes = scenario.objects("lakes");
    let began = Instant::now();
    // There is one worker, and each call may take 30 s. The limit of concurrent calls per host is above this number.
    for n in 0..4 {
        for manner in ["hang", "drip", "endless"] {
            let url = json!({ "url": format!("{}/{manner}", sink.url()) });
            waters::lake(&scenario, &format!("{manner}-{n}"), &url).await?;
        }
    }
    eventually("the calls are under way", LIMIT, async || {
        let under_way = sink.requests("/hang").len() + sink.requests("/drip").len();
        ensure!(under_way >= 8, "{under_way} calls");
        Ok(Some(()))
    })
    .await?;
    let mut round = 0;
    within("a call during calls that hang", SOON, async || {
        round += 1;
        answered(&scenario, &sink, &format!("quick-{round}")).await
    })
    .await?;
    let message = reported(&lakes, "endless-0", "ExternalCallFailed").await?;
    let limit = "answers with more than 256 KiB";
    assert!(message.ends_with(limit), "{message}");
    // A call that hangs is repeated only after its timeout.
    let calls = f64::from(u32::try_from(sink.requests("/hang").len())?);
    Rate::since(began, calls).ensure_at_most(Duration::from_secs(30) / 4, 4)?;
    // A resource whose call hangs can be deleted.
    let mut names = (0..4).map(|n| format!("hang-{n}"));
    within("a deletion during a call that hangs", SOON, async || {
        let name = names.next().context("no deletion was fast")?;
        let started = Instant::now();
        lakes.delete(&name).await?;
        lakes.until_gone(&name, LIMIT).await?;
        Ok(started.elapsed())
    })
    .await
    .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_complete_and_refuse_by_what_servers_answer() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/size", 200, r#"{"size": 7}"#);
    sink.answer(
        "/judge",
        200,
        r#"{"allowed": false, "why": "no quota left"}"#,
    );
    let scenario = running_with("external/asking.yaml", &[sink.url()], &[]).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    let spec = json!({ "serviceUrl": sink.url() });
    waters::pond(&scenario, "north", &spec).await?;
    let message = reported(&ponds, "north", "ValidationFailed").await?;
    assert!(
        message.ends_with("the judge says: no quota left"),
        "{message}"
    );
    assert_eq!(maps.get("north-size").await?, None);
    assert!(sink.requests("/work").is_empty(), "a call follows");
    // A change repeats the calls, and the servers now permit it.
    sink.answer("/judge", 200, r#"{"allowed": true}"#);
    sink.answer("/work", 200, "");
    let change = json!({ "spec": { "more": 1 } });
    ponds.patch("north", &change).await?;
    maps.until_equal("north-size", "/data/size", json!("7"), LIMIT)
        .await?;
    let judged = sink.requests("/judge");
    assert!(judged[0].starts_with("GET /judge/7 "), "{judged:?}");
    // Without `continueOnError`, a failed call changes nothing. First, passes caused by the controller's own writes must end.
    scenario.until_settled().await?;
    sink.answer("/judge", 503, PLANTED);
    sink.answer("/size", 200, r#"{"size": 8}"#);
    ponds
        .patch("north", &json!({ "spec": { "more": 2 } }))
        .await?;
    let message = reported(&ponds, "north", "ExternalCallFailed").await?;
    assert!(message.contains("the call `judge` failed"), "{message}");
    let map = maps.fetch("north-size").await?;
    assert_eq!(waters::text(&map, "/data/size"), "7");
    sink.answer("/size", 503, PLANTED);
    waters::pond(&scenario, "south", &spec).await?;
    let message = reported(&ponds, "south", "ExternalCallFailed").await?;
    assert!(message.contains("the call `size` failed"), "{message}");
    assert_eq!(maps.get("south-size").await?, None);
    ensure_nothing_planted(&scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_opens_when_the_server_says_so() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/gate", 200, r#"{"open": false}"#);
    sink.answer("/work", 200, "");
    let scenario = running_with("external/asking.yaml", &[sink.url()], &[]).await?;
    let (lakes, maps) = (scenario.objects("lakes"), scenario.objects("configmaps"));
    let spec = json!({ "serviceUrl": sink.url() });
    waters::lake(&scenario, "deep", &spec).await?;
    // `requeue` repeats the call: resync is off, and nothing changes.
    eventually("the gate is called three times", LIMIT, async || {
        Ok((sink.requests("/gate").len() >= 3).then_some(()))
    })
    .await?;
    let is_held = |lake: &Value| {
        condition(lake, "Ready")
            .is_some_and(|ready| ready["status"] == "False" && ready["reason"] == "GateClosed")
    };
    lakes
        .until("deep", "is Ready=False for GateClosed", LIMIT, is_held)
        .await?;
    assert!(sink.requests("/work").is_empty(), "a later call was made");
    assert_eq!(maps.get("deep-lake").await?, None);
    // A failed call neither opens nor closes the gate.
    sink.answer("/gate", 503, PLANTED);
    let message = reported(&lakes, "deep", "ExternalCallFailed").await?;
    assert!(message.contains("the call `gate` failed"), "{message}");
    assert_eq!(maps.get("deep-lake").await?, None);
    sink.answer("/gate", 200, r#"{"open": true}"#);
    maps.until("deep-lake", "exists", LIMIT, |_| true).await?;
    // An existing child stays when the gate closes, and when the call fails.
    for (status, body) in [(200, r#"{"open": false}"#), (503, PLANTED)] {
        let before = sink.requests("/gate").len();
        sink.answer("/gate", status, body);
        lakes
            .patch("deep", &json!({ "spec": { "more": status } }))
            .await?;
        eventually("the gate is called again", LIMIT, async || {
            Ok((sink.requests("/gate").len() > before + 1).then_some(()))
        })
        .await?;
        assert!(maps.get("deep-lake").await?.is_some());
    }
    ensure_nothing_planted(&scenario).await
}

/// Checks that the log, Events, statuses and metrics contain no body, token or path of a call.
async fn ensure_nothing_planted(scenario: &Scenario) -> Result<()> {
    ensure!(!scenario.log().contains(PLANTED), "it is in the log");
    for plural in ["events", "ponds", "lakes", "katalogs"] {
        for object in scenario.objects(plural).list().await? {
            let status = json!([object["status"], object["message"], object["note"]]).to_string();
            ensure!(!status.contains(PLANTED), "{plural} show it: {status}");
        }
    }
    let metrics = scenario.http("/metrics").await?;
    ensure!(!metrics.contains(PLANTED), "it is in the metrics");
    Ok(())
}
