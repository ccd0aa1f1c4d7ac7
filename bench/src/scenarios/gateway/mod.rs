//! Webhooks: their latency, their memory, and that no request fails during a flood, a certificate rotation and many conversions.
//!
//! Creations are dry runs: the API server runs all of admission, but neither writes to etcd nor triggers an operator.

mod conversions;
mod go;
mod load;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};
use testbed::{eventually, free_port};

use self::conversions::{conversions, converted};
use self::go::GoWebhook;
use self::load::{Load, Paced};
use super::{Figures, promise};
use crate::api::Write;
use crate::options::Sizes;
use crate::process::{Memory, Ork};
use crate::report::{Goal, Row};
use crate::shop::{Kind, NAMESPACE, Tuning, katalog, resource_name};
use crate::site::Site;
use crate::stats::{Percentiles, float};

/// The longest time for any step without a limit of its own.
const LIMIT: Duration = Duration::from_mins(5);
/// The time that a controller gets to settle before its memory is read.
const SETTLED: Duration = Duration::from_secs(8);
/// The number of operators with rules for the memory of a rule set. It is large, because the noise of a process' memory, some
/// hundred KB, must be small for each rule set.
const RULE_SETS: usize = 200;
/// The validity of certificates during the rotation. The next certificate is used after two thirds of it.
const LIFE: &str = "45s";
/// The path of the Secret with the webhooks' certificate.
const SECRET: &str = "/api/v1/namespaces/orkestra-system/secrets/orkestra-tls";
/// The duration of the flood.
const FLOOD: Duration = Duration::from_secs(10);

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gateway {
    /// The memory of a controller with one operator that has rules, without webhooks and with them.
    one: [Memory; 2],
    /// The same with many operators.
    many: [Memory; 2],
    /// The requests of the controller with many operators while nothing changes, without watches and leases.
    quiet_requests: usize,
    /// A dry-run creation without rules.
    plain: Percentiles,
    /// A dry-run creation with a rule that is a policy of the API server.
    policy: Percentiles,
    /// A dry-run creation with a rule that the webhook evaluates.
    webhook: Percentiles,
    /// A dry-run creation with the same rule in a controller-runtime webhook, if `--go-webhook` is set.
    go_webhook: Option<Percentiles>,
    /// Dry-run creations while certificates rotate.
    rotation: Load,
    /// The number of rotations in that time.
    rotations: usize,
    /// Reviews of one operator, sent directly to the webhook.
    flood: Load,
    /// Reviews of another operator in that time.
    neighbour: Percentiles,
    /// Reads that convert a custom resource of 10 kB.
    conversions: Load,
    /// The duration of the latest conversions as the operator's page reports it: the average and the 95th percentile.
    in_process: (f64, f64),
    /// The memory of the controller at the end.
    after: Memory,
}

/// Returns the Katalog of kinds with rules: the rule of an even-numbered kind is a policy, that of an odd-numbered kind needs the
/// webhook.
fn guarded(kinds: &[Kind]) -> Result<Value> {
    let mut katalog = katalog("guarded", kinds, &Tuning::default())?;
    katalog["spec"]["security"] =
        json!({ "webhooks": { "admission": { "enabled": true }, "failurePolicy": "Fail" } });
    let entries = katalog["spec"]["crds"].as_object_mut();
    let entries = entries.context("a Katalog without entries")?;
    for (number, (_, entry)) in entries.iter_mut().enumerate() {
        let field = if number % 2 == 0 {
            "spec.message"
        } else {
            "{{ .spec.message | lower }}"
        };
        let rule = json!({ "field": field, "notEquals": "closed", "message": "it is closed" });
        entry["validation"] = json!({ "rules": [rule] });
    }
    Ok(katalog)
}

/// Returns the memory of a controller that has settled, and the number of its requests in `window` after that, without watches
/// and leases.
async fn settled(
    mut ork: Ork,
    operators: usize,
    site: &Site,
    window: Duration,
) -> Result<(Memory, usize)> {
    site.until_all_run(&mut ork, operators).await?;
    ork.until_quiet(0.0, LIMIT).await?;
    tokio::time::sleep(SETTLED).await;
    let memory = ork.memory()?;
    let mark = site.mark()?;
    tokio::time::sleep(window).await;
    let requests = site.requests_since(mark)?.asked;
    ork.terminate()?;
    Ok((memory, requests))
}

