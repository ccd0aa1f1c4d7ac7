use std::{
    convert::Infallible,
    sync::{Arc, Mutex, mpsc as blocking},
    time::Instant,
};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::lead::{Gate, Leadership, Timing};

/// A cluster with one Lease, which cannot be watched.
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
            let mut lease = lease.lock().unwrap();
            let refused = |code: u16| {
                let reason = if code == 404 {
                    "NotFound"
                } else {
                    "InternalError"
                };
                let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "no", "reason": reason, "code": code });
                (code, status)
            };
            let (code, answer) = match (parts.method, &mut *lease) {
                _ if is_watch => refused(500),
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

#[test]
fn the_lease_is_renewed_while_every_worker_of_the_process_is_busy() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let gate = Gate::default();
    let candidacy = Candidacy {
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
    };
    let leadership = candidacy.leadership.clone();
    let lease = Arc::new(Mutex::new(None));
    let served = Arc::clone(&lease);
    let connect = move || {
        let served = Arc::clone(&served);
        async move { Ok::<_, io::Error>(cluster(served)) }
    };
    let gauge = IntGauge::new("leader", "leader").unwrap();
    let sources = (Clock::system(), Entropy::seeded(3));
    let elector = runtime.block_on(async { Elector::start(connect, candidacy, sources, gauge) });
    let elector = elector.unwrap();
    until("it leads", || leadership.leads());

    let (release, held) = blocking::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    for _ in 0..2 {
        let held = Arc::clone(&held);
        // As a pass that computes for long would.
        runtime.spawn(async move {
            let _ = held.lock().map(|held| held.recv());
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
    let left = lease.lock().unwrap().clone().unwrap();
    assert_eq!(
        left["spec"]["holderIdentity"].as_str().unwrap_or_default(),
        ""
    );
    runtime.shutdown_background();
}
