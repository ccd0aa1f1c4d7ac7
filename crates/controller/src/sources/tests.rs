//! The schedule of source fetches, with a simulated clock and seeded randomness, and the status of sources.

use std::time::Duration;

use orkestra_compiler::compose::{Base, DeclarationSite, Fetched};
use orkestra_ground::Entropy;
use orkestra_language::api::{duration::Span, sources::SourceCredentials};
use tokio::time::Instant;

use super::{
    schedule::{FetchOutcome, Schedule},
    *,
};

const PONDS: &str = "oci://harbour.example/k/ponds:stable";
const MAP: &str = "configmap/reeds";

fn request(id: &str, seconds: Option<u64>) -> SourceRequest {
    let kind = match id.strip_prefix("configmap/") {
        Some(name) => RequestKind::ConfigMap {
            name: name.to_owned(),
            key: None,
        },
        None => RequestKind::Registry {
            url: id.to_owned(),
            use_komposer: false,
        },
    };
    SourceRequest {
        id: id.to_owned(),
        kind,
        base: Base::Cluster {
            namespace: "marsh".to_owned(),
        },
        auth: None,
        verify: None,
        interval: seconds.map(|seconds| Span(Duration::from_secs(seconds))),
        place: DeclarationSite::default(),
    }
}

fn wanted(requests: &[SourceRequest], requested: Option<&str>) -> WantedSources {
    WantedSources {
        requests: requests.to_vec(),
        requested: requested.map(str::to_owned),
    }
}

fn artifact(text: &str) -> Arc<Artifact> {
    let documents = vec![Fetched {
        name: "katalog.yaml".to_owned(),
        text: text.to_owned(),
    }];
    Arc::new(Artifact {
        url: PONDS.to_owned(),
        revision: "stable".to_owned(),
        digest: Artifact::digest_of(&documents),
        documents,
        ..Artifact::default()
    })
}

fn failure(permanent: bool) -> FetchError {
    FetchError {
        message: "harbour.example does not answer".to_owned(),
        permanent,
    }
}

/// A schedule with a simulated clock and seeded randomness.
struct Bench {
    schedule: Schedule,
    now: Instant,
    entropy: Entropy,
}

impl Bench {
    fn new(requests: &[SourceRequest]) -> Self {
        let mut bench = Self {
            schedule: Schedule::default(),
            now: Instant::now(),
            entropy: Entropy::seeded(11),
        };
        bench.want(requests, None);
        bench
    }

    fn want(&mut self, requests: &[SourceRequest], requested: Option<&str>) {
        self.schedule.adopt(&wanted(requests, requested), self.now);
    }

    /// Returns the identities of the sources that are due now.
    fn due(&mut self) -> Vec<String> {
        let due = self.schedule.take_due(self.now);
        due.into_iter().map(|request| request.id).collect()
    }

    fn note(&mut self, id: &str, result: Result<Arc<Artifact>, FetchError>) -> FetchOutcome {
        let noted = self.schedule.note(id, result, (self.now, &self.entropy));
        noted.unwrap()
    }

    /// Advances the clock to the next fetch, and returns the delay in seconds.
    fn wait(&mut self) -> f64 {
        let next = self.schedule.next().unwrap();
        let waited = next - self.now;
        self.now = next;
        waited.as_secs_f64()
    }

    fn known(&self, id: &str) -> FetchedSource {
        self.schedule.known()[id].clone()
    }
}

#[test]
fn an_unchanged_source_is_fetched_once_in_each_interval_shortened_by_up_to_a_tenth() {
    let mut bench = Bench::new(&[request(PONDS, Some(60))]);
    let mut waits = Vec::new();
    for turn in 0..50 {
        assert_eq!(bench.due(), [PONDS], "{turn}");
        assert!(bench.due().is_empty(), "a second concurrent fetch");
        assert_eq!(bench.schedule.next(), None);
        let outcome = bench.note(PONDS, Ok(artifact("green")));
        assert_eq!(outcome == FetchOutcome::Unchanged, turn > 0, "{turn}");
        assert!(bench.due().is_empty());
        waits.push(bench.wait());
    }
    assert!(
        waits.iter().all(|wait| (54.0..=60.0).contains(wait)),
        "{waits:?}"
    );
    let (least, most) = waits
        .iter()
        .fold((60.0_f64, 0.0_f64), |(least, most), wait| {
            (least.min(*wait), most.max(*wait))
        });
    assert!(most - least > 3.0, "no jitter: {waits:?}");
}

