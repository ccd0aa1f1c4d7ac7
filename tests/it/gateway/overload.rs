//! Overload: a flood of reviews for one operator, over TLS, does not affect the reviews for another operator.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::{Gate, conversion, requests::connect};
use crate::{
    external::sink::Sink,
    scenario::{LIMIT, pause, within},
};

/// The rules of Sites call an external service that does not answer.
const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: both }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        external: [{ name: quota, url: 'URL/hang', fires: { reconcile: false } }]
        rules: [{ field: '{{ .external.quota.left }}', notEquals: none, message: 'no quota', fires: { reconcile: false } }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
    cron:
      apiTypes: { group: GROUP, version: v2, kind: Cron, plural: crons }
      validation:
        rules: [{ field: '{{ .spec.keep | upper }}', notEquals: AWAY, message: 'keep it' }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}-cron', data: { keep: '{{ .spec.keep }}' } }]
";

/// The number of connections of the flood; each sends at most one request per [`PAUSE`]. About 66 of them wait, and the others send
/// up to 2,000 requests a second.
const FLOOD: usize = 165;
const PAUSE: Duration = Duration::from_millis(50);
/// The number of reviews for the other operator during the flood.
const REVIEWS: usize = 200;

fn review(gate: &Gate, (version, kind, plural): (&str, &str, &str), spec: &Value) -> String {
    let (group, namespace) = (&gate.scenario.group, &gate.scenario.namespace);
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": "n", "namespace": namespace,
        "kind": { "group": group, "version": version, "kind": kind },
        "resource": { "group": group, "version": version, "resource": plural },
        "userInfo": { "username": "eve" },
        "object": {
            "apiVersion": format!("{group}/{version}"), "kind": kind,
            "metadata": { "name": "n", "namespace": namespace }, "spec": spec,
        },
    } })
    .to_string()
}

/// Sends a review on a connection that stays open; returns the head and the body of the response.
async fn post(stream: &mut TlsStream<TcpStream>, text: &str) -> Result<(String, String)> {
    let request = format!(
        "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(request.as_bytes()).await?;
    // Without the flush, TLS may keep a part of the request in its buffer.
    stream.flush().await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.context("no length")?.trim().parse()?];
    stream.read_exact(&mut body).await?;
    Ok((head, String::from_utf8(body)?))
}

fn status(head: &str) -> Option<&str> {
    head.split(' ').nth(1)
}

/// Sends reviews until `ended` is true; returns the number of responses by status.
async fn flood(
    gate: &Gate,
    text: &str,
    (refused, ended): (&AtomicU32, &AtomicBool),
) -> Result<BTreeMap<String, u32>> {
    let one = async |_: usize| {
        let mut statuses = BTreeMap::<String, u32>::new();
        let mut stream = connect(gate.port).await?;
        while !ended.load(Ordering::Relaxed) {
            let next = Instant::now() + PAUSE;
            let (head, body) = post(&mut stream, text).await?;
            let status = status(&head).context("no status")?;
            ensure!(matches!(status, "200" | "429"), "{head}{body}");
            ensure!(
                status == "200" || head.contains("retry-after: 1"),
                "{head}{body}"
            );
            if status == "429" {
                refused.fetch_add(1, Ordering::Relaxed);
            }
            *statuses.entry(status.to_owned()).or_default() += 1;
            pause(next.saturating_duration_since(Instant::now())).await;
        }
        anyhow::Ok(statuses)
    };
    let all = futures::future::try_join_all((0..FLOOD).map(one)).await?;
    let mut sum = BTreeMap::new();
    for (status, count) in all.into_iter().flatten() {
        *sum.entry(status).or_default() += count;
    }
    Ok(sum)
}

/// Returns a review for the other operator.
fn cron(gate: &Gate, keep: &str) -> String {
    review(gate, ("v2", "Cron", "crons"), &json!({ "keep": keep }))
}

/// Waits until external calls of the flood hang and reviews of it are refused, and checks the verdicts for the other operator. The
/// limit of their times allows for a debug build; waiting for a seat of a slow call would take two seconds.
async fn judged_meanwhile(
    gate: &Gate,
    (sink, refused): (&Sink, &AtomicU32),
    stream: &mut TlsStream<TcpStream>,
) -> Result<()> {
    eventually("calls hang and reviews are refused", LIMIT, async || {
        let refused = refused.load(Ordering::Relaxed);
        ensure!(refused > 100, "{refused} are refused");
        Ok((!sink.requests("/hang").is_empty()).then_some(()))
    })
    .await?;
    let what = "99 of 100 verdicts for the other operator";
    within(what, Duration::from_millis(500), async || {
        let mut took = verdicts(gate, stream).await?;
        took.sort_unstable();
        Ok(took[REVIEWS * 99 / 100])
    })
    .await
    .map(drop)
}

/// Checks the verdicts for the other operator, and returns the duration of each.
async fn verdicts(gate: &Gate, stream: &mut TlsStream<TcpStream>) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    for serial in 0..REVIEWS {
        let text = cron(gate, if serial % 2 == 0 { "here" } else { "away" });
        let start = Instant::now();
        let (head, body) = post(stream, &text).await?;
        took.push(start.elapsed());
        ensure!(status(&head) == Some("200"), "{head}{body}");
        let review: Value = serde_json::from_str(&body)?;
        ensure!(review["response"]["allowed"] == (serial % 2 == 0), "{body}");
        pause(Duration::from_millis(20)).await;
    }
    Ok(took)
}

/// Returns the peak resident memory of the process, in MiB.
fn peak(gate: &Gate) -> Result<u64> {
    let pid = gate.scenario.pid().context("no controller runs")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib.context("no peak")?.trim().parse::<u64>()? / 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_for_one_operator_gets_429_and_the_other_one_its_verdicts() -> Result<()> {
    let sink = Sink::start().await?;
    let katalog = KATALOG.replace("URL", &sink.url());
    let arguments = &[
        "--external-allow=127.0.0.1",
        "--webhooks-trusted-peers=127.0.0.1/32",
    ];
    let crds = &["rules/crds.yaml", conversion::CRD];
    let gate = Gate::start_with("gateover", crds, &katalog, arguments).await?;
    gate.run(&katalog).await?;
    let slow = review(&gate, ("v1alpha1", "Site", "sites"), &json!({}));
    let mut stream = connect(gate.port).await?;
    eventually("the webhook evaluates rules", LIMIT, async || {
        let mut stream = connect(gate.port).await?;
        let (_, body) = post(&mut stream, &cron(&gate, "away")).await?;
        Ok(body.contains("keep it").then_some(()))
    })
    .await?;
    let before = peak(&gate)?;
    let (refused, ended) = (AtomicU32::new(0), AtomicBool::new(false));
    let start = Instant::now();
    let others = async {
        let others = judged_meanwhile(&gate, (&sink, &refused), &mut stream).await;
        ended.store(true, Ordering::Relaxed);
        others
    };
    let (flooded, others) = tokio::join!(flood(&gate, &slow, (&refused, &ended)), others);
    let seconds = start.elapsed().as_secs_f64();
    others?;
    let flooded = flooded?;
    let sum: u32 = flooded.values().sum();
    let grown = peak(&gate)? - before;
    println!(
        "{:.0} requests a second: {flooded:?}; {grown} MiB more",
        f64::from(sum) / seconds
    );
    ensure!(grown < 128, "{grown} MiB more");
    Ok(())
}
