//! The task that sends Events: one request at a time, each with a deadline.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use orkestra_cluster::{
    client::flow::{Flow, Share},
    requests::{Cluster, ClusterError, Served},
};
use orkestra_core::{api::names::MANAGER, plan::ObjectKey, value::Node};
use prometheus::IntCounter;
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{
    CONTROLLER, Message, Problem, Severity, TimedEvent,
    name::{cut, event_name},
    series::{AllEventSeries, SeriesText},
};

/// The deadline of a request.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a normal Event waits for other requests.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a namespace is paused after a refusal.
const REST: Duration = Duration::from_secs(30);

/// A namespace in which Events are refused.
struct RefusedNamespace {
    until: Instant,
    /// Sent once more at that time: a granted permission is noticed even if there are no new Events.
    refused: TimedEvent,
    /// Whether a permission is missing; otherwise a quota or a policy of the namespace refuses Events.
    lacks_permission: bool,
}

pub(super) struct Sender {
    cluster: Cluster,
    /// The kind of Events, as it is served.
    kind: Served,
    flow: Flow,
    dropped: IntCounter,
    problem: Problem,
    instance: String,
    series: AllEventSeries,
    resting: BTreeMap<String, RefusedNamespace>,
    serial: u64,
}

impl Sender {
    pub(super) fn new(
        cluster: &Cluster,
        flow: Flow,
        dropped: IntCounter,
        problem: Problem,
    ) -> Self {
        let host = ["POD_NAME", "HOSTNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok());
        Self {
            cluster: cluster.on_account_of(Share::new("events")),
            kind: Served::events(),
            flow,
            dropped,
            problem,
            instance: cut(
                &host
                    .filter(|host| !host.is_empty())
                    .unwrap_or_else(|| CONTROLLER.to_owned()),
                128,
            )
            .to_owned(),
            series: AllEventSeries::default(),
            resting: BTreeMap::new(),
            serial: 0,
        }
    }

    pub(super) async fn run(
        &mut self,
        warnings: &mut mpsc::Receiver<Message>,
        messages: &mut mpsc::Receiver<Message>,
    ) {
        loop {
            let rested = self.resting.values().map(|rest| rest.until).min();
            let message = tokio::select! {
                biased;
                Some(warning) = warnings.recv() => Some(warning),
                message = messages.recv() => message,
                () = sleep_until(rested.unwrap_or_else(Instant::now)), if rested.is_some() => {
                    self.try_again().await;
                    continue;
                }
            };
            match message {
                Some(Message::Event(happened)) => {
                    if !self.send(*happened).await {
                        self.dropped.inc();
                    }
                }
                // An error means that there is no receiver.
                Some(Message::Flush(done)) => drop(done.send(())),
                None => return,
            }
        }
    }

    /// Sends the Event that was refused first, after its namespace's pause. It was already counted as dropped.
    async fn try_again(&mut self) {
        let now = Instant::now();
        let Some(rest) = self.resting.values_mut().find(|rest| rest.until <= now) else {
            return;
        };
        rest.until = now + REST;
        let happened = rest.refused.clone();
        self.attempt(happened).await;
    }

    /// Sends one Event; false if it was not accepted.
    async fn send(&mut self, happened: TimedEvent) -> bool {
        let rests = self.resting.get(happened.event.namespace());
        if rests.is_some_and(|rest| rest.until > Instant::now()) {
            return false;
        }
        if happened.event.severity == Severity::Normal {
            // It is sent in any case.
            let _ = timeout(PATIENCE, self.flow.idle()).await;
        }
        self.attempt(happened).await
    }

    async fn attempt(&mut self, happened: TimedEvent) -> bool {
        let words = SeriesText::of(&happened.event);
        let reason = happened.event.reason.clone();
        let error = match timeout(DEADLINE, self.request(&words, &happened)).await {
            Ok(Ok(name)) => {
                self.accepted(&words.namespace);
                self.series.remember(&words, name);
                return true;
            }
            Ok(Err(error)) => {
                self.refused(&words.namespace, happened, &error);
                error.to_string()
            }
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::debug!(error, reason = &*reason, "cannot send an Event");
        false
    }

    fn accepted(&mut self, namespace: &str) {
        if self.resting.remove(namespace).is_some() {
            self.report();
        }
    }

    /// Pauses a namespace that refuses Events. A missing permission is recorded, so that a condition can report it. A quota or a
    /// policy is not: the owner of one namespace could make every Katalog not ready.
    fn refused(&mut self, namespace: &str, happened: TimedEvent, error: &ClusterError) {
        match error {
            ClusterError::Forbidden { .. } | ClusterError::Denied { .. } => {
                let rest = RefusedNamespace {
                    until: Instant::now() + REST,
                    refused: happened,
                    lacks_permission: matches!(error, ClusterError::Forbidden { .. }),
                };
                self.resting.insert(namespace.to_owned(), rest);
                self.report();
            }
            ClusterError::Unavailable(_) => {}
            _ => self.accepted(namespace),
        }
    }

    fn report(&self) {
        let lacking = self
            .resting
            .iter()
            .filter(|(_, rest)| rest.lacks_permission);
        let lacking: Vec<&str> = lacking.map(|(namespace, _)| &**namespace).take(6).collect();
        let namespaces = lacking.get(..5).unwrap_or(&lacking);
        self.problem.set((!namespaces.is_empty()).then(|| {
            let more = if lacking.len() > namespaces.len() { " and others" } else { "" };
            format!(
                "Events are refused in namespace {}{more}: grant create and patch on events of group events.k8s.io",
                namespaces.join(", ")
            )
        }));
    }

    /// Creates a new Event, or increments the count of an existing one with the same text. Returns its name.
    async fn request(
        &mut self,
        words: &SeriesText,
        happened: &TimedEvent,
    ) -> Result<String, ClusterError> {
        let key = |name: &str| ObjectKey {
            namespace: Some(words.namespace.as_str().into()),
            name: name.into(),
        };
        if let Some(series) = self.series.of(words) {
            let at = MicroTime(happened.at);
            let patch = json!({"series": {"count": series.count + 1, "lastObservedTime": at}});
            let (key, patch) = (key(&series.name), Node::from(&patch));
            let answer = self
                .cluster
                .merge_patch(&self.kind, &key, None, MANAGER, &patch);
            match answer.await {
                // The API server deletes Events after an hour, or an administrator deleted it.
                Err(ClusterError::NotFound(_)) => {}
                other => return other.map(|_| series.name.clone()),
            }
            self.series.forget(words);
        }
        self.serial += 1;
        let name = event_name(&words.name, &MicroTime(happened.at), self.serial);
        let object = self.build(&name, words, happened);
        let answer = self
            .cluster
            .create(&self.kind, &key(&name), MANAGER, &object)
            .await;
        answer.map(|_| name)
    }

    fn build(&self, name: &str, words: &SeriesText, happened: &TimedEvent) -> Node {
        let TimedEvent { event, at } = happened;
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        Node::from(&json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": words.namespace},
            "eventTime": MicroTime(*at),
            "type": severity,
            "reason": event.reason,
            "action": "Reconcile",
            "note": words.note,
            "regarding": event.regarding,
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
        }))
    }
}

#[cfg(test)]
mod tests;