/// Returns the memory without webhooks and with them, of controllers that start with running operators, and the requests of the
/// controller with webhooks in `window`.
async fn memories(
    site: &Site,
    kinds: &[Kind],
    port: u16,
    window: Duration,
) -> Result<([Memory; 2], usize)> {
    let katalogs = [guarded(kinds)?];
    site.grant(&katalogs, kinds).await?;
    let mut first = site.controller_serving(port, &[]).await?;
    site.apply_katalogs(&katalogs).await?;
    site.until_running(&mut first, &katalogs).await?;
    first.terminate()?;
    let plain = site.controller().await?;
    let (without, _) = settled(plain, kinds.len(), site, Duration::ZERO).await?;
    let serving = site.controller_serving(port, &[]).await?;
    let (with, requests) = settled(serving, kinds.len(), site, window).await?;
    Ok(([without, with], requests))
}

/// Sends a dry-run creation and returns the time that it took.
async fn dry_run(client: &Client, kind: &Kind, message: &str) -> Result<Duration> {
    let path = format!("{}?dryRun=All", kind.path(NAMESPACE));
    let mut object = kind.resource(NAMESPACE, &resource_name(0));
    object["spec"]["message"] = json!(message);
    let body = object.to_string().into_bytes();
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)?;
    let started = Instant::now();
    client.request_text(request).await?;
    Ok(started.elapsed())
}

async fn until_denied(client: &Client, kind: &Kind) -> Result<()> {
    let what = format!("the rule of {} holds", kind.plural());
    eventually(&what, LIMIT, async || {
        let Err(error) = dry_run(client, kind, "closed").await else {
            bail!("the creation was allowed");
        };
        ensure!(error.to_string().contains("it is closed"), error);
        Ok(Some(()))
    })
    .await
}

/// Measures creations of each kind in turn, so that all kinds run under the same conditions.
async fn latencies(client: &Client, kinds: &[&Kind], samples: usize) -> Result<Vec<Percentiles>> {
    let mut took = vec![Vec::new(); kinds.len()];
    for _ in 0..samples {
        for (kind, took) in kinds.iter().zip(&mut took) {
            took.push(dry_run(client, kind, "open").await?);
        }
    }
    let all = took.into_iter().map(Percentiles::of);
    all.collect::<Option<_>>()
        .context("no sample was taken: --samples 0?")
}

// Over 60 lines: a scenario, one measurement after the other.
pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Gateway> {
    let site = Site::start(program).await?;
    let (kinds, plain) = (Kind::some(RULE_SETS), Kind::without_operator());
    let judged_by_go = Kind::numbered(RULE_SETS);
    let others = [plain.clone(), judged_by_go.clone()];
    site.install(&[&kinds[..], &others].concat()).await?;
    let port = free_port()?;
    let (one, _) = memories(&site, &kinds[..1], port, Duration::ZERO).await?;
    let window = Duration::from_secs(sizes.quiet);
    let (many, quiet_requests) = memories(&site, &kinds, port, window).await?;

    let (definition, docs) = converted();
    site.define(&[definition]).await?;
    let docs = [docs];
    site.grant(&docs, &kinds).await?;
    // Delete the certificate of the earlier controllers, which is valid for a long time.
    Write::delete(SECRET).send(&site.client).await?;
    let life = format!("--webhooks-cert-life={LIFE}");
    let mut ork = site.controller_serving(port, &[life]).await?;
    eventually(
        "the API server trusts the new certificate",
        LIMIT,
        async || Ok(site.apply_katalogs(&docs).await.ok()),
    )
    .await?;
    site.until_running(&mut ork, &docs).await?;
    let client = &site.client;
    let (cel, judged) = (&kinds[0], &kinds[1]);
    until_denied(client, cel).await?;
    until_denied(client, judged).await?;
    let go = match &sizes.go_webhook {
        Some(program) => Some(GoWebhook::start(program, &site, &judged_by_go).await?),
        None => None,
    };
    let mut compared = vec![&plain, cel, judged];
    if go.is_some() {
        until_denied(client, &judged_by_go).await?;
        compared.push(&judged_by_go);
    }
    let latencies = latencies(client, &compared, sizes.samples).await?;
    drop(go);

    let mut ends = ork.certificate_end().await?;
    let mut rotations = 0;
    let watching = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = ork.certificate_end().await;
            if let Ok(now) = now
                && now > ends
            {
                (ends, rotations) = (now, rotations + 1);
            }
        }
    };
    let minute = Duration::from_secs(sizes.rotation);
    let rotation = Paced::rate(sizes.rotation_rate, minute, async |_| {
        dry_run(client, judged, "open").await.map(|_| true)
    });
    let rotation = tokio::select! {
        rotation = rotation => rotation?,
        () = watching => Load::default(),
    };

    let (flood, neighbour) =
        load::flood(port, (judged, &kinds[3]), sizes.flood_rate, FLOOD).await?;
    let conversions = conversions(&site, sizes.conversions).await?;
    let page: Value = serde_json::from_str(&ork.get("/katalog/doc").await?)?;
    let reported = |field: &str| page["webhooks"][field].as_f64().unwrap_or_default();
    let in_process = (reported("averageMilliseconds"), reported("p95Milliseconds"));
    ork.check()?;
    Ok(Gateway {
        one,
        many,
        quiet_requests,
        plain: latencies[0],
        policy: latencies[1],
        webhook: latencies[2],
        go_webhook: latencies.get(3).copied(),
        rotation,
        rotations,
        flood,
        neighbour,
        conversions,
        in_process,
        after: ork.memory()?,
    })
}