#[test]
fn the_default_interval_is_five_minutes_and_the_least_a_second_and_pinned_content_is_fetched_once()
{
    let pinned = format!("oci://harbour.example/k/ponds@sha256:{}", "7".repeat(64));
    for (id, declared, expected) in [
        (PONDS, None, Some(270.0..=300.0)),
        (PONDS, Some(0), None),
        (&*pinned, Some(60), None),
    ] {
        let mut bench = Bench::new(&[request(id, declared)]);
        bench.due();
        bench.note(id, Ok(artifact("green")));
        match expected {
            Some(expected) => assert!(expected.contains(&bench.wait()), "{id}"),
            None => assert_eq!(bench.schedule.next(), None, "{id}"),
        }
    }
    let mut short = request(PONDS, None);
    short.interval = Some(Span(Duration::from_millis(20)));
    let mut bench = Bench::new(&[short]);
    bench.due();
    bench.note(PONDS, Ok(artifact("green")));
    assert!((0.9..=1.0).contains(&bench.wait()));
}

#[test]
fn a_tag_that_moved_is_a_new_artifact_and_an_equal_one_stays_the_same_object() {
    let mut bench = Bench::new(&[request(PONDS, Some(60))]);
    bench.due();
    let green = artifact("green");
    assert_eq!(
        bench.note(PONDS, Ok(Arc::clone(&green))),
        FetchOutcome::Changed(Arc::clone(&green))
    );
    bench.note(PONDS, Ok(artifact("green")));
    let known = bench.known(PONDS).artifact.unwrap();
    assert!(Arc::ptr_eq(&known, &green));
    let blue = artifact("blue");
    assert_eq!(
        bench.note(PONDS, Ok(Arc::clone(&blue))),
        FetchOutcome::Changed(blue.clone())
    );
    assert_eq!(bench.known(PONDS).artifact, Some(blue));
}

#[test]
fn a_broken_source_keeps_its_last_artifact_and_is_retried_with_growing_delays() {
    let mut bench = Bench::new(&[request(PONDS, Some(60))]);
    bench.due();
    bench.note(PONDS, Ok(artifact("green")));
    let mut waits = Vec::new();
    for turn in 0..12 {
        bench.wait();
        assert_eq!(bench.due(), [PONDS]);
        let is_new = turn == 0;
        let error = failure(false);
        assert_eq!(
            bench.note(PONDS, Err(error.clone())),
            FetchOutcome::Failed { error, is_new }
        );
        let known = bench.known(PONDS);
        assert_eq!(known.artifact, Some(artifact("green")));
        assert_eq!(known.problem, Some(failure(false)));
        let next = bench.schedule.next().unwrap() - bench.now;
        waits.push(next.as_secs_f64());
    }
    for (turn, wait) in waits.iter().enumerate() {
        let full = f64::from(1_u32 << turn).min(300.0);
        assert!((full * 0.9..=full).contains(wait), "{turn}: {waits:?}");
    }
    // A successful fetch resets the backoff: the next failure starts with the first delay.
    bench.wait();
    bench.due();
    assert_eq!(
        bench.note(PONDS, Ok(artifact("green"))),
        FetchOutcome::Unchanged
    );
    assert_eq!(bench.known(PONDS).problem, None);
    assert!((54.0..=60.0).contains(&bench.wait()));
    bench.due();
    bench.note(PONDS, Err(failure(false)));
    assert!((0.9..=1.0).contains(&bench.wait()));
}

#[test]
fn a_failure_that_only_a_change_corrects_waits_for_the_next_interval() {
    let pinned = format!("oci://harbour.example/k/ponds@sha256:{}", "7".repeat(64));
    for (id, expected) in [(PONDS, 54.0..=60.0), (&*pinned, 270.0..=300.0)] {
        let mut bench = Bench::new(&[request(id, Some(60))]);
        bench.due();
        bench.note(id, Err(failure(true)));
        assert!(expected.contains(&bench.wait()), "{id}");
    }
}

