//! The task that sends Events: one request at a time, each with a deadline.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::events::v1 as wire,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use orkestra_cluster::client::flow::Flow;
use prometheus::IntCounter;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{
    CONTROLLER, Event, Message, Problem, Severity, TimedEvent,
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
}

pub(super) struct Sender {
    client: kube::Client,
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
        client: kube::Client,
        flow: Flow,
        dropped: IntCounter,
        problem: Problem,
    ) -> Self {
        let host = ["POD_NAME", "HOSTNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok());
        Self {
            client,
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

    /// Records a missing permission, so that a condition can report it; any other response means that the permission exists.
    fn refused(&mut self, namespace: &str, happened: TimedEvent, error: &kube::Error) {
        match error {
            kube::Error::Api(status) if status.code == 403 && !is_terminating(status) => {
                let rest = RefusedNamespace {
                    until: Instant::now() + REST,
                    refused: happened,
                };
                self.resting.insert(namespace.to_owned(), rest);
                self.report();
            }
            kube::Error::Api(_) => self.accepted(namespace),
            _ => {}
        }
    }

    fn report(&self) {
        let namespaces: Vec<&str> = self.resting.keys().take(5).map(String::as_str).collect();
        self.problem.set((!namespaces.is_empty()).then(|| {
            let more = if self.resting.len() > namespaces.len() { " and others" } else { "" };
            format!(
                "Events are refused in namespace {}{more}: grant create and patch on events of group events.k8s.io",
                namespaces.join(", ")
            )
        }));
    }

    /// Creates a new Event, or increments the count of an existing one with the same text. Returns its name.
    async fn request(&mut self, words: &SeriesText, happened: &TimedEvent) -> kube::Result<String> {
        let events: Api<wire::Event> = Api::namespaced(self.client.clone(), &words.namespace);
        let at = MicroTime(happened.at);
        if let Some(series) = self.series.of(words) {
            let patch =
                serde_json::json!({"series": {"count": series.count + 1, "lastObservedTime": at}});
            match events
                .patch(&series.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
            {
                // The API server deletes Events after an hour, or an administrator deleted it.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => return other.map(|_| series.name.clone()),
            }
            self.series.forget(words);
        }
        self.serial += 1;
        let name = event_name(&words.name, &at, self.serial);
        let object = self.build(name.clone(), words, &happened.event, at);
        events
            .create(&PostParams::default(), &object)
            .await
            .map(|_| name)
    }

    fn build(
        &self,
        name: String,
        words: &SeriesText,
        event: &Event,
        now: MicroTime,
    ) -> wire::Event {
        wire::Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(words.namespace.clone()),
                ..ObjectMeta::default()
            },
            event_time: Some(now),
            type_: Some(match event.severity {
                Severity::Normal => "Normal".to_owned(),
                Severity::Warning => "Warning".to_owned(),
            }),
            reason: Some(event.reason.to_string()),
            action: Some("Reconcile".to_owned()),
            note: Some(words.note.clone()),
            regarding: Some(event.regarding.clone()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..wire::Event::default()
        }
    }
}

/// A terminating namespace accepts no new Events and answers 403, whatever our permissions.
fn is_terminating(status: &kube::core::Status) -> bool {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice())
        .unwrap_or_default();
    causes
        .iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests;