impl Figures for Gateway {
    fn title(&self) -> String {
        format!("webhooks of {RULE_SETS} operators with rules; creations are dry runs")
    }

    fn rows(&self) -> Vec<Row> {
        let more = |[without, with]: &[Memory; 2]| with.heap_mb - without.heap_mb;
        let (one, many) = (more(&self.one), more(&self.many));
        let per_set = (many - one) * 1e3 / float(RULE_SETS - 1);
        let ms = |name: &str, value: f64| Row::new(name, "ms", value);
        let plain = self.plain;
        let beside = |what: &str, took: Percentiles| {
            [
                ms(&format!("creation with a rule as {what}, p50"), took.p50).beside(plain.p50),
                ms(&format!("creation with a rule as {what}, p99"), took.p99).beside(plain.p99),
            ]
        };
        let count = |name: &str, value: usize| Row::new(name, "", float(value));
        let mut rows = vec![
            Row::new("heap of the webhooks, one operator", "MB", one).goal(Goal::AtMost(2.0)),
            Row::new("heap of the webhooks per further operator", "KB", per_set)
                .goal(Goal::AtMost(5.0)),
            Row::new("RSS at the end", "MB", self.after.rss_mb),
            count("requests in the quiet time", self.quiet_requests).goal(Goal::AtMost(0.0)),
        ];
        rows.extend(beside("policy", self.policy));
        rows.extend(beside("webhook", self.webhook));
        if let Some(took) = self.go_webhook {
            rows.extend(beside("webhook of controller-runtime", took));
        }
        rows.extend([
            Row::new(
                "creations while certificates rotate",
                "/s",
                self.rotation.rate,
            ),
            count("certificates that came to serve meanwhile", self.rotations),
            count("creations that failed meanwhile", self.rotation.failed).goal(Goal::AtMost(0.0)),
            Row::new("flood of reviews of one operator", "/s", self.flood.rate),
            count("of them answered 429", self.flood.refused),
            ms(
                "reviews of another operator meanwhile, p50",
                self.neighbour.p50,
            ),
            ms(
                "reviews of another operator meanwhile, p99",
                self.neighbour.p99,
            )
            .goal(Goal::AtMost(50.0)),
            count("conversions of 10 kB", self.conversions.answered),
            Row::new("conversions by reads", "/s", self.conversions.rate),
            count("conversions that failed", self.conversions.failed).goal(Goal::AtMost(0.0)),
            ms(
                "a conversion in the webhook, average of the latest",
                self.in_process.0,
            ),
            ms(
                "a conversion in the webhook, 95 of 100 of the latest",
                self.in_process.1,
            ),
        ]);
        rows
    }

    fn broken(&self) -> Vec<String> {
        let failed = |what: &str, load: &Load| {
            promise(load.failed == 0, || {
                format!("{} {what} failed: {:?}", load.failed, load.first_failure)
            })
        };
        [
            promise(self.quiet_requests == 0, || {
                format!("{} requests in the quiet time", self.quiet_requests)
            }),
            failed("creations during rotation", &self.rotation),
            failed("conversions", &self.conversions),
            failed("reviews of the flood", &self.flood),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
