//! Requests at a rate, or as many as fit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::join_all;
use kube::{Client, Config};
use serde::Serialize;
use serde_json::json;

use crate::shop::{Kind, NAMESPACE};
use crate::stats::{Percentiles, float};

/// Requests under way at a time, each on a connection of its own: the webhooks accept a limited number of connections.
const WORKERS: usize = 64;
/// Those of a count: the API server limits what is under way.
const READERS: usize = 32;
/// The pause of the neighbour between two reviews.
const PAUSE: Duration = Duration::from_millis(10);

/// What became of many requests.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    /// Requests a second.
    pub(crate) rate: f64,
    /// Requests that were answered.
    pub(crate) answered: usize,
    /// Those that were told to come later.
    pub(crate) refused: usize,
    /// Those that failed.
    pub(crate) failed: usize,
    /// Why the first of them failed.
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
    /// At most `rate` requests a second for `time`. `send` returns whether the request was answered, or told to come later.
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

    /// `count` requests.
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

/// Sends a review of a creation to the webhook, as the API server would.
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

/// A flood of reviews of one operator, and the durations of another operator's meanwhile.
pub(crate) async fn flood(
    port: u16,
    (flooded, other): (&Kind, &Kind),
    rate: u32,
    time: Duration,
) -> Result<(Load, Percentiles)> {
    let client = || -> Result<Client> {
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
        // What the certificate says is not what is measured.
        config.accept_invalid_certs = true;
        Ok(Client::try_from(config)?)
    };
    let (own, neighbour) = (client()?, client()?);
    let started = Instant::now();
    let neighbours = async {
        let mut took = Vec::new();
        // The connection is there before the flood.
        review(&neighbour, other).await?;
        while started.elapsed() < time {
            let began = Instant::now();
            review(&neighbour, other).await?;
            took.push(began.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(Percentiles::of(took).context("the neighbour had no time")?)
    };
    let load = Paced::rate(rate, time, async |_| review(&own, flooded).await);
    let (load, neighbours) = futures::future::join(load, neighbours).await;
    Ok((load?, neighbours?))
}