#[test]
fn a_request_fetches_everything_at_once_and_other_credentials_their_source() {
    let other = "oci://harbour.example/k/lakes:stable";
    let mut both = [request(PONDS, Some(60)), request(other, Some(60))];
    let mut bench = Bench::new(&both);
    let all = [other, PONDS];
    assert_eq!(bench.due(), all);
    for id in all {
        bench.note(id, Ok(artifact(id)));
    }
    bench.want(&both, None);
    assert!(bench.due().is_empty(), "without a change");
    bench.want(&both, Some("now"));
    assert_eq!(bench.due(), all);
    both[0].auth = Some(SourceCredentials {
        from_env: Some("LOGIN".to_owned()),
        ..SourceCredentials::default()
    });
    // A source whose credentials change during a fetch is fetched once more afterwards.
    bench.want(&both, Some("now"));
    assert!(bench.due().is_empty());
    for id in all {
        bench.note(id, Ok(artifact(id)));
    }
    assert_eq!(bench.due(), [PONDS]);
    bench.note(PONDS, Ok(artifact(PONDS)));
    // A source that is no longer wanted is forgotten, and its late result is ignored.
    bench.want(&both[1..], Some("now"));
    assert_eq!(bench.schedule.known().keys().collect::<Vec<_>>(), [other]);
    let late = bench
        .schedule
        .note(PONDS, Ok(artifact("late")), (bench.now, &bench.entropy));
    assert_eq!(late, None);
}

#[test]
fn a_source_of_the_cluster_is_watched_and_never_due() {
    let mut bench = Bench::new(&[request(MAP, Some(60))]);
    assert!(bench.due().is_empty());
    assert_eq!(bench.schedule.next(), None);
    bench.want(&[request(MAP, Some(60))], Some("now"));
    bench.schedule.resume(bench.now);
    assert_eq!(bench.schedule.next(), None, "the task would spin");
    bench.note(MAP, Err(failure(false)));
    assert_eq!(bench.schedule.next(), None);
}

#[test]
fn a_fetch_that_ended_with_its_task_is_repeated() {
    let mut bench = Bench::new(&[request(PONDS, Some(60))]);
    assert_eq!(bench.due(), [PONDS]);
    bench.schedule.resume(bench.now);
    assert_eq!(bench.due(), [PONDS]);
}

#[test]
fn rows_report_what_runs_and_why_a_newer_revision_does_not() {
    let other = "oci://harbour.example/k/lakes:stable";
    let requests = [
        request(PONDS, None),
        request(other, None),
        request(MAP, None),
    ];
    let running = Artifacts::from_iter([
        (PONDS.to_owned(), artifact("green")),
        (other.to_owned(), artifact("deep")),
    ]);
    let problem = |error| FetchedSource {
        artifact: None,
        problem: Some(error),
    };
    let known = BTreeMap::from([(MAP.to_owned(), problem(failure(true)))]);
    let waiting = Unapproved {
        source: PONDS.to_owned(),
        digest: "sha256:77".to_owned(),
        rules: vec!["create serviceaccounts".to_owned()],
    };

    let reported = report(
        &requests,
        &running,
        &BTreeMap::new(),
        std::slice::from_ref(&waiting),
    );
    assert_eq!(reported.rows[0].digest, artifact("green").digest);
    for part in ["create serviceaccounts", "sha256:77", "spec.approve"] {
        assert!(
            reported.rows[0].message.contains(part),
            "{}",
            reported.rows[0].message
        );
    }
    assert_eq!(
        (
            reported.rows[1].message.as_str(),
            &*reported.rows[1].revision
        ),
        ("", "stable")
    );
    let (reason, _) = reported.problem.unwrap();
    assert_eq!(reason, KatalogReason::PendingApproval);

    let reported = report(&requests, &running, &known, &[waiting]);
    assert_eq!(
        (reported.rows[2].digest.as_str(), &*reported.rows[2].message),
        ("", "harbour.example does not answer")
    );
    let (reason, message) = reported.problem.unwrap();
    assert_eq!(reason, KatalogReason::SourceFailed);
    assert!(message.contains(MAP), "{message}");
}
