//! The task that sends: one request at a time, each with a deadline.

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasher as _,
    time::Duration,
};

use k8s_openapi::{
    api::events::v1 as wire,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use orkestra_core::api::conditions;
use prometheus::IntCounter;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{CONTROLLER, Event, Happened, Message, NOTE_BYTES, Problem, Severity};
use crate::client::flow::Flow;

/// How long a request may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long an Event that is no warning waits for other requests.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a namespace rests after a refusal.
const REST: Duration = Duration::from_secs(30);
/// How long after its last repetition an Event may still be counted up. Source: kube-runtime and client-go.
const SERIES: Duration = Duration::from_mins(6);
/// Events remembered for counting up.
const REMEMBERED: usize = 4096;
/// Where Events of cluster-scoped objects live. Source: client-go, `tools/events`.
const CLUSTER_NAMESPACE: &str = "default";
/// Longest name of an object, in bytes. Source: Kubernetes, "Object Names and IDs".
const NAME_BYTES: usize = 253;

/// Two Events with the same words are one, counted up.
#[derive(Hash)]
struct Words {
    uid: Option<String>,
    kind: Option<String>,
    namespace: String,
    name: String,
    severity: Severity,
    reason: &'static str,
    note: String,
}

struct Series {
    name: String,
    count: i32,
    last: Instant,
}

/// A namespace in which Events are refused.
struct Rest {
    until: Instant,
    /// Sent once more then: a right that is back is noticed, also where nothing happens.
    refused: Happened,
}

pub(super) struct Sender {
    client: kube::Client,
    flow: Flow,
    dropped: IntCounter,
    problem: Problem,
    instance: String,
    /// By the hash of their words, which for thousands of Events would be megabytes: that two have the same, and one of them
    /// is counted for the other, happens once in 2^40 runs.
    series: HashMap<u64, Series>,
    resting: BTreeMap<String, Rest>,
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
            series: HashMap::new(),
            resting: BTreeMap::new(),
            serial: 0,
        }
    }

    pub(super) async fn run(
        mut self,
        mut warnings: mpsc::Receiver<Message>,
        mut messages: mpsc::Receiver<Message>,
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
                // An error says that nobody waits any more.
                Some(Message::Flush(done)) => drop(done.send(())),
                None => return,
            }
        }
    }

    /// Sends what was refused first, once its namespace has rested. It was counted as dropped then.
    async fn try_again(&mut self) {
        let now = Instant::now();
        let Some(rest) = self.resting.values_mut().find(|rest| rest.until <= now) else {
            return;
        };
        rest.until = now + REST;
        let happened = rest.refused.clone();
        self.attempt(happened).await;
    }

    /// Sends one Event; false when it was not accepted.
    async fn send(&mut self, happened: Happened) -> bool {
        let rests = self.resting.get(namespace_of(&happened.event));
        if rests.is_some_and(|rest| rest.until > Instant::now()) {
            return false;
        }
        if happened.event.severity == Severity::Normal {
            // Its turn comes in any case.
            let _ = timeout(PATIENCE, self.flow.idle()).await;
        }
        self.attempt(happened).await
    }

    async fn attempt(&mut self, happened: Happened) -> bool {
        let words = words(&happened.event);
        let reason = happened.event.reason;
        let error = match timeout(DEADLINE, self.request(&words, &happened)).await {
            Ok(Ok(name)) => {
                self.accepted(&words.namespace);
                self.remember(&words, name);
                return true;
            }
            Ok(Err(error)) => {
                self.refused(&words.namespace, happened, &error);
                error.to_string()
            }
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::debug!(error, reason, "an Event was not accepted");
        false
    }

    fn accepted(&mut self, namespace: &str) {
        if self.resting.remove(namespace).is_some() {
            self.report();
        }
    }

    /// Notes a missing right, so that a condition can name it; any other answer says that the right is there.
    fn refused(&mut self, namespace: &str, happened: Happened, error: &kube::Error) {
        match error {
            kube::Error::Api(status) if status.code == 403 && !is_terminating(status) => {
                let rest = Rest {
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

    /// Makes a new Event, or counts up the one that says the same. Answers its name.
    async fn request(&mut self, words: &Words, happened: &Happened) -> kube::Result<String> {
        let events: Api<wire::Event> = Api::namespaced(self.client.clone(), &words.namespace);
        let at = MicroTime(happened.at);
        let key = self.key_of(words);
        if let Some(series) = self
            .series
            .get(&key)
            .filter(|series| series.last.elapsed() < SERIES)
        {
            let patch =
                serde_json::json!({"series": {"count": series.count + 1, "lastObservedTime": at}});
            match events
                .patch(&series.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
            {
                // The API server forgets Events after an hour, or an administrator deleted it.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => return other.map(|_| series.name.clone()),
            }
            self.series.remove(&key);
        }
        self.serial += 1;
        let name = event_name(&words.name, &at, self.serial);
        let object = self.build(name.clone(), words, &happened.event, at);
        events
            .create(&PostParams::default(), &object)
            .await
            .map(|_| name)
    }

    fn build(&self, name: String, words: &Words, event: &Event, now: MicroTime) -> wire::Event {
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
            reason: Some(event.reason.to_owned()),
            action: Some("Reconcile".to_owned()),
            note: Some(words.note.clone()),
            regarding: Some(event.regarding.clone()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..wire::Event::default()
        }
    }

    fn key_of(&self, words: &Words) -> u64 {
        self.series.hasher().hash_one(words)
    }

    fn remember(&mut self, words: &Words, name: String) {
        let (key, now) = (self.key_of(words), Instant::now());
        if self.series.len() >= REMEMBERED && !self.series.contains_key(&key) {
            self.series
                .retain(|_, series| series.last.elapsed() < SERIES);
            if self.series.len() >= REMEMBERED {
                self.series.clear();
            }
        }
        let series = self.series.entry(key).or_insert(Series {
            name,
            count: 0,
            last: now,
        });
        series.count = series.count.saturating_add(1);
        series.last = now;
    }
}

/// A namespace that goes takes no new Events and answers 403, whatever our rights.
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

/// Where its Events live.
fn namespace_of(event: &Event) -> &str {
    let own = event.regarding.namespace.as_deref();
    own.unwrap_or(CLUSTER_NAMESPACE)
}

fn words(event: &Event) -> Words {
    Words {
        uid: event.regarding.uid.clone(),
        kind: event.regarding.kind.clone(),
        namespace: namespace_of(event).to_owned(),
        name: event.regarding.name.clone().unwrap_or_default(),
        severity: event.severity,
        reason: event.reason,
        note: conditions::cut(&event.note, NOTE_BYTES),
    }
}

/// `<object>.<nanoseconds><serial>` in hexadecimal, as client-go and kube name theirs.
fn event_name(object: &str, now: &MicroTime, serial: u64) -> String {
    let suffix = format!(".{:x}{:04x}", now.0.as_nanosecond(), serial & 0xffff);
    let stem = cut(object, NAME_BYTES - suffix.len()).trim_end_matches(['.', '-']);
    let stem = if stem.is_empty() { CONTROLLER } else { stem };
    format!("{stem}{suffix}")
}

/// The longest start of the text that has at most so many bytes; characters stay whole.
fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;
    use crate::{
        client::flow::Share,
        events::{CAPACITY, EventSink, ObjectReference},
        metrics::Metrics,
        runtime::context::Clock,
    };

    type Seen = Arc<Mutex<Vec<(Method, String, serde_json::Value)>>>;

    /// A cluster that notes what it gets and answers with the code.
    fn cluster(code: u16) -> (kube::Client, Seen) {
        let seen = Seen::default();
        let log = seen.clone();
        let service = service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body: serde_json::Value =
                    serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
                log.lock()
                    .unwrap()
                    .push((parts.method, parts.uri.path().to_owned(), body.clone()));
                let answer = if code < 300 {
                    body
                } else {
                    serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": "no", "reason": "Forbidden", "code": code})
                };
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(
                    Response::builder().status(code).body(answer).unwrap(),
                )
            }
        });
        (kube::Client::new(service, "default"), seen)
    }

    fn event(note: &str) -> Event {
        Event {
            regarding: ObjectReference {
                api_version: Some("water.example/v1".to_owned()),
                kind: Some("Pond".to_owned()),
                name: Some("reeds".to_owned()),
                namespace: Some("marsh".to_owned()),
                uid: Some("u-1".to_owned()),
                ..ObjectReference::default()
            },
            severity: Severity::Normal,
            reason: "Applied",
            note: note.to_owned(),
        }
    }

    fn sink(code: u16) -> (EventSink, Metrics, Seen) {
        let metrics = Metrics::new().unwrap();
        let (client, seen) = cluster(code);
        (
            EventSink::start(client, Flow::new(|| 0.0), &metrics, Clock::system()),
            metrics,
            seen,
        )
    }

    #[tokio::test]
    async fn the_same_words_become_a_series_and_other_words_a_new_event() {
        let (sink, metrics, seen) = sink(200);
        for note in ["one", "one", "one", "two"] {
            sink.publish(event(note));
        }
        sink.flush(Duration::from_secs(5)).await;
        let seen = seen.lock().unwrap();
        let methods: Vec<&Method> = seen.iter().map(|(method, ..)| method).collect();
        assert_eq!(
            methods,
            [Method::POST, Method::PATCH, Method::PATCH, Method::POST]
        );
        let (_, path, first) = &seen[0];
        assert_eq!(path, "/apis/events.k8s.io/v1/namespaces/marsh/events");
        assert_eq!(first["reportingController"], "orkestra");
        assert_eq!(first["regarding"]["uid"], "u-1");
        assert_eq!(first["note"], "one");
        assert_eq!(seen[2].2["series"]["count"], 3);
        assert!(
            seen[2]
                .1
                .ends_with(first["metadata"]["name"].as_str().unwrap())
        );
        assert_eq!(metrics.events_dropped().get(), 0);
    }

    #[tokio::test]
    async fn events_are_dropped_and_counted_under_pressure() {
        let (sink, metrics, seen) = sink(200);
        // The sender has had no turn yet: this runtime has one thread.
        for serial in 0..CAPACITY + 7 {
            sink.publish(event(&serial.to_string()));
        }
        assert_eq!(metrics.events_dropped().get(), 7);
        sink.flush(Duration::from_secs(30)).await;
        assert_eq!(seen.lock().unwrap().len(), CAPACITY);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_done_waits_for_other_requests_a_moment_and_what_is_wrong_does_not() {
        let metrics = Metrics::new().unwrap();
        let (client, seen) = cluster(200);
        let flow = Flow::new(|| 0.0);
        let sink = EventSink::start(client, flow.clone(), &metrics, Clock::system());
        let other = flow.turn(&Share::new("a")).await;
        sink.publish(event("done"));
        sink.publish(Event {
            severity: Severity::Warning,
            ..event("wrong")
        });
        tokio::time::sleep(PATIENCE / 2).await;
        let notes = |seen: &Seen| -> Vec<_> {
            let seen = seen.lock().unwrap();
            seen.iter()
                .map(|(.., body)| body["note"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(notes(&seen), ["wrong"]);
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(notes(&seen), ["wrong", "done"], "it is not for ever");
        sink.publish(event("more"));
        drop(other);
        tokio::time::sleep(PATIENCE / 2).await;
        assert_eq!(notes(&seen).last().unwrap(), "more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_right_is_named_and_tried_again_after_thirty_seconds() {
        let (sink, metrics, seen) = sink(403);
        for _ in 0..5 {
            sink.publish(event("one"));
        }
        sink.flush(Duration::from_secs(5)).await;
        assert_eq!(seen.lock().unwrap().len(), 1);
        assert_eq!(metrics.events_dropped().get(), 5);
        let problem = sink.problem().unwrap();
        assert!(
            problem.contains("marsh") && problem.contains("events.k8s.io"),
            "{problem}"
        );
        tokio::time::advance(REST).await;
        sink.publish(event("one"));
        sink.flush(Duration::from_secs(5)).await;
        assert_eq!(seen.lock().unwrap().len(), 2);
    }

    #[test]
    fn notes_and_names_are_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        let note = words(&event(&"é".repeat(600))).note;
        assert!(note.len() <= NOTE_BYTES && note.ends_with("é..."), "{note}");
        let name = event_name(&"p".repeat(253), &MicroTime(jiff::Timestamp::UNIX_EPOCH), 1);
        assert_eq!(name.len(), NAME_BYTES);
    }
}
