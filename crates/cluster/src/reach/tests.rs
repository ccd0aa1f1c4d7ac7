//! Detection of outages of the API server, with a scripted probe and paused time.

use std::collections::VecDeque;

use super::*;

/// An API server that answers probes from a list, then `Ready`. Counts probes, and concurrent ones.
struct Server {
    answers: Mutex<VecDeque<Probe>>,
    asked: AtomicU32,
    at_a_time: AtomicU32,
    most: AtomicU32,
}

/// A version reader that panics: without a recorded write, no version is read.
fn unasked() -> VersionReader {
    Arc::new(|path| panic!("unexpected read of {path}"))
}

fn failed() -> Probe {
    Probe::Failed("connection refused".to_owned())
}

fn server(answers: impl IntoIterator<Item = Probe>) -> (Arc<Server>, Reach, IntGauge) {
    let server = Arc::new(Server {
        answers: Mutex::new(answers.into_iter().collect()),
        asked: AtomicU32::new(0),
        at_a_time: AtomicU32::new(0),
        most: AtomicU32::new(0),
    });
    let gauge = IntGauge::new("up", "up").unwrap();
    let asked = server.clone();
    let prober: Prober = Arc::new(move || {
        let server = asked.clone();
        Box::pin(async move {
            server.asked.fetch_add(1, Ordering::Relaxed);
            let now = server.at_a_time.fetch_add(1, Ordering::Relaxed) + 1;
            server.most.fetch_max(now, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
            server.at_a_time.fetch_sub(1, Ordering::Relaxed);
            let next = server.answers.lock().pop_front();
            next.unwrap_or(Probe::Ready)
        })
    });
    let reach = Reach::probed_by(prober, unasked(), Entropy::seeded(7), gauge.clone());
    (server, reach, gauge)
}

fn miss(reach: &Reach) {
    reach.heard(true);
}

fn answer(reach: &Reach) {
    reach.heard(false);
}

fn misses(reach: &Reach, count: u32) {
    (0..count).for_each(|_| miss(reach));
}

#[tokio::test(start_paused = true)]
async fn answers_of_any_kind_in_between_are_no_outage() {
    let (server, reach, _) = server([]);
    for _ in 0..50 {
        misses(&reach, machine::MISSES - 1);
        answer(&reach);
        misses(&reach, machine::MISSES - 1);
        answer(&reach);
    }
    sleep(Duration::from_mins(1)).await;
    assert!(reach.is_up());
    assert_eq!(server.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_all_day_pauses_nobody_and_is_worth_a_probe_a_second() {
    let (server, reach, gauge) = server([]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_mins(1) {
        miss(&reach);
        sleep(Duration::from_millis(10)).await;
        let view = reach.view().borrow().clone();
        assert_eq!((view.away, view.returns), (None, 0));
    }
    assert_eq!(gauge.get(), 1);
    let asked = server.asked.load(Ordering::Relaxed);
    assert!((50..=60).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_probed_one_at_a_time_with_longer_and_longer_pauses() {
    let (server, reach, gauge) = server((0..20).map(|_| failed()));
    misses(&reach, 500);
    assert!(!reach.is_up(), "still up during the first probe");
    let began = Instant::now();
    sleep(Duration::from_millis(10)).await;
    let away = reach.view().borrow().away.clone().unwrap();
    assert!(away.message().contains("connection refused"));
    assert_eq!(gauge.get(), 0);
    misses(&reach, 500);
    reach.up().await;
    // The delays are 200, 400, 800, 1600 ms, then 2 s each; jitter shortens each by up to a half.
    let took = began.elapsed();
    assert!(
        (Duration::from_secs(17)..Duration::from_secs(36)).contains(&took),
        "{took:?}"
    );
    assert_eq!(server.asked.load(Ordering::Relaxed), 21);
    assert_eq!(server.most.load(Ordering::Relaxed), 1);
    sleep(Duration::from_millis(1)).await;
    assert_eq!((gauge.get(), reach.returns()), (1, 1));
    assert_eq!(reach.view().borrow().away, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_and_knows_no_permissions_yet_is_not_up_and_one_that_never_reports_is()
{
    let starting = [
        failed(),
        Probe::Denied,
        Probe::Denied,
        failed(),
        Probe::Denied,
        Probe::Ready,
    ];
    let (first, reach, _) = server(starting);
    misses(&reach, machine::MISSES);
    reach.up().await;
    assert_eq!(first.asked.load(Ordering::Relaxed), 6);

    let (second, reach, _) = server((0..90).map(|_| Probe::Denied));
    misses(&reach, machine::MISSES);
    reach.up().await;
    assert_eq!(second.asked.load(Ordering::Relaxed), machine::DENIALS);
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_an_answer_ends() {
    let gauge = IntGauge::new("up", "up").unwrap();
    let prober: Prober = Arc::new(|| Box::pin(std::future::pending()));
    let reach = Reach::probed_by(prober, unasked(), Entropy::seeded(7), gauge);
    misses(&reach, machine::MISSES);
    sleep(PROBE_DEADLINE + Duration::from_millis(1)).await;
    let away = reach.view().borrow().away.clone().unwrap();
    assert_eq!(away.why, "no answer within 5 s");
}

#[tokio::test(start_paused = true)]
async fn all_that_wait_come_back_one_by_one_and_the_fewer_the_sooner() {
    for (count, within) in [(1_u32, SHARE), (100, SHARE * 100), (2_000, LONGEST_RETURN)] {
        let (_, reach, _) = server([failed()]);
        let seen = reach.returns();
        let waiting: Vec<_> = (0..count)
            .map(|_| {
                let reach = reach.clone();
                tokio::spawn(async move {
                    reach.back(seen).await;
                    Instant::now()
                })
            })
            .collect();
        sleep(Duration::from_millis(1)).await;
        misses(&reach, machine::MISSES);
        sleep(Duration::from_millis(5)).await;
        reach.up().await;
        let returned = Instant::now();
        let mut times = Vec::new();
        for task in waiting {
            times.push(task.await.unwrap() - returned);
        }
        let latest = times.iter().max().copied().unwrap();
        assert!(
            latest <= within + Duration::from_millis(1),
            "{count}: {latest:?}"
        );
        // With many watches, no tenth of the period contains more than a fifth of them.
        if count > 50 {
            for tenth in 0..10 {
                let part = within / 10;
                let of_part = times
                    .iter()
                    .filter(|time| (part * tenth..part * (tenth + 1)).contains(*time));
                assert!(of_part.count() < count as usize / 5, "{count}");
            }
        }
    }
}

/// Returns the number of rewinds that are known once the API server is reachable again, and the number of reads of `/list`. The
/// process wrote `/list` at resourceVersion 70; `looks` are the results of reads in order, the last one repeated.
async fn rewinds_after(looks: &[Result<Option<&'static str>, ()>]) -> (u64, u32) {
    let gauge = IntGauge::new("up", "up").unwrap();
    let prober: Prober = Arc::new(|| Box::pin(async { Probe::Ready }));
    let (looks, asked) = (looks.to_vec(), Arc::new(AtomicU32::new(0)));
    let counted = asked.clone();
    let looker: VersionReader = Arc::new(move |path| {
        assert_eq!(path, "/list");
        let at = counted.fetch_add(1, Ordering::Relaxed) as usize;
        let found = looks[at.min(looks.len() - 1)];
        let answer = found.map(|found| found.map(Version::from));
        Box::pin(async move { answer.map_err(|()| kube::Error::Service("no answer".into())) })
    });
    let reach = Reach::probed_by(prober, looker, Entropy::seeded(7), gauge);
    let answer = crate::watch::testing::node(r#"{"metadata":{"resourceVersion":"70"}}"#);
    reach.note_written(|| "/list".to_owned(), &answer);
    reach.note_deleted(|| "/other".to_owned());
    misses(&reach, machine::MISSES);
    assert!(!reach.is_up());
    reach.up().await;
    let first = reach.rewinds();
    // A rewind is noted once: the next outage does not find it again.
    sleep(machine::CALM * 2).await;
    misses(&reach, machine::MISSES);
    reach.up().await;
    assert_eq!(reach.rewinds(), first);
    (first, asked.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_lost_write_is_known_before_anybody_continues() {
    assert_eq!(rewinds_after(&[Ok(Some("70"))]).await, (0, 2));
    assert_eq!(rewinds_after(&[Ok(Some("69"))]).await, (1, 1));
    assert_eq!(rewinds_after(&[Ok(None)]).await, (1, 1));
    assert_eq!(rewinds_after(&[Err(()), Ok(Some("69"))]).await, (1, 2));
    // Reads that always fail do not prevent the return.
    assert_eq!(rewinds_after(&[Err(())]).await, (0, 2 * LOOKS));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_for_that_this_process_has_deleted() {
    let (_, reach, _) = server([failed()]);
    let answer = crate::watch::testing::node(r#"{"metadata":{"resourceVersion":"70"}}"#);
    reach.note_written(|| "/list".to_owned(), &answer);
    reach.note_deleted(|| "/list".to_owned());
    misses(&reach, machine::MISSES);
    reach.up().await;
    assert_eq!(reach.rewinds(), 0);
}
