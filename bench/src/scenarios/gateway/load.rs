//! Requests at a fixed rate, or a fixed number of requests as fast as possible.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::join_all;
use kube::{Client, Config};
use serde::Serialize;
use serde_json::json;

use crate::shop::{Kind, NAMESPACE};
use crate::stats::{Percentiles, float};

/// The number of concurrent requests, each on its own connection: the webhooks accept a limited number of connections.
const WORKERS: usize = 64;
/// The number of concurrent requests of a fixed number: the API server limits concurrent requests.
const READERS: usize = 32;
/// The neighbour's pause between two reviews.
const PAUSE: Duration = Duration::from_millis(10);

/// The outcome of many requests.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    /// Requests per second.
    pub(crate) rate: f64,
    /// The number of requests that were answered.
    pub(crate) answered: usize,
    /// The number of requests that were refused with a request to retry later.
    pub(crate) refused: usize,
    /// The number of requests that failed.
    pub(crate) failed: usize,
    /// The error of the first failed request.
    pub(crate) first_failure: Option<String>,
}

/// Sends requests.
pub(crate) struct Paced;

#[derive(Default)]
struct Part {
    answered: usize,
    refused: usize,
    failures: Vec<String>,
}

impl Part {
    fn add(&mut self, answer: Result<bool>) {
        match answer {
            Ok(true) => self.answered += 1,
            Ok(false) => self.refused += 1,
            Err(error) => self.failures.push(format!("{error:#}")),
        }
    }
}

fn joined(parts: Vec<Part>, took: Duration) -> Load {
    let mut load = Load::default();
    for part in parts {
        load.answered += part.answered;
        load.refused += part.refused;
        load.failed += part.failures.len();
        load.first_failure = load
            .first_failure
            .or_else(|| part.failures.into_iter().next());
    }
    load.rate = float(load.answered + load.refused + load.failed) / took.as_secs_f64();
    load
}

impl Paced {
    /// Sends at most `rate` requests per second for `time`. `send` returns false if the request was refused with a request to
    /// retry later.
    pub(crate) async fn rate(
        rate: u32,
        time: Duration,
        send: impl AsyncFn(usize) -> Result<bool>,
    ) -> Result<Load> {
        let started = Instant::now();
        let gap = Duration::from_secs(1)
            .checked_div(rate)
            .context("no rate")?;
        let next = AtomicUsize::new(0);
        let worker = async |_: usize| {
            let mut part = Part::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let due = gap * u32::try_from(number).unwrap_or(u32::MAX);
                if due >= time || started.elapsed() >= time {
                    return part;
                }
                tokio::time::sleep(due.saturating_sub(started.elapsed())).await;
                part.add(send(number).await);
            }
        };
        let parts = join_all((0..WORKERS).map(worker)).await;
        Ok(joined(parts, started.elapsed()))
    }

    /// Sends `count` requests.
    pub(crate) async fn count(
        count: usize,
        send: impl AsyncFn(usize) -> Result<bool>,
    ) -> Result<Load> {
        let (started, next) = (Instant::now(), AtomicUsize::new(0));
        let worker = async |_: usize| {
            let mut part = Part::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return part;
                }
                part.add(send(number).await);
            }
        };
        let parts = join_all((0..READERS).map(worker)).await;
        Ok(joined(parts, started.elapsed()))
    }
}

/// Sends a review of a creation to the webhook, in the form of the API server.
async fn review(client: &Client, kind: &Kind) -> Result<bool> {
    let object = kind.resource(NAMESPACE, "a");
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "name": "a", "namespace": NAMESPACE,
            "kind": { "group": "bench.orkestra.io", "version": "v1", "kind": object["kind"] },
            "resource": { "group": "bench.orkestra.io", "version": "v1", "resource": kind.plural() },
            "userInfo": { "username": "bench" }, "object": object,
        },
    });
    let request = http::Request::post("/validate")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())?;
    match client.request_text(request).await {
        Ok(text) if text.contains("\"allowed\":true") => Ok(true),
        Ok(text) => anyhow::bail!("refused: {text}"),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Sends a flood of reviews for one operator, and measures the durations of another operator's reviews in that time.
pub(crate) async fn flood(
    port: u16,
    (flooded, other): (&Kind, &Kind),
    rate: u32,
    time: Duration,
) -> Result<(Load, Percentiles)> {
    let client = || -> Result<Client> {
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
        // The validity of the certificate is not part of this measurement.
        config.accept_invalid_certs = true;
        Ok(Client::try_from(config)?)
    };
    let (own, neighbour) = (client()?, client()?);
    let started = Instant::now();
    let neighbours = async {
        let mut took = Vec::new();
        // Open the connection before the flood.
        review(&neighbour, other).await?;
        while started.elapsed() < time {
            let began = Instant::now();
            review(&neighbour, other).await?;
            took.push(began.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(Percentiles::of(took).context("the neighbour sent no review")?)
    };
    let load = Paced::rate(rate, time, async |_| review(&own, flooded).await);
    let (load, neighbours) = futures::future::join(load, neighbours).await;
    Ok((load?, neighbours?))
}
