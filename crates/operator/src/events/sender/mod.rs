//! The task that sends Events: one request at a time, each with a deadline.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use orkestra_cluster::{
    client::flow::{Flow, Share},
    requests::{Cluster, ClusterError, Served},
};
use orkestra_language::api::names::MANAGER;
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
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

/// The most namespaces that are remembered as permitting Events. The owners of all of them would have to remove a Role to make
/// Katalogs not ready.
const MOST_PERMITTED: usize = 8;

/// A namespace in which Events are refused.
struct RefusedNamespace {
    until: Instant,
    /// If a permission is missing, an Event that is sent once more at that time: a granted permission is noticed even if there
    /// are no new Events. `None` if a quota or a policy of the namespace refuses Events.
    unpermitted: Option<TimedEvent>,
}

pub(crate) struct Sender {
    cluster: Cluster,
    /// The kind of Events, as it is served.
    kind: Served,
    flow: Flow,
    dropped: IntCounter,
    problem: Problem,
    instance: String,
    series: AllEventSeries,
    resting: BTreeMap<String, RefusedNamespace>,
    /// The last namespaces in which Events were permitted, the newest at the end, as far as they still are.
    permitted: VecDeque<String>,
    serial: u64,
}

impl Sender {
    pub(crate) fn new(
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
            kind: Served::core_events(),
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
            permitted: VecDeque::new(),
            serial: 0,
        }
    }

    pub(crate) async fn run(
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

    /// Ends the pause of a namespace. The Event that a permission was missing for is sent again; it was already counted as dropped.
    async fn try_again(&mut self) {
        let now = Instant::now();
        let mut resting = self.resting.iter_mut();
        let Some((namespace, rest)) = resting.find(|(_, rest)| rest.until <= now) else {
            return;
        };
        rest.until = now + REST;
        if let Some(happened) = rest.unpermitted.clone() {
            self.attempt(happened).await;
        } else {
            let namespace = namespace.clone();
            self.resting.remove(&namespace);
        }
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
                self.permitted(&words.namespace);
                self.series.remember(&words, name);
                return true;
            }
            Ok(Err(error)) => {
                self.refused(&words.namespace, happened, &error).await;
                error.to_string()
            }
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::debug!(error, reason = &*reason, "cannot send an Event");
        false
    }

    fn permitted(&mut self, namespace: &str) {
        self.resting.remove(namespace);
        if self.permitted.back().is_none_or(|last| last != namespace) {
            self.permitted.retain(|known| known != namespace);
            self.permitted.push_back(namespace.to_owned());
            if self.permitted.len() > MOST_PERMITTED {
                self.permitted.pop_front();
            }
        }
        self.report();
    }

    /// Pauses a namespace that refuses Events. A missing permission is recorded, so that a condition can report it. A quota or a
    /// policy is not: the owner of one namespace could make every Katalog not ready.
    async fn refused(&mut self, namespace: &str, happened: TimedEvent, error: &ClusterError) {
        let unpermitted = match error {
            ClusterError::Forbidden { .. } => Some(happened),
            ClusterError::Denied { .. } => None,
            ClusterError::Unavailable(_) => return,
            _ => return self.permitted(namespace),
        };
        if unpermitted.is_some() {
            self.check_permitted(namespace).await;
        }
        let until = Instant::now() + REST;
        let rest = RefusedNamespace { until, unpermitted };
        if self.resting.insert(namespace.to_owned(), rest).is_none() {
            tracing::warn!(namespace, %error, "Events are refused in this namespace; they are dropped for 30 s at a time");
        }
        self.report();
    }

    /// After a permission was missing in `refused`, drops the namespaces in which it is no longer granted either, until one is left
    /// in which it is.
    async fn check_permitted(&mut self, refused: &str) {
        self.permitted.retain(|known| known != refused);
        while let Some(last) = self.permitted.back() {
            let kind = (&*self.kind.group, &*self.kind.plural);
            let may = self.cluster.may("create", kind, Some(last));
            match timeout(DEADLINE, may).await {
                Ok(Ok(false)) => {
                    self.permitted.pop_back();
                }
                // It is permitted, or the next refusal checks it again.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Sets the problem that conditions report: none while Events are permitted in another namespace, since the owner of one
    /// namespace can remove a Role there.
    fn report(&self) {
        let unpermitted = (self.resting.iter()).filter(|(_, rest)| rest.unpermitted.is_some());
        let lacking: Vec<&str> = unpermitted
            .map(|(namespace, _)| &**namespace)
            .take(6)
            .collect();
        let namespaces = lacking.get(..5).unwrap_or(&lacking);
        let is_problem = self.permitted.is_empty() && !namespaces.is_empty();
        self.problem.set(is_problem.then(|| {
            let more = if lacking.len() > namespaces.len() { " and others" } else { "" };
            format!(
                "Events are refused in namespace {}{more}: grant create and patch on events of the core group",
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
            let count = series.count + 1;
            let patch = json!({
                "count": count,
                "lastTimestamp": Time(happened.at),
                "series": {"count": count, "lastObservedTime": at},
            });
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
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": words.namespace},
            "eventTime": MicroTime(*at),
            "firstTimestamp": Time(*at),
            "lastTimestamp": Time(*at),
            "count": 1,
            "type": severity,
            "reason": event.reason,
            "action": "Reconcile",
            "message": words.note,
            "involvedObject": event.regarding,
            "source": {"component": CONTROLLER},
            "reportingComponent": CONTROLLER,
            "reportingInstance": self.instance,
        }))
    }
}

#[cfg(test)]
mod tests;
