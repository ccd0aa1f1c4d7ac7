use std::{
    convert::Infallible,
    sync::{Arc, mpsc as blocking},
    time::Instant,
};

use crate::gate::Gate;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::leader_election::{Leadership, Timing};

/// Returns a client of a cluster with one Lease, which cannot be watched.
fn cluster(lease: Arc<Mutex<Option<Value>>>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let lease = Arc::clone(&lease);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let is_watch = parts
                .uri
                .query()
                .is_some_and(|query| query.contains("watch"));
            let mut lease = lease.lock();
            let refused = |code: u16| {
                let reason = match code {
                    404 => "NotFound",
                    409 => "Conflict",
                    _ => "InternalError",
                };
                let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "no", "reason": reason, "code": code });
                (code, status)
            };
            let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
            let over = || version(&serde_json::from_slice(&body).unwrap());
            let (code, answer) = match (parts.method, &mut *lease) {
                _ if is_watch => refused(500),
                (Method::PUT, Some(lease)) if over() != version(lease) => refused(409),
                (Method::GET, Some(lease)) => (200, lease.clone()),
                (Method::GET, None) => refused(404),
                (_, known) => {
                    let mut written: Value = serde_json::from_slice(&body).unwrap();
                    let version = known.as_ref().map_or(1, |known| {
                        let version = &known["metadata"]["resourceVersion"];
                        version.as_str().unwrap().parse::<u64>().unwrap() + 1
                    });
                    written["metadata"]["resourceVersion"] = json!(version.to_string());
                    *known = Some(written.clone());
                    (200, written)
                }
            };
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    Client::new(service, "default")
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn candidacy() -> CandidateConfig {
    let gate = Gate::default();
    CandidateConfig {
        namespace: "default".to_owned(),
        name: "orkestra".to_owned(),
        timing: Timing {
            lease: Duration::from_secs(4),
            renew_deadline: Duration::from_secs(3),
            renew: Duration::from_millis(300),
            retry: Duration::from_millis(200),
        },
        leadership: Leadership::candidate("me".into(), gate.clone()),
        gate,
    }
}

/// Starts a candidate in the cluster of `lease`, on `runtime`.
fn elector(
    runtime: &tokio::runtime::Runtime,
    candidacy: CandidateConfig,
    lease: &Arc<Mutex<Option<Value>>>,
    reach: Reach,
) -> Elector {
    let served = Arc::clone(lease);
    let connect = move || {
        let served = Arc::clone(&served);
        async move { Ok::<_, io::Error>(cluster(served)) }
    };
    let gauge = IntGauge::new("leader", "leader").unwrap();
    let sources = (Clock::system(), Entropy::seeded(3));
    runtime
        .block_on(async {
            let reports = (reach, Vitals::start());
            Elector::start(connect, candidacy, sources, reports, gauge)
        })
        .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Returns the resourceVersion of the Lease in the cluster.
fn version(lease: &Mutex<Option<Value>>) -> u64 {
    let lease = lease.lock();
    let text = lease
        .as_ref()
        .and_then(|lease| lease["metadata"]["resourceVersion"].as_str());
    text.map_or(0, |text| text.parse().unwrap())
}

#[test]
fn a_lease_that_reads_back_older_than_it_was_written_shows_a_restored_store() {
    let (runtime, candidacy) = (runtime(), candidacy());
    let leadership = candidacy.leadership.clone();
    let (lease, reach) = (Arc::new(Mutex::new(None)), Reach::unquestioned());
    let elector = elector(&runtime, candidacy, &lease, reach.clone());
    until("it has written the Lease", || version(&lease) >= 1);
    let backup = lease.lock().clone();
    let saved = version(&lease);
    until("the Lease is renewed", || version(&lease) >= saved + 4);
    assert_eq!(reach.rewinds(), 0);
    lease.lock().clone_from(&backup);
    until("the rewind is noted", || reach.rewinds() == 1);
    // The candidate renews the restored Lease, whose resourceVersion is older than the last one it wrote.
    until("the Lease is renewed again", || {
        version(&lease) >= saved + 2
    });
    assert!(leadership.leads());
    assert_eq!(reach.rewinds(), 1);
    runtime.block_on(elector.end(true));
    runtime.shutdown_background();
}

#[test]
fn the_lease_is_renewed_while_every_worker_of_the_process_is_busy() {
    let (runtime, candidacy) = (runtime(), candidacy());
    let leadership = candidacy.leadership.clone();
    let lease = Arc::new(Mutex::new(None));
    let elector = elector(&runtime, candidacy, &lease, Reach::unquestioned());
    until("it leads", || leadership.leads());

    let (release, held) = blocking::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    for _ in 0..2 {
        let held = Arc::clone(&held);
        // Simulates a pass with a long computation.
        runtime.spawn(async move {
            let _ = held.lock().recv();
        });
    }
    let busy = Instant::now();
    while busy.elapsed() < Duration::from_secs(5) {
        assert!(leadership.leads(), "after {:?}", busy.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(release);
    runtime.block_on(elector.end(true));
    assert!(!leadership.leads());
    let left = lease.lock().clone().unwrap();
    assert_eq!(
        left["spec"]["holderIdentity"].as_str().unwrap_or_default(),
        ""
    );
    runtime.shutdown_background();
}
